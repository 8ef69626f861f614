//! The laboratory before a synthetic system: steps by the schedule until throughput levels, the
//! best one, and the evidence that would have been gathered, with 1 % of noise on each counter.

use super::system::{Run, Simulated, System, WINDOW_US, WINDOWS, step};
use crate::conduct::steady::levelled;
use crate::job::Plateau;
use crate::limit::{Device, Direction, Evidence, Point};
use crate::verdict::conclude::{Conclusion, StepEvidence, conclude};
use std::fmt;

/// Bytes of an operation.
const BLOCK: f64 = 4096.0;

/// A run of the laboratory.
pub struct Measured {
    steps: Vec<(u32, Evidence)>,
    best: usize,
    pub levelled: bool,
}

/// Runs the steps of a system.
pub fn measure(system: &System) -> Measured {
    let mut run = Run::new(system.seed);
    let rule = Plateau { min_steps: 6, ..Plateau::default() };
    let (mut steps, mut figures, mut level) = (Vec::new(), Vec::new(), false);
    for load in &system.schedule {
        let simulated = step(system, *load, &mut run);
        let evidence = observe(system, &simulated, &mut run);
        figures.push(evidence.point.ops_s);
        steps.push((load.0, evidence));
        level = levelled(&figures, &rule);
        if level {
            break;
        }
    }
    let best = figures.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |b| b.0);
    Measured { steps, best, levelled: level }
}

impl Measured {
    pub fn best_ops_s(&self) -> f64 {
        self.steps[self.best].1.point.ops_s
    }

    pub fn conclude(&self) -> Conclusion {
        let mut judged = self.steps[self.best].1.clone();
        judged.curve = self.steps.iter().map(|s| s.1.point).collect();
        judged.levelled = self.levelled;
        let steps = self
            .steps
            .iter()
            .map(|(clients, evidence)| StepEvidence { clients: *clients, evidence });
        conclude(&judged, &steps.collect::<Vec<_>>(), 1815)
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (_, e) in &self.steps {
            writeln!(
                f,
                "  {:4} in flight: {:6.0} ops/s, {:.2} ms, host {:?}, agent {:.2}, disk {:?}",
                e.point.in_flight,
                e.point.ops_s,
                e.point.latency_ns / 1e6,
                e.host_busy,
                e.generator_busiest,
                e.disk
            )?;
        }
        let found = self.conclude();
        writeln!(f, "  {:?}\n  {}", found.verdict, found.sentences().join("\n  "))
    }
}

fn observe(system: &System, s: &Simulated, run: &mut Run) -> Evidence {
    let ops = s.windows.iter().sum::<u64>() as f64;
    let ops_s = ops / (WINDOWS as f64 * WINDOW_US) * 1e6;
    let in_flight = f64::from(s.load.0 * s.load.1);
    let latency_us = s.latency_sum_us / ops.max(1.0);
    let mut noisy = |value: f64| (value * run.vary(0.01)).max(0.0);
    let server = s.server_us / s.counted_us;
    let agents = s.generator_us / s.counted_us;
    let busiest = s.generators.iter().map(|g| g.used(s.counted_us)).fold(0.0, f64::max);
    let host = s.host.used(s.counted_us) / system.cores as f64;
    let thread = s.threads.busy_us.iter().copied().fold(0.0, f64::max) / s.counted_us;
    let point = Point { in_flight, ops_s, bytes_s: ops_s * BLOCK, latency_ns: latency_us * 1e3 };
    let mut e = Evidence {
        cores: system.cores as f64,
        same_host: system.same_host,
        generator_cores: noisy(agents),
        generator_busiest: noisy(busiest).min(1.0),
        null_ops_s: Some(f64::from(s.load.0) * 1e6 / system.generator_us),
        little_deviation: (in_flight - ops_s * latency_us / 1e6) / in_flight,
        point,
        payload: Some(Direction::Read),
        ..Evidence::default()
    };
    if system.unseen {
        return e;
    }
    let listener = if system.listener_only { 0.01 } else { 1.0 };
    e.host_busy = Some(noisy(host).min(1.0));
    e.server_cores = Some(noisy(server * listener));
    e.server_hot_thread = Some(("thread".into(), noisy(thread * listener).min(1.0)));
    e.hottest_core = Some(noisy(host.max(thread)).min(1.0));
    let link = noisy(s.link.used(s.counted_us)).min(1.0);
    e.link = Some(("eth0".into(), link * 1e8, Some(1e8)));
    e.server_quota_cores = system.quota;
    e.server_throttled = system.quota.map(|_| (s.throttled_us / s.counted_us).min(1.0));
    if system.disk_us > 0.0 {
        let busy = noisy(s.disk.used(s.counted_us)).min(1.0);
        e.disk = Some(("vda".into(), busy, 0.1));
        if system.observed_device || system.cap_ops.is_some() {
            let ops_s = s.disk_ops as f64 / s.counted_us * 1e6;
            e.device = Some(Device {
                name: "vda".into(),
                bytes_s: ops_s * BLOCK,
                ops_s,
                busy,
                ..Default::default()
            });
        }
    }
    e
}
