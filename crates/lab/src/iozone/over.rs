//! IOzone's initial writers and readers over the emulated link: round-trip times × children ×
//! encryption, next to what a model predicts for calls that each wait for their reply. Every sample
//! has a link and a server of its own; one that was taken while the link was late, or while
//! children and server had no core, is condemned.

pub mod record;

use super::children::{Child, Children, Start};
use super::flags::{STRIDE, Settings, Test};
use super::run::plan as children_plan;
use crate::agent::with_sources;
use crate::bridge::scene::Scene;
use crate::proc;
use crate::programs::run::{ProgramError, Session};
use crate::record::provenance::{Provenance, now};
use crate::sweep::carrier::Carrier;
use crate::sweep::link;
use crate::sweep::plan::{At, Plan, PlanError};
use crate::sweep::server::Server;
use crate::sweep::sockets::Probe;
use crate::sweep::transport::{SweepError, tried};
use crate::transfer::run::order;
use base::limits::{IO_SIZE_MAX, SWEEP_ATTEMPTS, SWEEP_OFF_PERCENT};
use record::{OverPoint, OverResult, OverSample};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Round-trip times of the source, milliseconds.
pub const RTTS_MS: [f64; 4] = [0.0, 0.2, 1.0, 2.0];
/// Children of the source.
pub const THREADS: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// Seconds that a test takes if it is as fast as the model.
const TEST_S: f64 = 2.0;
/// Share of the children's time in which they and the server may be without a core: it accounts for
/// no more than a figure may be off the model.
const WAIT_MAX: f64 = SWEEP_OFF_PERCENT / 100.0;
/// Records of a file at least: less would be the start and the end only.
const RECORDS_MIN: u64 = 12;

/// What is measured: every combination is a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OverPlan {
    /// Round-trip times, milliseconds.
    pub rtt_ms: Vec<f64>,
    /// Numbers of children.
    pub threads: Vec<u32>,
    /// Whether what crosses the link is encrypted.
    pub encrypt: Vec<bool>,
    /// The link's rate in bits per second of IP packets.
    pub rate: u64,
    /// Bytes of each record.
    pub record: u64,
    /// Bytes of each file; `None`: as many as take two seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Good samples of each point.
    pub repeats: u32,
    /// Seed of the order and of contents.
    pub seed: u64,
}

/// Why a point has no sample.
#[derive(Debug, thiserror::Error)]
enum OverError {
    /// The link or the server.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// The children.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A child had a failure.
    #[error("{0}")]
    Child(String),
}

impl OverPlan {
    /// The same as a sweep over records of calls that wait for their reply.
    pub fn sweep(&self) -> Plan {
        Plan {
            title: "IOzone over distance".to_owned(),
            carrier: Carrier::NfsRead,
            rtt_ms: self.rtt_ms.clone(),
            windows: vec![self.record],
            instances: self.threads.clone(),
            encrypt: self.encrypt.clone(),
            congestion: vec!["reno".to_owned()],
            rate: self.rate,
            repeats: self.repeats,
            seed: self.seed,
            scale: 1.0,
            figure: None,
        }
    }

    /// Checks that it is valid and ends.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.record > IO_SIZE_MAX.into() {
            return Err(PlanError(format!("-r: a call has at most {} KiB", IO_SIZE_MAX >> 10)));
        }
        self.sweep().check()?;
        let threads = self.threads.first().copied().unwrap_or(1);
        let size = self.size.unwrap_or(self.record);
        self.settings(threads, size).check().map_err(PlanError)
    }

    /// The tests of a point.
    fn settings(&self, threads: u32, size: u64) -> Settings {
        Settings {
            threads,
            size,
            record: self.record,
            tests: vec![0, 1],
            no_retest: true,
            flush: false,
            close: false,
            sync: false,
            keep: false,
            no_stonewall: false,
            stride: STRIDE,
        }
    }

    /// Bytes of each file of a point.
    fn size(&self, sweep: &Plan, at: &At) -> u64 {
        let each = sweep.predicted(at, at.rtt_ms / 1e3) / f64::from(at.instances);
        let records = (each * TEST_S / self.record as f64).ceil() as u64;
        self.size.unwrap_or(records.max(RECORDS_MIN) * self.record)
    }
}

/// Receives the result so far, the number of the point that is done, and how many are.
pub type Progress<'a> = &'a mut dyn FnMut(&OverResult, usize, u32);

/// Measures all points, in another order each round. Needs root. What fails at a point is in the
/// result.
pub fn run(plan: &OverPlan, command: Vec<String>, progress: Progress<'_>) -> OverResult {
    let sweep = plan.sweep();
    let mut result = OverResult {
        provenance: Provenance::new(record::KIND, record::VERSION, now(), command),
        plan: plan.clone(),
        link_bytes_s: sweep.link(),
        points: sweep.points().into_iter().map(OverPoint::new).collect(),
        degraded: Vec::new(),
        failed: None,
    };
    let mut done = 0;
    for round in 0..plan.repeats {
        for number in order(result.points.len(), plan.seed, round) {
            let Some(point) = result.points.get_mut(number) else { continue };
            if point.failed.is_none() {
                sample(plan, &sweep, point, round);
            }
            done += 1;
            result.provenance.ended = now();
            result.derive();
            progress(&result, number, done);
        }
    }
    result
}

/// One more sample of a point: taken again, some times, when the link was late.
fn sample(plan: &OverPlan, sweep: &Plan, point: &mut OverPoint, round: u32) {
    let at = point.at(sweep);
    for _ in 0..SWEEP_ATTEMPTS {
        match measure(plan, sweep, &at) {
            Ok((sample, why)) if why.is_empty() => {
                point.samples.push(OverSample { round, ..sample });
                return;
            }
            Ok((_, why)) => point.spoiled.push(why.join("; ")),
            Err(error) => {
                point.failed = Some(with_sources(&error));
                return;
            }
        }
    }
}

/// A sample over a link of its own, and why it is invalid, if it is.
fn measure(plan: &OverPlan, sweep: &Plan, at: &At) -> Result<(OverSample, Vec<String>), OverError> {
    let link = link::start(sweep, at)?;
    let (sample, waited) = carry(plan, sweep, at, &link)?;
    let late = link.end().map_err(SweepError::from)?.why;
    Ok((sample, late.into_iter().chain(without_core(waited)).collect()))
}

/// Why a sample is invalid in which the children and the server waited for cores for these shares
/// of the children's time, writing and reading: the machine and not the link set their pace.
fn without_core(waited: [f64; 2]) -> Option<String> {
    let most = waited[0].max(waited[1]);
    (most > WAIT_MAX).then(|| {
        let (most, limit) = (most * 100.0, WAIT_MAX * 100.0);
        format!("children and server waited for a core for {most:.1} % of the time, not {limit} %")
    })
}

/// Time that threads of a process were ready but had no core, ns.
fn waits_ns(pid: u32) -> f64 {
    let waits = proc::process_cpu(pid).map(|cpu| cpu.waits).unwrap_or_default();
    waits.iter().map(|(_, seconds)| seconds * 1e9).sum()
}

/// The figures of a point, and how much of the time there was no core for them.
fn carry(
    plan: &OverPlan,
    sweep: &Plan,
    at: &At,
    link: &Scene,
) -> Result<(OverSample, [f64; 2]), OverError> {
    let server = Server::start(sweep, at, link)?;
    let mut probe = Probe::new(sweep, at, link)?;
    let target = server.nfs()?;
    let settings = plan.settings(at.instances, plan.size(sweep, at));
    let files = Arc::new(children_plan(&settings, plan.seed, (0, 1))?);
    // Their sockets are made at the first end of the link.
    let opened = link.first.within(|| Ok(Session::open(&target, &files, true)));
    let mut session = opened.map_err(SweepError::from)?.map_err(SweepError::from)?;
    let workers = session.take_workers();
    let numbers = (0..settings.threads.into()).collect();
    let mut children = Children { settings, seed: plan.seed, workers, numbers };
    let (mut rates, mut waited) = ([0.0; 2], [0.0; 2]);
    for (n, (test, number)) in [(Test::Write, 0), (Test::Read, 1)].into_iter().enumerate() {
        let before = waits_ns(server.pid());
        let outcome = children.run(test, number, Start::default());
        let outcome = outcome.map_err(tried("start the children")).map_err(OverError::from)?;
        if let Some(fault) = outcome.children.iter().find_map(|child| child.fault.clone()) {
            return Err(OverError::Child(fault));
        }
        let each = outcome.children.iter().map(|child| child.bytes as f64 * 1e9 / child.ns as f64);
        rates[n] = each.sum();
        let waits = waits_ns(server.pid()) - before;
        let sum = |of: fn(&Child) -> u64| outcome.children.iter().map(of).sum::<u64>() as f64;
        waited[n] = (waits + sum(|child| child.wait_ns)) / sum(|child| child.ns).max(1.0);
    }
    // What else the machine does now is what it did for the records.
    probe.measure()?;
    let [write_bytes_s, read_bytes_s] = rates;
    Ok((OverSample { round: 0, rtt_s: probe.rtt_s(), write_bytes_s, read_bytes_s }, waited))
}

#[cfg(test)]
mod tests;
