//! Datalinks and groups: names, what they are made of, MTU.

use std::collections::{BTreeMap, BTreeSet};

use crate::configuration::{Class, Configuration};
use crate::pkey::Pkey;
use crate::state::{Kind, Link, LinkMode, Mode, Owner, State};

use super::{Machine, Refusals, is_foreign, wrong_name};

/// Numbers of VLANs; 0 and 4095 are reserved (IEEE 802.1Q).
const VLAN_IDS: std::ops::RangeInclusive<u16> = 1..=4094;
/// Smallest MTU of IPv4 (RFC 791).
const MTU_MIN: u32 = 68;
/// MTU of an aggregation that sets none.
const MTU: u32 = 1500;

pub(super) fn check(configuration: &Configuration, machine: Machine<'_>, refusals: &mut Refusals) {
    let checker = Checker { configuration, observed: machine.observed };
    for name in configuration.datalinks.keys() {
        checker.datalink(name, refusals);
    }
    for (name, links) in configuration.aggregations() {
        checker.ports(name, links, refusals);
    }
    checker.twins(refusals);
    checker.shared_ports(refusals);
    checker.mtus(refusals);
}

struct Checker<'a> {
    configuration: &'a Configuration,
    observed: &'a State,
}

impl Checker<'_> {
    fn datalink(&self, name: &str, refusals: &mut Refusals) {
        let item = format!("datalinks/{name}");
        if let Some(wrong) = wrong_name(name) {
            refusals.add(&item, "name", wrong);
        }
        let class = &self.configuration.datalinks[name].class;
        if *class == Class::Device {
            self.device(name, &item, refusals);
        } else if is_foreign(self.observed, name) {
            let sentence = format!("a link {name} exists, and Plimsoll has not made it");
            refusals.add(&item, "name", sentence);
        }
        match class {
            Class::Device => {}
            Class::Vlan { link, id } => {
                if !VLAN_IDS.contains(id) {
                    let sentence = format!("the number of a VLAN is 1 to 4094, not {id}");
                    refusals.add(&item, "id", sentence);
                }
                self.lower(&item, name, link, refusals);
                if self.is_infiniband(link) {
                    let sentence =
                        format!("{link} is InfiniBand, which has partitions in place of VLANs");
                    refusals.add(&item, "link", sentence);
                }
            }
            Class::Partition { link, pkey, .. } => {
                if let Err(why) = Pkey::new(*pkey) {
                    refusals.add(&item, "pkey", why.to_string());
                }
                self.lower(&item, name, link, refusals);
                if self.exists(link) && !self.is_infiniband_device(link) {
                    refusals.add(&item, "link", format!("{link} is not an InfiniBand device"));
                }
            }
            Class::Aggregation { links, mode } => self.mode(&item, links, mode, refusals),
        }
    }

    fn device(&self, name: &str, item: &str, refusals: &mut Refusals) {
        match self.observed.links.get(name) {
            None => refusals.add(item, "name", format!("this machine has no device {name}")),
            Some(Link { owner: Owner::Manager(manager), .. }) => {
                let sentence = format!("{name} is managed by {manager}: release it there first");
                refusals.add(item, "name", sentence);
            }
            Some(Link { controller: Some(other), .. }) if is_foreign(self.observed, other) => {
                let sentence = format!("{name} is a port of {other}, which Plimsoll has not made");
                refusals.add(item, "name", sentence);
            }
            // A link that Plimsoll has made is a device of the machine only for others.
            Some(link) if link.is_made() => {
                let sentence = format!("{name} is not a device: Plimsoll has made it");
                refusals.add(item, "class", sentence);
            }
            Some(_) => {}
        }
    }

    /// What a VLAN or a partition is made on.
    fn lower(&self, item: &str, name: &str, link: &str, refusals: &mut Refusals) {
        if !self.exists(link) {
            refusals.add(item, "link", format!("there is no datalink {link}"));
        } else if self.is_below(link, name, &mut BTreeSet::new()) {
            refusals.add(item, "link", format!("{link} is made of {name}: a loop"));
        }
        if let Some(other) = self.aggregation_of(link) {
            let sentence = format!("{link} is a port of {other}: use {other}");
            refusals.add(item, "link", sentence);
        }
    }

    fn mode(&self, item: &str, links: &[String], mode: &Mode, refusals: &mut Refusals) {
        match mode {
            Mode::ActiveBackup { primary: Some(primary), .. } if !links.contains(primary) => {
                let sentence = format!("{primary} is not among its links");
                refusals.add(item, "primary", sentence);
            }
            Mode::Lacp { .. } if links.iter().any(|link| self.is_infiniband(link)) => {
                let sentence = "LACP is for Ethernet; use active-backup with InfiniBand";
                refusals.add(item, "mode", sentence.to_owned());
            }
            _ => {}
        }
    }

    /// The ports of an aggregation or a group.
    fn ports(&self, name: &str, links: &[String], refusals: &mut Refusals) {
        let kind = if self.configuration.datalinks.contains_key(name) {
            "datalinks"
        } else {
            "interfaces"
        };
        let item = format!("{kind}/{name}");
        if links.is_empty() {
            refusals.add(&item, "links", "an aggregation has at least one link".to_owned());
        }
        let mut before = BTreeSet::new();
        for link in links {
            if !before.insert(link) {
                refusals.add(&item, "links", format!("{link} is named twice"));
            } else if !self.exists(link) {
                refusals.add(&item, "links", format!("there is no datalink {link}"));
            } else if self.is_below(link, name, &mut BTreeSet::new()) {
                let sentence = format!("{link} is made of {name}: a loop of aggregations");
                refusals.add(&item, "links", sentence);
            }
            self.other_users(&item, name, link, refusals);
        }
        let infiniband = links.iter().filter(|link| self.is_infiniband(link)).count();
        if infiniband != 0 && infiniband != links.len() {
            let sentence = "Ethernet and InfiniBand cannot be ports of one aggregation";
            refusals.add(&item, "links", sentence.to_owned());
        }
    }

    /// Links of other programs on a port, and its addresses, would stop working.
    fn other_users(&self, item: &str, name: &str, port: &str, refusals: &mut Refusals) {
        for above in self.observed.made_on(port) {
            if is_foreign(self.observed, above) {
                let sentence = format!("{above}, which Plimsoll has not made, is on {port}");
                refusals.add(item, "links", sentence);
            }
        }
        let foreign = self.observed.addresses(port).iter().find(|address| !address.made);
        if let Some(address) = foreign {
            let sentence = format!(
                "{port} has the address {}, which Plimsoll has not set: a port of {name} cannot \
                 have addresses, remove it first",
                address.cidr
            );
            refusals.add(item, "links", sentence);
        }
    }

    /// Two VLANs with one number, or two partitions with one P_Key, on the same link.
    fn twins(&self, refusals: &mut Refusals) {
        let mut first: BTreeMap<(&str, u16, bool), &str> = BTreeMap::new();
        for (name, datalink) in &self.configuration.datalinks {
            let (key, property) = match &datalink.class {
                Class::Vlan { link, id } => ((link.as_str(), *id, false), "id"),
                Class::Partition { link, .. } => match datalink.class.pkey() {
                    Some(pkey) => ((link.as_str(), pkey.partition(), true), "pkey"),
                    None => continue,
                },
                _ => continue,
            };
            if let Some(other) = first.insert(key, name) {
                let what = match datalink.class.pkey() {
                    Some(pkey) => format!("the partition {pkey}"),
                    None => format!("VLAN {}", key.1),
                };
                let sentence = format!("{other} is {what} on {} already", key.0);
                refusals.add(&format!("datalinks/{name}"), property, sentence);
            }
        }
    }

    fn shared_ports(&self, refusals: &mut Refusals) {
        let mut first: BTreeMap<&str, &str> = BTreeMap::new();
        for (name, links) in self.configuration.aggregations() {
            for link in links {
                let other = first.insert(link, name).filter(|other| *other != name);
                if let Some(other) = other {
                    let is_group = !self.configuration.datalinks.contains_key(name);
                    let kind = if is_group { "interfaces" } else { "datalinks" };
                    let sentence = format!("{link} is a port of {other} already");
                    refusals.add(&format!("{kind}/{name}"), "links", sentence);
                }
            }
        }
    }

    fn mtus(&self, refusals: &mut Refusals) {
        for (name, datalink) in &self.configuration.datalinks {
            let item = format!("datalinks/{name}");
            let Some(mtu) = self.mtu(name, 0) else { continue };
            if datalink.mtu.is_some() && mtu < MTU_MIN {
                refusals.add(&item, "mtu", format!("an MTU is at least {MTU_MIN} bytes"));
            }
            if datalink.class == Class::Device {
                self.device_mtu(&item, name, mtu, refusals);
            }
            for link in datalink.class.links() {
                if let Class::Aggregation { .. } = datalink.class {
                    // Its ports get its MTU.
                    self.device_mtu(&item, link, mtu, refusals);
                } else if let Some(below) = self.mtu(link, 0).filter(|below| *below < mtu) {
                    let sentence = format!("{mtu} is above the MTU of {link}, which is {below}");
                    refusals.add(&item, "mtu", sentence);
                }
            }
        }
    }

    fn device_mtu(&self, item: &str, device: &str, mtu: u32, refusals: &mut Refusals) {
        let Some(link) = self.observed.links.get(device) else { return };
        let (min, max) = link.mtu_range;
        if max > 0 && mtu > max {
            let sentence = format!("{mtu} is above the highest MTU of {device}, which is {max}");
            refusals.add(item, "mtu", sentence);
        }
        if mtu < min {
            let sentence = format!("{mtu} is below the lowest MTU of {device}, which is {min}");
            refusals.add(item, "mtu", sentence);
        }
    }

    /// The MTU that a datalink is to have, if the machine has what it is made on.
    fn mtu(&self, name: &str, depth: usize) -> Option<u32> {
        let datalink = self.configuration.datalinks.get(name)?;
        if datalink.mtu.is_some() || depth > self.configuration.datalinks.len() {
            return datalink.mtu;
        }
        match &datalink.class {
            Class::Device => self.observed.links.get(name).map(|link| link.mtu),
            Class::Aggregation { .. } => Some(MTU),
            Class::Vlan { link, .. } | Class::Partition { link, .. } => self.mtu(link, depth + 1),
        }
    }

    fn exists(&self, name: &str) -> bool {
        self.configuration.datalinks.contains_key(name)
    }

    fn aggregation_of(&self, link: &str) -> Option<&str> {
        let mut all = self.configuration.aggregations();
        all.find(|(_, links)| links.iter().any(|port| port == link)).map(|(name, _)| name)
    }

    /// Whether `name` is `other`, or made of it or made on it.
    fn is_below<'a>(&'a self, name: &'a str, other: &str, before: &mut BTreeSet<&'a str>) -> bool {
        if name == other {
            return true;
        }
        let datalink = self.configuration.datalinks.get(name).filter(|_| before.insert(name));
        let links = datalink.map_or(&[][..], |datalink| datalink.class.links());
        links.iter().any(|link| self.is_below(link, other, before))
    }

    fn is_infiniband_device(&self, name: &str) -> bool {
        let is_device = |link: &Link| matches!(link.kind, Kind::Device { infiniband: true, .. });
        self.observed.links.get(name).is_some_and(is_device)
    }

    fn is_infiniband(&self, name: &str) -> bool {
        let class = self.configuration.datalinks.get(name).map(|datalink| &datalink.class);
        match class {
            Some(Class::Partition { mode: LinkMode::Datagram | LinkMode::Connected, .. }) => true,
            Some(Class::Aggregation { links, .. }) => {
                links.iter().any(|link| link != name && self.is_infiniband_device(link))
            }
            _ => self.is_infiniband_device(name),
        }
    }
}
