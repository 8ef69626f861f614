//! Blocking locks: a request that must wait leaves a continuation, and no thread waits.
//!
//! Requests are served in turn: one waits behind an earlier one that it conflicts
//! with, so that a stream of readers does not shut out a writer. A request that would close a
//! circle of waiting is refused.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use base::limits::{LOCK_DEADLOCK_DEPTH, LOCK_WAITERS_MAX, LOCK_WAITERS_PER_FILE_MAX};
use base::lock_order::{OrderedMutex, ranks};

use super::continuation::call;
use super::file::{FileLocks, Waiter};
use super::grace::GraceRequest;
use super::parts::Counted;
use super::{
    FileKey, HeldRange, Kind, LockTable, Owner, Protocol, Range, Refused, Trigger, WaitId, Waited,
    Woken, tidy,
};

/// What a request that may wait came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockOutcome {
    /// The lock is held; the continuation was dropped.
    Granted,
    /// It waits, for this lock among others; the continuation will be called.
    Waiting(WaitId, HeldRange),
}

/// Which owner waits for which, over all files.
pub(super) struct Waits {
    next: AtomicU64,
    /// Waiting owner → the owner of the first conflicting lock.
    edges: OrderedMutex<HashMap<Owner, Owner>>,
}

impl Default for Waits {
    fn default() -> Self {
        let edges = OrderedMutex::new(ranks::LOCK_WAITS, HashMap::new());
        Self { next: AtomicU64::new(0), edges }
    }
}

impl Waits {
    /// The number of another request that waits.
    pub(super) fn number(&self) -> WaitId {
        self.next.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether `blocker` waits, over others, for `owner`.
    fn would_deadlock(&self, owner: &Owner, blocker: &Owner) -> bool {
        let edges = self.edges.lock();
        let mut at = blocker;
        for _ in 0..LOCK_DEADLOCK_DEPTH {
            if at == owner {
                return true;
            }
            let Some(next) = edges.get(at) else { return false };
            at = next;
        }
        false
    }
}

impl LockTable {
    /// Locks bytes, now or when it is its turn. The same request (owner, bytes and kind) that
    /// waits already is not queued twice: a retransmitted one gets the same result, and its first
    /// continuation stays. SMB has no rule like this, and none for circles: each of its requests
    /// waits separately, until it is cancelled.
    ///
    /// # Errors
    /// [`Refused::Grace`], [`Refused::Deadlock`], [`Refused::Full`]; [`Refused::Recalling`] as
    /// [`LockTable::lock`].
    pub fn lock_or_wait(
        &self,
        key: FileKey,
        owner: &Owner,
        range: Range,
        kind: Kind,
        woken: Woken,
    ) -> Result<LockOutcome, Refused> {
        if self.waits_for_grace(owner.client.protocol, GraceRequest::Range) {
            return Err(Refused::Grace);
        }
        let mut files = self.shard(key);
        let file = files.entry(key).or_default();
        let asks_again = owner.client.protocol != Protocol::Smb;
        let same =
            |w: &&Waiter| asks_again && w.owner == *owner && w.range == range && w.kind == kind;
        let (mut others, mut notices) = (Vec::new(), Vec::new());
        let outcome = match file.in_the_way(owner, range, kind) {
            None => {
                let (outcome, taken) = self.set_free(file, owner, range, kind);
                notices = taken;
                if outcome.is_ok() {
                    others = self.wake(file);
                }
                outcome.map(|()| LockOutcome::Granted)
            }
            Some(held) => match file.waiting.iter().find(same) {
                Some(there) => Ok(LockOutcome::Waiting(there.id, held)),
                None => {
                    // Before it waits: it gets the lock from a thread that cannot wait for leases.
                    let met = self.meet_range(file, owner, Trigger::of_test(kind));
                    notices = met.notices;
                    match met.waits {
                        true => Err(Refused::Recalling),
                        false => self.queue(file, owner, range, kind, held, woken),
                    }
                }
            },
        };
        tidy(&mut files, key);
        drop(files);
        self.notify(key, notices);
        self.run(others, Waited::Granted);
        outcome
    }

    fn queue(
        &self,
        file: &mut FileLocks,
        owner: &Owner,
        range: Range,
        kind: Kind,
        held: HeldRange,
        woken: Woken,
    ) -> Result<LockOutcome, Refused> {
        let finds_circles = owner.client.protocol != Protocol::Smb;
        if finds_circles && self.waits.would_deadlock(owner, &held.owner) {
            return Err(Refused::Deadlock);
        }
        let limits = (LOCK_WAITERS_PER_FILE_MAX as u64, LOCK_WAITERS_MAX);
        let in_file = file.waiting.iter().map(|waiter| (&waiter.owner, 1));
        let there = file.waiting.len();
        self.has_room(owner, Counted::Waiting, 1, limits, (there, in_file))?;
        let id = self.waits.number();
        self.waits.edges.lock().insert(owner.clone(), held.owner.clone());
        file.waiting.push_back(Waiter { id, owner: owner.clone(), range, kind, woken });
        self.counts.waiting.fetch_add(1, Ordering::Relaxed);
        self.parts.add(owner, Counted::Waiting, 1);
        self.counts.waited.fetch_add(1, Ordering::Relaxed);
        Ok(LockOutcome::Waiting(id, held))
    }

    /// Ends the waiting of an owner for these bytes (NLM CANCEL); false if it does not wait: the
    /// lock may have been granted meanwhile.
    pub fn cancel(&self, key: FileKey, owner: &Owner, range: Range, kind: Kind) -> bool {
        self.cancel_where(key, |w| w.owner == *owner && w.range == range && w.kind == kind) > 0
    }

    /// The same by the number.
    pub fn cancel_id(&self, key: FileKey, id: WaitId) -> bool {
        self.cancel_where(key, |w| w.id == id) > 0
    }

    fn cancel_where(&self, key: FileKey, which: impl Fn(&Waiter) -> bool) -> usize {
        let mut files = self.shard(key);
        let Some(file) = files.get_mut(&key) else { return 0 };
        let gone = take(file, which);
        // A request may have waited only behind these.
        let woken = self.wake(file);
        tidy(&mut files, key);
        drop(files);
        let count = gone.len();
        self.stop_waiting(&gone);
        self.run(gone, Waited::Cancelled);
        self.run(woken, Waited::Granted);
        count
    }

    /// Grants locks to the next requests; [`Self::run`] is to be called without the shard's lock.
    pub(super) fn wake(&self, file: &mut FileLocks) -> Vec<Waiter> {
        if file.waiting.is_empty() {
            return Vec::new();
        }
        let granted = |owner: &Owner, before, after| self.count_locks(owner, before, after);
        let mut waits = Vec::new();
        // The others may be waiting for another owner now. SMB has no detection of deadlocks.
        let still = |owner: &Owner, blocker: &Owner| {
            if owner.client.protocol != Protocol::Smb {
                waits.push((owner.clone(), blocker.clone()));
            }
        };
        let woken = file.wake(granted, still);
        self.stop_waiting(&woken);
        if !waits.is_empty() {
            self.waits.edges.lock().extend(waits);
        }
        woken
    }

    /// Counts requests that wait no more, and removes their edges.
    pub(super) fn stop_waiting(&self, gone: &[Waiter]) {
        if gone.is_empty() {
            return;
        }
        self.counts.waiting.fetch_sub(gone.len() as u64, Ordering::Relaxed);
        gone.iter().for_each(|waiter| self.parts.remove(&waiter.owner, Counted::Waiting, 1));
        let mut edges = self.waits.edges.lock();
        gone.iter().for_each(|waiter| drop(edges.remove(&waiter.owner)));
    }

    /// Runs continuations; no lock of the table may be held.
    pub(super) fn run(&self, waiters: Vec<Waiter>, how: Waited) {
        waiters.into_iter().for_each(|waiter| call(|| (waiter.woken)(how)));
    }
}

/// Removes the waiting requests that match.
pub(super) fn take(file: &mut FileLocks, which: impl Fn(&Waiter) -> bool) -> Vec<Waiter> {
    let (gone, still) = std::mem::take(&mut file.waiting).into_iter().partition(which);
    file.waiting = still;
    Vec::from(gone)
}
