//! Permits for connections: one account over all services, because they share the descriptors.
//!
//! Each service is sure of its part, so that a flood of one leaves the others their connections.
//! The rest is for those that come first. One client, whatever it calls, leaves a part of that rest
//! to others.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU64};

use base::limits::{CONNECTIONS_CLIENT_LEAVES, CONNECTIONS_SURE_PART};
use base::lock_order::{OrderedGuard, OrderedMutex, ranks};
use base::peer::network;

use super::tally::Tally;

/// The account.
#[derive(Debug)]
pub struct ConnectionLimits {
    all: usize,
    /// What each service is sure of.
    sure: usize,
    /// What no service is sure of.
    common: usize,
    client_max: usize,
    taken: OrderedMutex<Taken>,
    /// Connections refused by any service so far.
    pub refused: AtomicU64,
    /// Connections that any service ended so far because the peer was too slow.
    pub slow: AtomicU64,
    /// Handlers of any service that panicked so far.
    pub panics: AtomicU64,
    /// Bytes of requests and replies that each service holds.
    bytes: Vec<AtomicI64>,
}

#[derive(Debug)]
struct Taken {
    services: Vec<usize>,
    /// As many at most as there are permits.
    clients: Tally,
}

impl ConnectionLimits {
    /// `all` permits, for this number of services.
    pub fn new(all: usize, services: usize) -> Self {
        let sure = all / CONNECTIONS_SURE_PART;
        let common = all.saturating_sub(sure * services);
        let taken = Taken { services: vec![0; services], clients: Tally::default() };
        Self {
            all,
            sure,
            common,
            client_max: common - common / CONNECTIONS_CLIENT_LEAVES,
            taken: OrderedMutex::new(ranks::CONNECTION_PERMITS, taken),
            refused: AtomicU64::default(),
            slow: AtomicU64::default(),
            panics: AtomicU64::default(),
            bytes: (0..services).map(|_| AtomicI64::default()).collect(),
        }
    }

    fn lock(&self) -> OrderedGuard<'_, Taken> {
        self.taken.lock()
    }

    /// A permit of this service (counted from 0) for a client, if there is one.
    pub fn take(self: &Arc<Self>, service: usize, from: IpAddr) -> Option<ConnectionPermit> {
        let from = network(from);
        let mut taken = self.lock();
        let here = taken.services.get(service).copied()?;
        let is_sure = here < self.sure;
        if taken.clients.of(from) >= self.client_max
            || (!is_sure && taken.common(self.sure) >= self.common)
        {
            return None;
        }
        taken.services[service] += 1;
        taken.clients.add(from);
        drop(taken);
        Some(ConnectionPermit { limits: Arc::clone(self), service, from })
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

    /// ConnectionLimits in all.
    pub fn all(&self) -> usize {
        self.all
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.lock().clients.all()
    }

    /// Whether some service can accept no further connection.
    pub fn is_full(&self) -> bool {
        let taken = self.lock();
        let full = taken.common(self.sure) >= self.common;
        full && taken.services.iter().any(|count| *count >= self.sure)
    }
}

impl Taken {
    /// How many are taken beyond what services are sure of.
    fn common(&self, sure: usize) -> usize {
        self.services.iter().map(|count| count.saturating_sub(sure)).sum()
    }
}

/// A permit, until it is dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    limits: Arc<ConnectionLimits>,
    service: usize,
    from: IpAddr,
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut taken = self.limits.lock();
        if let Some(count) = taken.services.get_mut(self.service) {
            *count -= 1;
        }
        taken.clients.remove(self.from);
    }
}

#[cfg(test)]
mod tests;
