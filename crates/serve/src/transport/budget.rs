//! How much of everything may be in use at once, and the figures that show how much is.
//!
//! Bytes and requests are held per core, as plain cells: each core has an equal part of the whole,
//! so that no counter moves between cores on the request path. Their sums are published each tick.

use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::limits::{
    BUFFERED_BYTES_MAX, CONNECTIONS_MAX, OVERDRAFTS_MAX, REQUESTS_MAX, SMALL_RECORDS_PART,
};

/// Limits that a service runs with; the defaults are those of [`base::limits`].
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// Operations waiting for the pool or a flush at once.
    pub requests: usize,
    /// Bytes of requests and replies held at once.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: CONNECTIONS_MAX, requests: REQUESTS_MAX, bytes: BUFFERED_BYTES_MAX }
    }
}

/// What is in use over all cores, and what went wrong so far.
#[derive(Debug, Default)]
pub struct Budgets {
    limits: Limits,
    connections: AtomicI64,
    requests: AtomicI64,
    bytes: AtomicI64,
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

    /// The limits.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Takes one connection from this address, or counts a refusal.
    pub fn connect(&self, from: IpAddr) -> bool {
        let before = self.connections.fetch_add(1, Relaxed);
        if before >= self.limits.connections as i64 {
            self.connections.fetch_sub(1, Relaxed);
            self.refused.fetch_add(1, Relaxed);
            return false;
        }
        *self.peers().entry(from).or_default() += 1;
        true
    }

    /// Gives one connection from this address back.
    pub fn disconnect(&self, from: IpAddr) {
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

/// One core's part of the budgets.
#[derive(Debug)]
pub struct CoreBudget {
    requests_max: usize,
    bytes_max: usize,
    requests: Cell<usize>,
    bytes: Cell<usize>,
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

    /// Whether `n` more bytes may be held.
    pub fn has_bytes(&self, n: usize) -> bool {
        self.bytes.get() + n <= self.bytes_max
    }

    /// Whether a buffer of `n` bytes for a large record may be taken: a part of the budget is left
    /// to small ones, so that unfinished large records cannot keep everybody out.
    pub fn has_large(&self, n: usize) -> bool {
        self.has_bytes(n + self.bytes_max / SMALL_RECORDS_PART)
    }

    /// Whether an operation with `n` bytes may be handed over. One is always let in.
    pub fn has_room(&self, n: usize) -> bool {
        self.requests.get() == 0 || (self.has_request() && self.has_bytes(n))
    }

    /// Takes a place above the limit, for a record that has begun: if everyone held a part of the
    /// budget and waited for more, nobody would get on. There are [`OVERDRAFTS_MAX`].
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
        let (requests, bytes) = self.shown.replace((self.requests.get(), self.bytes.get()));
        all.requests.fetch_add(self.requests.get() as i64 - requests as i64, Relaxed);
        all.bytes.fetch_add(self.bytes.get() as i64 - bytes as i64, Relaxed);
        all.taken.fetch_add(self.taken.take(), Relaxed);
        all.moved.fetch_add(self.moved.take(), Relaxed);
        all.replays.fetch_add(self.replays.take(), Relaxed);
    }
}

#[cfg(test)]
mod tests;
