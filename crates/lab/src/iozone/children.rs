//! One test by all children: they open their files, begin together, and end at their last record
//! or, with the stonewall, when the first one has ended.

use super::flags::{Settings, Test};
use super::shuffle::Shuffle;
use crate::agent::clock::mono_ns;
use crate::proc::thread_wait_ns;
use crate::programs::worker::{CallError, Worker};

use lab_program::cursor::{BY_PATH, Call};
use lab_program::program::Op;
use lab_program::seed_of;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

/// Where each child has its file open.
const FD: u32 = 1;

/// What one child did in a test.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Child {
    /// Its number.
    pub number: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Records.
    pub records: u64,
    /// Nanoseconds from its first record to its last, flush and close included if so chosen.
    pub ns: u64,
    /// When it ended, nanoseconds after the common start.
    pub end_ns: u64,
    /// Nanoseconds of these in which its thread was ready but had no core.
    #[serde(default)]
    pub wait_ns: u64,
    /// Whether it has done all of its records.
    pub finished: bool,
    /// Why it ended early.
    pub fault: Option<String>,
    /// Its connection is gone: it can do nothing in later tests either.
    #[serde(default)]
    pub lost: bool,
}

/// What all children did in a test.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// By number.
    pub children: Vec<Child>,
    /// Nanoseconds from the start of the first to the end of the last.
    pub parent_ns: u64,
}

impl Outcome {
    /// Why no child can continue: the connections of all are gone.
    pub fn all_lost(&self) -> Option<&str> {
        let all = self.children.iter().all(|child| child.lost);
        self.children.first().filter(|_| all)?.fault.as_deref()
    }
}

/// The children of a run, or those of one agent.
pub struct Children {
    /// What is measured.
    pub settings: Settings,
    /// Seed of random records.
    pub seed: u64,
    /// A connection of each.
    pub workers: Vec<Box<dyn Worker>>,
    /// Number of each.
    pub numbers: Vec<u64>,
}

/// When a test begins and ends, apart from what its children do.
#[derive(Clone, Copy, Default)]
pub struct Start<'a> {
    /// The common start on this machine's clock, ns; as soon as all files are open without it.
    pub at_ns: Option<u64>,
    /// All end when this is less than [`u64::MAX`]: a child of another agent has ended.
    pub stop: Option<&'a AtomicU64>,
    /// Called when the first child has ended, unless all continue to their end: before files are
    /// completed.
    pub ended: Option<&'a dyn Fn()>,
}

/// How a test begins and ends for all.
struct Common<'a> {
    opened: Barrier,
    start: Barrier,
    ended: AtomicBool,
    stop: Option<&'a AtomicU64>,
}

impl Common<'_> {
    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
            || self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed) < u64::MAX)
    }
}

impl Test {
    /// Whether it writes only.
    pub fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::Rewrite | Self::RandomWrite)
    }

    /// What a child does in it. Children of the mixed test take turns by their numbers, as in
    /// IOzone: one reads at random, the next one writes.
    pub fn of_child(self, number: u64) -> Self {
        match self {
            Self::Mixed if number.is_multiple_of(2) => Self::RandomRead,
            Self::Mixed => Self::RandomWrite,
            test => test,
        }
    }
}

/// The records of a child that does this, in their order.
fn records(test: Test, settings: &Settings, seed: u64) -> impl Iterator<Item = u64> {
    let (all, stride) = (settings.size / settings.record, settings.stride);
    let shuffle = Shuffle::new(all, seed);
    // The stride test reads each record once: those a stride apart, then the ones behind them.
    let (mut at, mut first) = (0, 0);
    (0..all).map(move |n| match test {
        Test::Write | Test::Rewrite | Test::Read | Test::Reread => n,
        Test::Reverse => all - 1 - n,
        Test::Stride => {
            let record = at;
            at += stride;
            if at >= all {
                first += 1;
                at = first;
            }
            record
        }
        Test::RandomRead | Test::RandomWrite | Test::Mixed => shuffle.at(n),
    })
}

impl Children {
    /// Carries out a test; `number` distinguishes the random records of repeated ones.
    ///
    /// # Errors
    /// This machine has too few threads.
    pub fn run(&mut self, test: Test, number: u64, start: Start<'_>) -> io::Result<Outcome> {
        let all = self.workers.len();
        let common = Common {
            opened: Barrier::new(all + 1),
            start: Barrier::new(all + 1),
            ended: AtomicBool::new(false),
            stop: start.stop,
        };
        let (settings, seed) = (&self.settings, seed_of(self.seed, 31, number));
        let (first, first_end) = channel();
        thread::scope(|scope| {
            let common = &common;
            let mut threads = Vec::with_capacity(all);
            for (number, worker) in self.numbers.iter().copied().zip(&mut self.workers) {
                let test = test.of_child(number);
                let first = first.clone();
                let child = OneChild { settings, test, seed, number, common, first };
                threads.push(scope.spawn(move || child.run(&mut **worker)));
            }
            // With the children nothing is left that could report.
            drop(first);
            common.opened.wait();
            let now = mono_ns();
            let begin = start.at_ns.unwrap_or(now);
            thread::sleep(Duration::from_nanos(begin.saturating_sub(now)));
            common.start.wait();
            if first_end.recv().is_ok()
                && let Some(report) = start.ended
            {
                report();
            }
            let lost = |number: u64| {
                let fault = Some("its thread ended by a fault".into());
                Child { number, fault, ..Child::default() }
            };
            let ended = threads.into_iter().zip(&self.numbers);
            let ended =
                ended.map(|(thread, number)| thread.join().unwrap_or_else(|_| lost(*number)));
            let mut children: Vec<Child> = ended.collect();
            children.iter_mut().for_each(|child| child.end_ns = child.end_ns.saturating_sub(begin));
            // Not of what completes files afterwards.
            let parent_ns = children.iter().map(|child| child.end_ns).max().unwrap_or(0).max(1);
            Ok(Outcome { children, parent_ns })
        })
    }

    /// Removes the files of all children.
    fn remove(&mut self) {
        for (number, worker) in self.numbers.iter().zip(&mut self.workers) {
            // One that is not there is as good; the folder is removed afterwards.
            let _ = worker.call(&call(Op::Remove, *number, BY_PATH));
        }
    }

    /// Removes the files of all children unless they stay, and disconnects them.
    pub fn leave(&mut self) {
        if !self.settings.keep {
            self.remove();
        }
        self.workers.iter_mut().for_each(|worker| worker.leave());
    }
}

struct OneChild<'a> {
    settings: &'a Settings,
    test: Test,
    seed: u64,
    number: u64,
    common: &'a Common<'a>,
    /// For the report that it is the first one to end, which another thread makes: its time is not
    /// part of what is measured.
    first: Sender<()>,
}

fn call(op: Op, entry: u64, fd: u32) -> Call {
    Call {
        act: 0,
        op,
        set: 0,
        entry,
        fd,
        offset: 0,
        len: 0,
        piece: 0,
        dsync: false,
        direct: false,
        hidden: false,
    }
}

impl OneChild<'_> {
    fn run(&self, worker: &mut dyn Worker) -> Child {
        let opened = self.open(worker);
        let is_open = opened.is_ok();
        self.common.opened.wait();
        self.common.start.wait();
        let (begin, waited) = (mono_ns(), thread_wait_ns());
        let mut child = Child { number: self.number, ..Child::default() };
        let outcome = opened.and_then(|()| self.records(worker, &mut child));
        child.finished =
            outcome.is_ok() && child.records == self.settings.size / self.settings.record;
        // Without the stonewall each child continues to its own end.
        if !self.settings.no_stonewall && !self.common.ended.swap(true, Ordering::Relaxed) {
            let _gone = self.first.send(());
        }
        let flushed = self.flush(worker);
        let end = mono_ns();
        child.ns = (end - begin).max(1);
        child.wait_ns = thread_wait_ns().saturating_sub(waited);
        child.end_ns = end;
        let closed = if is_open && !self.settings.close { self.close(worker) } else { Ok(()) };
        let completed = match (&outcome, self.test, child.finished) {
            (Ok(()), Test::Write, false) => self.complete(worker, child.records),
            _ => Ok(()),
        };
        let closed = closed.and(completed);
        let error = outcome.and(flushed).and(closed).err();
        child.lost = error.as_ref().is_some_and(CallError::is_final);
        child.fault = error.map(|error| error.to_string());
        child
    }

    fn open(&self, worker: &mut dyn Worker) -> Result<(), CallError> {
        // A new file each time: what an earlier block has written is gone.
        if self.test == Test::Write {
            let _ = worker.call(&call(Op::Remove, self.number, BY_PATH));
        }
        let op = if self.test == Test::Write { Op::Create } else { Op::Open };
        worker.call(&call(op, self.number, FD)).map(drop)
    }

    fn records(&self, worker: &mut dyn Worker, child: &mut Child) -> Result<(), CallError> {
        let len = self.settings.record;
        let seed = seed_of(self.seed, 32, self.number);
        let write = self.test.is_write();
        let op = if write { Op::Write } else { Op::Read };
        for record in records(self.test, self.settings, seed) {
            let at = call(op, self.number, FD);
            let dsync = write && self.settings.sync;
            let done = worker.call(&Call { offset: record * len, len, piece: len, dsync, ..at })?;
            child.bytes += done.bytes;
            child.records += 1;
            if self.common.has_ended() {
                break;
            }
        }
        Ok(())
    }

    /// Writes the records that the stonewall has left out, outside the measured time: later tests
    /// read files without holes.
    fn complete(&self, worker: &mut dyn Worker, done: u64) -> Result<(), CallError> {
        let len = self.settings.record;
        worker.call(&call(Op::Open, self.number, FD))?;
        for record in done..self.settings.size / len {
            let at = call(Op::Write, self.number, FD);
            worker.call(&Call { offset: record * len, len, piece: len, ..at })?;
        }
        self.close(worker)
    }

    /// The flush, and the close if the time includes it.
    fn flush(&self, worker: &mut dyn Worker) -> Result<(), CallError> {
        if self.settings.flush && self.test.is_write() {
            worker.call(&call(Op::Sync, self.number, FD))?;
        }
        if self.settings.close { self.close(worker) } else { Ok(()) }
    }

    fn close(&self, worker: &mut dyn Worker) -> Result<(), CallError> {
        worker.call(&call(Op::Close, self.number, FD)).map(drop)
    }
}

#[cfg(test)]
mod tests;
