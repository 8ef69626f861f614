//! What is known of one run of a server's: `run.json`, described in `docs/formats/state.md`.

use super::Wanted;
use crate::conduct::{StepTold, Told};
use crate::limits;
use crate::record::RunResult;
use base::clock::{NS_PER_S, wall_ns};
use serde::{Deserialize, Serialize};

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

/// One run. Times are seconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`VERSION`].
    pub format: u32,
    /// `r1`, `r2`, …
    pub id: String,
    /// Name of its job.
    pub job: String,
    /// Title of its job.
    pub title: String,
    /// Who wanted it.
    pub by: String,
    /// From where.
    pub from: String,
    /// Target URL.
    pub target: String,
    /// The share of this server that the target is.
    pub share: Option<String>,
    /// The folder of the share in which it works.
    pub folder: String,
    /// The folder that it makes for itself, and removes.
    pub scratch: String,
    /// Whether that folder is known to be gone.
    pub cleaned: bool,
    /// Whether the target is this server.
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
    pub steps: Vec<StepTold>,
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

/// Name of a run.
pub fn id(number: u64) -> String {
    format!("r{number}")
}

fn now() -> u64 {
    wall_ns() / NS_PER_S
}

impl Run {
    /// A run that waits.
    pub fn new(number: u64, wanted: &Wanted) -> Self {
        let id = id(number);
        Self {
            format: VERSION,
            job: wanted.job.name.clone(),
            title: wanted.job.title.clone(),
            by: wanted.by.clone(),
            from: wanted.from.clone(),
            target: wanted.target.clone(),
            share: wanted.share.clone(),
            folder: wanted.folder.clone(),
            // With the time, so that it is nobody else's, whatever became of an earlier state.
            scratch: format!("plimsoll-lab-{id}-{:x}", now()),
            // Nothing is made on a target before it begins.
            cleaned: true,
            own: wanted.own,
            clients: wanted.clients,
            state: State::Queued,
            queued: now(),
            started: None,
            ended: None,
            planned: wanted.job.steps(wanted.clients),
            steps: Vec::new(),
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

    /// How far it is, as steps made of steps planned. Many end before, when throughput levels.
    pub fn progress(&self) -> String {
        format!("{} of at most {} steps", self.steps.len(), self.planned.len())
    }

    /// Its turn has come.
    pub(super) fn begin(&mut self) {
        self.state = State::Preparing;
        self.started = Some(now());
        self.cleaned = false;
        self.message = "starting clients".to_owned();
    }

    /// Takes what its process tells.
    pub(super) fn hear(&mut self, told: &Told) {
        match told {
            Told::Line { text } => self.message.clone_from(text),
            Told::Generator { steps, .. } => {
                self.planned.clone_from(steps);
                self.message = "calibrating the load generator".to_owned();
            }
            Told::Preparing { .. } => self.message = "creating files".to_owned(),
            Told::Running => {
                self.state = State::Running;
                self.message = self.next_step();
            }
            Told::Step(step) => {
                self.steps.push(step.clone());
                self.message = self.next_step();
            }
        }
    }

    fn next_step(&self) -> String {
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

    /// Its process has ended by itself, with this exit code; `words` is what it said.
    pub(super) fn conclude(&mut self, result: Option<&RunResult>, code: Option<i32>, words: &str) {
        let Some(result) = result else {
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
        if let Some(step) = result.best_step() {
            self.value = Some(limits::text_of(result, step));
            self.best = Some((step.clients, step.threads));
        }
        if let Some(limit) = &result.limit {
            self.limiter = Some(limit.limiter.title().to_owned());
            self.confidence = Some(limit.confidence);
            self.why = limit.why.iter().chain(&limit.marks).cloned().collect();
        }
        self.degraded.clone_from(&result.degraded);
        // Its process says so if the folder is left.
        self.cleaned = !self.degraded.iter().any(|what| what.contains(&self.scratch));
        match &result.failed {
            Some(why) => self.finish(State::Failed, why),
            None => self.finish(State::Done, "has a result"),
        }
    }
}
