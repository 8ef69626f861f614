//! Routes, name servers, host name.

use std::collections::BTreeMap;

use crate::cidr::Cidr;
use crate::configuration::{Configuration, RouteItem};

use super::{Machine, Refusals};

/// Name servers that resolvers read (resolv.conf(5), MAXNS).
const SERVERS_MAX: usize = 3;
/// Longest host name (HOST_NAME_MAX of Linux).
const HOST_NAME_MAX: usize = 64;
/// Longest label of a domain name (RFC 1035, section 2.3.4).
const LABEL_MAX: usize = 63;
/// Longest domain name (RFC 1035, section 2.3.4).
const DOMAIN_MAX: usize = 253;

pub(super) fn check(configuration: &Configuration, machine: Machine<'_>, refusals: &mut Refusals) {
    let mut first: BTreeMap<(Cidr, u32), &str> = BTreeMap::new();
    for (name, route) in &configuration.routes {
        let item = format!("routes/{name}");
        one(configuration, machine, &item, route, refusals);
        if let Some(other) = first.insert((route.destination, route.metric), name) {
            let sentence = format!(
                "{other} has the destination {} with the metric {} already",
                route.destination, route.metric
            );
            refusals.add(&item, "destination", sentence);
        }
    }
    names(configuration, refusals);
}

fn one(
    configuration: &Configuration,
    machine: Machine<'_>,
    item: &str,
    route: &RouteItem,
    refusals: &mut Refusals,
) {
    let RouteItem { destination, gateway, metric } = route;
    if destination.network() != *destination {
        let sentence = format!("{destination} is not a network: write {}", destination.network());
        refusals.add(item, "destination", sentence);
    }
    if !destination.is_ipv4() && *metric == 0 {
        let sentence = "the metric of a route of IPv6 is at least 1; the usual one is 1024";
        refusals.add(item, "metric", sentence.to_owned());
    }
    if destination.is_ipv4() != gateway.is_ipv4() {
        let sentence = format!("{gateway} is not of the protocol of {destination}");
        refusals.add(item, "gateway", sentence);
    } else if configuration.reaches(*gateway).is_none() {
        let sentence = format!("{gateway} is in no network of an enabled interface");
        refusals.add(item, "gateway", sentence);
    }
    let own = configuration
        .interfaces
        .iter()
        .find(|(_, interface)| interface.addresses.iter().any(|cidr| cidr.address == *gateway));
    if let Some((name, _)) = own {
        refusals.add(item, "gateway", format!("{gateway} is an address of the interface {name}"));
    }
    let same = |other: &&crate::state::Route| {
        !other.is_made() && other.destination == *destination && other.metric == *metric
    };
    if let Some(other) = machine.observed.routes.iter().find(same) {
        let sentence = format!("the route {other} exists, and Plimsoll has not made it");
        refusals.add(item, "destination", sentence);
    }
}

fn names(configuration: &Configuration, refusals: &mut Refusals) {
    if let Some(dns) = &configuration.dns {
        if dns.servers.len() > SERVERS_MAX {
            let sentence = format!("resolvers read {SERVERS_MAX} name servers");
            refusals.add("dns", "servers", sentence);
        }
        if let Some(server) = dns.servers.iter().find(|s| s.is_unspecified() || s.is_multicast()) {
            refusals.add("dns", "servers", format!("{server} is not an address of a host"));
        }
        for domain in dns.domains.iter().filter(|domain| !is_domain(domain, DOMAIN_MAX)) {
            refusals.add("dns", "domains", format!("{domain:?} is not a domain name"));
        }
    }
    let host_name = configuration.host_name.as_ref();
    if let Some(name) = host_name.filter(|name| !is_domain(name, HOST_NAME_MAX)) {
        let sentence = format!(
            "{name:?} is not a host name: up to {HOST_NAME_MAX} letters, digits and hyphens in \
             labels that dots separate"
        );
        refusals.add("identity", "host_name", sentence);
    }
}

/// Whether a text is a name of labels (RFC 1123, section 2.1).
fn is_domain(text: &str, max: usize) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= LABEL_MAX
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    text.len() <= max && text.split('.').all(is_label)
}
