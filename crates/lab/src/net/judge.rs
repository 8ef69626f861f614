//! What the counts of both ends come to. Pure.

use super::record::{BothEnds, ConnectionEvenness, InterfaceRecord, Missing};
use crate::agent::net::Interface;
use crate::conduct::distribution::SEGMENT_HEADERS;
use crate::conduct::steady;
use crate::job::Steady;
use crate::record::Steadiness;
use lab_net::count::{ConnCount, Key, Sums};
use lab_net::script::{Kind, Script};
use std::collections::BTreeMap;

/// Connections with missing bytes that are named.
const NAMED_MAX: usize = 16;
/// Both ends may differ by this, percent of the bytes.
pub const DIFFERENCE_MAX: f64 = 0.1;
/// Before this nothing counts: windows grow, buffers fill, seconds.
const WARMUP_S: f64 = 1.0;

/// Compares what each end has sent with what the other one has received.
pub fn both_ends(near: &[ConnCount], far: &[ConnCount]) -> BothEnds {
    let mut all: BTreeMap<Key, [u64; 4]> = BTreeMap::new();
    for count in near {
        let bytes = all.entry(count.key).or_default();
        (bytes[0], bytes[3]) = (bytes[0] + count.sent, bytes[3] + count.received);
    }
    for count in far {
        let bytes = all.entry(count.key).or_default();
        (bytes[1], bytes[2]) = (bytes[1] + count.received, bytes[2] + count.sent);
    }
    let mut both = BothEnds::default();
    let mut off = 0;
    for (key, [near_sent, far_received, far_sent, near_received]) in all {
        both.near_sent += near_sent;
        both.far_received += far_received;
        both.far_sent += far_sent;
        both.near_received += near_received;
        for (from_far, sent, received) in
            [(false, near_sent, far_received), (true, far_sent, near_received)]
        {
            off += sent.abs_diff(received);
            if sent != received {
                both.missing_count += 1;
                both.missing.push(Missing { key, from_far, sent, received });
            }
        }
    }
    both.missing.sort_by_key(|m| std::cmp::Reverse(m.sent.abs_diff(m.received)));
    both.missing.truncate(NAMED_MAX);
    let sent = both.near_sent + both.far_sent;
    both.difference_percent = if sent > 0 { off as f64 / sent as f64 * 100.0 } else { 0.0 };
    both
}

/// Whether all far ends do the same in a transaction: only then their bytes should be even.
pub fn alike(far: &[Vec<Script>], transaction: usize) -> bool {
    let mut each = far.iter().map(|scripts| work(scripts, transaction));
    let first = each.next();
    each.all(|other| Some(other) == first)
}

/// What an end does in a transaction, whatever its host, and the flowops that state it.
fn work(scripts: &[Script], transaction: usize) -> Vec<Script> {
    let one = |script: &Script| {
        let mut one = script.transactions.get(transaction)?.clone();
        for act in &mut one.acts {
            (act.flowop, act.line, act.conn) = (0, 0, 0);
            if let Kind::Open(host, endpoint) | Kind::Accept(host, endpoint) = &mut act.kind {
                (*host, endpoint.host, endpoint.local) = (0, String::new(), None);
            }
        }
        let threads = 0..script.threads.len() as u32;
        Some(Script { group: 0, threads, transactions: vec![one] })
    };
    scripts.iter().filter_map(one).collect()
}

/// How evenly connections were served; `None` of fewer than two.
pub fn evenness(counts: &[ConnCount]) -> Option<ConnectionEvenness> {
    let bytes = |count: &ConnCount| count.sent + count.received;
    let (n, sum) = (counts.len() as f64, counts.iter().map(bytes).sum::<u64>() as f64);
    if counts.len() < 2 || sum <= 0.0 {
        return None;
    }
    let squares: f64 = counts.iter().map(|count| (bytes(count) as f64).powi(2)).sum();
    let least = counts.iter().min_by_key(|count| bytes(count))?;
    Some(ConnectionEvenness {
        connections: counts.len() as u64,
        min_over_mean: bytes(least) as f64 * n / sum,
        jain: sum * sum / (n * squares),
        least: least.key,
        least_bytes: bytes(least),
        most_bytes: counts.iter().map(bytes).max()?,
    })
}

/// The windows that count, and whether they are steady.
pub fn windows(windows: &[Sums], window_s: f64) -> ((usize, usize), Steadiness) {
    let warmup = (WARMUP_S / window_s.max(1e-3)).ceil() as usize;
    // Of a short transaction the later half.
    let from = warmup.min(windows.len() / 2);
    let used = (from, windows.len());
    let rule = Steady { windows: (used.1 - from).max(2) as u32, ..Steady::default() };
    let rates: Vec<f64> = windows[from..].iter().map(moved).collect();
    (used, steady::test(&rates, &rule))
}

fn moved(sums: &Sums) -> f64 {
    match sums.sent + sums.received {
        0 => sums.calls as f64,
        bytes => bytes as f64,
    }
}

/// An interface next to the payload of its end. Each packet that it has counted has headers of
/// Ethernet, IPv4 and TCP; large ones that the adapter or the other end of a pair cuts have them
/// once.
pub fn interface(end: &str, counted: Interface, (out, into): (u64, u64)) -> InterfaceRecord {
    let packets = counted.rx_packets + counted.tx_packets;
    let expected = (counted.name != "lo").then(|| out + into + SEGMENT_HEADERS * packets);
    let bytes = counted.rx_bytes + counted.tx_bytes;
    let ratio = expected.filter(|e| *e > 0).map(|expected| bytes as f64 / expected as f64);
    let end = end.to_owned();
    InterfaceRecord { end, counted, payload_out: out, payload_in: into, expected, ratio }
}

#[cfg(test)]
mod tests;
