//! Permits for connections from the network: a limit on all, and one for each client address.
//!
//! A connection on which no user has signed in yet loses its permit to a new one when there is none
//! left ([`base::permits`]). The local socket has permits of its own.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::limits::{CONNECTIONS_CLOSING_LOOK, CONNECTIONS_CLOSING_LOOKS_MAX};
use base::peer::network;
use base::permits::{PermitLimits, PermitTable, RevokeSignal};

/// The permits of all connections.
#[derive(Debug)]
pub struct ConnectionLimits {
    limits: PermitLimits,
    table: Mutex<PermitTable>,
    ended: AtomicU64,
}

impl ConnectionLimits {
    /// `all` permits, and `client_max` for one client.
    pub fn new(all: usize, client_max: usize) -> Self {
        let limits = PermitLimits::new(all, client_max).limiting();
        Self { limits, table: Mutex::new(PermitTable::new(1)), ended: AtomicU64::default() }
    }

    fn lock(&self) -> MutexGuard<'_, PermitTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A permit for a client, if there is one or a connection that loses its own.
    pub fn take(self: &Arc<Self>, from: IpAddr) -> Option<ConnectionPermit> {
        let signal = Arc::<RevokeSignal>::default();
        let grant = self.lock().take(0, network(from), self.limits, Arc::clone(&signal));
        let ended = grant.map_or(1, |grant| grant.ended);
        self.ended.fetch_add(ended as u64, Ordering::Relaxed);
        let seat = Arc::new(Row { limits: Arc::clone(self), id: grant?.id });
        Some(ConnectionPermit { seat: Seat(seat), signal })
    }

    /// Returns once a connection can be evicted for a new one, or after a tenth of a second. Until
    /// then new ones wait in the backlog of the listener.
    pub async fn can_evict(&self) {
        for _ in 0..CONNECTIONS_CLOSING_LOOKS_MAX {
            if !self.lock().is_closing_full(self.limits) {
                return;
            }
            tokio::time::sleep(CONNECTIONS_CLOSING_LOOK).await;
        }
    }

    /// Connections now.
    pub fn taken(&self) -> usize {
        self.lock().taken()
    }

    /// Connections that were refused so far, or closed to make room for newer ones.
    pub fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }
}

/// A permit, until it is dropped or revoked.
#[derive(Debug)]
pub struct ConnectionPermit {
    seat: Seat,
    signal: Arc<RevokeSignal>,
}

impl ConnectionPermit {
    /// Returns when a newer connection has this permit.
    pub async fn revoked(&self) {
        self.signal.revoked().await;
    }

    /// What requests on this connection carry.
    pub fn seat(&self) -> Seat {
        self.seat.clone()
    }
}

#[derive(Debug)]
struct Row {
    limits: Arc<ConnectionLimits>,
    id: u64,
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let row = &self.seat.0;
        row.limits.lock().give(row.id);
    }
}

/// Names the connection of a request, as a request extension.
#[derive(Debug, Clone)]
pub struct Seat(Arc<Row>);

impl Seat {
    /// Notes that a user is signed in on this connection: it is not revoked from now on.
    pub fn keep(&self) {
        self.0.limits.lock().keep(self.0.id);
    }
}

#[cfg(test)]
mod tests;
