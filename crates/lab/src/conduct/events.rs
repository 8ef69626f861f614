//! What a run reports while it is in progress: for people as lines, for programs as JSON.

use crate::record::{RunResult, SteadyVerdict, Step};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One piece of news.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "kebab-case")]
pub enum RunEvent {
    /// Something for people.
    Line {
        /// One line.
        text: String,
    },
    /// The agents are there; what they can do against nothing is measured.
    Generator {
        /// Name of the job.
        job: String,
        /// How many they are.
        clients: u32,
        /// The staircase, unless it levels before its end: clients, threads of each.
        steps: Vec<(u32, u32)>,
    },
    /// Files are made.
    Preparing {
        /// Name of the job.
        job: String,
        /// Where.
        target: String,
    },
    /// The first step begins.
    Running,
    /// A step has ended.
    Step(StepReport),
}

/// The main figures of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepReport {
    /// Name of the job.
    pub job: String,
    /// Clients that took part to the end.
    pub clients: u32,
    /// Operations that each kept in flight.
    pub threads: u32,
    /// Begin, seconds since the Unix epoch.
    pub started: f64,
    /// Bytes per second for streams, else operations.
    pub figure: f64,
    /// The same for people.
    pub text: String,
    /// Median latency, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// Whether it was steady.
    pub steady: SteadyVerdict,
}

impl StepReport {
    /// The figures of a step.
    pub fn of(result: &RunResult, step: &Step) -> Self {
        Self {
            job: result.job.name.clone(),
            clients: step.clients,
            threads: step.threads,
            started: step.started,
            figure: result.figure(step),
            text: result.figure_text(step),
            p50_ns: step.latency.p50,
            p99_ns: step.latency.p99,
            steady: step.steady.verdict,
        }
    }
}

impl fmt::Display for RunEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { text } => f.write_str(text),
            Self::Generator { job, clients, .. } => {
                write!(f, "{job}: {clients} clients, calibrating the load generator")
            }
            Self::Preparing { job, target } => write!(f, "{job}: preparing files on {target}"),
            Self::Running => f.write_str("files are ready"),
            Self::Step(step) => step.fmt(f),
        }
    }
}

impl fmt::Display for StepReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { job, clients, threads, text, steady, .. } = self;
        let time = |ns: u64| base::units::time_ns(ns as f64);
        let (p50, p99) = (time(self.p50_ns), time(self.p99_ns));
        write!(f, "{job}: {clients} × {threads}: {text}")?;
        if self.p99_ns > 0 {
            write!(f, ", p50 {p50}, p99 {p99}")?;
        }
        match steady {
            SteadyVerdict::Steady => Ok(()),
            SteadyVerdict::Drifting => f.write_str(", drifting"),
            SteadyVerdict::Oscillating => f.write_str(", oscillating"),
            SteadyVerdict::NotReached => f.write_str(", not-reached"),
        }
    }
}
