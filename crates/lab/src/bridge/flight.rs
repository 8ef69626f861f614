//! Packets in flight on a link: the earliest first, those of the same time in the order in which
//! they came.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use base::limits::{BRIDGE_FLIGHT_BYTES, BRIDGE_FLIGHT_PIECES};

struct Item<T> {
    due_ns: u64,
    number: u64,
    bytes: u64,
    what: T,
}

impl<T> Item<T> {
    fn key(&self) -> (u64, u64) {
        (self.due_ns, self.number)
    }
}

impl<T> PartialEq for Item<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Item<T> {}

impl<T> PartialOrd for Item<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Item<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// A bounded queue by time.
pub struct Flight<T> {
    heap: BinaryHeap<Reverse<Item<T>>>,
    number: u64,
    bytes: u64,
}

impl<T> Default for Flight<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), number: 0, bytes: 0 }
    }
}

impl<T> Flight<T> {
    /// Adds what is due then; `false` when there is no room ([`BRIDGE_FLIGHT_BYTES`],
    /// [`BRIDGE_FLIGHT_PIECES`]), and it was not.
    #[must_use]
    pub fn push(&mut self, due_ns: u64, bytes: u64, what: T) -> bool {
        if self.bytes + bytes > BRIDGE_FLIGHT_BYTES || self.heap.len() >= BRIDGE_FLIGHT_PIECES {
            return false;
        }
        self.bytes += bytes;
        self.heap.push(Reverse(Item { due_ns, number: self.number, bytes, what }));
        self.number += 1;
        true
    }

    /// When the next is due.
    pub fn next_due_ns(&self) -> Option<u64> {
        self.heap.peek().map(|item| item.0.due_ns)
    }

    /// The next that is due by now.
    pub fn pop(&mut self, now_ns: u64) -> Option<T> {
        if self.next_due_ns()? > now_ns {
            return None;
        }
        let Reverse(item) = self.heap.pop()?;
        self.bytes -= item.bytes;
        Some(item.what)
    }

    /// Bytes in flight.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
