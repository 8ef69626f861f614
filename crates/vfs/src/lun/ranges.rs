//! Byte ranges that commands work on. Everything that changes a medium holds its range, so that
//! what is atomic is (COMPARE AND WRITE, ORWRITE), and a write that a stuck disk holds back cannot
//! land on a later one.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use base::clock::Deadline;

use crate::fs::Result;
use crate::status::Status;

/// The ranges that are held on one medium.
#[derive(Debug, Default)]
pub struct RangeLock {
    held: Mutex<HeldRanges>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct HeldRanges {
    /// Each with a number that no other has.
    ranges: Vec<(u64, (u64, u64))>,
    next: u64,
    /// Those that are waited for, in the order in which they came.
    waiting: Vec<(u64, (u64, u64))>,
    /// Those that wait without a thread until ranges are given back: task management.
    watching: Vec<Waker>,
}

/// How long a range may be waited for.
#[derive(Debug, Clone, Copy)]
enum Time {
    Any,
    Until(Deadline),
}

/// A range that is held; given back when dropped.
#[derive(Debug)]
pub struct RangeGuard<'a> {
    lock: &'a RangeLock,
    number: u64,
}

impl RangeLock {
    fn held(&self) -> MutexGuard<'_, HeldRanges> {
        // Nothing under this lock panics half way through a change.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks `length` bytes from `offset` on, after waiting for other holders of any of them and
    /// for those that have waited for any of them before: otherwise a large range would never be
    /// free under constant writes.
    ///
    /// A holder must not take another range, since it would wait for one that waits for it.
    ///
    /// # Errors
    /// [`Status::WouldBlock`] if it may not wait and would have to.
    pub fn take(&self, offset: u64, length: u64, may_block: bool) -> Result<RangeGuard<'_>> {
        self.take_in(may_block.then_some(Time::Any), (offset, offset.saturating_add(length)))
    }

    /// The same for all bytes, after waiting for at most so long.
    ///
    /// # Errors
    /// [`Status::Busy`] if that was not enough.
    pub fn take_all(&self, most: Duration) -> Result<RangeGuard<'_>> {
        self.take_in(Some(Time::Until(Deadline::after(most))), (0, u64::MAX))
    }

    fn take_in(&self, time: Option<Time>, range: (u64, u64)) -> Result<RangeGuard<'_>> {
        let mut held = self.held();
        let number = held.next;
        held.next += 1;
        if held.must_wait(number, range) {
            let time = time.ok_or(Status::WouldBlock)?;
            held.waiting.push((number, range));
            let mut outcome = Ok(());
            while outcome.is_ok() && held.must_wait(number, range) {
                (held, outcome) = self.wait(held, time);
            }
            // Those behind it wait for its range still if it holds that now.
            held.waiting.retain(|(other, _)| *other != number);
            if let Err(status) = outcome {
                drop(held);
                self.freed.notify_all();
                return Err(status);
            }
        }
        held.ranges.push((number, range));
        Ok(RangeGuard { lock: self, number })
    }

    fn wait<'a>(
        &'a self,
        held: MutexGuard<'a, HeldRanges>,
        time: Time,
    ) -> (MutexGuard<'a, HeldRanges>, Result<()>) {
        match time {
            Time::Any => (self.freed.wait(held).unwrap_or_else(PoisonError::into_inner), Ok(())),
            Time::Until(due) => match due.left() {
                None => (held, Err(Status::Busy)),
                Some(left) => {
                    let waited = self.freed.wait_timeout(held, left);
                    (waited.unwrap_or_else(PoisonError::into_inner).0, Ok(()))
                }
            },
        }
    }

    /// What is held now, for [`RangeLock::poll_released`].
    pub fn snapshot(&self) -> Vec<u64> {
        self.held().ranges.iter().map(|(number, _)| *number).collect()
    }

    /// Ready once none of this is held any more.
    pub fn poll_released(&self, snapshot: &[u64], cx: &Context<'_>) -> Poll<()> {
        let mut held = self.held();
        if !held.ranges.iter().any(|(number, _)| snapshot.contains(number)) {
            return Poll::Ready(());
        }
        // They are woken together, and each looks again.
        if !held.watching.iter().any(|waker| waker.will_wake(cx.waker())) {
            held.watching.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// How many are held.
    pub fn count(&self) -> usize {
        self.held().ranges.len()
    }

    /// How many are waited for.
    pub fn waiting(&self) -> usize {
        self.held().waiting.len()
    }
}

impl HeldRanges {
    /// Whether a range with this number waits for one that is held, or that came before it.
    fn must_wait(&self, number: u64, (start, end): (u64, u64)) -> bool {
        let meets = |(_, (from, to)): &(u64, (u64, u64))| *from < end && start < *to;
        let before = |one: &(u64, (u64, u64))| one.0 < number && meets(one);
        start < end && (self.ranges.iter().any(meets) || self.waiting.iter().any(before))
    }
}

impl Drop for RangeGuard<'_> {
    fn drop(&mut self) {
        let mut held = self.lock.held();
        if let Some(at) = held.ranges.iter().position(|(number, _)| *number == self.number) {
            held.ranges.swap_remove(at);
        }
        let wake = !held.waiting.is_empty();
        let watching = std::mem::take(&mut held.watching);
        drop(held);
        watching.into_iter().for_each(Waker::wake);
        if wake {
            self.lock.freed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests;
