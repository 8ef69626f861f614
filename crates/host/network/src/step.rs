//! The steps from one state to another: what a back end can be asked for.

use std::fmt;

use crate::state::{Address, Dns, Kind, LinkMode, Mode, Policy, Route, Timer};

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Removes a route.
    RemoveRoute(Route),
    /// Removes an address from a link.
    RemoveAddress {
        /// The link.
        link: String,
        /// The address.
        address: Address,
    },
    /// Detaches a port from its aggregation.
    Detach {
        /// The port.
        port: String,
    },
    /// Deletes a link that Plimsoll has made.
    DeleteLink(String),
    /// Makes a link.
    CreateLink {
        /// Its name.
        name: String,
        /// What it is.
        kind: Kind,
        /// Its MTU in bytes.
        mtu: u32,
    },
    /// Sets how an aggregation uses its ports.
    SetMode {
        /// The aggregation.
        link: String,
        /// How.
        mode: Mode,
    },
    /// Sets the MTU of a link.
    SetMtu {
        /// The link.
        link: String,
        /// In bytes.
        mtu: u32,
    },
    /// Sets a link up or down.
    SetUp {
        /// The link.
        link: String,
        /// Up.
        up: bool,
    },
    /// Attaches a link to an aggregation.
    Attach {
        /// The link, which is down.
        port: String,
        /// The aggregation.
        aggregation: String,
    },
    /// Sets whether router advertisements are used.
    SetAdvertisements {
        /// The link.
        link: String,
        /// Used.
        on: bool,
    },
    /// Starts or stops the DHCP client of a link.
    SetDhcp {
        /// The link.
        link: String,
        /// Start.
        on: bool,
    },
    /// Sets an address; it may be set already.
    SetAddress {
        /// The link.
        link: String,
        /// The address.
        address: Address,
    },
    /// Sets a route, in the place of one with its destination and metric.
    SetRoute(Route),
    /// Sets name servers and search domains.
    SetDns(Dns),
    /// Sets the host name.
    SetHostName(String),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RemoveRoute(route) => write!(f, "remove the route {route}"),
            Self::RemoveAddress { link, address } => {
                write!(f, "remove {} from {link}", address.cidr)
            }
            Self::Detach { port } => write!(f, "detach {port} from its aggregation"),
            Self::DeleteLink(name) => write!(f, "delete {name}"),
            Self::CreateLink { name, kind, mtu } => {
                write!(f, "create {name}: {kind}, MTU {mtu}")?;
                match kind {
                    Kind::Aggregation(mode) => write!(f, ", {}", ModeText(mode)),
                    Kind::Partition { mode: LinkMode::Connected, .. } => f.write_str(", connected"),
                    _ => Ok(()),
                }
            }
            Self::SetMode { link, mode } => write!(f, "set {link}: {}", ModeText(mode)),
            Self::SetMtu { link, mtu } => write!(f, "set the MTU of {link} to {mtu}"),
            Self::SetUp { link, up: true } => write!(f, "set {link} up"),
            Self::SetUp { link, up: false } => write!(f, "set {link} down"),
            Self::Attach { port, aggregation } => write!(f, "attach {port} to {aggregation}"),
            Self::SetAdvertisements { link, on: true } => {
                write!(f, "use router advertisements on {link}")
            }
            Self::SetAdvertisements { link, on: false } => {
                write!(f, "ignore router advertisements on {link}")
            }
            Self::SetDhcp { link, on: true } => write!(f, "start DHCP on {link}"),
            Self::SetDhcp { link, on: false } => write!(f, "stop DHCP on {link}"),
            Self::SetAddress { link, address } => write!(f, "set {} on {link}", address.cidr),
            Self::SetRoute(route) => write!(f, "set the route {route}"),
            Self::SetDns(dns) if dns.servers.is_empty() => f.write_str("remove all name servers"),
            Self::SetDns(dns) => {
                let servers: Vec<_> = dns.servers.iter().map(ToString::to_string).collect();
                write!(f, "set the name servers {}", servers.join(", "))
            }
            Self::SetHostName(name) => write!(f, "set the host name {name}"),
        }
    }
}

/// A mode in words.
struct ModeText<'a>(&'a Mode);

impl fmt::Display for ModeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Mode::ActiveBackup { primary, probes } => {
                match primary {
                    Some(port) => write!(f, "primary {port}")?,
                    None => f.write_str("no primary")?,
                }
                for (at, probe) in probes.iter().enumerate() {
                    write!(f, "{}{probe}", if at == 0 { ", probes of " } else { ", " })?;
                }
                Ok(())
            }
            Mode::Lacp { policy, timer } => {
                let policy = match policy {
                    Policy::Layer2 => "layer 2",
                    Policy::Layer23 => "layers 2 and 3",
                    Policy::Layer34 => "layers 3 and 4",
                };
                let timer = if *timer == Timer::Fast { "fast" } else { "slow" };
                write!(f, "policy {policy}, timer {timer}")
            }
        }
    }
}
