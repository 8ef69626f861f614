//! The figures of a network profile: text, CSV, Markdown and the page show these sections.

use super::{NONE, Section};
use crate::agent::net::ContextCount;
use crate::net::record::{FlowopRecord, InterfaceRecord, NetResult, TransactionRecord};
use crate::record::Latency;
use crate::report::table::Table;
use base::units::{bytes, count, time_ns};
use host::segments::Count;
use lab_net::count::TcpAccount;
use std::collections::BTreeMap;

/// All of them.
pub(super) fn sections(result: &NetResult) -> Vec<Section> {
    vec![
        verdict(result),
        transactions(result),
        Section::new("flowops", "Calls by flowop and class of connections").of(&flowops(result)),
        ends(result),
        evenness(result),
        tcp(result),
        interfaces(result),
        segments(result),
        Section::new("command", "Command").with_sentences([result.provenance.command.join(" ")]),
    ]
}

fn verdict(result: &NetResult) -> Section {
    let degraded = result.degraded.iter().map(|what| format!("degraded: {what}"));
    let failed = result.failed.iter().map(|why| format!("failed: {why}"));
    let rate = result.main().map(|main| {
        format!(
            "transaction {}: {}/s of payload in both directions, {} calls/s",
            main.number + 1,
            bytes(main.bytes_s),
            count(main.calls_s)
        )
    });
    let notes = result.notes.iter().cloned();
    Section::new("verdict", "Result")
        .with_sentences(rate.into_iter().chain(failed).chain(degraded).chain(notes))
}

fn transactions(result: &NetResult) -> Section {
    let line = |t: &TransactionRecord| {
        [
            (t.number + 1).to_string(),
            format!("{:.2} s", t.seconds),
            format!("{}/s", bytes(t.bytes_s)),
            format!("{}/s", count(t.calls_s)),
            format!("{} of {}", t.used.1 - t.used.0, t.windows.len()),
            format!("{:.1} %", t.steady.range_percent),
            time_ns(t.start_skew_s * 1e9),
        ]
    };
    Section::new("transactions", "Transactions").table(
        ["transaction", "time", "payload", "calls", "windows", "spread", "start skew"],
        result.transactions.iter().map(line).collect(),
    )
}

/// A line for each flowop of each end, with the numbers behind the figures.
pub fn flowops(result: &NetResult) -> Table {
    let each = || result.transactions.iter().flat_map(|t| t.flowops.iter().map(move |f| (t, f)));
    let line = |(t, f): (&TransactionRecord, &FlowopRecord)| {
        let ns = |ns: f64| if f.calls > 0 { time_ns(ns) } else { NONE.to_owned() };
        let Latency { mean, p50, p99, p999, max, .. } = f.latency;
        let all = [mean, p50 as f64, p99 as f64, p999 as f64, max as f64];
        let mut line = vec![
            format!("{}, {}, line {}: {} of {}", t.number + 1, f.end, f.line, f.name, f.group),
            f.calls.to_string(),
            f.failed.to_string(),
            bytes(f.bytes as f64),
        ];
        line.extend(all.map(ns));
        line
    };
    let heads = ["flowop", "calls", "failed", "data", "mean", "p50", "p99", "p99.9", "most"];
    let mut table = Table::new(heads, each().map(line).collect());
    let number = |(_, f): (&TransactionRecord, &FlowopRecord)| {
        let Latency { p50, p99, p999, max, .. } = f.latency;
        let counts = [f.bytes, f.latency.mean as u64, p50, p99, p999, max];
        counts.iter().map(u64::to_string).collect()
    };
    table.raw(
        ["bytes", "mean_ns", "p50_ns", "p99_ns", "p999_ns", "max_ns"],
        each().map(number).collect(),
    );
    table
}

fn ends(result: &NetResult) -> Section {
    let line = |t: &TransactionRecord| {
        let both = &t.bytes;
        let moved = (both.far_received + both.near_received) as f64 / 1e9;
        let cpu: Vec<String> = t.cpu_s.iter().map(|s| format!("{s:.2}")).collect();
        let all: f64 = t.cpu_s.iter().sum();
        [
            (t.number + 1).to_string(),
            both.near_sent.to_string(),
            both.far_received.to_string(),
            both.far_sent.to_string(),
            both.near_received.to_string(),
            format!("{:.4} %", both.difference_percent),
            format!("{} s", cpu.join(" + ")),
            if moved > 0.0 { format!("{:.2} s/GB", all / moved) } else { NONE.to_owned() },
        ]
    };
    Section::new("ends", "Both ends").table(
        [
            "transaction",
            "near sent",
            "far received",
            "far sent",
            "near received",
            "differ by",
            "CPU near + far",
            "CPU for 10⁹ bytes",
        ],
        result.transactions.iter().map(line).collect(),
    )
}

fn evenness(result: &NetResult) -> Section {
    let Some(main) = result.main() else { return Section::new("evenness", "Evenness") };
    let hosts = main.evenness.iter().map(|even| {
        let (least, jain) = (even.min_over_mean * 100.0, even.jain);
        format!("hosts: least {least:.0} % of the mean, Jain's index {jain:.3}")
    });
    let connections = main.connections.iter().map(|even| {
        format!(
            "{} connections: least {:.0} % of the mean (thread {}), Jain's index {:.3}, {} to {}",
            even.connections,
            even.min_over_mean * 100.0,
            even.least.thread,
            even.jain,
            bytes(even.least_bytes as f64),
            bytes(even.most_bytes as f64)
        )
    });
    let rows = main.by_host.iter().map(|host| [host.host.clone(), bytes(host.bytes as f64)]);
    Section::new("evenness", "Evenness")
        .with_sentences(hosts.chain(connections))
        .table(["host", "payload"], rows.collect())
}

/// By end: the sums, and how they are spread over connections is in `result.json`.
fn tcp(result: &NetResult) -> Section {
    let mut ends: BTreeMap<&str, TcpAccount> = BTreeMap::new();
    for connection in &result.connections {
        ends.entry(&connection.end).or_default().add(&connection.tcp);
    }
    let line = |(end, tcp): (&str, TcpAccount)| {
        let us = |us: u64| time_ns(us as f64 * 1e3);
        [
            end.to_owned(),
            tcp.connections.to_string(),
            us(tcp.busy_us),
            us(tcp.rwnd_limited_us),
            us(tcp.sndbuf_limited_us),
            tcp.retransmits.to_string(),
            tcp.segments_out.to_string(),
            us(tcp.min_rtt_us.into()),
        ]
    };
    Section::new("tcp", "TCP's account, all connections of an end together").table(
        [
            "end",
            "connections",
            "busy",
            "limited by the receiver",
            "limited by the send buffer",
            "retransmits",
            "segments sent",
            "least round trip",
        ],
        ends.into_iter().map(line).collect(),
    )
}

fn interfaces(result: &NetResult) -> Section {
    let Some(main) = result.main() else { return Section::new("interfaces", "Interfaces") };
    let line = |i: &InterfaceRecord| {
        let ratio = i.ratio.map_or(NONE.to_owned(), |ratio| format!("{ratio:.4}"));
        [
            format!("{} {}", i.end, i.counted.name),
            i.counted.tx_bytes.to_string(),
            i.counted.tx_packets.to_string(),
            i.counted.rx_bytes.to_string(),
            i.counted.rx_packets.to_string(),
            i.payload_out.to_string(),
            i.payload_in.to_string(),
            ratio,
        ]
    };
    Section::new("interfaces", "Interfaces next to the payload").table(
        [
            "interface",
            "bytes out",
            "packets out",
            "bytes in",
            "packets in",
            "payload out",
            "payload in",
            "÷ payload and headers",
        ],
        main.interfaces.iter().map(line).collect(),
    )
}

/// By what handed them to the adapter, and all together.
fn segments(result: &NetResult) -> Section {
    let section =
        Section::new("segments", "Segments that left TCP").with_sentences(result.published.clone());
    let Some(seen) = result.main().and_then(|main| main.segments.as_ref()) else { return section };
    let count =
        |c: &ContextCount| Count { segments: c.segments, bytes: c.bytes, squares: c.squares };
    let all = seen.contexts.iter().map(count).fold(Count::default(), Count::plus);
    let line = |(name, one): (&str, Count)| {
        let size = |mean: Option<f64>| mean.map_or(NONE.to_owned(), |mean| format!("{mean:.0} B"));
        [
            name.to_owned(),
            one.segments.to_string(),
            format!("{:.1} %", 100.0 * one.segments as f64 / all.segments.max(1) as f64),
            bytes(one.bytes as f64),
            size(one.mean()),
            size(one.mean_by_bytes()),
        ]
    };
    let each = seen.contexts.iter().map(|c| (c.context.as_str(), count(c)));
    let whole = (all.segments > 0).then_some(("all", all));
    section
        .with_sentences([format!(
            "{}; all of TCP in the near end's network namespace",
            seen.source
        )])
        .table(
            ["context", "segments", "share", "data", "mean", "mean by bytes"],
            each.chain(whole).map(line).collect(),
        )
}

#[cfg(test)]
mod tests;
