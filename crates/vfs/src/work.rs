//! What one request may still cost: a count that falls with each entry of a directory and each step
//! of a path that is looked at, over all operations of the request. The length of a request in
//! bytes does not bound it: a path of 40 bytes can lead by links through large directories hundreds
//! of times. An operation that runs on the pool ends soon after [`Work::end`].

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::status::{Result, Status};

/// Entries that are looked at before they are counted: the count is shared between threads.
pub const COUNTED_AT_ONCE: usize = 256;

/// The count of one request.
#[derive(Debug)]
pub struct Work {
    left: AtomicUsize,
    ended: AtomicBool,
}

impl Work {
    /// A request that may look at `entries` entries.
    pub const fn new(most: usize) -> Self {
        Self { left: AtomicUsize::new(most), ended: AtomicBool::new(false) }
    }

    /// Counts `entries` that are looked at.
    ///
    /// # Errors
    /// [`Status::Busy`] if that is more than is left, or the request has ended.
    pub fn take(&self, entries: usize) -> Result<()> {
        let take = |left: usize| left.checked_sub(entries);
        let is_taken = self.left.fetch_update(Relaxed, Relaxed, take).is_ok();
        if is_taken && !self.ended.load(Relaxed) { Ok(()) } else { Err(Status::Busy) }
    }

    /// What is left.
    pub fn left(&self) -> usize {
        self.left.load(Relaxed)
    }

    /// The request has ended, or its client has gone: what still runs for it ends.
    pub fn end(&self) {
        self.ended.store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests;
