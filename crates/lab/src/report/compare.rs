//! Two results side by side, of one run each or of several.

use crate::ab::LEVEL;
use crate::record::{RecordError, RunResult, figure_text};
use crate::verdict::ranks::grouped;
use crate::verdict::stats::median;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Whether two results differ. Runs of one build differ more than windows within a run, so nothing
/// less than several runs of each decides.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distinction {
    /// Too few runs.
    Undecided,
    /// More than chance.
    Differ,
    /// No more than chance.
    Chance,
}

/// What differs between two results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Name of the job, of the first run.
    pub job: String,
    /// Settings that differ: name, first, second.
    pub differences: Vec<(String, String, String)>,
    /// Runs of each.
    pub runs: (usize, usize),
    /// The figures, of several runs their medians: first, second.
    pub figures: (f64, f64),
    /// For people.
    pub figures_text: (String, String),
    /// Second ÷ first.
    pub ratio: f64,
    /// 98 % interval of that ratio over the runs; `None` with too few.
    pub interval: Option<(f64, f64)>,
    /// Probability of such a ratio by chance; `None` with one run of each.
    pub p: Option<f64>,
    /// What that means.
    pub distinction: Distinction,
    /// Whether they differ by more than chance.
    pub significant: bool,
    /// That in a sentence.
    pub sentence: String,
    /// 99th percentile of latency, ns; of several runs the median.
    pub p99_ns: (u64, u64),
    /// Limiters, of the first runs.
    pub limiters: (String, String),
}

/// Compares `b` with `a`, runs of one job each; `None` without a run.
pub fn compare(a: &[RunResult], b: &[RunResult]) -> Option<Comparison> {
    let (first, second) = (a.first()?, b.first()?);
    let of = |runs: &[RunResult], figure: &dyn Fn(&RunResult) -> f64| -> Vec<f64> {
        runs.iter().map(figure).collect()
    };
    let figure = |r: &RunResult| r.best_step().map_or(0.0, |s| r.figure(s));
    let p99 = |r: &RunResult| r.best_step().map_or(0.0, |s| s.latency.p99 as f64);
    let figures = (median(&of(a, &figure)), median(&of(b, &figure)));
    let text = |r: &RunResult, figure| figure_text(r.job.workload.is_stream(), figure);
    let limiter =
        |r: &RunResult| r.limit.as_ref().map_or("not found", |v| v.limiter.title()).to_owned();
    let logs = |runs: &[RunResult]| -> Vec<f64> {
        of(runs, &figure).iter().map(|f| f.ln()).filter(|log| log.is_finite()).collect()
    };
    let several = a.len() > 1 && b.len() > 1;
    let shift = grouped(&logs(a), &logs(b), LEVEL).filter(|_| several);
    let interval = shift.filter(|s| s.low.is_finite() && s.high.is_finite());
    let distinction = match shift {
        Some(shift) if shift.p <= LEVEL => Distinction::Differ,
        Some(shift) if shift.low.is_finite() => Distinction::Chance,
        _ => Distinction::Undecided,
    };
    let mut comparison = Comparison {
        job: first.job.name.clone(),
        differences: differences(first, second),
        runs: (a.len(), b.len()),
        figures,
        figures_text: (text(first, figures.0), text(second, figures.1)),
        ratio: if figures.0 > 0.0 { figures.1 / figures.0 } else { 0.0 },
        interval: interval.map(|s| (s.low.exp(), s.high.exp())),
        p: shift.map(|s| s.p),
        distinction,
        significant: distinction == Distinction::Differ,
        sentence: String::new(),
        p99_ns: (median(&of(a, &p99)) as u64, median(&of(b, &p99)) as u64),
        limiters: (limiter(first), limiter(second)),
    };
    comparison.sentence = comparison.describe();
    Some(comparison)
}

/// Reads the runs of a result: its `result.json`, or those of the directories in it.
///
/// # Errors
/// When there is none, or they are of several jobs.
pub fn read_runs(path: &Path) -> Result<Vec<RunResult>, RecordError> {
    let runs = path.join("runs");
    if runs.is_dir() {
        // One of `--repeat until`, with the run in the middle above them.
        return read_runs(&runs);
    }
    if path.is_file() || path.join("result.json").exists() {
        return Ok(vec![RunResult::read(path)?]);
    }
    let name = path.display().to_string();
    let entries = std::fs::read_dir(path)
        .map_err(|e| RecordError::Io(format!("cannot read {name}"), e))?
        .flatten();
    let mut folders: Vec<_> =
        entries.map(|e| e.path()).filter(|p| p.join("result.json").exists()).collect();
    folders.sort();
    let runs: Vec<RunResult> =
        folders.iter().map(|folder| RunResult::read(folder)).collect::<Result<_, _>>()?;
    let Some(first) = runs.first() else {
        return Err(RecordError::Form(name, "there is no result.json in it".into()));
    };
    if runs.iter().any(|run| run.job.name != first.job.name) {
        let why = "it has results of several jobs; name the directory of one";
        return Err(RecordError::Form(name, why.into()));
    }
    Ok(runs)
}

fn differences(a: &RunResult, b: &RunResult) -> Vec<(String, String, String)> {
    let value = |r: &RunResult| serde_json::to_value(&r.job).unwrap_or_default();
    let (va, vb) = (value(a), value(b));
    let mut found = vec![("target".to_owned(), a.target.clone(), b.target.clone())];
    for (key, value) in va.as_object().into_iter().flatten() {
        found.push((key.clone(), value.to_string(), vb[key].to_string()));
    }
    found.retain(|d| d.1 != d.2);
    found
}

impl Comparison {
    fn describe(&self) -> String {
        let percent = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
        let interval = self.interval.map_or(String::new(), |(low, high)| {
            format!(" ({} to {})", percent(low), percent(high))
        });
        let p = self.p.map_or(String::new(), |p| format!(", p {p:.4}"));
        let (a, b) = self.runs;
        match self.distinction {
            Distinction::Undecided => format!(
                "undecided: {a} and {b} runs do not show how much runs differ; \
                 `plimsoll lab ab` makes enough of each"
            ),
            Distinction::Differ => format!("they differ: {}{interval}{p}", percent(self.ratio)),
            Distinction::Chance => {
                format!("no more than chance: {}{interval}{p}", percent(self.ratio))
            }
        }
    }

    /// As text.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n", self.job);
        for (key, a, b) in &self.differences {
            out += &format!("  {key}: {a} | {b}\n");
        }
        let time = |ns: u64| base::units::time_ns(ns as f64);
        out += &format!("  runs     {:>14} | {:>14}\n", self.runs.0, self.runs.1);
        out += &format!("  value    {:>14} | {:>14}\n", self.figures_text.0, self.figures_text.1);
        out += &format!("  p99      {:>14} | {:>14}\n", time(self.p99_ns.0), time(self.p99_ns.1));
        out += &format!("  limiter  {} | {}\n", self.limiters.0, self.limiters.1);
        out += &format!("  ratio    {:.3}: {}\n", self.ratio, self.sentence);
        out
    }
}
