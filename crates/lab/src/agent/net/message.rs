//! Messages between a controller and an end of a network profile.

use lab_net::count::{ConnCount, Faults, Key, Sums, TcpAccount};
use lab_net::engine::{Peer, Ports, Setup};
use serde::{Deserialize, Serialize};

/// What a controller sends to an end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "net", rename_all = "snake_case")]
pub enum ToNet {
    /// Listen and start the threads.
    Prepare(Box<Setup>),
    /// Where the other ends are.
    Meet {
        /// Of the far ends all, of a far end the near one.
        peers: Vec<Peer>,
    },
    /// Run a transaction.
    Start {
        /// Its number.
        transaction: u32,
        /// When, agent's monotonic clock, ns.
        begin_ns: u64,
        /// Length of a window, ns.
        window_ns: u64,
    },
    /// Receive what the other ends have sent in it.
    Drain {
        /// That, by connection.
        sent: Vec<ConnCount>,
    },
    /// Close all connections.
    Close,
}

/// What an end replies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "net", rename_all = "snake_case")]
pub enum FromNet {
    /// It listens.
    Prepared {
        /// Where.
        ports: Ports,
    },
    /// It knows the others.
    Met,
    /// A window has ended.
    Window {
        /// Its number.
        index: u32,
        /// All threads together.
        sums: Sums,
    },
    /// A transaction has ended.
    Ended(Box<NetEnded>),
    /// Nothing is in flight.
    Drained {
        /// Bytes of the transaction by connection.
        counts: Vec<ConnCount>,
        /// Counters of the interfaces since the transaction began.
        interfaces: Vec<Interface>,
        /// Segments with data since then; of the near end.
        segments: Option<Segments>,
    },
    /// All is closed.
    Closed {
        /// TCP statistics, by connection.
        accounts: Vec<(Key, TcpAccount)>,
    },
}

/// A transaction at one end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetEnded {
    /// When the first thread began, agent's monotonic clock, ns.
    pub begun_ns: u64,
    /// When the last one ended, ns.
    pub ended_ns: u64,
    /// Bytes by connection, some of them perhaps in flight.
    pub counts: Vec<ConnCount>,
    /// By flowop.
    pub flowops: Vec<NetFlowop>,
    /// Threads that ended early.
    pub faults: Faults,
    /// CPU time of the process, ns.
    pub cpu_ns: u64,
}

/// The calls of one flowop by the threads of one group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetFlowop {
    /// Index of the group.
    pub group: u32,
    /// Index of the flowop in its transaction.
    pub flowop: u32,
    /// Calls that ended without a fault.
    pub calls: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Bytes of those that did not.
    pub bytes: u64,
    /// Latencies in ns: HdrHistogram V2, base64.
    pub latency: String,
}

/// Segments that TCP handed to adapters, all of the network namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segments {
    /// Where they are counted, or why they are not.
    pub source: String,
    /// By what handed them over.
    pub contexts: Vec<ContextCount>,
}

/// Segments of one context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextCount {
    /// Its name, as statistics have it (`tcp.segments[context]`).
    pub context: String,
    /// How many.
    pub segments: u64,
    /// Bytes of payload in them.
    pub bytes: u64,
    /// Sum of the squares of these, for the mean by bytes.
    pub squares: u64,
}

/// What an interface has counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
}
