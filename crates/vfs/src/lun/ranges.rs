//! Byte ranges that commands work on. Everything that changes a medium holds its range, so that
//! what is atomic is (COMPARE AND WRITE, ORWRITE), and a write that a stuck disk holds back cannot
//! land on a later one.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

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
    waiting: usize,
    /// Those that wait without a thread until ranges are given back: task management.
    watching: Vec<Waker>,
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

    /// Locks `length` bytes from `offset` on, after waiting for other holders of any of them.
    ///
    /// # Errors
    /// [`Status::WouldBlock`] if it may not wait and would have to.
    pub fn take(&self, offset: u64, length: u64, may_block: bool) -> Result<RangeGuard<'_>> {
        let range = (offset, offset.saturating_add(length));
        let mut held = self.held();
        while held.meets(range) {
            if !may_block {
                return Err(Status::WouldBlock);
            }
            held.waiting += 1;
            held = self.freed.wait(held).unwrap_or_else(PoisonError::into_inner);
            held.waiting -= 1;
        }
        let number = held.next;
        held.next += 1;
        held.ranges.push((number, range));
        Ok(RangeGuard { lock: self, number })
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
}

impl HeldRanges {
    fn meets(&self, (start, end): (u64, u64)) -> bool {
        start < end && self.ranges.iter().any(|(_, (from, to))| *from < end && start < *to)
    }
}

impl Drop for RangeGuard<'_> {
    fn drop(&mut self) {
        let mut held = self.lock.held();
        if let Some(at) = held.ranges.iter().position(|(number, _)| *number == self.number) {
            held.ranges.swap_remove(at);
        }
        let wake = held.waiting > 0;
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
