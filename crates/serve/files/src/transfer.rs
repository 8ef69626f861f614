//! A transfer of a file from its request to its end: its entry in the transfer log. It is logged
//! once, when this is dropped, whatever ends it.
//!
//! The connection of a protocol reports what was moved and how it ended, as it does for the
//! statistics ([`super::measure`]); nothing here waits, and with the log off nothing is recorded.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

use base::clock::{stamp, wall_ns};
use vfs::status::Status;
pub use vfs::transfers::{Direction, Outcome, Scheme, Security};
use vfs::transfers::{Ended, Log};

use super::caller::Caller;
use super::core::Core;
use super::path::VPath;

/// The reason of an interrupted transfer without a more specific one.
const GONE: &str = "the connection ended";

/// A transfer in progress; empty if it is not logged.
#[derive(Default)]
pub struct Transfer(Option<Box<RunningTransfer>>);

struct RunningTransfer {
    log: Arc<dyn Log>,
    began_ns: u64,
    /// The smallest offset that was moved, from when something was.
    first: Cell<Option<u64>>,
    bytes: Cell<u64>,
    security: Cell<Option<Security>>,
    outcome: Cell<Option<Outcome>>,
    why: RefCell<Cow<'static, str>>,
    /// Not logged unless something is moved.
    silent: Cell<bool>,
    entry: Ended,
}

impl Core {
    /// Begins a transfer of the file at `path` for a caller.
    pub fn transfer(
        &self,
        who: &Caller,
        (protocol, direction): (Scheme, Direction),
        path: &VPath,
    ) -> Transfer {
        let log = &self.files.transfers;
        if !log.is_on() {
            return Transfer(None);
        }
        let entry = Ended {
            begun_ns: wall_ns(),
            took_ns: 0,
            protocol,
            direction,
            path: path.to_bytes(),
            person: Arc::clone(&who.person),
            client: who.peer.ip(),
            security: None,
            offset: 0,
            bytes: 0,
            outcome: Outcome::Cut,
            why: GONE.into(),
        };
        Transfer(Some(Box::new(RunningTransfer {
            log: Arc::clone(log),
            began_ns: stamp(),
            first: Cell::new(None),
            bytes: Cell::new(0),
            security: Cell::new(who.security),
            outcome: Cell::new(None),
            why: RefCell::default(),
            silent: Cell::new(false),
            entry,
        })))
    }
}

impl Transfer {
    /// Bytes of the file, at this offset, were sent, or written after they were received.
    pub fn moved(&self, offset: u64, count: usize) {
        let Some(going) = &self.0 else { return };
        let first = going.first.get().map_or(offset, |first| first.min(offset));
        going.first.set(Some(first));
        going.bytes.set(going.bytes.get().saturating_add(count as u64));
        going.silent.set(false);
    }

    /// It begins in the middle of the file, whether anything is moved or not.
    pub fn begins_at(&self, offset: u64) {
        if let Some(going) = &self.0 {
            going.first.set(Some(offset));
        }
    }

    /// Whether a range was reported as moved, even an empty one.
    pub fn has_moved(&self) -> bool {
        self.0.as_ref().is_some_and(|going| going.first.get().is_some())
    }

    /// How the data is protected, if it has a connection of its own.
    pub fn secured(&self, security: Option<Security>) {
        if let Some(going) = &self.0 {
            going.security.set(security);
        }
    }

    /// How it ended, and why; the first report counts.
    pub fn ends(&self, outcome: Outcome, why: impl Into<Cow<'static, str>>) {
        if let Some(going) = &self.0
            && going.outcome.get().is_none()
        {
            going.outcome.set(Some(outcome));
            *going.why.borrow_mut() = why.into();
        }
    }

    /// The requested data was moved completely.
    pub fn completes(&self) {
        self.ends(Outcome::Complete, "");
    }

    /// Not logged, unless something is moved from now on.
    pub fn keep_silent(&self) {
        if let Some(going) = &self.0 {
            going.silent.set(true);
        }
    }

    /// Passes a result on; an error is why it did not begin.
    ///
    /// # Errors
    /// That of the result.
    pub fn begins<T>(&self, begun: Result<T, Status>) -> Result<T, Status> {
        begun.inspect_err(|status| self.ends(Outcome::Refused, status.to_string()))
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        let Some(going) = self.0.take() else { return };
        let RunningTransfer {
            log,
            began_ns,
            first,
            bytes,
            security,
            outcome,
            why,
            silent,
            mut entry,
        } = *going;
        if silent.get() {
            return;
        }
        entry.took_ns = stamp().saturating_sub(began_ns);
        entry.offset = first.get().unwrap_or(0);
        entry.bytes = bytes.get();
        entry.security = security.get();
        if let Some(outcome) = outcome.get() {
            (entry.outcome, entry.why) = (outcome, why.into_inner());
        }
        log.ended(entry);
    }
}
