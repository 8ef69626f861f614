//! Permits of one service's connections where it has fewer than the permits of all services: a
//! limit in all, and one for each client. As with those, a connection that is not in use is evicted
//! for a new one.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::peer::network;
use base::permits::{PermitLimits, PermitTable, RevokeSignal};

/// The permits.
#[derive(Debug)]
pub struct RevocablePermits {
    table: Mutex<PermitTable>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub struct RevocablePermit {
    permits: Arc<RevocablePermits>,
    id: u64,
}

impl Default for RevocablePermits {
    fn default() -> Self {
        Self { table: Mutex::new(PermitTable::new(1)) }
    }
}

impl RevocablePermits {
    fn lock(&self) -> MutexGuard<'_, PermitTable> {
        // Nothing under this lock panics.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A permit for a connection from this address, where there are `all`, and `client_max` for a
    /// client. The signal is the connection's own ([`super::budget::CoreBudget::revoke_signal`]).
    pub fn take(
        self: &Arc<Self>,
        from: IpAddr,
        (all, client_max): (usize, usize),
        signal: Option<Arc<RevokeSignal>>,
    ) -> Option<RevocablePermit> {
        let limits = PermitLimits::new(all, client_max);
        let grant = self.lock().take(0, network(from), limits, signal.unwrap_or_default())?;
        Some(RevocablePermit { permits: Arc::clone(self), id: grant.id })
    }

    /// Permits in use.
    pub fn taken(&self) -> usize {
        self.lock().taken()
    }
}

impl RevocablePermit {
    /// Notes that the connection is in use. False if it has lost its permit already.
    pub fn keep(&self) -> bool {
        self.permits.lock().keep(self.id)
    }
}

impl Drop for RevocablePermit {
    fn drop(&mut self) {
        self.permits.lock().give(self.id);
    }
}
