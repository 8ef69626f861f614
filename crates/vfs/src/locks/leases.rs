//! Delegations, and what makes their holders return them.
//!
//! An operation that is about to change a file announces it ([`LockTable::changing`], one atomic
//! addition), and only if there is any lease at all asks whether one is in the way. A lease is
//! granted only if no change of that file is in progress: it counts itself first and looks for
//! changes then, a change the other way round, so one of the two sees the other.
//!
//! Changes are announced by handle, because the inode number would cost a look at the file. A file
//! with several names may have several handles; no lease is granted on one (the caller passes what
//! it knows of the file).

use core::net::IpAddr;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::limits::{LEASES_MAX, LEASES_PER_FILE_MAX};
use probe::op::FileId;

use super::file::{Lease, Notices};
use super::parts::Counted;
use super::{ClientKey, FileKey, LeaseKind, LockTable, Owner, Recall, Refused, tidy};
use crate::attr::Attr;

/// A counter on a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct Slot(AtomicU64);

/// A change in progress; ends when it is dropped, which must be after the change was made.
pub struct Changing<'a>(&'a AtomicU64);

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

thread_local! {
    static BY: Cell<Option<ClientKey>> = const { Cell::new(None) };
}

/// While it lives, what this thread does to files is done for this client, and does not recall its
/// own delegations. Operations are synchronous, so this holds for exactly them.
pub struct ByClient(Option<ClientKey>);

impl ByClient {
    /// Acts for `client`.
    pub fn acting(client: ClientKey) -> Self {
        Self(BY.replace(Some(client)))
    }

    /// The client for which this thread acts.
    pub fn now() -> Option<ClientKey> {
        BY.get()
    }
}

impl Drop for ByClient {
    fn drop(&mut self) {
        BY.set(self.0);
    }
}

impl LockTable {
    fn slot(&self, file: FileId) -> &AtomicU64 {
        // Ids come from a keyed hash.
        &self.changing[(file >> 8) as usize % self.changing.len()].0
    }

    /// Announces a change of data or attributes of a file.
    #[inline]
    pub fn changing(&self, file: FileId) -> Changing<'_> {
        let slot = self.slot(file);
        slot.fetch_add(1, Ordering::SeqCst);
        Changing(slot)
    }

    /// Announces a change of names, of whatever files.
    #[inline]
    pub fn names_changing(&self) -> Changing<'_> {
        self.names_changing.fetch_add(1, Ordering::SeqCst);
        Changing(&self.names_changing)
    }

    /// Whether there is any lease: only then [`Self::may_change`] has anything to say.
    #[inline]
    pub fn has_leases(&self) -> bool {
        self.counts.leases.load(Ordering::SeqCst) > 0
    }

    /// Whether there is any lease for writing: only then [`Self::may_read`] has anything to say.
    #[inline]
    pub fn has_write_leases(&self) -> bool {
        self.counts.write_leases.load(Ordering::SeqCst) > 0
    }

    /// Whether no other client's lease is in the way of a change; those that are get recalled.
    pub fn may_change(&self, key: FileKey, by: Option<ClientKey>) -> bool {
        !self.has_leases() || self.free_of_leases(key, by, false)
    }

    /// Whether no other client keeps back what it has written; if it does, it is recalled.
    pub fn may_read(&self, key: FileKey, by: Option<ClientKey>) -> bool {
        !self.has_write_leases() || self.free_of_leases(key, by, true)
    }

    fn free_of_leases(&self, key: FileKey, by: Option<ClientKey>, only_write: bool) -> bool {
        let mut files = self.shard(key);
        let Some(file) = files.get_mut(&key) else { return true };
        let (any, notices) = file.recall(by, only_write);
        drop(files);
        self.notify(key, notices);
        !any
    }

    /// Notifies holders; no lock of the table may be held.
    pub(super) fn notify(&self, key: FileKey, notices: Notices) {
        self.counts.recalls.fetch_add(notices.len() as u64, Ordering::Relaxed);
        notices.into_iter().for_each(|(owner, notice)| notice.recall(key, &owner));
    }

    /// Grants a lease on the file `file` with the attributes `attr`. For reading: the file is not
    /// open for writing. For writing: no other client has it open at all.
    ///
    /// # Errors
    /// [`Refused::NoLease`] if it is not available now, [`Refused::Full`].
    pub fn grant(
        &self,
        file: FileId,
        attr: &Attr,
        owner: &Owner,
        kind: LeaseKind,
        notice: Arc<dyn Recall>,
    ) -> Result<(), Refused> {
        let key = FileKey::from(attr);
        if attr.nlink > 1 {
            return Err(Refused::NoLease);
        }
        // Counted first, looked second: see above.
        self.count_lease(owner, kind, true);
        let outcome = self.grant_counted(file, key, owner, kind, notice);
        if outcome.is_err() {
            self.count_lease(owner, kind, false);
        }
        outcome
    }

    fn grant_counted(
        &self,
        file: FileId,
        key: FileKey,
        owner: &Owner,
        kind: LeaseKind,
        notice: Arc<dyn Recall>,
    ) -> Result<(), Refused> {
        let mut files = self.shard(key);
        let locks = files.entry(key).or_default();
        let others = |other: &Owner| other.client != owner.client;
        let clash = match kind {
            LeaseKind::Read => locks.is_written(),
            LeaseKind::Write => locks.opens.iter().any(|(who, _)| others(who)),
        };
        let met = locks.leases.iter().any(|lease| {
            let exclusive = kind == LeaseKind::Write || lease.kind == LeaseKind::Write;
            lease.recalled || lease.owner == *owner || (exclusive && others(&lease.owner))
        });
        // A change that is announced after this look waits for the lock of this part, and then
        // finds the lease.
        let in_file = locks.leases.iter().map(|lease| (&lease.owner, 1));
        let limits = (LEASES_PER_FILE_MAX as u64, LEASES_MAX);
        // It is counted already.
        let has_room =
            self.has_room(owner, Counted::Lease, 0, limits, (locks.leases.len() + 1, in_file));
        let full = has_room.is_err();
        let busy = self.slot(file).load(Ordering::SeqCst) > 0
            || self.names_changing.load(Ordering::SeqCst) > 0;
        let outcome = match (clash || met || busy, full) {
            (true, _) => Err(Refused::NoLease),
            (false, true) => Err(Refused::Full),
            (false, false) => {
                locks.leases.push(Lease { owner: owner.clone(), kind, recalled: false, notice });
                Ok(())
            }
        };
        tidy(&mut files, key);
        outcome
    }

    /// Leases of the clients of an address ([`base::peer::network`]).
    pub fn leases_at(&self, address: IpAddr) -> u64 {
        self.parts.at(address, Counted::Lease)
    }

    fn count_lease(&self, owner: &Owner, kind: LeaseKind, more: bool) {
        match more {
            true => self.parts.add(owner, Counted::Lease, 1),
            false => self.parts.remove(owner, Counted::Lease, 1),
        }
        let add = |count: &AtomicU64| {
            if more {
                count.fetch_add(1, Ordering::SeqCst);
            } else {
                count.fetch_sub(1, Ordering::SeqCst);
            }
        };
        add(&self.counts.leases);
        if kind == LeaseKind::Write {
            add(&self.counts.write_leases);
        }
    }

    /// Ends a lease: returned, or revoked. False if there was none.
    pub fn end_lease(&self, key: FileKey, owner: &Owner) -> bool {
        let mut files = self.shard(key);
        let Some(file) = files.get_mut(&key) else { return false };
        let Some(at) = file.leases.iter().position(|lease| lease.owner == *owner) else {
            return false;
        };
        let lease = file.leases.swap_remove(at);
        tidy(&mut files, key);
        drop(files);
        self.count_lease(&lease.owner, lease.kind, false);
        true
    }

    /// An owner's lease, and whether it has been recalled.
    pub fn lease_of(&self, key: FileKey, owner: &Owner) -> Option<(LeaseKind, bool)> {
        let files = self.shard(key);
        let lease = files.get(&key)?.leases.iter().find(|lease| lease.owner == *owner)?;
        Some((lease.kind, lease.recalled))
    }

    /// Recalls every lease of a client, as when its callback path is gone.
    pub fn recall_client(&self, client: ClientKey) {
        for shard in &self.shards {
            let mut all = Vec::new();
            for (key, file) in shard.lock().iter_mut() {
                for lease in &mut file.leases {
                    if lease.owner.client == client && !std::mem::replace(&mut lease.recalled, true)
                    {
                        all.push((*key, lease.owner.clone(), Arc::clone(&lease.notice)));
                    }
                }
            }
            for (key, owner, notice) in all {
                self.notify(key, vec![(owner, notice)]);
            }
        }
    }

    pub(super) fn uncount_leases(&self, gone: &[Lease]) {
        gone.iter().for_each(|lease| self.count_lease(&lease.owner, lease.kind, false));
    }
}
