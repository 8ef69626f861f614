//! The Performance Limit Summary: experiments as rows, targets as columns. The columns are run one
//! after the other, each in a separate folder, so that files of one identity do not block another.
//! A cell that cannot be measured states the reason, and the rest continues.

use crate::agent::with_sources;
use crate::archive::Archive;
use crate::client::{scratch, unsupported};
use crate::conduct::{self, Progress, RunError, line};
use crate::job::Job;
use crate::measure;
use crate::prove;
use crate::record::{self, RecordError, RunResult, SteadyVerdict, Step};
use crate::report;
use base::limits::LAB_CLEAN_MAX;
use std::time::Duration;

mod cell;
mod column;
mod quick;
pub mod summary;
mod text;

pub use cell::{cell, text_of};
pub(crate) use column::keep_own_api;
pub use column::{ColumnPlan, columns, no_rdma, with_rdma};
pub use summary::{Bound, Cell, Column, Row, Summary};
pub(crate) use text::NOTE;

use quick::Budget;
pub use quick::QUICK_FILE_MAX;

/// Why there is no summary.
#[derive(Debug, thiserror::Error)]
pub enum LimitsError {
    /// A run could not be made.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A result could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// What is to be run.
#[derive(Debug)]
pub struct Plan {
    /// The rows.
    pub jobs: Vec<Job>,
    /// The columns.
    pub columns: Vec<ColumnPlan>,
    /// How often a disturbed row is repeated.
    pub retries: u32,
    /// Whether all together take less than four minutes.
    pub quick: bool,
    /// Whether the files are removed after each column.
    pub clean: bool,
    /// The command, without passwords.
    pub command: Vec<String>,
}

/// Runs all columns; writes each cell's result below the archive, then the summary.
///
/// # Errors
/// There are no agents, or nothing can be written. A run that fails is a cell with the reason.
pub fn run(
    plan: &Plan,
    archive: &mut Archive,
    progress: Progress<'_>,
) -> Result<(Summary, Vec<RunResult>), LimitsError> {
    let mut summary = empty(plan);
    let mut results = Vec::new();
    let mut budget = Budget::new(plan.quick, plan.columns.len() * plan.jobs.len());
    for (n, column) in plan.columns.iter().enumerate() {
        line(progress, format!("column {} of {}: {}", n + 1, plan.columns.len(), column.name));
        let found = run_column(plan, column, archive, &mut budget, progress)?;
        let server = found.results.iter().find(|r| r.server.seen != "unseen");
        let server = server.or(found.results.first()).map(|r| r.server.clone());
        let (name, target) = (column.name.clone(), column.target.to_string());
        let (server, failed) = (server.unwrap_or_default(), found.failed);
        summary.columns.push(Column { name, target, server, failed });
        for (row, cell) in summary.rows.iter_mut().zip(found.cells) {
            row.cells.push(cell);
        }
        results.extend(found.results);
    }
    summary.ended = base::clock::wall_ns() as f64 / 1e9;
    let json = serde_json::to_string_pretty(&summary)
        .map_err(|e| RecordError::Form("the summary".into(), e.to_string()))?;
    archive.put("summary.json", &json)?;
    archive.put("index.html", &report::summary_page(&summary))?;
    archive.put("summary.csv", &summary.table().csv())?;
    archive.put("summary.md", &summary.markdown())?;
    Ok((summary, results))
}

/// A summary with rows and no columns yet.
fn empty(plan: &Plan) -> Summary {
    let row = |job: &Job| Row {
        job: job.name.clone(),
        title: summary::neutral(&job.title),
        unit: if job.workload.is_stream() { "B/s".into() } else { "ops/s".into() },
        cells: Vec::new(),
    };
    let now = base::clock::wall_ns() as f64 / 1e9;
    Summary {
        format: record::VERSION,
        started: now,
        ended: now,
        command: plan.command.clone(),
        quick: plan.quick,
        machine: crate::proc::machine(),
        columns: Vec::new(),
        rows: plan.jobs.iter().map(row).collect(),
    }
}

/// A finished column.
#[derive(Default)]
struct Measured {
    failed: Option<String>,
    cells: Vec<Cell>,
    results: Vec<RunResult>,
}

fn run_column(
    plan: &Plan,
    column: &ColumnPlan,
    archive: &mut Archive,
    budget: &mut Budget,
    progress: Progress<'_>,
) -> Result<Measured, LimitsError> {
    let mut found = Measured { failed: column.begin(), ..Measured::default() };
    for (n, job) in plan.jobs.iter().enumerate() {
        let why = column.unavailable.clone().or_else(|| found.failed.clone());
        let why = why.or_else(|| unsupported(&column.options.target, &job.shape()));
        let time = budget.next();
        let job = match why.map_or_else(|| budget.fitted(job, time), Err) {
            Ok(job) => job,
            Err(why) => {
                found.cells.push(Cell::not_measured(&why, found.failed.is_some()));
                continue;
            }
        };
        line(progress, format!("row {} of {}: {}", n + 1, plan.jobs.len(), job.title));
        let below = format!("{}/{}", column.name, job.name);
        let began = base::clock::monotonic_ns();
        let result = measured(plan, &job, column, budget, progress)?;
        let took = base::clock::monotonic_ns().saturating_sub(began);
        budget.took(&job, Duration::from_nanos(took));
        archive.put_run(&below, &result)?;
        found.cells.push(cell(&result, &below));
        found.failed = column_failed(&result, found.results.last());
        found.results.push(result);
    }
    if plan.clean && found.failed.is_none() && column.unavailable.is_none() {
        column.end(progress);
    }
    Ok(found)
}

/// Whether the whole column fails: two runs in a row that came to nothing for the same reason.
fn column_failed(result: &RunResult, before: Option<&RunResult>) -> Option<String> {
    let came_to_nothing = |r: &&RunResult| r.steps.is_empty() && r.failed.is_some();
    let (now, before) = (Some(result).filter(came_to_nothing), before.filter(came_to_nothing));
    let why = now?.failed.clone();
    (why == before?.failed).then_some(why).flatten()
}

/// Runs a job, again while other processes disturb it and once more if it was not steady.
fn measured(
    plan: &Plan,
    job: &Job,
    column: &ColumnPlan,
    budget: &Budget,
    progress: Progress<'_>,
) -> Result<RunResult, LimitsError> {
    let began = base::clock::monotonic_ns();
    let progress = std::cell::RefCell::new(progress);
    let mut result = measure::undisturbed(
        plan.retries,
        |share| {
            let again = budget.spares(began);
            if again {
                line(&mut **progress.borrow_mut(), measure::repeat_line(share));
            }
            again
        },
        || {
            let mut progress = progress.borrow_mut();
            let result = conduct::run(job, &column.options, &mut **progress)?;
            if !unsettled(&result) || !budget.spares(began) {
                return Ok::<_, RunError>(result);
            }
            line(&mut **progress, "the best step was not steady: repeating it".into());
            let again = conduct::run(job, &column.options, &mut **progress)?;
            Ok(better(result, again))
        },
    )?;
    if !column.options.prove.is_empty() {
        prove::prove(job, &column.options, &mut result, &mut **progress.borrow_mut())?;
    }
    Ok(result)
}

/// Of a run that was not steady and its repeat: the repeat, if that is steady. One that failed, or
/// came to nothing, takes nothing away from what was measured.
fn better(result: RunResult, again: RunResult) -> RunResult {
    let settled = again.failed.is_none() && again.best_step().is_some() && !unsettled(&again);
    if settled { again } else { result }
}

/// Whether nothing but a best step that was not steady speaks against a run.
fn unsettled(result: &RunResult) -> bool {
    let steady = |step: &Step| step.steady.verdict == SteadyVerdict::Steady;
    result.failed.is_none() && result.best_step().is_some_and(|step| !steady(step))
}

impl ColumnPlan {
    /// Makes its folder; why nothing can be measured, if so.
    fn begin(&self) -> Option<String> {
        if self.unavailable.is_some() {
            return None;
        }
        let made = scratch::ensure(&self.target, &self.folder);
        made.err().map(|error| with_sources(&error))
    }

    /// Removes its folder.
    fn end(&self, progress: Progress<'_>) {
        if let Err(error) = scratch::clear(&self.target, &self.folder, LAB_CLEAN_MAX) {
            let why = with_sources(&error);
            line(progress, format!("the folder {} was not removed: {why}", self.folder));
        }
    }
}

/// A time as `plimsoll analytics show` takes it in any time zone.
fn rfc3339(second: i64) -> String {
    base::units::utc(second).replace(' ', "T") + "Z"
}

#[cfg(test)]
pub(crate) mod tests;
