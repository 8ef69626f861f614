//! The lease of a link by DHCP (RFC 2131): a lease, how far its renewal is, and what is wrong.
//!
//! An address by DHCP is no part of a [`crate::state::State`]: no step of a change removes it, and
//! the way back from a change brings back that DHCP is on, not an address that may be another's by
//! then. What the kernel has of a lease ends with it, also when no process of Plimsoll runs any
//! more: the address has the lease's lifetime, and each route has the address as its source.

pub mod client;
mod folder;
pub mod message;

use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

use crate::cidr::Cidr;
use crate::state::Dns;

pub use folder::Folder;

/// Marks addresses and routes of leases (`ip route show proto 216`).
pub const DHCP_MARK: u8 = 216;
/// Metric of routes of leases, to which the index of the link is added: a route that is configured
/// is preferred, and two links with DHCP have a default route each.
pub const METRIC: u32 = 1024;
/// A lease without an end (RFC 2131, section 3.3).
pub const FOR_EVER: u32 = u32::MAX;
/// Smallest MTU that a server can set (RFC 2132, section 5.1, has 68, with which nothing works).
const MTU_MIN: u16 = 576;
/// Shortest lease that is taken, in seconds: each extension of one is written to disk.
const VALID_S_MIN: u32 = 5;
/// Routes, name servers, domains that are taken of one lease.
const LIST_MAX: usize = 32;

/// A lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The address and its network.
    pub cidr: Cidr,
    /// The server.
    pub server: Ipv4Addr,
    /// Networks, each with its router; the network itself has none.
    pub routes: Vec<(Cidr, Option<Ipv4Addr>)>,
    /// Name servers and search domains.
    pub dns: Dns,
    /// Largest packet in bytes.
    pub mtu: Option<u16>,
    /// When the server has given it, in seconds since 1970.
    pub obtained: u64,
    /// Seconds from then until its server is asked to extend it (T1).
    pub renew_s: u32,
    /// Seconds until all servers are asked to (T2).
    pub rebind_s: u32,
    /// Seconds until it ends, or [`FOR_EVER`].
    pub valid_s: u32,
}

/// How far a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// It requests a lease from all servers.
    Searching,
    /// It has one.
    Bound,
    /// It requests an extension of the lease from its server.
    Renewing,
    /// It requests an extension of the lease from all servers.
    Rebinding,
}

/// What happens to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A server has given, confirmed or extended a lease.
    Given(Lease),
    /// It requests an extension of the lease from its server.
    Renewing,
    /// It requests an extension of the lease from all servers.
    Rebinding,
    /// It searches again; its lease stays for as long as it is valid.
    Searching,
    /// A server has refused the lease (DHCPNAK).
    Refused,
    /// The lease is over, and the client searches.
    Ended,
    /// It cannot work.
    Failed(String),
}

/// The lease of a link with DHCP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holding {
    /// The hardware address of the link: a lease is of one.
    pub mac: String,
    /// When DHCP was started, in nanoseconds since 1970: distinguishes one start from the next.
    pub started: u64,
    /// How far it is.
    pub phase: Phase,
    /// When it came to be without a lease, or to have one, in seconds since 1970.
    pub since: u64,
    /// The lease; it may be over.
    pub lease: Option<Lease>,
    /// Why it cannot work.
    pub failure: Option<String>,
}

impl Lease {
    /// Whether it is valid at this time.
    pub fn is_valid(&self, now: u64) -> bool {
        self.until().is_none_or(|until| now < until)
    }

    /// When it ends; `None`: never.
    pub fn until(&self) -> Option<u64> {
        (self.valid_s != FOR_EVER).then(|| self.obtained.saturating_add(self.valid_s.into()))
    }

    /// Enters how old it is by a clock that is never set: the other one may have been.
    fn has_age(&mut self, seconds: u32, now: u64) {
        self.obtained = now.saturating_sub(seconds.into());
    }

    /// Seconds until it ends, as the kernel takes them.
    pub fn left_s(&self, now: u64) -> u32 {
        let left = |until: u64| u32::try_from(until.saturating_sub(now)).unwrap_or(FOR_EVER - 1);
        self.until().map_or(FOR_EVER, left)
    }

    /// The lease without what no link can have: a server is a peer. `None` if nothing is left.
    pub fn sound(mut self) -> Option<Self> {
        let IpAddr::V4(ip) = self.cidr.address else { return None };
        let useless = ip.is_unspecified() || ip.is_loopback() || ip.is_multicast();
        if useless || ip.is_broadcast() || self.cidr.prefix == 0 || self.valid_s < VALID_S_MIN {
            return None;
        }
        let is_host = |ip: Ipv4Addr| !ip.is_unspecified() && !ip.is_multicast();
        self.routes.retain(|(to, by)| {
            let IpAddr::V4(network) = to.address else { return false };
            !network.is_multicast() && !network.is_loopback() && by.is_none_or(is_host)
        });
        self.routes.truncate(LIST_MAX);
        self.dns.servers.retain(|server| !server.is_unspecified() && !server.is_multicast());
        self.dns.servers.truncate(LIST_MAX);
        self.dns.domains.retain(|domain| is_domain(domain));
        self.dns.domains.truncate(LIST_MAX);
        self.mtu = self.mtu.filter(|mtu| *mtu >= MTU_MIN);
        Some(self)
    }
}

/// Whether a text can stand in a file of name servers as a domain.
fn is_domain(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    !text.is_empty() && text.len() <= 253 && text.bytes().all(plain)
}

impl Holding {
    /// DHCP was started on a link of this hardware address.
    pub fn begin(mac: &str, now_ns: u64) -> Self {
        let since = now_ns / 1_000_000_000;
        let (mac, phase) = (mac.to_owned(), Phase::Searching);
        Self { mac, started: now_ns, phase, since, lease: None, failure: None }
    }

    /// The lease, if it is valid at this time.
    pub fn valid(&self, now: u64) -> Option<&Lease> {
        self.lease.as_ref().filter(|lease| lease.is_valid(now))
    }

    /// The leases after an event at this time.
    #[must_use]
    pub fn after(&self, event: Event, now: u64) -> Self {
        let had = self.lease.as_ref().map(|lease| lease.cidr);
        let mut next = Self { failure: None, ..self.clone() };
        match event {
            Event::Given(lease) => {
                next.phase = Phase::Bound;
                next.lease = lease.sound();
                if next.lease.is_none() {
                    next.phase = Phase::Searching;
                    next.failure = Some("a server gives a lease of no use".to_owned());
                }
            }
            Event::Renewing => {
                next.phase = Phase::Renewing;
                next.lease.iter_mut().for_each(|lease| lease.has_age(lease.renew_s, now));
            }
            Event::Rebinding => {
                next.phase = Phase::Rebinding;
                next.lease.iter_mut().for_each(|lease| lease.has_age(lease.rebind_s, now));
            }
            Event::Searching => next.phase = Phase::Searching,
            Event::Refused | Event::Ended => {
                next.phase = Phase::Searching;
                next.lease = None;
            }
            Event::Failed(why) => {
                next.phase = Phase::Searching;
                next.failure = Some(why);
            }
        }
        next.lease.take_if(|lease| !lease.is_valid(now));
        let has = next.lease.as_ref().map(|lease| lease.cidr);
        if has != had {
            next.since = now;
        }
        next
    }

    /// What is wrong at this time, in a sentence without its subject.
    pub fn problem(&self, now: u64) -> Option<String> {
        match (self.valid(now), &self.failure) {
            (Some(_), _) if self.phase != Phase::Rebinding => None,
            (Some(lease), _) => {
                let (server, left) = (lease.server, lease.left_s(now));
                Some(format!(
                    "its DHCP server {server} does not answer; the lease ends in {left} s"
                ))
            }
            (None, Some(why)) => Some(format!("it has no address by DHCP: {why}")),
            (None, None) => Some("it has no address by DHCP: no server answers".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
