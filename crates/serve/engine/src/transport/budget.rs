//! How much of everything may be in use at once, and the figures that show how much is.
//!
//! Bytes and requests are held per core, as plain cells: each core has an equal part of the whole,
//! so that no counter moves between cores on the request path. Their sums are published each tick.

use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::limits::{
    BUFFERED_BYTES_MAX, CONNECTIONS_MAX, OVERDRAFTS_MAX, REQUESTS_MAX, SMALL_RECORDS_PART,
};
use probe::gauge::Gauges;
use tokio::task::JoinError;
use vfs::flush::FlushGroup;

use super::connections::{self, ConnectionLimits};
use super::pace::SlowPeerBudget;

/// Limits that a service runs with; the defaults are those of [`base::limits`].
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// Operations waiting for the pool or a flush at once.
    pub requests: usize,
    /// Bytes of requests and replies held at once.
    pub bytes: usize,
    /// How slow a peer may be that moves data.
    pub pace: SlowPeerBudget,
}

impl Default for Limits {
    fn default() -> Self {
        let (requests, bytes) = (REQUESTS_MAX, BUFFERED_BYTES_MAX);
        Self { connections: CONNECTIONS_MAX, requests, bytes, pace: SlowPeerBudget::default() }
    }
}

/// What is in use over all cores, and what went wrong so far.
#[derive(Debug, Default)]
pub struct Budgets {
    limits: Limits,
    connections: AtomicI64,
    requests: AtomicI64,
    bytes: AtomicI64,
    /// The account of all services, and which of them this is.
    all: Option<(Arc<ConnectionLimits>, usize)>,
    /// Connections by address; as many at most as there may be connections.
    peers: Mutex<HashMap<IpAddr, usize>>,
    /// Requests taken from sockets so far.
    pub taken: AtomicU64,
    /// Bytes received and sent so far.
    pub moved: AtomicU64,
    /// Replies repeated from the duplicate-request cache so far.
    pub replays: AtomicU64,
    /// Connections closed at once because there were too many.
    pub refused: AtomicU64,
    /// Records, calls or arguments that made no sense.
    pub bad_records: AtomicU64,
    /// Handlers that panicked.
    pub panics: AtomicU64,
    /// Connections ended because the peer was too slow.
    pub timeouts: AtomicU64,
    /// TLS sessions set up so far.
    pub tls_sessions: AtomicU64,
    /// Connections ended because TLS was not set up, or what came was changed on the way.
    pub tls_failures: AtomicU64,
    /// Times a connection was left unread because a budget was used up.
    pub stalls: AtomicU64,
}

impl Budgets {
    /// Nothing in use yet.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Nothing in use yet, of one of the services that share `all`.
    pub fn sharing(limits: Limits, all: &Arc<ConnectionLimits>, service: usize) -> Self {
        Self { all: Some((Arc::clone(all), service)), ..Self::new(limits) }
    }

    /// The limits.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Takes one connection from this address, or counts a refusal.
    pub fn connect(self: &Arc<Self>, from: IpAddr) -> Option<ServicePermit> {
        let before = self.connections.fetch_add(1, Relaxed);
        let shared = self.take_permit(from).filter(|_| before < self.limits.connections as i64);
        let Some(shared) = shared else {
            self.connections.fetch_sub(1, Relaxed);
            self.refuse();
            return None;
        };
        *self.peers().entry(from).or_default() += 1;
        Some(ServicePermit { budgets: Arc::clone(self), from, _shared: shared })
    }

    /// Takes a permit for a connection that belongs to another one, as FTP's for data do.
    pub fn take_permit(&self, from: IpAddr) -> Option<SharedPermit> {
        match &self.all {
            Some((all, service)) => all.take(*service, from).map(|one| SharedPermit(Some(one))),
            None => Some(SharedPermit(None)),
        }
    }

    /// Counts a connection that was refused.
    pub fn refuse(&self) {
        self.refused.fetch_add(1, Relaxed);
        self.in_all(|all| &all.refused);
    }

    /// Counts a connection that is ended because the peer is too slow.
    pub fn give_up(&self) {
        self.timeouts.fetch_add(1, Relaxed);
        self.in_all(|all| &all.slow);
    }

    /// Counts a handler that panicked.
    pub fn panicked(&self) {
        self.panics.fetch_add(1, Relaxed);
        self.in_all(|all| &all.panics);
    }

    /// Handlers that panicked so far, over all services that share permits with this one.
    pub fn panics_over_all(&self) -> u64 {
        let panics = self.all.as_ref().map_or(&self.panics, |(all, _)| &all.panics);
        panics.load(Relaxed)
    }

    /// Shows what is common to all services: the panics so far, of handlers and of flushes, and the
    /// bytes of the service that holds most, since each has the limit for itself.
    pub fn show_shared(&self, flush: &FlushGroup, gauges: &Gauges) {
        gauges.panics.set(self.panics_over_all() + flush.counts().panics);
        let bytes = self.all.as_ref().map_or_else(|| self.bytes(), |(all, _)| all.most_bytes());
        gauges.bytes_in_flight.set(u64::try_from(bytes).unwrap_or(0));
        gauges.bytes_in_flight.set_limit(self.limits.bytes as u64);
    }

    fn in_all(&self, which: impl Fn(&ConnectionLimits) -> &AtomicU64) {
        if let Some((all, _)) = &self.all {
            which(all).fetch_add(1, Relaxed);
        }
    }

    /// Over all services that share permits with this one: connections open now, and those refused
    /// and disconnected so far.
    pub fn over_all(&self) -> (u64, u64, u64) {
        match &self.all {
            Some((all, _)) => {
                (all.taken() as u64, all.refused.load(Relaxed), all.slow.load(Relaxed))
            }
            None => {
                let open = u64::try_from(self.connections()).unwrap_or(0);
                (open, self.refused.load(Relaxed), self.timeouts.load(Relaxed))
            }
        }
    }

    fn disconnect(&self, from: IpAddr) {
        self.connections.fetch_sub(1, Relaxed);
        if let Entry::Occupied(mut peer) = self.peers().entry(from) {
            *peer.get_mut() -= 1;
            if *peer.get() == 0 {
                peer.remove();
            }
        }
    }

    fn peers(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a task that has ended by a panic.
    pub fn count_panic<T>(&self, ended: &Result<T, JoinError>) {
        if ended.as_ref().is_err_and(JoinError::is_panic) {
            self.panicked();
        }
    }

    /// Addresses from which there are connections now.
    pub fn clients(&self) -> usize {
        self.peers().len()
    }

    /// Connections open now.
    pub fn connections(&self) -> i64 {
        self.connections.load(Relaxed)
    }

    /// Operations waiting for the pool or a flush, as of the cores' last ticks.
    pub fn requests(&self) -> i64 {
        self.requests.load(Relaxed)
    }

    /// Bytes of requests and replies held, as of the cores' last ticks.
    pub fn bytes(&self) -> i64 {
        self.bytes.load(Relaxed)
    }
}

/// A permit of the account of all services, if there is one; given back when dropped.
#[derive(Debug)]
pub struct SharedPermit(
    #[expect(dead_code, reason = "held, not looked at")] Option<connections::ConnectionPermit>,
);

/// A permit for one connection of a service and client; returned when dropped.
#[derive(Debug)]
pub struct ServicePermit {
    budgets: Arc<Budgets>,
    from: IpAddr,
    _shared: SharedPermit,
}

impl Drop for ServicePermit {
    fn drop(&mut self) {
        self.budgets.disconnect(self.from);
    }
}

/// One core's part of the budgets.
#[derive(Debug)]
pub struct CoreBudget {
    requests_max: usize,
    bytes_max: usize,
    requests: Cell<usize>,
    bytes: Cell<usize>,
    /// Bytes returned on other threads, to be subtracted from `bytes`.
    returned: Arc<AtomicUsize>,
    shown: Cell<(usize, usize)>,
    overdrafts: Cell<usize>,
    taken: Cell<u64>,
    moved: Cell<u64>,
    replays: Cell<u64>,
}

impl CoreBudget {
    /// The part of one of `cores` cores.
    pub fn new(limits: Limits, cores: usize) -> Self {
        let cores = cores.max(1);
        Self {
            requests_max: (limits.requests / cores).max(1),
            bytes_max: (limits.bytes / cores).max(1),
            requests: Cell::new(0),
            bytes: Cell::new(0),
            returned: Arc::default(),
            shown: Cell::new((0, 0)),
            overdrafts: Cell::new(0),
            taken: Cell::new(0),
            moved: Cell::new(0),
            replays: Cell::new(0),
        }
    }

    /// Whether one more operation may wait.
    pub fn has_request(&self) -> bool {
        self.requests.get() < self.requests_max
    }

    /// How many bytes may be held.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Whether `n` more bytes may be held.
    pub fn has_bytes(&self, n: usize) -> bool {
        self.settle();
        self.bytes.get() + n <= self.bytes_max
    }

    /// Whether a buffer of `n` bytes for a large record may be taken: a part of the budget is left
    /// to small ones, so that unfinished large records cannot take all of it.
    pub fn has_large(&self, n: usize) -> bool {
        self.has_bytes(n + self.bytes_max / SMALL_RECORDS_PART)
    }

    /// Whether no more is held than the part that is left to small records.
    pub fn has_small_only(&self) -> bool {
        self.settle();
        self.bytes.get() <= self.bytes_max / SMALL_RECORDS_PART
    }

    /// Whether an operation with `n` bytes may be handed over. One is always let in.
    pub fn has_room(&self, n: usize) -> bool {
        self.requests.get() == 0 || (self.has_request() && self.has_bytes(n))
    }

    /// Takes a place above the limit, for a record that has begun: if all connections held a part
    /// of the budget and waited for more, none would make progress. There are [`OVERDRAFTS_MAX`].
    pub fn take_overdraft(&self) -> bool {
        let free = self.overdrafts.get() < OVERDRAFTS_MAX;
        self.overdrafts.set(self.overdrafts.get() + usize::from(free));
        free
    }

    /// Gives such a place back.
    pub fn give_overdraft(&self) {
        self.overdrafts.set(self.overdrafts.get().saturating_sub(1));
    }

    /// Takes one operation.
    pub fn take_request(&self) {
        self.requests.set(self.requests.get() + 1);
    }

    /// Gives one operation back.
    pub fn give_request(&self) {
        self.requests.set(self.requests.get().saturating_sub(1));
    }

    /// Takes `n` bytes.
    pub fn take_bytes(&self, n: usize) {
        self.bytes.set(self.bytes.get() + n);
    }

    /// Gives `n` bytes back.
    pub fn give_bytes(&self, n: usize) {
        self.bytes.set(self.bytes.get().saturating_sub(n));
    }

    /// Takes `n` bytes until what it returns is dropped; none if there is no room for them.
    pub fn try_hold(self: &Rc<Self>, n: usize) -> Option<ReservedBytes> {
        self.has_bytes(n).then(|| self.hold(n))
    }

    /// The same for callers that have checked, or that hold the bytes whether there is room or not.
    pub fn hold(self: &Rc<Self>, n: usize) -> ReservedBytes {
        self.take_bytes(n);
        ReservedBytes { budget: Rc::clone(self), bytes: n }
    }

    /// Where bytes are given back that were taken here and are dropped somewhere else.
    pub fn returned(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.returned)
    }

    /// Takes off what was given back there.
    fn settle(&self) {
        if self.returned.load(Relaxed) > 0 {
            self.give_bytes(self.returned.swap(0, Relaxed));
        }
    }

    /// Counts a request taken from a socket.
    pub fn count_taken(&self) {
        self.taken.set(self.taken.get() + 1);
    }

    /// Counts bytes received or sent.
    pub fn count_moved(&self, n: usize) {
        self.moved.set(self.moved.get() + n as u64);
    }

    /// Counts a repeated reply.
    pub fn count_replay(&self) {
        self.replays.set(self.replays.get() + 1);
    }

    /// Gives everything back: what took it is gone.
    pub fn clear(&self) {
        self.requests.set(0);
        self.bytes.set(0);
        self.overdrafts.set(0);
    }

    /// Brings the sums of `all` up to date with this core.
    pub fn publish(&self, all: &Budgets) {
        self.settle();
        let (requests, bytes) = self.shown.replace((self.requests.get(), self.bytes.get()));
        all.requests.fetch_add(self.requests.get() as i64 - requests as i64, Relaxed);
        let more = self.bytes.get() as i64 - bytes as i64;
        all.bytes.fetch_add(more, Relaxed);
        if let Some((services, number)) = &all.all {
            services.hold_bytes(*number, more);
        }
        all.taken.fetch_add(self.taken.take(), Relaxed);
        all.moved.fetch_add(self.moved.take(), Relaxed);
        all.replays.fetch_add(self.replays.take(), Relaxed);
    }
}

/// Bytes of a core's budget, given back when dropped.
#[derive(Debug)]
pub struct ReservedBytes {
    budget: Rc<CoreBudget>,
    bytes: usize,
}

impl ReservedBytes {
    /// How many they are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sets their number, whether there is room or not.
    pub fn set(&mut self, bytes: usize) {
        self.budget.take_bytes(bytes);
        self.budget.give_bytes(std::mem::replace(&mut self.bytes, bytes));
    }
}

impl ReservedBytes {
    /// The same bytes, to be given back on whichever thread.
    pub fn into_send(mut self) -> SendReservedBytes {
        let (returned, bytes) = (self.budget.returned(), std::mem::take(&mut self.bytes));
        SendReservedBytes { returned, bytes }
    }
}

impl Drop for ReservedBytes {
    fn drop(&mut self) {
        self.budget.give_bytes(self.bytes);
    }
}

/// Bytes of a core's budget that go with what holds them, to the pool and elsewhere; given back
/// when dropped. The core takes account of that when it looks at its budget next.
#[derive(Debug)]
pub struct SendReservedBytes {
    returned: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for SendReservedBytes {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.returned.fetch_add(self.bytes, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
