//! The program and its procedures (RFC 1813 §3.3), with the names that statistics use.

/// RPC program number of NFS.
pub const NFS_PROGRAM: u32 = 100_003;
/// This version of it.
pub const NFS_V3: u32 = 3;

xdr_enum! {
    /// A procedure number. The names are those of the statistics: `nfs3.ops[op=read]`.
    pub enum Proc {
        /// Do nothing (§3.3.0).
        NULL = 0 "null",
        /// Get file attributes (§3.3.1).
        GETATTR = 1 "getattr",
        /// Set file attributes (§3.3.2).
        SETATTR = 2 "setattr",
        /// Look up a file name (§3.3.3).
        LOOKUP = 3 "lookup",
        /// Check access permission (§3.3.4).
        ACCESS = 4 "access",
        /// Read from a symbolic link (§3.3.5).
        READLINK = 5 "readlink",
        /// Read from a file (§3.3.6).
        READ = 6 "read",
        /// Write to a file (§3.3.7).
        WRITE = 7 "write",
        /// Create a file (§3.3.8).
        CREATE = 8 "create",
        /// Create a directory (§3.3.9).
        MKDIR = 9 "mkdir",
        /// Create a symbolic link (§3.3.10).
        SYMLINK = 10 "symlink",
        /// Create a special device (§3.3.11).
        MKNOD = 11 "mknod",
        /// Remove a file (§3.3.12).
        REMOVE = 12 "remove",
        /// Remove a directory (§3.3.13).
        RMDIR = 13 "rmdir",
        /// Rename a file or directory (§3.3.14).
        RENAME = 14 "rename",
        /// Create a link to an object (§3.3.15).
        LINK = 15 "link",
        /// Read from a directory (§3.3.16).
        READDIR = 16 "readdir",
        /// Extended read from a directory (§3.3.17).
        READDIRPLUS = 17 "readdirplus",
        /// Get dynamic file system information (§3.3.18).
        FSSTAT = 18 "fsstat",
        /// Get static file system information (§3.3.19).
        FSINFO = 19 "fsinfo",
        /// Retrieve POSIX information (§3.3.20).
        PATHCONF = 20 "pathconf",
        /// Commit cached data on a server to stable storage (§3.3.21).
        COMMIT = 21 "commit",
    }
}

impl Proc {
    /// Number of procedures.
    pub const COUNT: usize = Self::ALL.len();

    /// Name of procedure `n`; `unknown` if there is none.
    pub const fn name(n: u32) -> &'static str {
        match Self(n).known_name() {
            Some(name) => name,
            None => "unknown",
        }
    }
}
