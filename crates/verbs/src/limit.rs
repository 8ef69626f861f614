//! A limit of bytes over several connections, and what waits for some of them, in a line: when
//! bytes are given back, those that fit now are woken, in the order in which they came; the rest
//! sleep on. What does not fit does not delay what does.
//!
//! The number of bytes that is waited for has to be exactly what is tried then: one that is woken
//! and does not get it would be woken again at once.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The limit.
#[derive(Debug)]
pub struct ByteLimit {
    max: usize,
    used: AtomicUsize,
    /// How many wait: what gives back looks at this first.
    count: AtomicUsize,
    line: Mutex<Line>,
}

#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<Waiting>,
    next: u64,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    bytes: usize,
    waker: Option<Waker>,
    is_woken: bool,
}

impl ByteLimit {
    /// At most this number of bytes.
    pub fn new(max: usize) -> Arc<Self> {
        let (used, count, line) = Default::default();
        Arc::new(Self { max, used, count, line })
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
        let more = |now: usize| now.checked_add(bytes).filter(|sum| *sum <= self.max);
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
            self.wake_fitting();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        // Nothing under this lock panics.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes what fits together with those before it.
    fn wake_fitting(&self) {
        // Beyond the limit nothing fits, not even no bytes.
        let Some(mut left) = self.max.checked_sub(self.used()) else { return };
        let mut wakers = Vec::new();
        for one in &mut self.lock().waiting {
            let Some(rest) = left.checked_sub(one.bytes) else { continue };
            left = rest;
            if !std::mem::replace(&mut one.is_woken, true) {
                wakers.extend(one.waker.take());
            }
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    fn enter(&self, bytes: usize) -> u64 {
        let mut line = self.lock();
        let number = line.next;
        line.next += 1;
        line.waiting.push_back(Waiting { number, bytes, waker: None, is_woken: false });
        self.count.store(line.waiting.len(), SeqCst);
        number
    }

    fn leave(&self, number: u64) {
        let mut line = self.lock();
        line.waiting.retain(|one| one.number != number);
        self.count.store(line.waiting.len(), SeqCst);
        let others = !line.waiting.is_empty();
        drop(line);
        if others {
            // What it was woken for may fit them.
            self.wake_fitting();
        }
    }

    fn with<T>(&self, number: u64, change: impl FnOnce(&mut Waiting) -> T) -> Option<T> {
        self.lock().waiting.iter_mut().find(|one| one.number == number).map(change)
    }
}

/// The wait of a connection for bytes of a limit: it is kept over its turns, with its place in the
/// line.
#[derive(Debug, Default)]
pub struct NextBytes {
    place: Option<(Arc<ByteLimit>, u64)>,
    is_ready: bool,
}

impl NextBytes {
    /// Waits for this number of bytes from now on, because it was found not to fit: in its place
    /// in the line if it has one.
    pub fn wait_for(&mut self, limit: &Arc<ByteLimit>, bytes: usize) {
        self.is_ready = false;
        let own = self.place.take_if(|(of, _)| Arc::ptr_eq(of, limit));
        self.clear();
        let number = match own {
            None => limit.enter(bytes),
            Some((_, number)) => {
                limit.with(number, |one| (one.bytes, one.is_woken) = (bytes, false));
                number
            }
        };
        self.place = Some((Arc::clone(limit), number));
        // What was given back just now has found nothing that waits for this; and others may
        // have what this one was woken for.
        limit.wake_fitting();
    }

    /// It needs none, or has them: others can have what is left.
    pub fn clear(&mut self) {
        self.is_ready = false;
        if let Some((limit, number)) = self.place.take() {
            limit.leave(number);
        }
    }

    /// Whether it waits.
    pub fn waits(&self) -> bool {
        self.place.is_some() && !self.is_ready
    }

    /// Ready once the bytes are there, if it waits; what takes them, or finds that they have gone
    /// to others, calls [`NextBytes::clear`] or [`NextBytes::wait_for`] then.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some((limit, number)) = self.place.as_ref().filter(|_| !self.is_ready) else {
            return Poll::Pending;
        };
        let is_woken = limit.with(*number, |one| {
            if !one.is_woken {
                one.waker = Some(cx.waker().clone());
            }
            one.is_woken
        });
        self.is_ready = is_woken == Some(true);
        if self.is_ready { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for NextBytes {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests;
