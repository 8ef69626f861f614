//! The steps from a state to another one. Pure: nothing is observed and nothing is changed here.
//!
//! Steps that set something may be repeated without harm. So whatever the kernel could have removed
//! along with something else is set again: routes when an address of their link goes, IPv6
//! addresses when a link goes down, everything on a link that is made again.

use std::collections::{BTreeMap, BTreeSet};

use crate::cidr::Cidr;
use crate::state::{Address, Kind, Link, Mode, State};
use crate::step::Step;

/// Smallest MTU of IPv6 (RFC 8200, section 5): below it, the kernel removes its addresses.
pub const IPV6_MTU_MIN: u32 = 1280;

/// The steps from `observed` to `target`.
///
/// Links that Plimsoll has not made are changed if `adopted` names them, and are never made or
/// deleted; addresses and routes that it has not made are never removed, but set again on links
/// that it may change.
pub fn plan(observed: &State, target: &State, adopted: &BTreeSet<String>) -> Vec<Step> {
    let mut planner = Planner {
        observed,
        target,
        adopted,
        gone: removed(observed, target),
        detached: BTreeSet::new(),
        touched: BTreeSet::new(),
        unrouted: BTreeSet::new(),
        raised: BTreeSet::new(),
        steps: Vec::new(),
    };
    planner.stop_dhcp();
    planner.remove_routes();
    planner.remove_addresses();
    planner.remove_links();
    for name in target.bottom_up() {
        planner.build(name);
    }
    planner.set_addresses();
    planner.set_routes();
    planner.start_dhcp();
    planner.set_names();
    planner.steps
}

/// The links that Plimsoll has made and that do not stay on the path to `target`: they end, or are
/// made again.
pub fn removed<'a>(observed: &'a State, target: &State) -> BTreeSet<&'a str> {
    let stays = |name: &str, link: &Link| {
        let other = target.links.get(name);
        other.is_some_and(|other| other.is_made() && link.kind.can_become(&other.kind))
    };
    let made = || observed.links.iter().filter(|(_, link)| link.is_made());
    let mut gone: BTreeSet<&str> =
        made().filter(|(name, link)| !stays(name, link)).map(|(name, _)| name.as_str()).collect();
    loop {
        let on_gone = |link: &Link| link.kind.on().is_some_and(|on| gone.contains(on));
        let more: Vec<&str> = made()
            .filter(|(name, link)| !gone.contains(name.as_str()) && on_gone(link))
            .map(|(name, _)| name.as_str())
            .collect();
        if more.is_empty() {
            return gone;
        }
        gone.extend(more);
    }
}

struct Planner<'a> {
    observed: &'a State,
    target: &'a State,
    adopted: &'a BTreeSet<String>,
    /// Links that are deleted, some of them to be made again.
    gone: BTreeSet<&'a str>,
    /// Ports that were detached: the kernel has set them down and their MTU back.
    detached: BTreeSet<&'a str>,
    /// Links that may have lost addresses and routes.
    touched: BTreeSet<&'a str>,
    /// Links that may have lost routes.
    unrouted: BTreeSet<&'a str>,
    /// Links that were set up; the kernel sets the VLANs on them up.
    raised: BTreeSet<&'a str>,
    steps: Vec<Step>,
}

impl<'a> Planner<'a> {
    /// Whether a link may be changed.
    fn may(&self, name: &str) -> bool {
        let is_made = |state: &State| state.links.get(name).is_some_and(Link::is_made);
        self.adopted.contains(name) || is_made(self.observed) || is_made(self.target)
    }

    /// The link as it is, unless it is deleted.
    fn now(&self, name: &str) -> Option<&'a Link> {
        self.observed.links.get(name).filter(|_| !self.gone.contains(name))
    }

    /// Whether the link exists when all are built.
    fn is_built(&self, name: &str) -> bool {
        let made = self.target.links.get(name).is_some_and(Link::is_made);
        made || self.now(name).is_some()
    }

    /// Before all else, so that a lease ends on the link that has it.
    fn stop_dhcp(&mut self) {
        let stays = |name: &str| self.target.links.get(name).is_some_and(|link| link.dhcp);
        let on = self.observed.links.iter().filter(|(_, link)| link.dhcp);
        let ends = on.filter(|(name, _)| !stays(name) && self.may(name));
        let steps: Vec<Step> =
            ends.map(|(name, _)| Step::SetDhcp { link: name.clone(), on: false }).collect();
        self.steps.extend(steps);
    }

    /// Also where it is on, if the kernel may have removed the address of the lease: it is set
    /// again.
    fn start_dhcp(&mut self) {
        for (name, link) in &self.target.links {
            let lost = [&self.touched, &self.unrouted, &self.raised]
                .into_iter()
                .any(|set| set.contains(name.as_str()));
            let on = self.now(name).is_some_and(|now| now.dhcp);
            if link.dhcp && self.may(name) && self.is_built(name) && (lost || !on) {
                self.steps.push(Step::SetDhcp { link: name.clone(), on: true });
            }
        }
    }

    fn remove_routes(&mut self) {
        for route in &self.observed.routes {
            let stays = self.target.routes.contains(route);
            if route.is_made() && !stays && self.now(&route.link).is_some() {
                self.steps.push(Step::RemoveRoute(route.clone()));
            }
        }
    }

    fn remove_addresses(&mut self) {
        let observed: &'a State = self.observed;
        for (link, list) in &observed.addresses {
            if self.now(link).is_none() || !self.may(link) {
                continue;
            }
            let groups = Groups::of(list, self.target.addresses(link));
            // Secondary addresses before their primary, which takes them along.
            for address in groups.superfluous.into_iter().rev() {
                self.unrouted.insert(link);
                self.steps.push(Step::RemoveAddress { link: link.clone(), address });
            }
        }
    }

    fn remove_links(&mut self) {
        let observed: &'a State = self.observed;
        for (port, link) in &observed.links {
            let Some(controller) = link.controller.as_deref() else { continue };
            let stays = self.target.links.get(port).and_then(|l| l.controller.as_deref())
                == Some(controller);
            let detach = self.gone.contains(controller) || !stays;
            if detach && !self.gone.contains(port.as_str()) && self.may(port) {
                self.detached.insert(port);
                self.touched.insert(port);
                self.steps.push(Step::Detach { port: port.clone() });
            }
        }
        for name in observed.bottom_up().into_iter().rev() {
            if self.gone.contains(name) {
                self.steps.push(Step::DeleteLink(name.to_owned()));
            }
        }
    }

    /// Brings one link into its target state; those below it are there already.
    fn build(&mut self, name: &'a str) {
        if !self.may(name) || !self.is_built(name) {
            return;
        }
        let target = self.target;
        let Some(link) = target.links.get(name) else { return };
        let now = self.now(name);
        if now.is_none() {
            self.touched.insert(name);
            let (name, kind) = (name.to_owned(), link.kind.clone());
            self.steps.push(Step::CreateLink { name, kind, mtu: link.mtu });
        }
        if link.kind.on().is_some_and(|on| self.touched.contains(on)) {
            self.touched.insert(name);
        }
        if let Kind::Aggregation(mode) = &link.kind
            && link.is_made()
        {
            self.build_aggregation(name, mode);
        }
        self.set_mtu(name, link, now);
        self.set_up(name, link, now);
        self.set_advertisements(name, link, now);
    }

    /// Below the least MTU of IPv6 the kernel has no IPv6 on a link, and afterwards its default. A
    /// port gets its MTU later, and has no use for advertisements.
    fn set_advertisements(&mut self, name: &str, link: &Link, now: Option<&Link>) {
        let had_none = now.is_some_and(|now| now.mtu < IPV6_MTU_MIN);
        if link.mtu < IPV6_MTU_MIN || (had_none && link.controller.is_some()) {
            return;
        }
        if had_none || now.is_none_or(|now| now.advertisements != link.advertisements) {
            let (link, on) = (name.to_owned(), link.advertisements);
            self.steps.push(Step::SetAdvertisements { link, on });
        }
    }

    fn build_aggregation(&mut self, name: &'a str, mode: &Mode) {
        let target = self.target;
        let mut attached = false;
        for port in target.ports(name) {
            if !self.may(port) || !self.is_built(port) || self.is_attached(port, name) {
                continue;
            }
            self.touched.insert(port);
            let (link, aggregation) = (port.to_owned(), name.to_owned());
            self.steps.push(Step::SetUp { link: link.clone(), up: false });
            self.steps.push(Step::Attach { port: link, aggregation });
            attached = true;
        }
        let same = self.now(name).is_some_and(|now| now.kind == Kind::Aggregation(mode.clone()));
        let has_primary = matches!(mode, Mode::ActiveBackup { primary: Some(_), .. });
        // A link is made with all but its primary, which must be a port.
        let as_made = self.now(name).is_none() && !has_primary;
        if !(same || as_made) || (attached && has_primary) {
            self.steps.push(Step::SetMode { link: name.to_owned(), mode: mode.clone() });
        }
    }

    /// Whether a port is attached to this aggregation and has been all the time.
    fn is_attached(&self, port: &str, to: &str) -> bool {
        let now = self.now(port).filter(|_| !self.detached.contains(port));
        self.now(to).is_some() && now.is_some_and(|now| now.controller.as_deref() == Some(to))
    }

    fn set_mtu(&mut self, name: &'a str, link: &Link, now: Option<&Link>) {
        let Some(now) = now else { return };
        // A port gets the MTU of its aggregation when it is attached.
        let attached = link.controller.as_deref().is_none_or(|to| self.is_attached(name, to));
        let differs = now.mtu != link.mtu || self.detached.contains(name);
        // The MTU of what it is made on may have been lowered and raised again.
        let below = link.kind.on().is_some_and(|on| self.touched.contains(on));
        if attached && (differs || below) {
            if now.mtu.min(link.mtu) < IPV6_MTU_MIN {
                self.touched.insert(name);
            }
            self.steps.push(Step::SetMtu { link: name.to_owned(), mtu: link.mtu });
        }
    }

    fn set_up(&mut self, name: &'a str, link: &Link, now: Option<&Link>) {
        let is_up = now.is_some_and(|now| now.up) && !self.detached.contains(name);
        if let Some(to) = &link.controller {
            // Attaching sets it up.
            if self.is_attached(name, to) && !is_up {
                self.steps.push(Step::SetUp { link: name.to_owned(), up: true });
            }
            return;
        }
        let below = link.kind.on();
        let follows_down = below.is_some_and(|on| self.touched.contains(on));
        let follows_up = below.is_some_and(|on| self.raised.contains(on));
        if link.up && (!is_up || follows_down) {
            self.raised.insert(name);
            self.steps.push(Step::SetUp { link: name.to_owned(), up: true });
        }
        if !link.up && (is_up || (follows_up && now.is_some())) {
            self.touched.insert(name);
            self.steps.push(Step::SetUp { link: name.to_owned(), up: false });
        }
    }

    fn set_addresses(&mut self) {
        for (link, list) in &self.target.addresses {
            if !self.may(link) || !self.is_built(link) {
                continue;
            }
            let gone = self.gone.contains(link.as_str());
            let before = if gone { &[] } else { self.observed.addresses(link) };
            let groups = Groups::of(before, list);
            for address in list {
                if self.touched.contains(link.as_str()) || !groups.stay.contains(address) {
                    let (link, address) = (link.clone(), *address);
                    self.steps.push(Step::SetAddress { link, address });
                }
            }
        }
    }

    fn set_routes(&mut self) {
        let connected = self.target.routes.iter().filter(|r| r.gateway.is_none());
        let through = self.target.routes.iter().filter(|r| r.gateway.is_some());
        for route in connected.chain(through) {
            let link = route.link.as_str();
            if !self.may(link) || !self.is_built(link) {
                continue;
            }
            let lost = self.touched.contains(link) || self.unrouted.contains(link);
            if lost || !self.observed.routes.contains(route) {
                self.steps.push(Step::SetRoute(route.clone()));
            }
        }
    }

    fn set_names(&mut self) {
        if self.observed.dns != self.target.dns {
            self.steps.push(Step::SetDns(self.target.dns.clone()));
        }
        if self.observed.host_name != self.target.host_name {
            self.steps.push(Step::SetHostName(self.target.host_name.clone()));
        }
    }
}

/// The addresses of a link, compared network by network: the order within one decides which is the
/// primary.
struct Groups {
    /// Those that stay as they are.
    stay: Vec<Address>,
    /// Those of Plimsoll that are removed, some of them to be set again behind another one.
    superfluous: Vec<Address>,
}

impl Groups {
    fn of(observed: &[Address], target: &[Address]) -> Self {
        let mut groups: BTreeMap<Cidr, (Vec<Address>, Vec<Address>)> = BTreeMap::new();
        for address in observed.iter().filter(|a| a.made || target.contains(a)) {
            groups.entry(address.group()).or_default().0.push(*address);
        }
        for address in target {
            groups.entry(address.group()).or_default().1.push(*address);
        }
        let mut result = Self { stay: Vec::new(), superfluous: Vec::new() };
        for (observed, target) in groups.into_values() {
            let common = observed.iter().zip(&target).take_while(|(a, b)| a == b).count();
            let (stay, rest) = observed.split_at(common);
            result.stay.extend(stay);
            result.superfluous.extend(rest.iter().filter(|a| a.made));
        }
        result
    }
}

#[cfg(test)]
mod tests;
