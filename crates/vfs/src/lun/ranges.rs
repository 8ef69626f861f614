//! Byte ranges that commands work on. Everything that changes a medium holds its range, so that
//! what is atomic is (COMPARE AND WRITE, ORWRITE), and a write that a stuck disk holds back cannot
//! land on a later one.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::fs::Result;
use crate::status::Status;

/// The ranges that are held on one medium.
#[derive(Debug, Default)]
pub struct RangeLock {
    held: Mutex<Held>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Held {
    ranges: Vec<(u64, u64)>,
    waiting: usize,
}

/// A range that is held; given back when dropped.
#[derive(Debug)]
pub struct RangeGuard<'a> {
    lock: &'a RangeLock,
    range: (u64, u64),
}

impl RangeLock {
    fn held(&self) -> MutexGuard<'_, Held> {
        // Nothing under this lock panics half way through a change.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes `length` bytes from `offset` on, waiting for whoever holds any of them.
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
        held.ranges.push(range);
        Ok(RangeGuard { lock: self, range })
    }

    /// Waits until all that is held now was given back at least once; false if that takes longer
    /// than `patience`. What is taken meanwhile does not count.
    pub fn quiesce(&self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let mut held = self.held();
        let mut before = held.ranges.clone();
        while !before.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            held.waiting += 1;
            let (again, _) =
                self.freed.wait_timeout(held, left).unwrap_or_else(PoisonError::into_inner);
            held = again;
            held.waiting -= 1;
            before.retain(|range| held.ranges.contains(range));
        }
        true
    }

    /// How many are held.
    pub fn count(&self) -> usize {
        self.held().ranges.len()
    }
}

impl Held {
    fn meets(&self, (start, end): (u64, u64)) -> bool {
        start < end && self.ranges.iter().any(|(from, to)| *from < end && start < *to)
    }
}

impl Drop for RangeGuard<'_> {
    fn drop(&mut self) {
        let mut held = self.lock.held();
        if let Some(at) = held.ranges.iter().position(|range| *range == self.range) {
            held.ranges.swap_remove(at);
        }
        let wake = held.waiting > 0;
        drop(held);
        if wake {
            self.lock.freed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests;
