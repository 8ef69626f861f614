//! Sections of a run: result and next limit, steps, demands, clients and their evenness, the server
//! as its machine shows it and by its own counts, interventions, open loop, shape, several runs.

pub(super) mod observed;

use super::{NONE, Section};
use crate::limit::Limiter;
use crate::limits;
use crate::record::observed::ClientStep;
use crate::record::{OpenStep, RunResult, Step, figure_text};
use crate::report;
use crate::shape::outcome::CurvePoint;
use crate::verdict::demand::{Binding, Demands};
use crate::verdict::evenness::Evenness;
use crate::verdict::prove::{Finding, Proof};
use base::units::{bytes, count, time_ns};

/// All of them; what a run does not have is empty.
pub(super) fn sections(run: &RunResult) -> Vec<Section> {
    let best = run.best_step();
    let mut all = vec![result(run), steps(run), demands(run), clients(run)];
    all.extend(best.map(observed::server));
    all.extend(best.map(observed::interfaces));
    all.extend(best.map(|step| observed::counts(run, step)));
    all.extend([proof(run), open(run), shape(run), over_runs(run), repeat(run)]);
    all
}

/// The figure, with "≥" where something else than the server ended it.
fn result(run: &RunResult) -> Section {
    let cell = limits::cell(run, "");
    let section = Section::new("result", "Result");
    let reasons = run.limit.iter().flat_map(|limit| {
        let excluded = limit.ruled_out.iter().map(|what| format!("not {what}"));
        limit.why.iter().chain(&limit.marks).cloned().chain(excluded)
    });
    let section = section.with_sentences(reasons).with_sentences(report::notes(run));
    if cell.value.is_none() {
        return section;
    }
    let [value, load, p50, p99, payload, transport, limiter, mark] = cell.figures();
    let seen = cell.transport_seen.map_or(String::new(), |by| format!(", seen by {by}"));
    let next = run.demands.as_ref().and_then(|demands| demands.next.as_ref());
    let next = next.map_or(NONE.to_owned(), |next| {
        let (name, factor) = (&next.name, next.factor);
        format!("{name}, at {factor:.1} times the throughput ({:.1} to {:.1})", next.low, next.high)
    });
    let mut rows = [
        ["throughput", &value],
        ["clients × threads", &load],
        ["median latency", &p50],
        ["99th percentile", &p99],
        ["payload", &payload],
        ["transport", &format!("{transport}{seen}")],
        ["limited by", &limiter],
        ["next limit", &next],
    ]
    .map(|row| row.map(str::to_owned))
    .to_vec();
    // The sentence begins with the name of its line.
    let scaling = run.scaling.iter().map(|scaling| {
        let sentence = &scaling.sentence;
        ("scaling", sentence.strip_prefix("scaling: ").unwrap_or(sentence).to_owned())
    });
    let mark = Some(mark).filter(|mark| !mark.is_empty()).map(|mark| ("mark", mark));
    rows.extend(scaling.chain(mark).map(|(what, text)| [what.to_owned(), text]));
    section.table(["", "figure"], rows)
}

fn steps(run: &RunResult) -> Section {
    let section = Section::new("steps", "Figures by step");
    if run.steps.is_empty() { section } else { section.of(&report::table(run)) }
}

/// Busy time of each resource for an operation, and where it ends.
fn demands(run: &RunResult) -> Section {
    let section = Section::new("demands", "Demands and the next limit");
    let Some(demands) = &run.demands else { return section };
    let line = |d: &crate::verdict::demand::Demand| {
        let users = d.users.iter().map(|(name, s)| format!("{name} {}", time_ns(s * 1e9)));
        [
            d.name.clone(),
            format!("{} ± {}", time_ns(d.seconds * 1e9), time_ns(d.seconds_error * 1e9)),
            format!("{:.2}", d.idle),
            format!("{} ops/s", count(d.bound)),
            format!("{} to {}", count(d.bound_low), count(d.bound_high)),
            if d.constant { "yes" } else { "no" }.to_owned(),
            users.collect::<Vec<_>>().join(", "),
        ]
    };
    section.with_sentences(sentences(demands)).table(
        [
            "resource",
            "for an operation",
            "without load",
            "at most",
            "95 % interval",
            "constant",
            "of which",
        ],
        demands.demands.iter().map(line).collect(),
    )
}

/// Those that are not of one demand, which the table has.
fn sentences(demands: &Demands) -> Vec<String> {
    let shown = |sentence: &String| demands.demands.iter().any(|d| d.sentence == *sentence);
    let binding = match &demands.binding {
        Binding::Resource(name) => Some(format!("used up: {name}")),
        Binding::Nothing => Some("all resources were observed, none is used up".to_owned()),
        Binding::NotSeparable(_) | Binding::Unknown => None,
    };
    let others = demands.sentences().into_iter().filter(|sentence| !shown(sentence));
    binding.into_iter().chain(others).collect()
}

/// Each client at the best step, and which of them stand out.
fn clients(run: &RunResult) -> Section {
    let section = Section::new("clients", "Clients at the best step");
    let Some(step) = run.best_step() else { return section };
    let even = |even: &Evenness| {
        let named = even.uneven.iter().map(|client| client.sentence.clone());
        std::iter::once(report::evenness(even)).chain(named).collect::<Vec<_>>()
    };
    let line = |client: &ClientStep| {
        [
            client.client.to_string(),
            count(client.ops as f64),
            bytes(client.bytes as f64),
            client.errors.to_string(),
            source(client),
            client.interface.clone().unwrap_or_else(|| NONE.to_owned()),
        ]
    };
    section.with_sentences(step.evenness.iter().flat_map(even)).table(
        ["client", "operations", "bytes", "errors", "connects from", "interface"],
        step.by_client.iter().map(line).collect(),
    )
}

/// The address of a client, and that from which the server has its connections if it is another.
fn source(client: &ClientStep) -> String {
    let own = client.source.as_deref().unwrap_or(NONE);
    match &client.seen_as {
        Some(seen) => format!("{own}, at the server {seen}"),
        None => own.to_owned(),
    }
}

/// A ratio, marked if the load generator limited one side of it.
fn bounded(finding: &Finding) -> String {
    match (finding.at_least, finding.at_most) {
        (true, false) => format!("≥ {:.2}", finding.ratio),
        (false, true) => format!("≤ {:.2}", finding.ratio),
        _ => format!("{:.2}", finding.ratio),
    }
}

/// What interventions have shown.
fn proof(run: &RunResult) -> Section {
    let section = Section::new("proof", "Interventions");
    let Some(Proof { findings, not_run }) = &run.proof else { return section };
    let list = |all: &[Limiter]| {
        let titles: Vec<&str> = all.iter().map(|limiter| limiter.title()).collect();
        if titles.is_empty() { NONE.to_owned() } else { titles.join(", ") }
    };
    let line = |finding: &Finding| {
        let (low, high) = finding.interval;
        [
            finding.intervention.title().to_owned(),
            bounded(finding),
            format!("{low:.2} to {high:.2}"),
            list(&finding.supports),
            list(&finding.refutes),
        ]
    };
    let not_run = not_run.iter().map(|why| format!("not proved by {why}"));
    section.with_sentences(not_run).table(
        ["changed", "times the operations", "95 % interval", "supports", "refutes"],
        findings.iter().map(line).collect(),
    )
}

/// What became of the arrivals of an open loop, step by step.
fn open(run: &RunResult) -> Section {
    let line = |(step, open): (&Step, &OpenStep)| {
        let counts = &open.counts;
        [
            format!("{} × {}, {} ops/s", step.clients, step.threads, count(open.rate)),
            counts.offered.to_string(),
            counts.started.to_string(),
            counts.queued.to_string(),
            counts.skipped.to_string(),
            time_ns(step.latency.p99 as f64),
            time_ns(open.lateness.p99 as f64),
        ]
    };
    let steps: Vec<_> =
        run.steps.iter().filter_map(|step| Some((step, step.open.as_ref()?))).collect();
    let doubts = steps.iter().flat_map(|(_, open)| open.condemned.iter().chain(&open.reservation));
    Section::new("open", "Open loop").with_sentences(doubts.cloned()).table(
        [
            "arrivals",
            "offered",
            "started",
            "late by the queue",
            "skipped",
            "p99",
            "generator late (p99)",
        ],
        steps.iter().copied().map(line).collect(),
    )
}

/// The points of a curve, the rate within a bound, the drift of a soak.
fn shape(run: &RunResult) -> Section {
    let point = |p: &CurvePoint| {
        [
            format!("{} %", p.percent),
            format!("{} ops/s", count(p.rate)),
            format!("{} ops/s", count(p.ops_s)),
            time_ns(p.p50_ns as f64),
            time_ns(p.p99_ns as f64),
            p.skipped.to_string(),
            if p.condemned { "yes" } else { "no" }.to_owned(),
        ]
    };
    let bound = run.shape.bound.iter().map(|bound| bound.sentence.clone());
    let drift = run.shape.drift.iter().map(|drift| drift.sentence.clone());
    Section::new("shape", "Shape of the load").with_sentences(bound.chain(drift)).table(
        ["share of the maximum", "rate", "completed", "p50", "p99", "skipped", "generator late"],
        run.shape.curve.iter().map(point).collect(),
    )
}

/// The figure of each run.
fn over_runs(run: &RunResult) -> Section {
    let section = Section::new("runs", "Runs");
    let Some(over) = &run.over_runs else { return section };
    let text = |figure| figure_text(run.job.workload.is_stream(), figure);
    let each = over.figures.iter().enumerate();
    let rows = each.map(|(n, figure)| [format!("run {}", n + 1), text(*figure)]).collect();
    section.with_sentences([over.sentence(text)]).table(["run", "figure"], rows)
}

/// What repeats it: the command, and the hash of the operations that clients were given.
fn repeat(run: &RunResult) -> Section {
    let mark = run.operations.hash.as_ref();
    let hash = mark.map(|mark| {
        format!("operations that the clients were given: hash {}", String::from(*mark))
    });
    let command = (!run.command.is_empty()).then(|| run.command.join(" "));
    Section::new("command", "Command").with_sentences(command.into_iter().chain(hash))
}
