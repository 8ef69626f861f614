//! Reads a program, checks what the target can do, runs it.

use super::drive::{self, Limit, Totals};
use super::null::NullWorker;
use super::path::{self, PathWorker};
use super::record::{self, ProgramResult};
use super::worker::Worker;
use super::{plan, remote};
use crate::client::{Checker, ClientError, Target};
use crate::pattern::Content;
use lab_program::limits::TEXT_MAX;
use lab_program::program::{Note, Plan, Program};
use lab_program::tree::TreeError;
use lab_program::wml::{WmlError, read};
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
    /// This machine has no more threads.
    #[error("cannot start {0} threads")]
    Threads(u64, #[source] io::Error),
}

impl ProgramError {
    /// Whether the user has to change the text or the command.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Client(_) | Self::Threads(..))
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
    target: Target,
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
        let program = read(&name, &text, request.settings)?;
        let target = Target::parse(request.target).map_err(ProgramError::Target)?;
        if let Some(why) = plan::refusal(&target, &program) {
            return Err(ProgramError::Refused(why));
        }
        let notes = plan::notes(&target, &program).iter().map(|note| line(&name, note)).collect();
        let messages = program.messages.clone();
        Ok(Self { program, target, name, notes, messages })
    }

    /// Makes its files and runs it.
    ///
    /// # Errors
    /// See [`ProgramError`].
    pub fn run(self, request: &ProgramRequest<'_>) -> Result<ProgramResult, ProgramError> {
        let Self { program, target, name, notes, .. } = self;
        let seconds = request.seconds.or(program.seconds).unwrap_or(SECONDS) as f64;
        let plan = Plan::new(program, request.seed, 0, 1);
        let plan = Arc::new(plan.map_err(|(set, error)| ProgramError::Set(set, error))?);
        let asked = record::Request {
            file: &name,
            settings: request.settings,
            target: target.to_string(),
            command: request.command.clone(),
            notes,
            started: record::now(),
        };
        let (totals, cpu) = on(&target, &plan, Limit::seconds(seconds), request.clean)?;
        Ok(ProgramResult::new(asked, &plan, &totals, cpu))
    }
}

/// Runs a plan on its target: what it did, and the processor time that it took.
///
/// # Errors
/// The target fails, or this machine has too few threads.
pub fn on(
    target: &Target,
    plan: &Arc<Plan>,
    limit: Limit,
    clean: bool,
) -> Result<(Totals, f64), ProgramError> {
    let checker = Checker::new(Content::new(plan.seed), CHECK_ONE_IN);
    let each = plan.instances();
    match target {
        Target::Path(directory) => {
            let root = Arc::new(path::prepare(directory, plan, &checker)?);
            let worker = |_| -> Box<dyn Worker> {
                Box::new(PathWorker::new(Arc::clone(plan), Arc::clone(&root), checker.clone()))
            };
            let done = timed(plan, each.map(worker).collect(), limit)?;
            if clean {
                path::remove(directory)?;
            }
            Ok(done)
        }
        Target::Null => {
            timed(plan, each.map(|_| Box::new(NullWorker) as Box<dyn Worker>).collect(), limit)
        }
        other => {
            let before = remote::prepare(other, plan, &checker)?;
            let worker = |_| remote::worker(other, plan, &checker);
            let workers = each.map(worker).collect::<Result<Vec<_>, _>>()?;
            let (mut totals, cpu) = timed(plan, workers, limit)?;
            totals.add_around(before);
            if clean && !totals.lost {
                totals.add_around(remote::remove(other, plan)?);
            }
            Ok((totals, cpu))
        }
    }
}

fn timed(
    plan: &Arc<Plan>,
    workers: Vec<Box<dyn Worker>>,
    limit: Limit,
) -> Result<(Totals, f64), ProgramError> {
    let before = cpu_seconds();
    let threads = workers.len() as u64;
    let totals = drive::run(plan, workers, limit);
    let totals = totals.map_err(|error| ProgramError::Threads(threads, error))?;
    Ok((totals, cpu_seconds() - before))
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
fn cpu_seconds() -> f64 {
    // SAFETY: plain data, for which all zeros is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is of this function.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

#[cfg(test)]
mod tests;
