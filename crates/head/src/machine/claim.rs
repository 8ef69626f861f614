//! Claims, and what is recorded of them: from which head and why a resource was taken over, and how
//! long that took.

use super::{Machine, Phase, Request, Resource, Time};
use crate::keys::{Cause, LeaseId, Phases, Record, Takeover, View};
use crate::limits::HEAD_RANK_DELAY;

impl Machine {
    /// Claims a resource without owner when this head's turn has come.
    pub(super) fn claim(
        &mut self,
        now: Time,
        view: &View,
        lease: LeaseId,
        name: &str,
        candidates: &[String],
    ) -> Option<Request> {
        let me = self.settings.name.clone();
        let rank = u32::try_from(candidates.iter().position(|head| *head == me)?).ok()?;
        let taken = self.takeover(view, name);
        let lost = taken.cause == Cause::HeadLost || !view.members.contains_key(&taken.from);
        let resource = self.resources.get_mut(name)?;
        let vacant = *resource.vacant.get_or_insert(now);
        if now < vacant + HEAD_RANK_DELAY * rank || now < resource.retry {
            return None;
        }
        let known = view.records.get(name);
        // Also if etcd has lost its keys, no number is used twice here.
        let number = known.map_or(0, |record| record.value.number);
        let number = number.max(resource.at_least).max(resource.number);
        let served = known.map_or(0, |record| record.value.served);
        let (number, last) = (number.saturating_add(1), Some(taken.clone()));
        let record = Record { number, target: me, served, last };
        let seen = known.map_or(0, |record| record.revision);
        (resource.free, resource.taken, resource.lost) = (vacant, taken, lost);
        resource.served = served;
        resource.enter(Phase::Claiming, now);
        Some(Request::Claim { resource: name.to_owned(), lease, seen, record })
    }

    /// The takeover by this head of a resource that no head owns now.
    fn takeover(&self, view: &View, name: &str) -> Takeover {
        let me = &self.settings.name;
        let record = view.records.get(name).map(|record| &record.value);
        let last = record.and_then(|record| record.last.as_ref());
        let from = last.map(|last| last.to.clone()).unwrap_or_default();
        let cause = match record {
            None => Cause::Start,
            Some(_) if from.is_empty() => Cause::Unknown,
            Some(record) if record.target == *me && from != *me => Cause::Command,
            // A head that has restarted has owned nothing yet.
            Some(_)
                if from == *me && self.resources.get(name).is_none_or(|one| one.number == 0) =>
            {
                Cause::HeadLost
            }
            Some(_) => match view.members.get(&from) {
                None => Cause::HeadLost,
                Some(former) if former.value.draining => Cause::Drain,
                Some(former) if former.value.cut.iter().any(|one| one == name) => {
                    Cause::Unreachable
                }
                Some(_) => Cause::ServerEnded,
            },
        };
        let cephfs_client = last.and_then(|last| last.cephfs_client);
        Takeover { from, to: me.clone(), cause, cephfs_client, ..Takeover::default() }
    }

    /// The number of the last ownership that this head knows of. What is confirmed of the former
    /// owner holds up to it: later ones were not looked at.
    ///
    /// # Errors
    /// This head owns the resource, so that there is no former owner.
    pub fn last_known(&self, name: &str) -> Result<u64, String> {
        let own = self.resources.get(name);
        let serves = |one: &&Resource| {
            matches!(one.phase, Phase::Starting | Phase::Owner | Phase::HandingOver)
        };
        if own.filter(serves).is_some() {
            let me = &self.settings.name;
            return Err(format!(
                "the head {me} owns {name} already: there is no former owner to confirm as down"
            ));
        }
        let view = self.view.as_ref().map(|(_, view)| view);
        let record = view.and_then(|view| view.records.get(name)).map(|one| one.value.number);
        let owner = view.and_then(|view| view.owners.get(name)).map(|one| one.value.number);
        Ok(record.max(owner).max(own.map(|own| own.number)).unwrap_or(0))
    }

    /// The client of CephFS of the former owner, if that was lost with its head.
    pub fn lost_client(&self, name: &str) -> Option<u64> {
        let resource = self.resources.get(name).filter(|one| one.lost)?;
        resource.taken.cephfs_client
    }

    /// This ownership has its lock by this client of CephFS, which is recorded in etcd: a head that
    /// takes the resource over from one that is lost must know it.
    pub fn locked_by(&mut self, name: &str, number: u64, client: u64) {
        if let Some(resource) = self.resources.get_mut(name).filter(|one| one.number == number) {
            resource.taken.cephfs_client = Some(client);
            resource.report = Some(resource.taken.clone());
        }
    }

    /// A takeover is done: this number serves since `at` (seconds since the epoch), and its last
    /// phases took so long. It is recorded in etcd.
    pub fn served(&mut self, name: &str, number: u64, at: u64, phases: Phases) -> Option<Takeover> {
        let resource = self.resources.get_mut(name).filter(|one| one.number == number)?;
        let (hand_over, claim) = resource.before;
        let phases = Some(Phases { hand_over, claim, ..phases });
        let done = Takeover { at, phases, ..resource.taken.clone() };
        resource.report = Some(done.clone());
        Some(done)
    }

    /// The next takeover that is to be recorded; one that is not the last any more is dropped.
    pub(super) fn report_next(&mut self, view: &View) -> Option<Request> {
        for (name, resource) in &mut self.resources {
            let Some(done) = &resource.report else { continue };
            let known = view.records.get(name);
            let Some(known) = known.filter(|one| one.value.number <= resource.number) else {
                resource.report = None;
                continue;
            };
            if known.value.number < resource.number {
                // The view is older than the claim.
                continue;
            }
            let (former, number) = (known.value.served, known.value.number);
            let served = if done.phases.is_some() { number } else { former };
            let record = Record { served, last: Some(done.clone()), ..known.value.clone() };
            return Some(Request::Report { resource: name.clone(), seen: known.revision, record });
        }
        None
    }
}
