//! Looking at the table, and clearing up after an owner or a client that is gone.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

use super::continuation::call;
use super::file::FileLocks;
use super::waits::take;
use super::{Caching, ClientKey, FileKey, Kind, LockTable, Owner, Protocol, Range, Share, Waited};

/// How much there is, for statistics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LockCounts {
    /// Opens.
    pub opens: u64,
    /// Byte-range locks.
    pub locks: u64,
    /// Requests that wait.
    pub waiting: u64,
    /// Leases.
    pub leases: u64,
    /// Recalls sent since the start.
    pub recalls: u64,
    /// Requests that had to wait, since the start.
    pub waited: u64,
    /// Leases taken from holders that did not answer in time, since the start.
    pub revoked: u64,
    /// Opens and locks refused because of another owner's, since the start.
    pub denied: u64,
}

/// One thing that is held or waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// On which file.
    pub key: FileKey,
    /// Its owner.
    pub owner: Owner,
    /// What.
    pub what: What,
}

/// How much one client holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Opens.
    pub opens: u64,
    /// Byte-range locks for reading.
    pub read_locks: u64,
    /// Byte-range locks for writing.
    pub write_locks: u64,
    /// Requests that wait for a lock.
    pub waiting: u64,
    /// Leases (delegations).
    pub leases: u64,
}

impl Tally {
    fn add(&mut self, what: &What) {
        let count = match what {
            What::Open(_) => &mut self.opens,
            What::Lock(_, Kind::Read) => &mut self.read_locks,
            What::Lock(_, Kind::Write) => &mut self.write_locks,
            What::Wait(..) => &mut self.waiting,
            What::Lease(..) => &mut self.leases,
        };
        *count += 1;
    }

    /// Byte-range locks of both kinds.
    pub const fn locks(&self) -> u64 {
        self.read_locks + self.write_locks
    }
}

/// What is held or waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// An open.
    Open(Share),
    /// A byte-range lock.
    Lock(Range, Kind),
    /// A request for one.
    Wait(Range, Kind),
    /// A lease, and whether it is being recalled.
    Lease(Caching, bool),
}

impl LockTable {
    /// How much there is.
    pub fn counts(&self) -> LockCounts {
        let c = &self.counts;
        LockCounts {
            opens: c.opens.load(Ordering::Relaxed),
            locks: c.locks.load(Ordering::Relaxed),
            waiting: c.waiting.load(Ordering::Relaxed),
            leases: c.leases.load(Ordering::Relaxed),
            recalls: c.recalls.load(Ordering::Relaxed),
            waited: c.waited.load(Ordering::Relaxed),
            revoked: c.revoked.load(Ordering::Relaxed),
            denied: c.denied.load(Ordering::Relaxed),
        }
    }

    /// What a client, or all, hold: at most `max` rows, one part of the table at a time.
    pub fn list(&self, client: Option<ClientKey>, max: usize) -> Vec<Row> {
        self.find(&|owner, _| client.is_none_or(|c| c == owner.client), max)
    }

    /// The rows that `wanted` accepts, as [`Self::list`].
    pub fn find(&self, wanted: &dyn Fn(&Owner, &What) -> bool, max: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        for shard in &self.shards {
            for (key, file) in shard.lock().iter() {
                each_of(file, &mut |owner, what| {
                    if rows.len() < max && wanted(owner, &what) {
                        rows.push(Row { key: *key, owner: owner.clone(), what });
                    }
                });
            }
            if rows.len() >= max {
                break;
            }
        }
        rows
    }

    /// The clients of a protocol that hold anything or wait for it. Looks through the whole table.
    pub fn clients(&self, protocol: Protocol) -> HashSet<ClientKey> {
        let all = self.tally().into_keys();
        all.filter(|client| client.protocol == protocol).collect()
    }

    /// Whether a client holds anything on a file, or waits for it.
    pub fn concerns_client(&self, key: FileKey, client: ClientKey) -> bool {
        let whose = |owner: &Owner| owner.client == client;
        self.shard(key).get(&key).is_some_and(|file| concerns(file, &whose))
    }

    /// Byte ranges that an owner has locked in a file.
    pub fn ranges_of(&self, key: FileKey, owner: &Owner) -> Vec<(Range, Kind)> {
        let files = self.shard(key);
        files.get(&key).map_or_else(Vec::new, |file| file.ranges.of(owner).collect())
    }

    /// How much each client holds. Looks through the whole table, one part at a time.
    pub fn tally(&self) -> HashMap<ClientKey, Tally> {
        let mut tally = HashMap::<ClientKey, Tally>::new();
        for shard in &self.shards {
            for file in shard.lock().values() {
                each_of(file, &mut |owner, what| tally.entry(owner.client).or_default().add(&what));
            }
        }
        tally
    }

    /// Takes an owner's locks on one file, and its waiting for them (NLM FREE_ALL, CLOSE,
    /// RELEASE_LOCKOWNER); opens and leases stay.
    pub fn unlock_all(&self, key: FileKey, owner: &Owner) {
        self.clear_file(key, &|who| who == owner, false);
    }

    /// Takes everything from an owner on one file: open, locks, waiting, lease.
    pub fn release(&self, key: FileKey, owner: &Owner) {
        self.clear_file(key, &|who| who == owner, true);
    }

    /// Takes everything from a client on one file.
    pub fn release_on(&self, key: FileKey, client: ClientKey) {
        self.clear_file(key, &|who| who.client == client, true);
    }

    /// Takes everything from a client that is gone. Looks through the whole table.
    pub fn release_client(&self, client: ClientKey) {
        self.clear(&|owner| owner.client == client, true);
    }

    /// Takes all locks of an owner, on whatever files. Looks through the whole table.
    pub fn release_locks(&self, owner: &Owner) {
        self.clear(&|who| who == owner, false);
    }

    fn clear(&self, whose: &dyn Fn(&Owner) -> bool, all: bool) {
        for shard in &self.shards {
            let keys: Vec<_> = {
                let files = shard.lock();
                let touched = files.iter().filter(|(_, file)| concerns(file, whose));
                touched.map(|(key, _)| *key).collect()
            };
            keys.into_iter().for_each(|key| self.clear_file(key, whose, all));
        }
    }

    fn clear_file(&self, key: FileKey, whose: &dyn Fn(&Owner) -> bool, all: bool) {
        let mut files = self.shard(key);
        let Some(file) = files.get_mut(&key) else { return };
        let cancelled = take(file, |waiter| whose(&waiter.owner));
        for (owner, count) in file.ranges.release(whose) {
            self.count_locks(&owner, count, 0);
        }
        if all {
            file.opens.retain(|(owner, share)| {
                let goes = whose(owner);
                if goes {
                    self.count_keeper(owner, Some(*share), None);
                    self.count_open(owner, false);
                }
                !goes
            });
            self.clear_leases(&mut file.leases, whose);
        }
        let released = if all { file.take_released() } else { Vec::new() };
        let woken = self.wake(file);
        super::tidy(&mut files, key);
        drop(files);
        self.stop_waiting(&cancelled);
        self.run(cancelled, Waited::Cancelled);
        self.run(woken, Waited::Granted);
        released.into_iter().for_each(|(_, released)| call(released));
    }
}

/// Whether a file has anything of these owners.
fn concerns(file: &FileLocks, whose: &dyn Fn(&Owner) -> bool) -> bool {
    file.opens.iter().any(|(owner, _)| whose(owner))
        || file.ranges.owners().any(|(owner, _)| whose(owner))
        || file.waiting.iter().any(|waiter| whose(&waiter.owner))
        || file
            .leases
            .iter()
            .any(|one| whose(&one.owner) || one.opens.iter().any(|(open, _)| whose(open)))
}

fn each_of(file: &FileLocks, each: &mut dyn FnMut(&Owner, What)) {
    file.opens.iter().for_each(|(owner, share)| each(owner, What::Open(*share)));
    file.ranges.iter().for_each(|held| each(&held.owner, What::Lock(held.range, held.kind)));
    file.waiting.iter().for_each(|w| each(&w.owner, What::Wait(w.range, w.kind)));
    file.leases.iter().for_each(|l| each(&l.owner, What::Lease(l.caching, l.is_breaking())));
}
