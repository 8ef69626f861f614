//! The state of a bridge, as it is reported.

use serde::Serialize;

use super::shape::Shapes;
use super::tally::Snapshot;

/// The reason for a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// The devices are up, but the other host has not answered yet.
    Calling,
    /// Packets pass from now on.
    Ready,
    /// A second has passed.
    Second,
    /// It has ended.
    End,
    /// A request has arrived.
    Asked,
}

/// An end, as it is reported.
#[derive(Debug, Clone, Serialize)]
pub struct EndStatus {
    /// Where: `ns:NAME`, `pid:PID`, `here` or a host's address.
    pub place: String,
    /// Its device; empty for a host.
    pub device: String,
    /// Its address; empty for a host.
    pub address: String,
}

/// How a bridge stands.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// Why this is reported.
    pub event: Event,
    /// Its name.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// Seconds since it was ready.
    pub ran_s: f64,
    /// What repeats its chance.
    pub seed: u64,
    /// Whether what crosses it is sealed.
    pub encrypted: bool,
    /// Whether its threads go before others (SCHED_FIFO).
    pub goes_first: bool,
    /// The first and the second end.
    pub ends: [EndStatus; 2],
    /// What the link does.
    pub set: Shapes,
    /// Lateness that does not count against it, nanoseconds.
    pub tolerance_ns: u64,
    /// From the first end to the second.
    pub forth: Snapshot,
    /// From the second end to the first.
    pub back: Snapshot,
    /// `good`, or `spoiled`: then figures measured over it are invalid.
    pub verdict: &'static str,
    /// What spoiled it.
    pub why: Vec<String>,
}

impl Status {
    /// Whether figures that were measured over it mean something.
    pub fn is_good(&self) -> bool {
        self.why.is_empty()
    }
}
