//! etcd as the model has it: one map, leases in true time, and a quorum that may be missing.

use std::collections::BTreeMap;

use head::keys::{LeaseId, Owner, Versioned, View};
use head::machine::{Outcome, Request};

/// What etcd has.
#[derive(Debug, Default)]
pub struct Etcd {
    view: View,
    leases: BTreeMap<LeaseId, u64>,
    revision: u64,
    next_lease: LeaseId,
    /// Whether a majority of its members is up.
    pub quorum: bool,
    /// Whether a claim is refused where an owner key exists.
    pub compares_owner: bool,
}

impl Etcd {
    /// An empty one that works.
    pub fn new(compares_owner: bool) -> Self {
        Self { quorum: true, compares_owner, next_lease: 1, ..Self::default() }
    }

    /// All keys.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Removes what hangs on leases that are over. Without a quorum none ends.
    pub fn expire(&mut self, now: u64) {
        if !self.quorum {
            return;
        }
        let leases = &mut self.leases;
        leases.retain(|_, until| now < *until);
        self.view.members.retain(|_, member| leases.contains_key(&member.lease));
        self.view.owners.retain(|_, owner| leases.contains_key(&owner.lease));
    }

    /// Everything is gone, as when it is made again.
    pub fn lose(&mut self) {
        (self.view, self.leases) = (View::default(), BTreeMap::new());
    }

    /// A new leader extends all leases.
    pub fn elect(&mut self, now: u64, lease_ms: u64) {
        self.quorum = true;
        self.leases.values_mut().for_each(|until| *until = (*until).max(now + lease_ms));
    }

    /// A lease.
    pub fn grant(&mut self, now: u64, lease_ms: u64) -> LeaseId {
        self.next_lease += 1;
        self.leases.insert(self.next_lease, now + lease_ms);
        self.next_lease
    }

    /// Renews a lease; false if it is over.
    pub fn renew(&mut self, now: u64, lease_ms: u64, id: LeaseId) -> bool {
        let Some(until) = self.leases.get_mut(&id) else { return false };
        *until = now + lease_ms;
        true
    }

    /// Answers a request on keys.
    pub fn ask(&mut self, from: &str, request: &Request) -> Outcome {
        let next = self.revision + 1;
        let of = |map: &BTreeMap<String, Versioned<_>>, name: &str| {
            map.get(name).map_or(0, |record: &Versioned<_>| record.revision)
        };
        match request {
            Request::Read => return Outcome::View(self.view.clone()),
            Request::Announce(lease, member) => {
                if !self.leases.contains_key(lease) {
                    return Outcome::Refused;
                }
                let value = Versioned { value: member.clone(), revision: next, lease: *lease };
                self.view.members.insert(from.to_owned(), value);
            }
            Request::Claim { resource, lease, seen, record } => {
                let owned = self.compares_owner && self.view.owners.contains_key(resource);
                let alive = self.leases.contains_key(lease);
                let changed = self.compares_owner && of(&self.view.records, resource) != *seen;
                if owned || changed || !alive {
                    return Outcome::Refused;
                }
                let owner = Owner { head: from.to_owned(), number: record.number };
                let owner = Versioned { value: owner, revision: next, lease: *lease };
                self.view.owners.insert(resource.clone(), owner);
                let record = Versioned { value: record.clone(), revision: next, lease: 0 };
                self.view.records.insert(resource.clone(), record);
            }
            Request::Release { resource, revision } => {
                let owned = self.view.owners.get(resource).map(|owner| owner.revision);
                if owned != Some(*revision) {
                    return Outcome::Refused;
                }
                self.view.owners.remove(resource);
            }
            Request::Target { resource, seen, record }
            | Request::Report { resource, seen, record } => {
                if of(&self.view.records, resource) != *seen {
                    return Outcome::Refused;
                }
                let record = Versioned { value: record.clone(), revision: next, lease: 0 };
                self.view.records.insert(resource.clone(), record);
            }
        }
        self.revision = next;
        Outcome::Done(next)
    }
}
