//! The report of a run: text for a terminal, one self-contained page for a browser.
//!
//! The page carries the record as JSON and draws it with a small script; it makes no requests and
//! prints as it looks.

mod compare;
pub mod figures;
pub(crate) mod link;
mod summaries;
pub mod table;

use crate::iozone::over::record::OverResult;
use crate::iozone::record::IozoneResult;
use crate::limit;
use crate::limits::summary::Summary;
use crate::net::record::NetResult;
use crate::programs::record::ProgramResult;
use crate::record::cold::ColdStep;
use crate::record::observed::Comparison as CountComparison;
use crate::record::{self, RecordError, RunResult, SteadyVerdict, Step, figure_text};
use crate::sweep::Sweep;
use crate::transfer;
use crate::verdict::evenness::Evenness;
use base::units::time_ns;
use serde::Serialize;
use std::path::Path;

pub use compare::{Comparison, Distinction, compare, read_runs};
pub use figures::Figures;
pub use summaries::{CellChange, SummaryChange, compare_summaries};
pub use table::Table;
use table::escaped;

const STYLE: &str = include_str!("report/style.css");
const SCRIPT: &str = include_str!("report/charts.js");

/// What is a page's own; the rest of it is in `shell.html`.
struct Page {
    /// What is in its main element.
    main: &'static str,
    /// The script of its charts, in addition to what all pages have.
    panels: &'static str,
    /// The function that draws it from the record.
    draw: &'static str,
}

const RUN: Page = Page { main: include_str!("report/page.html"), panels: "", draw: "run" };
const SUMMARY: Page =
    Page { main: include_str!("report/summary.html"), panels: "", draw: "summary" };
const COMPARISON: Page = Page {
    main: include_str!("report/comparison.html"),
    panels: include_str!("report/panels.js"),
    draw: "comparison",
};
const SWEEP: Page = Page {
    main: include_str!("report/sweep.html"),
    panels: include_str!("report/sweep.js"),
    draw: "sweep",
};

const PROGRAM: Page = Page { main: include_str!("report/program.html"), panels: "", draw: "void" };

const OVER: Page = Page {
    main: include_str!("report/over.html"),
    panels: include_str!("report/over.js"),
    draw: "over",
};

/// Files by name.
pub type Files = Vec<(&'static str, String)>;

/// The files of the result of a program: the result, its page and its tables.
///
/// # Errors
/// It has no form in JSON.
pub fn program_files(result: &ProgramResult) -> Result<Files, RecordError> {
    files(result, &Figures::of_program(result), &figures::acts(result))
}

/// The same of IOzone's tests.
///
/// # Errors
/// As [`program_files`].
pub fn iozone_files(result: &IozoneResult) -> Result<Files, RecordError> {
    files(result, &Figures::of_iozone(result), &figures::blocks(result))
}

/// The same of a network profile.
///
/// # Errors
/// As [`program_files`].
pub fn net_files(result: &NetResult) -> Result<Files, RecordError> {
    files(result, &Figures::of_net(result), &figures::flowops(result))
}

/// The same of IOzone over distance, of which the page has charts.
///
/// # Errors
/// As [`program_files`].
pub fn over_files(result: &OverResult) -> Result<Files, RecordError> {
    let figures = Figures::of_over(result);
    let mut files = files(result, &figures, &result.table())?;
    let data = serde_json::to_string(result).unwrap_or_default();
    for (_, page) in files.iter_mut().filter(|(name, _)| *name == "report.html") {
        *page = OVER.fill(&figures.title, &figures.html(), &data);
    }
    Ok(files)
}

/// Of a result that its figures are all of.
fn files(result: &impl Serialize, figures: &Figures, table: &Table) -> Result<Files, RecordError> {
    let data = serde_json::to_string(result)
        .map_err(|e| RecordError::Form("the run".to_owned(), e.to_string()))?;
    let title = &figures.title;
    let page = PROGRAM.fill(title, &figures.html(), &data);
    Ok(vec![
        ("report.html", page.replace("<!--title-->", &escaped(title))),
        ("figures.csv", figures.csv()),
        ("result.md", format!("# {title}\n\n{}", figures.markdown())),
        ("result.csv", table.csv()),
        ("result.json", data),
    ])
}

/// Writes these files into `dir`, which is no archive.
///
/// # Errors
/// When the directory cannot be written.
pub fn write_files(files: &Files, dir: &Path) -> Result<(), RecordError> {
    files.iter().try_for_each(|(name, text)| record::write_file(dir, name, text))
}

/// Writes `report.html` of these files into `dir`.
///
/// # Errors
/// When the directory cannot be written.
pub fn write_page(files: &Files, dir: &Path) -> Result<(), RecordError> {
    let mut pages = files.iter().filter(|(name, _)| *name == "report.html");
    pages.try_for_each(|(name, page)| record::write_file(dir, name, page))
}

/// Writes `report.html` into `dir`.
///
/// # Errors
/// When the directory cannot be written.
pub fn write(result: &RunResult, dir: &Path) -> Result<(), RecordError> {
    record::write_file(dir, "report.html", &page(result))
}

/// The page of a run.
pub fn page(result: &RunResult) -> String {
    let mut slim = result.clone();
    // The page draws from the windows; the exact histograms stay in result.json.
    for step in &mut slim.steps {
        step.latency.histogram.clear();
        step.server.clear();
    }
    let title = format!("{} on {}", result.job.title, result.target);
    let mut data = serde_json::to_value(&slim).unwrap_or_default();
    if link::admin(result).is_some() {
        // A path alone would lead nowhere from a file.
        data["analytics"] = result.steps.iter().map(|s| link::worksheet(result, Some(s))).collect();
    }
    RUN.fill(&title, &shown(result), &data.to_string())
}

/// Writes `report.html` of a comparison into `dir`.
///
/// # Errors
/// When the directory cannot be written.
pub fn write_comparison(result: &transfer::Comparison, dir: &Path) -> Result<(), RecordError> {
    let title = format!("{} over {} protocols", result.plan.title, result.lines.len());
    let data = serde_json::to_string(result).unwrap_or_default();
    record::write_file(dir, "report.html", &COMPARISON.fill(&title, "", &data))
}

/// Writes `report.html` of a sweep into `dir`.
///
/// # Errors
/// When the directory cannot be written.
pub fn write_sweep(result: &Sweep, dir: &Path) -> Result<(), RecordError> {
    record::write_file(dir, "report.html", &sweep_page(result))
}

/// The page of a sweep.
pub fn sweep_page(result: &Sweep) -> String {
    let data = serde_json::to_string(result).unwrap_or_default();
    SWEEP.fill(&result.plan.title, "", &data)
}

/// The page of a Performance Limit Summary.
pub fn summary_page(summary: &Summary) -> String {
    let data = serde_json::to_string(summary).unwrap_or_default();
    SUMMARY.fill(&summary.title(), &summary.html(), &data)
}

/// A page of tables, with the record that they are made of.
pub(crate) fn page_of_tables(title: &str, tables: &str, record: &str) -> String {
    PROGRAM.fill(title, tables, record).replace("<!--title-->", &escaped(title))
}

impl Page {
    /// With what the page shows without its script.
    fn fill(&self, title: &str, shown: &str, data: &str) -> String {
        format!(
            include_str!("report/shell.html"),
            title = escaped(title),
            style = STYLE,
            main = self.main.replace("<!--shown-->", shown),
            // Within a script element only "</" could end it, and "<!--" could confuse.
            data = data.replace('<', "\\u003c"),
            script = SCRIPT,
            panels = self.panels,
            draw = self.draw,
        )
    }
}

/// The steps, a line each.
pub fn table(result: &RunResult) -> Table {
    let line = |(number, step): (usize, &Step)| {
        let mark = if result.best == Some(number) { " <" } else { "" };
        let verdict = match step.steady.verdict {
            SteadyVerdict::Steady => "yes",
            SteadyVerdict::Drifting => "no: drifting",
            SteadyVerdict::Oscillating => "no: oscillating",
            SteadyVerdict::NotReached => "not reached",
        };
        let others = limit::others(&step.evidence);
        let shown = |text: String| if step.has_windows() { text } else { "–".to_owned() };
        vec![
            format!("{} × {}", step.clients, step.threads),
            result.figure_text(step),
            shown(time_ns(step.latency.mean)),
            shown(time_ns(step.latency.p50 as f64)),
            shown(time_ns(step.latency.p99 as f64)),
            shown(format!("{:.1} %", step.little.deviation_percent)),
            others.map_or("–".to_owned(), |share| format!("{:.0} %", share * 100.0)),
            format!("{verdict}{mark}"),
        ]
    };
    let number = |step: &Step| {
        let latency = &step.latency;
        let ns = [latency.p50, latency.p90, latency.p99, latency.p999, latency.max];
        let rates = [step.ops_s, step.bytes_s, latency.mean].map(|rate| rate.to_string());
        rates.into_iter().chain(ns.map(|ns| ns.to_string())).collect()
    };
    let heads = ["load", "throughput", "mean", "p50", "p99", "Little", "others", "steady"];
    let mut table = Table::new(heads, result.steps.iter().enumerate().map(line).collect());
    table.raw(
        ["ops_s", "bytes_s", "mean_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"],
        result.steps.iter().map(number).collect(),
    );
    table
}

/// What is to be known about the whole run, in sentences.
fn notes(result: &RunResult) -> Vec<String> {
    let stream = result.job.workload.is_stream();
    let over = result.over_runs.iter().map(|over| over.sentence(|f| figure_text(stream, f)));
    let disturbed = result.disturbed.iter().filter(|d| !d.still).map(|d| d.sentence());
    let degraded = result.degraded.iter().map(|what| format!("degraded: {what}"));
    let failed = result.failed.iter().map(|what| format!("failed: {what}"));
    let counts = result.best_step().and_then(|step| step.server_counts.as_ref());
    let translated = counts.and_then(|counts| counts.translated.clone());
    over.chain(translated)
        .chain(result.exhausted())
        .chain(disturbed)
        .chain(degraded)
        .chain(failed)
        .collect()
}

/// The figures as a page shows them without its script.
fn shown(result: &RunResult) -> String {
    if result.steps.is_empty() { String::new() } else { Figures::of_run(result).html() }
}

/// The run as Markdown.
pub fn markdown(result: &RunResult) -> String {
    let title = format!("{} on {}", result.job.title, result.target);
    format!("# {title}\n\n{}", Figures::of_run(result).markdown())
}

/// The run as text.
pub fn text(result: &RunResult) -> String {
    let mut out = format!("{} on {}\n\n", result.job.title, result.target);
    if !result.steps.is_empty() {
        out += &table(result).text();
    }
    if let Some(limit) = &result.limit {
        let sure = limit.confidence * 100.0;
        out += &format!("\nlimit: {} (confidence {sure:.0} %)\n", limit.limiter.title());
        for sentence in limit.why.iter().chain(&limit.marks) {
            out += &format!("  {sentence}\n");
        }
        for sentence in &limit.ruled_out {
            out += &format!("  not {sentence}\n");
        }
    }
    out += &open_text(result);
    for sentence in result.shape.sentences() {
        out += &format!("{sentence}\n");
    }
    for why in result.proof.iter().flat_map(|proof| &proof.not_run) {
        out += &format!("not proved by {why}\n");
    }
    out += &demands_text(result);
    out += &observed_text(result);
    out += &notes(result).iter().map(|what| format!("{what}\n")).collect::<String>();
    if result.failed.as_ref().is_some_and(|what| what.contains("MNT3ERR_ACCES")) {
        out += "  the export rules of the share do not admit the address of this client\n";
    }
    out
}

/// What became of the arrivals of an open loop, step by step.
fn open_text(result: &RunResult) -> String {
    let each = result.steps.iter().filter_map(|step| step.open.as_ref()).map(|open| {
        let counts = &open.counts;
        format!(
            "open loop: {} of {} arrivals started, {} of them late by the queue, {} skipped; the \
             load generator was {} late (p99)\n",
            counts.started,
            counts.offered,
            counts.queued,
            counts.skipped,
            time_ns(open.lateness.p99 as f64)
        )
    });
    each.collect()
}

/// What an operation takes of each resource, the next limit, how the run scales and how even it
/// was.
fn demands_text(result: &RunResult) -> String {
    let demands = result.demands.iter().flat_map(|demands| demands.sentences());
    let scaling = result.scaling.iter().map(|scaling| scaling.sentence.clone());
    let even = result.best_step().and_then(|step| step.evenness.as_ref()).map(evenness);
    let lines: Vec<String> = demands.chain(scaling).chain(even).collect();
    if lines.is_empty() { String::new() } else { format!("\n{}\n", lines.join("\n")) }
}

/// How even the clients were.
fn evenness(even: &Evenness) -> String {
    format!(
        "evenness of the clients: least {:.0} % of the mean, Jain's index {:.3}",
        even.min_over_mean * 100.0,
        even.jain
    )
}

/// The server at the best step, as its machine shows it, and by its own counts.
fn observed_text(result: &RunResult) -> String {
    let Some(step) = result.best_step() else { return String::new() };
    let observed = step.observe.iter().map(|o| format!("{}: {}", o.role, o.sentence()));
    let compared = step.server_counts.iter().filter_map(|c| c.compared.as_ref());
    let counts = compared.map(CountComparison::sentence);
    let namespace = result.server.namespace.iter().map(|n| format!("network namespace: {n}"));
    let unseen = result.server.unseen.iter().map(|why| format!("server not seen: {why}"));
    let cold = step.cold.iter().map(ColdStep::sentence);
    let lines = cold.chain(observed).chain(counts).chain(namespace).chain(unseen);
    lines.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
pub(crate) mod tests;
