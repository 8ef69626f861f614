//! A suite as it is kept: `suite.json` (docs/formats/suite.schema.json), written after each row, so
//! that the next start continues where this one was ended.

use super::rows::{Cache, RowPlan, SourceFigures};
use crate::limits::{Cell, cell};
use crate::record::observed::{ClientStep, ObservedInterface, SubnetStep};
use crate::record::{self, RecordError, RunResult, Step};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// Name of the file.
pub const SUITE: &str = "suite.json";
/// Version of the format.
pub const VERSION: u32 = 1;

/// How far a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It was not run yet.
    #[default]
    Pending,
    /// It has figures.
    Done,
    /// It was run and has none.
    Failed,
}

/// A step of a row.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StepFigures {
    /// Clients that took part to the end.
    pub clients: u32,
    /// Threads of each.
    pub threads: u32,
    /// Operations per second.
    pub ops_s: f64,
    /// Bytes per second.
    pub bytes_s: f64,
    /// Time that counts, seconds.
    pub seconds: f64,
    /// Median latency, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// From the first client's first operation to the last one's, ns.
    pub start_skew_ns: u64,
    /// How well the clocks are known, ns.
    pub clock_error_ns: u64,
    /// Share of the time in which all clients were active.
    pub all_active_share: f64,
    /// CPU of the server's processes, percent of all its cores.
    pub server_cpu_percent: Option<f64>,
    /// Bytes per second read from the device of the share.
    pub disk_read_bytes_s: Option<f64>,
    /// Bytes per second written to it.
    pub disk_write_bytes_s: Option<f64>,
    /// By client.
    pub by_client: Vec<ClientStep>,
    /// By interface of the server, those that carried payload.
    pub by_interface: Vec<ObservedInterface>,
    /// Time between the two readings of the interfaces, seconds.
    pub interface_seconds: Option<f64>,
    /// By subnet.
    pub by_subnet: Vec<SubnetStep>,
}

impl StepFigures {
    fn of(step: &Step) -> Self {
        let observed = step.observe.first();
        let rate = |bytes: Option<u64>| Some(bytes? as f64 / observed?.seconds);
        let interfaces = observed.iter().flat_map(|observed| &observed.interfaces);
        Self {
            clients: step.clients,
            threads: step.threads,
            ops_s: step.ops_s,
            bytes_s: step.bytes_s,
            seconds: step.used.1.saturating_sub(step.used.0) as f64 * step.window_s,
            p50_ns: step.latency.p50,
            p99_ns: step.latency.p99,
            start_skew_ns: step.start.skew_ns,
            clock_error_ns: step.start.clock_error_ns,
            all_active_share: step.start.all_active_share,
            server_cpu_percent: observed.and_then(|observed| {
                let cores = observed.cores.len().max(1) as f64;
                Some(observed.cpu? / observed.seconds / cores * 100.0)
            }),
            disk_read_bytes_s: rate(observed.and_then(|observed| observed.disk_read)),
            disk_write_bytes_s: rate(observed.and_then(|observed| observed.disk_write)),
            by_client: step.by_client.clone(),
            by_interface: interfaces.filter(|i| i.payload.is_some()).cloned().collect(),
            interface_seconds: observed.map(|observed| observed.seconds),
            by_subnet: step.subnets.clone(),
        }
    }
}

/// A row.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SuiteRow {
    /// Name of its job, and of its folder.
    pub job: String,
    /// What is done.
    pub title: String,
    /// Bytes of an operation.
    pub block: u32,
    /// `B/s` or `ops/s`.
    pub unit: String,
    /// Where it reads from.
    pub cache: Cache,
    /// How far it is.
    pub state: State,
    /// Whether it is proved that the data came from the disk; `None` where that is not asked.
    pub uncached: Option<bool>,
    /// Its best step as a cell of a summary.
    pub cell: Cell,
    /// Its steps.
    pub steps: Vec<StepFigures>,
    /// What the source found.
    pub source: Option<SourceFigures>,
}

impl SuiteRow {
    /// One that is to be run.
    pub fn pending(plan: &RowPlan) -> Self {
        Self {
            job: plan.job.name.clone(),
            title: plan.job.title.clone(),
            block: plan.job.block,
            unit: if plan.job.workload.is_stream() { "B/s".into() } else { "ops/s".into() },
            cache: plan.cache,
            source: plan.source,
            ..Self::default()
        }
    }

    /// Enters what a run has shown, which is kept in `below`.
    pub fn enter(&mut self, result: &RunResult, below: &str) {
        self.cell = cell(result, below);
        self.steps = result.steps.iter().map(StepFigures::of).collect();
        let cold = result.best_step().and_then(|step| step.cold.as_ref());
        self.uncached = match self.cache {
            Cache::Uncached => Some(cold.is_some_and(|cold| cold.uncached)),
            _ => None,
        };
        let some = self.best().is_some_and(|step| step.ops_s > 0.0);
        if self.cell.value.is_some() && !some {
            let why = match self.best().is_some_and(|step| step.seconds > 0.0) {
                true => "no operation ended in the windows that count: use longer rows",
                false => "the set was read before the first window ended: use a larger set",
            };
            self.cell = Cell { report: self.cell.report.take(), ..Cell::not_measured(why, true) };
        }
        self.state = if self.cell.value.is_some() { State::Done } else { State::Failed };
    }

    /// Its best step.
    pub fn best(&self) -> Option<&StepFigures> {
        let at = |step: &&StepFigures| {
            (step.clients, step.threads) == (self.cell.clients, self.cell.threads)
        };
        self.steps.iter().find(at).or(self.steps.last())
    }
}

/// A suite.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SuiteResult {
    /// [`VERSION`].
    pub format: u32,
    /// `seqread` or `filebench-suite`.
    pub suite: String,
    /// Hash of what was asked: another request does not continue these rows.
    pub asked: String,
    /// The target.
    pub target: String,
    /// The scale, in a sentence.
    pub scale: String,
    /// The command, without passwords.
    pub command: Vec<String>,
    /// Begin, seconds since the Unix epoch.
    pub started: f64,
    /// End of the last row, seconds since the Unix epoch.
    pub ended: f64,
    /// Time that all rows took, in all starts, seconds.
    pub took_s: f64,
    /// How often it was started.
    pub starts: u32,
    /// Networks, and the server's address in each.
    pub subnets: Vec<String>,
    /// The rows.
    pub rows: Vec<SuiteRow>,
    /// Why it ended before its last row, if so.
    pub stopped: Option<String>,
}

impl SuiteResult {
    /// Reads a suite: a file, or a directory with `suite.json` in it. `None` if there is none.
    ///
    /// # Errors
    /// It cannot be read, or is of a later version.
    pub fn read(path: &Path) -> Result<Option<Self>, RecordError> {
        let file = if path.is_dir() { path.join(SUITE) } else { path.to_owned() };
        if file.file_name().is_none_or(|name| name != SUITE) || !file.is_file() {
            return Ok(None);
        }
        let name = file.display().to_string();
        let text = std::fs::read_to_string(&file)
            .map_err(|e| RecordError::Io(format!("cannot read {name}"), e))?;
        let form = |what: String| RecordError::Form(name.clone(), what);
        let value = serde_json::from_str(&text).map_err(|e| form(e.to_string()))?;
        Self::of(value).map(Some).map_err(form)
    }

    /// From JSON.
    ///
    /// # Errors
    /// It is not a suite, or of another version.
    pub fn of(value: Value) -> Result<Self, String> {
        let found: Self = serde_json::from_value(value).map_err(|e| e.to_string())?;
        match found.format {
            VERSION => Ok(found),
            other => Err(format!("format {other} is not {VERSION}")),
        }
    }

    /// As it is kept.
    ///
    /// # Errors
    /// It is no JSON.
    pub fn json(&self) -> Result<String, RecordError> {
        serde_json::to_string_pretty(self)
            .map_err(|e| RecordError::Form("the suite".to_owned(), e.to_string()))
    }

    /// Writes it without the rest of the archive.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&self, dir: &Path) -> Result<(), RecordError> {
        record::write_file(dir, SUITE, &self.json()?)
    }

    /// Whether all rows were run.
    pub fn is_complete(&self) -> bool {
        self.rows.iter().all(|row| row.state != State::Pending)
    }

    /// What limits the value of its figures, each with its row.
    pub fn doubts(&self) -> Vec<String> {
        let row = |row: &SuiteRow| {
            let why = match row.state {
                State::Done => row.cell.doubts.clone(),
                _ => vec![row.cell.text.clone()],
            };
            let named = |what: String| format!("{}: {what}", row.job);
            why.into_iter().filter(|what| !what.is_empty()).map(named).collect::<Vec<_>>()
        };
        let stopped = self.stopped.iter().map(|why| format!("ended early: {why}"));
        self.rows.iter().flat_map(row).chain(stopped).collect()
    }
}
