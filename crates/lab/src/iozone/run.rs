//! All tests of a run, one after the other, on a target.

use super::children::Children;
use super::flags::Settings;
use super::record::{BlockResult, IozoneResult, KIND, VERSION};
use crate::client::{Target, lacks_files};
use crate::programs::record::now;
use crate::programs::run::{ProgramError, Session};
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
    /// Where.
    pub target: &'a Target,
    /// The seed.
    pub seed: u64,
    /// The command.
    pub command: Vec<String>,
}

/// The files and threads, as a program of one act.
fn plan(request: &IozoneRequest<'_>) -> Result<Plan, ProgramError> {
    let settings = request.settings;
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
    let plan = Plan::new(program, request.seed, 0, 1);
    plan.map_err(|(set, error)| ProgramError::Set(set, error))
}

/// Runs the tests.
///
/// # Errors
/// The target cannot be reached, has no files, or this machine has too few threads.
pub fn run(
    request: &IozoneRequest<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<IozoneResult, ProgramError> {
    let (settings, target) = (request.settings, request.target);
    settings.check().map_err(ProgramError::Refused)?;
    if let Some(why) = lacks_files(target) {
        return Err(ProgramError::Refused(format!("{target} cannot be tested: {why}")));
    }
    let started = now();
    let plan = Arc::new(plan(request)?);
    let mut session = Session::open(target, &plan, true)?;
    let workers = session.take_workers();
    let mut children = Children { settings, seed: request.seed, workers };
    let mut blocks: Vec<BlockResult> = Vec::new();
    for (number, block) in settings.blocks().iter().enumerate() {
        let same = block.same_as.and_then(|like| blocks.iter().find(|b| b.title == like));
        if let Some(same) = same.cloned() {
            let (title, same_as) = (block.title.to_owned(), Some(same.title.clone()));
            blocks.push(BlockResult { test: block.number, title, same_as, ..same });
            continue;
        }
        progress(block.title);
        let outcome = children.run(block.test, number as u64);
        let outcome =
            outcome.map_err(|error| ProgramError::Threads(settings.threads.into(), error))?;
        blocks.push(BlockResult::new(block, &outcome));
    }
    if !settings.keep {
        children.remove();
    }
    children.workers.iter_mut().for_each(|worker| worker.leave());
    if !settings.keep {
        session.clean()?;
    }
    Ok(result(request, started, blocks))
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
        kind: KIND.into(),
        format: VERSION,
        program: concat!("plimsoll ", env!("CARGO_PKG_VERSION")).into(),
        started,
        ended: now(),
        command: request.command.clone(),
        machine: crate::proc::machine(),
        target: request.target.to_string(),
        seed: request.seed,
        threads: settings.threads,
        size: settings.size,
        record: settings.record,
        stonewall: !settings.no_stonewall,
        flush: settings.flush,
        close: settings.close,
        sync: settings.sync,
        degraded: blocks.iter().flat_map(fault).collect(),
        blocks,
        failed: None,
    }
}
