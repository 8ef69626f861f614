//! The grace period (RFC 8881 §8.4.2): who may reclaim, and when it ends.

use std::collections::HashMap;

use thiserror::Error;

/// A client by what it calls itself, and whether it speaks 4.1 or later.
pub type Name = (bool, Vec<u8>);

/// A client as it is written down: by its own name, and who it was to us. In another's name nobody
/// may reclaim.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// What it calls itself.
    pub name: Name,
    /// The user that it authenticates as.
    pub principal: u32,
}

/// A client could not be written down, or not be struck out: the machine's fault, told where it
/// happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the records of clients cannot be written")]
pub struct NotWritten;

/// Durable records of the clients that hold state. Calls write to disk and wait for it.
pub trait Records: Send + Sync {
    /// A client is about to hold state.
    ///
    /// # Errors
    /// [`NotWritten`]: it must not be given any.
    fn record(&self, client: &Identity) -> Result<(), NotWritten>;

    /// A client is gone with all it held.
    ///
    /// # Errors
    /// [`NotWritten`]: nobody may be given what it held.
    fn forget(&self, client: &Identity) -> Result<(), NotWritten>;

    /// The grace period is over: those who have not come back are forgotten.
    ///
    /// # Errors
    /// [`NotWritten`]: it must go on.
    fn end_of_grace(&self) -> Result<(), NotWritten>;
}

/// Records nothing: for tests, and a server that grants no grace.
pub struct NoRecords;

impl Records for NoRecords {
    fn record(&self, _: &Identity) -> Result<(), NotWritten> {
        Ok(())
    }
    fn forget(&self, _: &Identity) -> Result<(), NotWritten> {
        Ok(())
    }
    fn end_of_grace(&self) -> Result<(), NotWritten> {
        Ok(())
    }
}

/// The grace period after a start.
pub struct Grace {
    until_ns: u64,
    over: bool,
    /// Who held state before the start, and whether it has said that it is done.
    known: HashMap<Identity, bool>,
}

impl Grace {
    /// Lasts until `until_ns` for those `known`; with nobody to wait for there is none.
    pub fn new(until_ns: u64, known: Vec<Identity>) -> Self {
        let over = known.is_empty();
        Self { until_ns, over, known: known.into_iter().map(|client| (client, false)).collect() }
    }

    /// Whether it can be ended: its time is over, or all are done. It is on until it is ended,
    /// because the records must say so first.
    pub fn is_due(&self, now_ns: u64) -> bool {
        !self.over && (now_ns >= self.until_ns || self.known.values().all(|done| *done))
    }

    /// It has ended.
    pub fn end(&mut self) {
        self.over = true;
    }

    /// Whether this client may reclaim: it held state, and has not said RECLAIM_COMPLETE.
    pub fn may_reclaim(&self, client: &Identity) -> bool {
        !self.over && self.known.get(client) == Some(&false)
    }

    /// The client has reclaimed what it wanted; the last one's word lets the period end.
    pub fn complete(&mut self, client: &Identity) {
        if let Some(done) = self.known.get_mut(client) {
            *done = true;
        }
    }
}
