//! The only table from the file contract's errors to those of NFSv4.

use vfs::status::Status;
use wire::nfs4::{Nfsstat4, Opnum4};

/// The error of 4.1 and later versions where 4.0 has NFS4ERR_RESOURCE, which they lack: one that
/// RFC 8881 §15.2 allows for the operation. For OPEN the request fails for good; for locks there is
/// only the request to retry.
pub const fn exhausted(op: Opnum4) -> Nfsstat4 {
    match op {
        Opnum4::OPEN => Nfsstat4::NOSPC,
        _ => Nfsstat4::DELAY,
    }
}

/// The NFSv4 error (RFC 8881 §15.1) for a failed operation.
pub fn nfsstat4(status: Status) -> Nfsstat4 {
    match status {
        Status::NotOwner => Nfsstat4::PERM,
        Status::Access => Nfsstat4::ACCESS,
        Status::NotFound => Nfsstat4::NOENT,
        Status::Io => Nfsstat4::IO,
        Status::Exists => Nfsstat4::EXIST,
        Status::CrossDevice => Nfsstat4::XDEV,
        Status::NotDirectory => Nfsstat4::NOTDIR,
        Status::IsDirectory => Nfsstat4::ISDIR,
        // Clients follow links themselves (RFC 8881 §18.24); a host's own error of it is this one.
        Status::Invalid | Status::Loop => Nfsstat4::INVAL,
        Status::TooLarge => Nfsstat4::FBIG,
        Status::NoSpace => Nfsstat4::NOSPC,
        Status::ReadOnly => Nfsstat4::ROFS,
        Status::TooManyLinks => Nfsstat4::MLINK,
        Status::NameTooLong => Nfsstat4::NAMETOOLONG,
        Status::NotEmpty => Nfsstat4::NOTEMPTY,
        Status::Quota => Nfsstat4::DQUOT,
        Status::Stale => Nfsstat4::STALE,
        Status::BadHandle => Nfsstat4::BADHANDLE,
        Status::BadCookie => Nfsstat4::BAD_COOKIE,
        Status::NotSupported => Nfsstat4::NOTSUPP,
        Status::TooSmall => Nfsstat4::TOOSMALL,
        Status::BadType => Nfsstat4::BADTYPE,
        // The last is never seen by a client unless a back end blocks where it may block; the first
        // is the status of a failed guard, which version 4 does not have.
        Status::NotSync | Status::Busy | Status::WouldBlock => Nfsstat4::DELAY,
        // RFC 8881 §18.25.4, §18.26.4.
        Status::InUse => Nfsstat4::FILE_OPEN,
        Status::Fault => Nfsstat4::SERVERFAULT,
    }
}

#[cfg(test)]
pub(super) mod tests;
