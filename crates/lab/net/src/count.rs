//! What an end counted, by connection and by flowop, and TCP statistics of its connections.

use crate::limits::FAULTS_MAX;
use serde::{Deserialize, Serialize};

/// Which connection: the same at both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// Index of the far end's host in the profile.
    pub host: u32,
    /// Thread, counted over all groups.
    pub thread: u32,
    /// Connection of the thread.
    pub conn: u32,
}

/// Bytes of one connection in one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnCount {
    /// Which.
    #[serde(flatten)]
    pub key: Key,
    /// Bytes that this end has handed to the kernel.
    pub sent: u64,
    /// Bytes that it got from the kernel.
    pub received: u64,
}

/// TCP statistics of a connection (Linux `tcp_info`), summed over the connections of one key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpAccount {
    /// Connections.
    pub connections: u32,
    /// Time with data to send, µs.
    pub busy_us: u64,
    /// Of it, stalled by the peer's receive window, µs.
    pub rwnd_limited_us: u64,
    /// Of it, stalled by the own send buffer, µs.
    pub sndbuf_limited_us: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Segments sent.
    pub segments_out: u64,
    /// Segments received.
    pub segments_in: u64,
    /// Least round trip, µs; 0 if unknown.
    pub min_rtt_us: u32,
    /// Smoothed round trip at the end, µs.
    pub rtt_us: u32,
}

impl TcpAccount {
    /// Adds another connection.
    pub fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.busy_us += other.busy_us;
        self.rwnd_limited_us += other.rwnd_limited_us;
        self.sndbuf_limited_us += other.sndbuf_limited_us;
        self.retransmits += other.retransmits;
        self.segments_out += other.segments_out;
        self.segments_in += other.segments_in;
        self.rtt_us = other.rtt_us;
        let known = [self.min_rtt_us, other.min_rtt_us].into_iter().filter(|rtt| *rtt > 0);
        self.min_rtt_us = known.min().unwrap_or(0);
    }
}

/// The calls of one flowop by the threads of one group.
#[derive(Debug, Clone)]
pub struct FlowopCount {
    /// Index of the group.
    pub group: u32,
    /// Index of the flowop in its transaction.
    pub flowop: u32,
    /// Calls that ended, faults not included.
    pub calls: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Bytes of those that did not.
    pub bytes: u64,
    /// How long they took, ns.
    pub latency: hdrhistogram::Histogram<u64>,
}

/// Why a thread has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Which connection.
    #[serde(flatten)]
    pub key: Key,
    /// Index of the group.
    pub group: u32,
    /// Line of the flowop.
    pub line: u32,
    /// Its name at this end.
    pub flowop: String,
    /// What happened.
    pub what: String,
}

/// Faults, the first ones in words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Faults {
    /// How many.
    pub count: u64,
    /// The first.
    pub first: Vec<Fault>,
}

impl Faults {
    /// Adds one.
    pub fn add(&mut self, fault: Fault) {
        self.count += 1;
        if self.first.len() < FAULTS_MAX {
            self.first.push(fault);
        }
    }
}

/// All threads together in one window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// Calls that ended.
    pub calls: u64,
}

/// One end of a transaction.
#[derive(Debug, Clone, Default)]
pub struct Ended {
    /// When the first thread began, ns.
    pub begun_ns: u64,
    /// When the last one ended, ns.
    pub ended_ns: u64,
    /// By connection.
    pub counts: Vec<ConnCount>,
    /// By flowop.
    pub flowops: Vec<FlowopCount>,
    /// Windows that have passed, from the first.
    pub windows: Vec<Sums>,
    /// Threads that ended early.
    pub faults: Faults,
}
