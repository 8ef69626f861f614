//! Tasks that have not ended, and how they end when they are aborted (SAM-5 §7).
//!
//! A task is aborted by a [`Verdict`]. One that has not begun never does, then, and its data is
//! freed at once, however long its disk is stuck; one that runs is waited for, since only its end
//! shows that it has no further effect.

use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use vfs::lun::reservations::Port;

use engine::exec::CancelToken;
use engine::transport::budget::SendReservedBytes;

/// What the initiator hears of a task that was aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: it has asked for that itself.
    Silent = 1,
    /// TASK ABORTED: another I_T nexus did it (TAS is set in the control mode page).
    TaskAborted = 2,
}

/// What a task takes with it to the pool.
#[derive(Debug)]
pub struct Payload {
    /// The data that it writes.
    pub data: Vec<u8>,
    /// Memory of that, or of what it will have read.
    pub held: SendReservedBytes,
}

/// A task that may be aborted from elsewhere.
#[derive(Debug)]
pub struct Mark {
    /// The initiator port of the task.
    pub port: Port,
    /// Its initiator task tag.
    pub tag: u32,
    token: CancelToken,
    /// A verdict as its number, or 0.
    verdict: AtomicU8,
    /// Of a task that waits for the pool.
    payload: Mutex<Option<Payload>>,
    /// Wakes its connection.
    wake: Arc<Notify>,
    /// Wakes what waits for its end.
    over: Notify,
}

impl Mark {
    /// Of a task that has not begun; its connection waits on `wake`.
    pub fn new(port: Port, tag: u32, wake: &Arc<Notify>) -> Arc<Self> {
        let (token, verdict) = (CancelToken::default(), AtomicU8::new(0));
        let (payload, wake) = (Mutex::default(), Arc::clone(wake));
        let over = Notify::new();
        Arc::new(Self { port, tag, token, verdict, payload, wake, over })
    }

    /// Whether it is of the session that listens to `wake`: an initiator may use one name and ISID
    /// at several targets, with a session at each (RFC 7143 §10.1.1).
    pub fn is_of(&self, wake: &Arc<Notify>) -> bool {
        Arc::ptr_eq(&self.wake, wake)
    }

    fn payload(&self) -> MutexGuard<'_, Option<Payload>> {
        // Nothing under this lock panics.
        self.payload.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the task its data, before it waits for the pool.
    pub fn load(&self, payload: Payload) {
        *self.payload() = Some(payload);
    }

    /// Takes the data when the task begins; none if it had none.
    pub fn take_payload(&self) -> Option<Payload> {
        self.payload().take()
    }

    /// Passes a verdict, unless there is one or the task has ended; whether it certainly has no
    /// further effect.
    pub fn judge(&self, verdict: Verdict) -> bool {
        if self.token.has_ended() {
            return true;
        }
        // The first verdict holds. It stands before the task is cancelled: one that hears that it
        // must not begin finds it.
        let first = (0, verdict as u8);
        let _ =
            self.verdict.compare_exchange(first.0, first.1, Ordering::AcqRel, Ordering::Acquire);
        let is_over = self.token.cancel();
        if is_over {
            // It never begins.
            drop(self.take_payload());
        }
        self.wake.notify_one();
        is_over
    }

    /// The task begins; false if it must not.
    pub fn begin(&self) -> bool {
        self.token.begin()
    }

    /// The task has ended.
    pub fn end(&self) {
        self.token.end();
        self.over.notify_waiters();
    }

    /// Waits until it can have no further effect. Its verdict was passed before: a task that has
    /// not begun by then is over already.
    pub async fn wait_over(&self) {
        loop {
            let mut over = pin!(self.over.notified());
            // An end from here on is heard.
            over.as_mut().enable();
            if self.is_over() {
                return;
            }
            over.await;
        }
    }

    /// Whether it can have no further effect: it has ended, or was aborted before it began.
    pub fn is_over(&self) -> bool {
        self.token.is_over()
    }

    /// The verdict.
    pub fn verdict(&self) -> Option<Verdict> {
        match self.verdict.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Verdict::Silent),
            _ => Some(Verdict::TaskAborted),
        }
    }
}

#[cfg(test)]
mod tests;
