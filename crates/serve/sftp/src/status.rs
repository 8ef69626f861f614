//! From a status of the file contract to one of SFTP: the one table.

use std::borrow::Cow;

use vfs::status::Status;
use wire::sftp::StatusCode;

/// Why a request failed, as the client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The number.
    pub code: StatusCode,
    /// What it means here.
    pub message: Cow<'static, str>,
}

/// Outcome of a request.
pub(super) type Result<T> = std::result::Result<T, Refusal>;

impl Refusal {
    /// No more data, no more names.
    pub const EOF: Self = Self { code: StatusCode::EOF, message: Cow::Borrowed("End of file") };
    /// A handle that is none, or not of this kind.
    pub const HANDLE: Self =
        Self { code: StatusCode::FAILURE, message: Cow::Borrowed("No such handle") };

    /// SSH_FX_FAILURE, and why.
    pub const fn failure(why: &'static str) -> Self {
        Self { code: StatusCode::FAILURE, message: Cow::Borrowed(why) }
    }

    /// SSH_FX_BAD_MESSAGE, and why.
    pub const fn bad(why: &'static str) -> Self {
        Self { code: StatusCode::BAD_MESSAGE, message: Cow::Borrowed(why) }
    }
}

/// The number for a status. As OpenSSH has it where that knows the same.
fn code(status: Status) -> StatusCode {
    match status {
        Status::NotFound | Status::Stale | Status::NotDirectory => StatusCode::NO_SUCH_FILE,
        Status::NotOwner | Status::Access | Status::ReadOnly => StatusCode::PERMISSION_DENIED,
        Status::Invalid | Status::NameTooLong => StatusCode::BAD_MESSAGE,
        Status::NotSupported | Status::BadType => StatusCode::OP_UNSUPPORTED,
        Status::WouldBlock
        | Status::Io
        | Status::Exists
        | Status::CrossDevice
        | Status::IsDirectory
        | Status::TooLarge
        | Status::NoSpace
        | Status::TooManyLinks
        | Status::Loop
        | Status::NotEmpty
        | Status::Quota
        | Status::BadHandle
        | Status::NotSync
        | Status::BadCookie
        | Status::TooSmall
        | Status::Busy
        | Status::InUse
        | Status::Fault => StatusCode::FAILURE,
    }
}

/// The texts as users and programs know them from OpenSSH: capitalised.
fn sentence(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self { code: code(status), message: Cow::Owned(sentence(&status.to_string())) }
    }
}

impl From<files::path::PathError> for Refusal {
    fn from(error: files::path::PathError) -> Self {
        Status::from(error).into()
    }
}
