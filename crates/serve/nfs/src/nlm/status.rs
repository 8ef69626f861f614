//! The only table from the file contract's errors to those of NLM.

use vfs::status::Status;
use wire::nlm4::Nlm4Stat;

/// Why an operation is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The status of the reply.
    Stat(Nlm4Stat),
    /// It must be done where it may block; nothing was changed.
    WouldBlock,
}

impl From<Nlm4Stat> for Refusal {
    fn from(stat: Nlm4Stat) -> Self {
        Self::Stat(stat)
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        match status {
            Status::WouldBlock => Self::WouldBlock,
            other => Self::Stat(nlm4_stat(other)),
        }
    }
}

/// The status (`nlm4_stats`) for a failed operation on a file.
pub(super) fn nlm4_stat(status: Status) -> Nlm4Stat {
    match status {
        Status::Stale | Status::BadHandle => Nlm4Stat::STALE_FH,
        Status::ReadOnly => Nlm4Stat::ROFS,
        Status::TooLarge => Nlm4Stat::FBIG,
        // The only status after which clients retry automatically.
        Status::Busy | Status::WouldBlock => Nlm4Stat::DENIED_GRACE_PERIOD,
        _ => Nlm4Stat::FAILED,
    }
}
