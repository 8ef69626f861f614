//! Which writes of a medium a failed flush has lost.
//!
//! The kernel reports a failed write-back once and then marks the pages clean. So every write takes
//! a number; a failed flush loses the numbers since the last successful one, and each client that
//! has written one of them gets the error at its next flush, whichever flush that is and whichever
//! client requested it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::limits::FLUSH_FAILURES_KEPT;

use crate::fs::Result;
use crate::status::Status;

/// Numbers of writes with an outcome that their writer does not know yet: the first and the last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written(Option<(u64, u64)>);

impl Written {
    /// None.
    pub const NONE: Self = Self(None);

    fn add(&mut self, number: u64) {
        let (first, last) = self.0.unwrap_or((number, number));
        self.0 = Some((first.min(number), last.max(number)));
    }

    /// Adds what another one has.
    pub fn join(&mut self, other: Self) {
        if let Some((first, last)) = other.0 {
            self.add(first);
            self.add(last);
        }
    }

    /// Removes the numbers that existed when `asked` was taken: a flush has reported their outcome.
    pub fn settle(&mut self, asked: Self) {
        let (Some((_, last)), Some((_, known))) = (self.0, asked.0) else { return };
        // Later writes have larger numbers.
        self.0 = (last > known).then_some((known + 1, last));
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.0.is_none()
    }
}

/// The numbers of writes, and their outcome.
#[derive(Debug, Default)]
pub struct Ledger {
    last: AtomicU64,
    failures: AtomicU64,
    /// Writes up to this number are on disk, or lost. Changed only with `inner` locked, and read
    /// without it: a flush has it locked, and readers must not wait for that.
    done: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Those that are lost: first and last number.
    lost: Vec<(u64, u64)>,
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing under this lock panics half way through a change.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs something that changes the medium, and gives its numbers: one is taken before it,
    /// because a flush that fails meanwhile may have lost a part of it; one after it, because a
    /// flush that succeeds meanwhile need not have seen all of it.
    pub fn noted<T>(&self, change: impl FnOnce() -> T) -> (T, Written) {
        let first = self.last.fetch_add(1, Ordering::AcqRel) + 1;
        let value = change();
        let last = self.last.fetch_add(1, Ordering::AcqRel) + 1;
        (value, Written(Some((first, last))))
    }

    /// Flushes by `sync`, one flush at a time: of two at once only one would see the error.
    ///
    /// # Errors
    /// Those of `sync`; then everything since the last good flush is lost.
    pub fn flush(&self, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut inner = self.lock();
        let upto = self.last.load(Ordering::Acquire);
        let outcome = sync();
        if outcome.is_err() {
            self.failures.fetch_add(1, Ordering::Relaxed);
            inner.lose(self.done.load(Ordering::Acquire), upto);
        }
        self.done.fetch_max(upto, Ordering::AcqRel);
        outcome
    }

    /// A write that should have been durable has failed: as a failed flush, since its error may be
    /// that of anything before it.
    pub fn fail(&self) {
        let mut inner = self.lock();
        let upto = self.last.load(Ordering::Acquire);
        self.failures.fetch_add(1, Ordering::Relaxed);
        inner.lose(self.done.load(Ordering::Acquire), upto);
        self.done.fetch_max(upto, Ordering::AcqRel);
    }

    /// Whether none of these writes is lost.
    ///
    /// # Errors
    /// [`Status::Io`] if one is.
    pub fn check(&self, written: Written) -> Result<()> {
        let Some((first, last)) = written.0 else { return Ok(()) };
        let inner = self.lock();
        let lost = inner.lost.iter().any(|(from, to)| *from <= last && first <= *to);
        if lost { Err(Status::Io) } else { Ok(()) }
    }

    /// Flushes that failed.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Whether there are writes that no flush has covered. It never waits, also while a flush does.
    pub fn is_dirty(&self) -> bool {
        self.last.load(Ordering::Acquire) > self.done.load(Ordering::Acquire)
    }
}

impl Inner {
    /// What came after the number `done`, up to `upto`, is lost.
    fn lose(&mut self, done: u64, upto: u64) {
        self.lost.push((done + 1, upto.max(done + 1)));
        if self.lost.len() > FLUSH_FAILURES_KEPT {
            // The two oldest become one: better to report too many losses than too few.
            let (_, last) = self.lost.remove(1);
            if let Some(first) = self.lost.first_mut() {
                first.1 = last;
            }
        }
    }
}

#[cfg(test)]
mod tests;
