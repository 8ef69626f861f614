//! Opens and byte-range locks: the stateids of a client and the table of all protocols, changed
//! together.
//!
//! A client's stateids are locked during a request to the table, so that the two remain consistent;
//! the table never calls back into a client (it queues recalls). A conflicting lock may belong to a
//! client with an expired lease: then the stateids are unlocked, that client is removed, and the
//! request repeated.

use std::net::IpAddr;
use std::sync::Arc;

use vfs::fs::Retained;
use vfs::handle::Handle;
use vfs::locks::{FileKey, HeldRange, Kind, Owner, Protocol, Range, Refused, Share};
use vfs::share::tag_of;
use wire::nfs4::{Nfsstat4, Stateid4};

use super::clients::Client;
use super::{State, lock};

/// Clients that went away and that one request may end: each is in the way once.
const ENDED_MAX: usize = 16;

/// Why a lock is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockRefused {
    /// NFS4ERR_DENIED, by this one.
    Denied(HeldRange),
    /// Any other status.
    Status(Nfsstat4),
}

impl From<Nfsstat4> for LockRefused {
    fn from(status: Nfsstat4) -> Self {
        Self::Status(status)
    }
}

/// Where a lock goes.
#[derive(Debug, Clone)]
pub struct Locking {
    /// The lock owner.
    pub owner: Owner,
    /// The bytes.
    pub range: Range,
    /// Shared or exclusive.
    pub kind: Kind,
}

impl State {
    /// Removes the client with a conflicting lock if its lease has expired. False if the lease is
    /// valid, or the client is not one of NFSv4.
    pub fn evict_expired(&self, owner: &Owner, now_ns: u64) -> bool {
        if owner.client.protocol != Protocol::Nfs4 {
            return false;
        }
        match self.live.get(&owner.client.id) {
            Some(client) => self.is_lapsed(&client, now_ns) && self.expire(client.id),
            None => false,
        }
    }

    /// Opens a file for an owner.
    ///
    /// # Errors
    /// NFS4ERR_SHARE_DENIED, NFS4ERR_DELAY while a delegation is recalled, NFS4ERR_RESOURCE,
    /// NFS4ERR_EXPIRED.
    pub fn open(
        &self,
        client: &Arc<Client>,
        key: FileKey,
        owner: &Owner,
        share: Share,
        now_ns: u64,
    ) -> Result<Stateid4, Nfsstat4> {
        for _ in 0..ENDED_MAX {
            let conflicting = {
                let mut held = client.held.lock();
                held.room()?;
                // One's own open is no exception (RFC 7530 §9.9, RFC 8881 §9.7).
                if held.share_by(key, owner).is_some_and(|had| had.conflicts(share)) {
                    return Err(Nfsstat4::SHARE_DENIED);
                }
                // The grace period was checked before.
                match self.locks.reopen(key, owner, share) {
                    Ok(_) => return held.opened(key, owner, share),
                    Err(Refused::Shared(other)) => other,
                    Err(Refused::Recalling) => return Err(Nfsstat4::DELAY),
                    Err(Refused::Grace) => return Err(Nfsstat4::GRACE),
                    Err(_) => return Err(Nfsstat4::RESOURCE),
                }
            };
            if !self.evict_expired(&conflicting, now_ns) {
                return Err(Nfsstat4::SHARE_DENIED);
            }
        }
        Err(Nfsstat4::DELAY)
    }

    /// An open was made through the share that this handle is of; `retained` keeps its file usable
    /// until it ends.
    pub fn opened_through(
        &self,
        client: &Client,
        id: &Stateid4,
        handle: &Handle,
        retained: Option<Retained>,
    ) {
        client.held.lock().opened_through(id, tag_of(handle), retained);
    }

    /// Ends the opens, locks and delegations that clients have through the share with this tag,
    /// which is not served any more. Its handles lead nowhere, so no client can use or give back
    /// what they stood for. Gives how many opens and delegations there were.
    pub fn release_share(&self, tag: u32) -> (usize, usize) {
        let (mut opens, mut delegations) = (0, 0);
        for client in self.live.all() {
            // One at a time: the client's calls on other shares, and other clients of their core,
            // do not wait until thousands are done.
            let through = client.held.lock().opens_through(tag);
            for (number, key, owner) in through {
                let mut held = client.held.lock();
                // It may have been closed just now, or opened again through another share.
                if !held.is_open_through(number, tag) {
                    continue;
                }
                for lock_owner in held.closed(number) {
                    self.locks.unlock_all(key, &lock_owner);
                }
                self.locks.close(key, &owner);
                opens += 1;
            }
            let through = client.held.lock().delegs_through(tag);
            for deleg in through {
                let mut held = client.held.lock();
                // It may have been returned just now, or its client may have ended.
                if held.undelegate(&deleg.stateid) {
                    self.end_delegation(&client, &deleg);
                    delegations += 1;
                }
            }
        }
        (opens, delegations)
    }

    /// Addresses of the clients that have something through the share with this tag, as far as they
    /// are known.
    pub fn holders(&self, tag: u32) -> Vec<IpAddr> {
        let holds = |client: &Arc<Client>| {
            let held = client.held.lock();
            !held.opens_through(tag).is_empty() || !held.delegs_through(tag).is_empty()
        };
        let clients = self.live.all().into_iter().filter(holds);
        clients.filter_map(|client| lock(&client.seen).latest()).collect()
    }

    /// OPEN_DOWNGRADE (RFC 8881 §18.18).
    ///
    /// # Errors
    /// Those of the stateid; NFS4ERR_INVAL if `to` is no union of what it was opened with.
    pub fn downgrade(
        &self,
        client: &Client,
        id: &Stateid4,
        to: Share,
        on: FileKey,
    ) -> Result<Stateid4, Nfsstat4> {
        let mut held = client.held.lock();
        let (number, entry, _) = held.find_open(id, client.name.0)?;
        if entry.key != on {
            return Err(Nfsstat4::BAD_STATEID);
        }
        let (key, owner) = (entry.key, entry.owner.clone());
        held.may_downgrade(number, to)?;
        self.locks.downgrade(key, &owner, to).map_err(|_| Nfsstat4::INVAL)?;
        Ok(held.downgraded(number, to))
    }

    /// OPEN_CONFIRM (RFC 7530 §16.18).
    ///
    /// # Errors
    /// Those of the stateid.
    pub fn open_confirm(
        &self,
        client: &Client,
        id: &Stateid4,
        key: FileKey,
    ) -> Result<Stateid4, Nfsstat4> {
        let mut held = client.held.lock();
        let (number, entry, _) = held.find_open(id, client.name.0)?;
        if entry.key != key {
            return Err(Nfsstat4::BAD_STATEID);
        }
        Ok(held.confirmed(number))
    }

    /// The owner of a stateid, or the one until its last CLOSE, of any version.
    ///
    /// # Errors
    /// NFS4ERR_BAD_STATEID.
    pub fn owner_of(&self, client: &Client, id: &Stateid4) -> Result<Owner, Nfsstat4> {
        client.held.lock().owner_of(id)
    }

    /// The file that a stateid is about.
    ///
    /// # Errors
    /// Those of the stateid.
    pub fn file_of(&self, client: &Client, id: &Stateid4) -> Result<FileKey, Nfsstat4> {
        Ok(client.held.lock().find(id, client.name.0)?.1.key)
    }

    /// TEST_STATEID (RFC 8881 §18.48).
    pub fn test_stateid(&self, client: &Client, id: &Stateid4) -> Nfsstat4 {
        match client.held.lock().find(id, true) {
            _ if id.is_special() => Nfsstat4::BAD_STATEID,
            Ok(_) => Nfsstat4::OK,
            Err(status) => status,
        }
    }

    /// CLOSE (RFC 8881 §18.2): the owner's locks under the open end with it.
    ///
    /// # Errors
    /// Those of the stateid.
    pub fn close(&self, client: &Client, id: &Stateid4, key: FileKey) -> Result<(), Nfsstat4> {
        let mut held = client.held.lock();
        let (number, entry, _) = held.find_open(id, client.name.0)?;
        if entry.key != key {
            return Err(Nfsstat4::BAD_STATEID);
        }
        let owner = entry.owner.clone();
        for lock_owner in held.closed(number) {
            self.locks.unlock_all(key, &lock_owner);
        }
        self.locks.close(key, &owner);
        Ok(())
    }

    /// LOCK under an open (RFC 8881 §18.10): `open` is the open's stateid for a new lock owner.
    ///
    /// # Errors
    /// Denied by another's lock; those of the stateid; NFS4ERR_OPENMODE, NFS4ERR_RESOURCE.
    pub fn lock_new(
        &self,
        client: &Arc<Client>,
        open: &Stateid4,
        key: FileKey,
        want: &Locking,
        now_ns: u64,
    ) -> Result<Stateid4, LockRefused> {
        self.locking(client, now_ns, |held| {
            let (number, entry, _) = held.find_open(open, client.name.0)?;
            let (share_key, share) = held.share_of(open, client.name.0)?;
            if entry.key != key || share_key != key {
                return Err(Nfsstat4::BAD_STATEID.into());
            }
            held.room()?;
            allows(share, want.kind)?;
            self.table_lock(key, want)?;
            Ok(held.locked(number, key, &want.owner)?)
        })
    }

    /// LOCK by an owner that has a lock stateid.
    ///
    /// # Errors
    /// As [`Self::lock_new`].
    pub fn lock_more(
        &self,
        client: &Arc<Client>,
        id: &Stateid4,
        key: FileKey,
        range: Range,
        kind: Kind,
        now_ns: u64,
    ) -> Result<Stateid4, LockRefused> {
        self.locking(client, now_ns, |held| {
            let (number, entry) = held.find_lock(id, client.name.0)?;
            if entry.key != key {
                return Err(Nfsstat4::BAD_STATEID.into());
            }
            let want = Locking { owner: entry.owner.clone(), range, kind };
            allows(held.share_of(id, client.name.0)?.1, kind)?;
            self.table_lock(key, &want)?;
            Ok(held.relocked(number))
        })
    }

    fn table_lock(&self, key: FileKey, want: &Locking) -> Result<(), LockRefused> {
        // The grace period was checked before.
        match self.locks.relock(key, &want.owner, want.range, want.kind) {
            Ok(()) => Ok(()),
            Err(Refused::Locked(held)) => Err(LockRefused::Denied(held)),
            Err(Refused::Recalling) => Err(Nfsstat4::DELAY.into()),
            Err(Refused::Grace) => Err(Nfsstat4::GRACE.into()),
            Err(_) => Err(Nfsstat4::RESOURCE.into()),
        }
    }

    /// Tries a lock until no client with an expired lease conflicts.
    fn locking(
        &self,
        client: &Client,
        now_ns: u64,
        mut attempt: impl FnMut(&mut super::ClientStates) -> Result<Stateid4, LockRefused>,
    ) -> Result<Stateid4, LockRefused> {
        for _ in 0..ENDED_MAX {
            let outcome = attempt(&mut client.held.lock());
            match outcome {
                Err(LockRefused::Denied(held)) if self.evict_expired(&held.owner, now_ns) => {}
                other => return other,
            }
        }
        Err(Nfsstat4::DELAY.into())
    }

    /// LOCKT (RFC 8881 §18.11): the conflicting lock, if any.
    pub fn lock_test(&self, key: FileKey, want: &Locking, now_ns: u64) -> Option<HeldRange> {
        for _ in 0..ENDED_MAX {
            let held = self.locks.test(key, &want.owner, want.range, want.kind)?;
            if !self.evict_expired(&held.owner, now_ns) {
                return Some(held);
            }
        }
        self.locks.test(key, &want.owner, want.range, want.kind)
    }

    /// LOCKU (RFC 8881 §18.12).
    ///
    /// # Errors
    /// Those of the stateid; NFS4ERR_RESOURCE.
    pub fn unlock(
        &self,
        client: &Client,
        id: &Stateid4,
        key: FileKey,
        range: Range,
    ) -> Result<Stateid4, Nfsstat4> {
        let mut held = client.held.lock();
        let (number, entry) = held.find_lock(id, client.name.0)?;
        if entry.key != key {
            return Err(Nfsstat4::BAD_STATEID);
        }
        let owner = entry.owner.clone();
        self.locks.unlock(key, &owner, range).map_err(|_| Nfsstat4::RESOURCE)?;
        Ok(held.relocked(number))
    }

    /// FREE_STATEID (RFC 8881 §18.38).
    ///
    /// # Errors
    /// NFS4ERR_BAD_STATEID, NFS4ERR_OLD_STATEID, NFS4ERR_LOCKS_HELD.
    pub fn free_stateid(&self, client: &Client, id: &Stateid4) -> Result<(), Nfsstat4> {
        let mut held = client.held.lock();
        match held.find_lock(id, true) {
            Ok((_, entry)) if self.locks.has_locks(entry.key, &entry.owner) => {
                Err(Nfsstat4::LOCKS_HELD)
            }
            Ok((number, _)) => {
                held.freed(number);
                Ok(())
            }
            Err(status @ (Nfsstat4::ADMIN_REVOKED | Nfsstat4::DELEG_REVOKED)) => {
                held.freed(super::stateids::parts(id).2);
                if status == Nfsstat4::DELEG_REVOKED {
                    client.way_back.count_revoked(false);
                }
                Ok(())
            }
            // An open is in use for as long as it is open, a delegation until it is returned.
            Err(_) if held.find_open(id, true).is_ok() => Err(Nfsstat4::LOCKS_HELD),
            Err(_) if held.find_deleg(id, true).is_ok() => Err(Nfsstat4::LOCKS_HELD),
            Err(status) => Err(status),
        }
    }

    /// RELEASE_LOCKOWNER (RFC 7530 §16.37).
    ///
    /// # Errors
    /// NFS4ERR_LOCKS_HELD.
    pub fn release_lockowner(&self, client: &Client, owner: &Owner) -> Result<(), Nfsstat4> {
        let mut held = client.held.lock();
        if held.files_of(owner).iter().any(|key| self.locks.has_locks(*key, owner)) {
            return Err(Nfsstat4::LOCKS_HELD);
        }
        held.release_owner(owner);
        client.forget_lock_owner(owner.id());
        Ok(())
    }

    /// Whether special stateids may be used for `access` to a file.
    ///
    /// # Errors
    /// NFS4ERR_LOCKED where an open denies it (RFC 8881 §8.2.3).
    pub fn check_special(&self, key: FileKey, access: u8, now_ns: u64) -> Result<(), Nfsstat4> {
        for _ in 0..ENDED_MAX {
            match self.locks.io_denied(key, None, access) {
                None => return Ok(()),
                Some(owner) if self.evict_expired(&owner, now_ns) => {}
                Some(_) => break,
            }
        }
        Err(Nfsstat4::LOCKED)
    }

    /// Whether a stateid may be used to read or write a file: `access` is of `SHARE_READ` and
    /// `SHARE_WRITE`.
    ///
    /// # Errors
    /// Those of the stateid; NFS4ERR_OPENMODE.
    pub fn check_io(
        &self,
        client: &Client,
        id: &Stateid4,
        key: FileKey,
        access: u8,
    ) -> Result<(), Nfsstat4> {
        let (of, share) = client.held.lock().share_of(id, client.name.0)?;
        if of != key {
            return Err(Nfsstat4::BAD_STATEID);
        }
        // Permission to write includes reading what that needs (RFC 8881 §9.1.2 allows it).
        let needed = if access & vfs::locks::SHARE_WRITE != 0 { access } else { 0 };
        if needed & !share.access != 0 { Err(Nfsstat4::OPENMODE) } else { Ok(()) }
    }
}

fn allows(share: Share, kind: Kind) -> Result<(), Nfsstat4> {
    let needed = match kind {
        Kind::Read => vfs::locks::SHARE_READ,
        Kind::Write => vfs::locks::SHARE_WRITE,
    };
    if share.access & needed == 0 { Err(Nfsstat4::OPENMODE) } else { Ok(()) }
}
