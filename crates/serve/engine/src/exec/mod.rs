//! The engine that executes every operation, whatever protocol it comes by.
//!
//! ```text
//!   message in (bytes, arrival stamp)          connection's core                    any thread
//!        │
//!        ▼               Done, Extent
//!   Engine::attempt ───────────────────────────────► reply out ── Core::finish ──► probe
//!        │ │ │                                            ▲
//!        │ │ └─ Suspended: its owner keeps it             │ drain
//!        │ │         │ the event comes            CompletionQueue ◄───────────────┐
//!        │ │         ▼                                                            │
//!        │ └─ WouldBlock ─► Core::reserve ─► Engine::submit ─► pool ──────────┐   │ complete
//!        │                  (no room: the connection is left unread)          ▼   │
//!        │                                                      Operation::run ───┤
//!        │                                                                │       │
//!        └─── Durable ───────────────────► Engine::flush ◄────────────────┘       │
//!                                                │              (a flush is needed)│
//!                                                ▼                                │
//!                                           flush group ─► Operation::flushed ────┘
//! ```
//!
//! A step that panics is contained where it runs ([`contain`]): the operation fails with the
//! protocol's own error ([`Operation::failed`]), it is counted, and its completion still comes.
//! What an operation holds (its request, and the bound of its reply, which its program declares) is
//! in the budget of its core from [`Core::take_up`] until its reply has left. An order of replies,
//! credits, or a window of commands is a protocol's own: the engine completes in any order.
//!
//! - [`engine`]: what tries, queues, flushes and completes. [`core`]: a service's state on one
//!   core. [`span`]: one record for each operation.
//! - [`completion`]: the way back to a connection. [`accept`]: takes connections, and drains them.
//! - [`timed`]: what the time of an operation went to that waits without blocking its thread.
//! - [`contain`]: a panic fails its own operation only. [`meter`]: a core's end of the probe.

pub mod accept;
pub mod completion;
pub mod contain;
pub mod core;
pub mod engine;
pub mod meter;
pub mod span;
pub mod timed;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use probe::phases::PhaseClock;
use vfs::fs::{Extent, Flush};
use vfs::status::Status;

pub use self::accept::ServiceCore;
pub use self::completion::CompletionQueue;
pub use self::core::Core;
pub use self::engine::Engine;
pub use self::span::Span;

/// What a step of an operation came to: the one state of every operation (see the drawing above).
/// `R` is what it resumes with, `F` is what must see how its flush ended, `E` is data that is sent
/// from where it is.
pub enum DispatchResult<R = Infallible, F = Infallible, E = Extent> {
    /// The reply is written and may leave.
    Done,
    /// The reply is written up to its data, which is sent from the page cache.
    Extent(E),
    /// It must run where it may block: resumed with this, or from its start. Nothing of the step
    /// that would have blocked was changed or written.
    WouldBlock(Option<R>),
    /// The reply is written; it may leave once this is on disk.
    Durable(Flush, Option<F>),
    /// It waits for an event other than the pool's or the flush group's. Its owner keeps it.
    Suspended,
}

/// Why an operation has no result of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// A step of it panicked; that is counted already.
    Panicked,
    /// Its owner cancelled it before it began.
    Cancelled,
}

/// An operation that has left its connection's thread. The engine owns it until [`complete`]; one
/// that is dropped without that (a panic in [`failed`]) must let its owner know by its `Drop`.
///
/// [`complete`]: Operation::complete
/// [`failed`]: Operation::failed
pub trait Operation: Send + Sized + 'static {
    /// Runs on a pool thread, where it may block. Returns what must be on disk before its reply may
    /// leave.
    fn run(&mut self) -> Option<Flush>;

    /// What its time went to; the engine puts in what it spends with it.
    fn clock(&mut self) -> &mut PhaseClock;

    /// What it waited for is on disk, or is not: the reply must say so.
    fn flushed(&mut self, outcome: Result<(), Status>);

    /// It has no result: the reply must say so.
    fn failed(&mut self, why: Failure);

    /// Whether it still begins, unless its owner has cancelled it ([`CancelToken::begin`]); asked
    /// on the pool thread, right before [`run`].
    ///
    /// [`run`]: Operation::run
    fn begins(&self) -> bool {
        true
    }

    /// Hands the result to its owner.
    fn complete(self);
}

/// Cancels an operation that waits for the pool: its owner keeps one, the operation has the other.
/// One that runs already is not interrupted, and has its effect; so cancelling returns which of
/// both it is.
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<AtomicU8>);

impl CancelToken {
    const CANCELLED: u8 = 1;
    const BEGUN: u8 = 2;
    const ENDED: u8 = 4;

    /// Cancels it; whether it certainly has no further effect: it never begins, or has ended.
    pub fn cancel(&self) -> bool {
        let before = self.0.fetch_or(Self::CANCELLED, Ordering::AcqRel);
        before & Self::BEGUN == 0 || before & Self::ENDED != 0
    }

    /// It begins; false if it was cancelled, and must not.
    pub fn begin(&self) -> bool {
        let begun = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
            (state & Self::CANCELLED == 0).then_some(state | Self::BEGUN)
        });
        begun.is_ok()
    }

    /// It has ended.
    pub fn end(&self) {
        self.0.fetch_or(Self::ENDED, Ordering::AcqRel);
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.0.load(Ordering::Acquire) & Self::ENDED != 0
    }

    /// Whether it can have no further effect: it has ended, or was cancelled before it began.
    pub fn is_over(&self) -> bool {
        let state = self.0.load(Ordering::Acquire);
        state & Self::ENDED != 0 || state & (Self::CANCELLED | Self::BEGUN) == Self::CANCELLED
    }
}

#[cfg(test)]
pub mod tests;
