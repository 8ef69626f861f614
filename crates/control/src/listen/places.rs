//! Permits for connections from the network: a limit on all, and one for each client address.
//!
//! A connection on which no user has signed in yet loses its permit to a new one when there is none
//! left ([`base::permits`]). The local socket has permits of its own.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::limits::{CONNECTIONS_CLOSING_LOOK, CONNECTIONS_CLOSING_LOOKS_MAX};
use base::permits::{AccountPermit, PermitAccount, PermitKey, PermitLimits};

/// The permits of all connections.
#[derive(Debug)]
pub struct ConnectionLimits {
    limits: PermitLimits,
    permits: Arc<PermitAccount>,
    ended: AtomicU64,
}

impl ConnectionLimits {
    /// `all` permits, and `client_max` for one client.
    pub fn new(all: usize, client_max: usize) -> Self {
        let limits = PermitLimits::new(all, client_max).limiting();
        Self { limits, permits: Arc::default(), ended: AtomicU64::default() }
    }

    /// A permit for a client, if there is one or a connection that loses its own.
    pub fn take(&self, from: IpAddr) -> Option<ConnectionPermit> {
        let permit = self.permits.take(from, self.limits, None);
        let ended = permit.as_ref().map_or(1, |permit| permit.ended);
        self.ended.fetch_add(ended as u64, Ordering::Relaxed);
        permit.map(ConnectionPermit)
    }

    /// Returns once a connection can be evicted for a new one, or after a tenth of a second. Until
    /// then new ones wait in the backlog of the listener.
    pub async fn can_evict(&self) {
        for _ in 0..CONNECTIONS_CLOSING_LOOKS_MAX {
            if !self.permits.is_closing_full(self.limits) {
                return;
            }
            tokio::time::sleep(CONNECTIONS_CLOSING_LOOK).await;
        }
    }

    /// Connections now.
    pub fn taken(&self) -> usize {
        self.permits.taken()
    }

    /// Connections that were refused so far, or closed to make room for newer ones.
    pub fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }
}

/// A permit, until it is dropped or revoked.
#[derive(Debug)]
pub struct ConnectionPermit(AccountPermit);

impl ConnectionPermit {
    /// Returns when a newer connection has this permit.
    pub async fn revoked(&self) {
        self.0.signal().revoked().await;
    }

    /// What requests on this connection carry as an extension: it notes that a user is signed in.
    pub fn key(&self) -> PermitKey {
        self.0.key()
    }
}

#[cfg(test)]
mod tests;
