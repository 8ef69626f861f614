//! The record of a run: `result.json`, described in docs/formats/result.md.
//!
//! Everything that a reader needs to believe the figure, or to repeat it: the job with its seed,
//! the command, both ends, the clocks, and every window of every step with its histogram.

pub mod cold;
pub mod observed;
pub mod provenance;

use crate::agent::clock::Offset;
use crate::hist::{self, Hist};
use crate::job::Job;
use crate::limit::{Evidence, Verdict};
use crate::measure::over::{Disturbed, OverRuns};
use crate::observe::ClientSource;
use crate::operations::Operations;
use crate::shape::open::{Arrival, ArrivalCounts};
use crate::shape::outcome::ShapeRecord;
use crate::verdict::demand::Demands;
use crate::verdict::evenness::Evenness;
use crate::verdict::prove::Proof;
use crate::verdict::usl::Scaling;
use cold::ColdStep;
use observed::{ClientStep, Observed, ServerCounts, SubnetStep};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Version of the format; a reader takes this and lower. Results of version 1 have no hashes of
/// operations, no seconds, and are no archives.
pub const VERSION: u32 = 2;

/// A whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// [`VERSION`].
    pub format: u32,
    /// Program and version that wrote this.
    pub program: String,
    /// Begin, seconds since the Unix epoch.
    pub started: f64,
    /// End, seconds since the Unix epoch.
    pub ended: f64,
    /// The job as it was run, settings applied.
    pub job: Job,
    /// Target URL.
    pub target: String,
    /// The command that repeats the run.
    pub command: Vec<String>,
    /// The machine that conducted.
    pub conductor: serde_json::Value,
    /// What is known of the server.
    pub server: ServerInfo,
    /// The clients.
    pub clients: Vec<ClientRecord>,
    /// Share of the bytes read that was checked, 0 to 1.
    pub checked_share: f64,
    /// Operations per second of all clients against nothing.
    pub null_ops_s: Option<f64>,
    /// The steps in order.
    pub steps: Vec<Step>,
    /// Number of the step that is the result.
    pub best: Option<usize>,
    /// Whether throughput levelled by the job's rule.
    pub levelled: bool,
    /// What limited it.
    pub limit: Option<Verdict>,
    /// What an operation takes of each resource, and the next limit.
    #[serde(default)]
    pub demands: Option<Demands>,
    /// How throughput scales with operations in flight.
    #[serde(default)]
    pub scaling: Option<Scaling>,
    /// What the clients were asked to do, by hash.
    #[serde(default)]
    pub operations: Operations,
    /// How other processes disturbed it, and how often it was repeated for that.
    #[serde(default)]
    pub disturbed: Option<Disturbed>,
    /// The figure over several runs, of which this is the one in the middle.
    #[serde(default)]
    pub over_runs: Option<OverRuns>,
    /// What the shape of the load has shown.
    #[serde(default)]
    pub shape: ShapeRecord,
    /// What interventions have shown, with `--prove`.
    #[serde(default)]
    pub proof: Option<Proof>,
    /// Why the run is degraded; empty when it is not.
    pub degraded: Vec<String>,
    /// Why the run failed, if it did.
    pub failed: Option<String>,
}

/// What is known of the server.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ServerInfo {
    /// How it was seen: `unseen`, `machine`, `process`, `observer` or `api`.
    pub seen: String,
    /// Why something of it was not seen.
    #[serde(default)]
    pub unseen: Option<String>,
    /// Its network namespace, if that is not the one of the process that observed it.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Its process.
    pub pid: Option<u32>,
    /// Its machine.
    pub machine: Option<serde_json::Value>,
    /// The status that it reports.
    pub status: Option<serde_json::Value>,
}

/// One client.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ClientRecord {
    /// Its number.
    pub number: u32,
    /// Where its agent was reached.
    pub agent: String,
    /// The address it was bound to.
    pub bind: Option<String>,
    /// The network that it reached the server in, if the run named any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet: Option<String>,
    /// The address that its connections come from, and the interface of its machine that has it.
    #[serde(default)]
    pub source: Option<ClientSource>,
    /// Its process.
    pub pid: u32,
    /// Its machine.
    pub machine: serde_json::Value,
    /// Its clock before the first step.
    pub offset_before: Offset,
    /// Its clock after the last step.
    pub offset_after: Option<Offset>,
    /// Its wall clock minus the conductor's, ns.
    pub wall_skew_ns: i64,
    /// What preparation took, seconds.
    pub prepared_s: f64,
    /// Calls it made, preparation and cleaning included: what the server should have counted for
    /// it.
    pub calls: u64,
    /// Operations that the server allowed it at once, if fewer than it asked for: the slots of
    /// its NFSv4.1 session.
    #[serde(default)]
    pub granted: Option<u32>,
    /// How it was lost, if it was.
    pub lost: Option<String>,
}

/// One step of the staircase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Step {
    /// Its number.
    pub number: u32,
    /// Clients that took part to the end.
    pub clients: u32,
    /// Operations that each kept in flight.
    pub threads: u32,
    /// Operations that the last client kept in flight, if fewer: of a ramp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_threads: Option<u32>,
    /// Whether it is an open loop of a curve or a bound, at a share of the highest throughput.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub probe: bool,
    /// Begin, seconds since the Unix epoch.
    pub started: f64,
    /// Length of a window, seconds.
    pub window_s: f64,
    /// Every window in which all clients were active, warm-up included.
    pub windows: Vec<WindowRecord>,
    /// First window that counts and the one after the last.
    pub used: (usize, usize),
    /// The steady-state test.
    pub steady: Steadiness,
    /// Operations per second over the windows that count.
    pub ops_s: f64,
    /// Bytes per second over the windows that count.
    pub bytes_s: f64,
    /// Latency over the windows that count.
    pub latency: Latency,
    /// Little's law.
    pub little: Little,
    /// The open loop, if the job is one.
    #[serde(default)]
    pub open: Option<OpenStep>,
    /// The common start.
    pub start: StartProof,
    /// Faults in the whole step.
    pub errors: u64,
    /// Of these, reads with wrong content.
    pub corrupt: u64,
    /// The first fault.
    pub first_error: Option<String>,
    /// COMMITs in the whole step.
    pub commits: u64,
    /// Files sent again after a changed write verifier.
    pub resent: u64,
    /// Each client in the windows that count.
    pub by_client: Vec<ClientStep>,
    /// Each network in the windows that count, if the run named any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<SubnetStep>,
    /// The server as its machine shows it.
    #[serde(default)]
    pub observe: Vec<Observed>,
    /// The server's own counts of the whole step.
    #[serde(default)]
    pub server_counts: Option<ServerCounts>,
    /// Evidence that it read from the disk, if the job requires that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold: Option<ColdStep>,
    /// How evenly the clients were served; `None` with one.
    #[serde(default)]
    pub evenness: Option<Evenness>,
    /// What the limiter is judged by.
    pub evidence: Evidence,
    /// The server's own statistics of the time that counts: data objects of its API by id.
    pub server: serde_json::Map<String, serde_json::Value>,
    /// Bytes per second that the clients' connections carried in both directions, with headers,
    /// over the windows that count; `None` if TCP did not show it for all of them.
    #[serde(default)]
    pub transport_bytes_s: Option<f64>,
    /// Latencies by second, for the archive (`hist/`).
    #[serde(skip)]
    pub seconds: Vec<SecondRecord>,
    /// What went wrong in this step.
    pub notes: Vec<String>,
}

impl Step {
    /// Whether any window of it is counted.
    pub fn has_windows(&self) -> bool {
        self.used.0 < self.used.1
    }

    /// That operations of it failed, in a sentence; `None` if none did.
    fn fault(&self) -> Option<String> {
        let why = self.first_error.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        let Self { number, errors, .. } = self;
        (*errors > 0).then(|| format!("step {number}: {errors} operations failed{why}"))
    }

    /// The least `file_size` with which a step that reads from the disk would have had all windows;
    /// `None` if it had them, or ended for another reason.
    fn size_for(&self, job: &Job) -> Option<u64> {
        let (had, asked) = (self.windows.len() as u64, u64::from(job.steady.windows));
        let possible = job.step_max_ms.saturating_sub(job.warmup_ms) / job.window_ms.max(1);
        if !job.cold || had >= asked || had + 1 >= possible {
            return None;
        }
        // It ended within the window after those that it had.
        let time = |windows: u64| (job.warmup_ms + windows * job.window_ms) as f64;
        Some((job.file_size as f64 * time(asked) / time(had + 1)) as u64)
    }
}

/// Latencies of all clients in a second of a step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SecondRecord {
    /// Begin, seconds after the step's.
    pub after_s: f64,
    /// Length, seconds.
    pub length_s: f64,
    /// Worst latency, ns.
    pub max_ns: u64,
    /// HdrHistogram V2, base64.
    pub histogram: String,
}

/// All clients in one window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WindowRecord {
    /// Operations.
    pub ops: u64,
    /// Bytes.
    pub bytes: u64,
    /// Faults.
    pub errors: u64,
    /// Mean in flight.
    pub in_flight: f64,
    /// Cores that the agents used.
    pub generator_cores: f64,
    /// Cores that the server used, if seen.
    pub server_cores: Option<f64>,
    /// Latencies: (bucket of `base::buckets`, count).
    pub heat: Vec<(u16, u64)>,
}

/// Whether a step was steady.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SteadyVerdict {
    /// Spread and slope within their bounds.
    Steady,
    /// The fitted line rises or falls too much.
    Drifting,
    /// No trend, but too wide a spread.
    Oscillating,
    /// Too few windows to decide.
    #[default]
    NotReached,
}

/// The steady-state test with its figures.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Steadiness {
    /// The verdict.
    pub verdict: SteadyVerdict,
    /// (max − min) ÷ mean, percent.
    pub range_percent: f64,
    /// Change of the fitted line over the windows ÷ mean, percent; negative if it falls.
    pub slope_percent: f64,
    /// Windows looked at.
    pub windows: u32,
}

impl Steadiness {
    /// Why a step is not steady; `None` if it is.
    pub fn doubt(&self) -> Option<String> {
        let Self { range_percent, slope_percent, windows, .. } = self;
        match self.verdict {
            SteadyVerdict::Steady => None,
            SteadyVerdict::Drifting => {
                Some(format!("throughput drifted by {slope_percent:+.0} % over {windows} windows"))
            }
            SteadyVerdict::Oscillating => {
                Some(format!("throughput varied by {range_percent:.0} % over {windows} windows"))
            }
            SteadyVerdict::NotReached => Some(format!("it had {windows} windows only")),
        }
    }
}

/// A latency distribution, ns.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Latency {
    /// Mean.
    pub mean: f64,
    /// Least.
    pub min: u64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Worst.
    pub max: u64,
    /// All of it: HdrHistogram V2, base64.
    pub histogram: String,
}

impl Latency {
    /// The figures of a histogram.
    pub fn of(hist: &Hist) -> Self {
        let q = |share| hist.value_at_quantile(share);
        Self {
            mean: hist.mean(),
            min: hist.min(),
            p50: q(0.5),
            p90: q(0.9),
            p99: q(0.99),
            p999: q(0.999),
            max: hist.max(),
            histogram: hist::to_text(hist),
        }
    }
}

/// Little's law: operations in flight = rate × mean latency. What is missing was spent in the
/// generator, between the end of one operation and the begin of the next.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Little {
    /// Clients × threads.
    pub nominal: f64,
    /// Rate × mean latency.
    pub x_times_r: f64,
    /// In flight as counted by the agents.
    pub counted: f64,
    /// (nominal − X·R) ÷ nominal, percent.
    pub deviation_percent: f64,
    /// Within 5 percent.
    pub holds: bool,
}

/// A step of an open loop. Latencies of the step count from the intended times.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct OpenStep {
    /// Arrivals per second of all clients.
    pub rate: f64,
    /// How they followed each other.
    pub arrival: Arrival,
    /// What became of them, over the whole step.
    pub counts: ArrivalCounts,
    /// How late the generator itself was, over the whole step.
    pub lateness: Latency,
    /// Why the figures are not valid, if they are not.
    pub condemned: Option<String>,
    /// What limits their value.
    pub reservation: Option<String>,
}

/// Proof that the clients began together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StartProof {
    /// Earliest to latest first operation, ns, on the conductor's clock.
    pub skew_ns: u64,
    /// The clocks are known to within this, ns (the worst client).
    pub clock_error_ns: u64,
    /// First operation of each client after the planned moment, ns: (client, late).
    pub late_ns: Vec<(u32, i64)>,
    /// Share of the counted time in which all clients were active.
    pub all_active_share: f64,
}

/// Why a result cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The system refused.
    #[error("{0}")]
    Io(String, #[source] std::io::Error),
    /// Not a result, or of a later version.
    #[error("{0} is not a result of plimsoll: {1}")]
    Form(String, String),
}

impl RunResult {
    /// The figure of interest of a step: bytes per second for streams, else operations.
    pub fn figure(&self, step: &Step) -> f64 {
        if self.job.workload.is_stream() { step.bytes_s } else { step.ops_s }
    }

    /// The figure with its unit, for people.
    pub fn figure_text(&self, step: &Step) -> String {
        if !step.has_windows() {
            return "–".to_owned();
        }
        figure_text(self.job.workload.is_stream(), self.figure(step))
    }

    /// Why the best step is not steady, in a sentence; `None` if it is.
    pub fn unsteady(&self) -> Option<String> {
        let step = self.best_step()?;
        let why = step.steady.doubt()?;
        Some(format!("the best step ({} × {}) was not steady: {why}", step.clients, step.threads))
    }

    /// Steps in which operations failed, a sentence each. These count as operations, and one that
    /// fails at once takes less time than one that is carried out.
    pub fn faulty(&self) -> Vec<String> {
        self.steps.iter().filter_map(Step::fault).collect()
    }

    /// Why its figure is not compared with that of another run: it failed, or operations of it did.
    pub fn incomparable(&self) -> Option<String> {
        self.failed.clone().or_else(|| self.faulty().into_iter().next())
    }

    /// Why steps have fewer windows than the job requires: each uncached block had been read once.
    pub fn exhausted(&self) -> Option<String> {
        let sizes = self.steps.iter().filter_map(|step| Some((step, step.size_for(&self.job)?)));
        let (steps, sizes): (Vec<_>, Vec<_>) = sizes
            .map(|(step, size)| (format!("{} × {}", step.clients, step.threads), size))
            .unzip();
        let size = base::units::bytes(sizes.into_iter().max()? as f64);
        Some(format!(
            "all uncached data was read before {} windows of {} ms were over, at {}: set file_size \
             to at least {size}",
            self.job.steady.windows,
            self.job.window_ms,
            steps.join(", ")
        ))
    }

    /// The step that is the result.
    pub fn best_step(&self) -> Option<&Step> {
        self.steps.get(self.best?)
    }

    /// Whether anything makes the run less than whole.
    pub fn is_degraded(&self) -> bool {
        !self.degraded.is_empty()
    }

    /// Writes `result.json` into `dir`, replacing an older one in one move.
    ///
    /// # Errors
    /// When the directory cannot be made or written.
    pub fn write(&self, dir: &Path) -> Result<(), RecordError> {
        write_result(self, "the run", dir)
    }

    /// Reads a result: a file, or a directory with `result.json` in it.
    ///
    /// # Errors
    /// When it cannot be read or is not one.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        let file = if path.is_dir() { path.join("result.json") } else { path.to_owned() };
        let name = file.display().to_string();
        let text = std::fs::read_to_string(&file)
            .map_err(|e| RecordError::Io(format!("cannot read {name}"), e))?;
        let result: Self = serde_json::from_str(&text)
            .map_err(|e| RecordError::Form(name.clone(), e.to_string()))?;
        if result.format > VERSION {
            return Err(RecordError::Form(name, format!("format {} is newer", result.format)));
        }
        Ok(result)
    }
}

/// A figure with its unit.
pub fn figure_text(stream: bool, figure: f64) -> String {
    if stream {
        format!("{}/s", base::units::bytes(figure))
    } else {
        format!("{} ops/s", base::units::count(figure))
    }
}

/// Reads a result of one kind: a file, or a directory with `result.json` in it. `None` when that
/// is a result of another kind.
///
/// # Errors
/// When it cannot be read or is of a version later than `version`.
pub fn read_kind<T: DeserializeOwned>(
    path: &Path,
    kind: &str,
    version: u32,
) -> Result<Option<T>, RecordError> {
    let file = if path.is_dir() { path.join("result.json") } else { path.to_owned() };
    let name = file.display().to_string();
    let text = std::fs::read_to_string(&file)
        .map_err(|e| RecordError::Io(format!("cannot read {name}"), e))?;
    let form = |e: serde_json::Error| RecordError::Form(name.clone(), e.to_string());
    let value: serde_json::Value = serde_json::from_str(&text).map_err(form)?;
    if value["kind"] != kind {
        return Ok(None);
    }
    let format = value["format"].as_u64().unwrap_or(0);
    if format > u64::from(version) {
        return Err(RecordError::Form(name, format!("format {format} is newer")));
    }
    serde_json::from_value(value).map(Some).map_err(form)
}

/// Writes a result as `result.json` into `dir`, replacing an older one in one move; `what` names
/// it in errors.
///
/// # Errors
/// When the directory cannot be made or written.
pub fn write_result(result: &impl Serialize, what: &str, dir: &Path) -> Result<(), RecordError> {
    let text = serde_json::to_string(result)
        .map_err(|e| RecordError::Form(what.to_owned(), e.to_string()))?;
    write_file(dir, "result.json", &text)
}

/// Writes a temporary file next to the target and renames it.
///
/// # Errors
/// When the directory cannot be made or written.
pub fn write_file(dir: &Path, name: &str, text: &str) -> Result<(), RecordError> {
    let place = dir.join(name);
    let io = |e| RecordError::Io(format!("cannot write {}", place.display()), e);
    let opened = opened(dir).map_err(io)?;
    // By descriptor, whatever has the directory's name meanwhile.
    let within = |name: &str| format!("/proc/self/fd/{}/{name}", opened.as_raw_fd());
    let draft = within(&format!(".{name}.new"));
    // Others may be able to write in the directory: what has the draft's name is not written to.
    match std::fs::remove_file(&draft) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(io(e)),
        _ => {}
    }
    let mut file = File::create_new(&draft).map_err(io)?;
    file.write_all(text.as_bytes()).map_err(io)?;
    std::fs::rename(&draft, within(name)).map_err(io)
}

/// A directory for results, which is created. A symbolic link of another user is not followed, as
/// by the kernel in folders for temporary files (`protected_symlinks` of proc(5)).
fn opened(dir: &Path) -> std::io::Result<File> {
    std::fs::create_dir_all(dir)?;
    let open = |more| File::options().read(true).custom_flags(libc::O_DIRECTORY | more).open(dir);
    match open(libc::O_NOFOLLOW) {
        Err(e) if matches!(e.raw_os_error(), Some(libc::ELOOP | libc::ENOTDIR)) => {}
        other => return other,
    }
    let owner = std::fs::symlink_metadata(dir)?.uid();
    // SAFETY: takes nothing, and always succeeds.
    if [0, unsafe { libc::geteuid() }].contains(&owner) {
        return open(0);
    }
    Err(std::io::Error::other("the directory is a symbolic link of another user"))
}
