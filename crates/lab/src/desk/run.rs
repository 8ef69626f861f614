//! What is known of one run of a server's: `run.json`, described in `docs/formats/state.md`.

use super::RunRequest;
use crate::ab::Rule;
use crate::ab::record::AbResult;
use crate::archive::request::{IozoneRequest, Kind, WmlRequest};
use crate::conduct::{RunEvent, StepReport};
use crate::iozone::record::{BlockResult, IozoneResult};
use crate::limit::Verdict;
use crate::limits::{self, Cell, Summary};
use crate::net::built_in;
use crate::net::record::NetResult;
use crate::programs::record::ProgramResult;
use crate::record::RunResult;
use crate::suite;
use crate::suite::record::{SuiteResult, SuiteRow};
use crate::suite::request::{Name, SuiteRequest};
use base::clock::{NS_PER_S, wall_ns};
use base::units::{bytes, count};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version of the format.
pub const VERSION: u32 = 1;

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Others go first.
    Queued,
    /// Clients start and make their files.
    Preparing,
    /// Steps are made.
    Running,
    /// There is a result.
    Done,
    /// It came to nothing.
    Failed,
    /// It was ended.
    Aborted,
}

impl State {
    /// Whether nothing more will happen.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Aborted)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Preparing => "preparing",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Aborted => "aborted",
        }
    }
}

/// A target of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTarget {
    /// Its URL.
    pub url: String,
    /// Whether it is this server.
    pub own: bool,
}

/// What the process of a run has left.
pub(super) enum RunOutcome {
    /// Of one job.
    Run(Box<RunResult>),
    /// Of a summary.
    Limits(Box<Summary>),
    /// Of a comparison.
    Ab(Box<AbResult>),
    /// Of a program.
    Program(Box<ProgramResult>),
    /// Of IOzone's tests.
    Iozone(Box<IozoneResult>),
    /// Of a network profile.
    Net(Box<NetResult>),
    /// Of a suite.
    Suite(Box<SuiteResult>),
}

impl RunOutcome {
    /// That of a run of this kind in its folder; `None` if there is none.
    pub(super) fn read(kind: Kind, place: &Path) -> Option<Self> {
        match kind {
            Kind::Run => RunResult::read(place).ok().map(Box::new).map(Self::Run),
            Kind::Limits => Summary::read(place).ok().map(Box::new).map(Self::Limits),
            Kind::Ab => AbResult::read(place).ok().map(Box::new).map(Self::Ab),
            Kind::Program => {
                ProgramResult::read(place).ok().flatten().map(Box::new).map(Self::Program)
            }
            Kind::Iozone => {
                IozoneResult::read(place).ok().flatten().map(Box::new).map(Self::Iozone)
            }
            Kind::Net => NetResult::read(place).ok().flatten().map(Box::new).map(Self::Net),
            Kind::Suite => SuiteResult::read(place).ok().flatten().map(Box::new).map(Self::Suite),
        }
    }
}

/// One run. Times are seconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`VERSION`].
    pub format: u32,
    /// `r1`, `r2`, …
    pub id: String,
    /// What is made.
    #[serde(default)]
    pub kind: Kind,
    /// Name of its job or network profile, or `limits`, `ab`.
    pub job: String,
    /// Values of the variables of a network profile.
    #[serde(default)]
    pub settings: Vec<String>,
    /// Jobs of a summary or comparison.
    #[serde(default)]
    pub jobs: usize,
    /// Whether a summary takes less than four minutes.
    #[serde(default)]
    pub quick: bool,
    /// Whether the limiters of a summary are proved.
    #[serde(default)]
    pub prove: bool,
    /// When a comparison ends.
    #[serde(default)]
    pub rule: Rule,
    /// A program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wml: Option<WmlRequest>,
    /// Tests of IOzone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iozone: Option<IozoneRequest>,
    /// A suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<SuiteRequest>,
    /// Tests of IOzone that have ended, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
    /// Title of its job.
    pub title: String,
    /// The user that wanted it.
    pub by: String,
    /// From where.
    pub from: String,
    /// Target URL; the first one of several.
    pub target: String,
    /// All targets of a summary or comparison.
    #[serde(default)]
    pub targets: Vec<RunTarget>,
    /// The share of this server that the target is.
    pub share: Option<String>,
    /// The folder of the share in which it works.
    pub folder: String,
    /// The folder that it makes for itself, and removes.
    pub scratch: String,
    /// Whether that folder is known to be gone.
    pub cleaned: bool,
    /// Whether the target, or one of several, is this server.
    pub own: bool,
    /// Client processes.
    pub clients: u32,
    /// Where it is.
    pub state: State,
    /// When it was wanted.
    pub queued: u64,
    /// When it began.
    pub started: Option<u64>,
    /// When it ended.
    pub ended: Option<u64>,
    /// The staircase, unless it levels before its end: clients, threads of each.
    pub planned: Vec<(u32, u32)>,
    /// The steps that are made.
    pub steps: Vec<StepReport>,
    /// Which run of a summary or comparison is made now.
    #[serde(default)]
    pub part: String,
    /// What it does now, or how it ended; a sentence without its full stop.
    pub message: String,
    /// The figure for people.
    pub value: Option<String>,
    /// At which load: clients, threads of each.
    pub best: Option<(u32, u32)>,
    /// What set the limit.
    pub limiter: Option<String>,
    /// How sure that is, 0 to 1.
    pub confidence: Option<f64>,
    /// Why it is that; sentences.
    pub why: Vec<String>,
    /// What makes the result less than whole; sentences.
    pub degraded: Vec<String>,
}

/// The target of a network profile.
const BOTH_HERE: &str = "both ends on this machine";

/// Name of a run.
pub fn id(number: u64) -> String {
    format!("r{number}")
}

fn now() -> u64 {
    wall_ns() / NS_PER_S
}

impl Run {
    /// A run that waits.
    pub fn new(number: u64, wanted: &RunRequest) -> Self {
        let id = id(number);
        let one = wanted.jobs.first().filter(|_| wanted.kind == Kind::Run);
        let wml = wanted.wml.as_ref().map(|(wml, _)| wml.clone());
        let profile = wanted.profile.as_ref();
        let (job, title) = match (wanted.kind, one) {
            (Kind::Net, _) => {
                let name = profile.map_or("", |profile| &profile.name);
                (name, built_in::answers(name))
            }
            (Kind::Limits, _) => ("limits", "Performance Limit Summary"),
            (Kind::Ab, _) => ("ab", "Comparison of two targets"),
            (Kind::Program, _) => ("program", wml.as_ref().map_or("", |wml| wml.file.as_str())),
            (Kind::Iozone, _) => ("iozone", "Tests of IOzone's throughput mode"),
            (Kind::Suite, _) => {
                let name = wanted.suite.as_ref().map(|suite| suite.name);
                (name.map_or("", Name::text), "Suite of a source, row by row")
            }
            (_, job) => job.map_or(("", ""), |job| (&job.name, &job.title)),
        };
        let here = || if wanted.kind == Kind::Net { BOTH_HERE.to_owned() } else { String::new() };
        let target = wanted.targets.first().map_or_else(here, |target| target.url.clone());
        Self {
            format: VERSION,
            kind: wanted.kind,
            job: job.to_owned(),
            settings: profile.map_or_else(Vec::new, |profile| profile.settings.clone()),
            jobs: wanted.jobs.len(),
            quick: wanted.quick,
            prove: wanted.prove,
            rule: wanted.rule,
            iozone: wanted.iozone.clone(),
            suite: wanted.suite.clone(),
            lines: Vec::new(),
            title: title.to_owned(),
            wml,
            by: wanted.by.clone(),
            from: wanted.from.clone(),
            target,
            targets: match wanted.kind {
                Kind::Limits | Kind::Ab => wanted.targets.clone(),
                Kind::Run | Kind::Program | Kind::Iozone | Kind::Net | Kind::Suite => Vec::new(),
            },
            share: wanted.share.clone(),
            folder: wanted.folder.clone(),
            // With the time, so that it is unique, whatever became of an earlier state.
            scratch: format!("plimsoll-lab-{id}-{:x}", now()),
            // Nothing is made on a target before it begins.
            cleaned: true,
            own: wanted.targets.iter().any(|target| target.own),
            clients: wanted.clients,
            state: State::Queued,
            queued: now(),
            started: None,
            ended: None,
            planned: one.map(|job| job.steps(wanted.clients)).unwrap_or_default(),
            steps: Vec::new(),
            part: String::new(),
            message: "queued".to_owned(),
            value: None,
            best: None,
            limiter: None,
            confidence: None,
            why: Vec::new(),
            degraded: Vec::new(),
            id,
        }
    }

    /// Its number.
    pub fn number(&self) -> Option<u64> {
        self.id.strip_prefix('r')?.parse().ok()
    }

    /// Its targets.
    pub fn all_targets(&self) -> Vec<RunTarget> {
        match self.targets.is_empty() {
            true => vec![RunTarget { url: self.target.clone(), own: self.own }],
            false => self.targets.clone(),
        }
    }

    /// The folders that it makes on each target.
    pub(super) fn folders(&self) -> Vec<String> {
        match self.kind {
            Kind::Suite => suite::folders(&self.scratch).to_vec(),
            _ => vec![self.scratch.clone()],
        }
    }

    /// How far it is, as steps made of steps planned. Many end before, when throughput levels. Of
    /// several runs, which of them is made.
    pub fn progress(&self) -> String {
        if self.kind != Kind::Run {
            return self.part.clone();
        }
        format!("{} of at most {} steps", self.steps.len(), self.planned.len())
    }

    /// Its turn has come.
    pub(super) fn begin(&mut self) {
        self.state = State::Preparing;
        self.started = Some(now());
        // A network profile makes no folder.
        self.cleaned = self.kind == Kind::Net;
        self.message = "starting clients".to_owned();
    }

    /// Takes a report of its process.
    pub(super) fn apply(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Line { text } => {
                if self.kind != Kind::Run {
                    self.note_part(text);
                }
                // One that has ended, with its figure.
                if self.kind == Kind::Iozone && text.contains(": ") {
                    self.lines.push(text.clone());
                }
                if self.kind == Kind::Net {
                    self.state = State::Running;
                }
                self.message.clone_from(text);
            }
            RunEvent::Generator { steps, .. } => {
                self.planned.clone_from(steps);
                // Each run of several has steps of its own.
                self.steps.clear();
                self.set_message("calibrating the load generator".to_owned());
            }
            RunEvent::Preparing { .. } => self.set_message("creating files".to_owned()),
            RunEvent::Running => {
                self.state = State::Running;
                self.set_message(self.next_step());
            }
            RunEvent::Step(step) => {
                self.steps.push(step.clone());
                self.set_message(self.next_step());
            }
        }
    }

    /// Notes a line of a summary or comparison. One of a column stays before those of its rows.
    fn note_part(&mut self, text: &str) {
        let column = self.part.split("; ").next().filter(|part| part.starts_with("column "));
        self.part = match column {
            Some(column) if !text.starts_with("column ") => format!("{column}; {text}"),
            _ => text.to_owned(),
        };
    }

    fn set_message(&mut self, what: String) {
        self.message = if self.part.is_empty() { what } else { format!("{}: {what}", self.part) };
    }

    fn next_step(&self) -> String {
        if matches!(self.kind, Kind::Program | Kind::Iozone) {
            return "running".to_owned();
        }
        match self.planned.get(self.steps.len()) {
            Some((clients, threads)) => format!("running {clients} × {threads}"),
            None => "determining the limiter".to_owned(),
        }
    }

    /// It has ended.
    pub(super) fn finish(&mut self, state: State, message: &str) {
        self.state = state;
        self.ended = Some(now());
        message.clone_into(&mut self.message);
    }

    /// Its process has ended, with this exit code; `words` is its output.
    pub(super) fn conclude(&mut self, found: Option<RunOutcome>, code: Option<i32>, words: &str) {
        let Some(found) = found else {
            let last = words.lines().rev().find(|line| !line.trim().is_empty());
            let last = last.map(|line| line.trim_start_matches("plimsoll lab: ").trim());
            let why = match (last, code) {
                (Some(last), _) => last.to_owned(),
                (None, Some(code)) => format!("its process exited with {code} without a message"),
                (None, None) => "its process was killed".to_owned(),
            };
            self.finish(State::Failed, &why);
            return;
        };
        match found {
            RunOutcome::Run(result) => self.conclude_run(&result),
            RunOutcome::Limits(summary) => self.conclude_summary(&summary),
            RunOutcome::Ab(result) => self.conclude_ab(&result),
            RunOutcome::Program(result) => self.conclude_program(&result),
            RunOutcome::Iozone(result) => self.conclude_iozone(&result),
            RunOutcome::Net(result) => self.conclude_net(&result),
            RunOutcome::Suite(result) => self.conclude_suite(&result),
        }
    }

    fn conclude_summary(&mut self, summary: &Summary) {
        let all = summary.cells().count();
        let measured = summary.cells().filter(|(_, _, cell)| cell.value.is_some()).count();
        self.degraded = summary.reservations();
        if measured == 0 {
            self.finish(State::Failed, "nothing was measured");
            return;
        }
        self.value = Some(format!("{measured} of {all} cells measured"));
        self.finish(State::Done, "has a result");
    }

    fn conclude_ab(&mut self, result: &AbResult) {
        let rows = &result.outcome.rows;
        self.why = rows.iter().map(|row| format!("{}: {}", row.job, row.sentence())).collect();
        self.degraded.clone_from(&result.degraded);
        if let Some(why) = &result.failed {
            self.finish(State::Failed, why);
            return;
        }
        self.value = Some(match rows.as_slice() {
            [one] => one.sentence(),
            _ => {
                let differ = rows.iter().filter(|row| row.differs()).count();
                format!("{differ} of {} jobs differ", rows.len())
            }
        });
        self.finish(State::Done, "has a result");
    }

    fn conclude_suite(&mut self, result: &SuiteResult) {
        let done = result.rows.iter().filter(|row| row.state == suite::record::State::Done);
        let sentence = |row: &SuiteRow| {
            let Cell { text, limiter_text, .. } = &row.cell;
            format!("{}: {text}, limited by {limiter_text}", row.title)
        };
        self.why = done.map(sentence).collect();
        self.degraded = result.doubts();
        // Its process reports it if a folder is left.
        self.cleaned = result.stopped.is_none();
        if self.why.is_empty() {
            let why = result.stopped.as_deref().unwrap_or("nothing was measured");
            self.finish(State::Failed, why);
            return;
        }
        self.value = Some(format!("{} of {} rows measured", self.why.len(), result.rows.len()));
        self.finish(State::Done, "has a result");
    }

    fn conclude_net(&mut self, result: &NetResult) {
        self.value = result.main().map(|main| {
            let (payload, calls) = (bytes(main.bytes_s), count(main.calls_s));
            format!("{payload}/s of payload, {calls} calls/s")
        });
        self.why.extend(result.published.clone());
        self.conclude_load(&result.degraded, result.failed.as_deref());
    }

    /// What limited.
    fn note_limit(&mut self, limit: Option<&Verdict>) {
        let Some(limit) = limit else { return };
        self.limiter = Some(limit.limiter.title().to_owned());
        self.confidence = Some(limit.confidence);
        self.why = limit.why.iter().chain(&limit.marks).cloned().collect();
    }

    fn conclude_program(&mut self, result: &ProgramResult) {
        self.value = Some(format!("{} operations/s", count(result.operations_per_second)));
        self.note_limit(result.watched.limit.as_ref());
        self.conclude_load(&result.degraded, result.failed.as_deref());
    }

    fn conclude_iozone(&mut self, result: &IozoneResult) {
        let rate = |block: &BlockResult| {
            format!("{} {}/s", block.title, bytes(block.children_kb_s * 1024.0))
        };
        // Writers and readers, or the first two of other tests.
        let own = || result.blocks.iter().filter(|block| block.same_as.is_none());
        let usual = own().filter(|block| ["initial writers", "readers"].contains(&&*block.title));
        let usual: Vec<&BlockResult> = usual.collect();
        let shown = if usual.is_empty() { own().take(2).collect() } else { usual };
        self.value = Some(shown.iter().map(|block| rate(block)).collect::<Vec<_>>().join(", "));
        self.note_limit(shown.first().and_then(|block| block.watched.limit.as_ref()));
        self.conclude_load(&result.degraded, result.failed.as_deref());
    }

    fn conclude_load(&mut self, degraded: &[String], failed: Option<&str>) {
        self.degraded = degraded.to_vec();
        // Its process reports it if the folder is left.
        self.cleaned = !degraded.iter().any(|what| what.contains(&self.scratch));
        match failed {
            Some(why) => self.finish(State::Failed, why),
            None => self.finish(State::Done, "has a result"),
        }
    }

    fn conclude_run(&mut self, result: &RunResult) {
        if let Some(step) = result.best_step() {
            self.value = Some(limits::text_of(result, step));
            self.best = Some((step.clients, step.threads));
        }
        self.note_limit(result.limit.as_ref());
        self.degraded.clone_from(&result.degraded);
        // Its process reports it if the folder is left.
        self.cleaned = !self.degraded.iter().any(|what| what.contains(&self.scratch));
        match &result.failed {
            Some(why) => self.finish(State::Failed, why),
            None => self.finish(State::Done, "has a result"),
        }
    }
}
