//! What the shape of the load has shown, for the record of a run.

use super::bound::Bound;
use super::soak::Drift;
use serde::{Deserialize, Serialize};

/// A point of a curve of latency.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Share of the highest throughput, percent.
    pub percent: u32,
    /// Arrivals per second.
    pub rate: f64,
    /// Operations per second that ended.
    pub ops_s: f64,
    /// Median latency from the intended time, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// Arrivals that were not started.
    pub skipped: u64,
    /// Whether the generator itself was late.
    pub condemned: bool,
}

/// What a shape adds to the record of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ShapeRecord {
    /// Points of a curve.
    pub curve: Vec<CurvePoint>,
    /// The highest rate within a limit.
    pub bound: Option<Bound>,
    /// The drift of a soak.
    pub drift: Option<Drift>,
}

impl ShapeRecord {
    /// In words, a line each.
    pub fn sentences(&self) -> Vec<String> {
        let time = |ns: u64| base::units::time_ns(ns as f64);
        let point = |p: &CurvePoint| {
            let late = if p.condemned { "; the load generator was late" } else { "" };
            format!(
                "{:>3} % of the maximum, {} ops/s: p50 {}, p99 {}, {} skipped{late}",
                p.percent,
                base::units::count(p.rate),
                time(p.p50_ns),
                time(p.p99_ns),
                p.skipped
            )
        };
        let mut out: Vec<String> = self.curve.iter().map(point).collect();
        out.extend(self.bound.iter().map(|bound| bound.sentence.clone()));
        out.extend(self.drift.iter().map(|drift| drift.sentence.clone()));
        out
    }
}
