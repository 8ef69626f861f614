//! The counters of a direction so far: written by its thread, read by any thread.
//!
//! Packets are those on the line. None vanishes: what came in, and what was duplicated, has
//! arrived, was dropped for a reason that is counted, or is in flight.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::buckets;
use base::limits::{BRIDGE_PAUSE_MAX, BRIDGE_SPOILED_SHARE};
use serde::Serialize;

use super::shape::nanos;

/// Counters of one direction.
#[derive(Debug)]
pub struct Tally {
    /// Packets and bytes that came in.
    pub packets_in: AtomicU64,
    /// Bytes that came in.
    pub bytes_in: AtomicU64,
    /// Packets that arrived.
    pub packets_out: AtomicU64,
    /// Bytes that arrived.
    pub bytes_out: AtomicU64,
    /// Packets dropped before the line, as its queue was full.
    pub queue_full: AtomicU64,
    /// Packets lost on the line.
    pub lost: AtomicU64,
    /// Packets for which there was no room on the way (a limit of the bridge's own).
    pub no_room: AtomicU64,
    /// Packets that the other end did not take: damaged, or forged.
    pub refused: AtomicU64,
    /// Packets that the kernel dropped, as the bridge did not read in time; its own counter.
    pub overrun: AtomicU64,
    /// Packets made twice.
    pub twice: AtomicU64,
    /// Packets in which a bit was turned.
    pub damaged: AtomicU64,
    /// Packets held back.
    pub held: AtomicU64,
    /// Packets in flight now.
    pub under_way: AtomicU64,
    /// Bytes that wait for the line now, and the most there were.
    pub queue_bytes: AtomicU64,
    /// The most bytes that have waited for the line.
    pub queue_bytes_max: AtomicU64,
    /// Packets by lateness, in the buckets of [`base::buckets`].
    late_by: [AtomicU64; buckets::COUNT],
    late_max_ns: AtomicU64,
    too_late: AtomicU64,
    pauses: AtomicU64,
    pauses_ns: AtomicU64,
    pause_max_ns: AtomicU64,
}

impl Default for Tally {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            packets_in: zero(),
            bytes_in: zero(),
            packets_out: zero(),
            bytes_out: zero(),
            queue_full: zero(),
            lost: zero(),
            no_room: zero(),
            refused: zero(),
            overrun: zero(),
            twice: zero(),
            damaged: zero(),
            held: zero(),
            under_way: zero(),
            queue_bytes: zero(),
            queue_bytes_max: zero(),
            late_by: std::array::from_fn(|_| zero()),
            late_max_ns: zero(),
            too_late: zero(),
            pauses: zero(),
            pauses_ns: zero(),
            pause_max_ns: zero(),
        }
    }
}

/// Adds to a counter.
pub fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Relaxed);
}

impl Tally {
    /// A packet arrived, so much later than it should have.
    pub fn arrived(&self, late_ns: u64, tolerance_ns: u64) {
        if let Some(bucket) = self.late_by.get(buckets::index(late_ns)) {
            add(bucket, 1);
        }
        self.late_max_ns.fetch_max(late_ns, Relaxed);
        if late_ns > tolerance_ns {
            add(&self.too_late, 1);
        }
    }

    /// The thread was not let run for so long.
    pub fn paused(&self, ns: u64) {
        add(&self.pauses, 1);
        add(&self.pauses_ns, ns);
        self.pause_max_ns.fetch_max(ns, Relaxed);
    }

    /// How it stands.
    pub fn snapshot(&self) -> Snapshot {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let late_by: Vec<u64> = self.late_by.iter().map(read).collect();
        let max_ns = read(&self.late_max_ns);
        let part = |share| buckets::quantile(&late_by, share).unwrap_or(0).min(max_ns);
        Snapshot {
            packets_in: read(&self.packets_in),
            bytes_in: read(&self.bytes_in),
            packets_out: read(&self.packets_out),
            bytes_out: read(&self.bytes_out),
            dropped: Dropped {
                queue_full: read(&self.queue_full),
                lost: read(&self.lost),
                no_room: read(&self.no_room),
                refused: read(&self.refused),
                overrun: read(&self.overrun),
            },
            twice: read(&self.twice),
            damaged: read(&self.damaged),
            held: read(&self.held),
            under_way: read(&self.under_way),
            queue_bytes: read(&self.queue_bytes),
            queue_bytes_max: read(&self.queue_bytes_max),
            lateness: Lateness {
                p50_ns: part(0.5),
                p99_ns: part(0.99),
                max_ns,
                packets: late_by.iter().sum(),
                by: by(&late_by),
                too_late: read(&self.too_late),
            },
            pauses: Pauses {
                count: read(&self.pauses),
                total_ns: read(&self.pauses_ns),
                max_ns: read(&self.pause_max_ns),
            },
        }
    }
}

fn by(counts: &[u64]) -> Vec<(u64, u64)> {
    let used = counts.iter().enumerate().filter(|(_, packets)| **packets > 0);
    used.map(|(bucket, packets)| (buckets::low(bucket), *packets)).collect()
}

/// How a direction stands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Snapshot {
    /// Packets that came in.
    pub packets_in: u64,
    /// Bytes that came in.
    pub bytes_in: u64,
    /// Packets that arrived.
    pub packets_out: u64,
    /// Bytes that arrived.
    pub bytes_out: u64,
    /// Packets that did not.
    pub dropped: Dropped,
    /// Packets made twice.
    pub twice: u64,
    /// Packets in which a bit was turned.
    pub damaged: u64,
    /// Packets held back.
    pub held: u64,
    /// Packets in flight.
    pub under_way: u64,
    /// Bytes that wait for the line.
    pub queue_bytes: u64,
    /// The most that have waited.
    pub queue_bytes_max: u64,
    /// How late packets arrived, against when they should have.
    pub lateness: Lateness,
    /// Times in which the thread was not let run.
    pub pauses: Pauses,
}

/// Packets that did not arrive, by cause.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Dropped {
    /// The queue before the line was full.
    pub queue_full: u64,
    /// Lost on the line.
    pub lost: u64,
    /// The bridge had no more room; this spoils a run.
    pub no_room: u64,
    /// The other end did not take them.
    pub refused: u64,
    /// The bridge did not read them in time; this spoils a run.
    pub overrun: u64,
}

/// How late packets were.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Lateness {
    /// Half of them at most so late.
    pub p50_ns: u64,
    /// 99 of 100 at most so late.
    pub p99_ns: u64,
    /// The latest.
    pub max_ns: u64,
    /// Packets counted.
    pub packets: u64,
    /// Packets in each bucket of [`base::buckets`] that has some, named by its least lateness in
    /// nanoseconds.
    pub by: Vec<(u64, u64)>,
    /// Those later than was tolerated when they arrived.
    pub too_late: u64,
}

/// Times in which a thread was not let run for longer than is tolerated.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Pauses {
    /// How many.
    pub count: u64,
    /// All together.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Snapshot {
    /// What spoils a run of which this is one direction, as sentences; none when it is good.
    /// `ran_ns` is how long it has gone on, `tolerance_ns` what may be late now.
    pub fn spoiled_by(&self, direction: &str, ran_ns: u64, tolerance_ns: u64) -> Vec<String> {
        let time = |ns: u64| base::units::time_ns(ns as f64);
        let mut why = Vec::new();
        let late = &self.lateness;
        if late.too_late as f64 > late.packets as f64 * BRIDGE_SPOILED_SHARE {
            why.push(format!(
                "{direction}: {} of {} packets were late by more than {} (median {}, p99 {}, max \
                 {})",
                late.too_late,
                late.packets,
                time(tolerance_ns),
                time(late.p50_ns),
                time(late.p99_ns),
                time(late.max_ns),
            ));
        }
        let pauses = &self.pauses;
        let too_much = pauses.total_ns as f64 > ran_ns as f64 * BRIDGE_SPOILED_SHARE;
        if too_much || pauses.max_ns > nanos(BRIDGE_PAUSE_MAX) {
            why.push(format!(
                "{direction}: the emulator was starved of CPU; lateness is unknown for {} pauses, \
                 {} of {}, longest {}",
                pauses.count,
                time(pauses.total_ns),
                time(ran_ns),
                time(pauses.max_ns),
            ));
        }
        let Dropped { no_room, overrun, .. } = self.dropped;
        if overrun > 0 {
            why.push(format!("{direction}: {overrun} packets were dropped at the receive buffer"));
        }
        if no_room > 0 {
            why.push(format!("{direction}: {no_room} packets exceeded the in-flight limit"));
        }
        why
    }
}

#[cfg(test)]
mod tests;
