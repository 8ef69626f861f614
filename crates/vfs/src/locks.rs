//! The one table of opens, byte-range locks and leases, for all protocols.
//!
//! It is pure: no clock, no files, no protocol. A file is a [`FileKey`], a holder an [`Owner`].
//! Nothing in it waits: who must wait leaves a continuation ([`LockTable::lock_or_wait`]), who
//! meets a delegation is told to come again ([`Refused::Recalling`]) after its holder has been
//! notified. Continuations and notices run on the thread that caused them, after the table's locks
//! were let go; they must be short.
//!
//! Opens with a deny mode bind those who open (NFSv4, SMB, NLM's SHARE) and, through
//! [`LockTable::io_denied`], NFSv4's special stateids. NFSv3 has no OPEN: what it reads and writes
//! is not bound by deny modes, as on every server. What is done to names is bound in all protocols
//! ([`names`]), and every change recalls delegations ([`leases`]), because [`crate::share`] wraps
//! each share in both checks. `docs/protocols/locks.md` has the whole rule.
//!
//! The table is cut into parts with a lock each. Whether there is any lease at all is one atomic
//! number, so a share without delegations pays for none.
//!
//! [`kinds`]: words; [`ranges`]: locks of a file; [`leases`]: delegations and what recalls them;
//! [`names`]: opens that keep the names of files; [`waits`]: blocking locks; [`admin`]: looking at
//! it and clearing up; [`grace`]: whether there is one that all protocols must keep to;
//! [`exclusive`]: files that no share shows.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use base::limits::{
    LOCK_CHANGING_SLOTS, LOCK_SHARDS, LOCKS_MAX, LOCKS_PER_FILE_MAX, OPENS_MAX, OPENS_PER_FILE_MAX,
    RECALL_PATIENCE,
};
use base::lock_order::{OrderedGuard, OrderedMutex, ranks};

pub mod admin;
pub mod exclusive;
mod file;
pub mod grace;
pub mod kinds;
pub mod leases;
pub mod names;
pub mod ranges;
pub mod waits;

pub use admin::{LockCounts, Row, Tally, What};
pub use exclusive::ExclusiveFiles;
pub use kinds::{
    ClientKey, FileKey, HeldRange, Kind, LeaseKind, Owner, Protocol, Range, Recall, Refused,
    SHARE_DELETE, SHARE_READ, SHARE_WRITE, Share, WaitId, Waited, Woken,
};
pub use leases::{ByClient, Changing};
pub use names::ByOwners;

use file::FileLocks;

type Files = HashMap<FileKey, FileLocks>;

/// Opens, locks and leases of all files.
pub struct LockTable {
    shards: Box<[OrderedMutex<Files>]>,
    /// Changes under way, by a hash of the handle; see [`leases`].
    changing: Box<[leases::Slot]>,
    names_changing: AtomicU64,
    counts: Counts,
    waits: waits::Waits,
    /// Protocols whose clients may reclaim now, a bit each; see [`grace`].
    grace: AtomicU32,
    /// Within what time a delegation that is called back is given back or taken away.
    recall_limit_ns: AtomicU64,
    /// Files that no share shows.
    exclusive: Arc<ExclusiveFiles>,
}

/// How much there is of each.
#[derive(Default)]
struct Counts {
    opens: AtomicU64,
    /// Opens that keep the names of their files.
    name_keepers: AtomicU64,
    locks: AtomicU64,
    waiting: AtomicU64,
    leases: AtomicU64,
    write_leases: AtomicU64,
    recalls: AtomicU64,
    waited: AtomicU64,
    denied: AtomicU64,
}

impl Default for LockTable {
    fn default() -> Self {
        Self {
            shards: (0..LOCK_SHARDS)
                .map(|_| OrderedMutex::new(ranks::LOCK_TABLE, Files::default()))
                .collect(),
            changing: (0..LOCK_CHANGING_SLOTS).map(|_| leases::Slot::default()).collect(),
            names_changing: AtomicU64::new(0),
            counts: Counts::default(),
            waits: waits::Waits::default(),
            grace: AtomicU32::new(0),
            recall_limit_ns: AtomicU64::new(0),
            exclusive: Arc::default(),
        }
    }
}

/// The file's locks after a change: forgotten if there are none left.
fn tidy(files: &mut Files, key: FileKey) {
    if files.get(&key).is_some_and(FileLocks::is_empty) {
        files.remove(&key);
    }
}

impl LockTable {
    fn shard(&self, key: FileKey) -> OrderedGuard<'_, Files> {
        let mixed = (key.fsid ^ key.fileid).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.shards[mixed as usize % self.shards.len()].lock()
    }

    /// Files that no share over this table shows: those of logical units.
    pub fn exclusive(&self) -> &Arc<ExclusiveFiles> {
        &self.exclusive
    }

    /// Holders of delegations have so long to give one back before it is taken away.
    pub fn set_recall_limit(&self, limit: Duration) {
        self.recall_limit_ns.store(limit.as_nanos() as u64, Ordering::Relaxed);
    }

    /// How long somebody should wait who meets a delegation and cannot ask again later: until after
    /// it is taken away from a holder who is gone.
    pub fn recall_patience(&self) -> Duration {
        Duration::from_nanos(self.recall_limit_ns.load(Ordering::Relaxed)) + RECALL_PATIENCE
    }

    // --- opens --------------------------------------------------------------------------------

    /// Opens a file for an owner; what it has open already is added to. Gives what it has now.
    ///
    /// # Errors
    /// [`Refused::Shared`] if another owner's open is in the way; [`Refused::Recalling`] while
    /// another client's delegation is; [`Refused::Full`].
    pub fn open(&self, key: FileKey, owner: &Owner, want: Share) -> Result<Share, Refused> {
        let mut files = self.shard(key);
        let file = files.entry(key).or_default();
        let outcome = self.open_in(file, owner, want);
        let only_write = want.access & SHARE_WRITE == 0 && want.deny & SHARE_READ == 0;
        let (outcome, notices) = match outcome {
            Err(refused) => (Err(refused), Vec::new()),
            Ok(share) => match file.recall(Some(owner.client), only_write) {
                (true, notices) => (Err(Refused::Recalling), notices),
                (false, _) => {
                    self.count_keeper(owner, file.share_of(owner), Some(share));
                    match file.opens.iter_mut().find(|(who, _)| who == owner) {
                        Some((_, had)) => *had = share,
                        None => {
                            file.opens.push((owner.clone(), share));
                            self.counts.opens.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    (Ok(share), Vec::new())
                }
            },
        };
        tidy(&mut files, key);
        drop(files);
        if matches!(outcome, Err(Refused::Shared(_))) {
            self.counts.denied.fetch_add(1, Ordering::Relaxed);
        }
        self.notify(key, notices);
        outcome
    }

    fn open_in(&self, file: &FileLocks, owner: &Owner, want: Share) -> Result<Share, Refused> {
        if let Some(other) = file.share_conflict(Some(owner), want) {
            return Err(Refused::Shared(other.clone()));
        }
        match file.share_of(owner) {
            Some(had) => Ok(had.union(want)),
            None if file.opens.len() >= OPENS_PER_FILE_MAX => Err(Refused::Full),
            None if self.counts.opens.load(Ordering::Relaxed) >= OPENS_MAX => Err(Refused::Full),
            None => Ok(want),
        }
    }

    /// Leaves an owner with less than it has open.
    ///
    /// # Errors
    /// [`Refused::NotHeld`] if it does not have all of that open.
    pub fn downgrade(&self, key: FileKey, owner: &Owner, to: Share) -> Result<(), Refused> {
        let mut files = self.shard(key);
        let open = files.get_mut(&key).and_then(|f| f.opens.iter_mut().find(|o| o.0 == *owner));
        match open {
            Some((_, had)) if had.covers(to) => {
                self.count_keeper(owner, Some(*had), Some(to));
                *had = to;
            }
            _ => return Err(Refused::NotHeld),
        }
        Ok(())
    }

    /// Ends an owner's open; tells what it was. Locks stay: which owners' go with an open is the
    /// protocol's to say.
    pub fn close(&self, key: FileKey, owner: &Owner) -> Option<Share> {
        let mut files = self.shard(key);
        let file = files.get_mut(&key)?;
        let at = file.opens.iter().position(|(who, _)| who == owner)?;
        let (_, share) = file.opens.swap_remove(at);
        self.counts.opens.fetch_sub(1, Ordering::Relaxed);
        self.count_keeper(owner, Some(share), None);
        tidy(&mut files, key);
        Some(share)
    }

    /// What an owner has open.
    pub fn share_of(&self, key: FileKey, owner: &Owner) -> Option<Share> {
        self.shard(key).get(&key)?.share_of(owner)
    }

    /// Whether anybody has the file open for writing.
    pub fn is_written(&self, key: FileKey) -> bool {
        self.shard(key).get(&key).is_some_and(FileLocks::is_written)
    }

    /// Another owner whose open would be in the way of one like this.
    pub fn open_denied(&self, key: FileKey, owner: &Owner, want: Share) -> Option<Owner> {
        self.shard(key).get(&key)?.share_conflict(Some(owner), want).cloned()
    }

    /// An owner (other than `owner`) whose deny mode forbids `access`: NFS4ERR_LOCKED for I/O with
    /// a special stateid (RFC 8881 §8.2.3).
    pub fn io_denied(&self, key: FileKey, owner: Option<&Owner>, access: u8) -> Option<Owner> {
        let want = Share { access, deny: 0 };
        self.shard(key).get(&key)?.share_conflict(owner, want).cloned()
    }

    // --- byte ranges --------------------------------------------------------------------------

    /// Locks bytes, or says who is in the way. An owner's own locks are replaced, split and merged.
    ///
    /// # Errors
    /// [`Refused::Locked`], [`Refused::Full`].
    pub fn lock(
        &self,
        key: FileKey,
        owner: &Owner,
        range: Range,
        kind: Kind,
    ) -> Result<(), Refused> {
        let mut files = self.shard(key);
        let file = files.entry(key).or_default();
        let outcome = match file.ranges.conflict(owner, range, kind) {
            Some(held) => Err(Refused::Locked(held.clone())),
            None => self.set(file, owner, range, Some(kind)),
        };
        // A lock that became a reader's lets others in.
        let woken = if outcome.is_ok() { self.wake(file) } else { Vec::new() };
        tidy(&mut files, key);
        drop(files);
        if matches!(outcome, Err(Refused::Locked(_))) {
            self.counts.denied.fetch_add(1, Ordering::Relaxed);
        }
        self.run(woken, Waited::Granted);
        outcome
    }

    /// Who would be in the way of a lock.
    pub fn test(&self, key: FileKey, owner: &Owner, range: Range, kind: Kind) -> Option<HeldRange> {
        self.shard(key).get(&key)?.ranges.conflict(owner, range, kind).cloned()
    }

    /// Unlocks bytes; those that are not locked are no mistake.
    ///
    /// # Errors
    /// [`Refused::Full`] if a lock would have to be split and there is no room for both halves.
    pub fn unlock(&self, key: FileKey, owner: &Owner, range: Range) -> Result<(), Refused> {
        let mut files = self.shard(key);
        let Some(file) = files.get_mut(&key) else { return Ok(()) };
        let outcome = self.set(file, owner, range, None);
        let woken = self.wake(file);
        tidy(&mut files, key);
        drop(files);
        self.run(woken, Waited::Granted);
        outcome
    }

    /// Unlocks bytes exactly as they were locked, where locks stack; false if there is no such
    /// lock.
    pub fn unlock_exact(&self, key: FileKey, owner: &Owner, range: Range) -> bool {
        let mut files = self.shard(key);
        let Some(file) = files.get_mut(&key) else { return false };
        let before = file.ranges.len();
        let was_held = file.ranges.take_exact(owner, range);
        self.count_locks(before, file.ranges.len());
        let woken = if was_held { self.wake(file) } else { Vec::new() };
        tidy(&mut files, key);
        drop(files);
        self.run(woken, Waited::Granted);
        was_held
    }

    /// Whether a lock is in the way of reading or writing, where locks are mandatory (SMB): costs
    /// one atomic load while nobody holds any lock.
    pub fn io_locked(&self, key: FileKey, owner: &Owner, range: Range, writes: bool) -> bool {
        if self.counts.locks.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let forbids = |file: &FileLocks| file.ranges.forbids_io(owner, range, writes).is_some();
        let locked = self.shard(key).get(&key).is_some_and(forbids);
        if locked {
            self.counts.denied.fetch_add(1, Ordering::Relaxed);
        }
        locked
    }

    /// Whether an owner holds any lock on a file (NFS4ERR_LOCKS_HELD).
    pub fn has_locks(&self, key: FileKey, owner: &Owner) -> bool {
        self.shard(key).get(&key).is_some_and(|file| file.ranges.holds_any(owner))
    }

    /// Changes an owner's locks within the limits, and keeps count.
    fn set(
        &self,
        file: &mut FileLocks,
        owner: &Owner,
        range: Range,
        kind: Option<Kind>,
    ) -> Result<(), Refused> {
        let before = file.ranges.len();
        // One call adds two at most: the lock, and the second half of one that it splits.
        let full = before + 2 > LOCKS_PER_FILE_MAX
            || self.counts.locks.load(Ordering::Relaxed) + 2 > LOCKS_MAX;
        let splits = || {
            let inside =
                |held: &HeldRange| held.range.start < range.start && held.range.end > range.end;
            file.ranges.iter().any(|held| held.owner == *owner && inside(held))
        };
        if full && (kind.is_some() || splits()) {
            return Err(Refused::Full);
        }
        file.ranges.set(owner, range, kind);
        self.count_locks(before, file.ranges.len());
        Ok(())
    }

    fn count_locks(&self, before: usize, after: usize) {
        let locks = &self.counts.locks;
        if after >= before {
            locks.fetch_add((after - before) as u64, Ordering::Relaxed);
        } else {
            locks.fetch_sub((before - after) as u64, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
