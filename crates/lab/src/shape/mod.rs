//! Shapes of load other than steps in which each thread waits for its reply.
//!
//! - [`open`]: arrivals by a schedule, whatever the server does.
//! - [`plan`]: which step follows which: steps, a row, a ramp, a soak, a curve, a bound.
//! - [`outcome`]: what they show, in the record.
//! - [`bound`]: the search for the highest rate within a limit of latency.
//! - [`soak`]: drift of throughput over a long run, with its interval.

pub mod bound;
pub mod open;
pub mod outcome;
pub mod plan;
pub mod soak;

use open::Arrival;
use serde::{Deserialize, Serialize};

/// A row: the last load of the schedule, for a fixed time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowShape {
    /// Time that counts, after the warm-up.
    pub seconds: u32,
}

/// A ramp: one client after the other is added, each with one thread after the other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RampShape {
    /// Time from one client to the next, ms.
    pub client_ms: u64,
    /// Time from one thread of the newest client to the next, ms.
    pub thread_ms: u64,
    /// Threads of a client when all are added.
    pub threads: u32,
}

impl Default for RampShape {
    fn default() -> Self {
        Self { client_ms: 60_000, thread_ms: 1_000, threads: 10 }
    }
}

/// A curve of latency: open loops at shares of the highest throughput of the schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CurveShape {
    /// Shares, percent.
    pub percent: Vec<u32>,
    /// Time of each, after the warm-up, ms.
    pub each_ms: u64,
    /// How arrivals follow each other.
    pub arrival: Arrival,
}

impl Default for CurveShape {
    fn default() -> Self {
        let percent = (1..=10).map(|n| n * 10).collect();
        Self { percent, each_ms: 2_000, arrival: Arrival::Poisson }
    }
}

/// The highest rate at which a percentile of the latency stays within a limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BoundShape {
    /// The percentile, for example 99.
    pub percentile: f64,
    /// Its limit, µs.
    pub limit_us: f64,
    /// The search ends when the rate is known to within this, percent.
    pub within_percent: f64,
    /// Time of each rate, after the warm-up, ms.
    pub each_ms: u64,
    /// How arrivals follow each other.
    pub arrival: Arrival,
}

impl Default for BoundShape {
    fn default() -> Self {
        Self {
            percentile: 99.0,
            limit_us: 1_000.0,
            within_percent: 5.0,
            each_ms: 2_000,
            arrival: Arrival::Poisson,
        }
    }
}

/// A soak: the last load of the schedule for a long time, and whether throughput drifts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SoakShape {
    /// Time that counts, after the warm-up.
    pub seconds: u32,
    /// A change of throughput that counts as drift, percent.
    pub drift_percent: f64,
}

impl Default for SoakShape {
    fn default() -> Self {
        Self { seconds: 3_600, drift_percent: 5.0 }
    }
}
