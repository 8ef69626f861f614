//! Leases: delegations of NFSv4, leases and oplocks of SMB, and their recalls and breaks, of all
//! rights or a part.
//!
//! A lease is a set of rights to cache ([`Caching`]), of a holder; leases of SMB are shared by all
//! opens with the same key. One table ([`Trigger`]) defines what an operation breaks of the leases
//! of others, and whether it waits for that.
//!
//! An operation that is about to change a file announces it ([`LockTable::changing`], one atomic
//! addition), and only if there is a lease in the same slot checks whether one conflicts. A lease
//! is granted only if no change of that file is in progress: it counts itself first and looks for
//! changes then, a change does so in the opposite order, so one of the two sees the other.
//!
//! Changes are announced by a number of the file that its handle has
//! ([`crate::fs::FileSystem::change_slot`]): the inode number would cost a look at the file.
//!
//! `breaks`: breaks, their acknowledgements and waiters; `grant`; `outcomes`: statistics of breaks;
//! [`triggers`]: the table.

use core::net::IpAddr;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use base::clock::monotonic_ns;
use base::limits::LEASE_WRITE_ECHO;

use super::acting::ByClient;
use super::continuation::call;
use super::file::{FileLocks, Lease, LeaseState, Notices, Style};
use super::parts::Counted;
use super::{
    Caching, ClientKey, FileKey, Kind, LockTable, Looked, Owner, Recall, Refused, Unflushed, tidy,
};

mod breaks;
mod grant;
mod outcomes;
pub mod triggers;

pub(super) use breaks::By;
pub use breaks::{AckRefused, take_blocked};
pub use grant::{Granted, LeaseRequest};
pub(super) use outcomes::BreakCounts;
pub use outcomes::{BREAK_KINDS, BreakCount, BreakOutcome, CachingTally};
pub use triggers::Trigger;

/// Leases of the files of one number.
#[derive(Default)]
pub(super) struct Leased {
    all: AtomicU32,
    /// Those that permit caching of writes.
    writers: AtomicU32,
}

/// Changes of the files of one number, on a separate cache line.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct Slot {
    /// Changes in progress.
    changes: AtomicU64,
    /// When a file with one of those was changed last through this server.
    written_ns: AtomicU64,
}

impl Slot {
    /// Whether a change is in progress.
    fn in_progress(&self) -> bool {
        self.changes.load(Ordering::SeqCst) > 0
    }
}

/// A change in progress; ends when it is dropped, which must be after the change was made.
pub struct Changing<'a>(&'a AtomicU64);

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How a thread uses files, for leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// By opens that have met the leases, or as they are on disk.
    Opened,
    /// For the holder of a lease for writing: there is no other lease.
    Exclusive,
    /// Without opens (NFS): holders of leases for writing must write their data before it reads.
    Fresh,
}

thread_local! {
    static USE: Cell<Use> = const { Cell::new(Use::Opened) };
}

/// While it lives, this thread uses files in another way than by opens.
pub struct Using(Use);

impl Using {
    /// It changes a file for the holder of a lease for writing: the only lease, which is not looked
    /// for.
    pub fn exclusive() -> Self {
        Self(USE.replace(Use::Exclusive))
    }

    /// It reads data and attributes without opens, as NFS does.
    pub fn fresh() -> Self {
        Self(USE.replace(Use::Fresh))
    }

    /// Whether it is the holder of the only lease.
    pub fn is_exclusive() -> bool {
        USE.get() == Use::Exclusive
    }

    /// Whether it must see unflushed data of others.
    pub fn is_fresh() -> bool {
        USE.get() == Use::Fresh
    }
}

impl Drop for Using {
    fn drop(&mut self) {
        USE.set(self.0);
    }
}

impl LockTable {
    fn slot(&self, slot: u64) -> &Slot {
        &self.changing[slot as usize % self.changing.len()]
    }

    fn leased(&self, slot: u64) -> &Leased {
        &self.leased[slot as usize % self.leased.len()]
    }

    /// Announces a change of data or attributes of a file.
    #[inline]
    pub fn changing(&self, slot: u64) -> Changing<'_> {
        let (slot, leased) = (self.slot(slot), self.leased(slot));
        slot.changes.fetch_add(1, Ordering::SeqCst);
        if leased.writers.load(Ordering::Relaxed) > 0 {
            slot.written_ns.store(monotonic_ns(), Ordering::Relaxed);
        }
        Changing(&slot.changes)
    }

    /// The back end has seen that a file was changed: delegations are recalled. Writes of the
    /// holder of a delegation for writing are seen, too, a moment later.
    pub fn changed_on_host(&self, key: FileKey) {
        if !self.has_leases() || self.is_own_echo(key) {
            return;
        }
        // This does not break leases of SMB: writes of their holders are reported, too.
        let _ = self.passes(key, None, Trigger::Attributes);
    }

    fn is_own_echo(&self, key: FileKey) -> bool {
        if !self.has_write_leases() {
            return false;
        }
        let files = self.shard(key);
        let writer = files.get(&key).and_then(FileLocks::writer);
        let Some(slot) = writer.map(|lease| self.slot(lease.slot)) else { return false };
        let since = monotonic_ns().saturating_sub(slot.written_ns.load(Ordering::Relaxed));
        slot.in_progress() || since < LEASE_WRITE_ECHO.as_nanos() as u64
    }

    /// Whether no other client has a lease under which it may have locked bytes, in a way that
    /// conflicts with this one, without the server's knowledge; if one has, it is recalled.
    pub fn may_test(&self, key: FileKey, client: ClientKey, kind: Kind) -> bool {
        !self.has_leases() || self.passes(key, Some(client), Trigger::of_test(kind))
    }

    /// The attributes for a client that reads them without an open: as stored, or as the holder of
    /// a lease for writing has them. The holder is queried; if it does not reply in time, the lease
    /// is recalled. New attributes stay new for a caller that may not block.
    ///
    /// # Errors
    /// The holder has not replied, or not returned the lease.
    pub fn look(&self, key: FileKey, may_block: bool) -> Result<Option<Unflushed>, Refused> {
        let client = ByClient::now();
        let files = self.shard(key);
        // Leases on other files have the same slot.
        let Some(file) = files.get(&key) else { return Ok(None) };
        let others = file.writer().filter(|lease| client != Some(lease.owner.client));
        let notice = others
            .filter(|lease| lease.style == Style::Delegation && !lease.is_breaking())
            .map(Lease::notifier);
        drop(files);
        match notice.map(|notice| notice.look(may_block)) {
            Some(Looked::Reported(unflushed)) => Ok(Some(unflushed)),
            Some(Looked::Pending) => Err(Refused::Recalling),
            Some(Looked::Unknown) | None => match self.passes(key, client, Trigger::Look) {
                true => Ok(None),
                false => Err(Refused::Recalling),
            },
        }
    }

    /// Announces a change of names, of whatever files.
    #[inline]
    pub fn names_changing(&self) -> Changing<'_> {
        self.names_changing.fetch_add(1, Ordering::SeqCst);
        Changing(&self.names_changing)
    }

    /// Whether there is any lease: only then [`Self::may`] can refuse.
    #[inline]
    pub fn has_leases(&self) -> bool {
        self.counts.leases.load(Ordering::SeqCst) > 0
    }

    /// Whether there is any lease on the files of a slot.
    #[inline]
    pub fn is_leased(&self, slot: u64) -> bool {
        self.leased(slot).all.load(Ordering::SeqCst) > 0
    }

    /// Whether there is any lease for writing: only then a read can meet one.
    #[inline]
    pub fn has_write_leases(&self) -> bool {
        self.counts.write_leases.load(Ordering::Relaxed) > 0
    }

    /// Whether there is any lease for writing on the files of a slot.
    #[inline]
    pub fn is_written_back(&self, slot: u64) -> bool {
        self.leased(slot).writers.load(Ordering::SeqCst) > 0
    }

    /// Whether no other client's lease conflicts with a change; those that do are recalled.
    pub fn may_change(&self, key: FileKey, by: Option<ClientKey>) -> bool {
        !self.has_leases() || self.passes(key, by, Trigger::Write)
    }

    /// Whether no other client has a lease for writing; if one has, it is recalled.
    pub fn may_read(&self, key: FileKey, by: Option<ClientKey>) -> bool {
        !self.has_write_leases() || self.passes(key, by, Trigger::Read)
    }

    /// Notifies holders; no lock of the table may be held.
    pub(super) fn notify(&self, key: FileKey, notices: Notices) {
        for (owner, notice, what) in notices {
            call(|| notice.recall(key, &owner, what));
        }
    }

    /// Leases of the clients of an address ([`base::peer::network`]).
    pub fn leases_at(&self, address: IpAddr) -> u64 {
        self.parts.at(address, Counted::Lease)
    }

    /// It does not count any more.
    fn uncount_lease(&self, lease: &mut Lease) {
        lease.caching = Caching::NONE;
        self.recount(lease);
    }

    /// Counts the rights that a lease gives its holder now. An empty one does not count: an open
    /// that was refused a lease uses nothing of the limits.
    fn recount(&self, lease: &mut Lease) {
        let leased = self.leased(lease.slot);
        let now = (!lease.caching.is_none(), lease.caching.has(Caching::WRITE));
        let before = std::mem::replace(&mut lease.counted, now);
        lease.shown.store(lease.caching.bits() as u8, Ordering::SeqCst);
        match (before.0, now.0) {
            (false, true) => {
                self.parts.add(&lease.owner, Counted::Lease, 1);
                self.counts.leases.fetch_add(1, Ordering::SeqCst);
                leased.all.fetch_add(1, Ordering::SeqCst);
            }
            (true, false) => {
                self.parts.remove(&lease.owner, Counted::Lease, 1);
                self.counts.leases.fetch_sub(1, Ordering::SeqCst);
                leased.all.fetch_sub(1, Ordering::SeqCst);
            }
            _ => {}
        }
        match (before.1, now.1) {
            (false, true) => {
                leased.writers.fetch_add(1, Ordering::SeqCst);
                self.counts.write_leases.fetch_add(1, Ordering::SeqCst);
            }
            (true, false) => {
                leased.writers.fetch_sub(1, Ordering::SeqCst);
                self.counts.write_leases.fetch_sub(1, Ordering::SeqCst);
            }
            _ => {}
        }
    }

    /// Ends a lease: returned, or revoked. False if there was none.
    pub fn end_lease(&self, key: FileKey, owner: &Owner) -> bool {
        let mut files = self.shard(key);
        let Some(file) = files.get_mut(&key) else { return false };
        let Some(at) = file.leases.iter().position(|lease| lease.owner == *owner) else {
            return false;
        };
        let mut lease = file.leases.swap_remove(at);
        let woken = file.take_released();
        self.uncount_lease(&mut lease);
        tidy(&mut files, key);
        drop(files);
        woken.into_iter().for_each(|(_, released)| call(released));
        true
    }

    /// An owner's lease, and whether it has been recalled.
    pub fn lease_of(&self, key: FileKey, owner: &Owner) -> Option<(Caching, bool)> {
        let files = self.shard(key);
        let lease = files.get(&key)?.leases.iter().find(|lease| lease.owner == *owner)?;
        Some((lease.caching, lease.is_breaking()))
    }

    /// Whether a client of SMB caches handles of a file: it can be requested to close those that no
    /// program uses.
    pub fn caches_handles(&self, key: FileKey) -> bool {
        let caches = |lease: &Lease| lease.caching.has(Caching::HANDLE);
        self.has_leases()
            && self.shard(key).get(&key).is_some_and(|file| file.leases.iter().any(caches))
    }

    /// Recalls every delegation of a client, as when its callback path is gone.
    pub fn recall_client(&self, client: ClientKey) {
        for shard in &self.shards {
            let mut all = Vec::new();
            for (key, file) in shard.lock().iter_mut() {
                for lease in file.leases.iter_mut().filter(|lease| lease.owner.client == client) {
                    if let Some(what) = lease.take(Caching::READ, u64::MAX) {
                        self.counts.recalls.fetch_add(1, Ordering::Relaxed);
                        all.push((*key, lease.owner.clone(), Arc::clone(&lease.notice), what));
                    }
                }
            }
            for (key, owner, notice, what) in all {
                self.notify(key, vec![(owner, notice, what)]);
            }
        }
    }

    /// After the end of opens and owners of a file: leases without any open end.
    pub(super) fn clear_leases(
        &self,
        leases: &mut Vec<Lease>,
        ends: &dyn Fn(&Owner) -> bool,
    ) -> bool {
        let mut any = false;
        leases.retain_mut(|lease| {
            let before = lease.opens.len();
            lease.opens.retain(|(open, _)| !ends(open));
            if let Some((_, notice)) = lease.opens.first() {
                lease.notice = Arc::clone(notice);
            }
            let is_left = before > 0 && lease.opens.is_empty();
            if !is_left && !ends(&lease.owner) {
                return true;
            }
            let took_ns = lease.breaking_ns(monotonic_ns());
            self.count_break(lease.style, BreakOutcome::Closed, took_ns);
            self.uncount_lease(lease);
            any = true;
            false
        });
        any
    }
}

/// A lease as the opens that share it see it, without a lock.
#[derive(Debug, Clone, Default)]
pub struct LeaseView(Arc<AtomicU8>);

impl LeaseView {
    /// What its holder may cache now.
    pub fn caching(&self) -> Caching {
        Caching::of_bits(self.0.load(Ordering::SeqCst).into())
    }
}

impl Lease {
    /// A lease of nothing.
    pub(super) fn new(owner: Owner, style: Style, slot: u64, notice: Arc<dyn Recall>) -> Self {
        let (caching, state, epoch) = (Caching::NONE, LeaseState::Granted, 0);
        let (opens, counted, shown) = (Vec::new(), (false, false), Arc::default());
        Self { owner, style, caching, state, epoch, opens, slot, counted, shown, notice }
    }
}

#[cfg(test)]
mod tests;
