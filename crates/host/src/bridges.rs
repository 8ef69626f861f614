//! The bridges that run on this machine (`plimsoll bridge`) as statistics: rates between two of
//! their answers, levels as they are. The ids are those of `schema/bridge.toml`.
//!
//! A bridge is another process, so its status is requested each second. A bridge that does not
//! reply in time has no statistics for that second, and is counted.

use std::collections::HashMap;
use std::path::PathBuf;

use base::buckets;
use probe::sample::{Sample, Sampler};

use crate::sampler::interval_ns;
use ask::{Direction, Poller, Status};

mod ask;

/// Samples the bridges.
pub struct BridgeSampler {
    poller: Poller,
    last: HashMap<String, Reading>,
    /// What the rates that were given last are of.
    moved: Vec<Moved>,
}

/// The last reply of a bridge, and its time.
struct Reading {
    time_ns: u64,
    status: Status,
}

impl BridgeSampler {
    /// A sampler of the bridges with sockets in `dir` that belong to root or to `user`.
    pub fn new(dir: PathBuf, user: u32) -> Self {
        Self { poller: Poller::new(dir, user), last: HashMap::new(), moved: Vec::new() }
    }
}

impl Sampler for BridgeSampler {
    fn sample(&mut self, now_ns: u64) -> Vec<Sample> {
        let statuses = self.poller.poll();
        let mut samples = levels(&statuses);
        // One that did not answer keeps its reading: its next rates are those since then.
        self.last.retain(|name, _| statuses.iter().any(|(other, _)| other == name));
        let given = std::mem::take(&mut self.moved);
        let now = statuses.into_iter().filter_map(|(name, status)| Some((name, status?)));
        for (name, status) in now {
            self.enter(name, Reading { time_ns: now_ns, status }, &given);
        }
        if !self.moved.is_empty() {
            samples.extend(rates(&self.moved));
        }
        samples
    }
}

impl BridgeSampler {
    /// Enters a reply; `given` is what the rates of the second before were of.
    fn enter(&mut self, name: String, now: Reading, given: &[Moved]) {
        // Another one may have taken its name.
        let last = self.last.get(&name).filter(|last| last.status.pid == now.status.pid);
        if let Some(last) = last {
            if let Some(ns) = interval_ns(last.time_ns, now.time_ns) {
                self.moved.extend(moves(&name, last, &now, ns));
            } else {
                // As all rates of a second without an interval of its own.
                self.moved.extend(given.iter().filter(|moved| moved.bridge == name).cloned());
                if now.time_ns >= last.time_ns {
                    return;
                }
            }
        }
        self.last.insert(name, now);
    }
}

/// What each way of a bridge is called, and what it has done.
fn directions(status: &Status) -> [(&'static str, &Direction); 2] {
    [("forth", &status.forth), ("back", &status.back)]
}

fn levels(statuses: &[(String, Option<Status>)]) -> Vec<Sample> {
    let bridges = |stat, is: fn(Option<&Status>) -> bool| {
        let those = statuses.iter().filter(|(_, status)| is(status.as_ref()));
        let row = |(name, _): &(String, _)| (name.clone(), String::new(), 1.0);
        summed(stat, ["bridge", ""], those.map(row).collect())
    };
    let mut samples = vec![
        bridges("bridge.running", |status| status.is_some()),
        bridges("bridge.condemned", |status| status.is_some_and(|s| s.verdict != "good")),
        bridges("bridge.silent", |status| status.is_none()),
    ];
    if !statuses.is_empty() {
        let answered = statuses.iter().filter_map(|(name, status)| Some((name, status.as_ref()?)));
        let queues = answered.flat_map(|(name, status)| {
            let row =
                |(way, of): (&str, &Direction)| (name.clone(), way.into(), of.queue_bytes as f64);
            directions(status).map(row)
        });
        samples.push(summed("bridge.queue", ["bridge", "way"], queues.collect()));
    }
    samples
}

/// A statistic that is the sum of its rows.
fn summed(
    stat: &'static str,
    dimensions: [&'static str; 2],
    rows: Vec<(String, String, f64)>,
) -> Sample {
    let total = rows.iter().map(|(_, _, value)| value).sum();
    Sample { stat, dimensions, total, rows }
}

/// One way of a bridge between two answers.
#[derive(Clone)]
struct Moved {
    bridge: String,
    way: &'static str,
    seconds: f64,
    packets: Counts,
    bytes: u64,
    impaired: Counts,
    lateness: Counts,
    starved_ns: u64,
}

/// How many of each kind.
type Counts = Vec<(String, u64)>;

/// What a bridge did between two answers.
fn moves(name: &str, before: &Reading, after: &Reading, interval_ns: u64) -> Vec<Moved> {
    let seconds = interval_ns as f64 / 1e9;
    let pairs = directions(&before.status).into_iter().zip(directions(&after.status));
    let moved = |((_, was), (way, is)): ((_, &Direction), (&'static str, &Direction))| Moved {
        bridge: name.to_owned(),
        way,
        seconds,
        packets: more(&outcomes(was), outcomes(is)),
        bytes: is.bytes_out.saturating_sub(was.bytes_out),
        impaired: more(&impairments(was), impairments(is)),
        lateness: more(&lateness(was), lateness(is)),
        starved_ns: is.pauses.total_ns.saturating_sub(was.pauses.total_ns),
    };
    pairs.map(moved).collect()
}

fn more(was: &Counts, is: Counts) -> Counts {
    let before = |kind: &str| was.iter().find(|(of, _)| of == kind).map_or(0, |(_, n)| *n);
    let added = |(kind, n): (String, u64)| {
        let added = n.saturating_sub(before(&kind));
        (added > 0).then_some((kind, added))
    };
    is.into_iter().filter_map(added).collect()
}

fn named<const N: usize>(counts: [(&str, u64); N]) -> Counts {
    counts.map(|(name, n)| (name.to_owned(), n)).into()
}

/// What became of packets; each has one outcome.
fn outcomes(way: &Direction) -> Counts {
    named([
        ("delivered", way.packets_out),
        ("lost", way.dropped.lost),
        ("queue-full", way.dropped.queue_full),
        ("refused", way.dropped.refused),
        ("no-room", way.dropped.no_room),
        ("overrun", way.dropped.overrun),
    ])
}

/// What was done to packets on the way.
fn impairments(way: &Direction) -> Counts {
    named([("corrupted", way.damaged), ("reordered", way.held), ("duplicated", way.twice)])
}

fn lateness(way: &Direction) -> Counts {
    let bucket = |(ns, packets): &(u64, u64)| (ns.to_string(), *packets);
    // A bridge has no more buckets than there are.
    way.lateness.by.iter().take(buckets::COUNT).map(bucket).collect()
}

fn rates(moved: &[Moved]) -> Vec<Sample> {
    let mut samples = Vec::new();
    samples.extend(by_kind("bridge.packets", "outcome", moved, |m| &m.packets));
    samples.extend(by_kind("bridge.impaired", "impairment", moved, |m| &m.impaired));
    samples.extend(by_kind("bridge.lateness", "lateness", moved, |m| &m.lateness));
    let row = |m: &Moved, value: f64| (m.bridge.clone(), m.way.to_owned(), value);
    let bytes = moved.iter().map(|m| row(m, m.bytes as f64 / m.seconds)).collect();
    samples.push(summed("bridge.bytes", ["bridge", "way"], bytes));
    // A pause is counted when it ends, and may be longer than the time between two answers.
    let percent = |m: &Moved| (m.starved_ns as f64 / 1e7 / m.seconds).min(100.0);
    let rows: Vec<_> = moved.iter().map(|m| row(m, percent(m))).collect();
    // As a whole the worst: a mean would hide a way that stands still behind those that do not.
    let total = rows.iter().map(|(_, _, value)| *value).fold(0.0, f64::max);
    samples.push(Sample { stat: "bridge.starved", dimensions: ["bridge", "way"], total, rows });
    samples
}

/// A counter with kinds, once for each pair of dimensions of its breakdowns.
fn by_kind(
    stat: &'static str,
    kind: &'static str,
    moved: &[Moved],
    counts: fn(&Moved) -> &Counts,
) -> [Sample; 3] {
    let all = || moved.iter().flat_map(move |m| counts(m).iter().map(move |count| (m, count)));
    let rate = |m: &Moved, n: u64| n as f64 / m.seconds;
    let (mut by_way, mut of_bridge, mut of_way) = (Vec::new(), Vec::new(), Vec::new());
    for (m, (kind, n)) in all() {
        let (bridge, way, value) = (m.bridge.clone(), m.way.to_owned(), rate(m, *n));
        by_way.push((bridge.clone(), way.clone(), value));
        of_bridge.push((bridge, kind.clone(), value));
        of_way.push((way, kind.clone(), value));
    }
    [
        summed(stat, ["bridge", "way"], by_way),
        summed(stat, ["bridge", kind], of_bridge),
        summed(stat, ["way", kind], of_way),
    ]
}

#[cfg(test)]
mod tests;
