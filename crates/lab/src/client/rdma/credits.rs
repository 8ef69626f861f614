//! How many calls may be in flight (RFC 8166 §3.3).

use base::limits::RDMA_CREDITS_MAX;

/// The credits that the server has granted, and those in use.
#[derive(Debug)]
pub(super) struct Credits {
    /// Threads of the load: more is never needed.
    slots: u32,
    granted: u32,
    in_use: u32,
}

impl Credits {
    /// For `slots` slots.
    pub(super) fn new(slots: u32) -> Self {
        // RFC 8166 §3.3.1: one, until the first reply grants more.
        Self { slots, granted: 1, in_use: 0 }
    }

    /// What is asked for with each call; each of them has a posted receive.
    pub(super) fn requested(&self) -> u32 {
        self.slots.clamp(1, RDMA_CREDITS_MAX)
    }

    /// Whether one more call may be sent.
    pub(super) fn are_left(&self) -> bool {
        self.in_use < self.granted
    }

    /// Whether no call is in flight.
    pub(super) fn are_all_left(&self) -> bool {
        self.in_use == 0
    }

    /// A call is sent.
    pub(super) fn take(&mut self) {
        self.in_use += 1;
    }

    /// A reply has come that grants `granted` credits. False if it grants none, which it may not.
    #[must_use]
    pub(super) fn give(&mut self, granted: u32) -> bool {
        self.in_use = self.in_use.saturating_sub(1);
        self.granted = granted.min(self.requested());
        granted > 0
    }

    /// Calls at once, if the server has granted fewer than there are slots.
    pub(super) fn fewer(&self) -> Option<u32> {
        (self.granted < self.slots).then_some(self.granted)
    }
}
