//! The permits of one listener or service behind a lock: each is returned when it is dropped.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{PermitLimits, PermitTable, RevokeSignal};
use crate::peer::network;

/// The permits.
#[derive(Debug)]
pub struct PermitAccount {
    table: Mutex<PermitTable>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub struct AccountPermit {
    key: PermitKey,
    signal: Arc<RevokeSignal>,
    /// Connections that were evicted for it.
    pub ended: usize,
}

/// Names a permit, for what runs on its connection.
#[derive(Debug, Clone)]
pub struct PermitKey {
    account: Arc<PermitAccount>,
    id: u64,
}

impl Default for PermitAccount {
    fn default() -> Self {
        Self { table: Mutex::new(PermitTable::new(1)) }
    }
}

impl PermitAccount {
    fn lock(&self) -> MutexGuard<'_, PermitTable> {
        // Nothing under this lock panics.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A permit for a connection from this address, if there is one or a connection that is not in
    /// use is evicted. The signal is the one that the connection waits for, if it has one already.
    pub fn take(
        self: &Arc<Self>,
        from: IpAddr,
        limits: PermitLimits,
        signal: Option<Arc<RevokeSignal>>,
    ) -> Option<AccountPermit> {
        let signal = signal.unwrap_or_default();
        let grant = self.lock().take(0, network(from), limits, Arc::clone(&signal))?;
        let key = PermitKey { account: Arc::clone(self), id: grant.id };
        Some(AccountPermit { key, signal, ended: grant.ended })
    }

    /// Permits in use.
    pub fn taken(&self) -> usize {
        self.lock().taken()
    }

    /// Whether no connection can be evicted for a new one, because too many are closing.
    pub fn is_closing_full(&self, limits: PermitLimits) -> bool {
        self.lock().is_closing_full(limits)
    }
}

impl AccountPermit {
    /// Notes that the connection is in use. False if it has lost its permit already.
    pub fn keep(&self) -> bool {
        self.key.keep()
    }

    /// What notes that the connection is in use.
    pub fn key(&self) -> PermitKey {
        self.key.clone()
    }

    /// How the connection learns that its permit has gone to a new one.
    pub fn signal(&self) -> &Arc<RevokeSignal> {
        &self.signal
    }
}

impl PermitKey {
    /// Notes that the connection is in use. False if it has lost its permit already, or has ended.
    pub fn keep(&self) -> bool {
        self.account.lock().keep(self.id)
    }
}

impl Drop for AccountPermit {
    fn drop(&mut self) {
        self.key.account.lock().give(self.key.id);
    }
}
