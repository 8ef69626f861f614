//! Bytes that the state of clients takes: of all, and of those of one address, so that one host
//! leaves room to others. Stateids, owners and the replies that slots keep are counted by what they
//! take, about. Pure.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use base::refusals::Limit;

/// The limits, and the bytes in use.
#[derive(Debug)]
pub struct Memory {
    most: usize,
    most_each: usize,
    used: AtomicUsize,
}

impl Memory {
    /// At most `most` bytes, `most_each` of one address.
    pub fn new(most: usize, most_each: usize) -> Arc<Self> {
        Arc::new(Self { most, most_each, used: AtomicUsize::new(0) })
    }

    /// Bytes in use.
    #[cfg(test)]
    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }
}

/// What the clients of one address have of it.
#[derive(Debug)]
pub struct MemoryPart {
    all: Arc<Memory>,
    used: AtomicUsize,
}

impl MemoryPart {
    /// Nothing yet.
    pub fn new(all: &Arc<Memory>) -> Arc<Self> {
        Arc::new(Self { all: Arc::clone(all), used: AtomicUsize::new(0) })
    }

    fn is_below(&self, part: usize) -> bool {
        let Memory { most, most_each, used } = &*self.all;
        self.used.load(Relaxed) < most_each / part && used.load(Relaxed) < most / part
    }

    /// Whether one thing more may be retained. Callers that check and then charge may exceed the
    /// limits by as much as is requested at the same time.
    pub fn has_room(&self) -> bool {
        let has_room = self.is_below(1);
        if !has_room {
            Limit::Nfs4State.count();
        }
        has_room
    }

    /// Whether there is room for optional things, which no client has requested to be retained.
    pub fn has_plenty(&self) -> bool {
        self.is_below(2)
    }

    /// So much more is in use.
    pub fn charge(&self, bytes: usize) {
        self.used.fetch_add(bytes, Relaxed);
        self.all.used.fetch_add(bytes, Relaxed);
    }

    /// So much is not in use any more.
    pub fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Relaxed);
        self.all.used.fetch_sub(bytes, Relaxed);
    }
}

/// What one client has of its part; given back when it is dropped.
#[derive(Debug)]
pub struct MemoryUse {
    part: Arc<MemoryPart>,
    bytes: usize,
}

impl MemoryUse {
    /// Nothing yet.
    pub fn new(part: Arc<MemoryPart>) -> Self {
        Self { part, bytes: 0 }
    }

    /// As [`MemoryPart::has_room`].
    pub fn has_room(&self) -> bool {
        self.part.has_room()
    }

    /// So much more is in use.
    pub fn charge(&mut self, bytes: usize) {
        self.part.charge(bytes);
        self.bytes += bytes;
    }

    /// So much is not in use any more.
    pub fn give(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.part.give(bytes);
        self.bytes -= bytes;
    }
}

impl Drop for MemoryUse {
    fn drop(&mut self) {
        self.part.give(self.bytes);
    }
}

#[cfg(test)]
mod tests;
