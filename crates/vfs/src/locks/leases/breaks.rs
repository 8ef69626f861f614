//! Breaks of leases: what an operation takes, what the holder acknowledges, until when, and which
//! requests wait for that. No thread waits: a request leaves a continuation
//! ([`LockTable::when_released`]).

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base::clock::monotonic_ns;
use base::limits::LEASE_BREAK_TIME;

use super::super::acting::{ByClient, acts_for};
use super::super::continuation::call;
use super::super::file::{FileLocks, Lease, LeaseState, Notices, Style};
use super::super::{Break, Caching, ClientKey, FileKey, LockTable, Owner, Released, WaitId};
use super::{BreakOutcome, Trigger};

thread_local! {
    static BLOCKED: Cell<Option<FileKey>> = const { Cell::new(None) };
}

/// The file of which a lease was in the way of what this thread has just attempted, once.
pub fn take_blocked() -> Option<FileKey> {
    BLOCKED.take()
}

/// Why an acknowledgement is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AckRefused {
    /// There is no such lease.
    NoLease,
    /// It is not being broken, or no longer.
    NotBreaking,
    /// More would be kept than was offered.
    TooMuch,
}

/// What an operation is done for: its own leases are not in its way.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct By<'a> {
    /// A client of NFSv4.
    pub client: Option<ClientKey>,
    /// The lease of the open that is used.
    pub lease: Option<&'a Owner>,
    /// It looks at the security descriptor at most, which only oplocks are in the way of.
    pub looks: bool,
}

impl By<'_> {
    fn acts_for(&self, lease: &Lease) -> bool {
        self.lease == Some(&lease.owner) || acts_for(&lease.owner)
    }

    fn owns(&self, lease: &Lease) -> bool {
        match lease.style {
            Style::Delegation => self.looks || self.client == Some(lease.owner.client),
            Style::Lease if self.looks => true,
            // What a holder of level II writes breaks that, too (MS-FSA §2.1.5.18).
            Style::Oplock => lease.caching.has(Caching::WRITE) && self.acts_for(lease),
            Style::Lease => self.acts_for(lease),
        }
    }
}

/// What an operation has met.
#[derive(Default)]
pub(in super::super) struct Met {
    /// It must wait.
    pub waits: bool,
    /// Holders that are to be notified.
    pub notices: Notices,
}

impl Lease {
    /// A break that the holder has not acknowledged in time takes everything.
    pub fn expire(&mut self, now_ns: u64) -> bool {
        match self.state {
            LeaseState::Breaking { until_ns, .. } if now_ns >= until_ns => {
                (self.caching, self.state) = (Caching::NONE, LeaseState::Granted);
                true
            }
            _ => false,
        }
    }

    /// What it keeps if this is taken. Leases lose what is taken, or all with reading; oplocks have
    /// two steps, delegations one.
    fn kept(&self, takes: Caching) -> Caching {
        let left = self.caching.without(takes).valid();
        match self.style {
            Style::Lease => left,
            Style::Oplock => left.and(Caching::READ),
            Style::Delegation => Caching::NONE,
        }
    }

    /// Takes something from it; what its holder is to be notified of.
    pub fn take(&mut self, takes: Caching, until_ns: u64) -> Option<Break> {
        if !self.caching.meets(takes) {
            return None;
        }
        let kept = self.kept(takes);
        if let LeaseState::Breaking { required, .. } = &mut self.state {
            // Another break follows the acknowledgement of this one.
            *required = required.and(kept);
            return None;
        }
        let from = self.caching;
        self.epoch = self.epoch.wrapping_add(1);
        let must_acknowledge = from != Caching::READ || self.style == Style::Delegation;
        if must_acknowledge {
            self.state = LeaseState::Breaking { to: kept, required: kept, until_ns };
        } else {
            self.caching = Caching::NONE;
        }
        Some(Break { from, to: kept, epoch: self.epoch, must_acknowledge })
    }

    /// Its holder keeps so much; what it is to be notified of then.
    fn acknowledge(&mut self, keeps: Caching, until_ns: u64) -> Result<Option<Break>, AckRefused> {
        let LeaseState::Breaking { to, required, .. } = self.state else {
            return Err(AckRefused::NotBreaking);
        };
        if !to.has(keeps) {
            return Err(AckRefused::TooMuch);
        }
        (self.caching, self.state) = (keeps.valid(), LeaseState::Granted);
        let from = self.caching;
        if required.has(from) {
            return Ok(None);
        }
        // In steps, as Windows does: what is kept back, then what was read.
        let must_acknowledge = from != Caching::READ;
        let to = if must_acknowledge { required.or(Caching::READ) } else { Caching::NONE };
        if must_acknowledge {
            self.state = LeaseState::Breaking { to, required, until_ns };
        } else {
            self.caching = Caching::NONE;
        }
        Ok(Some(Break { from, to, epoch: self.epoch, must_acknowledge }))
    }
}

fn deadline_ns(style: Style, now_ns: u64) -> u64 {
    match style {
        // Its protocol revokes it.
        Style::Delegation => u64::MAX,
        _ => now_ns.saturating_add(LEASE_BREAK_TIME.as_nanos() as u64),
    }
}

impl LockTable {
    /// What an operation takes from the leases of a file, and whether it must wait. `again`: it has
    /// waited already.
    pub(in super::super) fn meet(
        &self,
        file: &mut FileLocks,
        by: By<'_>,
        trigger: Trigger,
        again: bool,
    ) -> Met {
        let mut met = Met::default();
        if file.leases.is_empty() {
            return met;
        }
        let (rule, now) = (trigger.rule(), monotonic_ns());
        for lease in &mut file.leases {
            self.expire(lease, now);
            if by.owns(lease) {
                continue;
            }
            let is_delegation = lease.style == Style::Delegation;
            let takes = if is_delegation { rule.recalls } else { rule.takes };
            let was_breaking = lease.is_breaking();
            let had = lease.caching;
            let taken = lease.take(takes, deadline_ns(lease.style, now));
            met.waits |= match lease.style {
                Style::Delegation => had.meets(takes),
                Style::Oplock => had.meets(rule.waits),
                // What another operation has begun ends before the file is opened.
                Style::Lease => {
                    let is_met = had.meets(takes);
                    let other = trigger.opens() && was_breaking && (again || !is_met);
                    had.meets(rule.waits) || other
                }
            };
            if let Some(what) = taken {
                // Those of SMB are counted by their outcome.
                let recalls = u64::from(is_delegation);
                self.counts.recalls.fetch_add(recalls, Ordering::Relaxed);
                if !what.must_acknowledge {
                    self.count_break(lease.style, BreakOutcome::Unanswered, Some(0));
                }
                self.recount(lease);
                met.notices.push((lease.owner.clone(), lease.notifier(), what));
            }
        }
        met
    }

    pub(super) fn expire(&self, lease: &mut Lease, now_ns: u64) {
        let took_ns = lease.breaking_ns(now_ns);
        if lease.expire(now_ns) {
            self.count_break(lease.style, BreakOutcome::TimedOut, took_ns);
            self.counts.revoked.fetch_add(1, Ordering::Relaxed);
            self.recount(lease);
        }
    }

    /// Whether an operation of a thread without an open may continue.
    pub(super) fn passes(&self, key: FileKey, client: Option<ClientKey>, trigger: Trigger) -> bool {
        let mut files = self.shard(key);
        let Some(file) = files.get_mut(&key) else { return true };
        let met = self.meet(file, By { client, ..By::default() }, trigger, false);
        drop(files);
        self.notify(key, met.notices);
        if met.waits {
            BLOCKED.set(Some(key));
        }
        !met.waits
    }

    /// The same for the client that this thread acts for.
    pub fn may(&self, key: FileKey, trigger: Trigger) -> bool {
        !self.has_leases() || self.passes(key, ByClient::now(), trigger)
    }

    /// What a byte-range lock of an owner, or a request for one, takes from the leases of others,
    /// and whether it must wait: under some of them bytes may be locked without the server's
    /// knowledge.
    pub(in super::super) fn meet_range(
        &self,
        file: &mut FileLocks,
        owner: &Owner,
        trigger: Trigger,
    ) -> Met {
        let own = file.leases.iter().find(|lease| lease.is_of(owner));
        let own = own.map(|lease| lease.owner.clone());
        let by = By { client: Some(owner.client), lease: own.as_ref(), looks: false };
        self.meet(file, by, trigger, false)
    }

    /// The holder of a lease keeps so much of it; gives what it has then.
    ///
    /// # Errors
    /// [`AckRefused`].
    pub fn acknowledge(
        &self,
        key: FileKey,
        owner: &Owner,
        keeps: Caching,
    ) -> Result<Caching, AckRefused> {
        let mut files = self.shard(key);
        let file = files.get_mut(&key).ok_or(AckRefused::NoLease)?;
        let lease = file.leases.iter_mut().find(|lease| lease.owner == *owner);
        let lease = lease.ok_or(AckRefused::NoLease)?;
        let now = monotonic_ns();
        self.expire(lease, now);
        let took_ns = lease.breaking_ns(now);
        let next = lease.acknowledge(keeps, deadline_ns(lease.style, now))?;
        self.count_break(lease.style, BreakOutcome::Acknowledged, took_ns);
        if next.is_some_and(|next| !next.must_acknowledge) {
            self.count_break(lease.style, BreakOutcome::Unanswered, Some(0));
        }
        self.recount(lease);
        let notice = next.map(|what| (lease.owner.clone(), lease.notifier(), what));
        let woken = file.take_released();
        drop(files);
        self.notify(key, notice.into_iter().collect());
        woken.into_iter().for_each(|(_, released)| call(released));
        Ok(keeps)
    }

    /// The break that the holder of a lease has not acknowledged yet, if it still may: for a holder
    /// that could not be notified of it.
    pub fn break_of(&self, key: FileKey, owner: &Owner) -> Option<Break> {
        let mut files = self.shard(key);
        let lease = files.get_mut(&key)?.leases.iter_mut().find(|lease| lease.owner == *owner)?;
        self.expire(lease, monotonic_ns());
        let LeaseState::Breaking { to, .. } = lease.state else { return None };
        Some(Break { from: lease.caching, to, epoch: lease.epoch, must_acknowledge: true })
    }

    /// Whether a lease of a file is being broken: what meets it waits.
    pub fn is_breaking(&self, key: FileKey) -> bool {
        let now = monotonic_ns();
        let waits = |lease: &Lease| lease.until_ns().is_some_and(|until_ns| now < until_ns);
        self.shard(key).get(&key).is_some_and(|file| file.leases.iter().any(waits))
    }

    /// Calls `released` once a lease of a file has changed that is being broken, or at once if
    /// there is none; gives the number by which [`LockTable::forget_released`] takes that back, and
    /// the time after which the holder loses the lease.
    pub fn when_released(
        &self,
        key: FileKey,
        released: Released,
    ) -> Option<(WaitId, Option<Duration>)> {
        let mut files = self.shard(key);
        let now = monotonic_ns();
        let file = files.get_mut(&key);
        let breaking = file.filter(|file| file.leases.iter().any(Lease::is_breaking));
        let Some(file) = breaking else {
            drop(files);
            released();
            return None;
        };
        let until = file.leases.iter().filter_map(Lease::until_ns).min();
        let left = until.filter(|until| *until != u64::MAX);
        let left = left.map(|until| Duration::from_nanos(until.saturating_sub(now)));
        let id = self.waits.number();
        file.released.push((id, released));
        Some((id, left))
    }

    /// Takes back what [`LockTable::when_released`] was asked for.
    pub fn forget_released(&self, key: FileKey, id: WaitId) {
        let mut files = self.shard(key);
        if let Some(file) = files.get_mut(&key) {
            file.released.retain(|(other, _)| *other != id);
        }
        super::super::tidy(&mut files, key);
    }
}
