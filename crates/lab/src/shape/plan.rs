//! Which step of a job follows which. Pure: what the last step has shown goes in, the next one
//! comes out, so that every shape can be tried on systems that exist as formulas only.

use super::bound::{self, Bound, Probe, Search};
use super::open::OpenShape;
use super::outcome::CurvePoint;
use crate::conduct::steady;
use crate::job::Job;
use crate::record::{RunResult, Step};
use std::collections::VecDeque;

/// A step to run.
#[derive(Debug, Clone, PartialEq)]
pub struct StepPlan {
    /// Clients, threads of each.
    pub load: (u32, u32),
    /// Threads of the last client, if it has fewer.
    pub last_threads: Option<u32>,
    /// It runs for exactly this time, warm-up included, ms; else until it is steady.
    pub fixed_ms: Option<u64>,
    /// Time before the windows that count, ms.
    pub warmup_ms: u64,
    /// Arrivals by a schedule.
    pub open: Option<OpenShape>,
    /// A probe of a curve or a bound: what it skips is a finding, not a fault.
    pub probe: bool,
}

impl StepPlan {
    /// The job as this step runs it.
    pub fn job(&self, job: &Job) -> Job {
        let mut job = job.clone();
        job.open = self.open;
        job.warmup_ms = self.warmup_ms;
        if let Some(fixed) = self.fixed_ms {
            job.step_max_ms = fixed;
        }
        job
    }
}

/// What the plan needs of a step that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StepResult {
    /// The figure of the job.
    pub figure: f64,
    /// Operations per second.
    pub ops_s: f64,
    /// Of an open loop.
    pub probe: Probe,
}

/// The plan of a run.
#[derive(Debug)]
pub struct Plan<'a> {
    job: &'a Job,
    steps: VecDeque<StepPlan>,
    /// Figures of the steps in which threads wait for their replies.
    figures: Vec<f64>,
    /// The load with the highest throughput of these, and that throughput.
    best: Option<((u32, u32), f64)>,
    levelled: bool,
    then: Then,
}

/// What follows the schedule.
#[derive(Debug)]
enum Then {
    Nothing,
    Curve(VecDeque<u32>),
    Bound(Option<Search>),
}

impl<'a> Plan<'a> {
    /// Of a job with this many clients.
    pub fn new(job: &'a Job, clients: u32) -> Self {
        let then = match (&job.curve, &job.bound) {
            (Some(curve), _) => Then::Curve(curve.percent.iter().copied().collect()),
            (None, Some(_)) => Then::Bound(None),
            (None, None) => Then::Nothing,
        };
        let steps = loads(job, clients);
        Self { job, steps, figures: Vec::new(), best: None, levelled: false, then }
    }

    /// Whether throughput levelled by the job's rule.
    pub fn levelled(&self) -> bool {
        self.levelled
    }

    /// Takes what a step has shown.
    pub fn note(&mut self, step: &StepPlan, result: &StepResult) {
        if step.probe {
            if let Then::Bound(Some(search)) = &mut self.then {
                search.note(&result.probe);
            }
            return;
        }
        self.figures.push(result.figure);
        if self.best.is_none_or(|best| result.ops_s > best.1) {
            self.best = Some((step.load, result.ops_s));
        }
        self.levelled = steady::levelled(&self.figures, &self.job.plateau);
        if self.levelled && self.job.ramp.is_none() {
            self.steps.clear();
        }
    }

    /// The next step; `None` at the end.
    pub fn next_step(&mut self) -> Option<StepPlan> {
        if let Some(step) = self.steps.pop_front() {
            return Some(step);
        }
        let (load, max) = self.best?;
        match &mut self.then {
            Then::Nothing => None,
            Then::Curve(shares) => {
                let share = shares.pop_front()?;
                let curve = self.job.curve.as_ref()?;
                let rate = max * f64::from(share) / 100.0;
                Some(probe(self.job, load, rate, curve.each_ms, curve.arrival))
            }
            Then::Bound(search) => {
                if search.is_none() {
                    *search = bound::of(self.job, max);
                }
                let shape = self.job.bound.as_ref()?;
                let rate = search.as_ref()?.next()?;
                Some(probe(self.job, load, rate, shape.each_ms, shape.arrival))
            }
        }
    }

    /// The result of the search, if the job has one.
    pub fn bound(&self) -> Option<Bound> {
        let Then::Bound(Some(search)) = &self.then else { return None };
        Some(search.bound(self.job.bound.as_ref()?.percentile))
    }
}

/// An open loop at a rate. As many as a connection has slots for may be out: the limit is to be the
/// target's.
fn probe(
    job: &Job,
    load: (u32, u32),
    rate: f64,
    each_ms: u64,
    arrival: super::open::Arrival,
) -> StepPlan {
    StepPlan {
        load: (load.0, job.slots()),
        last_threads: None,
        fixed_ms: Some(job.warmup_ms + each_ms),
        warmup_ms: job.warmup_ms,
        open: Some(OpenShape { rate, arrival, queue: super::open::QUEUE }),
        probe: true,
    }
}

/// The loads of all steps before a curve or a bound: clients, threads of each.
pub fn planned(job: &Job, clients: u32) -> Vec<(u32, u32)> {
    let mut all: Vec<(u32, u32)> = loads(job, clients).iter().map(|step| step.load).collect();
    all.dedup();
    all
}

/// The steps before a curve or a bound.
fn loads(job: &Job, clients: u32) -> VecDeque<StepPlan> {
    let plain = |load| StepPlan {
        load,
        last_threads: None,
        fixed_ms: None,
        warmup_ms: job.warmup_ms,
        open: job.open,
        probe: false,
    };
    if let Some(ramp) = &job.ramp {
        return ramp_steps(ramp, clients);
    }
    let mut steps: VecDeque<StepPlan> = job.steps(clients).into_iter().map(plain).collect();
    let seconds = job.row.map(|row| row.seconds).or(job.soak.map(|soak| soak.seconds));
    if let Some(ms) = seconds.map(|seconds| u64::from(seconds) * 1_000).or(job.fixed_ms) {
        steps.drain(..steps.len().saturating_sub(1));
        for step in &mut steps {
            step.fixed_ms = Some(job.warmup_ms + ms);
        }
    }
    steps
}

/// One thread of the newest client after the other; then all stay until the next client comes.
fn ramp_steps(ramp: &super::RampShape, clients: u32) -> VecDeque<StepPlan> {
    let all = |client: u32| {
        (1..=ramp.threads).map(move |threads| {
            let rest = ramp.client_ms.saturating_sub(u64::from(ramp.threads - 1) * ramp.thread_ms);
            let last = threads == ramp.threads;
            StepPlan {
                // The first client is alone with its threads.
                load: (client, if client == 1 { threads } else { ramp.threads }),
                last_threads: (client > 1 && !last).then_some(threads),
                fixed_ms: Some(if last { rest.max(ramp.thread_ms) } else { ramp.thread_ms }),
                warmup_ms: 0,
                open: None,
                probe: false,
            }
        })
    };
    (1..=clients).flat_map(all).collect()
}

/// What a plan needs of a step's record.
pub fn result_of(job: &Job, run: &RunResult, step: &Step) -> StepResult {
    let percentile = job.bound.as_ref().map_or(99.0, |bound| bound.percentile);
    let hist = crate::hist::from_text(&step.latency.histogram).ok();
    let latency_ns = hist.map_or(f64::MAX, |h| h.value_at_quantile(percentile / 100.0) as f64);
    let open = step.open.as_ref();
    let probe = Probe {
        rate: open.map_or(0.0, |open| open.rate),
        latency_ns,
        skipped: open.map_or(0, |open| open.counts.skipped),
        condemned: open.is_some_and(|open| open.condemned.is_some()),
    };
    StepResult { figure: run.figure(step), ops_s: step.ops_s, probe }
}

/// The points of a curve among the steps of a run.
pub fn curve_of(run: &RunResult) -> Vec<CurvePoint> {
    let Some(shape) = &run.job.curve else { return Vec::new() };
    let probes = run.steps.iter().filter(|step| step.probe);
    let points = probes.zip(&shape.percent).filter_map(|(step, percent)| {
        let open = step.open.as_ref()?;
        Some(CurvePoint {
            percent: *percent,
            rate: open.rate,
            ops_s: step.ops_s,
            p50_ns: step.latency.p50,
            p99_ns: step.latency.p99,
            skipped: open.counts.skipped,
            condemned: open.condemned.is_some(),
        })
    });
    points.collect()
}

#[cfg(test)]
mod tests;
