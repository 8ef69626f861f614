//! Interfaces: their links, addresses, and that the administration stays within reach.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::cidr::Cidr;
use crate::configuration::{Configuration, Interface};
use crate::plan::IPV6_MTU_MIN;

use super::{Machine, PROBES_MAX, Refusals, is_foreign, wrong_name};

/// Why an interface cannot have DHCP.
const NO_DHCP: &str = "DHCP over InfiniBand (RFC 4390) is not available; set an address";
/// Why a group cannot have probes.
const NO_PROBES: &str = "a group on InfiniBand is not probed: its links are used by their carrier";

pub(super) fn check(configuration: &Configuration, machine: Machine<'_>, refusals: &mut Refusals) {
    let mut users: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, interface) in &configuration.interfaces {
        let item = format!("interfaces/{name}");
        if interface.is_group() {
            group(configuration, machine, name, refusals);
        } else if let [link] = interface.links.as_slice() {
            on_datalink(configuration, machine, &item, link, interface, refusals);
        } else {
            refusals.add(&item, "links", "an interface has at least one datalink".to_owned());
        }
        standbys(&item, interface, refusals);
        for link in &interface.links {
            if let Some(other) = users.insert(link, name).filter(|other| other != name) {
                let sentence = format!("{link} has the interface {other} already");
                refusals.add(&item, "links", sentence);
            }
        }
        probes(&item, interface, refusals);
        for cidr in &interface.addresses {
            if let Some(wrong) = wrong_address(cidr) {
                refusals.add(&item, "addresses", wrong);
            }
        }
    }
    shared_networks(configuration, machine, refusals);
    administration(configuration, machine, refusals);
}

fn group(configuration: &Configuration, machine: Machine<'_>, name: &str, refusals: &mut Refusals) {
    let item = format!("interfaces/{name}");
    if let Some(wrong) = wrong_name(name) {
        refusals.add(&item, "name", wrong);
    }
    if configuration.datalinks.contains_key(name) {
        let sentence = format!("a datalink is named {name}: a group needs a name of its own");
        refusals.add(&item, "name", sentence);
    } else if is_foreign(machine.observed, name) {
        let sentence = format!("a link {name} exists, and Plimsoll has not made it");
        refusals.add(&item, "name", sentence);
    }
    let interface = &configuration.interfaces[name];
    if interface.links.iter().any(|one| infiniband(configuration, machine, one)) {
        if interface.dhcp {
            refusals.add(&item, "dhcp", NO_DHCP.to_owned());
        }
        if !interface.probes.is_empty() {
            refusals.add(&item, "probes", NO_PROBES.to_owned());
        }
    }
}

fn standbys(item: &str, interface: &Interface, refusals: &mut Refusals) {
    if let Some(standby) = interface.standbys.iter().find(|s| !interface.links.contains(s)) {
        refusals.add(item, "standbys", format!("{standby} is not among its links"));
    } else if interface.primary().is_none() && !interface.links.is_empty() {
        refusals.add(item, "standbys", "one link at least is no standby".to_owned());
    }
}

/// Probes are answered only from the networks of the interface, and by other hosts.
fn probes(item: &str, interface: &Interface, refusals: &mut Refusals) {
    let hosts = &interface.probes;
    if hosts.is_empty() {
        return;
    }
    if !interface.is_group() {
        let sentence = "only a group is probed: it has one link".to_owned();
        refusals.add(item, "probes", sentence);
    }
    if hosts.len() > PROBES_MAX {
        let sentence = format!("{} hosts; the maximum is {PROBES_MAX}", hosts.len());
        refusals.add(item, "probes", sentence);
    }
    for host in hosts.iter().map(|host| IpAddr::V4(*host)) {
        let own = interface.addresses.iter().any(|cidr| cidr.address == host);
        let mut networks = interface.addresses.iter().filter(|cidr| cidr.contains(host));
        let sentence = match networks.next() {
            _ if own => format!("{host} is an address of this interface"),
            None => format!("{host} is in no network of its static addresses"),
            Some(cidr) if cidr.prefix < 31 => {
                let is_host = host != cidr.network().address && host != cidr.last();
                if is_host {
                    continue;
                }
                format!("{host} is not an address of a host")
            }
            Some(_) => continue,
        };
        refusals.add(item, "probes", sentence);
    }
}

/// Whether a datalink, or one that it is made of, is of InfiniBand.
fn infiniband(configuration: &Configuration, machine: Machine<'_>, link: &str) -> bool {
    let class = configuration.datalinks.get(link).map(|datalink| &datalink.class);
    let is = |name: &str| machine.observed.links.get(name).is_some_and(|l| l.is_infiniband());
    class.is_some_and(|class| class.pkey().is_some() || class.links().iter().any(|one| is(one)))
        || is(link)
}

fn on_datalink(
    configuration: &Configuration,
    machine: Machine<'_>,
    item: &str,
    link: &str,
    interface: &Interface,
    refusals: &mut Refusals,
) {
    let Some(datalink) = configuration.datalinks.get(link) else {
        return refusals.add(item, "links", format!("there is no datalink {link}"));
    };
    let aggregation =
        configuration.aggregations().find(|(_, links)| links.iter().any(|port| port == link));
    if let Some((other, _)) = aggregation {
        let sentence = format!("{link} is a port of {other} and cannot have addresses");
        refusals.add(item, "links", sentence);
    }
    if interface.dhcp && infiniband(configuration, machine, link) {
        refusals.add(item, "dhcp", NO_DHCP.to_owned());
    }
    let ipv6 = interface.advertisements || interface.addresses.iter().any(|a| !a.is_ipv4());
    let mtu = datalink.mtu.filter(|mtu| ipv6 && *mtu < IPV6_MTU_MIN);
    if let Some(mtu) = mtu {
        let property = if interface.advertisements { "advertisements" } else { "addresses" };
        let sentence = format!("IPv6 needs an MTU of {IPV6_MTU_MIN}, and that of {link} is {mtu}");
        refusals.add(item, property, sentence);
    }
}

/// What is wrong with an address of an interface, if anything is.
fn wrong_address(cidr: &Cidr) -> Option<String> {
    let address = cidr.address;
    let not_unicast = address.is_multicast() || address.is_unspecified() || address.is_loopback();
    if not_unicast || address == IpAddr::from([255, 255, 255, 255]) {
        return Some(format!("{address} is not an address of a host"));
    }
    if cidr.prefix == 0 {
        return Some(format!("{cidr} has no network: the prefix length is 0"));
    }
    if let IpAddr::V6(v6) = address
        && v6.is_unicast_link_local()
    {
        return Some(format!("{address} is link-local, which the kernel sets alone"));
    }
    if cidr.is_ipv4() && cidr.prefix < 31 {
        if cidr.network().address == address {
            return Some(format!("{address} is the address of the network {cidr}, not of a host"));
        }
        if cidr.last() == address {
            return Some(format!("{address} is the broadcast address of {cidr}"));
        }
    }
    None
}

/// An address that is set twice, and networks that two interfaces would both lead to.
fn shared_networks(configuration: &Configuration, machine: Machine<'_>, refusals: &mut Refusals) {
    let enabled = || configuration.interfaces.iter().filter(|(_, interface)| interface.enabled);
    let all = || enabled().flat_map(|(name, i)| i.addresses.iter().map(move |a| (name, a)));
    for (at, (name, cidr)) in all().enumerate() {
        let item = format!("interfaces/{name}");
        for (other, earlier) in all().take(at) {
            let sentence = if earlier.address == cidr.address {
                format!("{} is an address of {other} already", cidr.address)
            } else if other != name && earlier.overlaps(cidr) {
                format!("{cidr} is in the network of {earlier}, an address of {other}")
            } else {
                continue;
            };
            refusals.add(&item, "addresses", sentence);
        }
        let link = configuration.interfaces[name].link(name);
        for (elsewhere, list) in &machine.observed.addresses {
            let foreign = list.iter().find(|a| !a.made && a.cidr.overlaps(cidr));
            if let Some(foreign) = foreign.filter(|_| Some(elsewhere.as_str()) != link) {
                let sentence = format!(
                    "{cidr} is in the network of {}, an address of {elsewhere}",
                    foreign.cidr
                );
                refusals.add(&item, "addresses", sentence);
            }
        }
    }
}

/// An address by which the administration is reached may go only if the request names another one.
fn administration(configuration: &Configuration, machine: Machine<'_>, refusals: &mut Refusals) {
    let enabled = || configuration.interfaces.iter().filter(|(_, interface)| interface.enabled);
    let has = |interface: &Interface, address| {
        interface.addresses.iter().any(|cidr| cidr.address == address)
    };
    let stays = |address| enabled().any(|(_, interface)| has(interface, address));
    let replaced = machine.successor.is_some_and(stays);
    for address in machine.administration {
        let made = |list: &[crate::state::Address]| {
            list.iter().any(|a| a.made && a.cidr.address == *address)
        };
        let link = machine.observed.addresses.iter().find(|(_, list)| made(list));
        let Some((link, _)) = link.filter(|_| !stays(*address) && !replaced) else { continue };
        let of_link =
            configuration.interfaces.iter().find(|(name, i)| i.link(name) == Some(link.as_str()));
        let item = match of_link {
            Some((name, _)) => format!("interfaces/{name}"),
            None => "interfaces".to_owned(),
        };
        let sentence = format!(
            "the administration is reached at {address}, which would be removed: name the address \
             that it is to be reached at afterwards"
        );
        refusals.add(&item, "addresses", sentence);
    }
}
