//! The identity of the directory at a path: distinguishes it from every other one, also after its
//! file system was unmounted and mounted again.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use super::births::Births;
use super::ids::Ident;
use super::lock::lock;
use super::mounts::{Mount, Number};
use super::{FUSE_SUPER_MAGIC, HostFs, HostOptions, attrs, sys, usable_kernel_handle};
use crate::locks::FileKey;

/// A directory, whatever its path. Equal to another only if both are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryIdentity {
    fsid: u64,
    ident: Ident,
}

/// A directory that was opened.
pub(super) struct Top {
    /// A descriptor that is not O_PATH, as `open_by_handle_at` wants it.
    pub(super) mount: OwnedFd,
    /// O_PATH.
    pub(super) fd: OwnedFd,
    pub(super) sx: libc::statx,
    pub(super) stats: libc::statfs,
    pub(super) dev: u64,
    pub(super) fsid: u64,
    /// Its number, if the file system has none of its own.
    pub(super) number: Option<Arc<Number>>,
    /// What distinguishes its files, if the kernel's handles may not be used.
    pub(super) births: Births,
    /// The kernel's handle, if it may be used.
    pub(super) kernel: Option<Ident>,
    pub(super) ident: Ident,
}

impl Top {
    pub(super) fn open(dir: &Path, kernel_handles: bool) -> io::Result<Self> {
        let path = CString::new(dir.as_os_str().as_bytes())
            .map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        let mount = sys::open_path(&path, libc::O_RDONLY | libc::O_DIRECTORY)?;
        let fd = sys::open_at(mount.as_fd(), c".", libc::O_PATH, 0)?;
        let sx = sys::statx_at(fd.as_fd(), c"")?;
        let stats = sys::statfs(fd.as_fd())?;
        let dev = attrs::device(&sx);
        let own = sys::identity::identity(mount.as_fd(), &stats);
        let mounted = (own == 0).then(|| Mount::with_id(sx.stx_mnt_id)).flatten();
        let (births, number) =
            (Births::of(mounted.as_ref()), mounted.map(|of| Number::of(dev, &of)));
        let fsid = number.as_ref().map_or(if own == 0 { dev } else { own }, |number| number.get());
        // That of FUSE has the number of a node in it, which is the file system's own affair: it
        // may be an address in the memory of one mount (GlusterFS), or a count (libfuse) by which
        // the next mount finds another file. That all nodes have the number of their inode cannot
        // be found out at the root, and the form of handles must not depend on the file.
        let may_be_used = kernel_handles && stats.f_type as u64 != FUSE_SUPER_MAGIC;
        let kernel = if may_be_used { usable_kernel_handle(&mount, &fd)? } else { None };
        let birth = || births.get(fd.as_fd(), c"", &sx);
        let ident = kernel.unwrap_or_else(|| Ident::Inode { ino: sx.stx_ino, birth: birth() });
        Ok(Self { mount, fd, sx, stats, dev, fsid, number, births, kernel, ident })
    }
}

/// `f_type` of btrfs, and the inode of the root of each of its subvolumes.
const BTRFS: u64 = 0x9123_683e;
const SUBVOLUME_INODE: u64 = 256;

/// The number of a btrfs without what one of its subvolumes adds (`btrfs_statfs`): the halves of
/// the subvolume's number, exchanged.
pub(super) fn without_subvolume(fsid: u64, subvolume: u64) -> u64 {
    fsid ^ subvolume.rotate_right(32)
}

impl Top {
    /// Whether it is the root of a subvolume of a btrfs: all files with its device number are
    /// below it.
    pub(super) fn is_subvolume(&self) -> bool {
        self.stats.f_type as u64 == BTRFS && self.sx.stx_ino == SUBVOLUME_INODE
    }

    /// The subvolume of which it is the root, if handles name it.
    pub(super) fn subvolume(&self) -> Option<u64> {
        self.is_subvolume().then(|| super::ids::subvolume_of(&self.ident)).flatten()
    }

    /// Whether it is a whole file system, so that no file of it can be outside: the root of a
    /// mount, which shows its root, or a subvolume of a pool.
    pub(super) fn is_whole(&self, options: &HostOptions) -> bool {
        if (options.snapshot.is_some() || options.exchangeable) && self.is_subvolume() {
            return true;
        }
        if self.sx.stx_attributes & libc::STATX_ATTR_MOUNT_ROOT as u64 == 0 {
            return false;
        }
        let root = Mount::with_id(self.sx.stx_mnt_id).map(|mount| mount.root);
        // The root of a btrfs subvolume that is mounted alone is not "/".
        root.as_deref() == Some("/")
            && sys::stat(self.mount.as_fd()).is_ok_and(|st| st.st_ino == self.sx.stx_ino)
    }

    /// Whether it is the root of this machine, as this process sees it.
    pub(super) fn is_machine_root(&self) -> bool {
        let here = (self.dev, self.sx.stx_ino);
        std::fs::metadata("/").is_ok_and(|root| (root.dev(), root.ino()) == here)
    }

    pub(super) fn identity(&self) -> DirectoryIdentity {
        DirectoryIdentity { fsid: self.fsid, ident: self.ident }
    }
}

impl HostOptions {
    /// Inode numbers of files that are hidden in a directory on a device.
    pub(super) fn hidden(&self, device: u64) -> Vec<u64> {
        let device = self.snapshot.unwrap_or(device);
        self.hide.iter().filter(|(on, _)| *on == device).map(|(_, ino)| *ino).collect()
    }
}

impl DirectoryIdentity {
    /// A number of the directory, the same over restarts: a keyed hash.
    pub fn number(&self) -> u64 {
        let mut hasher = blake3::Hasher::new_derive_key("plimsoll 2026 snapshot");
        hasher.update(&self.fsid.to_le_bytes());
        hasher.update(&self.ident.to_bytes());
        // 0 is the directory of the snapshots.
        hasher.finalize().as_bytes().first_chunk().map_or(1, |n| u64::from_le_bytes(*n).max(1))
    }

    /// The directory at a path.
    ///
    /// # Errors
    /// There is none, or it cannot be opened.
    pub fn of(dir: &Path) -> io::Result<Self> {
        let Top { fsid, ident, .. } = Top::open(dir, true)?;
        Ok(Self { fsid, ident })
    }

    /// Whether another directory is on the same file system.
    pub fn is_on_same_file_system(&self, other: &Self) -> bool {
        self.fsid == other.fsid
    }
}

/// By what opens and locks know the file at a path, over every share that it lies in.
///
/// # Errors
/// There is none, or its directory cannot be opened.
pub fn key_of(path: &Path) -> io::Result<FileKey> {
    let path = path.canonicalize()?;
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let top = Top::open(dir, true)?;
    let name = CString::new(name.as_bytes())?;
    let fd = sys::open_at(top.mount.as_fd(), &name, libc::O_PATH | libc::O_NOFOLLOW, 0)?;
    let sx = sys::statx_at(fd.as_fd(), c"")?;
    let ident = match top.kernel {
        Some(_) => Ident::Kernel(sys::handle_of(fd.as_fd(), c"")?),
        None => Ident::Inode { ino: sx.stx_ino, birth: top.births.get(fd.as_fd(), c"", &sx) },
    };
    Ok(FileKey { fsid: top.fsid, fileid: sx.stx_ino, generation: ident.generation() })
}

impl HostFs {
    /// A number of the directory that is served ([`DirectoryIdentity::number`]).
    pub fn number(&self) -> u64 {
        self.directory_identity().number()
    }

    /// The directory that is served.
    pub fn directory_identity(&self) -> DirectoryIdentity {
        DirectoryIdentity { fsid: self.fsid, ident: self.root.ident }
    }

    /// What distinguishes a file, without the kernel's handle ([`super::births`]).
    pub(super) fn birth(&self, fd: BorrowedFd<'_>) -> io::Result<u64> {
        Ok(self.births.get(fd, c"", &sys::statx_at(fd, c"")?))
    }

    /// Lets go of all files: another state of the file system is below the same directory, after a
    /// rollback, and each is looked for again by its handle.
    pub fn renew(&self) {
        self.nodes.clear();
        *lock(&self.searched) = None;
        self.note_root();
    }

    /// Whether that directory was removed: it cannot have been moved.
    pub fn is_removed(&self) -> bool {
        sys::statx_at(self.mount.as_fd(), c"").is_ok_and(|sx| sx.stx_nlink == 0)
    }
}
