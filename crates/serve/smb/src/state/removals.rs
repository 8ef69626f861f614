//! What is removed when the last open of it ends.

use std::mem::take;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;
use vfs::locks::Location;

use super::opens::ParkedOpen;
use files::{Caller, Node};

/// What it takes to remove a file at its last close.
pub(crate) struct Removal {
    /// The caller.
    pub who: Caller,
    /// The file.
    pub node: Node,
}

/// What is left to be removed by an open that has no connection: a parked one denies to others what
/// it did until then.
pub(crate) struct PendingRemoval {
    /// What is to be removed, and where.
    pub removal: (Removal, Location),
    /// The open, if it was parked.
    pub _open: Option<ParkedOpen>,
}

/// All of that.
#[derive(Default)]
pub(crate) struct Removals {
    queue: Mutex<Vec<PendingRemoval>>,
    /// There is another one.
    pub has_come: Notify,
}

impl Removals {
    /// Adds one.
    pub fn push(&self, leaving: PendingRemoval) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push(leaving);
        self.has_come.notify_one();
    }

    /// Takes all of them out.
    pub fn take(&self) -> Vec<PendingRemoval> {
        take(&mut *self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
