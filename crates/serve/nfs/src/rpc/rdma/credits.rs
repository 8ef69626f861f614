//! How many calls may be in flight, in each direction (RFC 8166 §3.3, RFC 8167 §4).

use base::limits::{RDMA_BACK_CREDITS, RDMA_CREDITS_MAX};

/// The client's calls. It is granted what it requests, never more than there are posted receives,
/// and never none: with none granted it could not request more.
#[derive(Debug)]
pub(super) struct Credits {
    /// Calls for which receives are posted.
    posted: u32,
    granted: u32,
    in_use: u32,
}

/// The client has more calls in flight than it was granted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exceeded;

impl Credits {
    /// With this number of posted receives.
    pub(super) fn new(posted: u32) -> Self {
        // Before the first reply a client may have one call in flight, but requests credits only
        // with it; Linux sends more when it reconnects, as many as it had.
        Self { posted, granted: posted, in_use: 0 }
    }

    /// A call has arrived that requests this number of credits.
    ///
    /// # Errors
    /// When there are more than were granted.
    pub(super) fn take(&mut self, asked: u32) -> Result<(), Exceeded> {
        if self.in_use >= self.granted {
            return Err(Exceeded);
        }
        self.in_use += 1;
        let wanted = asked.clamp(1, self.posted.min(RDMA_CREDITS_MAX));
        // A grant that was given holds for calls that are on their way.
        self.granted = wanted.max(self.in_use);
        Ok(())
    }

    /// A reply leaves.
    pub(super) fn give(&mut self) {
        self.in_use = self.in_use.saturating_sub(1);
    }

    /// The credits in a reply.
    pub(super) fn granted(&self) -> u32 {
        self.granted
    }

    /// Calls in flight.
    pub(super) fn in_use(&self) -> u32 {
        self.in_use
    }
}

/// Our calls.
#[derive(Debug)]
pub(super) struct BackCredits {
    granted: u32,
    in_use: u32,
}

impl Default for BackCredits {
    fn default() -> Self {
        // RFC 8166 §3.3.1: one, until the first reply grants more.
        Self { granted: 1, in_use: 0 }
    }
}

impl BackCredits {
    /// Whether one more call may be sent; it is then in flight.
    pub(super) fn take(&mut self) -> bool {
        let may = self.in_use < self.granted;
        self.in_use += u32::from(may);
        may
    }

    /// A reply has arrived that grants this number of credits.
    pub(super) fn give(&mut self, granted: u32) {
        self.in_use = self.in_use.saturating_sub(1);
        self.granted = granted.clamp(1, RDMA_BACK_CREDITS);
    }
}

#[cfg(test)]
mod tests;
