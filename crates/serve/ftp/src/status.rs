//! The one table from the ways an operation fails to replies (RFC 959 §4.2).

use vfs::status::Status;
use wire::ftp::Malformed;

use super::answer::Answer;
use engine::transport::send::SendError;
use files::Core;

/// Code and text for a status: 550 is about the file, 45x may be tried again.
const fn reply(status: Status) -> (u16, &'static str) {
    match status {
        Status::NotFound => (550, "No such file or directory."),
        Status::Access | Status::NotOwner => (550, "Permission denied."),
        Status::Exists => (550, "File exists."),
        Status::NotDirectory => (550, "Not a directory."),
        Status::IsDirectory => (550, "Is a directory."),
        Status::NotEmpty => (550, "The directory is not empty."),
        Status::ReadOnly => (550, "Permission denied: read-only."),
        Status::CrossDevice => (550, "Cannot move between shares; copy instead."),
        Status::NotSupported | Status::BadType => (550, "Not supported here."),
        Status::TooManyLinks => (550, "Too many links."),
        Status::Loop => (550, "Too many levels of symbolic links."),
        Status::Stale | Status::BadHandle | Status::BadCookie => (550, "It is gone."),
        Status::Invalid => (550, "Not a regular file, or not a name."),
        Status::NameTooLong => (553, "The name is too long."),
        Status::NoSpace => (452, "No space left."),
        Status::Quota | Status::TooLarge => (552, "Over quota, or too large."),
        Status::Busy | Status::InUse | Status::WouldBlock => (450, "In use; try again later."),
        Status::Io | Status::NotSync | Status::TooSmall | Status::Fault => (451, "Local error."),
    }
}

impl From<Status> for Answer {
    fn from(status: Status) -> Self {
        let (code, text) = reply(status);
        Self::of(code, text)
    }
}

impl From<Malformed> for Answer {
    fn from(error: Malformed) -> Self {
        let code = match error {
            Malformed::TooLong | Malformed::Unknown => 500,
            Malformed::NotOffered => 502,
            Malformed::Family => 522,
            Malformed::Parameter => 504,
            _ => 501,
        };
        Self::with(code, format!("{error}."))
    }
}

/// The reply after a complete transfer.
pub(super) const DONE: Answer = Answer::of(226, "Transfer complete.");

/// The reply after a failed data connection.
pub(super) fn lost(core: &Core, error: &SendError) -> Answer {
    if matches!(error, SendError::TooSlow) {
        core.engine.budgets.give_up();
    }
    match error {
        SendError::Shrunk => Answer::of(451, "The file was truncated during the transfer."),
        error => Answer::with(426, format!("The data connection broke: {error}.")),
    }
}

#[cfg(test)]
mod tests;
