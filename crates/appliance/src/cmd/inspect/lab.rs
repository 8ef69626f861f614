//! What the lab leaves behind (`docs/formats/result.md`): results, summaries, and the pages that
//! are made of them, which hold the same as JSON.

use ::lab::ab::record::{AbResult, KIND};
use ::lab::archive::request::Request;
use ::lab::desk::run::Run;
use ::lab::iozone::over::record::{self as over, OverResult};
use ::lab::iozone::record::{self as iozone, IozoneResult};
use ::lab::job::Job;
use ::lab::limits::Summary;
use ::lab::net::record::{self as net, NetResult};
use ::lab::programs::record::{self as program, ProgramResult};
use ::lab::record::{RunResult, Step};
use ::lab::report::Figures;
use ::lab::transfer::Comparison;
use base::units::{self, utc};
use serde_json::Value;

use super::Inspected;

/// Where a report has its data.
const DATA: &str = "<script type=\"application/json\" id=\"data\">";

/// A result or a summary, also inside of a report; what a server knows of a run, and its job.
pub(super) fn recognise(name: &str, text: &str) -> Option<Inspected> {
    match name {
        "run.json" => return one_run(text),
        "job.toml" => return job(name, text),
        "run.toml" => return request(text),
        _ => {}
    }
    let page = text.trim_start().starts_with("<!doctype html>");
    let json = match page {
        true => text.split_once(DATA)?.1.split_once("</script>")?.0,
        false => text,
    };
    let value: Value = serde_json::from_str(json).ok()?;
    let found = if value["kind"] == KIND {
        let ab: AbResult = serde_json::from_value(value.clone()).ok()?;
        format!("lab A/B comparison, format {}\n{}", ab.provenance.format, ab.text())
    } else if value["kind"] == iozone::KIND {
        let tests: IozoneResult = serde_json::from_value(value.clone()).ok()?;
        format!(
            "lab IOzone tests, format {}\n{}",
            tests.provenance.format,
            tests.text(false, false)
        )
    } else if value["kind"] == over::KIND {
        let tests: OverResult = serde_json::from_value(value.clone()).ok()?;
        format!("lab IOzone over distance, format {}\n{}", tests.provenance.format, tests.text())
    } else if value["kind"] == net::KIND {
        let run: NetResult = serde_json::from_value(value.clone()).ok()?;
        format!(
            "lab network profile, format {}\n{}",
            run.provenance.format,
            Figures::of_net(&run).text()
        )
    } else if value["kind"] == program::KIND {
        let run: ProgramResult = serde_json::from_value(value.clone()).ok()?;
        let sentences = run.sentences().join("\n");
        let (format, file) = (run.provenance.format, &run.file);
        format!("lab program, format {format}\n{file} on {}\n{sentences}\n", run.target)
    } else if value.get("lines").is_some() {
        let comparison: Comparison = serde_json::from_value(value.clone()).ok()?;
        format!("lab comparison, format {}\n{}", comparison.format, comparison.text())
    } else if value.get("steps").is_some() {
        result(&serde_json::from_value(value.clone()).ok()?)
    } else {
        summary(&Summary::of(value.clone()).ok()?)
    };
    let of = if page { "report of a " } else { "" };
    Some(Inspected { text: format!("{of}{found}"), value })
}

/// What a server knows of a run (`docs/formats/state.md`).
fn one_run(text: &str) -> Option<Inspected> {
    let run: Run = serde_json::from_str(text).ok()?;
    let mut shown = format!("run {} of the job {}, format {}\n", run.id, run.job, run.format);
    let mut line = |name: &str, value: &str| shown += &format!("  {name:<18} {value}\n");
    line("state", run.state.name());
    line("message", &run.message);
    line("by", &format!("{} from {}", run.by, run.from));
    line("target", &run.target);
    line("folder", &format!("{}{}", run.scratch, if run.cleaned { ", removed" } else { "" }));
    let times = [("queued", Some(run.queued)), ("began", run.started), ("ended", run.ended)];
    for (name, at) in times.into_iter().filter_map(|(name, at)| Some((name, at?))) {
        line(name, &(utc(at.cast_signed()) + " UTC"));
    }
    run.steps.iter().for_each(|step| line("step", &step.to_string()));
    run.value.iter().for_each(|value| line("result", value));
    run.limiter.iter().for_each(|limiter| line("limiter", limiter));
    run.why.iter().for_each(|why| line("", why));
    run.degraded.iter().for_each(|why| line("degraded", why));
    Some(Inspected { text: shown, value: serde_json::from_str(text).ok()? })
}

/// The request of a result.
fn request(text: &str) -> Option<Inspected> {
    let request: Request = Request::parse(text).ok()?;
    let mut shown = format!("lab request, format {}\n", request.format);
    let mut line = |name: &str, value: &str| shown += &format!("  {name:<18} {value}\n");
    line("command", &request.command.join(" "));
    request.targets.iter().for_each(|target| line("target", &target.url));
    for job in &request.jobs {
        line("job", &format!("{}: {}, seed {}", job.name, job.title, job.seed));
    }
    line("clients", &request.clients.to_string());
    Some(Inspected { text: shown, value: serde_json::to_value(&request).ok()? })
}

fn job(name: &str, text: &str) -> Option<Inspected> {
    let job = Job::parse(name, text, &[]).ok()?;
    let mut value = serde_json::to_value(job).ok()?;
    value["format"] = "load job".into();
    Some(Inspected::from(value))
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
        line("limiter", &format!("{}, confidence {sure:.0} %", word(&limit.limiter)));
        limit.why.iter().for_each(|why| line("", why));
    }
    run.degraded.iter().for_each(|why| line("degraded", why));
    run.failed.iter().for_each(|why| line("failed", why));
    text
}

/// A choice as its file has it.
fn word(choice: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(choice).unwrap_or_default();
    value.as_str().unwrap_or("unknown").to_owned()
}

fn one_step(step: &Step) -> String {
    format!(
        "{} x {}: {} ops/s, {}/s, median {}, 99 % {}, {}",
        step.clients,
        step.threads,
        units::count(step.ops_s),
        units::bytes(step.bytes_s),
        units::time_ns(step.latency.p50 as f64),
        units::time_ns(step.latency.p99 as f64),
        word(&step.steady.verdict)
    )
}

fn summary(all: &Summary) -> String {
    let mut text = format!("Performance Limit Summary, format {}\n", all.format);
    for column in &all.columns {
        text += &format!("  {:<18} {}\n", column.name, column.target);
    }
    text += &format!("  {:<18} {} UTC\n", "started", utc(all.started as i64));
    for (row, column, cell) in all.cells() {
        let [value, at, p50, p99, .., limiter, mark] = cell.figures();
        let cell = match cell.value {
            None => value,
            Some(_) => format!("{value} at {at}, median {p50}, 99 % {p99}, {limiter} {mark}"),
        };
        text += &format!("  {:<18} {:<10} {}\n", row.job, column.name, cell.trim_end());
    }
    text
}
