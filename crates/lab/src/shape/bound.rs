//! The highest rate at which latency stays within a limit: a search by halving between a rate that
//! keeps the limit and one that does not. Pure.

use crate::job::Job;
use base::units::{count, time_ns};
use serde::{Deserialize, Serialize};

/// The lowest rate that is tried, as a share of the highest throughput.
const LEAST_SHARE: f64 = 0.01;
/// Most rates that are tried.
pub const PROBES_MAX: usize = 16;

/// What an open loop at one rate has shown.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Probe {
    /// Arrivals per second.
    pub rate: f64,
    /// The percentile of the latency, ns.
    pub latency_ns: f64,
    /// Arrivals that were not started.
    pub skipped: u64,
    /// The generator itself was late.
    pub condemned: bool,
}

/// The search.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    limit_ns: f64,
    within: f64,
    max: f64,
    low: Option<f64>,
    high: Option<f64>,
    late: bool,
    probes: usize,
}

/// Its result.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Bound {
    /// The highest rate that kept the limit, per second; 0 if none did.
    pub rate: f64,
    /// The lowest rate that did not, if there was one.
    pub above: Option<f64>,
    /// The percentile.
    pub percentile: f64,
    /// The limit, ns.
    pub limit_ns: f64,
    /// Whether it is a lower bound: no rate broke the limit, or the generator was late there.
    pub at_least: bool,
    /// In words.
    pub sentence: String,
}

impl Search {
    /// Below `max`, a throughput that was reached; until the rate is known to `within`, a share.
    pub fn new(max: f64, limit_ns: f64, within: f64) -> Self {
        Self { limit_ns, within, max, low: None, high: None, late: false, probes: 0 }
    }

    /// The rate to try next; `None` at the end.
    pub fn next(&self) -> Option<f64> {
        if self.probes >= PROBES_MAX || self.max <= 0.0 {
            return None;
        }
        match (self.low, self.high) {
            (None, None) => Some(self.max / 2.0),
            (None, Some(high)) => Some(high / 2.0).filter(|rate| *rate >= self.max * LEAST_SHARE),
            // At the highest throughput itself the queue grows without end.
            (Some(low), None) if low >= self.max => None,
            (Some(low), high) => {
                let above = high.unwrap_or(self.max);
                if above / low - 1.0 > self.within {
                    return Some((low + above) / 2.0);
                }
                high.is_none().then_some(self.max)
            }
        }
    }

    /// Whether a rate kept the limit.
    pub fn keeps(&self, probe: &Probe) -> bool {
        probe.skipped == 0 && probe.latency_ns <= self.limit_ns
    }

    /// Takes what was shown at a rate.
    pub fn note(&mut self, probe: &Probe) {
        self.probes += 1;
        if self.keeps(probe) {
            self.low = Some(self.low.map_or(probe.rate, |low| low.max(probe.rate)));
        } else if self.high.is_none_or(|high| probe.rate < high) {
            self.high = Some(probe.rate);
            // Its latency includes how late the generator was: the target may keep the limit.
            self.late = probe.condemned;
        }
    }

    /// The result so far.
    pub fn bound(&self, percentile: f64) -> Bound {
        let limit = time_ns(self.limit_ns);
        let rate = self.low.unwrap_or(0.0);
        let at_least = self.late || self.high.is_none();
        let most = if at_least { "at least " } else { "" };
        let mut sentence = match self.low {
            Some(rate) => format!(
                "p{percentile} stays within {limit} up to {most}{} operations per second",
                count(rate)
            ),
            None => format!("p{percentile} was above {limit} at every rate"),
        };
        if let Some(high) = self.high {
            sentence += &format!("; at {} it does not", count(high));
        }
        if self.late {
            sentence += ", but the load generator itself was late there";
        }
        let above = self.high;
        Bound { rate, above, percentile, limit_ns: self.limit_ns, at_least, sentence }
    }
}

/// The search of a job, below the highest throughput of its schedule.
pub fn of(job: &Job, max: f64) -> Option<Search> {
    let shape = job.bound.as_ref()?;
    Some(Search::new(max, shape.limit_us * 1e3, shape.within_percent / 100.0))
}

#[cfg(test)]
mod tests;
