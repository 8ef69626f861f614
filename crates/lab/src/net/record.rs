//! What is recorded of a network profile.

use crate::agent::net::{Interface, Segments};
use crate::record::provenance::Provenance;
use crate::record::{Latency, RecordError, Steadiness, read_kind};
use crate::verdict::evenness::Evenness;
use lab_net::count::{Faults, Key, Sums, TcpAccount};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version of the format; a reader takes this and lower.
pub const VERSION: u32 = 1;
/// What kind of result it is.
pub const KIND: &str = "net";

/// The result of a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetResult {
    /// Of [`KIND`] and [`VERSION`]; the machine is that of the controller and of the near end.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// Name of the profile.
    pub profile: String,
    /// The hosts that it names, in the order of the far ends.
    pub hosts: Vec<String>,
    /// Names of its groups.
    pub groups: Vec<String>,
    /// Threads of all groups.
    pub threads: u32,
    /// What a source has published of a built-in profile, in a sentence.
    #[serde(default)]
    pub published: Option<String>,
    /// What of it is ignored or replaced.
    pub notes: Vec<String>,
    /// The near end, then the far ends.
    pub ends: Vec<EndRecord>,
    /// In their order.
    pub transactions: Vec<TransactionRecord>,
    /// TCP statistics of the connections, by end.
    pub connections: Vec<ConnectionRecord>,
    /// What limits the value of the figures, in sentences.
    pub degraded: Vec<String>,
    /// Why it failed.
    pub failed: Option<String>,
}

/// One end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndRecord {
    /// `near`, or the host of a far end.
    pub name: String,
    /// Where its agent was reached.
    pub agent: String,
    /// Its process.
    pub pid: u32,
    /// Its machine.
    pub machine: serde_json::Value,
    /// How it was lost.
    pub lost: Option<String>,
}

/// A transaction.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TransactionRecord {
    /// Its number, from 0.
    pub number: u32,
    /// From the first begin to the last end of its threads at the near end, seconds.
    pub seconds: f64,
    /// Between the first and the last end to begin, seconds.
    pub start_skew_s: f64,
    /// Length of a window, seconds.
    pub window_s: f64,
    /// Windows of the near end.
    pub windows: Vec<Sums>,
    /// Windows that count: from, to.
    pub used: (usize, usize),
    /// Whether it is steady over them.
    pub steady: Steadiness,
    /// Payload in both directions over the windows that count, bytes per second; over all of it if
    /// it has none.
    pub bytes_s: f64,
    /// Calls of the near end, likewise.
    pub calls_s: f64,
    /// Both ends' bytes.
    pub bytes: BothEnds,
    /// By flowop, near end first.
    pub flowops: Vec<FlowopRecord>,
    /// Payload by far end.
    pub by_host: Vec<HostRecord>,
    /// Evenness of the far ends.
    pub evenness: Option<Evenness>,
    /// Evenness of the connections.
    pub connections: Option<ConnectionEvenness>,
    /// CPU time of the near end, then of the far ends, seconds.
    pub cpu_s: Vec<f64>,
    /// Interfaces of the near end, then of the far ends.
    pub interfaces: Vec<InterfaceRecord>,
    /// Segments that left the near end's network namespace.
    #[serde(default)]
    pub segments: Option<Segments>,
    /// Threads that ended early, by end.
    pub faults: Vec<Faults>,
}

/// Bytes as both ends have counted them, all connections together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct BothEnds {
    /// Sent by the near end.
    pub near_sent: u64,
    /// Received by the far ends.
    pub far_received: u64,
    /// Sent by the far ends.
    pub far_sent: u64,
    /// Received by the near end.
    pub near_received: u64,
    /// How far they differ, percent of what was sent.
    pub difference_percent: f64,
    /// Connections of which one end has received less than the other has sent, the worst first.
    pub missing: Vec<Missing>,
    /// How many there are of these.
    pub missing_count: u64,
}

/// A connection that has lost bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Which.
    #[serde(flatten)]
    pub key: Key,
    /// Whether the far end sent them.
    pub from_far: bool,
    /// Bytes that one end sent.
    pub sent: u64,
    /// Bytes that the other one received.
    pub received: u64,
}

/// A flowop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowopRecord {
    /// `near`, or the host of a far end.
    pub end: String,
    /// Name of the group: the class of its connections.
    pub group: String,
    /// Its name at this end.
    pub name: String,
    /// Line in the profile.
    pub line: u32,
    /// Calls without a fault.
    pub calls: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Bytes.
    pub bytes: u64,
    /// How long a call took.
    pub latency: Latency,
}

/// Payload of a far end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostRecord {
    /// The host.
    pub host: String,
    /// Bytes in both directions, as received.
    pub bytes: u64,
}

/// How evenly connections were served.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ConnectionEvenness {
    /// How many connections.
    pub connections: u64,
    /// Least ÷ mean.
    pub min_over_mean: f64,
    /// Jain's index.
    pub jain: f64,
    /// The one with the least bytes.
    pub least: Key,
    /// Its bytes.
    pub least_bytes: u64,
    /// Bytes of the one with the most.
    pub most_bytes: u64,
}

/// An interface next to the payload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InterfaceRecord {
    /// `near`, or the host of a far end.
    pub end: String,
    /// Its counters.
    #[serde(flatten)]
    pub counted: Interface,
    /// Payload that the end has sent.
    pub payload_out: u64,
    /// Payload that it has received.
    pub payload_in: u64,
    /// What the interface should have counted: payload, and headers of each packet; `None` of the
    /// loopback interface.
    pub expected: Option<u64>,
    /// What it has counted ÷ that.
    pub ratio: Option<f64>,
}

/// TCP statistics of a connection, at the ends that were present until the end of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConnectionRecord {
    /// `near`, or the host of a far end.
    pub end: String,
    /// Which.
    #[serde(flatten)]
    pub key: Key,
    /// The statistics.
    #[serde(flatten)]
    pub tcp: TcpAccount,
}

impl NetResult {
    /// Reads a result: a file, or a directory with `result.json` in it. `None` when that is the
    /// result of another kind of job.
    ///
    /// # Errors
    /// When it cannot be read or is of a later version.
    pub fn read(path: &Path) -> Result<Option<Self>, RecordError> {
        read_kind(path, KIND, VERSION)
    }

    /// The transaction that moved the most bytes.
    pub fn main(&self) -> Option<&TransactionRecord> {
        let moved = |t: &&TransactionRecord| t.bytes.far_received + t.bytes.near_received;
        self.transactions.iter().max_by_key(moved)
    }
}

#[cfg(test)]
pub(crate) mod tests;
