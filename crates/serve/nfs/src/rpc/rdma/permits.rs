//! Permits for connections over RDMA: a limit in all, and one for each address.
//!
//! A peer that has vanished sends nothing, and RDMA has no keepalive. So when no permit is left,
//! the connection that has been idle for longest is evicted, if that is at least the time that was
//! given to [`RdmaPermits::new`]. The time is handed in.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use base::limits::{
    RDMA_ADDRESS_BYTES_MAX, RDMA_CLOSING_MAX, RDMA_CONNECTIONS_CLIENT_MAX, RDMA_CONNECTIONS_MAX,
};
use base::peer::network;
use base::permits::RevokeSignal;
use verbs::limit::ByteLimit;

/// The permits.
#[derive(Debug)]
pub(super) struct RdmaPermits {
    table: Mutex<PermitTable>,
    idle_min_ns: u64,
}

#[derive(Debug, Default)]
struct PermitTable {
    open: HashMap<u64, Entry>,
    next: u64,
    /// Evicted connections that have not ended yet.
    closing: usize,
    /// What the connections of each address hold for data.
    data: HashMap<IpAddr, Arc<ByteLimit>>,
}

#[derive(Debug)]
struct Entry {
    address: IpAddr,
    activity: Arc<Activity>,
}

/// Since when a connection is idle, and whether it is evicted.
#[derive(Debug)]
pub(super) struct Activity {
    idle_since_ns: AtomicU64,
    signal: RevokeSignal,
}

/// A connection with requests in progress.
const IN_USE: u64 = u64::MAX;

impl Activity {
    /// Notes that something has happened: since now it is idle, or it has requests in progress.
    pub(super) fn note(&self, is_idle: bool, now_ns: u64) {
        self.idle_since_ns.store(if is_idle { now_ns } else { IN_USE }, Relaxed);
    }

    /// Ready when the connection is evicted. One task may wait.
    pub(super) fn poll_evicted(&self, cx: &Context<'_>) -> Poll<()> {
        self.signal.poll_revoked(cx)
    }
}

/// A permit, until it is dropped.
#[derive(Debug)]
pub(super) struct RdmaPermit {
    permits: Arc<RdmaPermits>,
    id: u64,
    address: IpAddr,
    /// Of its connection.
    pub(super) activity: Arc<Activity>,
    /// Bytes that are registered for data of all connections of its address.
    pub(super) data: Arc<ByteLimit>,
    /// Whether another connection was evicted for it.
    pub(super) has_evicted: bool,
}

impl PermitTable {
    /// The connection among these that has been idle for longest, and since when.
    fn idlest(&self, is_meant: impl Fn(&Entry) -> bool) -> Option<(u64, u64)> {
        let meant = self.open.iter().filter(|(_, entry)| is_meant(entry));
        let since = meant.map(|(id, entry)| (entry.activity.idle_since_ns.load(Relaxed), *id));
        since.filter(|(since, _)| *since != IN_USE).min()
    }
}

impl RdmaPermits {
    /// None taken; a connection can be evicted after this time without a request.
    pub(super) fn new(idle_min: Duration) -> Arc<Self> {
        let idle_min_ns = u64::try_from(idle_min.as_nanos()).unwrap_or(u64::MAX);
        Arc::new(Self { table: Mutex::default(), idle_min_ns })
    }

    fn lock(&self) -> MutexGuard<'_, PermitTable> {
        // Nothing under this lock panics.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A permit for a connection from this address, if there is one, or a connection that is idle:
    /// of the same address if that has its part.
    pub(super) fn take(self: &Arc<Self>, from: IpAddr, now_ns: u64) -> Option<RdmaPermit> {
        let (address, mut table) = (network(from), self.lock());
        let is_own = |entry: &Entry| entry.address == address;
        let own = table.open.values().filter(|entry| is_own(entry)).count();
        let has_part = own >= RDMA_CONNECTIONS_CLIENT_MAX;
        let is_full = has_part || table.open.len() >= RDMA_CONNECTIONS_MAX;
        if is_full {
            let (since, id) = table.idlest(|entry| !has_part || is_own(entry))?;
            let is_idle = now_ns.saturating_sub(since) >= self.idle_min_ns;
            if !is_idle || table.closing >= RDMA_CLOSING_MAX {
                return None;
            }
            let evicted = table.open.remove(&id)?;
            table.closing += 1;
            evicted.activity.signal.revoke();
        }
        let id = table.next;
        table.next += 1;
        let activity = Activity { idle_since_ns: now_ns.into(), signal: RevokeSignal::default() };
        let activity = Arc::new(activity);
        table.open.insert(id, Entry { address, activity: Arc::clone(&activity) });
        let limit = || ByteLimit::new(RDMA_ADDRESS_BYTES_MAX);
        let data = Arc::clone(table.data.entry(address).or_insert_with(limit));
        let permits = Arc::clone(self);
        Some(RdmaPermit { permits, id, address, activity, data, has_evicted: is_full })
    }
}

impl Drop for RdmaPermit {
    fn drop(&mut self) {
        let mut table = self.permits.lock();
        if table.open.remove(&self.id).is_none() {
            table.closing = table.closing.saturating_sub(1);
        }
        // The table and this permit: no other connection of the address is left.
        if Arc::strong_count(&self.data) <= 2 {
            table.data.remove(&self.address);
        }
    }
}

#[cfg(test)]
mod tests;
