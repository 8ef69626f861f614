//! How slow a peer may be that moves data: fast enough on the whole, though it may pause.
//!
//! A peer has a purse of time. Each moment that we wait for it is taken from the purse; each byte
//! that it moves puts something in, up to what the purse holds. So one that stands still is
//! disconnected after the timeout, one that sends a byte a second not much later, and one that is
//! slow but keeps the least rate never. Time that the server itself takes does not count.

use std::time::Duration;

use base::clock::monotonic_ns;
use base::limits::{PEER_PATIENCE, PEER_RATE_MIN};

/// The purse of one direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlowPeerBudget {
    most: Duration,
    left: Duration,
}

impl Default for SlowPeerBudget {
    fn default() -> Self {
        Self::new(PEER_PATIENCE)
    }
}

impl SlowPeerBudget {
    /// A full purse that holds this much.
    pub fn new(patience: Duration) -> Self {
        Self { most: patience, left: patience }
    }

    /// How much longer the peer may be waited for; `None` if it is too slow.
    pub fn left(&self) -> Option<Duration> {
        Some(self.left).filter(|left| !left.is_zero())
    }

    /// As [`SlowPeerBudget::waited`], since a moment of [`monotonic_ns`].
    pub fn waited_since(&mut self, since_ns: u64, bytes: u64) {
        self.waited(Duration::from_nanos(monotonic_ns().saturating_sub(since_ns)), bytes);
    }

    /// The peer was waited for, and has moved `bytes` bytes meanwhile.
    pub fn waited(&mut self, time: Duration, bytes: u64) {
        let earned = Duration::from_nanos(bytes.saturating_mul(1_000_000_000 / PEER_RATE_MIN));
        self.left = self.left.saturating_add(earned).saturating_sub(time).min(self.most);
    }
}

#[cfg(test)]
mod tests;
