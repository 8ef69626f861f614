//! Counts and latencies of acts, by each thread and added up.

use base::buckets::{COUNT, index, quantile};
use serde::{Deserialize, Serialize};

/// One act, as often as it was done.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ActTally {
    /// Times it was done.
    pub calls: u64,
    /// Bytes of files that it moved, or of names that it listed.
    pub bytes: u64,
    /// Times it failed.
    pub errors: u64,
    /// Nanoseconds, all together.
    pub busy_ns: u64,
    /// Longest, in nanoseconds.
    pub max_ns: u64,
    /// Counts by [`base::buckets`]; empty until the first.
    pub latency: Vec<u64>,
}

impl ActTally {
    /// Records one time.
    #[inline]
    pub fn record(&mut self, ns: u64, bytes: u64) {
        if self.latency.is_empty() {
            self.latency = vec![0; COUNT];
        }
        self.calls += 1;
        self.bytes += bytes;
        self.busy_ns += ns;
        self.max_ns = self.max_ns.max(ns);
        self.latency[index(ns)] += 1;
    }

    /// Adds another thread's.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.busy_ns += other.busy_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        if self.latency.is_empty() {
            self.latency.clone_from(&other.latency);
            return;
        }
        for (sum, count) in self.latency.iter_mut().zip(&other.latency) {
            *sum += count;
        }
    }

    /// Mean latency, µs.
    pub fn mean_us(&self) -> f64 {
        if self.calls == 0 { 0.0 } else { self.busy_ns as f64 / self.calls as f64 / 1e3 }
    }

    /// A quantile of the latency, µs: the upper end of its bucket, at most the longest one.
    pub fn quantile_us(&self, share: f64) -> f64 {
        let ns = quantile(&self.latency, share).unwrap_or(0).min(self.max_ns);
        ns as f64 / 1e3
    }
}

#[cfg(test)]
mod tests;
