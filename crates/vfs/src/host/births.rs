//! What distinguishes a file from others that had its inode number, where handles do not hold the
//! kernel's: its birth time, or the generation that ZFS in user space gives with each name.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use super::mounts::Mount;
use super::{attrs, sys};

/// Type of a mount of zfs-fuse. The numbers of its nodes are those of their inodes, and their
/// generation is the transaction that made them: after a rollback an inode number that is used
/// again has another one.
const ZFS: &str = "fuse.zfs";
/// A kernel handle of FUSE (`FILEID_INO64_GEN`): the number of a node in two halves, and its
/// generation.
const FUSE_KIND: u8 = 0x81;
const FUSE_GENERATION: core::ops::Range<usize> = 8..12;

/// Which of them a file system has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Births {
    /// The birth time, in nanoseconds since the epoch; 0 if it is not recorded.
    Time,
    /// The generation.
    Generation,
}

impl Births {
    /// Of a file system without a number of its own, mounted so.
    pub(super) fn of(mount: Option<&Mount>) -> Self {
        let is_zfs = mount.is_some_and(|mount| mount.kind == ZFS);
        if is_zfs { Self::Generation } else { Self::Time }
    }

    /// That of the file at a name (of the descriptor, for the empty one), which has these
    /// attributes.
    pub(super) fn get(self, at: BorrowedFd<'_>, name: &CStr, sx: &libc::statx) -> u64 {
        match self {
            Self::Time => attrs::birth(sx),
            Self::Generation => generation(at, name).unwrap_or(0),
        }
    }
}

fn generation(at: BorrowedFd<'_>, name: &CStr) -> Option<u64> {
    let handle = sys::handle_of(at, name).ok().filter(|handle| handle.kind == FUSE_KIND)?;
    let bytes = handle.bytes().get(FUSE_GENERATION)?.try_into().ok()?;
    Some(u64::from(u32::from_ne_bytes(bytes)))
}
