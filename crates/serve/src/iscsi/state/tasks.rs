//! Tasks that have not ended, and what becomes of them when somebody aborts them (SAM-5 §7).
//!
//! A task is aborted by a [`Verdict`]. One that has not begun never does, then; one that runs is
//! waited for, since only its end says that it has no further effect.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;
use vfs::lun::reservations::Port;

/// What the initiator hears of a task that was aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: it has asked for that itself.
    Silent = 1,
    /// TASK ABORTED: somebody else did it (TAS is set in the control mode page).
    Told = 2,
}

/// Bits of a mark's state: a verdict, and how far the task is.
const VERDICT: u8 = 3;
const RUNNING: u8 = 4;
const DONE: u8 = 8;

/// A task that may be aborted from elsewhere.
#[derive(Debug)]
pub struct Mark {
    /// Whose it is.
    pub port: Port,
    /// Its initiator task tag.
    pub tag: u32,
    state: AtomicU8,
    /// Tells its connection to look.
    wake: Arc<Notify>,
}

impl Mark {
    /// Of a task that has not begun, whose connection listens to `wake`.
    pub fn new(port: Port, tag: u32, wake: &Arc<Notify>) -> Arc<Self> {
        Arc::new(Self { port, tag, state: AtomicU8::new(0), wake: Arc::clone(wake) })
    }

    /// Passes a verdict, unless there is one or the task has ended; whether it certainly has no
    /// further effect.
    pub fn judge(&self, verdict: Verdict) -> bool {
        let judged = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
            (state & (VERDICT | DONE) == 0).then_some(state | verdict as u8)
        });
        self.wake.notify_one();
        let (Ok(before) | Err(before)) = judged;
        before & RUNNING == 0 || before & DONE != 0
    }

    /// The task begins; false if it must not.
    pub fn begin(&self) -> bool {
        let begun = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
            (state & VERDICT == 0).then_some(state | RUNNING)
        });
        begun.is_ok()
    }

    /// The task has ended.
    pub fn end(&self) {
        self.state.fetch_or(DONE, Ordering::AcqRel);
    }

    /// Whether it can have no further effect: it has ended, or was aborted before it began.
    pub fn is_over(&self) -> bool {
        let state = self.state.load(Ordering::Acquire);
        state & DONE != 0 || (state & VERDICT != 0 && state & RUNNING == 0)
    }

    /// The verdict.
    pub fn verdict(&self) -> Option<Verdict> {
        match self.state.load(Ordering::Acquire) & VERDICT {
            0 => None,
            1 => Some(Verdict::Silent),
            _ => Some(Verdict::Told),
        }
    }
}

#[cfg(test)]
mod tests;
