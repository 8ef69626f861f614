//! How copies went that initiators have made.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::limits::ISCSI_COPIES_KEPT;
use vfs::lun::reservations::Port;
use wire::scsi::Sense;
use wire::scsi::copy::CopyStatus;

/// How copies went that initiators have made, the oldest first.
#[derive(Default)]
pub struct Copies {
    kept: Mutex<VecDeque<CopyRecord>>,
}

/// How one went.
pub(super) struct CopyRecord {
    pub(super) port: Port,
    pub(super) list_id: u8,
    pub(super) status: CopyStatus,
    pub(super) failed: Option<Sense>,
}

impl Copies {
    pub(super) fn kept(&self) -> MutexGuard<'_, VecDeque<CopyRecord>> {
        // Nothing under this lock panics half way through a change.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn keep(&self, one: CopyRecord) {
        let mut kept = self.kept();
        kept.retain(|had| (&had.port, had.list_id) != (&one.port, one.list_id));
        if kept.len() >= ISCSI_COPIES_KEPT {
            kept.pop_front();
        }
        kept.push_back(one);
    }
}
