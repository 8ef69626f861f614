//! Why a run ends at the destination.

use crate::error::{SyncError, Why};
use crate::stop::Stop;

/// Why the run ends.
pub enum Failed {
    /// Found here.
    Run(SyncError),
    /// Reported already.
    Reported(Why),
}

impl Failed {
    /// Ends the run.
    pub fn stop(self, stop: &Stop) -> Why {
        match self {
            Self::Run(error) => stop.fail(error),
            Self::Reported(why) => why,
        }
    }
}

impl From<SyncError> for Failed {
    fn from(error: SyncError) -> Self {
        Self::Run(error)
    }
}

impl From<wire::xdr::DecodeError> for Failed {
    fn from(error: wire::xdr::DecodeError) -> Self {
        Self::Run(error.into())
    }
}

impl From<Why> for Failed {
    fn from(why: Why) -> Self {
        Self::Reported(why)
    }
}

pub(super) fn broken<R>(what: &'static str) -> Result<R, Failed> {
    Err(Failed::Run(SyncError::Broken(what)))
}
