//! The Performance Limit Summary as it is kept.

use crate::limit::Limiter;
use crate::record::ServerInfo;
use serde::{Deserialize, Serialize};

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the job.
    pub job: String,
    /// What the row is about.
    pub title: String,
    /// Operations or bytes per second.
    pub value: f64,
    /// `ops/s` or `B/s`.
    pub unit: String,
    /// The value for people.
    pub text: String,
    /// Clients at the best step.
    pub clients: u32,
    /// Threads of each.
    pub threads: u32,
    /// Median latency, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// What limits.
    pub limiter: Option<Limiter>,
    /// Its name for people.
    pub limiter_text: String,
    /// 0 to 1.
    pub confidence: f64,
    /// Why.
    pub why: Vec<String>,
    /// Whether the best step was steady.
    pub steady: bool,
    /// The interval in Analytics: its URL, or only the path when the server is not known.
    pub analytics: String,
    /// The same as a command.
    pub command: String,
    /// The row's own report, beside the summary.
    pub report: String,
    /// What makes it doubtful.
    pub doubts: Vec<String>,
    /// The same over RDMA; `None` for a target that has no such form.
    #[serde(default)]
    pub rdma: Option<OverRdma>,
}

/// A row's job over RDMA.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OverRdma {
    /// Operations or bytes per second; `None` when it was not measured.
    pub value: Option<f64>,
    /// The value for people, or why there is none.
    pub text: String,
    /// Its own report, beside the summary.
    pub report: Option<String>,
}

/// All rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Version of the format.
    pub format: u32,
    /// Target URL.
    pub target: String,
    /// Begin, seconds since the Unix epoch.
    pub started: f64,
    /// End, seconds since the Unix epoch.
    pub ended: f64,
    /// The machine that conducted.
    pub machine: serde_json::Value,
    /// The server.
    pub server: ServerInfo,
    /// The rows in order.
    pub rows: Vec<Row>,
}
