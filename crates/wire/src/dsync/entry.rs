//! The metadata of a file.

use base::limits::{DSYNC_XATTRS_MAX, NAME_MAX, PATH_MAX, XATTR_VALUE_MAX};

use super::Bytes;
use crate::xdr::Seq;

xdr_enum! {
    /// What an entry is.
    pub enum Kind {
        /// It exists, but the source could not read it; its target contains the reason.
        UNREADABLE = 0 "unreadable",
        /// A regular file.
        FILE = 1 "file",
        /// A directory.
        DIRECTORY = 2 "directory",
        /// A symbolic link.
        SYMLINK = 3 "symbolic link",
        /// A FIFO.
        FIFO = 4 "FIFO",
        /// A socket.
        SOCKET = 5 "socket",
        /// A block device.
        BLOCK = 6 "block device",
        /// A character device.
        CHARACTER = 7 "character device",
    }
}

xdr_struct! {
    /// A moment, since the epoch.
    pub struct Time {
        /// Seconds.
        pub seconds: i64,
        /// Nanoseconds, below 10^9.
        pub nanoseconds: u32,
    }
}

xdr_struct! {
    /// Which file a name leads to, where a file has several: the same for all its names.
    #[derive(Hash, PartialOrd, Ord)]
    pub struct FileId {
        /// Device.
        pub device: u64,
        /// Inode.
        pub inode: u64,
    }
}

xdr_struct! {
    /// An extended attribute. Access control lists are such ones.
    pub struct Xattr {
        /// Its name, with that of its namespace.
        pub name: Bytes<NAME_MAX>,
        /// Its value.
        pub value: Bytes<XATTR_VALUE_MAX>,
    }
}

xdr_struct! {
    /// A file's metadata.
    pub struct Meta {
        /// What it is.
        pub kind: Kind,
        /// Permission bits, with set-user-id, set-group-id and sticky.
        pub mode: u32,
        /// Owner.
        pub uid: u32,
        /// Group.
        pub gid: u32,
        /// Bytes of a regular file.
        pub size: u64,
        /// When its content was changed.
        pub mtime: Time,
        /// Major number of a device.
        pub major: u32,
        /// Minor number of a device.
        pub minor: u32,
        /// The target of a symbolic link; the reason, if the entry is unreadable.
        pub target: Bytes<PATH_MAX>,
        /// Which file it is, if that has several names.
        pub link: Option<FileId>,
        /// Extended attributes, by name.
        pub xattrs: Seq<Xattr, DSYNC_XATTRS_MAX>,
    }
}

xdr_struct! {
    /// An entry of a directory.
    pub struct Entry {
        /// Its name.
        pub name: Bytes<NAME_MAX>,
        /// What it is.
        pub meta: Meta,
    }
}
