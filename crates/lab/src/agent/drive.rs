//! The loop that makes the load: fill the free slots, send, receive, record, once around.
//!
//! It stamps twice a turn: operations given out in one turn share their start, replies of one
//! receive share their end. Both are honest: the start is taken before encoding, the end before
//! checking. Windows are cut at fixed moments of the clock, the same for all agents.

use super::clock;
use super::proto::{Prepare, Start, StepEnd, Window};
use crate::client::{Client, ClientError, Completion, Fault, FileSet, Op};
use crate::hist::{self, Hist};
use crate::operations::Given;
use crate::proc;
use crate::shape::open::{Arrived, OpenLoop, OpenRule};
use crate::workload::Workload;
use base::limits::{LAB_SILENCE_MAX, LAB_WINDOWS_MAX};
use probe::core::thread_cpu_ns;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long one wait may take before the clock is looked at again.
const WAIT: Duration = Duration::from_millis(20);

/// A prepared client and its workload.
pub struct Driver {
    client: Box<dyn Client>,
    work: Workload,
    given: Given,
    set: FileSet,
    done: Vec<Completion>,
}

/// What runs in a slot.
#[derive(Clone, Copy)]
struct Running {
    op: Op,
    since_ns: u64,
    /// Its arrival, in an open loop.
    arrived: Option<Arrived>,
}

/// The figures of the window that is open.
struct Open {
    window: Window,
    hist: Hist,
    ends_ns: u64,
    busy_since_ns: u64,
    busy_ns: f64,
    cpu: (u64, u64, proc::Waits),
}

impl Open {
    fn new(step: u32, index: u32, begins_ns: u64, ends_ns: u64) -> Self {
        let window = Window { step, index, ..Default::default() };
        let cpu = (thread_cpu_ns(), clock::process_cpu_ns(), proc::own_waits());
        let busy_since_ns = begins_ns;
        Self { window, hist: hist::new(), ends_ns, busy_since_ns, busy_ns: 0.0, cpu }
    }

    /// Adds what was in flight since the last call.
    #[inline]
    fn account(&mut self, now_ns: u64, in_flight: usize) {
        let passed = now_ns.saturating_sub(self.busy_since_ns);
        self.busy_ns += passed as f64 * in_flight as f64;
        self.busy_since_ns = now_ns;
    }

    /// The windows that have ended: this one, and those after it in which nothing ended because the
    /// agent had no core. Of these nothing is read or encoded, and all leave together: if each took
    /// longer to close than it lasts, an agent would do nothing else.
    fn pass(
        &mut self,
        now_ns: u64,
        start: &Start,
        in_flight: usize,
        client: &dyn Client,
    ) -> Vec<Window> {
        let Some(late_ns) = now_ns.checked_sub(self.ends_ns) else { return Vec::new() };
        let (first, later) = (self.window.index + 1, (late_ns / start.window_ns) as u32);
        let begins_ns = self.ends_ns + u64::from(later) * start.window_ns;
        let ends_ns = begins_ns + start.window_ns;
        let next = Self::new(start.step, first + later, begins_ns, ends_ns);
        let closed = std::mem::replace(self, next).close(start.window_ns, client);
        if later == 0 {
            return vec![closed];
        }
        let empty = Window {
            step: start.step,
            latency: hist::to_text(&hist::new()),
            in_flight: in_flight as f64,
            transport: closed.transport,
            ..Window::default()
        };
        let most = u32::try_from(LAB_WINDOWS_MAX).unwrap_or(u32::MAX).min(later);
        let empties = (first..first + most).map(|index| Window { index, ..empty.clone() });
        std::iter::once(closed).chain(empties).collect()
    }

    fn close(mut self, window_ns: u64, client: &dyn Client) -> Window {
        let waits = proc::own_waits();
        self.window.driver_cpu_ns = thread_cpu_ns().saturating_sub(self.cpu.0);
        self.window.cpu_ns = clock::process_cpu_ns().saturating_sub(self.cpu.1);
        self.window.wait_ns = waits.wait_ns.saturating_sub(self.cpu.2.wait_ns);
        self.window.throttled_ns = waits.throttled_ns.saturating_sub(self.cpu.2.throttled_ns);
        self.window.in_flight = self.busy_ns / window_ns as f64;
        self.window.latency = hist::to_text(&self.hist);
        self.window.transport = client.transport();
        self.window
    }
}

impl Driver {
    /// Makes the files and remembers the workload.
    ///
    /// # Errors
    /// When the target refuses or breaks off.
    pub fn prepare(mut client: Box<dyn Client>, wanted: &Prepare) -> Result<Self, ClientError> {
        let files = if wanted.shape.kind.needs_files() { wanted.shape.files } else { 0 };
        let set = FileSet { client: wanted.client, files, size: wanted.shape.file_size };
        client.begin(&wanted.shape)?;
        client.prepare(&set)?;
        // Each client draws its own places.
        let seed = wanted.seed ^ (u64::from(wanted.client) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (mut work, mut given) = (Workload::new(wanted.shape.clone(), seed), Given::default());
        if client.streams() {
            work.each_its_own();
        }
        if client.streams() || wanted.shape.has_own_files() {
            given.each_its_own();
        }
        Ok(Self { client, work, given, set, done: Vec::new() })
    }

    /// Keeps the server from forgetting a client that has nothing to do.
    ///
    /// # Errors
    /// When the connection is lost or the server refuses.
    pub fn renew(&mut self) -> Result<(), ClientError> {
        self.client.renew()
    }

    /// Calls to the service so far.
    pub fn calls(&self) -> u64 {
        self.client.calls()
    }

    /// Operations that the server allows at once, if fewer than were asked for.
    pub fn granted(&self) -> Option<u32> {
        self.client.granted()
    }

    /// Removes the files.
    ///
    /// # Errors
    /// When the target refuses or breaks off.
    pub fn clean(&mut self) -> Result<(), ClientError> {
        self.client.clean(&self.set)
    }

    /// Runs one step: starts on time, keeps the slots full until `stop` shows a time that has
    /// come, finishes what is in flight, makes it stable.
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn step(
        &mut self,
        start: &Start,
        stop: &AtomicU64,
        report: &mut dyn FnMut(Vec<Window>),
    ) -> Result<StepEnd, ClientError> {
        let mut slots: Vec<Option<Running>> = vec![None; start.threads as usize];
        let mut free: Vec<u32> = (0..start.threads).rev().collect();
        let mut end = StepEnd { step: start.step, ..Default::default() };
        let resent_before = self.work.resent;
        self.work.begin(start.threads, start.ops_max.is_some());
        clock::sleep_until(start.at_ns);
        let mut open = Open::new(start.step, 0, start.at_ns, start.at_ns + start.window_ns);
        let mut last_progress = clock::mono_ns();
        let schedule = |rule: OpenRule| OpenLoop::new(rule, start.at_ns, start.until_ns);
        let mut arrivals = start.open.clone().map(schedule);
        let mut left = start.ops_max.unwrap_or(u64::MAX);
        loop {
            let now = clock::mono_ns();
            open.account(now, slots.len() - free.len());
            let stopped = stopped(now, stop.load(Ordering::Relaxed), arrivals.as_mut());
            if !stopped || arrivals.is_some() {
                let room = (&mut free, &mut left);
                self.fill(now, room, &mut slots, &mut end, arrivals.as_mut())?;
            }
            if free.len() == slots.len() {
                if stopped || arrivals.is_none() {
                    break;
                }
                last_progress = now;
            }
            self.client.flush()?;
            self.done.clear();
            self.client.wait(until_next(arrivals.as_ref()), &mut self.done)?;
            let now = clock::mono_ns();
            open.account(now.min(open.ends_ns), slots.len() - free.len());
            let passed = open.pass(now, start, slots.len() - free.len(), &*self.client);
            if !passed.is_empty() {
                report(passed);
            }
            open.account(now, slots.len() - free.len());
            if self.done.is_empty() && now - last_progress > LAB_SILENCE_MAX.as_nanos() as u64 {
                return Err(ClientError::Silent("any operation", LAB_SILENCE_MAX));
            }
            if !self.done.is_empty() {
                last_progress = now;
            }
            self.take(now, &mut free, &mut slots, &mut open, &mut end, arrivals.as_mut());
        }
        end.open = arrivals.map(|arrivals| arrivals.end());
        self.make_stable(&mut end)?;
        end.last_op_ns = end.last_op_ns.max(end.first_op_ns);
        end.resent = self.work.resent - resent_before;
        end.calls = self.client.calls();
        end.operations = self.given.lanes();
        Ok(end)
    }

    #[inline]
    fn fill(
        &mut self,
        now: u64,
        (free, left): (&mut Vec<u32>, &mut u64),
        slots: &mut [Option<Running>],
        end: &mut StepEnd,
        mut arrivals: Option<&mut OpenLoop>,
    ) -> Result<(), ClientError> {
        while let Some(slot) = free.last().copied() {
            let arrived = match &mut arrivals {
                Some(arrivals) => match arrivals.due(now) {
                    Some(arrived) => Some(arrived),
                    None => break,
                },
                None => None,
            };
            let op = if *left == 0 { None } else { self.work.next(slot) };
            let Some(op) = op else {
                if let Some(arrivals) = &mut arrivals {
                    arrivals.refuse();
                }
                break;
            };
            free.pop();
            *left -= 1;
            // Which slot helps another one depends on time: it is of neither sequence.
            if !self.work.helped() {
                self.given.add(slot, op);
            }
            let since_ns = arrived.map_or(now, |arrived| arrived.intended_ns);
            slots[slot as usize] = Some(Running { op, since_ns, arrived });
            self.client.submit(slot, op)?;
            if end.first_op_ns == 0 {
                end.first_op_ns = now;
            }
        }
        Ok(())
    }

    #[inline]
    fn take(
        &mut self,
        now: u64,
        free: &mut Vec<u32>,
        slots: &mut [Option<Running>],
        open: &mut Open,
        end: &mut StepEnd,
        mut arrivals: Option<&mut OpenLoop>,
    ) {
        for completion in &self.done {
            let Completion { slot, outcome } = *completion;
            let Some(running) = slots.get_mut(slot as usize).and_then(Option::take) else {
                continue;
            };
            free.push(slot);
            if let (Some(arrivals), Some(arrived)) = (&mut arrivals, running.arrived) {
                arrivals.done(arrived, now);
            }
            self.work.done(slot, running.op, outcome);
            end.last_op_ns = now;
            let window = &mut open.window;
            if matches!(running.op, Op::Commit { .. }) {
                window.commits += 1;
                end.commits += 1;
            } else {
                open.hist.saturating_record(now.saturating_sub(running.since_ns).max(1));
                window.ops += 1;
                end.ops += 1;
            }
            let bytes = u64::from(outcome.unwrap_or(0));
            window.bytes += bytes;
            end.bytes += bytes;
            if let Some(fault) = fault_of(outcome) {
                window.errors += 1;
                window.corrupt += u64::from(fault == Fault::Corrupt);
                window.first_error.get_or_insert_with(|| words(running.op, fault));
                note(end, running.op, fault);
            }
        }
    }

    /// The clock stops only when the data is stable; and created files do not stay behind.
    fn make_stable(&mut self, end: &mut StepEnd) -> Result<(), ClientError> {
        while let Some(op) = self.work.last() {
            let outcome = self.one(op)?;
            end.commits += 1;
            fault_of(outcome).into_iter().for_each(|fault| note(end, op, fault));
            self.work.done(0, op, outcome);
            if outcome.is_err() {
                break;
            }
        }
        for name in self.work.leftovers() {
            let op = Op::Remove { name };
            let outcome = self.one(op)?;
            fault_of(outcome).into_iter().for_each(|fault| note(end, op, fault));
        }
        Ok(())
    }

    fn one(&mut self, op: Op) -> Result<Result<u32, Fault>, ClientError> {
        self.client.submit(0, op)?;
        self.client.flush()?;
        let deadline = clock::mono_ns() + LAB_SILENCE_MAX.as_nanos() as u64;
        self.done.clear();
        while self.done.is_empty() {
            if clock::mono_ns() > deadline {
                return Err(ClientError::Silent("COMMIT", LAB_SILENCE_MAX));
            }
            self.client.wait(WAIT, &mut self.done)?;
        }
        Ok(self.done[0].outcome)
    }
}

/// The fault of an operation. That the server has lost what was not committed is none: the data is
/// sent again, and that is counted.
#[inline]
fn fault_of(outcome: Result<u32, Fault>) -> Option<Fault> {
    outcome.err().filter(|fault| *fault != Fault::VerifierChanged)
}

/// Counts a fault in the whole step: also of the last window, which is not reported, and of what
/// makes the data stable.
fn note(end: &mut StepEnd, op: Op, fault: Fault) {
    end.errors += 1;
    end.corrupt += u64::from(fault == Fault::Corrupt);
    end.first_error.get_or_insert_with(|| words(op, fault));
}

fn words(op: Op, fault: Fault) -> String {
    format!("{op}: {fault}")
}

/// Whether a step has stopped; nothing arrives from then on, and what waits is not started.
fn stopped(now_ns: u64, stop_ns: u64, arrivals: Option<&mut OpenLoop>) -> bool {
    let stopped = now_ns >= stop_ns;
    if let Some(arrivals) = arrivals {
        arrivals.close(stop_ns);
        if stopped {
            arrivals.abandon();
        }
    }
    stopped
}

/// How long replies may be waited for: until the next arrival.
fn until_next(arrivals: Option<&OpenLoop>) -> Duration {
    let Some(at_ns) = arrivals.and_then(OpenLoop::wake_ns) else { return WAIT };
    let left = at_ns.saturating_sub(clock::mono_ns()).max(1_000);
    WAIT.min(Duration::from_nanos(left))
}

#[cfg(test)]
mod tests;
