//! How much of everything may be in use at once, and the figures that show how much is.
//!
//! Bytes and requests are held per core, as plain cells: each core has an equal part of the whole,
//! so that no counter moves between cores on the request path. Their sums are published each tick.
//! One client, an address or a /64, leaves half of each core's part to others ([`ClientPart`]): a
//! connection runs within the part of its client ([`CoreBudget::scoped`]), and what it takes there
//! counts for both.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::rc::{Rc, Weak};
use std::sync::atomic::{
    AtomicI64, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::limits::{
    BUFFERED_BYTES_MAX, BUFFERED_CLIENT_LEAVES, BUFFERED_CORE_MIN, CONNECTIONS_MAX, OVERDRAFTS_MAX,
    REQUESTS_MAX, SMALL_RECORDS_PART,
};
use probe::gauge::Gauges;
use tokio::task::JoinError;
use vfs::flush::FlushGroup;
use vfs::locks::continuation;

use super::connections::{ConnectionLimits, ConnectionPermit};
use super::pace::SlowPeerBudget;
use client::{ClientPart, Scope};
pub use client::{ReturnedBytes, Scoped};
use returns::ReturnNotify;
use room::Waiting;
pub use room::{Need, NextRoom};

mod client;
mod returns;
mod room;

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
#[derive(Debug)]
pub struct Budgets {
    limits: Limits,
    connections: AtomicI64,
    requests: AtomicI64,
    bytes: AtomicI64,
    /// The account of all services, and which of them this is. A service that shares none has one
    /// of its own.
    all: (Arc<ConnectionLimits>, usize),
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

impl Default for Budgets {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Budgets {
    /// Nothing in use yet.
    pub fn new(limits: Limits) -> Self {
        let own = Arc::new(ConnectionLimits::new(limits.connections, 1));
        Self::sharing(limits, &own, 0)
    }

    /// Nothing in use yet, of one of the services that share `all`.
    pub fn sharing(limits: Limits, all: &Arc<ConnectionLimits>, service: usize) -> Self {
        Self {
            limits,
            connections: AtomicI64::default(),
            requests: AtomicI64::default(),
            bytes: AtomicI64::default(),
            all: (Arc::clone(all), service),
            peers: Mutex::default(),
            taken: AtomicU64::default(),
            moved: AtomicU64::default(),
            replays: AtomicU64::default(),
            refused: AtomicU64::default(),
            bad_records: AtomicU64::default(),
            panics: AtomicU64::default(),
            timeouts: AtomicU64::default(),
            tls_sessions: AtomicU64::default(),
            tls_failures: AtomicU64::default(),
            stalls: AtomicU64::default(),
        }
    }

    /// The limits.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Takes one connection from this address, or counts a refusal. It cannot be evicted.
    pub fn connect(self: &Arc<Self>, from: IpAddr) -> Option<ServicePermit> {
        self.admit(from).filter(ServicePermit::keep)
    }

    /// As [`Budgets::connect`], for a connection that can be evicted for new ones until it is in
    /// use ([`ServicePermit::keep`]).
    pub fn admit(self: &Arc<Self>, from: IpAddr) -> Option<ServicePermit> {
        let Some(shared) = self.take_permit(from) else {
            self.refuse();
            return None;
        };
        (0..shared.ended).for_each(|_| self.refuse());
        self.connections.fetch_add(1, Relaxed);
        *self.peers().entry(from).or_default() += 1;
        Some(ServicePermit { budgets: Arc::clone(self), from, shared: Arc::new(shared) })
    }

    /// As [`ConnectionLimits::can_evict`].
    pub async fn can_evict(&self) {
        self.all.0.can_evict().await;
    }

    fn take_permit(&self, from: IpAddr) -> Option<ConnectionPermit> {
        let (all, service) = &self.all;
        all.take(*service, from)
    }

    /// Takes a permit for a connection that belongs to another one, as FTP's for data do: it is in
    /// use from the beginning.
    pub fn take_data_permit(&self, from: IpAddr) -> Option<ConnectionPermit> {
        self.take_permit(from).filter(ConnectionPermit::keep)
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
        self.all.0.panics.load(Relaxed)
    }

    /// Shows what is common to all services: the panics so far, of handlers, of flushes and of what
    /// waits for locks, and the bytes of the service that holds most, since each has the limit for
    /// itself.
    pub fn show_shared(&self, flush: &FlushGroup, gauges: &Gauges) {
        let panics = self.panics_over_all() + flush.counts().panics + continuation::panics();
        gauges.panics.set(panics);
        let bytes = self.all.0.most_bytes();
        gauges.bytes_in_flight.set(u64::try_from(bytes).unwrap_or(0));
        gauges.bytes_in_flight.set_limit(self.limits.bytes as u64);
    }

    fn in_all(&self, which: impl Fn(&ConnectionLimits) -> &AtomicU64) {
        which(&self.all.0).fetch_add(1, Relaxed);
    }

    /// Over all services that share permits with this one: connections open now, and those refused
    /// and disconnected so far.
    pub fn over_all(&self) -> (u64, u64, u64) {
        let (all, _) = &self.all;
        (all.taken() as u64, all.refused.load(Relaxed), all.slow.load(Relaxed))
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

/// A permit for one connection of a service and client; returned when dropped.
#[derive(Debug)]
pub struct ServicePermit {
    budgets: Arc<Budgets>,
    from: IpAddr,
    shared: Arc<ConnectionPermit>,
}

impl ServicePermit {
    /// Notes that the connection is in use. False if its permit has gone to a new one already.
    pub fn keep(&self) -> bool {
        self.shared.keep()
    }

    /// The permit in the account of all services.
    pub fn shared(&self) -> &Arc<ConnectionPermit> {
        &self.shared
    }
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
    /// What waits for any of it, and how it is heard that something was returned on another thread.
    waiting: Waiting,
    returns: Arc<ReturnNotify>,
    shown: Cell<(usize, usize)>,
    overdrafts: Cell<usize>,
    taken: Cell<u64>,
    moved: Cell<u64>,
    replays: Cell<u64>,
    /// What one client may hold of the requests and the bytes.
    client_max: (usize, usize),
    /// The parts of clients that have connections, and how many there may be before those of
    /// clients that have gone are removed.
    clients: RefCell<(HashMap<IpAddr, Weak<ClientPart>>, usize)>,
    /// The connection that runs now.
    scope: RefCell<Option<Rc<Scope>>>,
}

impl CoreBudget {
    /// The part of one of `cores` cores.
    pub fn new(limits: Limits, cores: usize) -> Self {
        let cores = cores.max(1);
        let requests_max = (limits.requests / cores).max(1);
        let bytes_max = (limits.bytes / cores).max(1);
        let part = |all: usize| all - all / BUFFERED_CLIENT_LEAVES;
        // Where there is least memory, one record of the largest fits all the same.
        let least = bytes_max.min(BUFFERED_CORE_MIN) / 4 * 3;
        Self {
            requests_max,
            bytes_max,
            client_max: (part(requests_max), part(bytes_max).max(least)),
            clients: RefCell::default(),
            scope: RefCell::default(),
            requests: Cell::new(0),
            bytes: Cell::new(0),
            returned: Arc::default(),
            waiting: Waiting::default(),
            returns: Arc::default(),
            shown: Cell::new((0, 0)),
            overdrafts: Cell::new(0),
            taken: Cell::new(0),
            moved: Cell::new(0),
            replays: Cell::new(0),
        }
    }

    /// Whether one more operation may wait.
    pub fn has_request(&self) -> bool {
        let of_client = || self.of_client(|client| client.requests.get() < self.client_max.0);
        self.requests.get() < self.requests_max && of_client().unwrap_or(true)
    }

    /// How many bytes may be held.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Whether `n` more bytes may be held.
    pub fn has_bytes(&self, n: usize) -> bool {
        self.settle();
        self.fits_bytes(n)
    }

    fn fits_bytes(&self, n: usize) -> bool {
        self.bytes.get() + n <= self.bytes_max && self.client_has_bytes(n)
    }

    /// Whether a buffer of `n` bytes for a large record may be taken: a part of the budget is left
    /// to small ones, so that unfinished large records cannot take all of it.
    pub fn has_large(&self, n: usize) -> bool {
        self.settle();
        self.fits_large(n)
    }

    fn fits_large(&self, n: usize) -> bool {
        let held = self.bytes.get() + n + self.bytes_max / SMALL_RECORDS_PART;
        held <= self.bytes_max && self.client_has_bytes(n)
    }

    /// Whether no more is held than the part that is left to small records.
    pub fn has_small_only(&self) -> bool {
        self.settle();
        self.fits_small_only()
    }

    fn fits_small_only(&self) -> bool {
        self.bytes.get() <= self.bytes_max / SMALL_RECORDS_PART
    }

    /// Whether an operation with `n` bytes may be handed over. One is always let in, and the first
    /// of each client if the core has room for it: what the client has sent may take its part, and
    /// would be given back by that operation alone.
    pub fn has_room(&self, n: usize) -> bool {
        self.settle();
        self.fits_operation(n)
    }

    fn fits_operation(&self, n: usize) -> bool {
        let is_first = || self.of_client(|client| client.requests.get() == 0).unwrap_or(false);
        let has_core = || self.bytes.get() + n <= self.bytes_max;
        let has_bytes = || has_core() && (is_first() || self.client_has_bytes(n));
        self.requests.get() == 0 || (self.has_request() && has_bytes())
    }

    /// Takes an overdraft, for a record that has begun: if all connections held a part of the
    /// budget and waited for more, none would make progress. There are [`OVERDRAFTS_MAX`], half of
    /// them for one client.
    pub fn take_overdraft(&self) -> bool {
        let free = self.has_overdrafts(1);
        if free {
            self.overdrafts.set(self.overdrafts.get() + 1);
            self.of_client(|client| client.overdrafts.set(client.overdrafts.get() + 1));
        }
        free
    }

    fn has_overdrafts(&self, count: usize) -> bool {
        let client_max = OVERDRAFTS_MAX / BUFFERED_CLIENT_LEAVES;
        let of_client = self.of_client(|client| client.overdrafts.get() + count <= client_max);
        self.overdrafts.get() + count <= OVERDRAFTS_MAX && of_client.unwrap_or(true)
    }

    /// Gives such a place back.
    pub fn give_overdraft(&self) {
        let less = |count: &Cell<usize>| count.set(count.get().saturating_sub(1));
        less(&self.overdrafts);
        self.of_client(|client| less(&client.overdrafts));
        self.freed();
    }

    /// Takes one operation.
    pub fn take_request(&self) {
        self.requests.set(self.requests.get() + 1);
        self.of_client(|client| client.requests.set(client.requests.get() + 1));
    }

    /// Gives one operation back.
    pub fn give_request(&self) {
        let less = |count: &Cell<usize>| count.set(count.get().saturating_sub(1));
        less(&self.requests);
        self.of_client(|client| less(&client.requests));
        self.freed();
    }

    /// Takes `n` bytes.
    pub fn take_bytes(&self, n: usize) {
        self.bytes.set(self.bytes.get() + n);
        self.of_client(|client| client.take(n));
    }

    /// Gives `n` bytes back.
    pub fn give_bytes(&self, n: usize) {
        self.of_client(|client| client.give(n));
        self.give(n);
    }

    fn give(&self, n: usize) {
        self.bytes.set(self.bytes.get().saturating_sub(n));
        self.freed();
    }

    /// Takes `n` bytes until what it returns is dropped; none if there is no room for them.
    pub fn try_hold(self: &Rc<Self>, n: usize) -> Option<ReservedBytes> {
        self.has_bytes(n).then(|| self.hold(n))
    }

    /// The same for callers that have checked, or that hold the bytes whether there is room or not.
    pub fn hold(self: &Rc<Self>, n: usize) -> ReservedBytes {
        let client = self.scope.borrow().as_ref().map(|scope| Rc::clone(&scope.client));
        let mut reserved = ReservedBytes { budget: Rc::clone(self), client, bytes: 0 };
        reserved.set(n);
        reserved
    }

    /// Where bytes are given back that were taken here and are dropped somewhere else.
    pub fn returned(&self) -> ReturnedBytes {
        ReturnedBytes {
            core: Arc::clone(&self.returned),
            client: self.of_client(|client| Arc::clone(&client.returned)),
            notify: Arc::clone(&self.returns),
        }
    }

    /// Takes off what was given back there.
    fn settle(&self) {
        // In one order with that of the notification.
        if self.returned.load(SeqCst) > 0 {
            self.give(self.returned.swap(0, SeqCst));
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
        self.clients.take();
        self.freed();
    }

    /// Brings the sums of `all` up to date with this core.
    pub fn publish(&self, all: &Budgets) {
        self.settle();
        let (requests, bytes) = self.shown.replace((self.requests.get(), self.bytes.get()));
        all.requests.fetch_add(self.requests.get() as i64 - requests as i64, Relaxed);
        let more = self.bytes.get() as i64 - bytes as i64;
        all.bytes.fetch_add(more, Relaxed);
        let (services, number) = &all.all;
        services.hold_bytes(*number, more);
        all.taken.fetch_add(self.taken.take(), Relaxed);
        all.moved.fetch_add(self.moved.take(), Relaxed);
        all.replays.fetch_add(self.replays.take(), Relaxed);
    }
}

/// Bytes of a core's budget, given back when dropped.
#[derive(Debug)]
pub struct ReservedBytes {
    budget: Rc<CoreBudget>,
    client: Option<Rc<ClientPart>>,
    bytes: usize,
}

impl ReservedBytes {
    /// How many they are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sets their number, whether there is room or not.
    pub fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        self.budget.bytes.set(self.budget.bytes.get() + bytes);
        if let Some(client) = &self.client {
            client.take(bytes);
            client.give(before);
        }
        self.budget.give(before);
    }

    /// The same bytes, to be given back on whichever thread.
    pub fn into_send(mut self) -> SendReservedBytes {
        let client = self.client.as_ref().map(|client| Arc::clone(&client.returned));
        let (core, notify) = (Arc::clone(&self.budget.returned), Arc::clone(&self.budget.returns));
        let returned = ReturnedBytes { core, client, notify };
        SendReservedBytes { returned, bytes: std::mem::take(&mut self.bytes) }
    }
}

impl Drop for ReservedBytes {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Bytes of a core's budget that go with what holds them, to the pool and elsewhere; given back
/// when dropped.
#[derive(Debug)]
pub struct SendReservedBytes {
    returned: ReturnedBytes,
    bytes: usize,
}

impl Drop for SendReservedBytes {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.returned.give(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests;
