//! The network as its nodes show it: what the machine has now.

use std::collections::BTreeMap;
use std::path::Path as FilePath;
use std::time::{Duration, Instant};

use base::clock::{Deadline, NS_PER_S, wall_ns};
use base::node::{Path, Value};
use host_network::backend::{Backend, Failure};
use host_network::configuration::{Configuration, Interface};
use host_network::dhcp::{Holding, Phase};
use host_network::linux::{Files, Linux};
use host_network::state::{Kind, Link, Owner, Route, State};
use parking_lot::Mutex;

use super::carrier::Carriers;
use super::wanted::PREFIX;
use crate::problems::{Fault, Severity};

/// How long an observation is good: a page reads tens of nodes at once.
const GOOD: Duration = Duration::from_millis(500);

/// The same of leases by DHCP, for which the helper is queried.
const LEASES_GOOD: Duration = Duration::from_millis(900);

/// Leases by DHCP, by link.
pub(super) type Leases = BTreeMap<String, Holding>;

/// What observes this machine's network: one socket for as long as it works, and the last
/// observation.
#[derive(Default)]
pub(super) struct Observer {
    linux: Mutex<Option<Linux>>,
    last: Mutex<Option<(Instant, Result<State, String>)>>,
    leases: Mutex<Option<(Deadline, Leases)>>,
}

impl Observer {
    /// Observes again the next time.
    pub(super) fn forget(&self) {
        *self.last.lock() = None;
        *self.leases.lock() = None;
    }

    /// All links, and whether each has a carrier.
    ///
    /// # Errors
    /// Why the network cannot be observed.
    pub(super) fn carriers(&self) -> Result<Carriers, String> {
        self.ask(Linux::carriers)
    }

    /// Queries the kernel. A socket that has failed is replaced the next time: an answer may still
    /// be in flight.
    fn ask<T>(&self, ask: impl FnOnce(&mut Linux) -> Result<T, Failure>) -> Result<T, String> {
        let mut kept = self.linux.lock();
        let mut linux = match kept.take() {
            Some(linux) => linux,
            None => Linux::open(Files::default()).map_err(|e| e.to_string())?,
        };
        let answer = ask(&mut linux).map_err(|e| e.to_string())?;
        *kept = Some(linux);
        Ok(answer)
    }

    fn with<T>(&self, with: impl FnOnce(&State) -> T) -> Result<T, String> {
        let mut last = self.last.lock();
        if last.as_ref().is_none_or(|(at, _)| at.elapsed() > GOOD) {
            *last = Some((Instant::now(), self.ask(Linux::observe)));
        }
        match last.as_ref() {
            Some((_, Ok(state))) => Ok(with(state)),
            Some((_, Err(why))) => Err(why.clone()),
            None => Err("nothing was observed".to_owned()),
        }
    }
}

/// State properties of a node.
pub(super) type Shown = Vec<(&'static str, Value)>;

impl Observer {
    /// Links that Plimsoll has not made.
    pub(super) fn devices(&self) -> Vec<String> {
        let names = |state: &State| {
            let links = state.links.iter().filter(|(_, link)| !link.is_made());
            links.map(|(name, _)| name.clone()).collect()
        };
        self.with(names).unwrap_or_default()
    }

    /// Leases by DHCP, by `ask` unless the last result is recent.
    pub(super) fn leases(&self, ask: impl FnOnce() -> Option<Leases>) -> Leases {
        if let Some((good, leases)) = &*self.leases.lock()
            && !good.passed()
        {
            return leases.clone();
        }
        // A transaction may have the connection: then it is as it was.
        let leases = ask();
        let mut last = self.leases.lock();
        if let Some(leases) = leases {
            *last = Some((Deadline::after(LEASES_GOOD), leases));
        }
        last.as_ref().map(|(_, leases)| leases.clone()).unwrap_or_default()
    }

    /// The state of a node.
    ///
    /// # Errors
    /// Why the network cannot be observed.
    pub(super) fn shown(&self, at: &Path, configuration: &Configuration) -> Result<Shown, String> {
        let segments: Vec<&str> = at.segments().iter().map(String::as_str).collect();
        let inside = segments.get(PREFIX.len()..).unwrap_or_default();
        self.with(|state| match inside {
            ["devices", name] => device(state, name),
            ["datalinks", name] => datalink(state, name),
            ["interfaces", name] => interface(state, configuration, name),
            ["routes"] => vec![("found", texts(&state.routes))],
            ["routes", name] => route(state, configuration, name),
            ["dns"] => vec![
                ("found_servers", texts(&state.dns.servers)),
                ("found_domains", texts(&state.dns.domains)),
            ],
            ["identity"] => vec![("found", Value::text(&state.host_name))],
            _ => Vec::new(),
        })
    }
}

fn up_or_down(link: &Link) -> Value {
    Value::text(if link.up { "up" } else { "down" })
}

fn addresses(state: &State, link: &str) -> Value {
    texts(state.addresses(link).iter().map(|address| address.cidr))
}

fn device(state: &State, name: &str) -> Shown {
    let Some(link) = state.links.get(name) else { return Vec::new() };
    let kind = match &link.kind {
        Kind::Device { infiniband: true, .. } => "InfiniBand".to_owned(),
        Kind::Device { kind, .. } if kind.is_empty() => "Ethernet".to_owned(),
        other => other.to_string(),
    };
    let file = |file: &str| {
        // The name is one that the kernel has given a moment ago: it has no slash.
        let path = FilePath::new("/sys/class/net").join(name).join(file);
        std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
    };
    let mut shown = vec![
        ("kind", Value::Text(if name == "lo" { "loopback".to_owned() } else { kind })),
        ("state", up_or_down(link)),
        ("mac", Value::Text(file("address"))),
        ("mtu", Value::number(link.mtu)),
        ("mtu_max", Value::number(link.mtu_range.1)),
        ("addresses", addresses(state, name)),
        ("used_by", Value::Text(link.controller.clone().unwrap_or_default())),
    ];
    // -1 without a carrier.
    if let Some(speed) = file("speed").parse::<i64>().ok().filter(|speed| *speed > 0) {
        let duplex = file("duplex");
        shown.push(("speed", Value::Text(format!("{speed} Mbit/s {duplex}").trim().to_owned())));
    }
    if let Owner::Manager(manager) = &link.owner {
        shown.push(("manager", Value::text(manager)));
        shown.push(("release", Value::Text(release(manager, name))));
    }
    shown
}

/// What an administrator does so that a manager leaves a device alone.
fn release(manager: &str, name: &str) -> String {
    match manager {
        "NetworkManager" => format!("nmcli device set {name} managed no"),
        _ => format!(
            "put [Match] Name={name} and [Link] Unmanaged=yes into \
             /etc/systemd/network/00-{name}.network, then: networkctl reload"
        ),
    }
}

fn datalink(state: &State, name: &str) -> Shown {
    let Some(link) = state.links.get(name) else {
        return vec![("state", Value::text("absent"))];
    };
    let mut shown = vec![
        ("state", up_or_down(link)),
        ("found", Value::Text(link.kind.to_string())),
        ("found_mtu", Value::number(link.mtu)),
    ];
    if let Kind::Partition { pkey, .. } = &link.kind {
        shown.push(("partition", Value::Text(pkey.to_string())));
    }
    shown
}

fn interface(state: &State, configuration: &Configuration, name: &str) -> Shown {
    let Some(interface) = configuration.interfaces.get(name) else { return Vec::new() };
    if !interface.enabled {
        return vec![("state", Value::text("disabled"))];
    }
    let link = interface.link(name).unwrap_or(name);
    match state.links.get(link) {
        None => vec![("state", Value::text("absent"))],
        Some(found) => vec![("state", up_or_down(found)), ("found", addresses(state, link))],
    }
}

fn route(state: &State, configuration: &Configuration, name: &str) -> Shown {
    let Some(item) = configuration.routes.get(name) else { return Vec::new() };
    let is_it = |route: &Route| {
        route.destination == item.destination.network()
            && route.gateway == Some(item.gateway)
            && route.metric == item.metric
    };
    let found = state.routes.iter().any(is_it);
    vec![("state", Value::text(if found { "up" } else { "absent" }))]
}

fn texts<T: ToString>(list: impl IntoIterator<Item = T>) -> Value {
    Value::texts(list.into_iter().map(|one| one.to_string()))
}

/// What an interface has by DHCP.
pub(super) fn lease(interface: &Interface, name: &str, leases: &Leases) -> Shown {
    if !interface.enabled || !interface.dhcp {
        return Vec::new();
    }
    let Some(holding) = interface.link(name).and_then(|link| leases.get(link)) else {
        return vec![("lease_state", Value::text("searching"))];
    };
    let phase = match holding.phase {
        Phase::Searching => "searching",
        Phase::Bound => "bound",
        Phase::Renewing => "renewing",
        Phase::Rebinding => "rebinding",
    };
    let mut shown = vec![("lease_state", Value::text(phase))];
    if let Some(lease) = holding.valid(now_s()) {
        shown.push(("lease", Value::Text(lease.cidr.to_string())));
        shown.push(("lease_server", Value::Text(lease.server.to_string())));
        shown.push(("lease_since", time(holding.since)));
        shown.extend(lease.until().map(|until| ("lease_until", time(until))));
    }
    shown
}

/// What is wrong with the leases of enabled interfaces, in a sentence.
pub(super) fn without_lease(configuration: &Configuration, leases: &Leases) -> Option<String> {
    let all: Vec<String> =
        wrong_leases(configuration, leases).map(|(_, _, sentence)| sentence).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// The same as problems of the machine.
pub(super) fn lease_faults(configuration: &Configuration, leases: &Leases) -> Vec<Fault> {
    let fault = |(name, is_valid, sentence): (&str, bool, String)| {
        let (severity, impact) = match is_valid {
            true => (Severity::Major, "The interface loses its address when the lease ends."),
            false => (Severity::Critical, "The interface has no address by DHCP."),
        };
        Fault {
            id: format!("lease-{name}"),
            severity,
            what: format!("{sentence}."),
            impact: impact.to_owned(),
            remedy: "Check the DHCP server and the network between.".to_owned(),
        }
    };
    wrong_leases(configuration, leases).map(fault).collect()
}

/// Enabled interfaces of which the lease is missing or may end, each with whether it is valid yet.
fn wrong_leases<'a>(
    configuration: &'a Configuration,
    leases: &'a Leases,
) -> impl Iterator<Item = (&'a str, bool, String)> {
    let now = now_s();
    let enabled = configuration.interfaces.iter().filter(|(_, one)| one.enabled && one.dhcp);
    enabled.filter_map(move |(name, interface)| {
        let holding = interface.link(name).and_then(|link| leases.get(link))?;
        let sentence = format!("interface {name}: {}", holding.problem(now)?);
        Some((name.as_str(), holding.valid(now).is_some(), sentence))
    })
}

/// A time as nodes have it.
fn time(seconds: u64) -> Value {
    Value::number(seconds)
}

fn now_s() -> u64 {
    wall_ns() / NS_PER_S
}

#[cfg(test)]
mod tests;
