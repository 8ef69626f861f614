//! What a profile has: groups of threads, transactions that all threads begin together, flowops.

use crate::limits::{DURATION_MAX, GROUPS_MAX, HOSTS_MAX, RATE_MAX, THREADS_MAX, TRANSFER_MAX};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// A profile, all variables replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Its groups.
    pub groups: Vec<Group>,
    /// What is ignored or replaced, in sentences.
    pub notes: Vec<String>,
}

/// Threads that do the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Its name, or its number.
    pub name: String,
    /// How many threads it has. Processes are threads here.
    pub threads: u32,
    /// One after the other.
    pub transactions: Vec<Transaction>,
}

/// Flowops that a thread repeats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transaction {
    /// Its line.
    pub line: u32,
    /// How often, unless there is a duration.
    pub iterations: u64,
    /// For how long, ns.
    pub duration_ns: Option<u64>,
    /// How many begin in a second, in each thread.
    pub rate: Option<u32>,
    /// In their order.
    pub flowops: Vec<Flowop>,
}

/// One call, possibly repeated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flowop {
    /// Its line.
    pub line: u32,
    /// Which connection of the thread; 0 without a number.
    pub conn: u32,
    /// How often.
    pub count: u64,
    /// A failure is counted and ends nothing.
    pub canfail: bool,
    /// How long it may wait, ns.
    pub timeout_ns: Option<u64>,
    /// What it does.
    pub op: Op,
}

/// What a flowop does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Opens a connection.
    Connect(Endpoint),
    /// Takes a connection that the other end opens.
    Accept(Endpoint),
    /// Closes it.
    Disconnect,
    /// Sends bytes.
    Write(Transfer),
    /// Receives bytes.
    Read(Transfer),
    /// Sends bytes of a file.
    Sendfile(Transfer),
    /// Waits.
    Think {
        /// How long, ns.
        ns: u64,
        /// With a busy processor.
        busy: bool,
    },
    /// Nothing.
    Nop,
}

/// A transfer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// The name in the profile: read, recv, write, send, sendfile, sendfilev.
    pub verb: Verb,
    /// How many bytes.
    pub size: Size,
    /// Bytes of each call of the other end, if those are more.
    pub rsize: Option<u32>,
}

/// How a transfer is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// `read`
    Read,
    /// `recv`
    Recv,
    /// `write`
    Write,
    /// `send`
    Send,
    /// `sendfile`
    Sendfile,
    /// `sendfilev`
    Sendfilev,
}

/// Bytes of a transfer: drawn for each from this range, at both ends the same.
///
/// Two numbers and no enum of a fixed and a random size: LLVM 20 to 22 read the greater of the two
/// at an address computed from the tag of such an enum before they check that there is a tag
/// (rust-lang/rust#159035), and the process ends by SIGSEGV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Least.
    pub min: u32,
    /// Most.
    pub max: u32,
}

impl Size {
    /// Always the same number of bytes.
    pub const fn fixed(bytes: u32) -> Self {
        Self { min: bytes, max: bytes }
    }

    /// The number of bytes, if it is always the same.
    pub fn as_fixed(self) -> Option<u32> {
        (self.min == self.max).then_some(self.max)
    }
}

/// Where a connection leads, and how its socket is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// The other end.
    pub host: String,
    /// Address of this end.
    pub local: Option<String>,
    /// Transport.
    pub protocol: Protocol,
    /// Bytes of both socket buffers; without it the kernel chooses.
    pub window: Option<u32>,
    /// Small segments leave at once.
    pub nodelay: bool,
    /// Congestion control algorithm.
    pub congestion: Option<String>,
}

/// Transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        })
    }
}

impl Op {
    /// The name in the profile.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Connect(_) => "connect",
            Self::Accept(_) => "accept",
            Self::Disconnect => "disconnect",
            Self::Write(t) | Self::Read(t) | Self::Sendfile(t) => t.verb.name(),
            Self::Think { .. } => "think",
            Self::Nop => "nop",
        }
    }
}

impl Verb {
    /// The name in the profile.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Recv => "recv",
            Self::Write => "write",
            Self::Send => "send",
            Self::Sendfile => "sendfile",
            Self::Sendfilev => "sendfilev",
        }
    }
}

impl Profile {
    /// The hosts of all connections, in the order in which they are named first.
    pub fn hosts(&self) -> Vec<String> {
        let mut hosts: Vec<String> = Vec::new();
        for endpoint in self.flowops().filter_map(Flowop::endpoint) {
            if !hosts.contains(&endpoint.host) {
                hosts.push(endpoint.host.clone());
            }
        }
        hosts
    }

    /// Whether it is within the bounds that a text must keep: another program may have sent it.
    ///
    /// # Errors
    /// What is beyond them.
    pub fn check(&self) -> Result<(), String> {
        let threads: u64 = self.groups.iter().map(|group| u64::from(group.threads)).sum();
        let endpoints = self.flowops().filter_map(Flowop::endpoint);
        let hosts: BTreeSet<&str> = endpoints.map(|endpoint| endpoint.host.as_str()).collect();
        let counts = [
            ("groups", self.groups.len() as u64, GROUPS_MAX as u64),
            ("threads", threads, u64::from(THREADS_MAX)),
            ("hosts", hosts.len() as u64, HOSTS_MAX as u64),
        ];
        for (what, count, most) in counts {
            if count > most {
                return Err(format!("the profile has {count} {what}, more than {most}"));
            }
        }
        self.groups.iter().flat_map(|group| &group.transactions).try_for_each(Transaction::check)
    }

    /// Threads of all groups.
    pub fn threads(&self) -> u32 {
        self.groups.iter().map(|group| group.threads).sum()
    }

    /// The most transactions of a group.
    pub fn transactions(&self) -> usize {
        self.groups.iter().map(|group| group.transactions.len()).max().unwrap_or(0)
    }

    /// All flowops.
    pub fn flowops(&self) -> impl Iterator<Item = &Flowop> {
        self.groups.iter().flat_map(|g| &g.transactions).flat_map(|t| &t.flowops)
    }
}

impl Flowop {
    /// Where it connects to, if it does.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match &self.op {
            Op::Connect(endpoint) | Op::Accept(endpoint) => Some(endpoint),
            _ => None,
        }
    }
}

impl Transaction {
    fn check(&self) -> Result<(), String> {
        let durations = 1..=DURATION_MAX.as_nanos() as u64;
        let fits = self.rate.is_none_or(|rate| (1..=RATE_MAX).contains(&rate))
            && self.duration_ns.is_none_or(|ns| durations.contains(&ns));
        if !fits {
            return Err(format!("line {}: rate or duration of the transaction", self.line));
        }
        match self.flowops.iter().find(|flowop| !flowop.fits()) {
            Some(flowop) => Err(format!("line {}: count or size of the flowop", flowop.line)),
            None => Ok(()),
        }
    }
}

impl Flowop {
    /// Whether its numbers are within their bounds.
    fn fits(&self) -> bool {
        let sizes = 1..=TRANSFER_MAX;
        let transfers = match &self.op {
            Op::Write(transfer) | Op::Read(transfer) | Op::Sendfile(transfer) => {
                let Size { min, max } = transfer.size;
                sizes.contains(&min)
                    && (min..=TRANSFER_MAX).contains(&max)
                    && transfer.rsize.is_none_or(|bytes| sizes.contains(&bytes))
            }
            _ => true,
        };
        transfers && self.count > 0
    }
}
