//! What the threads of one agent share: when the run ends, counters that are posted and taken,
//! events of the generator, and how often acts were done as far as other threads wait for that.

use base::clock::{NS_PER_S, monotonic_ns};
use lab_program::cursor::Wait;
use lab_program::program::{Op, Program, Quit};
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a waiting thread looks whether the run has ended.
const LOOK: Duration = Duration::from_millis(20);
/// Bytes of one event of a limit by bytes.
const MIB: u64 = 1 << 20;

/// What one thread is asked to take, by act: what was posted, and by how much the bound is raised
/// while it waits.
#[derive(Debug, Default)]
struct Counters {
    posted: HashMap<u32, Vec<(u64, u64)>>,
    woken: HashMap<u32, u64>,
}

/// Shared by the threads of an agent.
#[derive(Debug)]
pub struct Control {
    /// Nanoseconds of [`monotonic_ns`].
    begin: u64,
    end: u64,
    stopped: AtomicBool,
    why: Mutex<Option<String>>,
    counters: Mutex<Counters>,
    changed: Condvar,
    /// Events of a second, for this agent.
    rate: Option<f64>,
    events: AtomicU64,
    /// Calls and bytes of each act; empty when they are not counted.
    counts: Vec<(AtomicU64, AtomicU64)>,
    /// Calls of each thread so far.
    calls: Vec<OwnCount>,
    quit: Quit,
}

/// A count that one thread writes often: in a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct OwnCount(AtomicU64);

/// How a limit stands, of one thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct Throttle {
    last: Option<u64>,
    bucket: i64,
}

impl Control {
    /// For a run of `seconds` from now on, as one of `agents`.
    pub fn new(program: &Program, seconds: f64, agents: u64) -> Self {
        let counted = program.acts.iter().any(|act| {
            use Op::{FinishBytes, FinishCount, LimitActs, LimitBytes, LimitTransfers};
            matches!(act.op, FinishBytes | FinishCount | LimitActs | LimitBytes | LimitTransfers)
        });
        let counts = if counted { program.acts.len() } else { 0 };
        let begin = monotonic_ns();
        Self {
            begin,
            end: begin.saturating_add((seconds * NS_PER_S as f64) as u64),
            stopped: AtomicBool::new(false),
            why: Mutex::new(None),
            counters: Mutex::default(),
            changed: Condvar::new(),
            rate: program.rate.map(|rate| rate as f64 / agents.max(1) as f64),
            events: AtomicU64::new(0),
            counts: (0..counts).map(|_| Default::default()).collect(),
            calls: (0..program.instances()).map(|_| OwnCount::default()).collect(),
            quit: program.quit,
        }
    }

    /// Seconds since it began.
    pub fn elapsed(&self) -> f64 {
        self.seconds_at(monotonic_ns())
    }

    /// Seconds from its beginning until then, nanoseconds of [`monotonic_ns`].
    pub fn seconds_at(&self, ns: u64) -> f64 {
        ns.saturating_sub(self.begin) as f64 / NS_PER_S as f64
    }

    /// Whether the run has ended, as of `now`.
    #[inline]
    pub fn has_ended(&self, now: u64) -> bool {
        now >= self.end || self.stopped.load(Ordering::Relaxed)
    }

    /// Ends the run; the first reason is retained.
    pub fn stop(&self, why: impl FnOnce() -> String) {
        self.stopped.store(true, Ordering::Relaxed);
        let mut first = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(why);
        self.changed.notify_all();
    }

    /// Why the run ended before its time.
    pub fn reason(&self) -> Option<String> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether one thread that finds no file ends the run.
    pub fn ends_with_one(&self) -> bool {
        self.quit != Quit::AllDone
    }

    /// Whether an act waits for the generator, and that has no rate.
    #[inline]
    pub fn has_no_effect(&self, op: Op) -> bool {
        use Op::{LimitActs, LimitBytes, LimitEvents, LimitTransfers};
        self.rate.is_none() && matches!(op, LimitEvents | LimitActs | LimitTransfers | LimitBytes)
    }

    /// A thread has made this number of calls.
    #[inline]
    pub fn report(&self, thread: usize, calls: u64) {
        if let Some(own) = self.calls.get(thread) {
            own.0.store(calls, Ordering::Relaxed);
        }
    }

    /// Calls of all threads so far.
    pub fn done(&self) -> u64 {
        self.calls.iter().map(|own| own.0.load(Ordering::Relaxed)).sum()
    }

    /// Adds to what other threads may wait for.
    #[inline]
    pub fn count(&self, act: u32, bytes: u64) {
        if let Some((calls, sum)) = self.counts.get(act as usize) {
            calls.fetch_add(1, Ordering::Relaxed);
            sum.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// A thread has an act that takes: it has a counter of its own. Before the start.
    pub fn register(&self, act: u32) -> usize {
        let mut counters = self.counters();
        let own = counters.posted.entry(act).or_default();
        own.push((0, 0));
        own.len() - 1
    }

    fn counters(&self) -> MutexGuard<'_, Counters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `ready` holds, or the run ends; whether it held.
    fn wait_until(&self, mut ready: impl FnMut(&mut Counters) -> bool) -> bool {
        let mut counters = self.counters();
        loop {
            if ready(&mut counters) {
                self.changed.notify_all();
                return true;
            }
            if self.has_ended(monotonic_ns()) {
                return false;
            }
            let waited = self.changed.wait_timeout(counters, LOOK);
            counters = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Does what is not a call. `own` is the number of the thread's counter, `throttle` the state
    /// of its limit.
    pub fn wait(&self, program: &Program, wait: Wait, own: usize, throttle: &mut Throttle) {
        let act = &program.acts[wait.act as usize];
        match wait.op {
            Op::Delay => self.sleep(wait.value),
            Op::Burn => {
                let mut byte = 0u8;
                for _ in 0..wait.value {
                    *black_box(&mut byte) = 1;
                }
            }
            Op::Block => {
                self.wait_until(|counters| match counters.woken.get_mut(&wait.act) {
                    Some(woken) if *woken > 0 => {
                        *woken -= 1;
                        true
                    }
                    _ => false,
                });
            }
            Op::Wake => {
                let mut counters = self.counters();
                for target in &act.targets {
                    // One that is not blocked yet finds it later.
                    counters.woken.insert(*target, 1);
                }
                self.changed.notify_all();
            }
            Op::Take => self.take(wait, own),
            Op::Post => {
                for target in &act.targets {
                    let bound = program.acts[*target as usize].high_water;
                    let bound = if act.blocking && bound > 0 { bound } else { u64::MAX };
                    self.post(*target, wait.value, bound);
                }
            }
            Op::LimitEvents => self.take_events(1),
            Op::LimitActs | Op::LimitTransfers | Op::LimitBytes => {
                self.limit(program, wait, throttle);
            }
            Op::FinishCount => {
                let count = self.sum(program, wait.act, |_| true).0;
                if count >= wait.value {
                    self.stop(|| format!("{} after {count} acts", act.name));
                }
            }
            Op::FinishBytes => {
                let bytes = self.sum(program, wait.act, Op::is_transfer).1;
                if bytes > wait.value {
                    self.stop(|| format!("{} after {bytes} bytes", act.name));
                }
            }
            _ => {}
        }
    }

    fn take(&self, wait: Wait, own: usize) {
        let value = wait.value;
        let mut first = true;
        self.wait_until(|counters| {
            let mine = counters.posted.get_mut(&wait.act).and_then(|all| all.get_mut(own));
            let Some((posted, raised)) = mine else { return true };
            if std::mem::take(&mut first) {
                *raised += value;
            }
            if *posted < value {
                return false;
            }
            *posted -= value;
            *raised = raised.saturating_sub(value);
            true
        });
    }

    fn post(&self, target: u32, value: u64, bound: u64) {
        let mut next = 0;
        self.wait_until(|counters| {
            let all = counters.posted.entry(target).or_default();
            while let Some((posted, raised)) = all.get_mut(next) {
                if posted.saturating_add(value) > bound.saturating_add(*raised) {
                    return false;
                }
                *posted += value;
                next += 1;
            }
            true
        });
    }

    fn sleep(&self, seconds: u64) {
        let until = monotonic_ns().saturating_add(seconds.saturating_mul(NS_PER_S));
        self.wait_until(|_| monotonic_ns() >= until);
    }

    /// Takes events, of which the n-th is there n ÷ rate after the start.
    fn take_events(&self, events: u64) {
        let Some(rate) = self.rate else { return };
        let last = self.events.fetch_add(events, Ordering::Relaxed) + events;
        let due = self.begin.saturating_add((last as f64 / rate * NS_PER_S as f64) as u64);
        let until = due.min(self.end);
        loop {
            let left = until.saturating_sub(monotonic_ns());
            if left == 0 || self.stopped.load(Ordering::Relaxed) {
                return;
            }
            std::thread::sleep(Duration::from_nanos(left).min(LOOK));
        }
    }

    /// As many events as acts were done, or MiB moved, since this thread was here.
    fn limit(&self, program: &Program, wait: Wait, throttle: &mut Throttle) {
        if self.rate.is_none() {
            return;
        }
        let (calls, bytes) = match wait.op {
            Op::LimitActs => self.sum(program, wait.act, |_| true),
            _ => self.sum(program, wait.act, Op::is_transfer),
        };
        let unit = if wait.op == Op::LimitBytes { MIB } else { 1 };
        let sum = if wait.op == Op::LimitBytes { bytes } else { calls };
        let Some(last) = throttle.last.replace(sum) else { return };
        throttle.bucket -= (sum - last) as i64;
        if throttle.bucket >= 0 {
            return;
        }
        let events = throttle.bucket.unsigned_abs().div_ceil(unit);
        self.take_events(events);
        throttle.bucket += (events * unit) as i64;
    }

    /// Calls and bytes of an act's targets, or of all acts of a kind.
    fn sum(&self, program: &Program, act: u32, of: impl Fn(Op) -> bool) -> (u64, u64) {
        let targets = &program.acts[act as usize].targets;
        let get = |n: usize| {
            let (calls, bytes) = &self.counts[n];
            (calls.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed))
        };
        let add = |sum: (u64, u64), one: (u64, u64)| (sum.0 + one.0, sum.1 + one.1);
        if targets.is_empty() {
            let kinds = (0..self.counts.len()).filter(|n| of(program.acts[*n].op));
            return kinds.map(get).fold((0, 0), add);
        }
        targets.iter().map(|n| get(*n as usize)).fold((0, 0), add)
    }
}

#[cfg(test)]
mod tests;
