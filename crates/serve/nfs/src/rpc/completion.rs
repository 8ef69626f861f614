//! Completions for a connection, and the repeats that wait for one.

use std::ops::Range;
use std::sync::Arc;

use probe::op::OpRecord;

use engine::exec::{CompletionQueue, Span};

/// What comes back to a connection; `held` bytes of its budget are free again.
#[derive(Debug)]
pub(super) enum Completion {
    /// A reply to send.
    Reply {
        /// Its message, with the room before it that the connection's framing wants.
        reply: Vec<u8>,
        /// Data in the message that a device may send apart from the rest, in order.
        items: Vec<Range<usize>>,
        /// Its operation.
        span: Span,
        /// Facts of its further operations.
        more: Vec<OpRecord>,
        /// Bytes of the budget.
        held: usize,
    },
    /// A call to the peer.
    Call {
        /// Its message.
        message: Vec<u8>,
    },
    /// There is no reply: the call that this one repeated failed or was abandoned. The client will
    /// repeat it.
    Nothing {
        /// The call's number.
        xid: u32,
        /// Bytes of the budget.
        held: usize,
    },
}

impl Completion {
    /// Bytes of the budget that are free again.
    pub(super) fn held(&self) -> usize {
        match self {
            Self::Reply { held, .. } | Self::Nothing { held, .. } => *held,
            Self::Call { .. } => 0,
        }
    }
}

/// A repeat that waits for the end of its call.
pub(super) struct Waiter {
    pub(super) queue: Arc<CompletionQueue<Completion>>,
    pub(super) span: Span,
    /// Room that its own connection's framing wants before the message.
    pub(super) headroom: usize,
}
