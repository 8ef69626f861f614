//! The result of a program: `result.json`, docs/formats/result.md.

use super::drive::Totals;
use super::set::Figures;
use super::tally::ActTally;
use crate::conduct::watch::{Load, Watched};
use crate::operations::{Lane, Mark, mixed};
use crate::record::provenance::Provenance;
use crate::record::{RecordError, ServerInfo, read_kind};
use base::units;
use lab_program::program::{Plan, Program, Step};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Version of the format.
pub const VERSION: u32 = 1;
/// Its kind, which distinguishes it from a run of a job.
pub const KIND: &str = "program";

/// One act of a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActResult {
    /// Its name.
    pub name: String,
    /// Process and thread.
    pub thread: String,
    /// The operation, in Filebench's words.
    pub op: String,
    /// Times it was done.
    pub calls: u64,
    /// Share of all acts, in percent.
    pub share_percent: f64,
    /// Bytes that it moved or listed.
    pub bytes: u64,
    /// Times it failed.
    pub errors: u64,
    /// The first failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Mean latency, µs.
    pub latency_us_mean: f64,
    /// Median, µs.
    pub latency_us_p50: f64,
    /// 99th percentile, µs.
    pub latency_us_p99: f64,
    /// Longest, µs.
    pub latency_us_max: f64,
}

/// One set of a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetResult {
    /// Its name.
    pub name: String,
    /// How threads share it: fixed, divided, common.
    pub sharing: String,
    /// What it is at the start.
    #[serde(flatten)]
    pub figures: Figures,
}

/// What one agent did.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AgentResult {
    /// Its number.
    pub number: u64,
    /// Where it was reached.
    pub address: String,
    /// Acts that are calls to the target.
    pub operations: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Acts that failed.
    pub errors: u64,
    /// Seconds that it ran.
    pub seconds: f64,
    /// How much after the common start it began, µs; its clock is known to within the error.
    pub late_us: f64,
    /// That error, µs.
    pub clock_error_us: f64,
    /// How it was lost, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// What all threads together were asked to do, as a hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceHash {
    /// Calls of each thread that it is of, from the first on.
    pub first: u64,
    /// The hash.
    pub hash: Mark,
    /// Hashes of the first 1, 4, 16, … calls of each thread, up to that one: runs of different
    /// length agree as far as the shorter one goes.
    pub marks: Vec<Mark>,
}

impl SequenceHash {
    /// Of the calls of all threads: a sum, whatever their order.
    fn of(sequences: &BTreeMap<u32, Vec<Lane>>) -> Option<Self> {
        let lanes = || sequences.iter().flat_map(|(n, lanes)| lanes.iter().map(move |l| (*n, l)));
        let marks = lanes().map(|(_, lane)| lane.marks.len()).min()?;
        let at = |mark: usize| {
            let each = lanes().map(|(n, lane)| mixed(lane.marks[mark].0 ^ mixed(n.into())));
            Mark(each.fold(0, u64::wrapping_add))
        };
        let marks: Vec<Mark> = (0..marks).map(at).collect();
        let hash = *marks.last()?;
        Some(Self { first: 1 << (2 * (marks.len() - 1)), hash, marks })
    }
}

/// How far the calls of two runs are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SequenceCommon {
    /// Whether they are, as far as the shorter run goes.
    pub same: bool,
    /// Calls of each thread that were compared.
    pub first: u64,
}

impl SequenceCommon {
    /// In a sentence.
    pub fn sentence(self) -> String {
        let Self { same, first } = self;
        let are = if same { "are" } else { "are not" };
        format!("the first {first} calls of each thread {are} the same")
    }
}

/// The result of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramResult {
    /// Of [`KIND`] and [`VERSION`].
    #[serde(flatten)]
    pub provenance: Provenance,
    /// Name of the file that states the program.
    pub file: String,
    /// Variables that were set.
    pub settings: Vec<String>,
    /// The seed.
    pub seed: u64,
    /// The target, without its password.
    pub target: String,
    /// Agents that it ran on.
    pub agents: u64,
    /// Each of the agents on other machines; empty without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_agent: Vec<AgentResult>,
    /// Threads.
    pub threads: u64,
    /// Seconds that it ran.
    pub seconds: f64,
    /// Why it ended before its time.
    pub stopped: Option<String>,
    /// Whether the same seed gives the same calls whatever the speed of threads is.
    pub repeatable: bool,
    /// Hash of the calls of all threads.
    pub sequence: Option<SequenceHash>,
    /// What has no effect.
    pub notes: Vec<String>,
    /// Its sets.
    pub sets: Vec<SetResult>,
    /// Its acts.
    pub acts: Vec<ActResult>,
    /// Acts that are calls to the target, all together.
    pub operations: u64,
    /// These in a second.
    pub operations_per_second: f64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Acts that failed.
    pub errors: u64,
    /// Processor time of the load generator for each of these operations, µs.
    pub cpu_us_per_operation: f64,
    /// Calls of the protocol, or of the system, during the run, by name.
    pub protocol_calls: BTreeMap<String, u64>,
    /// The same before and after it: signing in, files, leaving.
    pub preparation_calls: BTreeMap<String, u64>,
    /// What is known of the server.
    #[serde(default)]
    pub server: ServerInfo,
    /// The server during the run, and what limited.
    #[serde(flatten)]
    pub watched: Watched,
    /// Why the result has a reservation.
    pub degraded: Vec<String>,
    /// Why the run failed, if it did.
    pub failed: Option<String>,
}

/// What was asked for.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// Name of the file that states the program.
    pub file: &'a str,
    /// Variables that were set.
    pub settings: &'a [String],
    /// The target, without its password.
    pub target: String,
    /// The command.
    pub command: Vec<String>,
    /// What has no effect.
    pub notes: Vec<String>,
    /// When it began, seconds since the Unix epoch.
    pub started: f64,
}

/// Acts of all threads added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sums {
    /// Acts that are calls to the target.
    pub operations: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Acts that failed.
    pub errors: u64,
}

impl Sums {
    /// Of what threads did.
    pub fn of(program: &Program, totals: &Totals) -> Self {
        let mut sums = Self::default();
        for (act, tally) in program.acts.iter().zip(&totals.acts) {
            let only = |is: bool, n: u64| if is { n } else { 0 };
            sums.operations += only(act.op.is_call(), tally.calls);
            sums.bytes_read += only(act.op.is_read(), tally.bytes);
            sums.bytes_written += only(act.op.is_write(), tally.bytes);
            sums.errors += tally.errors;
        }
        sums
    }
}

impl ProgramResult {
    /// The result of a run.
    pub fn new(request: Request<'_>, plan: &Plan, totals: &Totals) -> Self {
        let program = &plan.program;
        let all: u64 = totals.acts.iter().map(|act| act.calls).sum();
        let Sums { operations, bytes_read, bytes_written, errors } = Sums::of(program, totals);
        let sets = plan.pools.iter().map(|pool| SetResult {
            name: pool.tree.spec().name.clone(),
            sharing: pool.sharing.to_string(),
            figures: Figures::of(&pool.tree),
        });
        let degraded = (errors > 0).then(|| format!("{errors} operations failed"));
        let failed = totals.reason.clone().filter(|_| totals.lost);
        Self {
            provenance: Provenance::new(KIND, VERSION, request.started, request.command),
            file: request.file.to_owned(),
            settings: request.settings.to_vec(),
            seed: plan.seed,
            target: request.target,
            agents: plan.agent.1,
            by_agent: Vec::new(),
            threads: program.instances(),
            seconds: totals.seconds,
            stopped: totals.reason.clone(),
            repeatable: program.is_repeatable(),
            sequence: SequenceHash::of(&totals.sequences),
            notes: request.notes,
            sets: sets.collect(),
            acts: acts(program, totals, all),
            operations,
            operations_per_second: operations as f64 / totals.seconds.max(1e-9),
            bytes_read,
            bytes_written,
            errors,
            cpu_us_per_operation: totals.cpu * 1e6 / operations.max(1) as f64,
            protocol_calls: some(&totals.during),
            preparation_calls: some(&totals.around),
            server: ServerInfo::default(),
            watched: Watched::default(),
            degraded: degraded.into_iter().collect(),
            failed,
        }
    }

    /// Why there is no hash of calls.
    const NO_CALLS: &str = "at least one thread made no call";

    /// Why the calls of two runs are not compared.
    pub fn incomparable(&self, other: &Self) -> &'static str {
        if self.sequence.is_none() || other.sequence.is_none() {
            Self::NO_CALLS
        } else {
            "they depend on the speed of threads"
        }
    }

    /// Reads the result in a file, or in `result.json` of a directory; `None` if that is another
    /// kind.
    ///
    /// # Errors
    /// It cannot be read, or is of a later version.
    pub fn read(path: &Path) -> Result<Option<Self>, RecordError> {
        read_kind(path, KIND, VERSION)
    }

    /// How far the calls of another run are the same; `None` if that depends on speed, or without a
    /// call.
    pub fn common(&self, other: &Self) -> Option<SequenceCommon> {
        let (own, other) = (self.sequence.as_ref()?, other.sequence.as_ref()?);
        let marks = own.marks.iter().zip(&other.marks);
        let (last, (a, b)) = marks.enumerate().next_back()?;
        self.repeatable.then_some(SequenceCommon { same: a == b, first: 1 << (2 * last) })
    }

    /// The figures of the whole run in a sentence.
    pub fn sentence(&self) -> String {
        let each = |bytes: u64| units::bytes(bytes as f64 / self.seconds.max(1e-9));
        format!(
            "{} threads, {:.1} s: {} operations/s, {}/s read, {}/s written, {:.1} µs CPU for each \
             operation, {} errors",
            self.threads,
            self.seconds,
            units::count(self.operations_per_second),
            each(self.bytes_read),
            each(self.bytes_written),
            self.cpu_us_per_operation,
            self.errors,
        )
    }

    /// What else there is to know, in sentences.
    pub fn sentences(&self) -> Vec<String> {
        let mut out = vec![self.sentence()];
        out.extend(self.stopped.iter().map(|why| format!("ended before its time: {why}")));
        out.push(match &self.sequence {
            Some(SequenceHash { first, hash, .. }) => {
                let hash = String::from(*hash);
                let which =
                    if self.repeatable { "" } else { ", which depends on the speed of threads" };
                format!("the first {first} calls of each thread: hash {hash}{which}")
            }
            None => format!("no hash of calls: {}", Self::NO_CALLS),
        });
        out.extend(self.watched.sentences(&self.server));
        out.extend(self.notes.iter().map(|note| format!("note: {note}")));
        out.extend(self.degraded.iter().map(|why| format!("degraded: {why}")));
        out.extend(self.failed.iter().map(|why| format!("failed: {why}")));
        out
    }
}

/// The load that a program was, for the verdict.
pub fn load(program: &Program, totals: &Totals) -> Load {
    let Sums { operations, bytes_read, bytes_written, .. } = Sums::of(program, totals);
    let of_calls = program.acts.iter().zip(&totals.acts).filter(|(act, _)| act.op.is_call());
    Load {
        threads: program.instances() as f64,
        seconds: totals.seconds,
        operations,
        bytes_read,
        bytes_written,
        call_ns: of_calls.map(|(_, tally)| tally.busy_ns).sum(),
        // Threads that wait as the program states lose nothing.
        busy_ns: totals.acts.iter().map(|tally| tally.busy_ns).sum(),
        cpu_s: totals.cpu,
    }
}

fn some(calls: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    calls.iter().filter(|(_, n)| **n > 0).map(|(name, n)| (name.clone(), *n)).collect()
}

fn acts(program: &Program, totals: &Totals, all: u64) -> Vec<ActResult> {
    let thread_of = |act: u32| {
        let has = |steps: &[Step]| steps.contains(&Step::Act(act));
        program.threads.iter().find(|thread| has(&thread.steps)).map(|t| t.name.clone())
    };
    let one = |(number, tally): (usize, &ActTally)| ActResult {
        name: program.acts[number].name.clone(),
        thread: thread_of(number as u32).unwrap_or_default(),
        op: program.acts[number].op.name().to_owned(),
        calls: tally.calls,
        share_percent: tally.calls as f64 * 100.0 / all.max(1) as f64,
        bytes: tally.bytes,
        errors: tally.errors,
        fault: totals.faults.get(&(number as u32)).cloned(),
        latency_us_mean: tally.mean_us(),
        latency_us_p50: tally.quantile_us(0.5),
        latency_us_p99: tally.quantile_us(0.99),
        latency_us_max: tally.max_ns as f64 / 1e3,
    };
    totals.acts.iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests;
