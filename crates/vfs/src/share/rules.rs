//! Export rules: which clients may use a share, with which access and which identity. Names and
//! meaning are those of exports(5), with one difference: the first matching rule applies, in the
//! order written.
//!
//! Pure: addresses and names of hosts are resolved when the rules are parsed ([`Lookup`]), so that
//! a call needs no lookup.

use core::net::IpAddr;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::limits::{EXPORT_GROUP_DEPTH, EXPORT_HOSTS_MAX, EXPORT_RULES_MAX};
use thiserror::Error;

use crate::cred::Cred;

mod parse;

pub use parse::{Lookup, netgroup};

/// uid and gid of the anonymous user, as in exports(5).
pub const NOBODY: u32 = 65_534;

/// The access of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Not at all.
    None,
    /// It may read.
    ReadOnly,
    /// It may change.
    ReadWrite,
}

/// Which identities are replaced by the anonymous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Squash {
    /// None.
    None,
    /// User 0 and group 0.
    Root,
    /// All.
    All,
}

/// The transport of a call (RFC 9289), the weakest first. The words of `xprtsec=` in exports(5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    /// Unencrypted: it can be read and changed in transit (`none`).
    #[default]
    Plain,
    /// Encrypted, the client is not authenticated (`tls`).
    Tls,
    /// Encrypted, the client has a verified certificate (`mtls`).
    Mtls,
}

/// The authentication flavour of a call (RFC 5531 §8.2), of those that are accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Flavor {
    /// AUTH_NONE: no identity; the anonymous user is used.
    #[default]
    None,
    /// AUTH_SYS: by numbers that it claims.
    Sys,
}

/// The flavours that a rule takes, the word of `sec=` in exports(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flavors {
    /// AUTH_SYS.
    pub sys: bool,
    /// AUTH_NONE.
    pub none: bool,
}

impl Flavors {
    /// What a rule that names none takes.
    pub const ALL: Self = Self { sys: true, none: true };

    /// Their numbers, the strongest first.
    pub fn numbers(self) -> impl Iterator<Item = u32> {
        const AUTH_NONE: u32 = 0;
        const AUTH_SYS: u32 = 1;
        [(self.sys, AUTH_SYS), (self.none, AUTH_NONE)]
            .into_iter()
            .filter_map(|(taken, number)| taken.then_some(number))
    }
}

/// What a rule grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// How far.
    pub access: Access,
    /// Which identities are squashed.
    pub squash: Squash,
    /// The anonymous user and group.
    pub anonymous: (u32, u32),
    /// Whether only source ports below 1024 will do (`secure`).
    pub secure: bool,
    /// The weakest transport that will do (`xprtsec`).
    pub transport: Transport,
    /// The flavours that will do (`sec`).
    pub flavors: Flavors,
    /// It grants nothing because the call came over a weaker transport, or with another flavour.
    pub too_weak: bool,
}

impl Grant {
    /// Everything, as oneself: what holds for a share without rules.
    pub const ALL: Self = Self {
        access: Access::ReadWrite,
        squash: Squash::None,
        anonymous: (NOBODY, NOBODY),
        secure: false,
        transport: Transport::Plain,
        flavors: Flavors::ALL,
        too_weak: false,
    };
    /// Nothing: what holds for a client that no rule fits.
    pub const NOTHING: Self = Self { access: Access::None, ..Self::ALL };

    /// What holds for a client that calls from this port.
    fn at_port(self, port: u16) -> Self {
        const PRIVILEGED: u16 = 1024;
        if self.secure && port >= PRIVILEGED { Self { access: Access::None, ..self } } else { self }
    }

    /// What holds for a client that calls over this transport.
    fn over(self, transport: Transport) -> Self {
        if transport >= self.transport || self.access == Access::None {
            return self;
        }
        Self { access: Access::None, too_weak: true, ..self }
    }

    /// What holds for a call with a credential of this flavour.
    #[must_use]
    pub fn with(self, flavor: Flavor) -> Self {
        let taken = match flavor {
            Flavor::Sys => self.flavors.sys,
            Flavor::None => self.flavors.none,
        };
        if taken || self.access == Access::None {
            return self;
        }
        Self { access: Access::None, too_weak: true, ..self }
    }

    /// The identity to act with in place of `claimed`; `None` when it is that.
    pub fn acting(&self, claimed: &Cred) -> Option<Cred> {
        let (uid, gid) = self.anonymous;
        match self.squash {
            Squash::All => Some(Cred { uid, gid, groups: Vec::new() }),
            Squash::Root if claimed.uid == 0 || claimed.in_group(0) => {
                let group = |g: u32| if g == 0 { gid } else { g };
                Some(Cred {
                    uid: if claimed.uid == 0 { uid } else { claimed.uid },
                    gid: group(claimed.gid),
                    groups: claimed.groups.iter().map(|g| group(*g)).collect(),
                })
            }
            Squash::None | Squash::Root => None,
        }
    }
}

/// A network, or a single host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Net {
    address: IpAddr,
    prefix: u8,
}

impl Net {
    /// The network of `address` with this many leading bits; `None` if the address has fewer.
    pub fn new(address: IpAddr, prefix: u8) -> Option<Self> {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        (prefix <= bits).then_some(Self { address, prefix })
    }

    /// A single host.
    pub fn host(address: IpAddr) -> Self {
        Self { address, prefix: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// Whether `client`, unmapped from v6, lies in it.
    pub fn holds(&self, client: IpAddr) -> bool {
        let same = |a: u128, b: u128, bits: u32| {
            let shift = bits - u32::from(self.prefix);
            a.checked_shr(shift).unwrap_or(0) == b.checked_shr(shift).unwrap_or(0)
        };
        match (self.address, client) {
            (IpAddr::V4(a), IpAddr::V4(b)) => same(a.to_bits().into(), b.to_bits().into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => same(a.to_bits(), b.to_bits(), 128),
            _ => false,
        }
    }
}

/// The clients of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Clients {
    Everyone,
    /// A network, a host's addresses, or the members of a group.
    Nets(Vec<Net>),
}

/// One line: the clients, and what they are granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    clients: Clients,
    grant: Grant,
    /// As it was written: the client, the options.
    text: (String, String),
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.text.0, self.text.1)
    }
}

/// What is wrong with a rule: its writer's fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RuleError {
    /// Not CLIENT(OPTIONS).
    #[error("{0:?} is not a rule: use CLIENT(OPTIONS), for example 10.0.0.0/24(rw,root_squash)")]
    Form(String),
    /// Not CLIENT and how far.
    #[error("{0:?} is not a rule: use CLIENT(ro), CLIENT(rw) or CLIENT(none)")]
    Access(String),
    /// An option that does not exist.
    #[error("{option:?} is not an option; options are {}", parse::OPTIONS)]
    Option {
        /// As written.
        option: String,
    },
    /// A transport that does not exist.
    #[error("{0:?} is not a transport: use xprtsec=none, tls or mtls, or a colon-separated list")]
    Transport(String),
    /// A flavour that is not taken.
    #[error("{0:?} is not a flavor: use sec=sys, sec=none or sec=sys:none")]
    Flavor(String),
    /// A number that is none.
    #[error("{0:?} is not a numeric user or group id")]
    Number(String),
    /// A network with too many bits, or none.
    #[error("{0:?} is not a network: use ADDRESS/BITS")]
    Net(String),
    /// A name of a host that has no address.
    #[error("the host {host:?} has no address: {why}")]
    Host {
        /// As written.
        host: String,
        /// The error of the resolver.
        why: String,
    },
    /// A group that does not exist.
    #[error("unknown netgroup {0:?}")]
    Group(String),
    /// A group within a group within …
    #[error("netgroup {0:?} is nested more than {EXPORT_GROUP_DEPTH} deep")]
    Deep(String),
    /// Too much of it.
    #[error("more than {EXPORT_RULES_MAX} rules, or {EXPORT_HOSTS_MAX} hosts in one")]
    TooMany,
    /// An error at a line.
    #[error("line {line}: {source}")]
    Line {
        /// From 1.
        line: usize,
        /// What.
        source: Box<RuleError>,
    },
}

/// The rules of a share, in their order. None at all: everyone may do everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    rules: Vec<Rule>,
}

impl Rules {
    /// What is granted to a client at `address` that calls from `port`, unencrypted.
    pub fn grant(&self, address: IpAddr, port: u16) -> Grant {
        self.grant_over(address, port, Transport::Plain)
    }

    /// What is granted to a client at `address` that calls from `port` over this transport.
    pub fn grant_over(&self, address: IpAddr, port: u16, transport: Transport) -> Grant {
        if self.rules.is_empty() {
            return Grant::ALL;
        }
        let fits = |rule: &&Rule| match &rule.clients {
            Clients::Everyone => true,
            Clients::Nets(nets) => nets.iter().any(|net| net.holds(address)),
        };
        let found = self.rules.iter().find(fits);
        found.map_or(Grant::NOTHING, |rule| rule.grant.at_port(port).over(transport))
    }

    /// Names of the clients that the rules admit, for EXPORT; empty without rules, which admits
    /// all.
    pub fn clients(&self) -> impl Iterator<Item = &str> {
        let named = self.rules.iter().filter(|rule| rule.grant.access != Access::None);
        named.map(|rule| rule.text.0.as_str())
    }

    /// The strongest transport that any of the rules requires.
    pub fn transport(&self) -> Transport {
        self.rules.iter().map(|rule| rule.grant.transport).max().unwrap_or_default()
    }

    /// In their order.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

/// Generation numbers of rules, each assigned once in this process: a share that is removed and
/// added again under its name is not mistaken for the previous one.
static GENERATIONS: AtomicU64 = AtomicU64::new(1);

fn next_generation() -> u64 {
    GENERATIONS.fetch_add(1, Ordering::Relaxed)
}

/// The rules of a share as they stand; they may be exchanged while it is in use.
#[derive(Debug)]
pub struct Current {
    /// Which rules these are: a caller that knows the number knows what they grant to it.
    generation: AtomicU64,
    rules: Mutex<Arc<Rules>>,
}

impl Default for Current {
    /// None: everyone may do everything.
    fn default() -> Self {
        Self { generation: AtomicU64::new(next_generation()), rules: Mutex::default() }
    }
}

impl Current {
    /// Exchanges the rules; they hold from the next call of each client on.
    pub fn set(&self, rules: Rules) {
        let mut stand = self.lock();
        *stand = Arc::new(rules);
        self.generation.store(next_generation(), Ordering::Release);
    }

    /// The rules.
    pub fn get(&self) -> Arc<Rules> {
        Arc::clone(&self.lock())
    }

    /// Their number.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Rules>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
