//! The grace period (RFC 8881 §8.4.2): who may reclaim, and when it ends.

use std::collections::HashMap;

/// A client by what it calls itself, and whether it speaks 4.1 or later.
pub type Name = (bool, Vec<u8>);

/// Durable records of the clients that hold state.
pub trait Records: Send + Sync {
    /// A client has been confirmed, and may come to hold state.
    fn record(&self, name: &Name);
    /// A client is gone with all it held.
    fn forget(&self, name: &Name);
}

/// Records nothing: for tests, and a server that grants no grace.
pub struct NoRecords;

impl Records for NoRecords {
    fn record(&self, _: &Name) {}
    fn forget(&self, _: &Name) {}
}

/// The grace period after a start.
pub struct Grace {
    until_ns: u64,
    /// Who held state before the start, and whether it has said that it is done.
    known: HashMap<Name, bool>,
}

impl Grace {
    /// Lasts until `until_ns` for those `known`; with nobody to wait for there is none.
    pub fn new(until_ns: u64, known: Vec<Name>) -> Self {
        Self { until_ns, known: known.into_iter().map(|name| (name, false)).collect() }
    }

    /// Whether new state must wait (NFS4ERR_GRACE).
    pub fn is_on(&self, now_ns: u64) -> bool {
        now_ns < self.until_ns && self.known.values().any(|done| !done)
    }

    /// Whether this client may reclaim: it held state, and has not said RECLAIM_COMPLETE.
    pub fn may_reclaim(&self, name: &Name, now_ns: u64) -> bool {
        self.is_on(now_ns) && self.known.get(name) == Some(&false)
    }

    /// The client has reclaimed what it wanted; the last one's word ends the period.
    pub fn complete(&mut self, name: &Name) {
        if let Some(done) = self.known.get_mut(name) {
            *done = true;
        }
    }
}
