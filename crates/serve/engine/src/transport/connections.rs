//! Permits for connections: one account over all services, because they share the descriptors.
//!
//! Each service is sure of its part, so that a flood of one leaves the others their connections.
//! The rest is for those that come first. One client, whatever it calls, leaves a part of that rest
//! to others. Connections on which no user has signed in, or no call was made, are evicted for new
//! ones ([`base::permits`]).

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU64};

use base::limits::{
    CONNECTIONS_CLIENT_LEAVES, CONNECTIONS_CLOSING_LOOK, CONNECTIONS_CLOSING_LOOKS_MAX,
    CONNECTIONS_SURE_PART,
};
use base::lock_order::{OrderedGuard, OrderedMutex, ranks};
use base::peer::network;
use base::permits::{PermitLimits, PermitTable, RevokeSignal};

/// The account.
#[derive(Debug)]
pub struct ConnectionLimits {
    limits: PermitLimits,
    services: usize,
    table: OrderedMutex<PermitTable>,
    /// Connections refused by any service so far, or evicted for new ones.
    pub refused: AtomicU64,
    /// Connections that any service ended so far because the peer was too slow.
    pub slow: AtomicU64,
    /// Handlers of any service that panicked so far.
    pub panics: AtomicU64,
    /// Bytes of requests and replies that each service holds.
    bytes: Vec<AtomicI64>,
}

impl ConnectionLimits {
    /// `all` permits, for this number of services.
    pub fn new(all: usize, services: usize) -> Self {
        let sure = all / CONNECTIONS_SURE_PART;
        let common = all.saturating_sub(sure * services);
        let client_max = common - common / CONNECTIONS_CLIENT_LEAVES;
        Self {
            limits: PermitLimits { sure, ..PermitLimits::new(all, client_max) }.limiting(),
            services,
            table: OrderedMutex::new(ranks::CONNECTION_PERMITS, PermitTable::new(services)),
            refused: AtomicU64::default(),
            slow: AtomicU64::default(),
            panics: AtomicU64::default(),
            bytes: (0..services).map(|_| AtomicI64::default()).collect(),
        }
    }

    fn lock(&self) -> OrderedGuard<'_, PermitTable> {
        self.table.lock()
    }

    /// A permit of this service (counted from 0) for a client, if there is one or a connection that
    /// is not in use is evicted. It is in use itself once [`ConnectionPermit::keep`] is called.
    pub fn take(self: &Arc<Self>, service: usize, from: IpAddr) -> Option<ConnectionPermit> {
        let signal = Arc::<RevokeSignal>::default();
        let grant = self.lock().take(service, network(from), self.limits, Arc::clone(&signal))?;
        let ended = grant.ended;
        Some(ConnectionPermit { limits: Arc::clone(self), id: grant.id, signal, ended })
    }

    /// Returns once a connection can be evicted for a new one, or after a tenth of a second. Until
    /// then new ones wait in the backlog of their listener.
    pub async fn can_evict(&self) {
        for _ in 0..CONNECTIONS_CLOSING_LOOKS_MAX {
            if !self.lock().is_closing_full(self.limits) {
                return;
            }
            tokio::time::sleep(CONNECTIONS_CLOSING_LOOK).await;
        }
    }

    /// A service (counted from 0) holds `more` bytes more, or fewer.
    pub fn hold_bytes(&self, service: usize, more: i64) {
        if let Some(bytes) = self.bytes.get(service) {
            bytes.fetch_add(more, Relaxed);
        }
    }

    /// Bytes of the service that holds most.
    pub fn most_bytes(&self) -> i64 {
        self.bytes.iter().map(|bytes| bytes.load(Relaxed)).max().unwrap_or(0)
    }

    /// Permits in all.
    pub fn all(&self) -> usize {
        self.limits.all
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.lock().taken()
    }

    /// Whether some service has no permit left but those of connections that are not in use.
    pub fn is_full(&self) -> bool {
        let table = self.lock();
        let mut services = 0..self.services;
        table.is_common_full(self.limits)
            && services.any(|service| table.of_service(service) >= self.limits.sure)
    }
}

/// A permit, until it is dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    limits: Arc<ConnectionLimits>,
    id: u64,
    signal: Arc<RevokeSignal>,
    /// Connections that are closed to make room for it.
    pub ended: usize,
}

impl ConnectionPermit {
    /// Notes that the connection is in use. False if its permit has gone to a new one already.
    pub fn keep(&self) -> bool {
        self.limits.lock().keep(self.id)
    }

    /// How the connection learns that its permit has gone to a new one.
    pub fn signal(&self) -> &Arc<RevokeSignal> {
        &self.signal
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.limits.lock().give(self.id);
    }
}

#[cfg(test)]
mod tests;
