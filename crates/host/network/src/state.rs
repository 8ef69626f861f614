//! The network as a kernel has it: links, addresses, routes, name servers, host name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

use crate::cidr::Cidr;
use crate::pkey::Pkey;

/// Marks what Plimsoll makes: the group of links (`ip link show group 215`), the protocol of
/// addresses and of routes (`ip route show proto 215`). The number is that of the administration's
/// port; `/etc/iproute2/rt_protos` does not have it.
pub const MARK: u8 = 215;

/// What marks addresses of resources of a cluster for the kernel (`IFA_PROTO`).
pub const RESOURCE_MARK: u8 = 217;

/// All of it. What the kernel makes alone (link-local addresses, routes to connected networks,
/// addresses with a lifetime) is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Links by name.
    pub links: BTreeMap<String, Link>,
    /// Addresses of each link, in the kernel's order: the first one of a network is the primary.
    pub addresses: BTreeMap<String, Vec<Address>>,
    /// Unicast routes of the main table with one next hop.
    pub routes: Vec<Route>,
    /// Name servers and search domains.
    pub dns: Dns,
    /// The host name.
    pub host_name: String,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// What it is.
    pub kind: Kind,
    /// Largest packet in bytes.
    pub mtu: u32,
    /// Bounds of the MTU, in bytes; the higher one is 0 if the driver has none.
    pub mtu_range: (u32, u32),
    /// Whether it is set up.
    pub up: bool,
    /// The aggregation that it is a port of.
    pub controller: Option<String>,
    /// What may change it.
    pub owner: Owner,
    /// Whether IPv6 addresses and routes come by router advertisements.
    pub advertisements: bool,
    /// Whether a DHCP client runs on it.
    pub dhcp: bool,
}

/// What a link is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A device, or a link that Plimsoll does not make: its kind for the kernel, or nothing.
    Device {
        /// Whether it is of InfiniBand.
        infiniband: bool,
        /// What the kernel calls its kind: `veth`, `bridge`.
        kind: String,
        /// The link that it is made on.
        on: Option<String>,
    },
    /// A VLAN (IEEE 802.1Q).
    Vlan {
        /// The link that it is made on.
        on: String,
        /// Its number.
        id: u16,
    },
    /// Several links as one.
    Aggregation(Mode),
    /// A partition of InfiniBand.
    Partition {
        /// The port.
        on: String,
        /// Which partition.
        pkey: Pkey,
        /// How packets are carried.
        mode: LinkMode,
    },
}

/// How an aggregation spreads its traffic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// One port at a time.
    ActiveBackup {
        /// The port to prefer.
        primary: Option<String>,
        /// Hosts that each port must reach to be used; none: a carrier is enough.
        #[serde(default)]
        probes: BTreeSet<Ipv4Addr>,
    },
    /// All ports, agreed with the switch (IEEE 802.1AX).
    Lacp {
        /// Which port a packet leaves by.
        policy: Policy,
        /// How often the peers report to each other.
        timer: Timer,
    },
}

/// What of a packet decides by which port it leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Policy {
    /// The hardware addresses.
    Layer2,
    /// The hardware addresses and IP addresses.
    Layer23,
    /// The IP addresses and ports.
    Layer34,
}

/// How often the peers of LACP report to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Timer {
    /// Every 30 s.
    Slow,
    /// Every second.
    Fast,
}

/// How a partition of InfiniBand carries packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LinkMode {
    /// Unreliable datagrams.
    Datagram,
    /// Connections.
    Connected,
}

/// What may change a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Owner {
    /// Plimsoll has made it.
    Plimsoll,
    /// No program claims it: a device, or a link that was made by hand.
    Free,
    /// Another program, by its name.
    Manager(String),
}

/// An address of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The address and its network.
    pub cidr: Cidr,
    /// Whether Plimsoll has set it.
    pub made: bool,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Route {
    /// Where it leads.
    pub destination: Cidr,
    /// The next router; none for a network that is connected.
    pub gateway: Option<IpAddr>,
    /// The link that it leaves by.
    pub link: String,
    /// Lower is preferred.
    pub metric: u32,
    /// The address that packets are sent from.
    pub source: Option<IpAddr>,
    /// What made it, as in `rtnetlink.h`.
    pub protocol: u8,
}

/// Name servers and search domains.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dns {
    /// Name servers.
    pub servers: Vec<IpAddr>,
    /// Domains in which short names are looked up.
    pub domains: Vec<String>,
}

impl State {
    /// Brings what has no order into one: networks of a link, addresses of IPv6, routes. The order
    /// within a network of IPv4 stays: the first address is the primary.
    pub fn normalise(&mut self) {
        self.addresses.retain(|_, list| !list.is_empty());
        for list in self.addresses.values_mut() {
            list.sort_by_key(Address::group);
        }
        self.routes.sort();
    }

    /// The addresses of a link.
    pub fn addresses(&self, link: &str) -> &[Address] {
        self.addresses.get(link).map_or(&[], Vec::as_slice)
    }

    /// The ports of an aggregation.
    pub fn ports<'a>(&'a self, of: &'a str) -> impl Iterator<Item = &'a str> {
        let is_port = move |link: &&Link| link.controller.as_deref() == Some(of);
        self.links.iter().filter(move |(_, link)| is_port(link)).map(|(name, _)| name.as_str())
    }

    /// The links that are made on this one.
    pub fn made_on<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let is_on = move |link: &Link| link.kind.on() == Some(name);
        self.links.iter().filter(move |(_, link)| is_on(link)).map(|(name, _)| name.as_str())
    }

    /// The names of all links, each one after those that it is made of or made on.
    pub fn bottom_up(&self) -> Vec<&str> {
        let mut order = Vec::new();
        let mut rest: Vec<&str> = self.links.keys().map(String::as_str).collect();
        while !rest.is_empty() {
            let before = rest.len();
            let ready = |name: &&str| {
                let link = &self.links[*name];
                let below = link.kind.on().into_iter().chain(self.ports(name));
                !below.into_iter().any(|low| rest.contains(&low))
            };
            let (now, later): (Vec<_>, Vec<_>) = rest.iter().copied().partition(ready);
            order.extend(now);
            rest = later;
            if rest.len() == before {
                // A loop, or a veth with its peer: the kernel has them, and the order is of no
                // importance.
                order.append(&mut rest);
            }
        }
        order
    }
}

impl Mode {
    /// One port at a time, each used while it has a carrier.
    pub fn active_backup(primary: Option<String>) -> Self {
        Self::ActiveBackup { primary, probes: BTreeSet::new() }
    }
}

impl Kind {
    /// A device of Ethernet.
    pub fn ethernet() -> Self {
        Self::Device { infiniband: false, kind: String::new(), on: None }
    }

    /// The link that it is made on, if it ends with that one.
    pub fn on(&self) -> Option<&str> {
        match self {
            Self::Device { on, .. } => on.as_deref(),
            Self::Vlan { on, .. } | Self::Partition { on, .. } => Some(on),
            Self::Aggregation(_) => None,
        }
    }

    /// Whether one can become the other without being made again.
    pub fn can_become(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Aggregation(Mode::ActiveBackup { .. }), Self::Aggregation(other)) => {
                matches!(other, Mode::ActiveBackup { .. })
            }
            (
                Self::Aggregation(Mode::Lacp { timer, .. }),
                Self::Aggregation(Mode::Lacp { timer: other, .. }),
            ) => timer == other,
            _ => self == other,
        }
    }
}

impl Link {
    /// A device of Ethernet that is up.
    pub fn ethernet(mtu: u32, mtu_max: u32) -> Self {
        Self {
            kind: Kind::ethernet(),
            mtu,
            mtu_range: (68, mtu_max),
            up: true,
            controller: None,
            owner: Owner::Free,
            advertisements: true,
            dhcp: false,
        }
    }

    /// Whether Plimsoll has made it.
    pub fn is_made(&self) -> bool {
        self.owner == Owner::Plimsoll
    }

    /// Whether it is a device of InfiniBand or a partition of one.
    pub fn is_infiniband(&self) -> bool {
        matches!(self.kind, Kind::Device { infiniband: true, .. } | Kind::Partition { .. })
    }
}

impl Address {
    /// One that Plimsoll sets.
    pub fn made(cidr: Cidr) -> Self {
        Self { cidr, made: true }
    }

    /// What it has an order with: the addresses of its network in IPv4, none in IPv6.
    pub fn group(&self) -> Cidr {
        if self.cidr.is_ipv4() { self.cidr.network() } else { self.cidr }
    }
}

impl Route {
    /// Whether Plimsoll has made it.
    pub fn is_made(&self) -> bool {
        self.protocol == MARK
    }

    /// Whether both stand in each other's place in the kernel's table.
    pub fn same_key(&self, other: &Self) -> bool {
        self.destination == other.destination && self.metric == other.metric
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.destination)?;
        if let Some(gateway) = self.gateway {
            write!(f, " via {gateway}")?;
        }
        write!(f, " on {} with metric {}", self.link, self.metric)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device { kind, .. } if kind.is_empty() => f.write_str("device"),
            Self::Device { kind, .. } => f.write_str(kind),
            Self::Vlan { on, id } => write!(f, "VLAN {id} on {on}"),
            Self::Aggregation(Mode::ActiveBackup { .. }) => {
                f.write_str("aggregation (active-backup)")
            }
            Self::Aggregation(Mode::Lacp { .. }) => f.write_str("aggregation (LACP)"),
            Self::Partition { on, pkey, .. } => write!(f, "partition {pkey} on {on}"),
        }
    }
}

#[cfg(test)]
mod tests;
