//! The server of a run, as its machine shows it and by its own counts.

use super::{NONE, Section};
use crate::record::observed::{Comparison, Observed, ObservedInterface, OperationCount};
use crate::record::{RunResult, Step};
use base::units::{bytes, count, time_ns};
use host::observe::cache::Pages;
use host::observe::device::{Cap, Capped};

/// CPU, memory, device and page cache.
pub(super) fn server(step: &Step) -> Section {
    let sentences = step.observe.iter().map(|o| format!("{}: {}", o.role, o.sentence()));
    Section::new("server", "Server at the best step")
        .with_sentences(sentences)
        .table(["", "figure"], step.observe.iter().flat_map(lines).collect())
}

pub(in crate::report::figures) fn lines(o: &Observed) -> Vec<[String; 2]> {
    let mut rows = Vec::new();
    let mut add = |what: &str, figure: String| rows.push([what.to_owned(), figure]);
    let rate = |n: u64| format!("{}/s", bytes(n as f64 / o.seconds));
    if let Some(cpu) = o.cpu {
        let by = o.cpu_by.as_deref().unwrap_or("processes").replace('-', " ");
        add("CPU", format!("{:.2} cores, counted by {by}", cpu / o.seconds));
    }
    if let Some((processes, memory)) = o.processes.zip(o.memory) {
        add("processes", format!("{processes} with {} resident", bytes(memory as f64)));
    }
    for device in &o.devices {
        let ([read, written], time) =
            (device.bytes.map(rate), |ns: Option<f64>| ns.map_or(NONE.to_owned(), time_ns));
        let busy = device.busy * 100.0;
        add(
            &format!("device {}", device.name),
            format!(
                "{read} read, {written} written, {busy:.0} % busy; a read took {}, a write {}",
                time(device.latency[0]),
                time(device.latency[1])
            ),
        );
    }
    o.no_device.iter().for_each(|why| add("device", why.clone()));
    for cap in &o.caps {
        add(&format!("cap on {}", cap.device), most(cap));
    }
    let pages = |pages: Pages| {
        let share = pages.resident as f64 / pages.all.max(1) as f64 * 100.0;
        format!("{share:.1} % of {} pages resident", count(pages.all as f64))
    };
    o.pages_before.iter().for_each(|p| add("page cache before", pages(*p)));
    o.pages_after.iter().for_each(|p| add("page cache after", pages(*p)));
    add("TCP segments sent again", o.retransmitted.to_string());
    add("TCP segments out of order", o.out_of_order.to_string());
    add("CPU time of observing", time_ns(o.cost * 1e9));
    rows
}

fn most(cap: &Cap) -> String {
    let n = cap.most as f64;
    let rate = match cap.of {
        Capped::ReadBytes => format!("{}/s read", bytes(n)),
        Capped::WriteBytes => format!("{}/s written", bytes(n)),
        Capped::Reads => format!("{} reads/s", count(n)),
        Capped::Writes => format!("{} writes/s", count(n)),
    };
    format!("{rate} by control group {}", cap.group)
}

/// What the interfaces of the server's network namespace carried, next to the clients' payload.
pub(super) fn interfaces(step: &Step) -> Section {
    let line = |(o, i): (&Observed, &ObservedInterface)| {
        let rate = |n: u64| format!("{}/s", bytes(n as f64 / o.seconds));
        let some = |n: Option<u64>| n.map_or(NONE.to_owned(), rate);
        [
            i.name.clone(),
            rate(i.rx),
            rate(i.tx),
            some(i.payload),
            some(i.headers_expected),
            i.speed.map_or(NONE.to_owned(), |speed| format!("{}/s", bytes(speed as f64))),
        ]
    };
    let used = |i: &&ObservedInterface| i.rx > 0 || i.tx > 0;
    let all =
        step.observe.iter().flat_map(|o| o.interfaces.iter().filter(used).map(move |i| (o, i)));
    Section::new("interfaces", "Interfaces of the server").table(
        ["interface", "received", "sent", "payload", "headers expected", "can"],
        all.map(line).collect(),
    )
}

/// What the server counted itself.
pub(super) fn counts(run: &RunResult, step: &Step) -> Section {
    let compared = step.server_counts.iter().filter_map(|counts| counts.compared.as_ref());
    let gone = step.server_counts.iter().filter(|counts| !counts.complete);
    let gone = gone.map(|_| "the server no longer had all of the step".to_owned());
    let latency = step.evidence.server_latency_ns.map(|ns| {
        let (server, clients) = (time_ns(ns), time_ns(step.latency.mean));
        format!("mean latency: {server} at the server, {clients} at the clients")
    });
    let seen = run.server.unseen.iter().map(|why| format!("server not seen: {why}"));
    let line = |c: &OperationCount| {
        let (counted, carried) = (count(c.count as f64), bytes(c.bytes as f64));
        [c.op.clone(), counted, carried, time_ns(c.latency_ns)]
    };
    let operations = step.server_counts.iter().flat_map(|counts| &counts.operations);
    Section::new("counts", "Counts of the server next to those of the clients")
        .with_sentences(compared.map(Comparison::sentence).chain(gone).chain(latency).chain(seen))
        .table(
            ["operation", "count", "bytes", "latency at the server"],
            operations.map(line).collect(),
        )
}
