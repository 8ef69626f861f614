//! What limits a run: each side counts what its threads wait for and what TCP reports of the
//! streams, and sends it to the other; the reported limit is a function of two such counts and the
//! time between them.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use base::clock::{NS_PER_S, monotonic_ns};
use base::limits::DSYNC_RATE_NS;
use wire::dsync::{Counts, Load, Role};

use crate::stop::lock;

pub mod sys;
#[cfg(test)]
mod tests;

/// What a run is slowed down by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limiter {
    /// Reading at the source.
    SourceDisk,
    /// Writing at the destination.
    DestinationDisk,
    /// The processors of one of the machines.
    Processor,
    /// The window of the receiver, or the send buffer.
    Window,
    /// The network, as far as congestion control finds room in it.
    Link,
    /// What was asked for as the most.
    Bandwidth,
}

impl std::fmt::Display for Limiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::SourceDisk => "source disk",
            Self::DestinationDisk => "destination disk",
            Self::Processor => "processor",
            Self::Window => "window",
            Self::Link => "link",
            Self::Bandwidth => "bandwidth",
        })
    }
}

/// How far a run is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// What was counted since it began.
    pub counts: Counts,
    /// Bytes per second that were written lately.
    pub rate: u64,
    /// Nanoseconds that are left at this rate, once all that there is to do is known.
    pub left_ns: Option<u64>,
    /// What limits the rate, if that is to be seen.
    pub limiter: Option<Limiter>,
}

/// What happened at both sides in a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    /// Bytes that were written.
    pub moved: u64,
    /// Counts of the source, each less what it was before; `at_ns` is how long that is.
    pub source: Load,
    /// Those of the destination.
    pub destination: Load,
    /// Whether both are one process on one machine.
    pub local: bool,
}

/// A half, in thousandths: what most of the time is spent with.
const MOST: u64 = 500;
/// From this many thousandths on the processors have nothing left that would be worth waiting for.
const FULL: u64 = 850;
/// Of a side of which nothing else is to be seen: what is the most of the little that it does.
const SOME: u64 = 250;

/// Thousandths of a time, at most all of it.
fn share(part_ns: u64, of_ns: u64) -> u64 {
    (u128::from(part_ns) * 1_000 / u128::from(of_ns.max(1))).min(1_000) as u64
}

/// What has limited the run. The threads of the source that wait for room say that the limit lies
/// behind them, and then TCP knows where; if they do not, it lies with them.
pub fn limiter(interval: &Interval) -> Option<Limiter> {
    let (source, destination) = (&interval.source, &interval.destination);
    if interval.moved == 0 || source.at_ns == 0 || destination.at_ns == 0 {
        return None;
    }
    if share(source.paused_ns, source.at_ns) >= MOST {
        return Some(Limiter::Bandwidth);
    }
    if works(source) >= FULL || works(destination) >= FULL {
        return Some(Limiter::Processor);
    }
    let disk = |load: &Load| share(load.disk_ns, load.at_ns);
    if share(source.room_ns, source.at_ns) >= MOST {
        return Some(behind(interval, disk(destination)));
    }
    let (reads, writes) = (disk(source), disk(destination));
    let of_one = |load: &Load| share(load.cpu_ns, load.at_ns);
    let computes = of_one(source).max(of_one(destination));
    match reads.max(writes).max(computes) {
        most if most < SOME => None,
        most if most == computes => Some(Limiter::Processor),
        most if most == reads => Some(Limiter::SourceDisk),
        _ => Some(Limiter::DestinationDisk),
    }
}

/// Thousandths of all processors that this process takes.
fn works(load: &Load) -> u64 {
    share(load.cpu_ns / u64::from(load.cpus.max(1)), load.at_ns)
}

/// Whether a process has taken all that its processors had since.
pub fn is_full(now: &Load, before: &Load) -> bool {
    works(&since(now, before)) >= FULL
}

/// What holds back a source that could send more.
fn behind(interval: &Interval, writes: u64) -> Limiter {
    let (source, destination) = (&interval.source, &interval.destination);
    let of_busy = |part| share(part, source.busy_ns);
    let busy = share(source.busy_ns / u64::from(source.streams.max(1)), source.at_ns);
    if source.streams > 0 && busy >= MOST && of_busy(source.rwnd_ns) < MOST {
        return if of_busy(source.sndbuf_ns) >= MOST { Limiter::Window } else { Limiter::Link };
    }
    // The destination takes no more, whatever the network could carry.
    if writes >= MOST {
        return Limiter::DestinationDisk;
    }
    let computes = share(destination.cpu_ns, destination.at_ns);
    match source.streams {
        // What ssh waits for is unknown.
        0 if !interval.local => Limiter::Link,
        1.. if busy >= MOST && computes < FULL => Limiter::Window,
        _ => Limiter::Processor,
    }
}

/// Stores the counts of both sides, and computes the progress of a run.
pub struct Meter {
    local: bool,
    state: Mutex<LoadSample>,
}

struct LoadSample {
    source: Load,
    destination: Load,
    samples: VecDeque<Sample>,
}

#[derive(Clone)]
struct Sample {
    at_ns: u64,
    bytes: u64,
    source: Load,
    destination: Load,
}

impl Meter {
    /// Of a run between two machines, or on this one.
    pub fn new(local: bool) -> Self {
        let (source, destination) = (nothing(), nothing());
        let state = LoadSample { source, destination, samples: VecDeque::new() };
        Self { local, state: Mutex::new(state) }
    }

    /// Stores the counts of a side.
    pub fn store(&self, role: Role, load: Load) {
        let mut state = lock(&self.state);
        match role {
            Role::SOURCE => state.source = load,
            _ => state.destination = load,
        }
    }

    /// The progress, by the counts of both sides until now.
    pub fn progress(&self, now_ns: u64, counts: Counts) -> Progress {
        let mut state = lock(&self.state);
        let now = Sample {
            at_ns: now_ns,
            bytes: counts.bytes_done,
            source: state.source.clone(),
            destination: state.destination.clone(),
        };
        let old = |sample: &Sample| now_ns.saturating_sub(sample.at_ns) >= DSYNC_RATE_NS;
        while state.samples.get(1).is_some_and(old) {
            state.samples.pop_front();
        }
        let before = state.samples.front().cloned().unwrap_or_else(|| now.clone());
        state.samples.push_back(now.clone());
        drop(state);
        let moved = now.bytes.saturating_sub(before.bytes);
        let took = now_ns.saturating_sub(before.at_ns).max(1);
        let rate = scaled(moved, NS_PER_S, took);
        let left = counts.bytes.saturating_sub(counts.bytes_done);
        let left_ns = (counts.scanned && rate > 0).then(|| scaled(left, NS_PER_S, rate));
        let interval = Interval {
            moved,
            source: since(&now.source, &before.source),
            destination: since(&now.destination, &before.destination),
            local: self.local,
        };
        Progress { counts, rate, left_ns, limiter: limiter(&interval) }
    }
}

/// `number * by / of`.
fn scaled(number: u64, by: u64, of: u64) -> u64 {
    let scaled = u128::from(number) * u128::from(by) / u128::from(of.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Nothing was counted.
fn nothing() -> Load {
    Load {
        at_ns: 0,
        disk_ns: 0,
        room_ns: 0,
        paused_ns: 0,
        cpu_ns: 0,
        cpus: 1,
        streams: 0,
        busy_ns: 0,
        rwnd_ns: 0,
        sndbuf_ns: 0,
    }
}

/// What came since. A stream that has ended takes its sums with it.
fn since(now: &Load, before: &Load) -> Load {
    Load {
        at_ns: now.at_ns.saturating_sub(before.at_ns),
        disk_ns: now.disk_ns.saturating_sub(before.disk_ns),
        room_ns: now.room_ns.saturating_sub(before.room_ns),
        paused_ns: now.paused_ns.saturating_sub(before.paused_ns),
        cpu_ns: now.cpu_ns.saturating_sub(before.cpu_ns),
        cpus: now.cpus,
        streams: now.streams,
        busy_ns: now.busy_ns.saturating_sub(before.busy_ns),
        rwnd_ns: now.rwnd_ns.saturating_sub(before.rwnd_ns),
        sndbuf_ns: now.sndbuf_ns.saturating_sub(before.sndbuf_ns),
    }
}

/// What this process has used of this machine until now; the caller fills in the rest.
pub fn of_process(began_ns: u64) -> Load {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    let at_ns = monotonic_ns().saturating_sub(began_ns);
    Load { at_ns, cpu_ns: sys::process_cpu_ns(), cpus, ..nothing() }
}

/// Does something, and counts how long it waited: the time that passed less that of the processor.
pub fn waits<R>(counter: &AtomicU64, work: impl FnOnce() -> R) -> R {
    let (began, used) = (monotonic_ns(), probe::core::thread_cpu_ns());
    let result = work();
    let (took, used) = (monotonic_ns() - began, probe::core::thread_cpu_ns().saturating_sub(used));
    counter.fetch_add(took.saturating_sub(used), Ordering::Relaxed);
    result
}
