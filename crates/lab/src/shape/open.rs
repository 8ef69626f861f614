//! Open loop: operations arrive by a schedule, whether or not earlier ones have ended.
//!
//! Latency counts from the *intended* time of an arrival, so that a server that stalls is charged
//! for all that arrived meanwhile (coordinated omission). At most `in_flight` operations are out;
//! arrivals beyond wait in a queue of the generator and are late by it, which is part of their
//! latency; beyond `queue` they are skipped, and counted. How late the generator itself is, woken
//! minus intended, is a histogram of its own: a generator that is late condemns its run.
//!
//! A state machine without a clock: the caller passes the time, in a test a virtual one.

use crate::hist::{self, Hist, MAX_NS};
use base::limits::LAB_OPEN_QUEUE_MAX;
use base::random::{Random, SeededRandom};
use base::units::time_ns;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The generator's own lateness may be this share of the latency, both at the 99th percentile.
pub const LATENESS_MAX: f64 = 0.10;
/// Most arrivals per second: one in each nanosecond, the unit of times. Without distances there
/// would be no last one that is due.
const RATE_MAX: f64 = 1e9;
/// Increment of SplitMix64: its n-th number is that of a seed so much further.
const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

/// How arrivals follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrival {
    /// At equal distances.
    Constant,
    /// Independent of each other: exponential distances.
    #[default]
    Poisson,
}

/// An open loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenRule {
    /// Arrivals per second.
    pub rate: f64,
    /// How they follow each other.
    #[serde(default)]
    pub arrival: Arrival,
    /// Operations that may be out at once.
    pub in_flight: u32,
    /// Arrivals that may wait for one of these; more are skipped.
    pub queue: u32,
    /// Seed of the distances.
    pub seed: u64,
}

/// An arrival that is to be started now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// Its number, from 0.
    pub number: u64,
    /// When it should have started, ns.
    pub intended_ns: u64,
}

/// An open loop of a job: for all clients together; a step's threads are what each may have out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenShape {
    /// Arrivals per second of all clients.
    pub rate: f64,
    /// How they follow each other.
    #[serde(default)]
    pub arrival: Arrival,
    /// Arrivals of each client that may wait.
    #[serde(default = "queue_default")]
    pub queue: u32,
}

/// Arrivals of each client that may wait, unless a job has another number.
pub const QUEUE: u32 = 10_000;

fn queue_default() -> u32 {
    QUEUE
}

impl OpenShape {
    /// The part of one client, with arrivals of its own.
    pub fn for_client(&self, client: u32, clients: u32, in_flight: u32, seed: u64) -> OpenRule {
        OpenRule {
            rate: self.rate / f64::from(clients.max(1)),
            arrival: self.arrival,
            in_flight,
            queue: self.queue,
            seed: SeededRandom::new(seed ^ u64::from(client)).next_u64(),
        }
    }
}

/// What one client's open loop shows at the end of a step.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OpenEnd {
    /// Its arrivals.
    pub counts: ArrivalCounts,
    /// Latencies of the whole step: HdrHistogram V2, base64.
    pub latency: String,
    /// How late the generator was: the same.
    pub lateness: String,
}

/// What became of the arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ArrivalCounts {
    /// By the schedule.
    pub offered: u64,
    /// Started at once or from the queue.
    pub started: u64,
    /// Of these, from the queue: all that may be out were.
    pub queued: u64,
    /// Not started: the queue was full.
    pub skipped: u64,
    /// Ended.
    pub completed: u64,
}

/// An open loop as it runs.
#[derive(Debug)]
pub struct OpenLoop {
    rule: OpenRule,
    start_ns: u64,
    end_ns: u64,
    next: u64,
    /// Distance of the next arrival from the start, ns; fractions add up over a run.
    offset_ns: f64,
    out: u32,
    ready: VecDeque<Arrived>,
    waiting: VecDeque<Arrived>,
    counts: ArrivalCounts,
    latency: Hist,
    lateness: Hist,
}

impl ArrivalCounts {
    /// Adds those of another client.
    pub fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.started += other.started;
        self.queued += other.queued;
        self.skipped += other.skipped;
        self.completed += other.completed;
    }
}

impl OpenRule {
    /// Whether arrivals are apart from each other, and few enough may wait.
    pub fn is_possible(&self) -> bool {
        self.rate > 0.0 && self.rate <= RATE_MAX && self.queue <= LAB_OPEN_QUEUE_MAX
    }

    /// Distance between arrival `n` and the one before, ns: a function of the seed and `n`.
    pub fn gap_ns(&self, n: u64) -> f64 {
        let mean = 1e9 / self.rate;
        match self.arrival {
            Arrival::Constant => mean,
            Arrival::Poisson => {
                let seed = self.seed.wrapping_add(INCREMENT.wrapping_mul(n));
                let bits = SeededRandom::new(seed).next_u64() >> 11;
                // Above 0, up to 1.
                let share = (bits + 1) as f64 / (1u64 << 53) as f64;
                -share.ln() * mean
            }
        }
    }
}

impl OpenLoop {
    /// From `start_ns` until `end_ns`: later arrivals do not happen.
    pub fn new(rule: OpenRule, start_ns: u64, end_ns: u64) -> Self {
        let offset_ns = rule.gap_ns(0);
        Self {
            rule,
            start_ns,
            end_ns,
            next: 0,
            offset_ns,
            out: 0,
            ready: VecDeque::new(),
            waiting: VecDeque::new(),
            counts: ArrivalCounts::default(),
            latency: hist::new(),
            lateness: hist::new(),
        }
    }

    /// When the next arrival is due; `None` after the last.
    pub fn wake_ns(&self) -> Option<u64> {
        let at = self.start_ns.saturating_add(self.offset_ns as u64);
        (at < self.end_ns).then_some(at)
    }

    /// An arrival to start now, if one is due. To be called until there is none.
    pub fn due(&mut self, now_ns: u64) -> Option<Arrived> {
        self.admit(now_ns);
        self.ready.pop_front()
    }

    /// An operation has ended. An arrival that waited may then be due.
    pub fn done(&mut self, ended: Arrived, now_ns: u64) {
        // What arrived before this end found its place still taken.
        self.admit(now_ns);
        self.out = self.out.saturating_sub(1);
        self.counts.completed += 1;
        record(&mut self.latency, now_ns.saturating_sub(ended.intended_ns));
        if let Some(next) = self.waiting.pop_front() {
            self.counts.queued += 1;
            self.start(next);
        }
    }

    /// Nothing arrives from this time on.
    pub fn close(&mut self, at_ns: u64) {
        self.end_ns = self.end_ns.min(at_ns);
    }

    /// Whatever still waits is skipped.
    pub fn abandon(&mut self) {
        self.counts.skipped += self.waiting.len() as u64;
        self.waiting.clear();
    }

    /// An arrival that was due and cannot be started: it counts as skipped.
    pub fn refuse(&mut self) {
        self.out = self.out.saturating_sub(1);
        self.counts.started -= 1;
        self.counts.skipped += 1;
    }

    /// Takes all arrivals up to now from the schedule.
    fn admit(&mut self, now_ns: u64) {
        while let Some(at) = self.wake_ns().filter(|at| *at <= now_ns) {
            let arrived = Arrived { number: self.next, intended_ns: at };
            self.next += 1;
            self.offset_ns += self.rule.gap_ns(self.next);
            self.counts.offered += 1;
            if self.out < self.rule.in_flight {
                record(&mut self.lateness, now_ns - at);
                self.start(arrived);
            } else if self.waiting.len() < self.rule.queue as usize {
                self.waiting.push_back(arrived);
            } else {
                self.counts.skipped += 1;
            }
        }
    }

    fn start(&mut self, arrived: Arrived) {
        self.out += 1;
        self.counts.started += 1;
        self.ready.push_back(arrived);
    }

    /// Whether nothing arrives any more and everything has ended.
    pub fn is_over(&self) -> bool {
        self.wake_ns().is_none() && self.out == 0 && self.waiting.is_empty()
    }

    /// For the end of a step.
    pub fn end(&self) -> OpenEnd {
        OpenEnd {
            counts: self.counts,
            latency: hist::to_text(&self.latency),
            lateness: hist::to_text(&self.lateness),
        }
    }

    /// Operations that are out.
    pub fn out(&self) -> u32 {
        self.out
    }

    /// What became of the arrivals so far.
    pub fn counts(&self) -> ArrivalCounts {
        self.counts
    }

    /// Latencies from the intended time, ns.
    pub fn latency(&self) -> &Hist {
        &self.latency
    }

    /// How late the generator was for arrivals that could start at once, ns.
    pub fn lateness(&self) -> &Hist {
        &self.lateness
    }
}

fn record(hist: &mut Hist, ns: u64) {
    hist.saturating_record(ns.min(MAX_NS));
}

/// Why figures of an open loop are not valid: the generator was late. The sentence has both
/// numbers.
pub fn condemned(latency: &Hist, lateness: &Hist) -> Option<String> {
    let p99 = |hist: &Hist| hist.value_at_quantile(0.99) as f64;
    let (late, all) = (p99(lateness), p99(latency));
    (!latency.is_empty() && late > LATENESS_MAX * all).then(|| {
        format!(
            "the load generator itself was {} late at the 99th percentile, {:.0} % of the latency \
             of {}: at most {:.0} % is valid",
            time_ns(late),
            late / all.max(1.0) * 100.0,
            time_ns(all),
            LATENESS_MAX * 100.0
        )
    })
}

/// What limits the value of the figures: arrivals that were not started.
pub fn reservation(counts: &ArrivalCounts) -> Option<String> {
    (counts.skipped > 0).then(|| {
        format!(
            "{} of {} arrivals were skipped: the target did not keep up with the rate",
            counts.skipped, counts.offered
        )
    })
}

#[cfg(test)]
mod tests;
