//! What the lab leaves behind (`docs/formats/result.md`): results, summaries, and the pages that
//! are made of them, which hold the same as JSON.

use ::lab::limits::Summary;
use ::lab::record::{RunResult, Step};
use base::units::{self, utc};
use serde_json::Value;

use super::Found;

/// Where a report has its data.
const DATA: &str = "<script type=\"application/json\" id=\"data\">";

/// A result or a summary, also inside of a report.
pub(super) fn recognise(text: &str) -> Option<Found> {
    let page = text.trim_start().starts_with("<!doctype html>");
    let json = match page {
        true => text.split_once(DATA)?.1.split_once("</script>")?.0,
        false => text,
    };
    let value: Value = serde_json::from_str(json).ok()?;
    let found = if value.get("steps").is_some() {
        result(&serde_json::from_value(value.clone()).ok()?)
    } else {
        summary(&serde_json::from_value(value.clone()).ok()?)
    };
    let of = if page { "report of a " } else { "" };
    Some(Found { text: format!("{of}{found}"), value })
}

fn result(run: &RunResult) -> String {
    let mut text = format!("lab result, format {}\n", run.format);
    let mut line = |name: &str, value: &str| text += &format!("  {name:<18} {value}\n");
    line("program", &run.program);
    line("started", &(utc(run.started as i64) + " UTC"));
    line("took", &format!("{:.1} s", run.ended - run.started));
    line("job", &format!("{}: {}", run.job.name, run.job.title));
    line("target", &run.target);
    line("command", &run.command.join(" "));
    line("server", &run.server.seen);
    line("clients", &run.clients.len().to_string());
    for (n, step) in run.steps.iter().enumerate() {
        let best = if run.best == Some(n) { "  << the result" } else { "" };
        line(&format!("step {}", step.number), &(one_step(step) + best));
    }
    if let Some(limit) = &run.limit {
        let sure = limit.confidence * 100.0;
        line("limiter", &format!("{:?}, {sure:.0} % sure", limit.limiter));
        limit.why.iter().for_each(|why| line("", why));
    }
    run.degraded.iter().for_each(|why| line("degraded", why));
    run.failed.iter().for_each(|why| line("failed", why));
    text
}

fn one_step(step: &Step) -> String {
    format!(
        "{} x {}: {} ops/s, {}/s, median {}, 99 % {}, {:?}",
        step.clients,
        step.threads,
        units::count(step.ops_s),
        units::bytes(step.bytes_s),
        units::time_ns(step.latency.p50 as f64),
        units::time_ns(step.latency.p99 as f64),
        step.steady.verdict
    )
}

fn summary(all: &Summary) -> String {
    let mut text = format!("Performance Limit Summary, format {}\n", all.format);
    text += &format!("  {:<18} {}\n", "target", all.target);
    text += &format!("  {:<18} {} UTC\n", "started", utc(all.started as i64));
    for row in &all.rows {
        let (p50, p99) = (units::time_ns(row.p50_ns as f64), units::time_ns(row.p99_ns as f64));
        text += &format!(
            "  {:<18} {} at {} x {}, median {p50}, 99 % {p99}, {}\n",
            row.job, row.text, row.clients, row.threads, row.limiter_text
        );
    }
    text
}
