//! Bytes to be sent in the hands of a library that does not report when they have left, as the
//! implementation of HTTP/2 does: they are in the account from before they are made until they are
//! dropped, and a connection has a limit on them.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;
use tokio::sync::Notify;

use super::budget::{CoreBudget, Need, ReturnedBytes};

/// What one connection has to send.
pub struct Outgoing {
    budget: Rc<CoreBudget>,
    max: usize,
    shared: Arc<Shared>,
}

struct Shared {
    held: AtomicUsize,
    /// Some of it has left.
    left: Notify,
    returned: ReturnedBytes,
}

impl Outgoing {
    /// Nothing yet, and no more than `max` bytes at once.
    pub fn new(budget: &Rc<CoreBudget>, max: usize) -> Self {
        let (held, left, returned) = (AtomicUsize::new(0), Notify::new(), budget.returned());
        let shared = Arc::new(Shared { held, left, returned });
        Self { budget: Rc::clone(budget), max, shared }
    }

    /// One response of it.
    pub fn part(self: &Rc<Self>) -> OutgoingPart {
        OutgoingPart { whole: Rc::clone(self), held: Arc::default() }
    }
}

/// What one response has to send.
pub struct OutgoingPart {
    whole: Rc<Outgoing>,
    held: Arc<AtomicUsize>,
}

impl OutgoingPart {
    /// Waits until the connection and the account have room for `n` bytes, and takes it. What is
    /// larger than the connection's limit gets room as soon as it has nothing else.
    pub async fn hold(&self, n: usize) -> ByteReservation {
        let Outgoing { budget, max, shared } = &*self.whole;
        loop {
            let left = shared.left.notified();
            let held = shared.held.load(Relaxed);
            if held > 0 && held + n > *max {
                left.await;
            } else {
                let room = n.min(*max);
                let take = || budget.has_bytes(room).then(|| budget.take_bytes(n));
                // Without `patience` it ends with room only.
                let _ = budget.room(None, Need::bytes(room), take).await;
                shared.held.fetch_add(n, Relaxed);
                self.held.fetch_add(n, Relaxed);
                let (shared, part) = (Arc::clone(shared), Arc::clone(&self.held));
                return ByteReservation { shared, part, bytes: n };
            }
        }
    }

    /// Waits until all of it has left.
    pub async fn left(&self) {
        loop {
            let left = self.whole.shared.left.notified();
            if self.held.load(Relaxed) == 0 {
                return;
            }
            left.await;
        }
    }
}

/// Room for some bytes, given back when dropped, on whatever thread.
pub struct ByteReservation {
    shared: Arc<Shared>,
    part: Arc<AtomicUsize>,
    bytes: usize,
}

impl ByteReservation {
    /// The bytes that it was taken for; it is given back when the last of them is dropped.
    pub fn fill(self, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(Filled { bytes, _room: self })
    }
}

impl Drop for ByteReservation {
    fn drop(&mut self) {
        self.part.fetch_sub(self.bytes, Relaxed);
        self.shared.held.fetch_sub(self.bytes, Relaxed);
        self.shared.returned.give(self.bytes);
        self.shared.left.notify_waiters();
    }
}

struct Filled {
    bytes: Vec<u8>,
    _room: ByteReservation,
}

impl AsRef<[u8]> for Filled {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests;
