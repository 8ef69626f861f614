//! Why a command does not end well.

use wire::scsi::{ScsiError, Sense, Status};

/// Why a command does not end well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fail {
    /// It would have to wait; nothing was changed.
    WouldBlock,
    /// CHECK CONDITION.
    Sense(Sense),
    /// Another status.
    Status(Status),
}

impl From<ScsiError> for Fail {
    fn from(error: ScsiError) -> Self {
        Self::Sense(error.sense())
    }
}

impl From<Sense> for Fail {
    fn from(sense: Sense) -> Self {
        Self::Sense(sense)
    }
}
