//! All tests of a run, one after the other, on a target.

use super::children::Children;
use super::flags::{Block, Settings};
use super::record::{BlockResult, IozoneResult, KIND, VERSION};
use crate::client::{Target, lacks_files};
use crate::conduct::agents::Source;
use crate::conduct::watch::{Load, Watch};
use crate::conduct::{Progress, line, preparing, running};
use crate::programs::run::{ProgramError, Session, cpu_seconds};
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
        if matches!(self.source, Source::Remote(_)) {
            let why = "the children are on this machine: omit --agents";
            return Err(ProgramError::Refused(why.into()));
        }
        Ok(())
    }
}

/// The files and threads, as a program of one act.
pub(super) fn plan(settings: &Settings, seed: u64) -> Result<Plan, ProgramError> {
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
    let plan = Plan::new(program, seed, 0, 1);
    plan.map_err(|(set, error)| ProgramError::Set(set, error))
}

/// Runs the tests.
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
    let plan = Arc::new(plan(settings, request.seed)?);
    let mut session = Session::open(request.place, &plan, true)?;
    let workers = session.take_workers();
    let mut children = Children { settings, seed: request.seed, workers };
    running(progress);
    let mut blocks: Vec<BlockResult> = Vec::new();
    for (number, block) in settings.blocks().iter().enumerate() {
        let same = block.same_as.and_then(|like| blocks.iter().find(|b| b.title == like));
        if let Some(same) = same.cloned() {
            let (title, same_as) = (block.title.to_owned(), Some(same.title.clone()));
            blocks.push(BlockResult { test: block.number, title, same_as, ..same });
            continue;
        }
        line(progress, block.title.to_owned());
        let result = measured(&mut children, block, number as u64, watch)?;
        let rate = base::units::bytes(result.children_kb_s * 1024.0);
        line(progress, format!("{}: {rate}/s", block.title));
        blocks.push(result);
    }
    if !settings.keep {
        children.remove();
    }
    children.workers.iter_mut().for_each(|worker| worker.leave());
    if !settings.keep {
        session.clean()?;
    }
    let mut result = result(request, started, blocks);
    result.server = watch.info();
    Ok(result)
}

/// One test, between two samples of the server.
fn measured(
    children: &mut Children<'_>,
    block: &Block,
    number: u64,
    watch: &mut Watch,
) -> Result<BlockResult, ProgramError> {
    let before = cpu_seconds();
    watch.begin();
    let outcome = children.run(block.test, number);
    watch.end();
    let threads = children.settings.threads.into();
    let outcome = outcome.map_err(|error| ProgramError::Threads(threads, error))?;
    let bytes = outcome.children.iter().map(|child| child.bytes).sum();
    let ns = outcome.children.iter().map(|child| child.ns).sum();
    let written = block.test.is_write();
    let load = Load {
        threads: outcome.children.len() as f64,
        seconds: outcome.parent_ns as f64 / 1e9,
        operations: outcome.children.iter().map(|child| child.records).sum(),
        bytes_read: if written { 0 } else { bytes },
        bytes_written: if written { bytes } else { 0 },
        call_ns: ns,
        busy_ns: ns,
        cpu_s: cpu_seconds() - before,
    };
    Ok(BlockResult { watched: watch.judge(&load), ..BlockResult::new(block, &outcome) })
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
