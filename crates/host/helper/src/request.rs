//! Requests to the helper and its answers: JSON behind a length of four bytes, big-endian.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::IpAddr;

use host_hardware::smart::Output;
use host_network::check::Refusal;
use host_network::compile::Record;
use host_network::configuration::Configuration;
use host_network::dhcp::Holding;
use host_pools::pool::DISKS_MAX;
use host_pools::request::{PoolReply, PoolRequest};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Longest request in bytes: a configuration with all items that the tree permits is below 200 KB.
pub const REQUEST_MAX: usize = 512 << 10;
/// Longest answer in bytes: the steps between two such configurations, in words.
pub const REPLY_MAX: usize = 4 << 20;
/// Most datalinks, interfaces and routes of a configuration.
pub const ITEMS_MAX: usize = 256;
/// Most elements of a list in it: ports of an aggregation, addresses of an interface.
pub const LIST_MAX: usize = 64;
/// Shortest time for a confirmation, in seconds.
pub const CONFIRM_S_MIN: u32 = 2;
/// Longest time for a confirmation, in seconds.
pub const CONFIRM_S_MAX: u32 = 3_600;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Request {
    /// What the helper has of the network: the confirmed configuration and a change that waits.
    NetworkStatus {},
    /// What is wrong with a configuration of the network, or the steps to it. Changes nothing.
    NetworkPlan(Proposal),
    /// The steps to a configuration, which are taken back unless it is confirmed in time.
    NetworkApply {
        /// Which configuration.
        wanted: Proposal,
        /// Seconds for the confirmation, [`CONFIRM_S_MIN`] to [`CONFIRM_S_MAX`].
        seconds: u32,
    },
    /// Keeps the change of this number.
    NetworkConfirm {
        /// Which change.
        change: u64,
    },
    /// Takes the change of this number back at once.
    NetworkTakeBack {
        /// Which change.
        change: u64,
    },
    /// The health of a disk, which is not woken.
    DiskHealth {
        /// Its name in the kernel, as `sda`.
        disk: String,
    },
    /// Of the pools of this machine.
    Pools(PoolRequest),
}

/// A configuration and how the administration is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// The configuration.
    pub configuration: Configuration,
    /// Addresses by which the administration is reached.
    pub administration: Vec<IpAddr>,
    /// The address by which it is to be reached afterwards, if the request names one.
    pub successor: Option<IpAddr>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// To [`Request::NetworkStatus`].
    NetworkStatus(Box<Status>),
    /// The configuration is sound; these steps lead to it.
    Planned {
        /// In words.
        steps: Vec<String>,
    },
    /// The steps were taken.
    Applied {
        /// Number of the change; none if nothing had to be changed and nothing is to be confirmed.
        change: Option<u64>,
        /// In words.
        steps: Vec<String>,
    },
    /// To [`Request::DiskHealth`]: what smartctl has left.
    DiskHealth(Output),
    /// To [`Request::Pools`].
    Pools(Box<PoolReply>),
    /// A confirmation, or the way back, is done.
    Done,
    /// The configuration is wrong.
    Wrong(Vec<Wrong>),
    /// The request is not done.
    Failed {
        /// Why not.
        why: String,
    },
}

/// What the helper has of the network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The configuration that was confirmed last.
    pub configuration: Configuration,
    /// What Plimsoll has changed without having made it, as it was before.
    pub record: Record,
    /// A change that waits for its confirmation.
    pub waiting: Option<Waiting>,
    /// Why the last way back was not complete.
    pub problem: Option<String>,
    /// The leases by DHCP, by link.
    pub dhcp: BTreeMap<String, Holding>,
}

/// A change that waits for its confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Its number.
    pub change: u64,
    /// Seconds that are left.
    pub seconds_left: u32,
}

/// What is wrong with a property of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wrong {
    /// `datalinks/NAME`, `interfaces/NAME`, `routes/NAME`, `dns`, `identity`.
    pub item: String,
    /// Which property; `name` is that of the item.
    pub property: String,
    /// What is wrong with it.
    pub sentence: String,
}

impl Proposal {
    /// Whether it has as few items as the check is made for: its time grows with their square.
    fn bounded(&self) -> Result<(), String> {
        let Configuration { datalinks, interfaces, routes, dns, .. } = &self.configuration;
        let class_links = datalinks.values().map(|datalink| datalink.class.links().len());
        let links = interfaces
            .values()
            .map(|one| one.links.len().max(one.standbys.len()).max(one.probes.len()));
        let addresses = interfaces.values().map(|one| one.addresses.len());
        let names = dns.iter().map(|dns| dns.servers.len().max(dns.domains.len()));
        let longest = class_links.chain(links).chain(addresses).chain(names).max().unwrap_or(0);
        let items = datalinks.len().max(interfaces.len()).max(routes.len());
        if items > ITEMS_MAX || longest.max(self.administration.len()) > LIST_MAX {
            return Err(format!("at most {ITEMS_MAX} items of a kind, {LIST_MAX} in each list"));
        }
        Ok(())
    }
}

impl From<Refusal> for Wrong {
    fn from(refusal: Refusal) -> Self {
        let Refusal { item, property, sentence } = refusal;
        Self { item, property: property.to_owned(), sentence }
    }
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > REQUEST_MAX {
            return Err(format!("a request has at most {REQUEST_MAX} bytes"));
        }
        let request: Self =
            serde_json::from_slice(bytes).map_err(|e| format!("not a request: {e}"))?;
        match &request {
            Self::NetworkPlan(wanted) | Self::NetworkApply { wanted, .. } => wanted.bounded()?,
            Self::Pools(PoolRequest::Create { disks, zfs, .. }) => {
                let others = zfs.iter().flat_map(|zfs| [&zfs.log, &zfs.cache, &zfs.spares]);
                if others.map(Vec::len).sum::<usize>() + disks.len() > DISKS_MAX {
                    return Err(format!("at most {DISKS_MAX} disks"));
                }
            }
            Self::Pools(PoolRequest::Add { disks, .. }) if disks.len() > DISKS_MAX => {
                return Err(format!("at most {DISKS_MAX} disks"));
            }
            _ => {}
        }
        Ok(request)
    }

    /// Its name, for the log.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NetworkStatus {} => "network status",
            Self::NetworkPlan(_) => "network plan",
            Self::NetworkApply { .. } => "network apply",
            Self::NetworkConfirm { .. } => "network confirm",
            Self::NetworkTakeBack { .. } => "network take back",
            Self::DiskHealth { .. } => "disk health",
            Self::Pools(request) => request.name(),
        }
    }
}

/// Receives a message of at most `max` bytes; `None` at the end of the connection.
///
/// # Errors
/// The connection's; a longer message, of which nothing is read then.
pub fn receive(from: &mut impl Read, max: usize) -> io::Result<Option<Vec<u8>>> {
    let mut head = [0; 4];
    match from.read_exact(&mut head) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        done => done?,
    }
    let length = u32::from_be_bytes(head) as usize;
    if length > max {
        let why = format!("a message of {length} bytes; the limit is {max}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    // Memory follows what has come, not what the length promises.
    let mut bytes = Vec::new();
    if from.take(length as u64).read_to_end(&mut bytes)? < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(bytes))
}

/// Sends a message.
///
/// # Errors
/// The connection's; a message that is longer than 4 GiB.
pub fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    let mut framed = length.to_be_bytes().to_vec();
    framed.extend(bytes);
    to.write_all(&framed)
}

/// Receives an answer.
///
/// # Errors
/// As [`receive`]; the end of the connection, and what is no answer.
pub fn receive_reply<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let bytes = receive(from, REPLY_MAX)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(serde_json::from_slice(&bytes)?)
}

#[cfg(test)]
mod tests;
