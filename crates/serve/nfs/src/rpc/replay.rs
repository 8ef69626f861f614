//! The duplicate-request cache: results of calls that must not be executed twice.
//!
//! A client that loses its connection sends its unanswered calls again over a new one. For CREATE,
//! REMOVE, RENAME and their like a second execution would return a wrong result (EEXIST, ENOENT) or
//! undo what came between. So a call that changes something is identified by (client address,
//! identity, xid, program, procedure, checksum of its arguments), not by its connection; its repeat
//! waits for the first or gets the first one's results, byte for byte. Only results are kept: the
//! header before them, and what frames the message, are made for each reply. Hosts behind one
//! address, and users of one host, may choose the same number at the same time.
//!
//! Pure: the time is an argument, and nothing here does I/O. [`ReplayCache`] adds the locks.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;

use base::limits::{
    REPLAY_AGE_MAX, REPLAY_BUFFERED_PART, REPLAY_BYTES_MAX, REPLAY_CHECKSUM_BYTES,
    REPLAY_ENTRIES_MAX, REPLAY_SHARDS, REPLAY_WAITERS_MAX,
};
use base::lock_order::{OrderedGuard, OrderedMutex, ranks};
use base::peer::network;
use vfs::cred::Cred;

/// Numbers of finished calls of a table below which those of forgotten ones are not removed.
const NUMBERS_MIN: usize = 64;

/// What makes two calls the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// The client's address, without its port: that changes with each connection.
    pub client: IpAddr,
    /// User and group that the call claims.
    pub user: (u32, u32),
    /// Checksum of the groups that it claims.
    pub groups: u64,
    /// The call's number, chosen by the client.
    pub xid: u32,
    /// Program, version and procedure.
    pub proc: (u32, u32, u32),
    /// Checksum of the arguments, as clients reuse numbers after a restart.
    pub checksum: u64,
}

impl Key {
    /// The key of a call of `who` at `client` with these encoded arguments. Of a credential only
    /// the identity is compared: its stamp may change when a client repeats a call.
    pub fn new(
        (client, who): (IpAddr, &Cred),
        xid: u32,
        proc: (u32, u32, u32),
        args: &[u8],
    ) -> Self {
        let words = who.groups.iter().map(|group| u64::from(*group));
        let groups = mix(who.groups.len(), words);
        Self { client, user: (who.uid, who.gid), groups, xid, proc, checksum: checksum(args) }
    }
}

/// FNV-1a over 64-bit words of the length and the first [`REPLAY_CHECKSUM_BYTES`] bytes. Chance,
/// not malice, is what it guards against: a user can only confuse its own calls.
fn checksum(args: &[u8]) -> u64 {
    let head = args.get(..REPLAY_CHECKSUM_BYTES).unwrap_or(args);
    let words = head.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    mix(args.len(), words)
}

fn mix(length: usize, words: impl Iterator<Item = u64>) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    words.fold(0xcbf2_9ce4_8422_2325_u64 ^ length as u64, |sum, word| {
        let sum = (sum ^ word).wrapping_mul(PRIME);
        sum ^ sum >> 29
    })
}

/// What is known of a call.
#[derive(Debug, PartialEq, Eq)]
pub enum ReplayState {
    /// Nothing: do it.
    New,
    /// It is being done.
    InProgress,
    /// It was done; these were its results.
    Done(Box<[u8]>),
}

/// The outcome of a repeat that should wait for its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parked {
    /// It waits.
    Waits,
    /// The call has ended since it was looked for: it is to be looked for again.
    Ended,
    /// Too many wait for it already.
    Full,
}

/// Limits of one table.
#[derive(Debug, Clone, Copy)]
pub struct ReplayLimits {
    /// Calls remembered.
    pub entries: usize,
    /// Bytes of results.
    pub bytes: usize,
    /// Age of results at which they are forgotten, in nanoseconds.
    pub age_ns: u64,
    /// Repeats that may wait for one call.
    pub waiters: usize,
}

impl ReplayLimits {
    /// Limits of a service that may hold this number of bytes of requests and replies.
    pub fn within(buffered: usize) -> Self {
        let bytes = (buffered / REPLAY_BUFFERED_PART).min(REPLAY_BYTES_MAX);
        Self {
            entries: REPLAY_ENTRIES_MAX / REPLAY_SHARDS,
            bytes: bytes / REPLAY_SHARDS,
            age_ns: REPLAY_AGE_MAX.as_nanos() as u64,
            waiters: REPLAY_WAITERS_MAX,
        }
    }
}

enum Entry<W> {
    InProgress(Vec<W>),
    Done { results: Box<[u8]>, at_ns: u64, number: u64 },
}

/// One table of calls. `W` is a repeat that waits for the end of its call.
pub struct ReplayTable<W> {
    limits: ReplayLimits,
    entries: HashMap<Key, Entry<W>>,
    /// Finished calls, oldest first, by number: their client. Numbers of calls that are forgotten
    /// are skipped. Calls in progress are never forgotten; the budget of operations bounds them.
    finished: VecDeque<(u64, IpAddr)>,
    /// Finished calls of each client, oldest first.
    clients: HashMap<IpAddr, ClientReplies>,
    /// Clients by what their finished calls take.
    by_size: BTreeSet<(usize, IpAddr)>,
    /// Number of the next call that finishes.
    next: u64,
    /// Number of finished calls.
    count: usize,
    bytes: usize,
}

/// Finished calls of one client.
#[derive(Default)]
struct ClientReplies {
    calls: VecDeque<(u64, Key)>,
    bytes: usize,
}

impl ClientReplies {
    /// What they take of a table: each the room that one has on average, and its results.
    fn size(&self, limits: ReplayLimits) -> usize {
        self.bytes + self.calls.len() * (limits.bytes / limits.entries.max(1))
    }

    fn find(&self, number: u64) -> Option<usize> {
        self.calls.binary_search_by_key(&number, |(number, _)| *number).ok()
    }
}

impl<W> ReplayTable<W> {
    /// An empty table.
    pub fn new(limits: ReplayLimits) -> Self {
        let (entries, finished, clients, by_size) = Default::default();
        Self { limits, entries, finished, clients, by_size, next: 0, count: 0, bytes: 0 }
    }

    /// Calls remembered.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of results kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What is known of the call at time `now_ns`.
    pub fn look(&mut self, key: &Key, now_ns: u64) -> ReplayState {
        self.expire(now_ns);
        match self.entries.get(key) {
            None => ReplayState::New,
            Some(Entry::InProgress(_)) => ReplayState::InProgress,
            Some(Entry::Done { results, .. }) => ReplayState::Done(results.clone()),
        }
    }

    /// Notes that the call is being done now. False if it is known already.
    pub fn begin(&mut self, key: Key) -> bool {
        if self.entries.contains_key(&key) {
            return false;
        }
        self.entries.insert(key, Entry::InProgress(Vec::new()));
        true
    }

    /// Lets `waiter` wait for a call in progress; it is dropped if it cannot.
    pub fn park(&mut self, key: &Key, waiter: W) -> Parked {
        match self.entries.get_mut(key) {
            Some(Entry::InProgress(waiters)) if waiters.len() < self.limits.waiters => {
                waiters.push(waiter);
                Parked::Waits
            }
            Some(Entry::InProgress(_)) => Parked::Full,
            Some(Entry::Done { .. }) | None => Parked::Ended,
        }
    }

    /// Retains the results of a call, begun or not; returns the repeats that wait for it.
    pub fn finish(&mut self, key: Key, results: &[u8], now_ns: u64) -> Vec<W> {
        self.expire(now_ns);
        let waiters = match self.entries.remove(&key) {
            Some(Entry::InProgress(waiters)) => waiters,
            Some(done @ Entry::Done { .. }) => {
                self.entries.insert(key, done);
                self.forget(&key);
                Vec::new()
            }
            None => Vec::new(),
        };
        let number = self.next;
        self.next += 1;
        self.entries.insert(key, Entry::Done { results: results.into(), at_ns: now_ns, number });
        self.add(number, key, results.len());
        (self.count, self.bytes) = (self.count + 1, self.bytes + results.len());
        self.shrink();
        waiters
    }

    /// Adds a finished call to those of its client.
    fn add(&mut self, number: u64, key: Key, bytes: usize) {
        let client = network(key.client);
        self.finished.push_back((number, client));
        let replies = self.clients.entry(client).or_default();
        self.by_size.remove(&(replies.size(self.limits), client));
        replies.calls.push_back((number, key));
        replies.bytes += bytes;
        self.by_size.insert((replies.size(self.limits), client));
    }

    /// Removes a call without results (a fault of its connection, or a handler that panicked);
    /// returns the repeats that wait for it.
    pub fn abandon(&mut self, key: &Key) -> Vec<W> {
        match self.entries.remove(key) {
            Some(Entry::InProgress(waiters)) => waiters,
            Some(done @ Entry::Done { .. }) => {
                self.entries.insert(*key, done);
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// Forgets a call that was noted and has not begun, unless a repeat of it waits; whether it is
    /// forgotten.
    pub fn withdraw(&mut self, key: &Key) -> bool {
        match self.entries.get(key) {
            Some(Entry::InProgress(waiters)) if waiters.is_empty() => {
                self.entries.remove(key);
                true
            }
            _ => false,
        }
    }

    fn expire(&mut self, now_ns: u64) {
        while let Some((number, client)) = self.finished.front().copied() {
            let oldest = self.clients.get(&client).and_then(|replies| replies.calls.front());
            let is_left = oldest.filter(|(oldest, _)| *oldest == number).map(|(_, key)| *key);
            if let Some(key) = is_left {
                let at_ns = match self.entries.get(&key) {
                    Some(Entry::Done { at_ns, .. }) => *at_ns,
                    _ => 0,
                };
                if now_ns.saturating_sub(at_ns) < self.limits.age_ns {
                    return;
                }
                self.forget(&key);
            }
            self.finished.pop_front();
        }
    }

    /// Forgets calls that are too many: the oldest of the client with most, so that one client does
    /// not push out the results of others.
    fn shrink(&mut self) {
        while self.count > self.limits.entries || self.bytes > self.limits.bytes {
            let Some((_, most)) = self.by_size.last().copied() else { return };
            let oldest = self.clients.get(&most).and_then(|replies| replies.calls.front());
            let Some((_, key)) = oldest.copied() else { return };
            self.forget(&key);
        }
        // Numbers of forgotten calls are no more than those of others.
        if self.finished.len() > 2 * self.count.max(NUMBERS_MIN) {
            let clients = &self.clients;
            let is_left = |(number, client): &(u64, IpAddr)| {
                clients.get(client).is_some_and(|replies| replies.find(*number).is_some())
            };
            self.finished.retain(is_left);
        }
    }

    /// Forgets a finished call.
    fn forget(&mut self, key: &Key) {
        let Some(Entry::Done { results, number, .. }) = self.entries.remove(key) else { return };
        (self.count, self.bytes) = (self.count - 1, self.bytes - results.len());
        let client = network(key.client);
        let Some(replies) = self.clients.get_mut(&client) else { return };
        self.by_size.remove(&(replies.size(self.limits), client));
        // The oldest, but for a call that was finished again.
        if let Some(at) = replies.find(number) {
            replies.calls.remove(at);
        }
        replies.bytes -= results.len();
        if replies.calls.is_empty() {
            self.clients.remove(&client);
        } else {
            self.by_size.insert((replies.size(self.limits), client));
        }
    }
}

/// The cache of a service: tables with a lock each, so that cores seldom meet.
pub struct ReplayCache<W> {
    shards: Vec<OrderedMutex<ReplayTable<W>>>,
}

impl<W> ReplayCache<W> {
    /// An empty cache; `limits` are those of each of its parts.
    pub fn new(limits: ReplayLimits) -> Self {
        let table = || OrderedMutex::new(ranks::REPLAY_CACHE, ReplayTable::new(limits));
        Self { shards: std::iter::repeat_with(table).take(REPLAY_SHARDS).collect() }
    }

    /// The table that holds `key`.
    pub fn of(&self, key: &Key) -> OrderedGuard<'_, ReplayTable<W>> {
        let index = (key.checksum ^ u64::from(key.xid)) as usize % self.shards.len();
        self.shards[index].lock()
    }

    /// Calls remembered.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests;
