//! The threads of a program: each goes through its own acts until the run ends.

use super::control::{Control, Throttle};
use super::sequence::Sequence;
use super::tally::ActTally;
use super::worker::{CallCounts, CallError, Worker};
use crate::operations::Lane;
use base::clock::monotonic_ns;
use lab_program::cursor::{Call, Cursor, End, Next, Wait};
use lab_program::program::{Op, Plan, Step};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Failures in a row after which a thread ends the run: its target is gone.
const FAILURES_MAX: u32 = 100;
/// How long a thread waits for a file that another one may free.
const FILE_WAIT: Duration = Duration::from_secs(1);
/// How often an agent looks whether its controller has ended the run.
const STOP_LOOK: Duration = Duration::from_millis(10);
/// How long it sleeps in between.
const FILE_LOOK: Duration = Duration::from_millis(10);

/// When a run ends.
#[derive(Clone, Copy)]
pub struct Limit<'a> {
    /// After this time.
    pub seconds: f64,
    /// After this number of calls of each thread.
    pub calls: u64,
    /// As soon as this is less than [`u64::MAX`].
    pub stop: Option<&'a AtomicU64>,
    /// Gets the seconds and the calls so far, each second.
    pub live: Option<&'a dyn Fn(f64, u64)>,
}

impl Limit<'_> {
    /// After `seconds`.
    pub fn seconds(seconds: f64) -> Self {
        Self::of(seconds, u64::MAX)
    }

    /// After `seconds`, or `calls` of each thread.
    pub fn of(seconds: f64, calls: u64) -> Self {
        Self { seconds, calls, stop: None, live: None }
    }
}

/// What all threads did.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// By act.
    pub acts: Vec<ActTally>,
    /// Calls of the protocol, or of the system, during the run, by name.
    pub during: BTreeMap<String, u64>,
    /// The same before and after it.
    pub around: BTreeMap<String, u64>,
    /// The first fault of each act.
    pub faults: BTreeMap<u32, String>,
    /// What each instance was asked to do, by its number.
    pub sequences: BTreeMap<u32, Vec<Lane>>,
    /// Seconds from the start to the end of the last thread's last act: leaving is not of the run.
    pub seconds: f64,
    /// Processor time of the process meanwhile, seconds.
    pub cpu: f64,
    /// Why the run ended before its time.
    pub reason: Option<String>,
    /// Whether it ended because the target cannot be reached any more.
    pub lost: bool,
}

/// One thread.
struct Player<'a> {
    plan: &'a Plan,
    control: &'a Control,
    cursor: Cursor,
    worker: Box<dyn Worker>,
    acts: Vec<ActTally>,
    faults: BTreeMap<u32, String>,
    sequence: Sequence,
    throttles: HashMap<u32, Throttle>,
    /// Numbers of its counters, by act.
    own: HashMap<u32, usize>,
    failures: u32,
    lost: bool,
    /// Of this agent's threads, and its calls so far.
    number: usize,
    calls: u64,
}

/// What a thread did.
struct Played {
    instance: u64,
    acts: Vec<ActTally>,
    faults: BTreeMap<u32, String>,
    lane: Lane,
    before: CallCounts,
    during: CallCounts,
    after: CallCounts,
    /// When its acts had ended: before it left the target.
    ended_ns: u64,
    lost: bool,
}

/// Runs the instances of a plan, each with its worker.
///
/// # Errors
/// A thread cannot be started.
pub fn run(
    plan: &Arc<Plan>,
    workers: Vec<Box<dyn Worker>>,
    limit: Limit<'_>,
) -> io::Result<Totals> {
    let control = Control::new(&plan.program, limit.seconds, plan.agent.1);
    let counters: Vec<HashMap<u32, usize>> =
        plan.instances().map(|instance| counters(plan, &control, instance)).collect();
    let acts = vec![ActTally::default(); plan.program.acts.len()];
    let mut totals = Totals { acts, ..Totals::default() };
    let mut ended_ns = 0;
    thread::scope(|scope| -> io::Result<()> {
        let control = &control;
        let mut threads = Vec::new();
        let each = plan.instances().zip(counters.into_iter().enumerate());
        for ((instance, own), worker) in each.zip(workers) {
            let calls = limit.calls;
            let play =
                move || Player::new(plan, control, instance, own, worker)?.play(instance, calls);
            match thread::Builder::new().spawn_scoped(scope, play) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    control.stop(|| "a thread cannot be started".into());
                    return Err(error);
                }
            }
        }
        if limit.stop.is_some() || limit.live.is_some() {
            attend(control, limit, || threads.iter().any(|thread| !thread.is_finished()));
        }
        for thread in threads {
            match thread.join() {
                Ok(Some(played)) => {
                    ended_ns = ended_ns.max(played.ended_ns);
                    totals.add(played);
                }
                Ok(None) => {}
                Err(_) => control.stop(|| "a thread of the generator ended by a fault".into()),
            }
        }
        Ok(())
    })?;
    totals.seconds = control.seconds_at(ended_ns);
    totals.reason = control.reason();
    Ok(totals)
}

/// Ends the run when the controller does, and reports each second, as long as threads run.
fn attend(control: &Control, limit: Limit<'_>, runs: impl Fn() -> bool) {
    let mut reported = 0;
    while runs() {
        if limit.stop.is_some_and(|stop| stop.load(Ordering::SeqCst) < u64::MAX) {
            control.stop(|| "the controller has ended it".into());
        }
        let (seconds, live) = (control.elapsed(), limit.live);
        if let Some(live) = live.filter(|_| seconds as u64 > reported) {
            reported = seconds as u64;
            live(seconds, control.done());
        }
        thread::sleep(STOP_LOOK);
    }
}

impl Totals {
    fn add(&mut self, played: Played) {
        for (sum, act) in self.acts.iter_mut().zip(&played.acts) {
            sum.add(act);
        }
        for (act, fault) in played.faults {
            self.faults.entry(act).or_insert(fault);
        }
        self.lost |= played.lost;
        self.sequences.insert(played.instance as u32, vec![played.lane]);
        let count = |counts: &CallCounts, name: &str| {
            counts.iter().find(|(other, _)| *other == name).map_or(0, |(_, calls)| *calls)
        };
        for (name, all) in &played.after {
            let during = count(&played.during, name) - count(&played.before, name);
            *self.during.entry((*name).to_owned()).or_default() += during;
            *self.around.entry((*name).to_owned()).or_default() += all - during;
        }
    }

    /// Adds what the threads of another agent did in the same run.
    pub fn merge(&mut self, other: Self) {
        self.acts.resize_with(self.acts.len().max(other.acts.len()), ActTally::default);
        for (sum, act) in self.acts.iter_mut().zip(&other.acts) {
            sum.add(act);
        }
        for (sum, more) in [(&mut self.during, other.during), (&mut self.around, other.around)] {
            more.into_iter().for_each(|(name, calls)| *sum.entry(name).or_default() += calls);
        }
        other.faults.into_iter().for_each(|(act, fault)| {
            self.faults.entry(act).or_insert(fault);
        });
        self.sequences.extend(other.sequences);
        self.seconds = self.seconds.max(other.seconds);
        self.cpu += other.cpu;
        self.reason = self.reason.take().or(other.reason);
        self.lost |= other.lost;
    }

    /// Adds calls that were made before or after the run.
    pub fn add_around(&mut self, counts: CallCounts) {
        for (name, calls) in counts {
            *self.around.entry(name.to_owned()).or_default() += calls;
        }
    }
}

/// Counters of an instance, which must exist before another one posts to them.
fn counters(plan: &Plan, control: &Control, instance: u64) -> HashMap<u32, usize> {
    let Some((thread, _)) = plan.program.instance(instance) else { return HashMap::new() };
    let steps = plan.program.threads[thread].steps.iter();
    let takes = steps.filter_map(|step| match step {
        Step::Act(act) => Some(*act),
        _ => None,
    });
    takes
        .filter(|act| plan.program.acts[*act as usize].op == Op::Take)
        .map(|act| (act, control.register(act)))
        .collect()
}

impl<'a> Player<'a> {
    fn new(
        plan: &'a Arc<Plan>,
        control: &'a Control,
        instance: u64,
        (number, own): (usize, HashMap<u32, usize>),
        worker: Box<dyn Worker>,
    ) -> Option<Self> {
        Some(Self {
            plan,
            control,
            cursor: Cursor::new(plan, instance)?,
            worker,
            acts: vec![ActTally::default(); plan.program.acts.len()],
            faults: BTreeMap::new(),
            sequence: Sequence::default(),
            throttles: HashMap::new(),
            own,
            failures: 0,
            lost: false,
            number,
            calls: 0,
        })
    }

    /// From start to end.
    fn play(mut self, instance: u64, calls: u64) -> Option<Played> {
        let before = self.worker.counts();
        self.go(calls);
        let ended_ns = monotonic_ns();
        let during = self.worker.counts();
        if !self.lost {
            self.worker.leave();
        }
        Some(Played {
            instance,
            acts: self.acts,
            faults: self.faults,
            lane: self.sequence.lane(),
            before,
            during,
            after: self.worker.counts(),
            ended_ns,
            lost: self.lost,
        })
    }

    fn go(&mut self, mut left: u64) {
        let mut dry: Option<u64> = None;
        let mut now = monotonic_ns();
        while left > 0 && !self.control.has_ended(now) {
            match self.cursor.next_act() {
                Next::Call(call) => {
                    dry = None;
                    left -= 1;
                    now = self.call(&call, now);
                }
                Next::Wait(wait) => now = self.wait(wait, now),
                Next::Ended { act, why } => {
                    let waits = matches!(why, End::NoneExists | End::AllExist);
                    let since = *dry.get_or_insert(now);
                    if waits && now - since < FILE_WAIT.as_nanos() as u64 {
                        thread::sleep(FILE_LOOK);
                        now = monotonic_ns();
                        continue;
                    }
                    self.ended(act, why);
                    return;
                }
            }
        }
    }

    /// Makes a call that begins now; returns when it ended.
    #[inline]
    fn call(&mut self, call: &Call, now: u64) -> u64 {
        self.sequence.add(call);
        let outcome = self.worker.call(call);
        let end = monotonic_ns();
        match outcome {
            Ok(done) => {
                self.failures = 0;
                if !call.hidden {
                    self.acts[call.act as usize].record(end - now, done.bytes);
                    self.control.count(call.act, done.bytes);
                    self.calls += 1;
                    self.control.report(self.number, self.calls);
                }
                self.cursor.done(done);
            }
            Err(error) => self.failed(call.act, &error),
        }
        end
    }

    /// A thread cannot continue: it ends alone, or the run with it.
    fn ended(&self, act: u32, why: End) {
        let act = &self.plan.program.acts[act as usize];
        let set = act.set.map(|set| self.plan.program.sets[set as usize].name.as_str());
        if self.control.ends_with_one() {
            let of = set.map(|set| format!(" of {set}")).unwrap_or_default();
            self.control.stop(|| format!("{}{of}: {why}", act.name));
        }
    }

    fn failed(&mut self, act: u32, error: &CallError) {
        self.acts[act as usize].errors += 1;
        self.failures += 1;
        let name = &self.plan.program.acts[act as usize].name;
        let open = self.cursor.failed();
        if error.is_final() {
            self.lost = true;
            self.control.stop(|| format!("{name}: {error}"));
        } else if self.failures >= FAILURES_MAX {
            self.control.stop(|| format!("{name} fails repeatedly: {error}"));
        }
        if !self.lost {
            open.into_iter().for_each(|fd| self.worker.close(fd));
        }
        self.faults.entry(act).or_insert_with(|| error.to_string());
    }

    fn wait(&mut self, wait: Wait, now: u64) -> u64 {
        if self.control.has_no_effect(wait.op) {
            // As Filebench counts: not at all.
            return monotonic_ns();
        }
        let throttle = self.throttles.entry(wait.act).or_default();
        let own = self.own.get(&wait.act).copied().unwrap_or(0);
        self.control.wait(&self.plan.program, wait, own, throttle);
        let end = monotonic_ns();
        self.acts[wait.act as usize].record(end - now, 0);
        self.control.count(wait.act, 0);
        end
    }
}

#[cfg(test)]
mod tests;
