//! The one table from errors of media to statuses and sense data of SCSI.

use vfs::status::Status as Failure;
use wire::scsi::{Asc, Sense, SenseKey, Status};

use super::scsi::Fail;

/// The sense data of a failure of the medium; `medium` is what it is called when the
/// device itself fails.
pub fn of(failure: Failure, medium: Asc) -> Fail {
    let sense = |key, asc| Fail::Sense(Sense::new(key, asc));
    match failure {
        Failure::WouldBlock => Fail::WouldBlock,
        Failure::NoSpace | Failure::Quota | Failure::TooLarge => {
            sense(SenseKey::DATA_PROTECT, Asc::SPACE_ALLOCATION_FAILED)
        }
        Failure::ReadOnly | Failure::Access | Failure::NotOwner => {
            sense(SenseKey::DATA_PROTECT, Asc::WRITE_PROTECTED)
        }
        Failure::Busy => Fail::Status(Status::TASK_SET_FULL),
        Failure::Fault => sense(SenseKey::HARDWARE_ERROR, Asc::INTERNAL_TARGET_FAILURE),
        _ => sense(SenseKey::MEDIUM_ERROR, medium),
    }
}

/// A status as statistics count it: the SCSI status, and with CHECK CONDITION the sense key in the
/// upper byte.
pub fn number(status: Status, sense: Option<&Sense>) -> u16 {
    u16::from(status.0) | sense.map_or(0, |sense| u16::from(sense.key.0)) << 8
}
