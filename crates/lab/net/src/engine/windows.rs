//! Windows of a transaction. Each thread adds its bytes and calls to the window that its own clock
//! shows, so that they are right however late the thread that collects them runs.

use crate::count::Sums;
use crate::limits::WINDOWS_MAX;
use std::sync::atomic::{AtomicU64, Ordering};

/// One window of all threads.
#[derive(Debug, Default)]
struct Slot {
    sent: AtomicU64,
    received: AtomicU64,
    calls: AtomicU64,
}

/// The windows of the running transaction; what is later than the last one is not counted here.
#[derive(Debug)]
pub struct Windows {
    slots: Vec<Slot>,
}

impl Windows {
    /// All empty.
    pub fn new() -> Self {
        Self { slots: (0..WINDOWS_MAX).map(|_| Slot::default()).collect() }
    }

    /// Empties all. No thread counts.
    pub fn clear(&self) {
        for slot in &self.slots {
            slot.sent.store(0, Ordering::Relaxed);
            slot.received.store(0, Ordering::Relaxed);
            slot.calls.store(0, Ordering::Relaxed);
        }
    }

    fn add(&self, index: u64, sums: Sums) {
        let Some(slot) = self.slots.get(index as usize) else { return };
        slot.sent.fetch_add(sums.sent, Ordering::Relaxed);
        slot.received.fetch_add(sums.received, Ordering::Relaxed);
        slot.calls.fetch_add(sums.calls, Ordering::Relaxed);
    }

    /// The first `count` windows. What a thread has counted is in them once it has reported its
    /// end.
    pub fn first(&self, count: u64) -> Vec<Sums> {
        let sums = |slot: &Slot| Sums {
            sent: slot.sent.load(Ordering::Relaxed),
            received: slot.received.load(Ordering::Relaxed),
            calls: slot.calls.load(Ordering::Relaxed),
        };
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        self.slots.iter().take(count).map(sums).collect()
    }
}

/// What one thread has counted in the window that its clock shows. It is added to that of the other
/// threads when the window has passed: threads write to the same memory once in a window.
#[derive(Debug, Default)]
pub struct Tally {
    begin_ns: u64,
    window_ns: u64,
    index: u64,
    end_ns: u64,
    latest_ns: u64,
    sums: Sums,
}

impl Tally {
    /// At the begin of a transaction.
    pub fn new(begin_ns: u64, window_ns: u64) -> Self {
        let window_ns = window_ns.max(1);
        let end_ns = begin_ns.saturating_add(window_ns);
        Self { begin_ns, window_ns, end_ns, latest_ns: begin_ns, ..Self::default() }
    }

    /// What is counted at this time; times do not fall.
    #[inline]
    pub fn at(&mut self, now_ns: u64, windows: &Windows) -> &mut Sums {
        if now_ns >= self.end_ns {
            self.pass(now_ns, windows);
        }
        self.latest_ns = now_ns;
        &mut self.sums
    }

    /// The time at which it has counted last.
    #[inline]
    pub fn latest_ns(&self) -> u64 {
        self.latest_ns
    }

    #[cold]
    fn pass(&mut self, now_ns: u64, windows: &Windows) {
        self.flush(windows);
        self.index = whole(self.begin_ns, now_ns, self.window_ns);
        let windows = self.window_ns.saturating_mul(self.index.saturating_add(1));
        self.end_ns = self.begin_ns.saturating_add(windows);
    }

    /// Adds what is left, at the end of the transaction.
    pub fn flush(&mut self, windows: &Windows) {
        windows.add(self.index, std::mem::take(&mut self.sums));
    }
}

/// Windows that have passed between these times.
pub fn whole(begin_ns: u64, end_ns: u64, window_ns: u64) -> u64 {
    end_ns.saturating_sub(begin_ns) / window_ns.max(1)
}

#[cfg(test)]
mod tests;
