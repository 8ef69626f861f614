//! Where the cores meet the collector and the readers of the flight recorder; one per process.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use base::clock::{NS_PER_S, wall_ns};
use base::limits::{PAUSES_MAX, SECOND_GRACE_NS, SECONDS_PENDING_MAX};

use crate::gauge::Gauges;
use crate::names::{Clients, Nexuses, Shares};
use crate::op::OpRecord;
use crate::ring::CoreRing;
use crate::second::CoreSecond;

/// How a [`Hub`] is made.
#[derive(Debug, Clone, Copy)]
pub struct HubOptions {
    /// Cores that serve, each with a ring.
    pub cores: usize,
    /// Memory of all rings together ([`base::limits::RECORDER_BYTES`]).
    pub recorder_bytes: usize,
}

/// What a core shares with the rest.
pub(crate) struct CoreShared {
    pub(crate) ring: CoreRing,
    taken: AtomicBool,
    /// Records before this position of the ring are aggregated.
    tail: AtomicU64,
    /// Records written when memory was last made ready for more.
    prepared: AtomicU64,
    /// All seconds before this one are in `finished`.
    closed: AtomicU64,
    /// Records before this position of the ring are from before the clock was set back.
    set_back: AtomicU64,
    /// The time when the clock was set back, in ns; 0: it was not.
    set_back_ns: AtomicU64,
    finished: Mutex<VecDeque<CoreSecond>>,
}

impl CoreShared {
    fn finished(&self) -> MutexGuard<'_, VecDeque<CoreSecond>> {
        self.finished.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Returns how many operations were lost because nothing was collected for long.
    pub(crate) fn publish(&self, second: CoreSecond) -> u64 {
        let mut finished = self.finished();
        finished.push_back(second);
        if finished.len() <= SECONDS_PENDING_MAX {
            return 0;
        }
        let lost = finished.pop_front();
        lost.map_or(0, |second| second.operations())
    }

    pub(crate) fn set_tail(&self, position: u64) {
        self.tail.store(position, Ordering::Relaxed);
    }

    pub(crate) fn set_closed(&self, second: u64) {
        self.closed.store(second, Ordering::Release);
    }

    /// Takes the writing end; whether it was free.
    pub(crate) fn claim(&self) -> bool {
        !self.taken.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn release(&self) {
        self.taken.store(false, Ordering::Release);
    }
}

/// The state of the recorder, for its readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// Everything done at or after this time (ns since the epoch) is still in the recorder.
    pub since_ns: u64,
    /// Memory in bytes.
    pub bytes: usize,
    /// Records held.
    pub records: u64,
}

/// The meeting point. Shared by all rooms that measure or read.
pub struct Hub {
    pub(crate) cores: Vec<CoreShared>,
    clients: Clients,
    shares: Shares,
    nexuses: Nexuses,
    gauges: Gauges,
    collect: AtomicBool,
    /// When collection was off, from and to in ns.
    pauses: Mutex<VecDeque<(u64, u64)>>,
    started_ns: AtomicU64,
}

impl Hub {
    /// A hub with one ring for each core.
    pub fn new(options: HubOptions) -> Arc<Self> {
        let cores = options.cores.max(1);
        let core = |_| CoreShared {
            ring: CoreRing::new(options.recorder_bytes / cores),
            taken: AtomicBool::new(false),
            tail: AtomicU64::new(0),
            prepared: AtomicU64::new(0),
            closed: AtomicU64::new(0),
            set_back: AtomicU64::new(0),
            set_back_ns: AtomicU64::new(0),
            finished: Mutex::default(),
        };
        Arc::new(Self {
            cores: (0..cores).map(core).collect(),
            clients: Clients::default(),
            shares: Shares::default(),
            nexuses: Nexuses::default(),
            gauges: Gauges::default(),
            collect: AtomicBool::new(true),
            pauses: Mutex::default(),
            started_ns: AtomicU64::new(wall_ns()),
        })
    }

    /// Makes memory of the recorder ready for twice as many records as came since the last call.
    /// To be called each second, off the request path; where it is not, pages come when they are
    /// first written.
    pub fn prepare(&self) {
        for core in &self.cores {
            let head = core.ring.head();
            let new = head - core.prepared.swap(head, Ordering::Relaxed);
            if new > 0 {
                core.ring.prepare(2 * new);
            }
        }
    }

    /// How many cores there are.
    pub fn cores(&self) -> usize {
        self.cores.len()
    }

    /// Client addresses and their numbers.
    pub fn clients(&self) -> &Clients {
        &self.clients
    }

    /// Share names and their numbers.
    pub fn shares(&self) -> &Shares {
        &self.shares
    }

    /// I_T nexuses of iSCSI and their numbers.
    pub fn nexuses(&self) -> &Nexuses {
        &self.nexuses
    }

    /// The server's own levels and counters.
    pub fn gauges(&self) -> &Gauges {
        &self.gauges
    }

    /// Whether breakdowns are collected.
    #[inline]
    pub fn collecting(&self) -> bool {
        self.collect.load(Ordering::Relaxed)
    }

    /// Switches breakdowns and the recorder on or off, at run time, to measure what they cost.
    pub fn set_collect(&self, on: bool) {
        self.set_collect_at(on, wall_ns());
    }

    fn set_collect_at(&self, on: bool, now_ns: u64) {
        let mut pauses = self.pauses();
        if self.collect.swap(on, Ordering::Relaxed) == on {
            return;
        }
        match pauses.back_mut() {
            Some(last) if on => last.1 = now_ns,
            _ => pauses.push_back((now_ns, u64::MAX)),
        }
        if pauses.len() > PAUSES_MAX {
            pauses.pop_front();
        }
    }

    fn pauses(&self) -> MutexGuard<'_, VecDeque<(u64, u64)>> {
        self.pauses.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Whether collection was off at any time within `from_ns..to_ns`.
    pub fn paused_within(&self, from_ns: u64, to_ns: u64) -> bool {
        self.pauses().iter().any(|(off, on)| *off < to_ns && *on > from_ns)
    }

    /// All cores have handed over every second before this one (seconds since the epoch);
    /// `u64::MAX` when no core has a writer.
    pub fn closed(&self) -> u64 {
        let taken = self.cores.iter().filter(|c| c.taken.load(Ordering::Acquire));
        taken.map(|c| c.closed.load(Ordering::Acquire)).min().unwrap_or(u64::MAX)
    }

    /// Takes the finished seconds before `second` from all cores, oldest first.
    pub fn take_before(&self, second: u64) -> Vec<CoreSecond> {
        let mut taken = Vec::new();
        for core in &self.cores {
            let mut finished = core.finished();
            let late = |s: &CoreSecond| s.second >= second;
            let keep: VecDeque<_> = finished.iter().filter(|s| late(s)).cloned().collect();
            taken.extend(std::mem::replace(&mut *finished, keep).into_iter().filter(|s| !late(s)));
        }
        taken.sort_by_key(|s| s.second);
        taken
    }

    /// The clock was set back to `now_ns`. The records of a core before `position` have times that
    /// come again; readers find records by their time, and would stop at these.
    pub(crate) fn set_back(&self, core: usize, position: u64, now_ns: u64) {
        self.started_ns.fetch_min(now_ns, Ordering::AcqRel);
        self.cores[core].set_back.store(position, Ordering::Release);
        self.cores[core].set_back_ns.store(now_ns, Ordering::Release);
    }

    /// Records that wait for their core to count them; the rings have room for
    /// [`Hub::waiting_max`].
    pub fn waiting(&self) -> u64 {
        let waits = |c: &CoreShared| c.ring.head().saturating_sub(c.tail.load(Ordering::Relaxed));
        self.cores.iter().map(waits).sum()
    }

    /// Records that may wait before the oldest are overwritten.
    pub fn waiting_max(&self) -> u64 {
        self.cores.iter().map(|c| c.ring.capacity()).sum()
    }

    /// What the recorder holds now.
    pub fn recorded(&self) -> Recorded {
        let since_ns = self.started_ns.load(Ordering::Acquire);
        let mut recorded = Recorded { since_ns, bytes: 0, records: 0 };
        for core in &self.cores {
            let ring = &core.ring;
            recorded.bytes += ring.bytes();
            recorded.records += ring.head() - ring.oldest();
            let set_back_ns = core.set_back_ns.load(Ordering::Acquire);
            if set_back_ns > 0 && ring.oldest() <= core.set_back.load(Ordering::Acquire) {
                recorded.since_ns = recorded.since_ns.max(set_back_ns);
            } else if let Some(dropped_ns) = ring.dropped_ns() {
                recorded.since_ns = recorded.since_ns.max(dropped_ns);
            } else if ring.oldest() > 0 {
                // Overtaken at once on a busy ring: a later one is true as well.
                let oldest = (ring.oldest()..ring.head()).find_map(|p| ring.read(p));
                let since = oldest.map_or(u64::MAX, |r| r.done_ns + SECOND_GRACE_NS);
                recorded.since_ns = recorded.since_ns.max(since);
            }
        }
        recorded
    }

    /// Shows every recorded operation with `done_ns` in `from_ns..to_ns` to `visit`, core by core.
    /// What it returns holds after the last visit: seconds before `since_ns` were seen in part.
    pub fn scan(&self, from_ns: u64, to_ns: u64, mut visit: impl FnMut(&OpRecord)) -> Recorded {
        for core in &self.cores {
            let ring = &core.ring;
            // Stamps of one core may change places within the grace, not beyond a second.
            let first = first_at(core, from_ns.saturating_sub(NS_PER_S));
            for position in first..ring.head() {
                let Some(record) = ring.read(position) else { continue };
                if record.done_ns >= to_ns.saturating_add(NS_PER_S) {
                    break;
                }
                if (from_ns..to_ns).contains(&record.done_ns) {
                    visit(&record);
                }
            }
        }
        self.recorded()
    }
}

/// Position of the first record done at or after `ns`, by halving.
fn first_at(core: &CoreShared, ns: u64) -> u64 {
    let ring = &core.ring;
    let set_back = core.set_back.load(Ordering::Acquire);
    let (mut low, mut high) = (ring.oldest().max(set_back), ring.head());
    while low < high {
        let middle = low + (high - low) / 2;
        match ring.read(middle) {
            Some(record) if record.done_ns >= ns => high = middle,
            _ => low = middle + 1,
        }
    }
    low
}

#[cfg(test)]
mod tests;
