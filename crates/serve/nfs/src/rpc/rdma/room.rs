//! What a connection waits for when it has found no room: what gives that back wakes it.

use std::sync::Arc;
use std::task::{Context, Poll};

use engine::transport::budget::{Need, NextRoom};
use verbs::limit::{ByteLimit, NextBytes};

use super::super::core::Core;

/// What has found no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// It has its own part, or waits for a place on the pool: what ends then wakes it in any case.
    Own,
    /// Bytes of the part of its address.
    OfAddress(usize),
    /// Bytes of memory to be registered.
    Registered(usize),
    /// An operation with this number of bytes in the budget of its core.
    Operation(usize),
}

/// One for each step of a turn that needs room.
#[derive(Default)]
pub(super) struct Stalls<T> {
    /// For calls of which a part is still to be read.
    pub(super) reads: T,
    /// For calls to be executed.
    pub(super) answers: T,
    /// For replies.
    pub(super) replies: T,
}

/// The limits over several connections that it is within.
#[derive(Clone)]
pub(super) struct Shared {
    /// Bytes for data of all connections of its address.
    pub(super) of_address: Arc<ByteLimit>,
    /// Memory that is registered.
    pub(super) registered: Arc<ByteLimit>,
}

/// A wait for room, which lasts over turns, with its place in the line.
#[derive(Default)]
pub(super) struct BudgetWait {
    bytes: NextBytes,
    operation: NextRoom,
}

impl BudgetWait {
    /// Waits for this from now on.
    fn wait_for(&mut self, missing: Option<Missing>, core: &Core, shared: &Shared) {
        match missing {
            Some(Missing::OfAddress(bytes)) => self.bytes.wait_for(&shared.of_address, bytes),
            Some(Missing::Registered(bytes)) => self.bytes.wait_for(&shared.registered, bytes),
            _ => self.bytes.clear(),
        }
        match missing {
            Some(Missing::Operation(bytes)) => {
                self.operation.wait_for(&core.budget, Need::operation(bytes));
            }
            _ => self.operation.clear(),
        }
    }

    /// Ready once it has room.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.bytes.poll(cx).is_ready() || self.operation.poll(cx).is_ready() {
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

impl Stalls<BudgetWait> {
    /// Waits from now on for what each step has missed.
    pub(super) fn wait_for(
        &mut self,
        missing: &Stalls<Option<Missing>>,
        core: &Core,
        shared: &Shared,
    ) {
        self.reads.wait_for(missing.reads, core, shared);
        self.answers.wait_for(missing.answers, core, shared);
        self.replies.wait_for(missing.replies, core, shared);
    }

    /// Ready once one of them has room.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self { reads, answers, replies } = self;
        let ready = [reads, answers, replies].map(|wait| wait.poll(cx).is_ready());
        if ready.contains(&true) { Poll::Ready(()) } else { Poll::Pending }
    }
}
