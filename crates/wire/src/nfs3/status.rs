//! `nfsstat3` (RFC 1813 §2.6).

xdr_enum! {
    /// How an operation went. Values that we do not know survive.
    pub enum Nfsstat3 {
        /// It succeeded.
        OK = 0 "NFS3_OK",
        /// Not the owner.
        PERM = 1 "NFS3ERR_PERM",
        /// No such file or directory.
        NOENT = 2 "NFS3ERR_NOENT",
        /// The disk failed.
        IO = 5 "NFS3ERR_IO",
        /// No such device.
        NXIO = 6 "NFS3ERR_NXIO",
        /// Permission denied.
        ACCES = 13 "NFS3ERR_ACCES",
        /// The name exists.
        EXIST = 17 "NFS3ERR_EXIST",
        /// Hard link across file systems.
        XDEV = 18 "NFS3ERR_XDEV",
        /// No such device.
        NODEV = 19 "NFS3ERR_NODEV",
        /// Not a directory.
        NOTDIR = 20 "NFS3ERR_NOTDIR",
        /// A directory.
        ISDIR = 21 "NFS3ERR_ISDIR",
        /// Invalid or unsupported argument.
        INVAL = 22 "NFS3ERR_INVAL",
        /// File too large.
        FBIG = 27 "NFS3ERR_FBIG",
        /// No space left.
        NOSPC = 28 "NFS3ERR_NOSPC",
        /// Read-only file system.
        ROFS = 30 "NFS3ERR_ROFS",
        /// Too many hard links.
        MLINK = 31 "NFS3ERR_MLINK",
        /// Name too long.
        NAMETOOLONG = 63 "NFS3ERR_NAMETOOLONG",
        /// Directory not empty.
        NOTEMPTY = 66 "NFS3ERR_NOTEMPTY",
        /// Quota exceeded.
        DQUOT = 69 "NFS3ERR_DQUOT",
        /// The handle's file is gone.
        STALE = 70 "NFS3ERR_STALE",
        /// Too many levels of remote in path.
        REMOTE = 71 "NFS3ERR_REMOTE",
        /// Not a handle of this server.
        BADHANDLE = 10001 "NFS3ERR_BADHANDLE",
        /// The guard of SETATTR did not match.
        NOT_SYNC = 10002 "NFS3ERR_NOT_SYNC",
        /// The cookie of READDIR is stale.
        BAD_COOKIE = 10003 "NFS3ERR_BAD_COOKIE",
        /// The operation is not supported.
        NOTSUPP = 10004 "NFS3ERR_NOTSUPP",
        /// Buffer or request too small.
        TOOSMALL = 10005 "NFS3ERR_TOOSMALL",
        /// An error of the server that no other value describes.
        SERVERFAULT = 10006 "NFS3ERR_SERVERFAULT",
        /// A type of object that the server does not support.
        BADTYPE = 10007 "NFS3ERR_BADTYPE",
        /// Come again later.
        JUKEBOX = 10008 "NFS3ERR_JUKEBOX",
    }
}

impl Nfsstat3 {
    /// Its name in RFC 1813; `NFS3ERR_unknown` if it has none.
    pub const fn name(self) -> &'static str {
        match self.known_name() {
            Some(name) => name,
            None => "NFS3ERR_unknown",
        }
    }

    /// Whether the operation succeeded.
    #[inline]
    pub const fn is_ok(self) -> bool {
        self.0 == Self::OK.0
    }
}
