//! The only table from the file contract's errors to those of NFSv3 and MOUNT.

use vfs::status::Status;
use wire::mount3::Mountstat3;
use wire::nfs3::Nfsstat3;

/// The NFSv3 error (RFC 1813 §2.6) for a failed operation.
pub(super) fn nfsstat3(status: Status) -> Nfsstat3 {
    match status {
        Status::NotOwner => Nfsstat3::PERM,
        // Version 3 has no other for it; JUKEBOX would have clients try until the lock ends.
        Status::Access | Status::InUse => Nfsstat3::ACCES,
        Status::NotFound => Nfsstat3::NOENT,
        Status::Io => Nfsstat3::IO,
        Status::Exists => Nfsstat3::EXIST,
        Status::CrossDevice => Nfsstat3::XDEV,
        Status::NotDirectory => Nfsstat3::NOTDIR,
        Status::IsDirectory => Nfsstat3::ISDIR,
        // Clients follow links themselves (RFC 1813 §3.3.5); a host's own error of it is this one.
        Status::Invalid | Status::Loop => Nfsstat3::INVAL,
        Status::TooLarge => Nfsstat3::FBIG,
        Status::NoSpace => Nfsstat3::NOSPC,
        Status::ReadOnly => Nfsstat3::ROFS,
        Status::TooManyLinks => Nfsstat3::MLINK,
        Status::NameTooLong => Nfsstat3::NAMETOOLONG,
        Status::NotEmpty => Nfsstat3::NOTEMPTY,
        Status::Quota => Nfsstat3::DQUOT,
        Status::Stale => Nfsstat3::STALE,
        Status::BadHandle => Nfsstat3::BADHANDLE,
        Status::NotSync => Nfsstat3::NOT_SYNC,
        Status::BadCookie => Nfsstat3::BAD_COOKIE,
        Status::NotSupported => Nfsstat3::NOTSUPP,
        Status::TooSmall => Nfsstat3::TOOSMALL,
        Status::BadType => Nfsstat3::BADTYPE,
        // The second is never seen by a client unless a back end blocks where it may block.
        Status::Busy | Status::WouldBlock => Nfsstat3::JUKEBOX,
        Status::Fault => Nfsstat3::SERVERFAULT,
    }
}

/// The MOUNT error (RFC 1813, appendix I) for a path that cannot be mounted.
pub(super) fn mountstat3(status: Status) -> Mountstat3 {
    match status {
        Status::NotOwner => Mountstat3::PERM,
        Status::Access => Mountstat3::ACCES,
        Status::NotFound | Status::Stale => Mountstat3::NOENT,
        Status::Io => Mountstat3::IO,
        Status::NotDirectory => Mountstat3::NOTDIR,
        Status::Invalid => Mountstat3::INVAL,
        Status::NameTooLong => Mountstat3::NAMETOOLONG,
        Status::NotSupported => Mountstat3::NOTSUPP,
        _ => Mountstat3::SERVERFAULT,
    }
}
