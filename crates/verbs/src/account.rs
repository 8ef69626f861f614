//! How much memory is registered, over all connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::limit::ByteLimit;

/// The account of registered memory.
#[derive(Debug)]
pub struct Account {
    limit: Arc<ByteLimit>,
    registrations: AtomicU64,
    refusals: AtomicU64,
}

impl Account {
    /// An account of at most `max` bytes.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            limit: ByteLimit::new(max),
            registrations: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
        })
    }

    /// Most bytes.
    pub fn max(&self) -> usize {
        self.limit.max()
    }

    /// Bytes that are registered now.
    pub fn bytes(&self) -> usize {
        self.limit.used()
    }

    /// The limit of what is registered, for those that wait for room.
    pub fn limit(&self) -> &Arc<ByteLimit> {
        &self.limit
    }

    /// Registrations so far.
    pub fn registrations(&self) -> u64 {
        self.registrations.load(Relaxed)
    }

    /// Registrations that were refused so far because of the limit.
    pub fn refusals(&self) -> u64 {
        self.refusals.load(Relaxed)
    }

    /// Takes `bytes` until what it returns is dropped; `None` if there is no room for them.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize) -> Option<Permit> {
        if !self.limit.try_take(bytes) {
            self.refusals.fetch_add(1, Relaxed);
            return None;
        }
        self.registrations.fetch_add(1, Relaxed);
        Some(Permit { account: Arc::clone(self), bytes })
    }
}

/// A part of the account.
#[derive(Debug)]
pub(crate) struct Permit {
    account: Arc<Account>,
    bytes: usize,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.account.limit.give(self.bytes);
    }
}
