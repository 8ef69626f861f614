//! The table of opens, byte-range locks and leases, for all protocols.
//!
//! It is pure: no clock, no files, no protocol. A file is a [`FileKey`], a holder an [`Owner`].
//! Nothing in it waits: a request that must wait leaves a continuation
//! ([`LockTable::lock_or_wait`]), one that conflicts with a delegation is refused
//! ([`Refused::Recalling`]) after its holder has been notified. Continuations and notices run on
//! the thread that caused them, after the table's locks have been released; they must be short.
//!
//! Opens with a deny mode bind other opens (NFSv4, SMB, NLM's SHARE) and, through
//! [`LockTable::io_denied`], NFSv4's special stateids. NFSv3 has no OPEN: its reads and writes are
//! not bound by deny modes, as on every server. Changes of names are bound in all protocols
//! ([`names`]), and every change recalls delegations ([`leases`]), because [`crate::share`] wraps
//! each share in both checks. `docs/protocols/locks.md` has all rules.
//!
//! The table is split into shards with a lock each. Whether there is any lease at all is one atomic
//! number, so a share without delegations has no cost for them.
//!
//! [`kinds`]: types; [`ranges`]: locks of a file; [`leases`]: delegations and what recalls them;
//! [`names`]: opens that keep the names of files; [`waits`]: blocking locks; [`continuation`]:
//! calls of continuations; [`admin`]: view and removal by an administrator; [`grace`]: requests
//! that wait for the end of the grace period, in all protocols; [`links`]: names by which files are
//! open, and which of them are to be removed; [`parts`]: what one client and one address take of
//! the limits; [`exclusive`]: files that no share shows.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::limits::{
    LEASE_BREAK_TIME, LOCK_CHANGING_SLOTS, LOCK_LEASED_SLOTS, LOCK_SHARDS, LOCKS_MAX,
    LOCKS_PER_FILE_MAX, OPENS_MAX, OPENS_PER_FILE_MAX, RECALL_PATIENCE,
};
use base::lock_order::{OrderedGuard, OrderedMutex, ranks};

mod acting;
pub mod admin;
pub mod continuation;
pub mod exclusive;
mod file;
pub mod grace;
pub mod kinds;
pub mod leases;
pub mod links;
pub mod names;
pub mod parts;
pub mod ranges;
pub mod waits;

pub use acting::{ByClient, ByOwners};
pub use admin::{LockCounts, Row, Tally, What};
pub use exclusive::ExclusiveFiles;
pub use grace::GraceRequest;
pub use kinds::{
    Break, Caching, ClientKey, FileKey, HeldRange, Kind, Looked, Owner, Protocol, Range, Recall,
    Refused, Released, SHARE_DELETE, SHARE_READ, SHARE_WRITE, Share, Unflushed, WaitId, Waited,
    Woken,
};
pub use leases::{
    AckRefused, BREAK_KINDS, BreakCount, BreakOutcome, CachingTally, Changing, Granted,
    LeaseRequest, LeaseView, Trigger, Using,
};
pub use links::{LinkId, LinkRefused, Location, OpenName};

use crate::notice::DirectoryNotices;

use file::{FileLocks, Notices};
use leases::By;
use parts::{Counted, Limit, PartOf};

/// How a client of SMB opens a file.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenOptions<'a> {
    /// The lease that it requests, which does not conflict with it.
    pub lease: Option<&'a Owner>,
    /// It empties the file.
    pub overwrites: bool,
    /// Its close removes a name.
    pub removes: bool,
    /// It has waited already.
    pub again: bool,
    /// It requests no right but to read the security descriptor.
    pub looks: bool,
}

type Files = HashMap<FileKey, FileLocks>;

/// Opens, locks and leases of all files.
pub struct LockTable {
    shards: Box<[OrderedMutex<Files>]>,
    /// Changes in progress, by a hash of the handle; see [`leases`].
    changing: Box<[leases::Slot]>,
    /// Leases, by the same hash.
    leased: Box<[leases::Leased]>,
    names_changing: AtomicU64,
    counts: Counts,
    waits: waits::Waits,
    /// How much the clients of each address hold.
    parts: parts::LimitAccount,
    /// Names by which files are open.
    links: OrderedMutex<links::Links>,
    grace: grace::Grace,
    /// The time to return a recalled delegation, after which it is revoked.
    recall_limit_ns: AtomicU64,
    /// Files that no share shows.
    exclusive: Arc<ExclusiveFiles>,
    /// Clients that wait for changes of directories.
    notices: Arc<DirectoryNotices>,
}

/// The number of each.
#[derive(Default)]
struct Counts {
    opens: AtomicU64,
    /// Opens that keep the names of their files.
    name_keepers: AtomicU64,
    /// Names by which files are open.
    links: AtomicU64,
    locks: AtomicU64,
    waiting: AtomicU64,
    leases: AtomicU64,
    write_leases: AtomicU64,
    recalls: AtomicU64,
    revoked: AtomicU64,
    waited: AtomicU64,
    denied: AtomicU64,
    breaks: leases::BreakCounts,
}

impl Default for LockTable {
    fn default() -> Self {
        Self {
            shards: (0..LOCK_SHARDS)
                .map(|_| OrderedMutex::new(ranks::LOCK_TABLE, Files::default()))
                .collect(),
            changing: (0..LOCK_CHANGING_SLOTS).map(|_| leases::Slot::default()).collect(),
            leased: (0..LOCK_LEASED_SLOTS).map(|_| leases::Leased::default()).collect(),
            names_changing: AtomicU64::new(0),
            counts: Counts::default(),
            waits: waits::Waits::default(),
            parts: parts::LimitAccount::default(),
            links: OrderedMutex::new(ranks::LOCK_LINKS, links::Links::default()),
            grace: grace::Grace::default(),
            recall_limit_ns: AtomicU64::new(0),
            exclusive: Arc::default(),
            notices: Arc::default(),
        }
    }
}

/// The file's locks after a change: its entry is removed if there are none left.
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

    /// Clients that wait for changes of directories, over all shares.
    pub fn notices(&self) -> &Arc<DirectoryNotices> {
        &self.notices
    }

    /// The time for holders to return a recalled delegation before it is revoked.
    pub fn set_recall_limit(&self, limit: Duration) {
        self.recall_limit_ns.store(limit.as_nanos() as u64, Ordering::Relaxed);
    }

    /// How long an operation that conflicts with a delegation and cannot be retried should wait:
    /// until after it is revoked from a holder that is gone.
    pub fn recall_patience(&self) -> Duration {
        let limit = Duration::from_nanos(self.recall_limit_ns.load(Ordering::Relaxed));
        limit.max(LEASE_BREAK_TIME) + RECALL_PATIENCE
    }

    // --- opens --------------------------------------------------------------------------------

    /// Opens a file for an owner, in addition to what it has open already. Returns all that it has
    /// now.
    ///
    /// # Errors
    /// [`Refused::Grace`] during the grace period, by [`grace::waits`]; [`Refused::Shared`] if
    /// another owner's open conflicts; [`Refused::Recalling`] while another client's delegation
    /// does; [`Refused::Full`].
    pub fn open(&self, key: FileKey, owner: &Owner, want: Share) -> Result<Share, Refused> {
        if self.waits_for_grace(owner.client.protocol, GraceRequest::Open(want)) {
            return Err(Refused::Grace);
        }
        self.enter(key, owner, want, (false, OpenOptions::default()))
    }

    /// As [`Self::open`], also during the grace period: for opens that are reclaimed, were on disk,
    /// or are of a file that was created since. Opens for reading that were granted meanwhile do
    /// not conflict with it.
    ///
    /// # Errors
    /// As of [`Self::open`], but for the first.
    pub fn reopen(&self, key: FileKey, owner: &Owner, want: Share) -> Result<Share, Refused> {
        self.enter(key, owner, want, (self.in_grace(), OpenOptions::default()))
    }

    /// As [`Self::open`], or with `is_new` [`Self::reopen`], of a client of SMB.
    ///
    /// # Errors
    /// The same.
    pub fn open_smb(
        &self,
        key: FileKey,
        owner: &Owner,
        want: Share,
        (is_new, opening): (bool, OpenOptions<'_>),
    ) -> Result<Share, Refused> {
        if !is_new && self.waits_for_grace(owner.client.protocol, GraceRequest::Open(want)) {
            return Err(Refused::Grace);
        }
        self.enter(key, owner, want, (is_new && self.in_grace(), opening))
    }

    fn enter(
        &self,
        key: FileKey,
        owner: &Owner,
        want: Share,
        (reclaims, opening): (bool, OpenOptions<'_>),
    ) -> Result<Share, Refused> {
        let mut files = self.shard(key);
        let file = files.entry(key).or_default();
        let outcome = self.open_in((key, file), owner, want, reclaims);
        let trigger = match &outcome {
            Err(Refused::Shared(_)) => Some(Trigger::Conflict),
            Err(_) => None,
            Ok(_) if opening.overwrites => Some(Trigger::Overwrite),
            Ok(_) if want.access & SHARE_WRITE != 0 || want.deny & SHARE_READ != 0 => {
                Some(Trigger::OpenWrite)
            }
            Ok(_) => Some(Trigger::OpenRead),
        };
        let by = By { client: Some(owner.client), lease: opening.lease, looks: opening.looks };
        let removes = Some(Trigger::Name).filter(|_| opening.removes && outcome.is_ok());
        let (mut waits, mut notices) = (false, Vec::new());
        for trigger in trigger.into_iter().chain(removes) {
            let met = self.meet(file, by, trigger, opening.again);
            waits |= met.waits;
            notices.extend(met.notices);
        }
        let outcome = if waits { Err(Refused::Recalling) } else { outcome };
        // An open that reads the security descriptor denies nothing, and leases are granted in
        // addition to it, without writing.
        if let Ok(share) = outcome
            && (share != Share::default() || opening.looks)
        {
            self.count_keeper(owner, file.share_of(owner), Some(share));
            match file.opens.iter_mut().find(|(who, _)| who == owner) {
                Some((_, had)) => *had = share,
                None => {
                    file.opens.push((owner.clone(), share));
                    self.count_open(owner, true);
                }
            }
        }
        tidy(&mut files, key);
        drop(files);
        if matches!(outcome, Err(Refused::Shared(_))) {
            self.counts.denied.fetch_add(1, Ordering::Relaxed);
        }
        self.notify(key, notices);
        outcome
    }

    fn open_in(
        &self,
        (key, file): (FileKey, &FileLocks),
        owner: &Owner,
        want: Share,
        reclaims: bool,
    ) -> Result<Share, Refused> {
        let conflict = match reclaims {
            true => file.reclaim_conflict(owner, want),
            false => file.share_conflict(Some(owner), want),
        };
        if let Some(other) = conflict {
            return Err(Refused::Shared(other.clone()));
        }
        // What is to be removed keeps no name. Opens of the same protocol have met its share modes.
        let protocol = owner.client.protocol;
        if want.keeps_names(protocol)
            && let Some(other) = self.remover(key)
            && other.client.protocol != protocol
        {
            return Err(Refused::Shared(other));
        }
        if let Some(had) = file.share_of(owner) {
            return Ok(had.union(want));
        }
        let in_file = file.opens.iter().map(|(owner, _)| (owner, 1));
        let limits = (OPENS_PER_FILE_MAX as u64, OPENS_MAX);
        self.has_room(owner, Counted::Open, 1, limits, (file.opens.len(), in_file))?;
        Ok(want)
    }

    /// Whether an owner may have this many more of a kind: in one file, and in all.
    fn has_room<'a>(
        &self,
        owner: &Owner,
        what: Counted,
        more: u64,
        (in_file, in_all): (u64, u64),
        (there, held): (usize, impl Iterator<Item = (&'a Owner, usize)>),
    ) -> Result<(), Refused> {
        let of_all = match what {
            Counted::Open => &self.counts.opens,
            Counted::Lock => &self.counts.locks,
            Counted::Waiting => &self.counts.waiting,
            Counted::Lease => &self.counts.leases,
        };
        let all = Limit { most: in_all, used: of_all.load(Ordering::Relaxed) };
        let file = Limit { most: in_file, used: there as u64 };
        let full = |limit: Limit| limit.used.saturating_add(more) > limit.most;
        if full(all) || full(file) {
            return Err(Refused::Full);
        }
        let Some(address) = owner.address() else { return Ok(()) };
        if !all.is_ample(more) && !all.permits(self.parts.of(owner, what), more) {
            return Err(Refused::Full);
        }
        if file.is_ample(more) {
            return Ok(());
        }
        let mut own = PartOf::default();
        for (other, count) in held.filter(|(other, _)| other.address() == Some(address)) {
            own.address += count as u64;
            if other.client == owner.client {
                own.client += count as u64;
            }
        }
        if file.permits(own, more) { Ok(()) } else { Err(Refused::Full) }
    }

    fn count_open(&self, owner: &Owner, more: bool) {
        if more {
            self.counts.opens.fetch_add(1, Ordering::Relaxed);
            self.parts.add(owner, Counted::Open, 1);
        } else {
            self.counts.opens.fetch_sub(1, Ordering::Relaxed);
            self.parts.remove(owner, Counted::Open, 1);
        }
    }

    /// Reduces what an owner has open.
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

    /// Ends an owner's open and returns its share. Locks stay: the protocol decides which owners'
    /// end with an open.
    pub fn close(&self, key: FileKey, owner: &Owner) -> Option<Share> {
        let mut files = self.shard(key);
        let file = files.get_mut(&key)?;
        let at = file.opens.iter().position(|(who, _)| who == owner)?;
        let (owner, share) = file.opens.swap_remove(at);
        self.count_open(&owner, false);
        self.count_keeper(&owner, Some(share), None);
        // An open that waits for a lease may have conflicted with it.
        let released = file.take_released();
        tidy(&mut files, key);
        drop(files);
        released.into_iter().for_each(|(_, released)| continuation::call(released));
        Some(share)
    }

    /// What an owner has open.
    pub fn share_of(&self, key: FileKey, owner: &Owner) -> Option<Share> {
        self.shard(key).get(&key)?.share_of(owner)
    }

    /// Whether the file is open for writing.
    pub fn is_written(&self, key: FileKey) -> bool {
        self.shard(key).get(&key).is_some_and(FileLocks::is_written)
    }

    /// Another owner with an open that conflicts with one like this.
    pub fn open_denied(&self, key: FileKey, owner: &Owner, want: Share) -> Option<Owner> {
        self.shard(key).get(&key)?.share_conflict(Some(owner), want).cloned()
    }

    /// An owner (other than `owner`) with a deny mode that forbids `access`: NFS4ERR_LOCKED for I/O
    /// with a special stateid (RFC 8881 §8.2.3).
    pub fn io_denied(&self, key: FileKey, owner: Option<&Owner>, access: u8) -> Option<Owner> {
        let want = Share { access, deny: 0 };
        self.shard(key).get(&key)?.share_conflict(owner, want).cloned()
    }

    // --- byte ranges --------------------------------------------------------------------------

    /// Locks bytes, or returns the conflicting lock. An owner's own locks are replaced, split and
    /// merged.
    ///
    /// # Errors
    /// [`Refused::Grace`] during the grace period, [`Refused::Locked`], [`Refused::Full`];
    /// [`Refused::Recalling`] while another client has a lease under which it may have locked the
    /// bytes without the server's knowledge.
    pub fn lock(
        &self,
        key: FileKey,
        owner: &Owner,
        range: Range,
        kind: Kind,
    ) -> Result<(), Refused> {
        if self.waits_for_grace(owner.client.protocol, GraceRequest::Range) {
            return Err(Refused::Grace);
        }
        self.relock(key, owner, range, kind)
    }

    /// As [`Self::lock`], also during the grace period: what is reclaimed.
    ///
    /// # Errors
    /// As of [`Self::lock`], but for the first.
    pub fn relock(
        &self,
        key: FileKey,
        owner: &Owner,
        range: Range,
        kind: Kind,
    ) -> Result<(), Refused> {
        let mut files = self.shard(key);
        let file = files.entry(key).or_default();
        let (outcome, notices) = match file.ranges.conflict(owner, range, kind) {
            Some(held) => (Err(Refused::Locked(held.clone())), Vec::new()),
            None => self.set_free(file, owner, range, kind),
        };
        // A lock that became a reader's admits others.
        let woken = if outcome.is_ok() { self.wake(file) } else { Vec::new() };
        tidy(&mut files, key);
        drop(files);
        if matches!(outcome, Err(Refused::Locked(_))) {
            self.counts.denied.fetch_add(1, Ordering::Relaxed);
        }
        self.notify(key, notices);
        self.run(woken, Waited::Granted);
        outcome
    }

    /// Locks bytes that are free, unless they may be locked under a lease of another client. The
    /// leases are checked in the same step: one that is granted meanwhile would be missed.
    fn set_free(
        &self,
        file: &mut FileLocks,
        owner: &Owner,
        range: Range,
        kind: Kind,
    ) -> (Result<(), Refused>, Notices) {
        let met = self.meet_range(file, owner, Trigger::of_range(kind));
        let outcome = match met.waits {
            true => Err(Refused::Recalling),
            false => self.set(file, owner, range, Some(kind)),
        };
        (outcome, met.notices)
    }

    /// The lock that conflicts with another one.
    pub fn test(&self, key: FileKey, owner: &Owner, range: Range, kind: Kind) -> Option<HeldRange> {
        self.shard(key).get(&key)?.ranges.conflict(owner, range, kind).cloned()
    }

    /// Unlocks bytes; bytes that are not locked are no error.
    ///
    /// # Errors
    /// [`Refused::Full`] if a lock would have to be split and the limit does not permit both
    /// halves.
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
        self.unlock_one(key, owner, |ranges| ranges.take_exact(owner, range))
    }

    /// As [`Self::unlock_exact`], a lock of this kind only: what a request has locked that fails.
    pub fn unlock_exact_kind(&self, key: FileKey, owner: &Owner, range: Range, kind: Kind) -> bool {
        self.unlock_one(key, owner, |ranges| ranges.take_exact_kind(owner, range, kind))
    }

    fn unlock_one(
        &self,
        key: FileKey,
        owner: &Owner,
        take: impl FnOnce(&mut ranges::Ranges) -> bool,
    ) -> bool {
        let mut files = self.shard(key);
        let Some(file) = files.get_mut(&key) else { return false };
        let before = file.ranges.len();
        let was_held = take(&mut file.ranges);
        self.count_locks(owner, before, file.ranges.len());
        let woken = if was_held { self.wake(file) } else { Vec::new() };
        tidy(&mut files, key);
        drop(files);
        self.run(woken, Waited::Granted);
        was_held
    }

    /// Whether a lock conflicts with reading or writing, where locks are mandatory (SMB): costs one
    /// atomic load while no lock is held.
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

    /// Changes an owner's locks within the limits, and counts them.
    fn set(
        &self,
        file: &mut FileLocks,
        owner: &Owner,
        range: Range,
        kind: Option<Kind>,
    ) -> Result<(), Refused> {
        let before = file.ranges.len();
        if kind.is_some() || file.ranges.splits(owner, range) {
            // One call adds two at most: the lock, and the second half of one that it splits.
            let limits = (LOCKS_PER_FILE_MAX as u64, LOCKS_MAX);
            let held = file.ranges.owners();
            self.has_room(owner, Counted::Lock, 2, limits, (before, held))?;
        }
        file.ranges.set(owner, range, kind);
        self.count_locks(owner, before, file.ranges.len());
        Ok(())
    }

    /// Counts the locks of an owner, of which a file has `after` where it had `before`.
    fn count_locks(&self, owner: &Owner, before: usize, after: usize) {
        let locks = &self.counts.locks;
        if after >= before {
            let more = (after - before) as u64;
            locks.fetch_add(more, Ordering::Relaxed);
            self.parts.add(owner, Counted::Lock, more);
        } else {
            let less = (before - after) as u64;
            locks.fetch_sub(less, Ordering::Relaxed);
            self.parts.remove(owner, Counted::Lock, less);
        }
    }
}

#[cfg(test)]
mod tests;
