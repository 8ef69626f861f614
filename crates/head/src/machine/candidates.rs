//! Which heads may own a resource, and which one is to: commands, drains, and heads that clients do
//! not reach.

use super::{Machine, Phase};
use crate::keys::{Member, View};

impl Machine {
    /// Hands over all resources, and takes none over; or ends that.
    ///
    /// # Errors
    /// No other head may take over a resource that this one owns.
    pub fn drain(&mut self, on: bool) -> Result<(), String> {
        if on && !self.draining {
            let none = View::default();
            let view = self.view.as_ref().map_or(&none, |(_, view)| view);
            let owned = self.resources.iter().filter(|(_, one)| one.phase != Phase::Offline);
            let me = &self.settings.name;
            let stays = |name: &&String| self.candidates(view, name).iter().all(|one| one == me);
            if let Some(name) = owned.map(|(name, _)| name).find(stays) {
                return Err(self.no_other(view, name));
            }
        }
        self.draining = on;
        Ok(())
    }

    /// Hands over all resources as far as other heads can take them, for this head ends.
    pub fn end(&mut self) {
        (self.draining, self.ending) = (true, true);
    }

    /// Whether another head may take over what this one has, so that it is worth waiting for.
    pub fn has_heirs(&self) -> bool {
        let Some((_, view)) = &self.view else { return false };
        let me = &self.settings.name;
        let mut owned = self.resources.iter().filter(|(_, one)| one.phase != Phase::Offline);
        owned.all(|(name, _)| self.claimants(view, name).iter().any(|head| head != me))
    }

    /// Whether clients reach the address of a resource at this head; if not, why not.
    pub fn set_cut(&mut self, resource: &str, why: Option<String>) {
        if let Some(resource) = self.resources.get_mut(resource) {
            resource.cut = why;
        }
    }

    /// Sets the head that is to own a resource.
    ///
    /// # Errors
    /// No such resource, or that head is not there.
    pub fn set_target(&mut self, resource: &str, head: &str) -> Result<(), String> {
        if !self.resources.contains_key(resource) {
            return Err(format!("{resource} is not a resource of this head"));
        }
        let members = self.view.as_ref().map(|(_, view)| &view.members);
        let Some(member) = members.and_then(|all| all.get(head)) else {
            return Err(format!("the head {head} is not a member of the cluster now"));
        };
        // What is true of this head may not be in etcd yet, and a command ends its failures.
        let member = match head == self.settings.name {
            true => Member { failed: Vec::new(), ..self.member() },
            false => member.value.clone(),
        };
        if let Some(why) = obstacle(&member, head, resource) {
            return Err(why);
        }
        self.targets.retain(|(one, _)| one != resource);
        self.targets.push((resource.to_owned(), head.to_owned()));
        Ok(())
    }

    /// Lets this head try a resource again that has failed here.
    pub fn retry(&mut self, resource: &str) {
        if let Some(resource) = self.resources.get_mut(resource) {
            (resource.failed, resource.failures, resource.retry) = (None, 0, super::Time::ZERO);
        }
    }

    /// What others are to know of this head.
    pub(super) fn member(&self) -> Member {
        let names = |is: fn(&super::Resource) -> bool| {
            let found = self.resources.iter().filter(|(_, resource)| is(resource));
            found.map(|(name, _)| name.clone()).collect()
        };
        Member {
            draining: self.draining,
            failed: names(|resource| resource.failed.is_some()),
            cut: names(|resource| resource.cut.is_some()),
            ending: self.ending,
        }
    }

    /// Heads that may own a resource, the preferred ones first.
    pub(super) fn candidates(&self, view: &View, name: &str) -> Vec<String> {
        self.heads(view, name, |member| obstacle(member, "", name).is_none())
    }

    /// Heads that claim a resource without an owner. If none may own it, those that drain and those
    /// that clients do not reach, so that it is served as soon as it can be.
    pub(super) fn claimants(&self, view: &View, name: &str) -> Vec<String> {
        let able = self.candidates(view, name);
        if !able.is_empty() {
            return able;
        }
        let fails = |member: &Member| member.failed.iter().any(|one| one == name);
        self.heads(view, name, |member| !member.ending && !fails(member))
    }

    fn heads(&self, view: &View, name: &str, may: impl Fn(&Member) -> bool) -> Vec<String> {
        let (me, own) = (&self.settings.name, self.member());
        let may = |head: &&String| match view.members.get(*head) {
            _ if *head == me => may(&own),
            Some(member) => may(&member.value),
            None => false,
        };
        let target = view.records.get(name).map(|record| &record.value.target);
        let preferred = self.settings.resources.iter().find(|(one, _)| one == name);
        let first = target.into_iter().chain(preferred.map(|(_, head)| head));
        let mut list: Vec<String> = Vec::new();
        for head in first.chain(view.members.keys()).chain(std::iter::once(me)).filter(may) {
            if !list.contains(head) {
                list.push(head.clone());
            }
        }
        list
    }

    /// Whether this head is to give a resource away that it owns.
    fn leaves(&self, name: &str) -> bool {
        let cut = self.resources.get(name).is_some_and(|resource| resource.cut.is_some());
        self.draining || cut
    }

    /// The head to which this one hands over a resource that it owns, if it is to.
    pub(super) fn next_owner(&self, view: &View, name: &str) -> Option<String> {
        let (me, able) = (&self.settings.name, self.candidates(view, name));
        let target = view.records.get(name).map(|record| &record.value.target);
        if let Some(target) = target.filter(|target| *target != me && able.contains(target)) {
            return Some(target.clone());
        }
        let heirs = if self.ending { self.claimants(view, name) } else { able };
        heirs.into_iter().find(|head| head != me).filter(|_| self.leaves(name))
    }

    /// Why this head keeps a resource that it is to give away.
    pub(super) fn kept(&self, view: &View, name: &str) -> Option<String> {
        self.leaves(name).then(|| self.no_other(view, name))
    }

    /// Why no other head may own a resource.
    fn no_other(&self, view: &View, name: &str) -> String {
        let others = view.members.iter().filter(|(head, _)| **head != self.settings.name);
        let why: Vec<_> =
            others.filter_map(|(head, member)| obstacle(&member.value, head, name)).collect();
        match why.as_slice() {
            [] => format!("no other head may take {name} over: no other one is a member"),
            why => format!("no other head may take {name} over: {}", why.join(", ")),
        }
    }
}

/// Why a head may not own a resource.
fn obstacle(member: &Member, head: &str, name: &str) -> Option<String> {
    let has = |list: &[String]| list.iter().any(|one| one == name);
    match member {
        _ if member.draining || member.ending => Some(format!("the head {head} drains")),
        _ if has(&member.failed) => Some(format!("{name} has failed on the head {head}")),
        _ if has(&member.cut) => Some(format!("clients do not reach {name} at the head {head}")),
        _ => None,
    }
}
