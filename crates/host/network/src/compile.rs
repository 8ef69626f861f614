//! The state that a configuration requires, given the state now and what was changed before.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::configuration::{Class, Configuration, Datalink, Interface};
use crate::plan::IPV6_MTU_MIN;
use crate::state::{Address, Dns, Kind, Link, MARK, Mode, Owner, Route, State};

/// MTU of an aggregation that sets none.
const MTU: u32 = 1500;

/// What Plimsoll has changed without having made it, as it was before: what removing all of the
/// configuration brings back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Links.
    pub links: BTreeMap<String, Baseline>,
    /// Name servers.
    pub dns: Option<Dns>,
    /// The host name.
    pub host_name: Option<String>,
}

/// A link as it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// MTU in bytes.
    pub mtu: u32,
    /// Whether it was up.
    pub up: bool,
    /// Whether it used router advertisements.
    pub advertisements: bool,
}

impl Record {
    /// The links that Plimsoll may change though it has not made them: those of both records.
    pub fn adopted(&self, other: &Self) -> BTreeSet<String> {
        self.links.keys().chain(other.links.keys()).cloned().collect()
    }
}

/// The state that `configuration` requires, and the record that belongs to it. What the
/// configuration names and the machine does not have is left out.
pub fn compile(
    configuration: &Configuration,
    observed: &State,
    record: &Record,
) -> (State, Record) {
    let mut compiler = Compiler {
        configuration,
        observed,
        record,
        state: without_made(observed, record),
        next: Record::default(),
        entered: BTreeSet::new(),
    };
    let names: Vec<&str> = configuration.datalinks.keys().map(String::as_str).collect();
    for name in names {
        compiler.datalink(name);
    }
    compiler.interfaces();
    compiler.without_ipv6();
    compiler.addresses();
    compiler.routes();
    compiler.names();
    compiler.state.normalise();
    (compiler.state, compiler.next)
}

/// What would be without Plimsoll.
fn without_made(observed: &State, record: &Record) -> State {
    let mut state = observed.clone();
    state.links.retain(|_, link| !link.is_made());
    for (name, baseline) in &record.links {
        if let Some(link) = state.links.get_mut(name) {
            link.mtu = baseline.mtu;
            link.up = baseline.up;
            link.advertisements = baseline.advertisements;
            link.dhcp = false;
            let controller = link.controller.as_ref();
            let made =
                controller.and_then(|name| observed.links.get(name)).is_some_and(Link::is_made);
            if made {
                link.controller = None;
            }
        }
    }
    state
}

struct Compiler<'a> {
    configuration: &'a Configuration,
    observed: &'a State,
    record: &'a Record,
    state: State,
    next: Record,
    /// Datalinks that were entered, or are being entered: a loop ends there.
    entered: BTreeSet<String>,
}

impl<'a> Compiler<'a> {
    /// Enters a datalink after those that it is made of or made on; whether it exists.
    fn datalink(&mut self, name: &str) -> bool {
        let Some(Datalink { class, mtu }) = self.configuration.datalinks.get(name) else {
            return false;
        };
        if !self.entered.insert(name.to_owned()) {
            let made = self.state.links.get(name).is_some_and(Link::is_made);
            return made || self.next.links.contains_key(name);
        }
        match class {
            Class::Device => self.device(name, *mtu),
            Class::Vlan { link, id } => {
                let kind = Kind::Vlan { on: link.clone(), id: *id };
                self.made_on(name, link, kind, *mtu)
            }
            Class::Partition { link, mode, .. } => class.pkey().is_some_and(|pkey| {
                let kind = Kind::Partition { on: link.clone(), pkey, mode: *mode };
                self.made_on(name, link, kind, *mtu)
            }),
            Class::Aggregation { links, mode } => {
                self.aggregation(name, links, mode.clone(), *mtu);
                true
            }
        }
    }

    fn device(&mut self, name: &str, mtu: Option<u32>) -> bool {
        let Some(link) = self.state.links.get_mut(name) else { return false };
        let Link { mtu: now, up, advertisements, .. } = *link;
        let baseline = Baseline { mtu: now, up, advertisements };
        self.next.links.insert(name.to_owned(), baseline);
        link.mtu = mtu.unwrap_or(link.mtu);
        link.up = true;
        true
    }

    fn made_on(&mut self, name: &str, on: &str, kind: Kind, mtu: Option<u32>) -> bool {
        if !self.datalink(on) {
            return false;
        }
        let below = self.state.links.get(on).map_or(MTU, |link| link.mtu);
        self.make(name, kind, mtu.unwrap_or(below));
        true
    }

    fn aggregation(&mut self, name: &str, links: &[String], mode: Mode, mtu: Option<u32>) {
        let ports: Vec<&String> = links.iter().filter(|link| self.datalink(link)).collect();
        let mode = match mode {
            Mode::ActiveBackup { primary, probes } => {
                let primary = primary.filter(|primary| ports.contains(&primary));
                Mode::ActiveBackup { primary, probes }
            }
            lacp @ Mode::Lacp { .. } => lacp,
        };
        let mtu = mtu.unwrap_or(MTU);
        self.make(name, Kind::Aggregation(mode), mtu);
        for port in ports {
            if let Some(link) = self.state.links.get_mut(port) {
                link.controller = Some(name.to_owned());
                link.mtu = mtu;
            }
        }
    }

    fn make(&mut self, name: &str, kind: Kind, mtu: u32) {
        let before = self.observed.links.get(name).filter(|link| link.kind.can_become(&kind));
        let link = Link {
            mtu_range: before.map_or((0, 0), |link| link.mtu_range),
            kind,
            mtu,
            up: true,
            controller: None,
            owner: Owner::Plimsoll,
            advertisements: false,
            dhcp: false,
        };
        self.state.links.insert(name.to_owned(), link);
    }

    /// The links of groups, and what interfaces set on links.
    fn interfaces(&mut self) {
        for (name, interface) in &self.configuration.interfaces {
            if interface.is_group() {
                let primary = interface.primary().map(str::to_owned);
                // Without its addresses no host answers a probe, and no link would be used.
                let probes =
                    if interface.enabled { interface.probes.clone() } else { BTreeSet::new() };
                let mode = Mode::ActiveBackup { primary, probes };
                self.aggregation(name, &interface.links, mode, None);
            }
            let link = interface.link(name).and_then(|link| self.state.links.get_mut(link));
            if let Some(link) = link {
                link.advertisements = interface.enabled && interface.advertisements;
                link.dhcp = interface.enabled && interface.dhcp;
            }
        }
    }

    /// The kernel has no IPv6 on links below its least MTU.
    fn without_ipv6(&mut self) {
        let links = self.state.links.values_mut();
        links.filter(|link| link.mtu < IPV6_MTU_MIN).for_each(|link| link.advertisements = false);
    }

    /// The link of an enabled interface, if the machine has it.
    fn link(&self, name: &'a str, interface: &'a Interface) -> Option<&'a str> {
        let link = interface.link(name).filter(|_| interface.enabled)?;
        self.state.links.contains_key(link).then_some(link)
    }

    fn addresses(&mut self) {
        let mut made: BTreeMap<&str, Vec<Address>> = BTreeMap::new();
        for (name, interface) in &self.configuration.interfaces {
            if let Some(link) = self.link(name, interface) {
                made.entry(link)
                    .or_default()
                    .extend(interface.addresses.iter().map(|a| Address::made(*a)));
            }
        }
        let mut addresses: BTreeMap<String, Vec<Address>> = BTreeMap::new();
        for link in self.state.links.keys() {
            let made = made.remove(link.as_str()).unwrap_or_default();
            // Those that stay keep their order, so that no primary is set again.
            let mut list: Vec<Address> = self.observed.addresses(link).to_vec();
            list.retain(|a| !a.made || made.contains(a));
            let is_new = |a: &Address| !list.iter().any(|old| old.cidr == a.cidr);
            let new: Vec<Address> = made.into_iter().filter(is_new).collect();
            list.extend(new);
            addresses.insert(link.clone(), list);
        }
        self.state.addresses = addresses;
    }

    fn routes(&mut self) {
        let state = &self.state;
        let mut routes: Vec<Route> = self.observed.routes.clone();
        routes.retain(|route| !route.is_made() && stays(state, self.record, &self.next, route));
        for item in self.configuration.routes.values() {
            let link = self.configuration.reaches(item.gateway).map(|(_, link)| link);
            let Some(link) = link.filter(|link| state.links.contains_key(*link)) else { continue };
            routes.push(Route {
                destination: item.destination.network(),
                gateway: Some(item.gateway),
                link: link.to_owned(),
                metric: item.metric,
                source: None,
                protocol: MARK,
            });
        }
        self.state.routes = routes;
    }

    fn names(&mut self) {
        let set = self.configuration.dns.clone();
        let before = self.record.dns.as_ref().unwrap_or(&self.observed.dns).clone();
        self.next.dns = set.is_some().then(|| before.clone());
        self.state.dns = set.unwrap_or(before);
        let set = self.configuration.host_name.clone();
        let before = self.record.host_name.as_ref().unwrap_or(&self.observed.host_name).clone();
        self.next.host_name = set.is_some().then(|| before.clone());
        self.state.host_name = set.unwrap_or(before);
    }
}

/// Whether a route that Plimsoll has not made can stay: its link does, and reaches its gateway.
fn stays(state: &State, record: &Record, next: &Record, route: &Route) -> bool {
    let Some(link) = state.links.get(&route.link) else { return false };
    let adopted = |record: &Record| record.links.contains_key(&route.link);
    if !link.is_made() && !adopted(record) && !adopted(next) {
        return true;
    }
    let addresses = state.addresses(&route.link);
    let has_source = |source| addresses.iter().any(|a| a.cidr.address == source);
    let is_reached = |gateway| addresses.iter().any(|a| a.cidr.contains(gateway));
    let is_local = |gateway: std::net::IpAddr| match gateway {
        std::net::IpAddr::V4(_) => false,
        std::net::IpAddr::V6(a) => a.is_unicast_link_local(),
    };
    link.up
        && link.controller.is_none()
        && route.source.is_none_or(has_source)
        && route.gateway.is_none_or(|gateway| is_reached(gateway) || is_local(gateway))
}
