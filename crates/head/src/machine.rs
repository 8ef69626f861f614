//! Membership and ownership as a head sees them: a pure state machine. Time comes in as an
//! argument, on a clock of this machine that never goes back; what is to be done goes out as
//! [`Action`]s, and results come in as [`Event`]s.
//!
//! The rules:
//! 1. The lease counts from when its last renewal was *sent*, and for two thirds of its time. After
//!    that all resources end, whatever etcd knows.
//! 2. A resource without an owner is claimed by one transaction: no owner key exists, and the
//!    record
//!    is as it was read. It raises the number of the resource.
//! 3. What was claimed starts only under the lease of the claim, and after the fences.
//! 4. An owner ends its resource when the key that it wrote is gone or another one.
//! 5. A head that drains, or that clients do not reach, hands over to one that may own the
//!    resource. If there is none the resource stays, or is claimed all the same: a resource is not
//!    left without an owner while a head can serve it.

mod candidates;
mod claim;
mod resource;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::limits::{
    HEAD_FENCE_AFTER, HEAD_FENCE_TIMEOUT, HEAD_LEASE, HEAD_READ_EVERY, HEAD_READ_SOON,
    HEAD_RENEW_EVERY, HEAD_RETRY_AFTER,
};

use crate::keys::{LeaseId, Member, Record, View};
pub use resource::{Phase, Resource};

/// Time since an arbitrary start.
pub type Time = Duration;

/// What a head is, and how long it waits for what.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Name of this head.
    pub name: String,
    /// Resources, each with the head that is preferred as its owner.
    pub resources: Vec<(String, String)>,
    /// Lease in etcd.
    pub lease: Duration,
    /// Age of the last renewal at which the resources end.
    pub fence_after: Duration,
}

impl Settings {
    /// A head with the times of [`crate::limits`].
    pub fn new(name: &str, resources: Vec<(String, String)>) -> Self {
        Self { name: name.to_owned(), resources, lease: HEAD_LEASE, fence_after: HEAD_FENCE_AFTER }
    }
}

/// A request to etcd on keys. One is in progress at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Read all keys of the cluster.
    Read,
    /// Write the key of this head.
    Announce(LeaseId, Member),
    /// Become the owner: the owner key must not exist, and the record have this revision (0: not
    /// exist).
    Claim {
        /// Which resource.
        resource: String,
        /// Lease of the owner key.
        lease: LeaseId,
        /// The record as it was read.
        seen: u64,
        /// The record as it will be.
        record: Record,
    },
    /// Delete the owner key if it still has this revision.
    Release {
        /// Which resource.
        resource: String,
        /// Revision of its owner key.
        revision: u64,
    },
    /// Write the record with another target if it still has this revision.
    Target {
        /// Which resource.
        resource: String,
        /// The record as it was read.
        seen: u64,
        /// The record as it will be.
        record: Record,
    },
    /// Write the record with the takeover that is done, if it still has this revision.
    Report {
        /// Which resource.
        resource: String,
        /// The record as it was read.
        seen: u64,
        /// The record as it will be.
        record: Record,
    },
}

/// Something to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Get a lease.
    Grant,
    /// Renew it.
    Renew(LeaseId),
    /// The lease is valid until then: processes under it may run.
    Extend(LeaseId, Time),
    /// Ask etcd.
    Query(Request),
    /// Fence the former owner, and hold the lock of this number.
    Fence(String, u64),
    /// Start the resource under this lease.
    Start(String, u64, LeaseId),
    /// Let it drain and end, and remove its addresses.
    Stop(String, u64),
    /// End it at once, and remove its addresses.
    Kill(String, u64),
}

/// How a request to etcd ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All keys.
    View(View),
    /// Done, with the new revision.
    Done(u64),
    /// A condition was not met: nothing was changed.
    Refused,
    /// No answer: it may have been done.
    Unanswered,
}

/// Why a fence did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FenceError {
    /// The former owner still has the lock.
    #[error("the lock is held by {0}")]
    Locked(String),
    /// A higher number was there already.
    #[error("number {0} has owned it already")]
    Superseded(u64),
    /// Nothing shows that the former owner cannot write any more.
    #[error("{0}")]
    Unfenced(String),
    /// It cannot be tried here.
    #[error("{0}")]
    Failed(String),
}

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A lease, requested at that time.
    Granted(Time, LeaseId),
    /// A renewal, sent at that time.
    Renewed(Time, LeaseId),
    /// etcd does not know the lease any more.
    Expired(LeaseId),
    /// No answer to a grant or renewal.
    LeaseUnanswered,
    /// The request on keys, sent at that time, has ended.
    Answer(Time, Outcome),
    /// The fences of this number.
    Fenced(String, u64, Result<(), FenceError>),
    /// The start of this number; after an error no process is left.
    Started(String, u64, Result<(), String>),
    /// The process of this number is gone and so are its addresses; for which reason.
    Ended(String, u64, String),
}

/// The lease as this head knows it.
#[derive(Debug, Clone, Copy)]
struct Lease {
    id: LeaseId,
    /// When the last answered renewal was sent.
    renewed: Time,
}

/// A head.
#[derive(Debug)]
pub struct Machine {
    settings: Settings,
    resources: BTreeMap<String, Resource>,
    lease: Option<Lease>,
    lease_pending: bool,
    lease_next: Time,
    pending: Option<Request>,
    read_next: Time,
    /// The last view, and when it was requested.
    view: Option<(Time, View)>,
    /// Targets that commands have set and that are not written yet.
    targets: Vec<(String, String)>,
    draining: bool,
    /// Whether this head ends.
    ending: bool,
    actions: Vec<Action>,
}

impl Machine {
    /// A head that has just started.
    pub fn new(settings: Settings) -> Self {
        let resources =
            settings.resources.iter().map(|(name, _)| (name.clone(), Resource::default()));
        Self {
            resources: resources.collect(),
            settings,
            lease: None,
            lease_pending: false,
            lease_next: Time::ZERO,
            pending: None,
            read_next: Time::ZERO,
            view: None,
            targets: Vec::new(),
            draining: false,
            ending: false,
            actions: Vec::new(),
        }
    }

    /// Its resources.
    pub fn resources(&self) -> &BTreeMap<String, Resource> {
        &self.resources
    }

    /// The keys as they were last read, and when that was requested.
    pub fn view(&self) -> Option<&(Time, View)> {
        self.view.as_ref()
    }

    /// Until when the lease is valid, if it is.
    pub fn lease_until(&self) -> Option<Time> {
        self.lease.map(|lease| lease.renewed + self.settings.fence_after)
    }

    /// Whether it drains.
    pub fn is_draining(&self) -> bool {
        self.draining
    }

    /// Whether nothing is claimed or to be released.
    pub fn is_released(&self) -> bool {
        self.resources.values().all(|resource| resource.phase == Phase::Offline)
    }

    /// Whether a command has set a target that is not written yet.
    pub fn has_targets(&self) -> bool {
        !self.targets.is_empty()
    }

    /// The preferred owner of a resource.
    pub fn preferred(&self, resource: &str) -> Option<&str> {
        let found = self.settings.resources.iter().find(|(name, _)| name == resource);
        found.map(|(_, head)| head.as_str())
    }

    /// Takes an event in; what is to be done now.
    pub fn event(&mut self, now: Time, event: Event) -> Vec<Action> {
        // Before what has ended with it counts as failed.
        self.check_lease(now);
        match event {
            Event::Granted(sent, id) => self.renewed(now, sent, id, true),
            Event::Renewed(sent, id) => self.renewed(now, sent, id, false),
            Event::Expired(id) => {
                self.lease_pending = false;
                if self.lease.is_some_and(|lease| lease.id == id) {
                    self.lose_lease();
                }
            }
            Event::LeaseUnanswered => {
                self.lease_pending = false;
                self.lease_next = now + HEAD_RENEW_EVERY / 2;
            }
            Event::Answer(sent, outcome) => self.answer(now, sent, outcome),
            Event::Fenced(name, number, outcome) => self.fenced(now, &name, number, outcome),
            Event::Started(name, number, outcome) => self.started(now, &name, number, outcome),
            Event::Ended(name, number, why) => self.ended(now, &name, number, &why),
        }
        self.tick(now)
    }

    /// What is to be done because of the time.
    pub fn tick(&mut self, now: Time) -> Vec<Action> {
        self.check_lease(now);
        self.keep_lease(now);
        for (name, resource) in &mut self.resources {
            let late =
                resource.phase == Phase::Fencing && now >= resource.since + HEAD_FENCE_TIMEOUT;
            if late {
                resource.fail(now, "fencing takes too long");
                resource.phase = Phase::Ending;
                self.actions.push(Action::Kill(name.clone(), resource.number));
            }
        }
        self.next_request(now);
        std::mem::take(&mut self.actions)
    }

    /// When [`Machine::tick`] has something to do at the latest, if nothing happens before.
    pub fn next(&self, now: Time) -> Time {
        let mut next = now + HEAD_READ_EVERY;
        next = next.min(self.lease_until().unwrap_or(next));
        if !self.lease_pending {
            next = next.min(self.lease_next);
        }
        if self.pending.is_none() {
            next = next.min(self.read_next);
        }
        next
    }

    fn check_lease(&mut self, now: Time) {
        if self.lease_until().is_some_and(|until| now >= until) {
            self.lose_lease();
        }
    }

    fn keep_lease(&mut self, now: Time) {
        if self.lease_pending || now < self.lease_next {
            return;
        }
        self.lease_pending = true;
        self.lease_next = now + HEAD_RENEW_EVERY;
        self.actions.push(self.lease.map_or(Action::Grant, |lease| Action::Renew(lease.id)));
    }

    fn renewed(&mut self, now: Time, sent: Time, id: LeaseId, granted: bool) {
        self.lease_pending = false;
        let until = sent + self.settings.fence_after;
        let same = self.lease.is_some_and(|lease| lease.id == id);
        // A lease that was lost here stays lost: its resources have ended.
        if now >= until || !(granted && self.lease.is_none() || same) {
            return;
        }
        self.lease = Some(Lease { id, renewed: sent });
        self.actions.push(Action::Extend(id, until));
    }

    /// Ends all that runs under the lease. Its keys stay in etcd until it is over there too.
    fn lose_lease(&mut self) {
        let Some(lease) = self.lease.take() else { return };
        self.lease_next = Time::ZERO;
        for (name, resource) in &mut self.resources {
            if resource.runs() && resource.phase != Phase::Ending && resource.lease == lease.id {
                resource.phase = Phase::Ending;
                self.actions.push(Action::Kill(name.clone(), resource.number));
            }
        }
    }

    fn answer(&mut self, now: Time, sent: Time, outcome: Outcome) {
        let request = self.pending.take();
        match (request, outcome) {
            (_, Outcome::View(view)) => {
                self.read_next = sent + self.read_every(&view);
                self.view = Some((sent, view));
                self.check_owned();
                return;
            }
            (Some(Request::Claim { resource, lease, record, .. }), outcome) => {
                self.claimed(now, &resource, lease, record.number, outcome);
            }
            (Some(Request::Release { resource, .. }), Outcome::Done(_) | Outcome::Refused) => {
                let resource = self.resources.get_mut(&resource);
                if let Some(resource) = resource.filter(|one| one.phase == Phase::Releasing) {
                    resource.enter(Phase::Offline, now);
                }
            }
            (Some(Request::Target { resource, .. }), Outcome::Done(_)) => {
                self.targets.retain(|(one, _)| *one != resource);
            }
            (Some(Request::Report { resource, record, .. }), Outcome::Done(_)) => {
                let resource = self.resources.get_mut(&resource);
                if let Some(resource) = resource.filter(|one| one.report == record.last) {
                    resource.report = None;
                }
            }
            (Some(Request::Read), _) => {
                self.read_next = now + HEAD_READ_EVERY;
                return;
            }
            _ => {}
        }
        // What was read before is out of date.
        self.read_next = now;
        self.view = self.view.take().map(|(_, view)| (Time::ZERO, view));
    }

    /// Asks etcd the next question: from what was just read, or to read.
    fn next_request(&mut self, now: Time) {
        if self.pending.is_some() {
            return;
        }
        self.pending = self.release();
        let fresh = self.view.take();
        if self.pending.is_none()
            && let Some((read, view)) = &fresh
            && *read > Time::ZERO
            && let Some(lease) = self.lease.map(|lease| lease.id)
        {
            self.pending = self.decide(now, *read, view, lease);
        }
        self.view = fresh;
        if self.pending.is_none() && now >= self.read_next {
            self.pending = Some(Request::Read);
        }
        self.actions.extend(self.pending.clone().map(Action::Query));
    }

    /// Deletes the key of a resource that has ended: by its revision, so that nothing needs to be
    /// read before. Without an answer the next view shows whether it is still there.
    fn release(&mut self) -> Option<Request> {
        let lease = self.lease?.id;
        let (name, resource) = self.resources.iter_mut().find(|(_, one)| {
            one.phase == Phase::Releasing && one.lease == lease && !one.released
        })?;
        resource.released = true;
        Some(Request::Release { resource: name.clone(), revision: resource.revision })
    }

    /// How long to wait between two views: less while another head hands over to this one.
    fn read_every(&self, view: &View) -> Time {
        let me = &self.settings.name;
        let is_next = |(name, resource): (&String, &Resource)| {
            let target = view.records.get(name).is_some_and(|one| one.value.target == *me);
            let owned = view.owners.get(name).is_some_and(|one| one.value.head != *me);
            resource.phase == Phase::Offline && target && owned
        };
        match !self.draining && self.resources.iter().any(is_next) {
            true => HEAD_READ_SOON,
            false => HEAD_READ_EVERY,
        }
    }

    /// The most important change of keys, if one is due.
    fn decide(&mut self, now: Time, read: Time, view: &View, lease: LeaseId) -> Option<Request> {
        let names: Vec<String> = self.resources.keys().cloned().collect();
        for name in &names {
            let request = self.decide_resource(now, read, view, lease, name);
            if request.is_some() {
                return request;
            }
        }
        let member = self.member();
        let known = view.members.get(&self.settings.name);
        if known.is_none_or(|known| known.value != member || known.lease != lease) {
            return Some(Request::Announce(lease, member));
        }
        if let Some(request) = self.report_next(view) {
            return Some(request);
        }
        let (resource, head) = self.targets.first()?.clone();
        let known = view.records.get(&resource);
        if head == self.settings.name
            && let Some(resource) = self.resources.get_mut(&resource)
        {
            resource.failed = None;
            resource.failures = 0;
        }
        let number = known.map_or(0, |record| record.value.number);
        let seen = known.map_or(0, |record| record.revision);
        let served = known.map_or(0, |record| record.value.served);
        let last = known.and_then(|record| record.value.last.clone());
        let record = Record { number, target: head, served, last };
        Some(Request::Target { resource, seen, record })
    }

    fn decide_resource(
        &mut self,
        now: Time,
        read: Time,
        view: &View,
        lease: LeaseId,
        name: &str,
    ) -> Option<Request> {
        let owner = view.owners.get(name);
        let claimants = self.claimants(view, name);
        let next = self.next_owner(view, name);
        let kept = if next.is_none() { self.kept(view, name) } else { None };
        let me = self.settings.name.clone();
        let resource = self.resources.get_mut(name)?;
        if read < resource.since {
            return None;
        }
        match resource.phase {
            Phase::Releasing => match owner {
                Some(owner) if owner.lease == lease && owner.value.head == me => {
                    let revision = owner.revision;
                    return Some(Request::Release { resource: name.to_owned(), revision });
                }
                _ => resource.enter(Phase::Offline, now),
            },
            Phase::Offline => match owner {
                // A claim that got no answer.
                Some(owner) if owner.lease == lease && owner.value.head == me => {
                    resource.own(now, lease, owner.value.number, owner.revision);
                    self.actions.push(Action::Fence(name.to_owned(), owner.value.number));
                }
                Some(_) => {
                    resource.vacant = None;
                    let record = view.records.get(name);
                    let awaited = record.is_some_and(|record| record.value.target == me);
                    resource.awaited = awaited.then_some(resource.awaited.unwrap_or(read));
                }
                None => return self.claim(now, view, lease, name, &claimants),
            },
            Phase::Owner => match next {
                Some(to) => {
                    resource.target = Some(to);
                    resource.enter(Phase::HandingOver, now);
                    self.actions.push(Action::Stop(name.to_owned(), resource.number));
                }
                None => resource.why = kept,
            },
            _ => {}
        }
        None
    }

    /// Ends what this head owns no more.
    fn check_owned(&mut self) {
        let Some((read, view)) = &self.view else { return };
        for (name, resource) in &mut self.resources {
            let owned = view.owners.get(name).map(|owner| owner.revision);
            let runs = resource.runs() && resource.phase != Phase::Ending;
            if runs && *read >= resource.owned_since && owned != Some(resource.revision) {
                resource.why = Some("the ownership was lost".to_owned());
                resource.phase = Phase::Ending;
                self.actions.push(Action::Kill(name.clone(), resource.number));
            }
        }
    }

    fn claimed(&mut self, now: Time, name: &str, lease: LeaseId, number: u64, outcome: Outcome) {
        let current = self.lease.map(|lease| lease.id);
        let Some(resource) = self.resources.get_mut(name) else { return };
        if resource.phase != Phase::Claiming {
            return;
        }
        match outcome {
            Outcome::Done(revision) if current == Some(lease) => {
                resource.own(now, lease, number, revision);
                self.actions.push(Action::Fence(name.to_owned(), number));
            }
            // Under another lease: it ends with that one. Without an answer: the next view shows
            // it.
            _ => resource.enter(Phase::Offline, now),
        }
    }

    fn fenced(&mut self, now: Time, name: &str, number: u64, outcome: Result<(), FenceError>) {
        let current = self.lease.map(|lease| lease.id);
        let Some(resource) = self.resources.get_mut(name) else { return };
        if resource.number != number || resource.phase != Phase::Fencing {
            return;
        }
        match outcome {
            Ok(()) if current == Some(resource.lease) => {
                resource.why = None;
                resource.enter(Phase::Starting, now);
                self.actions.push(Action::Start(name.to_owned(), number, resource.lease));
            }
            Err(FenceError::Locked(holder)) => {
                resource.why = Some(format!("the lock is held by {holder}"));
                self.actions.push(Action::Fence(name.to_owned(), number));
            }
            outcome => {
                if let Err(FenceError::Superseded(found)) = outcome {
                    resource.at_least = found;
                } else if let Err(error) = outcome {
                    resource.fail(now, &error.to_string());
                }
                resource.phase = Phase::Ending;
                self.actions.push(Action::Kill(name.to_owned(), number));
            }
        }
    }

    fn started(&mut self, now: Time, name: &str, number: u64, outcome: Result<(), String>) {
        let Some(resource) = self.resources.get_mut(name) else { return };
        if resource.number != number {
            return;
        }
        match outcome {
            Ok(()) if resource.phase == Phase::Starting => resource.enter(Phase::Owner, now),
            // It is being ended.
            Ok(()) => {}
            Err(why) => {
                resource.fail(now, &why);
                resource.enter(Phase::Releasing, now);
            }
        }
    }

    fn ended(&mut self, now: Time, name: &str, number: u64, why: &str) {
        let Some(resource) = self.resources.get_mut(name) else { return };
        if resource.number != number || !resource.runs() {
            return;
        }
        if !matches!(resource.phase, Phase::Ending | Phase::HandingOver) {
            resource.fail(now, why);
            resource.retry = now + HEAD_RETRY_AFTER / 4;
        }
        resource.enter(Phase::Releasing, now);
    }
}
