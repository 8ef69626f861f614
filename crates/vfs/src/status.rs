//! The one list of ways a file operation fails. Each protocol folder translates it in one table.

use thiserror::Error;

/// Outcome of a file operation.
pub type Result<T> = std::result::Result<T, Status>;

/// Why an operation did not succeed. `WouldBlock` is the only one that a client never sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum Status {
    /// An inline attempt would have had to wait; nothing was changed. Try again on the pool.
    #[error("would block")]
    WouldBlock,
    /// The caller is not the owner and not privileged (EPERM).
    #[error("operation not permitted")]
    NotOwner,
    /// The caller's rights do not reach (EACCES).
    #[error("permission denied")]
    Access,
    /// No such name (ENOENT).
    #[error("no such file or directory")]
    NotFound,
    /// The device failed (EIO).
    #[error("input/output error")]
    Io,
    /// The name exists (EEXIST).
    #[error("file exists")]
    Exists,
    /// Rename or link across file systems (EXDEV).
    #[error("crosses file systems")]
    CrossDevice,
    /// Not a directory (ENOTDIR).
    #[error("not a directory")]
    NotDirectory,
    /// Is a directory (EISDIR).
    #[error("is a directory")]
    IsDirectory,
    /// The request itself is invalid (EINVAL).
    #[error("invalid argument")]
    Invalid,
    /// Larger than the file system or the caller's limit allows (EFBIG).
    #[error("file too large")]
    TooLarge,
    /// The file system is full (ENOSPC).
    #[error("no space left")]
    NoSpace,
    /// The share or the file system is read-only (EROFS).
    #[error("read-only file system")]
    ReadOnly,
    /// Too many links (EMLINK).
    #[error("too many links")]
    TooManyLinks,
    /// The name is longer than the file system takes (ENAMETOOLONG).
    #[error("name too long")]
    NameTooLong,
    /// More symbolic links than a path may lead through, or links in a circle (ELOOP).
    #[error("too many levels of symbolic links")]
    Loop,
    /// The directory has entries (ENOTEMPTY).
    #[error("directory not empty")]
    NotEmpty,
    /// Over quota (EDQUOT).
    #[error("quota exceeded")]
    Quota,
    /// The handle names a file that is gone or has left the share (ESTALE).
    #[error("stale handle")]
    Stale,
    /// The handle is not a Plimsoll handle: wrong length, version or MAC.
    #[error("bad handle")]
    BadHandle,
    /// A guarded change found the file changed meanwhile (NFS3ERR_NOT_SYNC).
    #[error("attributes changed meanwhile")]
    NotSync,
    /// A directory cookie that is not valid any more.
    #[error("bad cookie")]
    BadCookie,
    /// The file system cannot do this at all (EOPNOTSUPP).
    #[error("not supported")]
    NotSupported,
    /// A READDIR reply has no room for even one entry.
    #[error("too small")]
    TooSmall,
    /// A file type that cannot be made here (NFS3ERR_BADTYPE).
    #[error("bad type")]
    BadType,
    /// A budget of the server is used up; the client should retry (NFS3ERR_JUKEBOX).
    #[error("busy, try again")]
    Busy,
    /// A lock or open of another client keeps the file as it is, or the kernel reports that it is
    /// in use (EBUSY, ETXTBSY): a retry helps only when that has ended (NFS4ERR_FILE_OPEN).
    #[error("in use by another client")]
    InUse,
    /// Our own fault.
    #[error("server fault")]
    Fault,
}

impl Status {
    /// The status for an errno of the host.
    pub fn from_errno(errno: i32) -> Self {
        match errno {
            libc::EPERM => Self::NotOwner,
            libc::EACCES => Self::Access,
            libc::ENOENT => Self::NotFound,
            libc::EEXIST => Self::Exists,
            libc::EXDEV => Self::CrossDevice,
            libc::ENOTDIR => Self::NotDirectory,
            libc::EISDIR => Self::IsDirectory,
            libc::EINVAL => Self::Invalid,
            libc::EFBIG => Self::TooLarge,
            libc::ENOSPC => Self::NoSpace,
            libc::EROFS => Self::ReadOnly,
            libc::EMLINK => Self::TooManyLinks,
            libc::ENAMETOOLONG => Self::NameTooLong,
            libc::ELOOP => Self::Loop,
            libc::ENOTEMPTY => Self::NotEmpty,
            libc::EDQUOT => Self::Quota,
            libc::ESTALE => Self::Stale,
            libc::EAGAIN => Self::WouldBlock,
            libc::EOPNOTSUPP | libc::ENOSYS => Self::NotSupported,
            libc::EBUSY | libc::ETXTBSY => Self::InUse,
            libc::EMFILE | libc::ENFILE | libc::ENOMEM => Self::Busy,
            _ => Self::Io,
        }
    }
}

impl Status {
    /// The errno by which programs know it.
    pub const fn errno(self) -> i32 {
        match self {
            Self::NotOwner => libc::EPERM,
            Self::Access => libc::EACCES,
            Self::NotFound => libc::ENOENT,
            Self::Exists => libc::EEXIST,
            Self::CrossDevice => libc::EXDEV,
            Self::NotDirectory => libc::ENOTDIR,
            Self::IsDirectory => libc::EISDIR,
            Self::Invalid | Self::BadType | Self::TooSmall => libc::EINVAL,
            Self::TooLarge => libc::EFBIG,
            Self::NoSpace => libc::ENOSPC,
            Self::ReadOnly => libc::EROFS,
            Self::TooManyLinks => libc::EMLINK,
            Self::NameTooLong => libc::ENAMETOOLONG,
            Self::Loop => libc::ELOOP,
            Self::NotEmpty => libc::ENOTEMPTY,
            Self::Quota => libc::EDQUOT,
            Self::Stale | Self::BadHandle | Self::NotSync | Self::BadCookie => libc::ESTALE,
            Self::WouldBlock => libc::EAGAIN,
            Self::NotSupported => libc::EOPNOTSUPP,
            Self::Busy | Self::InUse => libc::EBUSY,
            Self::Io | Self::Fault => libc::EIO,
        }
    }
}

impl From<std::io::Error> for Status {
    fn from(error: std::io::Error) -> Self {
        error.raw_os_error().map_or(Self::Io, Self::from_errno)
    }
}
