//! What breaks of leases and oplocks of SMB came to, and how long that took, for statistics. A
//! break in several steps counts once for each.

use core::net::IpAddr;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use base::buckets;
use base::limits::LEASE_BREAK_TIME;

use super::super::file::{Lease, LeaseState, Style};
use super::super::{Caching, LockTable};

/// What a break came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakOutcome {
    /// The holder has acknowledged it.
    Acknowledged,
    /// The holder has closed its opens instead, or these have ended: it cannot be notified while it
    /// has no connection.
    Closed,
    /// The holder has not answered in time, and has lost everything.
    TimedOut,
    /// Nothing is to be acknowledged: only reading was lost.
    Unanswered,
}

impl BreakOutcome {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Acknowledged, Self::Closed, Self::TimedOut, Self::Unanswered];

    /// As it is shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Acknowledged => "acknowledged",
            Self::Closed => "closed",
            Self::TimedOut => "timed out",
            Self::Unanswered => "not required",
        }
    }
}

/// Kinds that are counted: [`Style::Lease`] and [`Style::Oplock`].
pub const BREAK_KINDS: [&str; 2] = ["lease", "oplock"];

/// How many breaks there were so far, of one kind, outcome and bucket of latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakCount {
    /// One of [`BREAK_KINDS`].
    pub kind: &'static str,
    /// What they came to.
    pub outcome: BreakOutcome,
    /// From the notification to that, as the smallest value of a bucket of [`base::buckets`], in
    /// nanoseconds.
    pub latency_ns: u64,
    /// How many.
    pub count: u64,
}

/// All of that: a counter for each kind, outcome and bucket.
pub(in super::super) struct BreakCounts(Box<[AtomicU64]>);

impl Default for BreakCounts {
    fn default() -> Self {
        let all = BREAK_KINDS.len() * BreakOutcome::ALL.len() * buckets::COUNT;
        Self((0..all).map(|_| AtomicU64::new(0)).collect())
    }
}

impl BreakCounts {
    fn add(&self, style: Style, outcome: BreakOutcome, latency_ns: u64) {
        let kind = match style {
            Style::Lease => 0,
            Style::Oplock => 1,
            Style::Delegation => return,
        };
        let row = kind * BreakOutcome::ALL.len() + outcome as usize;
        if let Some(count) = self.0.get(row * buckets::COUNT + buckets::index(latency_ns)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn all(&self) -> Vec<BreakCount> {
        let rows = BREAK_KINDS
            .iter()
            .flat_map(|kind| BreakOutcome::ALL.iter().map(move |outcome| (*kind, *outcome)));
        let counts = rows.zip(self.0.chunks(buckets::COUNT)).flat_map(|(row, counts)| {
            let (kind, outcome) = row;
            counts.iter().enumerate().map(move |(at, count)| {
                let count = count.load(Ordering::Relaxed);
                BreakCount { kind, outcome, latency_ns: buckets::low(at), count }
            })
        });
        counts.filter(|one| one.count > 0).collect()
    }
}

/// What the clients of an address hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CachingTally {
    /// Leases and oplocks that permit anything.
    pub leases: u64,
    /// Those of them that are being broken.
    pub breaking: u64,
}

impl Lease {
    /// For how long it is being broken: until the deadline that is always equally far.
    pub fn breaking_ns(&self, now_ns: u64) -> Option<u64> {
        let LeaseState::Breaking { until_ns, .. } = self.state else { return None };
        let begun_ns = until_ns.saturating_sub(LEASE_BREAK_TIME.as_nanos() as u64);
        Some(now_ns.saturating_sub(begun_ns))
    }
}

impl LockTable {
    /// A break that began so long ago comes to this; `None`: there was none.
    pub(in super::super) fn count_break(
        &self,
        style: Style,
        outcome: BreakOutcome,
        took_ns: Option<u64>,
    ) {
        if let Some(took_ns) = took_ns {
            self.counts.breaks.add(style, outcome, took_ns);
        }
    }

    /// Breaks of leases and oplocks of SMB since the start, by what they came to.
    pub fn breaks(&self) -> Vec<BreakCount> {
        self.counts.breaks.all()
    }

    /// What clients of SMB cache, by address. Looks through the whole table, one part at a time.
    pub fn caching_by_address(&self) -> HashMap<IpAddr, CachingTally> {
        let mut all = HashMap::<IpAddr, CachingTally>::new();
        for shard in &self.shards {
            let files = shard.lock();
            let leases = files.values().flat_map(|file| &file.leases);
            let others = leases.filter(|lease| lease.style != Style::Delegation);
            for lease in others.filter(|lease| lease.caching != Caching::NONE) {
                let Some(address) = lease.owner.address() else { continue };
                let tally = all.entry(address).or_default();
                tally.leases += 1;
                tally.breaking += u64::from(lease.is_breaking());
            }
        }
        all
    }
}

#[cfg(test)]
mod tests;
