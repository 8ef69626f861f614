//! The grace period (RFC 8881 §8.4.2): which clients may reclaim, and when it ends.

use std::collections::HashMap;

use thiserror::Error;

/// A client by what it calls itself, and whether it speaks 4.1 or later.
pub type Name = (bool, Vec<u8>);

/// The recorded identity of a client: its own name, and its principal. No client may reclaim under
/// the name of another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// What it calls itself.
    pub name: Name,
    /// The user that it authenticates as.
    pub principal: u32,
}

/// A record of a client could not be written or removed: an error of the machine, reported where it
/// occurred.
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
    /// [`NotWritten`]: what it held must not be granted to others.
    fn forget(&self, client: &Identity) -> Result<(), NotWritten>;

    /// The grace period is over: the records of clients that have not reclaimed are removed.
    ///
    /// # Errors
    /// [`NotWritten`]: the grace period must continue.
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
    /// The clients that held state before the start, and whether each has sent RECLAIM_COMPLETE.
    known: HashMap<Identity, bool>,
}

impl Grace {
    /// Lasts until `until_ns` for the clients in `known`; without any there is none.
    pub fn new(until_ns: u64, known: Vec<Identity>) -> Self {
        let over = known.is_empty();
        Self { until_ns, over, known: known.into_iter().map(|client| (client, false)).collect() }
    }

    /// Whether it can be ended: its time is over, or all are done. It is on until it is ended,
    /// because its end must be recorded first.
    pub fn is_due(&self, now_ns: u64) -> bool {
        !self.over && (now_ns >= self.until_ns || self.known.values().all(|done| *done))
    }

    /// It has ended.
    pub fn end(&mut self) {
        self.over = true;
    }

    /// Whether this client may reclaim: it held state, and has not sent RECLAIM_COMPLETE.
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
