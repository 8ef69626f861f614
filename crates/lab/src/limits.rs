//! The Performance Limit Summary: six experiments, a row each. Of NFSv3 a second column has the
//! same experiments over RDMA, where there is a device.

use crate::client::{Target, rdma};
use crate::conduct::agents::Source;
use crate::conduct::{self, Progress, RunError, RunOptions, Told};
use crate::job::Job;
use crate::limit::Limiter;
use crate::record::{self, RecordError, RunResult, SteadyVerdict, Step};
use crate::report;
use std::path::Path;

mod summary;

pub use summary::{OverRdma, Row, Summary};

impl OverRdma {
    fn not_measured(why: &str) -> Self {
        Self { value: None, text: format!("not measured: {why}"), report: None }
    }

    /// Of a run, whose report is there.
    fn of(result: &RunResult, report: String) -> Self {
        match (&result.failed, result.best_step()) {
            (Some(why), _) => Self::not_measured(why),
            (None, None) => Self::not_measured("no step came to an end"),
            (None, Some(_)) => {
                let Row { value, text, .. } = row(result);
                Self { value: Some(value), text, report: Some(report) }
            }
        }
    }
}

/// What the column of RDMA is made of.
#[derive(Debug)]
enum RdmaColumn {
    /// There is none: the target has no such form.
    None,
    /// The target is over RDMA itself.
    Same,
    /// It says why nothing was measured.
    NotMeasured(String),
    /// Runs of their own.
    Runs(Box<RunOptions>),
}

impl RdmaColumn {
    /// For these runs; `unavailable` says why this machine cannot connect over RDMA.
    fn of(options: &RunOptions, unavailable: impl FnOnce() -> Option<String>) -> Self {
        let Target::Nfs3(at) = &options.target else { return Self::None };
        if at.rdma {
            return Self::Same;
        }
        let Some(over) = at.over_rdma() else {
            return Self::NotMeasured("no port of RDMA belongs to that of the target".into());
        };
        // Agents elsewhere have their own devices, and say so.
        let here = matches!(options.source, Source::Local { .. });
        match here.then(unavailable).flatten() {
            Some(why) => Self::NotMeasured(why),
            None => {
                Self::Runs(Box::new(RunOptions { target: Target::Nfs3(over), ..options.clone() }))
            }
        }
    }

    /// The cell of a job that was run.
    fn cell(
        &self,
        job: &Job,
        result: &RunResult,
        out: &Path,
        progress: Progress<'_>,
    ) -> Result<Option<OverRdma>, LimitsError> {
        Ok(match self {
            Self::None => None,
            Self::Same => Some(OverRdma::of(result, report_of(&job.name))),
            Self::NotMeasured(why) => Some(OverRdma::not_measured(why)),
            Self::Runs(options) => {
                line(progress, "the same over RDMA".into());
                let folder = format!("{}/rdma", job.name);
                let result = measured(job, options, &out.join(&folder), progress)?;
                Some(OverRdma::of(&result, report_of(&folder)))
            }
        })
    }
}

/// A report in a folder beside the summary.
fn report_of(folder: &str) -> String {
    format!("{folder}/report.html")
}

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

/// Runs the jobs one after the other; writes each one's result below `out`, then the summary.
///
/// # Errors
/// When there are no agents or nothing can be written. A run that fails is a row that says so.
pub fn run(
    jobs: &[Job],
    options: &RunOptions,
    out: &Path,
    progress: Progress<'_>,
) -> Result<(Summary, Vec<RunResult>), LimitsError> {
    let column = RdmaColumn::of(options, rdma::unavailable);
    let (mut results, mut cells) = (Vec::new(), Vec::new());
    for (n, job) in jobs.iter().enumerate() {
        line(progress, format!("row {} of {}: {}", n + 1, jobs.len(), job.title));
        let result = measured(job, options, &out.join(&job.name), progress)?;
        cells.push(column.cell(job, &result, out, progress)?);
        results.push(result);
    }
    let mut summary = summarise(&results);
    for (row, cell) in summary.rows.iter_mut().zip(cells) {
        row.rdma = cell;
    }
    let text = serde_json::to_string_pretty(&summary)
        .map_err(|e| RecordError::Form("the summary".into(), e.to_string()))?;
    record::write_file(out, "summary.json", &text)?;
    record::write_file(out, "index.html", &report::summary_page(&summary))?;
    Ok((summary, results))
}

fn line(progress: Progress<'_>, text: String) {
    progress(&Told::Line { text });
}

/// Runs a job, once more if need be, and writes its result and report.
fn measured(
    job: &Job,
    options: &RunOptions,
    dir: &Path,
    progress: Progress<'_>,
) -> Result<RunResult, LimitsError> {
    let mut result = conduct::run(job, options, progress)?;
    if unsettled(&result) {
        // Most often something else had a turn on the machine.
        line(progress, "the best step was not steady: repeating it".into());
        let again = conduct::run(job, options, progress)?;
        if !unsettled(&again) {
            result = again;
        }
    }
    result.write(dir)?;
    report::write(&result, dir)?;
    Ok(result)
}

/// Whether nothing but a best step that was not steady speaks against a run.
fn unsettled(result: &RunResult) -> bool {
    let steady = |step: &Step| step.steady.verdict == SteadyVerdict::Steady;
    result.failed.is_none() && result.best_step().is_some_and(|step| !steady(step))
}

/// Makes the rows of finished runs.
pub fn summarise(results: &[RunResult]) -> Summary {
    let first = results.first();
    Summary {
        format: record::VERSION,
        target: first.map(|r| r.target.clone()).unwrap_or_default(),
        started: first.map_or(0.0, |r| r.started),
        ended: results.last().map_or(0.0, |r| r.ended),
        machine: first.map(|r| r.conductor.clone()).unwrap_or_default(),
        server: first.map(|r| r.server.clone()).unwrap_or_default(),
        rows: results.iter().map(row).collect(),
    }
}

/// The row of one run.
pub fn row(result: &RunResult) -> Row {
    let stream = result.job.workload.is_stream();
    let step = result.best_step();
    let value = step.map_or(0.0, |s| result.figure(s));
    let (from, to) = report::link::interval(result, step);
    let stat = report::link::statistic(result);
    let limit = result.limit.as_ref();
    let mut doubts: Vec<String> = result.failed.iter().chain(&result.degraded).cloned().collect();
    doubts.dedup();
    Row {
        job: result.job.name.clone(),
        title: result.job.title.clone(),
        value,
        unit: if stream { "B/s".into() } else { "ops/s".into() },
        text: bound_text(limit.map(|v| v.limiter), record::figure_text(stream, value)),
        clients: step.map_or(0, |s| s.clients),
        threads: step.map_or(0, |s| s.threads),
        p50_ns: step.map_or(0, |s| s.latency.p50),
        p99_ns: step.map_or(0, |s| s.latency.p99),
        limiter: limit.map(|v| v.limiter),
        limiter_text: limit.map_or("not found", |v| v.limiter.title()).to_owned(),
        confidence: limit.map_or(0.0, |v| v.confidence),
        why: limit.map(|v| v.why.clone()).unwrap_or_default(),
        steady: step.is_some_and(|s| s.steady.verdict == SteadyVerdict::Steady),
        analytics: report::link::worksheet(result, step),
        command: format!(
            "plimsoll analytics show '{stat}' --from {} --to {}",
            rfc3339(from),
            rfc3339(to)
        ),
        report: report_of(&result.job.name),
        doubts,
        rdma: None,
    }
}

/// A time as `plimsoll analytics show` takes it in any time zone.
fn rfc3339(second: i64) -> String {
    base::units::utc(second).replace(' ', "T") + "Z"
}

/// A figure at which the load generator was the limit is a lower bound for the server.
fn bound_text(limiter: Option<Limiter>, figure: String) -> String {
    match limiter {
        Some(Limiter::Generator) => format!("at least {figure}"),
        _ => figure,
    }
}

/// Head of the column of RDMA.
const OVER_RDMA: &str = "over RDMA";

impl Summary {
    /// Letters of the column of RDMA; 0 if there is none.
    fn rdma_width(&self) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.rdma.as_ref());
        let widest = cells.map(|cell| cell.text.chars().count()).max();
        widest.map_or(0, |widest| widest.max(OVER_RDMA.len()))
    }

    /// What restricts the figures, by row; empty if nothing does.
    fn reservations(&self) -> String {
        let of = |row: &Row| {
            let doubts = row.doubts.iter().map(|doubt| format!("  {}: {doubt}\n", row.title));
            doubts.collect::<String>()
        };
        let all: String = self.rows.iter().map(of).collect();
        if all.is_empty() { all } else { format!("Reservations:\n{all}\n") }
    }

    /// As a text table, with the reservations before it.
    pub fn text(&self) -> String {
        let mut out = format!("Performance Limit Summary of {}\n\n", self.target);
        out += &self.reservations();
        let title = self.rows.iter().map(|r| r.title.chars().count()).max().unwrap_or(0).max(5);
        let rdma = self.rdma_width();
        let column = |text: &str| match rdma {
            0 => String::new(),
            width => format!("  {text:>width$}"),
        };
        out += &format!(
            "{:<title$}  {:>20}  {:>9}  {:>9}  {:>9}{}  limiter\n",
            "",
            "value",
            "at",
            "p50",
            "p99",
            column(OVER_RDMA),
        );
        for row in &self.rows {
            let time = |ns: u64| base::units::time_ns(ns as f64);
            out += &format!(
                "{:<title$}  {:>20}  {:>9}  {:>9}  {:>9}{}  {} ({:.0} %)\n",
                row.title,
                row.text,
                format!("{} × {}", row.clients, row.threads),
                time(row.p50_ns),
                time(row.p99_ns),
                column(row.rdma.as_ref().map_or("", |cell| &cell.text)),
                row.limiter_text,
                row.confidence * 100.0,
            );
            for sentence in &row.why {
                out += &format!("{:<title$}    {sentence}\n", "");
            }
            out += &format!("{:<title$}    {}\n", "", row.command);
        }
        out
    }
}

#[cfg(test)]
mod tests;
