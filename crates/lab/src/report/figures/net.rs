//! The figures of a network profile: text, CSV, Markdown and the page show these sections.

use super::Section;
use crate::net::record::{FlowopRecord, InterfaceRecord, NetResult, TransactionRecord};
use base::units::{bytes, count, time_ns};
use lab_net::count::TcpAccount;
use std::collections::BTreeMap;

/// What was not seen, or does not apply.
const NONE: &str = "–";

/// All of them.
pub(super) fn sections(result: &NetResult) -> Vec<Section> {
    vec![
        verdict(result),
        transactions(result),
        flowops(result),
        ends(result),
        evenness(result),
        tcp(result),
        interfaces(result),
        Section::new("command", "Command").says([result.command.join(" ")]),
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
        .says(rate.into_iter().chain(failed).chain(degraded).chain(notes))
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

fn flowops(result: &NetResult) -> Section {
    let each = result.transactions.iter().flat_map(|t| t.flowops.iter().map(move |f| (t, f)));
    let line = |(t, f): (&TransactionRecord, &FlowopRecord)| {
        let ns = |ns: u64| if f.calls > 0 { time_ns(ns as f64) } else { NONE.to_owned() };
        [
            format!("{}, {}, line {}: {} of {}", t.number + 1, f.end, f.line, f.name, f.group),
            f.calls.to_string(),
            f.failed.to_string(),
            bytes(f.bytes as f64),
            if f.calls > 0 { time_ns(f.latency.mean) } else { NONE.to_owned() },
            ns(f.latency.p50),
            ns(f.latency.p99),
            ns(f.latency.p999),
            ns(f.latency.max),
        ]
    };
    Section::new("flowops", "Calls by flowop and class of connections").table(
        ["flowop", "calls", "failed", "bytes", "mean", "p50", "p99", "p99.9", "most"],
        each.map(line).collect(),
    )
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
        .says(hosts.chain(connections))
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

#[cfg(test)]
mod tests;
