//! What is to be seen of the storage of a unit, asked for so that a disk that does not answer holds
//! up nobody who looks, and one asker at most.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use base::limits::LUN_LOOK_TIME_MAX;
use vfs::lun::file::FileMedium;
use vfs::lun::{Medium, MediumStatus};

use super::bounded::within;

/// What was seen last.
#[derive(Default)]
pub struct Look {
    asks: AtomicBool,
    seen: Mutex<Option<MediumStatus>>,
}

impl Look {
    /// How the storage is, or was when it answered last, and whether it answers.
    pub fn at(self: &Arc<Self>, medium: &Arc<FileMedium>) -> (Option<MediumStatus>, bool) {
        if self.asks.swap(true, Ordering::AcqRel) {
            // Somebody waits for it already.
            return (self.seen(), false);
        }
        let (look, medium) = (Arc::clone(self), Arc::clone(medium));
        let answered = within(LUN_LOOK_TIME_MAX, move || {
            let status = medium.status();
            *look.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
            look.asks.store(false, Ordering::Release);
        });
        (self.seen(), answered.is_some())
    }

    fn seen(&self) -> Option<MediumStatus> {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
