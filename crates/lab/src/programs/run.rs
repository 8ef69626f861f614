//! Reads a program, checks what the target can do, runs it.

use super::drive::{self, Limit, Totals};
use super::null::NullWorker;
use super::path::{self, PathWorker};
use super::record::{self, ProgramResult};
use super::worker::{CallCounts, Worker};
use super::{plan, remote};
use crate::agent::with_sources;
use crate::client::{Checker, ClientError, Target};
use crate::conduct::agents::AgentsError;
use crate::conduct::watch::Watch;
use crate::conduct::{Progress, line as report, preparing, running};
use crate::pattern::Content;
use crate::record::provenance::now;
use base::units;
use lab_program::limits::TEXT_MAX;
use lab_program::program::{Note, Plan, Program};
use lab_program::tree::TreeError;
use lab_program::wml::{WmlError, read};
use std::cell::RefCell;
use std::error::Error;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// Seconds of a program that states none, as in Filebench.
const SECONDS: u64 = 60;
/// Of reads above 64 KiB one block in this many is compared, as in jobs.
const CHECK_ONE_IN: u32 = 16;

/// What is to be run.
#[derive(Debug)]
pub struct ProgramRequest<'a> {
    /// The file.
    pub file: &'a Path,
    /// Variables.
    pub settings: &'a [String],
    /// Where it runs.
    pub target: &'a str,
    /// Its time, instead of the one in the text.
    pub seconds: Option<u64>,
    /// The seed.
    pub seed: u64,
    /// Whether files are removed afterwards.
    pub clean: bool,
    /// A folder that is made on the target for the files, and removed with them afterwards.
    pub scratch: Option<&'a str>,
    /// The command.
    pub command: Vec<String>,
}

/// Why a program did not run.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The file cannot be read.
    #[error("cannot read {0}")]
    File(String, #[source] io::Error),
    /// The text is not a program.
    #[error(transparent)]
    Text(#[from] WmlError),
    /// A set is too large.
    #[error("the set {0}: {1}")]
    Set(String, TreeError),
    /// The target is not one.
    #[error(transparent)]
    Target(ClientError),
    /// The target cannot carry it out.
    #[error("{0}")]
    Refused(String),
    /// The target failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Agents are unavailable.
    #[error(transparent)]
    Agents(#[from] AgentsError),
    /// One of them cannot do it.
    #[error("{0}")]
    Agent(String),
    /// No thread can reach the target any more.
    #[error("the target is lost: {0}")]
    Lost(String),
    /// This machine has no more threads.
    #[error("cannot start {0} threads")]
    Threads(u64, #[source] io::Error),
}

impl ProgramError {
    /// Whether the user has to change the text or the command.
    pub fn is_usage(&self) -> bool {
        !matches!(
            self,
            Self::Client(_) | Self::Threads(..) | Self::Agents(_) | Self::Agent(_) | Self::Lost(_)
        )
    }
}

/// Whether a job is a program by its name.
pub fn is_program(job: &str) -> bool {
    Path::new(job).extension().is_some_and(|extension| extension == "f")
}

/// A program that can be run on its target.
#[derive(Debug)]
pub struct Checked {
    program: Program,
    /// Where it runs.
    pub target: Target,
    /// The text.
    pub text: String,
    name: String,
    /// What has no effect.
    pub notes: Vec<String>,
    /// Texts that it prints.
    pub messages: Vec<String>,
}

impl Checked {
    /// Reads a program and checks it against its target.
    ///
    /// # Errors
    /// See [`ProgramError`].
    pub fn new(request: &ProgramRequest<'_>) -> Result<Self, ProgramError> {
        let name = request.file.display().to_string();
        let text = text(request.file).map_err(|error| ProgramError::File(name.clone(), error))?;
        Self::of(name, text, request)
    }

    /// The same for a text that was read.
    ///
    /// # Errors
    /// See [`ProgramError`].
    pub fn of(
        name: String,
        text: String,
        request: &ProgramRequest<'_>,
    ) -> Result<Self, ProgramError> {
        let program = read(&name, &text, request.settings)?;
        let target = Target::parse(request.target).map_err(ProgramError::Target)?;
        if let Some(why) = plan::refusal(&target, &program) {
            return Err(ProgramError::Refused(why));
        }
        let notes = plan::notes(&target, &program).iter().map(|note| line(&name, note)).collect();
        let messages = program.messages.clone();
        Ok(Self { program, target, text, name, notes, messages })
    }

    /// Makes its files and runs it on this machine.
    ///
    /// # Errors
    /// See [`ProgramError`].
    pub fn run(
        &self,
        request: &ProgramRequest<'_>,
        watch: &mut Watch,
        progress: Progress<'_>,
    ) -> Result<ProgramResult, ProgramError> {
        let (seconds, started) = (self.seconds(request), now());
        let plan = Arc::new(self.plan(request, (0, 1))?);
        preparing(progress, &self.name, &self.target);
        let mut session = Session::open(&self.place(request), &plan, true)?;
        running(progress);
        watch.begin();
        let of = |at: f64, operations: u64| {
            let rate = units::count(operations as f64 / at.max(1e-9));
            let text = format!("{at:.0} s of {seconds:.0} s: {rate} operations/s");
            report(progress, text);
        };
        let of = RefCell::new(of);
        let live = |at: f64, operations: u64| (*of.borrow_mut())(at, operations);
        let limit = Limit { live: Some(&live), ..Limit::seconds(seconds) };
        let mut totals = session.run(limit)?;
        watch.end();
        let clean = request.clean && !totals.lost;
        let cleaned = if clean { session.clean() } else { Ok(Vec::new()) };
        let left = cleaned.map(|calls| totals.add_around(calls)).err();
        let mut result = ProgramResult::new(self.asked(request, started), &plan, &totals);
        result.degraded.extend(left.map(|error| not_removed(&error)));
        result.watched = watch.judge(&record::load(&plan.program, &totals));
        result.server = watch.info();
        Ok(result)
    }

    /// Where its files are.
    pub fn place(&self, request: &ProgramRequest<'_>) -> Target {
        request.scratch.map_or_else(|| self.target.clone(), |name| self.target.below(name))
    }

    /// How long it runs.
    pub fn seconds(&self, request: &ProgramRequest<'_>) -> f64 {
        request.seconds.or(self.program.seconds).unwrap_or(SECONDS) as f64
    }

    /// Its files and threads as one of several agents has them: its number, and how many.
    ///
    /// # Errors
    /// A set is too large.
    pub fn plan(
        &self,
        request: &ProgramRequest<'_>,
        (agent, agents): (u64, u64),
    ) -> Result<Plan, ProgramError> {
        let plan = Plan::new(self.program.clone(), request.seed, agent, agents);
        plan.map_err(|(set, error)| ProgramError::Set(set, error))
    }

    /// What was asked for, for a result.
    pub fn asked<'a>(&'a self, request: &ProgramRequest<'a>, started: f64) -> record::Request<'a> {
        record::Request {
            file: &self.name,
            settings: request.settings,
            target: self.target.to_string(),
            command: request.command.clone(),
            notes: self.notes.clone(),
            started,
        }
    }
}

/// The threads of one agent, connected to their target, and the files.
pub struct Session {
    target: Target,
    plan: Arc<Plan>,
    workers: Vec<Box<dyn Worker>>,
    around: CallCounts,
}

impl Session {
    /// Makes the files, unless another agent has made them on the same server, and connects the
    /// threads.
    ///
    /// # Errors
    /// The target fails.
    pub fn open(target: &Target, plan: &Arc<Plan>, make: bool) -> Result<Self, ClientError> {
        let checker = Checker::new(Content::new(plan.seed), CHECK_ONE_IN);
        let each = plan.instances();
        let mut around = CallCounts::new();
        let workers = match target {
            Target::Path(directory) => {
                path::permit(plan)?;
                let root = Arc::new(path::prepare(directory, plan, &checker)?);
                let worker = |_| -> Box<dyn Worker> {
                    Box::new(PathWorker::new(Arc::clone(plan), Arc::clone(&root), checker.clone()))
                };
                each.map(worker).collect()
            }
            Target::Null => each.map(|_| Box::new(NullWorker) as Box<dyn Worker>).collect(),
            server => {
                if make {
                    around = remote::prepare(server, plan, &checker)?;
                }
                each.map(|_| remote::worker(server, plan, &checker)).collect::<Result<_, _>>()?
            }
        };
        Ok(Self { target: target.clone(), plan: Arc::clone(plan), workers, around })
    }

    /// The threads, for another driver.
    pub fn take_workers(&mut self) -> Vec<Box<dyn Worker>> {
        std::mem::take(&mut self.workers)
    }

    /// Runs the threads, once.
    ///
    /// # Errors
    /// This machine has too few threads.
    pub fn run(&mut self, limit: Limit<'_>) -> Result<Totals, ProgramError> {
        let workers = self.take_workers();
        let (before, threads) = (cpu_seconds(), workers.len() as u64);
        let totals = drive::run(&self.plan, workers, limit);
        let mut totals = totals.map_err(|error| ProgramError::Threads(threads, error))?;
        totals.cpu = cpu_seconds() - before;
        totals.add_around(std::mem::take(&mut self.around));
        Ok(totals)
    }

    /// Removes the files; the calls that it took.
    ///
    /// # Errors
    /// The target fails.
    pub fn clean(&self) -> Result<CallCounts, ClientError> {
        match &self.target {
            Target::Path(directory) => path::remove(directory, &self.plan).map(|()| Vec::new()),
            Target::Null => Ok(Vec::new()),
            server => remote::remove(server, &self.plan),
        }
    }
}

/// Runs a plan on its target: what it did.
///
/// # Errors
/// The target fails, or this machine has too few threads.
pub fn on(
    target: &Target,
    plan: &Arc<Plan>,
    limit: Limit<'_>,
    clean: bool,
) -> Result<Totals, ProgramError> {
    let mut session = Session::open(target, plan, true)?;
    let mut totals = session.run(limit)?;
    if clean && !totals.lost {
        totals.add_around(session.clean()?);
    }
    Ok(totals)
}

/// That files are still there, and why: what was measured is good all the same.
pub(crate) fn not_removed(error: &dyn Error) -> String {
    format!("the files were not removed: {}", with_sources(error))
}

fn line(name: &str, note: &Note) -> String {
    match note.line {
        0 => note.text.clone(),
        line => format!("{name}:{line}: {}", note.text),
    }
}

fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    // One byte more than a program may have is refused by its reader.
    File::open(path)?.take(TEXT_MAX as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// Processor time of this process, seconds.
pub(crate) fn cpu_seconds() -> f64 {
    // SAFETY: plain data, for which all zeros is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is of this function.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

#[cfg(test)]
mod tests;
