//! What an administrator sets: datalinks, interfaces, routes, name servers, host name.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

use crate::cidr::Cidr;
use crate::pkey::Pkey;
use crate::state::{Dns, LinkMode, Mode};

/// All of it. Names are those of the items.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// Datalinks; the name is that of the kernel's link.
    pub datalinks: BTreeMap<String, Datalink>,
    /// Interfaces; that of a group is the name of the kernel's link as well.
    pub interfaces: BTreeMap<String, Interface>,
    /// Routes.
    pub routes: BTreeMap<String, RouteItem>,
    /// Name servers; none leaves those of the machine.
    pub dns: Option<Dns>,
    /// The host name; none leaves that of the machine.
    pub host_name: Option<String>,
}

/// A datalink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Datalink {
    /// What it is.
    pub class: Class,
    /// Largest packet in bytes; none is that of what it is made on.
    pub mtu: Option<u32>,
}

/// What a datalink is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Class {
    /// The device of this name.
    Device,
    /// A VLAN on another datalink.
    Vlan {
        /// Which one.
        link: String,
        /// Its number, 1 to 4094.
        id: u16,
    },
    /// Several datalinks as one.
    Aggregation {
        /// Which ones.
        links: Vec<String>,
        /// How they are used.
        mode: Mode,
    },
    /// A partition of an InfiniBand device.
    Partition {
        /// The device.
        link: String,
        /// Its P_Key, as it was given.
        pkey: u16,
        /// How packets are carried.
        mode: LinkMode,
    },
}

/// An IP interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// Whether it has its addresses.
    pub enabled: bool,
    /// Its datalink; several make a group in which one carries the traffic at a time.
    pub links: Vec<String>,
    /// Those of a group that carry traffic only when no other can.
    pub standbys: Vec<String>,
    /// Hosts that a link of a group must reach to be used; none: a carrier is enough.
    #[serde(default)]
    pub probes: BTreeSet<Ipv4Addr>,
    /// Static addresses.
    pub addresses: Vec<Cidr>,
    /// Whether IPv4 addresses, routes and name servers come by DHCP.
    pub dhcp: bool,
    /// Whether IPv6 addresses and routes come by router advertisements.
    pub advertisements: bool,
}

/// A static route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteItem {
    /// Where it leads.
    pub destination: Cidr,
    /// The next router, in the network of an enabled interface.
    pub gateway: IpAddr,
    /// Lower is preferred.
    pub metric: u32,
}

impl Class {
    /// The datalinks that it is made of or made on.
    pub fn links(&self) -> &[String] {
        match self {
            Self::Device => &[],
            Self::Vlan { link, .. } | Self::Partition { link, .. } => std::slice::from_ref(link),
            Self::Aggregation { links, .. } => links,
        }
    }

    /// The partition, if it is one and its P_Key is valid.
    pub fn pkey(&self) -> Option<Pkey> {
        match self {
            Self::Partition { pkey, .. } => Pkey::new(*pkey).ok(),
            _ => None,
        }
    }
}

impl Interface {
    /// One with these addresses on a datalink.
    pub fn on(link: &str, addresses: &[Cidr]) -> Self {
        Self {
            enabled: true,
            links: vec![link.to_owned()],
            addresses: addresses.to_vec(),
            ..Self::default()
        }
    }

    /// Whether it is a group.
    pub fn is_group(&self) -> bool {
        self.links.len() > 1
    }

    /// The kernel's link that has its addresses; `name` is its own.
    pub fn link<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        if self.is_group() { Some(name) } else { self.links.first().map(String::as_str) }
    }

    /// The datalink that a group prefers: the first that is no standby.
    pub fn primary(&self) -> Option<&str> {
        let active = self.links.iter().find(|link| !self.standbys.contains(link));
        active.map(String::as_str)
    }
}

impl Configuration {
    /// Names of datalinks that are devices of the machine.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        let is_device = |(_, one): &(&String, &Datalink)| matches!(one.class, Class::Device);
        self.datalinks.iter().filter(is_device).map(|(name, _)| name.as_str())
    }

    /// The aggregations, those that groups make included, each with its datalinks.
    pub fn aggregations(&self) -> impl Iterator<Item = (&str, &[String])> {
        let made = self.datalinks.iter().filter_map(|(name, datalink)| match &datalink.class {
            Class::Aggregation { links, .. } => Some((name.as_str(), links.as_slice())),
            _ => None,
        });
        let groups = self.interfaces.iter().filter(|(_, interface)| interface.is_group());
        made.chain(groups.map(|(name, group)| (name.as_str(), group.links.as_slice())))
    }

    /// The enabled interface that has this address in one of its networks, with its link.
    pub fn reaches(&self, address: IpAddr) -> Option<(&str, &str)> {
        let enabled = self.interfaces.iter().filter(|(_, interface)| interface.enabled);
        enabled
            .filter(|(_, interface)| interface.addresses.iter().any(|a| a.contains(address)))
            .find_map(|(name, interface)| Some((name.as_str(), interface.link(name)?)))
    }
}
