//! The suites of the sources: `seqread`, and the table of Filebench workloads. Each row is a job of
//! the runner, with its own result; the suite adds the scale, what belongs together, and what the
//! source found.
//!
//! - [`request`]: what is asked; [`rows`]: the jobs; [`record`]: `suite.json`; [`text`]: tables.

pub mod record;
pub mod request;
pub mod rows;
pub mod text;

use crate::archive::Archive;
use crate::archive::sums::sha256;
use crate::client::{ClientError, scratch};
use crate::conduct::{self, Progress, RunError, RunOptions, line};
use crate::limits::LimitsError;
use crate::measure;
use crate::record::{RecordError, RunResult};
use base::clock::{NS_PER_S, monotonic_ns, wall_ns};
use base::limits::LAB_CLEAN_MAX;
use record::{SUITE, State, SuiteResult, SuiteRow, VERSION};
use rows::RowPlan;
use std::cell::RefCell;
use std::path::Path;

/// What is to be run.
#[derive(Debug)]
pub struct Plan {
    /// `seqread` or `filebench-suite`.
    pub suite: String,
    /// The rows.
    pub rows: Vec<RowPlan>,
    /// Target and agents of all rows.
    pub options: RunOptions,
    /// First part of the names of its folders; `None`: made of the target.
    pub folder: Option<String>,
    /// The scale, in a sentence.
    pub scale: String,
    /// How often a disturbed row is repeated.
    pub retries: u32,
    /// Whether the files are removed after the last row.
    pub clean: bool,
}

/// The folder of a set.
fn folder_of(name: &str, set: char) -> String {
    format!("{name}-{set}")
}

/// All folders that a suite with this name for its folders may have made.
pub fn folders(name: &str) -> [String; rows::SETS.len()] {
    rows::SETS.map(|set| folder_of(name, set))
}

impl Plan {
    /// A hash of what is asked: the same request continues what an earlier start has left.
    fn asked(&self) -> String {
        let rows = self.rows.iter().map(|row| serde_json::to_string(&row.job).unwrap_or_default());
        let rows: Vec<String> = rows.collect();
        let fixed: Vec<_> = self.rows.iter().map(|row| row.job.fixed_ms).collect();
        let all = (self.suite.as_str(), self.options.target.to_string(), self.subnets(), rows);
        sha256(format!("{all:?} {fixed:?}").as_bytes())
    }

    fn subnets(&self) -> Vec<String> {
        let subnets = self.options.subnets.iter();
        subnets.map(|subnet| format!("{subnet}={}", subnet.server)).collect()
    }

    /// The folder of a set on the target.
    fn folder(&self, set: char) -> String {
        let own = || {
            let hash = sha256(self.options.target.to_string().as_bytes());
            format!("plimsoll-lab-{}", hash.get(..8).unwrap_or_default())
        };
        folder_of(&self.folder.clone().unwrap_or_else(own), set)
    }

    fn sets(&self) -> Vec<char> {
        let mut sets: Vec<char> = self.rows.iter().map(|row| row.set).collect();
        sets.sort_unstable();
        sets.dedup();
        sets
    }

    fn empty(&self) -> SuiteResult {
        let now = wall_ns() as f64 / 1e9;
        SuiteResult {
            format: VERSION,
            suite: self.suite.clone(),
            asked: self.asked(),
            target: self.options.target.to_string(),
            scale: self.scale.clone(),
            command: self.options.command.clone(),
            started: now,
            ended: now,
            subnets: self.subnets(),
            rows: self.rows.iter().map(SuiteRow::pending).collect(),
            ..SuiteResult::default()
        }
    }

    /// What an earlier start of the same request has left, or nothing yet.
    fn begin(&self, dir: &Path, progress: Progress<'_>) -> Result<SuiteResult, RecordError> {
        let empty = self.empty();
        let Some(mut earlier) = SuiteResult::read(dir)?.filter(|earlier| !earlier.is_complete())
        else {
            return Ok(empty);
        };
        if earlier.asked != empty.asked || earlier.rows.len() != empty.rows.len() {
            line(progress, format!("{} is of another request: starting from the first row", SUITE));
            return Ok(empty);
        }
        for (row, fresh) in earlier.rows.iter_mut().zip(empty.rows) {
            if row.state != State::Done {
                *row = fresh;
            }
        }
        let done = earlier.rows.iter().filter(|row| row.state == State::Done).count();
        if done > 0 {
            line(progress, format!("{done} rows are done: going on with the next"));
        }
        earlier.stopped = None;
        Ok(earlier)
    }
}

/// Runs all rows that are not done; writes each row's result below `dir`.
///
/// # Errors
/// When there are no agents for the first row, or nothing can be written.
pub fn run(
    plan: &Plan,
    dir: &Path,
    progress: Progress<'_>,
) -> Result<(SuiteResult, Archive, Vec<RunResult>), LimitsError> {
    let mut suite = plan.begin(dir, progress)?;
    let goes_on = suite.rows.iter().any(|row| row.state == State::Done);
    let mut archive = if goes_on { Archive::reopen(dir)? } else { Archive::begin(dir)? };
    suite.starts += 1;
    suite.keep(dir)?;
    let mut results: Vec<RunResult> = Vec::new();
    if let Err(error) = each_set(plan, |folder| scratch::ensure(&plan.options.target, folder)) {
        suite.stopped = Some(crate::agent::with_sources(&error));
    }
    for (n, row) in plan.rows.iter().enumerate() {
        let Some(entry) = suite.rows.get_mut(n) else { break };
        let below = row.job.name.clone();
        if entry.state == State::Done {
            archive.adopt(&below)?;
            continue;
        }
        if suite.stopped.is_some() {
            break;
        }
        line(progress, format!("row {} of {}: {}", n + 1, plan.rows.len(), row.job.title));
        let began = monotonic_ns();
        match measured(plan, row, progress) {
            Ok(result) => {
                archive.put_run(&below, &result)?;
                entry.enter(&result, &below);
                let nothing = |r: &RunResult| r.failed.clone().filter(|_| r.steps.is_empty());
                let before = results.last().and_then(nothing);
                suite.stopped = nothing(&result).filter(|why| Some(why) == before.as_ref());
                results.push(result);
            }
            // Agents that are gone do not come back for the next row.
            Err(error) if n == 0 => return Err(error.into()),
            Err(error) => suite.stopped = Some(crate::agent::with_sources(&error)),
        }
        suite.took_s += monotonic_ns().saturating_sub(began) as f64 / NS_PER_S as f64;
        suite.ended = wall_ns() as f64 / 1e9;
        suite.keep(dir)?;
    }
    if plan.clean
        && let Err(error) =
            each_set(plan, |folder| scratch::clear(&plan.options.target, folder, LAB_CLEAN_MAX))
    {
        let why = crate::agent::with_sources(&error);
        let what = format!("a folder was not removed: {why}");
        suite.stopped = Some(suite.stopped.map_or(what.clone(), |why| format!("{why}; {what}")));
    }
    write(&suite, &mut archive)?;
    Ok((suite, archive, results))
}

/// Does something with the folder of each set; the first error ends it.
fn each_set(
    plan: &Plan,
    mut each: impl FnMut(&str) -> Result<(), ClientError>,
) -> Result<(), ClientError> {
    plan.sets().into_iter().try_for_each(|set| each(&plan.folder(set)))
}

/// Runs a row; again while other processes disturb it.
fn measured(plan: &Plan, row: &RowPlan, progress: Progress<'_>) -> Result<RunResult, RunError> {
    let mut options = plan.options.clone();
    (options.clean, options.scratch) = (false, None);
    if options.target.has_folders() {
        options.target = options.target.below(&plan.folder(row.set));
    }
    let progress = RefCell::new(progress);
    measure::undisturbed(
        plan.retries,
        |share| {
            line(&mut **progress.borrow_mut(), measure::repeat_line(share));
            true
        },
        || conduct::run(&row.job, &options, &mut **progress.borrow_mut()),
    )
}

/// Writes the suite, its page and its tables.
fn write(suite: &SuiteResult, archive: &mut Archive) -> Result<(), RecordError> {
    archive.put(SUITE, &suite.json()?)?;
    archive.put("index.html", &suite.page())?;
    archive.put("suite.csv", &suite.table().csv())?;
    archive.put("suite.md", &suite.markdown())?;
    archive.put("clients.csv", &suite.clients().csv())?;
    archive.put("interfaces.csv", &suite.interfaces().csv())?;
    archive.put("subnets.csv", &suite.by_subnet().csv())
}

#[cfg(test)]
mod tests;
