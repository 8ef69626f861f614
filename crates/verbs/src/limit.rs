//! A limit of bytes over several connections, and what waits for some of them
//! ([`base::wait_queue`]).

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use base::wait_queue::{Limited, NextPart, WaitQueue};

/// The limit.
#[derive(Debug)]
pub struct ByteLimit {
    max: usize,
    used: AtomicUsize,
    /// How many wait: what gives back looks at this first.
    count: AtomicUsize,
    queue: Mutex<WaitQueue<usize>>,
}

/// The wait of a connection for bytes of a limit.
pub type NextBytes = NextPart<Arc<ByteLimit>>;

impl ByteLimit {
    /// At most this number of bytes.
    pub fn new(max: usize) -> Arc<Self> {
        let (used, count, queue) = Default::default();
        Arc::new(Self { max, used, count, queue })
    }

    /// Most bytes.
    pub fn max(&self) -> usize {
        self.max
    }

    /// Bytes that are in use.
    pub fn used(&self) -> usize {
        self.used.load(SeqCst)
    }

    /// Whether this number more is within the limit.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.used().checked_add(bytes).is_some_and(|sum| sum <= self.max)
    }

    /// Takes bytes, if they are within the limit.
    pub fn try_take(&self, bytes: usize) -> bool {
        self.try_take_next_to(bytes, 0)
    }

    /// Takes bytes, if they are within the limit together with `others` that are not counted in it.
    pub fn try_take_next_to(&self, bytes: usize, others: usize) -> bool {
        let fits = |sum: &usize| sum.checked_add(others).is_some_and(|sum| sum <= self.max);
        let more = |now: usize| now.checked_add(bytes).filter(fits);
        self.used.fetch_update(SeqCst, SeqCst, more).is_ok()
    }

    /// Takes bytes, whether they are within the limit or not.
    pub fn take(&self, bytes: usize) {
        self.used.fetch_add(bytes, SeqCst);
    }

    /// Gives bytes back.
    pub fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, SeqCst);
        if bytes > 0 && self.count.load(SeqCst) > 0 {
            self.wake_fitting(None);
        }
    }

    fn lock(&self) -> MutexGuard<'_, WaitQueue<usize>> {
        // Nothing under this lock panics.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Limited for ByteLimit {
    type Need = usize;
    type Entry = usize;

    fn entry(&self, bytes: usize) -> usize {
        bytes
    }

    fn with_queue<R>(&self, act: impl FnOnce(&mut WaitQueue<usize>) -> R) -> R {
        let mut queue = self.lock();
        let done = act(&mut queue);
        self.count.store(queue.len(), SeqCst);
        done
    }

    fn wake_fitting(&self, but: Option<u64>) {
        // Beyond the limit nothing fits, not even no bytes.
        let Some(mut left) = self.max.checked_sub(self.used()) else { return };
        let fits = |bytes: &usize| {
            let rest = left.checked_sub(*bytes);
            left = rest.unwrap_or(left);
            rest.is_some()
        };
        let wakers = self.lock().fitting(but, fits);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn waits_now(&self, _: u64, _: bool) {
        // Bytes are given back on other threads: those of just now may fit this one, too.
        self.wake_fitting(None);
    }
}

#[cfg(test)]
mod tests;
