//! All tests of a run, one after the other, on a target.

use super::children::{Children, Outcome, Start};
use super::conduct::Fleet;
use super::flags::{Block, Settings, Test};
use super::record::{BlockResult, IozoneResult, KIND, VERSION};
use crate::agent::with_sources;
use crate::client::{Target, lacks_files};
use crate::conduct::agents::Source;
use crate::conduct::watch::{Load, Watch};
use crate::conduct::{Progress, line, preparing, running};
use crate::programs::run::{ProgramError, Session, cpu_seconds, not_removed};
use crate::record::ServerInfo;
use crate::record::provenance::{Provenance, now};
use lab_program::dist::Dist;
use lab_program::program::{Act, Op, Plan, Program, Step, Thread};
use lab_program::tree::SetSpec;
use std::sync::Arc;

/// Files of a directory.
const WIDTH: u64 = 1 << 20;

/// What is to be run.
#[derive(Debug)]
pub struct IozoneRequest<'a> {
    /// What is measured.
    pub settings: &'a Settings,
    /// What is measured.
    pub target: &'a Target,
    /// Where its files are: the target, or a folder of it.
    pub place: &'a Target,
    /// The seed.
    pub seed: u64,
    /// The command.
    pub command: Vec<String>,
    /// Where the children are.
    pub source: &'a Source,
}

impl IozoneRequest<'_> {
    /// Checks what belongs together.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub fn check(&self) -> Result<(), ProgramError> {
        let (settings, target) = (self.settings, self.target);
        settings.check().map_err(ProgramError::Refused)?;
        if let Some(why) = lacks_files(target) {
            return Err(ProgramError::Refused(format!("{target} cannot be tested: {why}")));
        }
        Ok(())
    }
}

/// The files and threads, as a program of one act.
pub(crate) fn plan(
    settings: &Settings,
    seed: u64,
    (agent, agents): (u64, u64),
) -> Result<Plan, ProgramError> {
    let exist = settings.needs_files();
    let files = SetSpec::set(
        "iozone",
        settings.threads.into(),
        Dist::fixed(WIDTH),
        Dist::fixed(settings.size),
    );
    let set = SetSpec { prealloc: if exist { 100 } else { 0 }, reuse: exist, ..files };
    let threads = Thread {
        name: "child".into(),
        instances: settings.threads.into(),
        steps: vec![Step::Act(0)],
    };
    let act = Act { set: Some(0), ..Act::new("test", Op::Open) };
    let (sets, acts, threads) = (vec![set], vec![act], vec![threads]);
    let program = Program { sets, acts, threads, ..Program::default() };
    let plan = Plan::new(program, seed, agent, agents);
    plan.map_err(|(set, error)| ProgramError::Set(set, error))
}

/// Runs the tests. If the target, or an agent, is lost later, the result has the blocks before.
///
/// # Errors
/// The target cannot be reached, has no files, or this machine has too few threads.
pub fn run(
    request: &IozoneRequest<'_>,
    watch: &mut Watch,
    progress: Progress<'_>,
) -> Result<IozoneResult, ProgramError> {
    let settings = request.settings;
    request.check()?;
    let started = now();
    preparing(progress, "iozone", request.target);
    let mut crew = Crew::of(request, watch)?;
    running(progress);
    let mut blocks = Vec::new();
    let ended = each_block(settings, &mut crew, watch, progress, &mut blocks);
    let left = crew.leave();
    let failed = match ended {
        Err((_, error)) if blocks.is_empty() => return Err(error),
        Err((title, error)) => Some(format!("{title}: {}", with_sources(&error))),
        Ok(()) => None,
    };
    let mut result = result(request, started, blocks);
    (result.server, result.failed) = (watch.info(), failed);
    result.degraded.extend(left);
    Ok(result)
}

/// Makes the blocks, each as soon as the one before has ended; which one cannot be made, and why.
fn each_block(
    settings: &Settings,
    crew: &mut Crew,
    watch: &mut Watch,
    progress: Progress<'_>,
    blocks: &mut Vec<BlockResult>,
) -> Result<(), (&'static str, ProgramError)> {
    for (number, block) in settings.blocks().iter().enumerate() {
        let same = block.same_as.and_then(|like| blocks.iter().find(|b| b.title == like));
        if let Some(same) = same.cloned() {
            let (title, same_as) = (block.title.to_owned(), Some(same.title.clone()));
            blocks.push(BlockResult { test: block.number, title, same_as, ..same });
            continue;
        }
        line(progress, block.title.to_owned());
        let result = measured(crew, settings.threads, (block, number as u64), watch);
        let result = result.map_err(|error| (block.title, error))?;
        let rate = base::units::bytes(result.children_kb_s * 1024.0);
        line(progress, format!("{}: {rate}/s", block.title));
        blocks.push(result);
    }
    Ok(())
}

/// The children: in this process, or on agents.
enum Crew {
    Local(Box<Children>, Box<Session>),
    Remote(Box<Fleet>),
}

impl Crew {
    fn of(request: &IozoneRequest<'_>, watch: &mut Watch) -> Result<Self, ProgramError> {
        let (settings, seed) = (request.settings.clone(), request.seed);
        if matches!(request.source, Source::Remote(_)) {
            let fleet = Fleet::prepare(request.source, &settings, seed, request.place)?;
            watch.by_agents(&fleet.machines());
            return Ok(Self::Remote(Box::new(fleet)));
        }
        let plan = Arc::new(plan(&settings, seed, (0, 1))?);
        let mut session = Session::open(request.place, &plan, true)?;
        let (workers, numbers) = (session.take_workers(), plan.instances().collect());
        let children = Children { settings, seed, workers, numbers };
        Ok(Self::Local(Box::new(children), Box::new(session)))
    }

    /// A test, and the processor time that it took.
    fn run(
        &mut self,
        test: Test,
        number: u64,
        threads: u32,
    ) -> Result<(Outcome, f64), ProgramError> {
        match self {
            Self::Local(children, _) => {
                let before = cpu_seconds();
                let outcome = children.run(test, number, Start::default());
                let outcome = outcome.map_err(|e| ProgramError::Threads(threads.into(), e))?;
                Ok((outcome, cpu_seconds() - before))
            }
            Self::Remote(fleet) => fleet.run(test, number).map(|outcome| (outcome, fleet.cpu_s)),
        }
    }

    /// Disconnects the children, and removes their files unless they stay; what of that failed.
    fn leave(&mut self) -> Vec<String> {
        match self {
            Self::Local(children, session) => {
                children.leave();
                let cleaned = if children.settings.keep { Ok(Vec::new()) } else { session.clean() };
                cleaned.err().map(|error| not_removed(&error)).into_iter().collect()
            }
            Self::Remote(fleet) => fleet.clean(),
        }
    }
}

/// One test, between two samples of the server.
fn measured(
    crew: &mut Crew,
    threads: u32,
    (block, number): (&Block, u64),
    watch: &mut Watch,
) -> Result<BlockResult, ProgramError> {
    watch.begin();
    let done = crew.run(block.test, number, threads);
    watch.end();
    let (outcome, cpu_s) = done?;
    if let Some(why) = outcome.all_lost() {
        return Err(ProgramError::Lost(why.to_owned()));
    }
    let ns = outcome.children.iter().map(|child| child.ns).sum();
    let [bytes_read, bytes_written] = moved(block.test, &outcome);
    let load = Load {
        threads: outcome.children.len() as f64,
        seconds: outcome.parent_ns as f64 / 1e9,
        operations: outcome.children.iter().map(|child| child.records).sum(),
        bytes_read,
        bytes_written,
        call_ns: ns,
        busy_ns: ns,
        cpu_s,
    };
    Ok(BlockResult { watched: watch.judge(&load), ..BlockResult::new(block, &outcome) })
}

/// Bytes that children have read, and those that they have written.
fn moved(test: Test, outcome: &Outcome) -> [u64; 2] {
    [false, true].map(|write| {
        let of = outcome.children.iter();
        let of = of.filter(|child| test.of_child(child.number).is_write() == write);
        of.map(|child| child.bytes).sum()
    })
}

fn result(request: &IozoneRequest<'_>, started: f64, blocks: Vec<BlockResult>) -> IozoneResult {
    let settings = request.settings;
    let fault = |block: &BlockResult| {
        let each = block.children.iter().enumerate();
        let title = block.title.clone();
        let faults = each.filter_map(move |(n, child)| {
            Some(format!("{title}: child {n}: {}", child.fault.as_ref()?))
        });
        faults.collect::<Vec<_>>()
    };
    IozoneResult {
        provenance: Provenance::new(KIND, VERSION, started, request.command.clone()),
        target: request.target.to_string(),
        seed: request.seed,
        threads: settings.threads,
        size: settings.size,
        record: settings.record,
        stonewall: !settings.no_stonewall,
        flush: settings.flush,
        close: settings.close,
        sync: settings.sync,
        server: ServerInfo::default(),
        degraded: blocks.iter().flat_map(fault).collect(),
        blocks,
        failed: None,
    }
}

#[cfg(test)]
mod tests;
