//! What clients of SMB cache, and what breaks came to: statistics, read once a second, and a list
//! by client.
//!
//! A look through the whole table of locks that takes long is taken less often; the last levels
//! stand meanwhile.

use std::collections::BTreeMap;
use std::net::IpAddr;

use base::clock::monotonic_ns;
use base::limits::STATE_TALLY_COST;
use probe::sample::Sample;
use serve::smb::Server;
use vfs::locks::{BreakCount, LockTable};

/// What the clients of an address have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Level {
    /// Leases and oplocks.
    leases: u64,
    /// Those that are being broken.
    breaking: u64,
    /// Durable handles without a connection.
    parked: u64,
}

/// By address.
pub(super) type Levels = BTreeMap<IpAddr, Level>;

/// What clients have now. Looks through the whole table.
pub(super) fn now(server: &Server, locks: &LockTable) -> Levels {
    let mut levels = Levels::new();
    for (address, tally) in locks.caching_by_address() {
        let level = levels.entry(address).or_default();
        (level.leases, level.breaking) = (tally.leases, tally.breaking);
    }
    for (address, parked) in server.parked_by_address() {
        levels.entry(address).or_default().parked = parked;
    }
    levels
}

/// Lines of the property `caching`.
pub(super) fn lines(levels: &Levels) -> Vec<String> {
    let line = |(address, level): (&IpAddr, &Level)| {
        let Level { leases, breaking, parked } = level;
        format!("{address}: leases {leases}, breaks waiting {breaking}, durable handles {parked}")
    };
    levels.iter().map(line).collect()
}

/// What was read last.
#[derive(Default)]
pub(super) struct Reader {
    levels: Levels,
    /// When the table may be looked through again, by the monotonic clock.
    next_ns: u64,
    /// Breaks that were reported.
    breaks: Vec<BreakCount>,
}

impl Reader {
    /// The statistics of the last second.
    pub fn samples(&mut self, server: &Server, locks: &LockTable) -> Vec<Sample> {
        let begun_ns = monotonic_ns();
        if begun_ns >= self.next_ns {
            self.levels = now(server, locks);
            let ended_ns = monotonic_ns();
            let took_ns = ended_ns.saturating_sub(begun_ns);
            self.next_ns = ended_ns + took_ns * u64::from(STATE_TALLY_COST);
        }
        let mut samples = vec![
            by_client("smb.leases", &self.levels, |level| level.leases),
            by_client("smb.breaking", &self.levels, |level| level.breaking),
            by_client("smb.parked", &self.levels, |level| level.parked),
        ];
        // Events, each reported once: the time between two readings is never quite a second.
        let now = locks.breaks();
        samples.extend(added(&self.breaks, &now));
        self.breaks = now;
        samples
    }
}

fn by_client(stat: &'static str, levels: &Levels, of: fn(&Level) -> u64) -> Sample {
    let rows = levels.iter().filter(|(_, level)| of(level) > 0);
    let rows: Vec<_> =
        rows.map(|(at, level)| (at.to_string(), String::new(), of(level) as f64)).collect();
    let total = rows.iter().map(|row| row.2).sum();
    Sample { stat, dimensions: ["client", ""], total, rows }
}

/// Breaks since the last reading, once for each pair of dimensions.
fn added(before: &[BreakCount], now: &[BreakCount]) -> [Sample; 3] {
    let is_same = |a: &BreakCount, b: &BreakCount| {
        (a.kind, a.outcome, a.latency_ns) == (b.kind, b.outcome, b.latency_ns)
    };
    let added = now.iter().filter_map(|one| {
        let was = before.iter().find(|other| is_same(one, other)).map_or(0, |other| other.count);
        let more = one.count.saturating_sub(was);
        (more > 0).then_some((one, more as f64))
    });
    let added: Vec<_> = added.collect();
    let pair = |dimensions, of: fn(&BreakCount) -> (String, String)| {
        let mut sums = BTreeMap::<(String, String), f64>::new();
        for (one, more) in &added {
            *sums.entry(of(one)).or_default() += more;
        }
        let total = sums.values().sum();
        let rows = sums.into_iter().map(|((a, b), more)| (a, b, more)).collect();
        Sample { stat: "smb.breaks", dimensions, total, rows }
    };
    [
        pair(["kind", "outcome"], |one| (one.kind.to_owned(), one.outcome.name().to_owned())),
        pair(["kind", "latency"], |one| (one.kind.to_owned(), one.latency_ns.to_string())),
        pair(["outcome", "latency"], |one| {
            (one.outcome.name().to_owned(), one.latency_ns.to_string())
        }),
    ]
}

#[cfg(test)]
mod tests;
