//! Jobs: an experiment as a TOML file, headed by what it answers and what to expect.

use crate::limit::Direction;
use crate::shape::open::OpenShape;
use crate::shape::{BoundShape, CurveShape, RampShape, RowShape, SoakShape};
use crate::workload::{Kind, Shape};
use base::limits::{LAB_OPEN_QUEUE_MAX, LAB_WINDOWS_MAX};
use base::text::decimal;
use serde::{Deserialize, Serialize};

/// Jobs that come with the program: name and text.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("dram-read-stream", include_str!("../../../jobs/dram-read-stream.toml")),
    ("disk-read-stream", include_str!("../../../jobs/disk-read-stream.toml")),
    ("write-stream", include_str!("../../../jobs/write-stream.toml")),
    ("iops-1b", include_str!("../../../jobs/iops-1b.toml")),
    ("iops-4k", include_str!("../../../jobs/iops-4k.toml")),
    ("iops-8k", include_str!("../../../jobs/iops-8k.toml")),
    ("seqread-4k", include_str!("../../../jobs/seqread-4k.toml")),
    ("syncwrite-4k", include_str!("../../../jobs/syncwrite-4k.toml")),
    ("client-steps", include_str!("../../../jobs/client-steps.toml")),
    ("create", include_str!("../../../jobs/create.toml")),
    ("seqread", include_str!("../../../jobs/seqread.toml")),
    ("syncwrite-4k-ramp", include_str!("../../../jobs/syncwrite-4k-ramp.toml")),
    ("soak", include_str!("../../../jobs/soak.toml")),
];

/// The rows of the Performance Limit Summary, in order.
pub const SUMMARY: &[&str] = &[
    "dram-read-stream",
    "disk-read-stream",
    "write-stream",
    "iops-1b",
    "iops-4k",
    "iops-8k",
    "seqread-4k",
    "syncwrite-4k",
    "client-steps",
];

/// What to do with the run when a client is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LossPolicy {
    /// The run fails.
    Abort,
    /// The run continues with the others and is marked degraded.
    #[default]
    Continue,
    /// The step is run again with the others; the run is marked degraded.
    Rebase,
}

/// When a step is steady: both must hold over its windows (after SNIA's Performance Test
/// Specification, which requires 20 % and 10 % over five rounds).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Steady {
    /// Windows looked at, the last ones.
    pub windows: u32,
    /// Largest spread, (max − min) ÷ mean, percent.
    pub range_percent: f64,
    /// Largest change of the fitted line over the windows ÷ mean, percent.
    pub slope_percent: f64,
}

impl Default for Steady {
    fn default() -> Self {
        Self { windows: 5, range_percent: 20.0, slope_percent: 10.0 }
    }
}

/// When the staircase ends: after `min_steps`, when `steps` steps in a row gained less than
/// `gain_percent` over the best before them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Plateau {
    /// Steps that are always run.
    pub min_steps: u32,
    /// Steps in a row without gain.
    pub steps: u32,
    /// What counts as a gain, percent.
    pub gain_percent: f64,
}

impl Default for Plateau {
    fn default() -> Self {
        Self { min_steps: 4, steps: 2, gain_percent: 3.0 }
    }
}

/// Of this many blocks a cold step reads one at random: in the mean 3 % of its reads meet a block
/// that was read before.
const RANDOM_SHARE: u64 = 16;

/// Most points of a curve: each is a step of the result.
const CURVE_POINTS_MAX: usize = 100;

/// One experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Short name; the file's.
    pub name: String,
    /// Title of its row in a summary.
    pub title: String,
    /// What it answers, a sentence or two.
    pub answers: String,
    /// What to expect.
    pub expect: String,
    /// What is done.
    pub workload: Kind,
    /// Bytes of each read or write.
    #[serde(default = "default_block")]
    pub block: u32,
    /// Files of each client.
    #[serde(default = "default_files")]
    pub files: u32,
    /// Size of each file, bytes.
    #[serde(default = "default_file_size")]
    pub file_size: u64,
    /// Each thread goes through files of its own, at a position of its own; else all threads of a
    /// client share one. Of seqread and seqwrite.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_files: bool,
    /// Read from the disk: cached data is dropped before each step, which reads each byte at most
    /// once. The result states whether it is proved.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cold: bool,
    /// Seed of content and of random places.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Of reads above 64 KiB one block in this many is checked; smaller ones are checked whole.
    #[serde(default = "default_check")]
    pub check_one_in: u32,
    /// The staircase: `[clients, threads of each]`. A step with more clients than there are is
    /// run with those there are; equal steps are run once.
    pub schedule: Vec<(u32, u32)>,
    /// Arrivals by a schedule, whatever the target does: `rate` per second of all clients,
    /// `arrival` (constant or poisson), `queue`. The threads of a step are what each client may
    /// have in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<OpenShape>,
    /// The last load of the schedule for a fixed time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<RowShape>,
    /// As a row, ms: of runs that the laboratory makes for itself.
    #[serde(skip)]
    pub fixed_ms: Option<u64>,
    /// Clients and threads added by the clock, in place of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp: Option<RampShape>,
    /// After the schedule, open loops at shares of its highest throughput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<CurveShape>,
    /// After the schedule, the highest rate within a limit of latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<BoundShape>,
    /// The last load of the schedule for a long time, and its drift.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak: Option<SoakShape>,
    /// Time before the first window, ms.
    #[serde(default = "default_warmup")]
    pub warmup_ms: u64,
    /// Length of a window, ms.
    #[serde(default = "default_window")]
    pub window_ms: u64,
    /// Longest a step may take to become steady, ms, warm-up included.
    #[serde(default = "default_step_max")]
    pub step_max_ms: u64,
    /// When a step is steady.
    #[serde(default)]
    pub steady: Steady,
    /// When the staircase ends.
    #[serde(default)]
    pub plateau: Plateau,
    /// What to do when a client is lost.
    #[serde(default)]
    pub on_loss: LossPolicy,
    /// A client silent for this long is lost, ms.
    #[serde(default = "default_lost_after")]
    pub lost_after_ms: u64,
}

fn default_block() -> u32 {
    4096
}
fn default_files() -> u32 {
    1
}
fn default_file_size() -> u64 {
    16 << 20
}
fn default_seed() -> u64 {
    1815
}
fn default_check() -> u32 {
    16
}
fn default_warmup() -> u64 {
    400
}
fn default_window() -> u64 {
    250
}
fn default_step_max() -> u64 {
    4000
}
fn default_lost_after() -> u64 {
    4000
}

/// Why a job cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// No such job and no such file.
    #[error("no job named {0:?}; `plimsoll lab list` shows them, or give the path of a TOML file")]
    Unknown(String),
    /// The file cannot be read.
    #[error("cannot read the job {0}")]
    Read(String, #[source] std::io::Error),
    /// The text is not a job.
    #[error("the job {0} is not well formed: {1}")]
    Form(String, String),
    /// A `--set` that does not fit.
    #[error("--set {0}: {1}")]
    Set(String, String),
    /// Values that are invalid together.
    #[error("the job {0} cannot be run: {1}")]
    Sense(String, &'static str),
}

impl JobError {
    /// A text, if it is known, that is no job: what is wrong with it in one line, and where.
    pub(crate) fn form(name: &str, text: Option<&str>, error: &toml::de::Error) -> Self {
        let what = error.message().trim_end().replace('\n', ", ");
        let before = error.span().and_then(|at| text?.get(..at.start));
        let line = before.map(|before| format!(" (line {})", before.matches('\n').count() + 1));
        Self::Form(name.to_owned(), what + &line.unwrap_or_default())
    }

    /// The same without the name of the job.
    pub fn without_name(&self) -> String {
        match self {
            Self::Form(_, what) => format!("it is not well formed: {what}"),
            other => other.to_string(),
        }
    }
}

impl Job {
    /// A job that comes with the program, or one from a file, with `key=value` settings applied.
    ///
    /// # Errors
    /// A [`JobError`] that names the job or the setting, and the reason.
    pub fn load(name: &str, settings: &[String]) -> Result<Self, JobError> {
        let text = match BUILT_IN.iter().find(|j| j.0 == name) {
            Some((_, text)) => (*text).to_owned(),
            None if name.contains(['/', '.']) => {
                std::fs::read_to_string(name).map_err(|e| JobError::Read(name.to_owned(), e))?
            }
            None => return Err(JobError::Unknown(name.to_owned())),
        };
        Self::parse(name, &text, settings)
    }

    /// A job from its text, under this name whatever name the text contains: a copy is another job.
    ///
    /// # Errors
    /// A [`JobError`] that names the job and the reason.
    pub fn named(name: &str, text: &str) -> Result<Self, JobError> {
        let form = |e| JobError::form(name, Some(text), &e);
        let mut table: toml::Table = text.parse().map_err(form)?;
        table.insert("name".to_owned(), toml::Value::String(name.to_owned()));
        Self::of(name, table)
    }

    /// A job from its text.
    ///
    /// # Errors
    /// A [`JobError`] that names the job or the setting, and the reason.
    pub fn parse(name: &str, text: &str, settings: &[String]) -> Result<Self, JobError> {
        let plain = settled(name, text, &[])?;
        let mut job = Self::of(name, settled(name, text, settings)?)?;
        let block = plain.get("block").map_or(Some(default_block().into()), |b| b.as_integer());
        if let Some(block) = block.and_then(|block| u32::try_from(block).ok()) {
            job.name_block(block);
        }
        Ok(job)
    }

    /// Transfers blocks of another size.
    pub fn set_block(&mut self, block: u32) {
        let before = std::mem::replace(&mut self.block, block);
        self.name_block(before);
    }

    /// Puts the size of a block in the place of another one in the texts that name it.
    fn name_block(&mut self, before: u32) {
        let (before, now) = (size_text(before), size_text(self.block));
        if before == now {
            return;
        }
        for text in [&mut self.title, &mut self.answers, &mut self.expect] {
            let words = text.match_indices(&before).map(|(at, _)| at);
            // "4 KB" is no part of "64 KB".
            let whole = |at: &usize| !text[..*at].ends_with(|c: char| c.is_ascii_digit());
            let whole: Vec<usize> = words.filter(whole).collect();
            for at in whole.into_iter().rev() {
                text.replace_range(at..at + before.len(), &now);
            }
        }
    }

    fn of(name: &str, table: toml::Table) -> Result<Self, JobError> {
        let form = |e| JobError::form(name, None, &e);
        let job: Self = table.try_into().map_err(form)?;
        job.check()?;
        Ok(job)
    }

    /// Checks that the values are consistent.
    ///
    /// # Errors
    /// [`JobError::Sense`] with the values that are not.
    pub fn check(&self) -> Result<(), JobError> {
        let wrong = |why| Err(JobError::Sense(self.name.clone(), why));
        if self.schedule.is_empty() || self.schedule.iter().any(|s| s.0 == 0 || s.1 == 0) {
            return wrong("the schedule needs steps of at least one client and one thread");
        }
        if self.schedule.iter().any(|s| s.1 > base::limits::LAB_SLOTS_MAX) {
            return wrong("a step has more threads per client than a connection has slots");
        }
        if self.block == 0 || self.block > base::limits::IO_SIZE_MAX {
            return wrong("the block must be 1 byte to 1 MiB");
        }
        if self.file_size < u64::from(self.block) || self.files == 0 {
            return wrong("each client needs a file of at least one block");
        }
        if let Some(open) = &self.open {
            if !(open.rate.is_finite() && open.rate > 0.0) || open.queue > LAB_OPEN_QUEUE_MAX {
                return wrong("open.rate must be positive, and open.queue at most a million");
            }
            if !self.workload.is_independent() {
                return wrong("an open loop requires operations that do not depend on each other");
            }
        }
        if self.cold && self.workload.payload() != Some(Direction::Read) {
            return wrong("cold requires a workload that reads");
        }
        if self.window_ms < 10 || self.step_max_ms < self.warmup_ms + 2 * self.window_ms {
            return wrong("a step must be longer than its warm-up and two windows of 10 ms");
        }
        self.check_shapes().map_err(|why| JobError::Sense(self.name.clone(), why))
    }

    /// Checks the shape of the load.
    fn check_shapes(&self) -> Result<(), &'static str> {
        let shapes = [
            self.row.is_some(),
            self.ramp.is_some(),
            self.curve.is_some(),
            self.bound.is_some(),
            self.soak.is_some(),
        ];
        if shapes.iter().filter(|given| **given).count() > 1 {
            return Err("row, ramp, curve, bound and soak exclude each other");
        }
        let probes = self.curve.is_some() || self.bound.is_some();
        if self.open.is_some() && (probes || self.ramp.is_some()) {
            return Err("ramp, curve and bound exclude open");
        }
        if probes && !self.workload.is_independent() {
            return Err("an open loop requires operations that do not depend on each other");
        }
        let longest = LAB_WINDOWS_MAX as u64 * self.window_ms;
        let long = |ms: u64| ms >= 2 * self.window_ms && self.warmup_ms + ms <= longest;
        let seconds = self.row.map(|row| row.seconds).or(self.soak.map(|soak| soak.seconds));
        if seconds.is_some_and(|seconds| !long(u64::from(seconds) * 1_000)) {
            return Err("seconds must be 2 to 16,384 windows; set window_ms");
        }
        if let Some(ramp) = &self.ramp {
            let threads = (1..=base::limits::LAB_SLOTS_MAX).contains(&ramp.threads);
            if !threads || !long(ramp.thread_ms) || !long(ramp.client_ms) {
                return Err("a ramp needs threads, and at least two windows for each of them");
            }
        }
        if let Some(curve) = &self.curve {
            let shares = !curve.percent.is_empty() && curve.percent.len() <= CURVE_POINTS_MAX;
            let share = |percent: &u32| (1..=200).contains(percent);
            if !shares || !curve.percent.iter().all(share) || !long(curve.each_ms) {
                return Err("a curve needs 1 to 100 shares of 1 to 200 percent, and two windows \
                    for each");
            }
        }
        if let Some(bound) = &self.bound {
            let percentile = bound.percentile > 0.0 && bound.percentile < 100.0;
            let limit = bound.limit_us.is_finite() && bound.limit_us > 0.0;
            if !percentile || !limit || bound.within_percent < 1.0 || !long(bound.each_ms) {
                return Err(
                    "a bound needs a percentile below 100, a limit, at least 1 percent of \
                    width, and two windows for each rate",
                );
            }
        }
        if self.soak.is_some_and(|soak| soak.drift_percent <= 0.0) {
            return Err("soak.drift_percent must be positive");
        }
        Ok(())
    }

    /// The workload's shape.
    pub fn shape(&self) -> Shape {
        Shape {
            kind: self.workload,
            block: self.block,
            files: self.files,
            file_size: self.file_size,
            own_files: self.own_files,
        }
    }

    /// Operations of each client in a step that is to read from the disk: each file once, or so
    /// few blocks at random that hardly one is read twice.
    pub fn read_once(&self) -> Option<u64> {
        let all = u64::from(self.files) * (self.file_size / u64::from(self.block.max(1)));
        let share = if self.workload == Kind::RandRead { RANDOM_SHARE } else { 1 };
        self.cold.then_some((all / share).max(1))
    }

    /// The steps for this many clients.
    pub fn steps(&self, clients: u32) -> Vec<(u32, u32)> {
        let mut steps: Vec<(u32, u32)> = Vec::new();
        for (wanted, threads) in &self.schedule {
            let step = ((*wanted).min(clients), *threads);
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
        steps
    }

    /// Most slots any step gives one client.
    pub fn slots(&self) -> u32 {
        let most = self.schedule.iter().map(|s| s.1).max().unwrap_or(1);
        self.ramp.map_or(most, |ramp| ramp.threads)
    }
}

/// The size of a block as titles of jobs name it.
fn size_text(bytes: u32) -> String {
    match bytes {
        _ if bytes > 0 && bytes.is_multiple_of(1 << 20) => format!("{} MB", bytes >> 20),
        _ if bytes > 0 && bytes.is_multiple_of(1 << 10) => format!("{} KB", bytes >> 10),
        _ => format!("{bytes}-byte"),
    }
}

/// The table of a job's text, with settings applied.
///
/// # Errors
/// A [`JobError`] that names the job or the setting, and the reason.
pub fn settled(name: &str, text: &str, settings: &[String]) -> Result<toml::Table, JobError> {
    let form = |e| JobError::form(name, Some(text), &e);
    let mut table: toml::Table = text.parse().map_err(form)?;
    for setting in settings {
        apply(&mut table, setting)?;
    }
    Ok(table)
}

/// Sets one value: `block=8k`, `steady.windows=7`, `schedule=[[1,1],[8,4]]`.
fn apply(table: &mut toml::Table, setting: &str) -> Result<(), JobError> {
    let wrong = |why: &str| JobError::Set(setting.to_owned(), why.to_owned());
    let (key, value) = setting.split_once('=').ok_or_else(|| wrong("is not KEY=VALUE"))?;
    let value = parse_value(value);
    match key.split_once('.') {
        None => table.insert(key.to_owned(), value),
        Some((group, key)) => {
            let entry =
                table.entry(group).or_insert_with(|| toml::Value::Table(Default::default()));
            let inner = entry.as_table_mut().ok_or_else(|| wrong("is not a group"))?;
            inner.insert(key.to_owned(), value)
        }
    };
    Ok(())
}

fn parse_value(text: &str) -> toml::Value {
    let scaled = |suffix: char, by: i64| {
        let number = text.strip_suffix([suffix, suffix.to_ascii_uppercase()])?;
        decimal::<i64>(number)?.checked_mul(by)
    };
    let size = scaled('k', 1 << 10).or_else(|| scaled('m', 1 << 20)).or(scaled('g', 1 << 30));
    if let Some(size) = size {
        return toml::Value::Integer(size);
    }
    let parsed = format!("v = {text}").parse::<toml::Table>().ok();
    parsed.and_then(|mut t| t.remove("v")).unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests;
