//! Granting leases. A grant never breaks another lease: it is reduced to what others leave.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::clock::monotonic_ns;
use base::limits::{LEASES_MAX, LEASES_PER_FILE_MAX};

use super::super::file::{FileLocks, Lease, LeaseState, Style};
use super::super::parts::Counted;
use super::super::{Caching, FileKey, Kind, LockTable, Owner, Range, Recall, Refused, Share, tidy};
use super::LeaseView;
use crate::attr::Attr;

/// An SMB client's request for caching, sent with an open.
pub struct LeaseRequest<'a> {
    /// The number by which changes of the file are announced.
    pub slot: u64,
    /// The file.
    pub key: FileKey,
    /// By what the lease is known: the client and its key, or the open for an oplock.
    pub lease: &'a Owner,
    /// The open.
    pub open: &'a Owner,
    /// Whether it is an oplock.
    pub is_oplock: bool,
    /// What is wanted.
    pub wanted: Caching,
    /// The epoch of the client.
    pub epoch: u16,
    /// How the holder is notified.
    pub notice: Arc<dyn Recall>,
}

/// What it gets.
#[derive(Debug, Clone)]
pub struct Granted {
    /// What it may cache.
    pub caching: Caching,
    /// The epoch of the lease.
    pub epoch: u16,
    /// It is being broken.
    pub is_breaking: bool,
    /// What it comes to.
    pub view: LeaseView,
}

impl LockTable {
    /// Grants a delegation on the file with the attributes `attr`. For reading: the file is not
    /// open for writing, nor locked exclusively. For writing: no other client has it open or
    /// locked, or waits for a lock.
    ///
    /// # Errors
    /// [`Refused::NoLease`] if it is not available now, [`Refused::Full`].
    pub fn grant(
        &self,
        slot: u64,
        attr: &Attr,
        owner: &Owner,
        caching: Caching,
        notice: Arc<dyn Recall>,
    ) -> Result<(), Refused> {
        let key = FileKey::from(attr);
        if attr.nlink > 1 {
            return Err(Refused::NoLease);
        }
        let mut lease = Lease::new(owner.clone(), Style::Delegation, slot, notice);
        lease.caching = caching;
        // Counted first, looked second: see the parent module.
        self.recount(&mut lease);
        let outcome = self.grant_counted(key, lease);
        outcome.map_err(|(mut lease, refused)| {
            self.uncount_lease(&mut lease);
            refused
        })
    }

    fn grant_counted(&self, key: FileKey, lease: Lease) -> Result<(), (Lease, Refused)> {
        let mut files = self.shard(key);
        let locks = files.entry(key).or_default();
        let owner = &lease.owner;
        let others = |other: &Owner| other.client != owner.client;
        let writes = lease.caching.has(Caching::WRITE);
        // Its holder may lock bytes without the server's knowledge: with one for reading shared.
        let kind = if writes { Kind::Write } else { Kind::Read };
        let waits = locks.waiting.iter().any(|w| others(&w.owner) && w.kind.conflicts(kind));
        let clash = waits
            || match writes {
                false => {
                    let all = Range::to_end(0);
                    locks.is_written() || locks.ranges.conflict(owner, all, kind).is_some()
                }
                true => {
                    let is_open = locks.opens.iter().any(|(who, _)| others(who));
                    is_open || locks.ranges.has_any(others)
                }
            };
        let met = locks.leases.iter().any(|there| {
            let exclusive = writes || there.caching.has(Caching::WRITE);
            there.is_breaking() || there.owner == *owner || (exclusive && others(&there.owner))
        });
        // A change that is announced after this look waits for the lock of this part, and then
        // finds the lease.
        let busy =
            self.slot(lease.slot).in_progress() || self.names_changing.load(Ordering::SeqCst) > 0;
        let outcome = if clash || met || busy {
            Err(Refused::NoLease)
        } else {
            self.lease_room(locks, owner)
        };
        let outcome = match outcome {
            Ok(()) => {
                locks.leases.push(lease);
                Ok(())
            }
            Err(refused) => Err((lease, refused)),
        };
        tidy(&mut files, key);
        outcome
    }

    /// Whether there is room for a lease that is counted already.
    fn lease_room(&self, locks: &FileLocks, owner: &Owner) -> Result<(), Refused> {
        let counted = || locks.leases.iter().filter(|lease| lease.counted.0);
        let in_file = counted().map(|lease| (&lease.owner, 1));
        let limits = (LEASES_PER_FILE_MAX as u64, LEASES_MAX);
        self.has_room(owner, Counted::Lease, 0, limits, (counted().count() + 1, in_file))
    }

    /// Grants what can be granted of a lease or an oplock. `None` while a change is in progress
    /// that may have come too early to see it: the caller may ask again.
    pub fn lease(&self, request: &LeaseRequest<'_>) -> Option<Granted> {
        let style = if request.is_oplock { Style::Oplock } else { Style::Lease };
        let LeaseRequest { slot, key, .. } = *request;
        let owner = request.lease.clone();
        let mut new = Lease::new(owner, style, slot, Arc::clone(&request.notice));
        new.epoch = request.epoch;
        new.caching = request.wanted.valid();
        // Counted first, looked second.
        self.recount(&mut new);
        let mut files = self.shard(key);
        let locks = files.entry(key).or_default();
        let now = monotonic_ns();
        locks.leases.iter_mut().for_each(|lease| self.expire(lease, now));
        let wanted = if self.slot(slot).in_progress() { None } else { Some(new.caching) };
        let granted = wanted.map(|wanted| {
            let left = locks.left_of(wanted, (request.lease, request.open), style);
            let is_own = |lease: &Lease| lease.owner == *request.lease;
            let is_counted = locks.leases.iter().any(|lease| is_own(lease) && lease.counted.0);
            let part = match is_counted || self.lease_room(locks, &new.owner).is_ok() {
                true => left,
                false => Caching::NONE,
            };
            let known = locks.leases.iter_mut().find(|lease| is_own(lease));
            if let Some(lease) = known {
                self.share_lease(lease, request, part);
                return lease.granted();
            }
            let mut lease = Lease::new(new.owner.clone(), style, slot, Arc::clone(&request.notice));
            lease.opens = vec![(request.open.clone(), Arc::clone(&request.notice))];
            lease.caching = part;
            // What changes nothing for the client is no change of its lease.
            lease.epoch = request.epoch.wrapping_add(u16::from(!part.is_none()));
            // A lease of nothing has a key, by which others are refused; an oplock has none.
            if style == Style::Lease || !part.is_none() {
                self.recount(&mut lease);
                let granted = lease.granted();
                locks.leases.push(lease);
                return granted;
            }
            lease.granted()
        });
        tidy(&mut files, key);
        drop(files);
        self.uncount_lease(&mut new);
        granted
    }

    /// What a lease or an oplock has now, for an open that is continued.
    pub fn lease_now(&self, key: FileKey, owner: &Owner) -> Option<Granted> {
        let mut files = self.shard(key);
        let lease = files.get_mut(&key)?.leases.iter_mut().find(|lease| lease.owner == *owner)?;
        self.expire(lease, monotonic_ns());
        Some(lease.granted())
    }

    /// Another open of the same lease: it gets more only if all that is asked is granted, and
    /// includes the existing ones.
    fn share_lease(&self, lease: &mut Lease, request: &LeaseRequest<'_>, part: Caching) {
        lease.opens.push((request.open.clone(), Arc::clone(&request.notice)));
        let asked = request.wanted;
        let is_more = asked.has(lease.caching) && part == asked && part != lease.caching;
        if is_more && !lease.is_breaking() {
            (lease.caching, lease.epoch) = (part, lease.epoch.wrapping_add(1));
            self.recount(lease);
        }
    }
}

impl Lease {
    fn granted(&self) -> Granted {
        let is_breaking = matches!(self.state, LeaseState::Breaking { .. });
        let view = LeaseView(Arc::clone(&self.shown));
        Granted { caching: self.caching, epoch: self.epoch, is_breaking, view }
    }
}

impl FileLocks {
    /// What others leave of a lease.
    fn left_of(&self, wanted: Caching, (own, open): (&Owner, &Owner), style: Style) -> Caching {
        let of_own = |lease: &Lease| lease.owner == *own;
        let shares = |who: &Owner| {
            who == open || self.leases.iter().any(|one| of_own(one) && one.is_of(who))
        };
        if !self.ranges.is_empty() {
            return Caching::NONE;
        }
        let mut left = wanted;
        // An open of the security descriptor alone is not in the way of an oplock.
        let counts = |share: &Share| style == Style::Lease || *share != Share::default();
        let is_open = self.opens.iter().any(|(who, share)| !shares(who) && counts(share));
        // An oplock that was broken to nothing is none.
        let is_there = |lease: &Lease| lease.style == Style::Lease || !lease.caching.is_none();
        let others = || self.leases.iter().filter(|lease| !of_own(lease) && is_there(lease));
        if is_open || others().next().is_some() {
            left = left.without(Caching::WRITE);
        }
        if others().any(|lease| lease.caching.has(Caching::WRITE)) {
            return Caching::NONE;
        }
        let has_oplock = others().any(|lease| lease.style == Style::Oplock);
        let has_handle = others().any(|lease| lease.caching.has(Caching::HANDLE));
        match style {
            Style::Lease if has_oplock => left = left.without(Caching::HANDLE),
            Style::Oplock if has_handle => left = Caching::NONE,
            // There is no oplock of reading and handles.
            Style::Oplock if !left.has(Caching::WRITE) => left = left.and(Caching::READ),
            _ => {}
        }
        left.valid()
    }
}
