//! The one table of errors.

use vfs::status::Status;
use wire::smb::codec::SmbError;
use wire::smb::status::NtStatus;

/// What a failed operation on files is called.
pub(super) fn of(status: Status) -> NtStatus {
    match status {
        Status::NotOwner | Status::Access => NtStatus::ACCESS_DENIED,
        Status::NotFound => NtStatus::OBJECT_NAME_NOT_FOUND,
        Status::Io => NtStatus::UNEXPECTED_IO_ERROR,
        Status::Exists => NtStatus::OBJECT_NAME_COLLISION,
        Status::CrossDevice => NtStatus::NOT_SAME_DEVICE,
        Status::NotDirectory => NtStatus::NOT_A_DIRECTORY,
        Status::IsDirectory => NtStatus::FILE_IS_A_DIRECTORY,
        Status::Invalid | Status::TooLarge => NtStatus::INVALID_PARAMETER,
        Status::NoSpace => NtStatus::DISK_FULL,
        Status::ReadOnly => NtStatus::MEDIA_WRITE_PROTECTED,
        Status::TooManyLinks => NtStatus::TOO_MANY_LINKS,
        Status::Loop => NtStatus::REPARSE_POINT_NOT_RESOLVED,
        Status::NameTooLong => NtStatus::OBJECT_NAME_INVALID,
        Status::NotEmpty => NtStatus::DIRECTORY_NOT_EMPTY,
        Status::Quota => NtStatus::QUOTA_EXCEEDED,
        Status::Stale | Status::BadHandle => NtStatus::FILE_CLOSED,
        Status::BadType | Status::NotSupported => NtStatus::NOT_SUPPORTED,
        Status::InUse => NtStatus::SHARING_VIOLATION,
        Status::Busy | Status::WouldBlock => NtStatus::INSUFFICIENT_RESOURCES,
        Status::NotSync | Status::BadCookie | Status::TooSmall | Status::Fault => {
            NtStatus::INTERNAL_ERROR
        }
    }
}

/// The same on the way to a file: what is missing, or is no directory, is not its last name.
pub(super) fn of_path(status: Status) -> NtStatus {
    match status {
        Status::NotFound | Status::NotDirectory => NtStatus::OBJECT_PATH_NOT_FOUND,
        status => of(status),
    }
}

/// What a request that cannot be read is answered with.
pub(super) fn of_wire(_: SmbError) -> NtStatus {
    NtStatus::INVALID_PARAMETER
}

/// A status in a record of the statistics, which has 16 bits: the severity in the two highest, the
/// code below; `schema/smb.toml` has their names.
pub fn recorded(status: NtStatus) -> u16 {
    ((status.0 >> 30) << 14 | status.0 & 0x3fff) as u16
}
