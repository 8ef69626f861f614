//! A finished run as a cell.

use super::rfc3339;
use super::summary::{Bound, Cell};
use crate::client::Target;
use crate::limit::Limiter;
use crate::record::cold::ColdStep;
use crate::record::{RunResult, SteadyVerdict, Step, figure_text};
use crate::report;

/// The cell of a run that is kept in `below`, a directory next to the summary.
pub fn cell(result: &RunResult, below: &str) -> Cell {
    let report = Some(format!("{below}/report.html"));
    let mut doubts: Vec<String> = result.failed.iter().chain(&result.degraded).cloned().collect();
    doubts.dedup();
    doubts.extend(result.best_step().and_then(not_from_disk));
    let why = match (result.best_step(), &result.failed) {
        (Some(step), None) => return measured(result, step, report, doubts),
        (_, Some(why)) => why.as_str(),
        (None, None) => "no step came to an end",
    };
    Cell { report, doubts, ..Cell::not_measured(why, true) }
}

fn measured(result: &RunResult, step: &Step, report: Option<String>, doubts: Vec<String>) -> Cell {
    let (stream, value) = (result.job.workload.is_stream(), result.figure(step));
    let limit = result.limit.as_ref();
    let bound = limit.and_then(|v| bound(v.limiter));
    let (transport_bytes_s, transport_seen) = transport(result, step);
    let (from, to) = report::link::interval(result, Some(step));
    let stat = report::link::statistic(result);
    let (from, to) = (rfc3339(from), rfc3339(to));
    Cell {
        value: Some(value),
        text: value_text(bound, &figure_text(stream, value)),
        bound,
        payload_bytes_s: Some(step.bytes_s),
        transport_bytes_s,
        transport_seen,
        clients: step.clients,
        threads: step.threads,
        p50_ns: step.latency.p50,
        p99_ns: step.latency.p99,
        limiter: limit.map(|v| v.limiter),
        limiter_text: limit.map_or("not found", |v| v.limiter.title()).to_owned(),
        confidence: limit.map_or(0.0, |v| v.confidence),
        why: why(result, step),
        steady: step.steady.verdict == SteadyVerdict::Steady,
        disturbed: result.disturbed.clone(),
        scaling: result.scaling.as_ref().map(|scaling| scaling.sentence.clone()),
        analytics: report::link::worksheet(result, Some(step)),
        command: format!("plimsoll analytics show '{stat}' --from {from} --to {to}"),
        report,
        doubts,
        failed: false,
    }
}

/// The figure of a step of a run for people, marked if the server may do more.
pub fn text_of(result: &RunResult, step: &Step) -> String {
    let bound = result.limit.as_ref().and_then(|verdict| bound(verdict.limiter));
    value_text(bound, &result.figure_text(step))
}

/// Why that limits, and the proof that it was read from the disk.
fn why(result: &RunResult, step: &Step) -> Vec<String> {
    let proved = step.cold.as_ref().filter(|cold| cold.uncached).map(ColdStep::sentence);
    let limit = result.limit.iter().flat_map(|limit| limit.why.iter().cloned());
    proved.into_iter().chain(limit).collect()
}

/// What the network carried, and where that was seen.
fn transport(result: &RunResult, step: &Step) -> (Option<f64>, Option<String>) {
    if let Some(bytes_s) = step.transport_bytes_s {
        return (Some(bytes_s), Some("connections".to_owned()));
    }
    // A directory of this machine has no network before it.
    let over_network = Target::parse(&result.target).is_ok_and(|target| target.server().is_some());
    match step.evidence.link.as_ref().filter(|_| over_network) {
        // What passed a device in less than the data is not the device that carried it.
        Some((name, bytes_s, _)) if *bytes_s >= step.bytes_s => {
            (Some(*bytes_s), Some(name.clone()))
        }
        _ => (None, None),
    }
}

/// Why it is not proved that what was read came from the disk, if it was to.
fn not_from_disk(step: &Step) -> Option<String> {
    step.cold.as_ref().filter(|cold| !cold.uncached).map(ColdStep::sentence)
}

fn bound(limiter: Limiter) -> Option<Bound> {
    match limiter {
        Limiter::Generator => Some(Bound::Generator),
        Limiter::NotReached => Some(Bound::Schedule),
        _ => None,
    }
}

/// A figure, marked if the server may do more.
pub fn value_text(bound: Option<Bound>, figure: &str) -> String {
    match bound {
        Some(_) => format!("≥ {figure}"),
        None => figure.to_owned(),
    }
}
