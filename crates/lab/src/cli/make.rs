//! Carries out a request: one run, or a summary, into an archive.

use super::Common;
use crate::ab::REPEATS;
use crate::archive::Archive;
use crate::archive::request::{Kind, NamedTarget, Request, VERSION};
use crate::conduct::{self, RunOptions, line};
use crate::job::Job;
use crate::limits::{self, ColumnPlan, Plan, Summary};
use crate::measure;
use crate::prove;
use crate::record::RunResult;
use clap::Args;
use std::cell::RefCell;
use std::error::Error;
use std::path::Path;

/// How often a disturbed run is repeated.
#[derive(Debug, Args)]
pub(super) struct Retry {
    /// Maximum repeats of a run in which other processes used 15 % of the CPU or more
    #[arg(long, value_name = "N", default_value_t = REPEATS, value_parser = retries())]
    pub(super) retries: u32,
}

fn retries() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(0..=i64::from(REPEATS))
}

impl Common {
    /// All that was asked for.
    pub(super) fn request(
        &self,
        kind: Kind,
        targets: Vec<NamedTarget>,
        jobs: Vec<Job>,
        command: Vec<String>,
    ) -> Request {
        Request {
            format: VERSION,
            kind,
            program: concat!("plimsoll ", env!("CARGO_PKG_VERSION")).into(),
            command,
            clients: self.clients.max(1),
            agents: self.remote.agents().to_vec(),
            bind: !self.no_bind,
            subnets: self.subnets.iter().map(|s| format!("{s}={}", s.server)).collect(),
            clean: self.clean,
            scratch: None,
            server_socket: self.local.server_socket.clone(),
            // One that cannot be asked is reported when options are made of it.
            server: self.remote.server.api().ok().flatten(),
            retries: REPEATS,
            quick: false,
            until: None,
            suite: None,
            ab: None,
            wml: None,
            iozone: None,
            targets,
            jobs,
        }
    }
}

/// Makes one run, or run after run.
///
/// # Errors
/// There are no agents, or nothing can be written.
pub(super) fn run(
    request: &Request,
    options: &RunOptions,
    common: &Common,
    out: &Path,
) -> Result<RunResult, Box<dyn Error>> {
    let job = request.jobs.first().ok_or("the request has no job")?;
    let archive = RefCell::new(Archive::begin(out)?);
    let progress = RefCell::new(common.progress());
    let one = || {
        measure::undisturbed(
            request.retries,
            |share| {
                line(&mut *progress.borrow_mut(), measure::repeat_line(share));
                true
            },
            || Ok::<_, Box<dyn Error>>(conduct::run(job, options, &mut *progress.borrow_mut())?),
        )
    };
    let mut result = match request.until {
        None => one()?,
        Some(rule) => measure::until(rule, one, |n, run| {
            let text = format!("run {} of at most {}", n + 1, rule.rounds);
            line(&mut *progress.borrow_mut(), text);
            Ok(archive.borrow_mut().put_run(&format!("runs/{:03}", n + 1), run)?)
        })?,
    };
    if !options.prove.is_empty() {
        prove::prove(job, options, &mut result, &mut *progress.borrow_mut())?;
    }
    let mut archive = archive.into_inner();
    archive.put_run("", &result)?;
    archive.seal(request, &[&result])?;
    Ok(result)
}

/// Makes a summary.
///
/// # Errors
/// There are no agents, or nothing can be written.
pub(super) fn limits(
    request: &Request,
    columns: Vec<ColumnPlan>,
    common: &Common,
    out: &Path,
) -> Result<(Summary, Vec<RunResult>), Box<dyn Error>> {
    let plan = Plan {
        jobs: request.jobs.clone(),
        columns,
        retries: request.retries,
        quick: request.quick,
        clean: request.clean,
        command: request.command.clone(),
    };
    let mut archive = Archive::begin(out)?;
    let made = limits::run(&plan, &mut archive, &mut common.progress())?;
    archive.seal(request, &made.1.iter().collect::<Vec<_>>())?;
    Ok(made)
}
