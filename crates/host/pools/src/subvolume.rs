//! Subvolumes and snapshots of a mounted pool. Names are single components; a parent folder is
//! opened without following a link, so that no request leaves the pool.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use linux_raw_sys::btrfs::{
    BTRFS_SUBVOL_RDONLY, btrfs_ioctl_get_subvol_info_args, btrfs_ioctl_vol_args,
    btrfs_ioctl_vol_args_v2,
};

use crate::sys::{self, Plain, READ, WRITE};

/// Longest name of a subvolume.
pub const NAME_MAX: usize = 200;
/// Inode of the root of each subvolume.
const ROOT_INODE: u64 = 256;

/// Checks a name: one component, and none of the pool's own.
///
/// # Errors
/// One sentence.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_plain = !name.contains(['/', '\0', '\n']) && !name.starts_with('.');
    if is_plain && !name.is_empty() && name.len() <= NAME_MAX {
        return Ok(());
    }
    Err(format!("a name has 1 to {NAME_MAX} bytes without '/', and does not start with '.'"))
}

/// Opens a folder; a link is refused.
///
/// # Errors
/// The operating system's.
pub fn folder(path: &Path) -> io::Result<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Whether there is a subvolume at this path.
pub fn is_one(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir() && meta.ino() == ROOT_INODE)
}

fn named(name: &str) -> io::Result<btrfs_ioctl_vol_args> {
    let mut arguments = btrfs_ioctl_vol_args::zeroed();
    put(&mut arguments.name, name.as_bytes())?;
    Ok(arguments)
}

/// Enters a name, with a zero behind it.
pub(crate) fn put<const N: usize>(to: &mut [core::ffi::c_char; N], name: &[u8]) -> io::Result<()> {
    if name.len() >= N {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (slot, byte) in to.iter_mut().zip(name) {
        *slot = *byte as _;
    }
    Ok(())
}

/// Creates an empty subvolume.
///
/// # Errors
/// The kernel's.
pub fn create(parent: &File, name: &str) -> io::Result<()> {
    sys::call(parent, WRITE, 14, &mut named(name)?)
}

/// Creates a read-only snapshot of a subvolume.
///
/// # Errors
/// The kernel's.
pub fn snapshot(source: &File, parent: &File, name: &str) -> io::Result<()> {
    copy_with(source, parent, name, BTRFS_SUBVOL_RDONLY)
}

/// Creates a writable subvolume from a snapshot.
///
/// # Errors
/// The kernel's.
pub fn copy(source: &File, parent: &File, name: &str) -> io::Result<()> {
    copy_with(source, parent, name, 0)
}

fn copy_with(source: &File, parent: &File, name: &str, flags: u32) -> io::Result<()> {
    let mut arguments = btrfs_ioctl_vol_args_v2::zeroed();
    arguments.fd = source.as_raw_fd().into();
    arguments.flags = flags.into();
    // SAFETY: the union was filled with zeros, and the name is bytes.
    let slots = unsafe { &mut arguments.__bindgen_anon_2.name };
    put(slots, name.as_bytes())?;
    sys::call(parent, WRITE, 23, &mut arguments)
}

/// Of when the state of a snapshot is, in seconds since 1970: when it was taken, or, if a rollback
/// has replaced it, when it was last changed.
///
/// # Errors
/// The kernel's.
pub fn made_s(subvolume: &File) -> io::Result<u64> {
    let info = info(subvolume)?;
    Ok(info.otime.sec.max(info.ctime.sec))
}

/// The number of a subvolume: higher than those of all that were made before it.
///
/// # Errors
/// The kernel's.
pub fn number(subvolume: &File) -> io::Result<u64> {
    Ok(info(subvolume)?.treeid)
}

fn info(subvolume: &File) -> io::Result<btrfs_ioctl_get_subvol_info_args> {
    let mut arguments = btrfs_ioctl_get_subvol_info_args::zeroed();
    sys::call(subvolume, READ, 60, &mut arguments)?;
    Ok(arguments)
}

/// Makes a subvolume read-only, unless it is.
///
/// # Errors
/// The kernel's.
pub fn protect(subvolume: &File) -> io::Result<()> {
    let mut flags = 0u64;
    sys::call(subvolume, READ, 25, &mut flags)?;
    if flags & u64::from(BTRFS_SUBVOL_RDONLY) != 0 {
        return Ok(());
    }
    flags |= u64::from(BTRFS_SUBVOL_RDONLY);
    sys::call(subvolume, WRITE, 26, &mut flags)
}

/// Destroys a subvolume with all that is in it.
///
/// # Errors
/// The kernel's.
pub fn destroy(parent: &File, name: &str) -> io::Result<()> {
    sys::call(parent, WRITE, 15, &mut named(name)?)
}

/// Ends the transaction that has the last changes of subvolumes: after a power cut they are there.
/// Data of files is not written back for it.
///
/// # Errors
/// The kernel's.
pub fn commit(folder: &File) -> io::Result<()> {
    let mut transaction = 0u64;
    sys::call(folder, READ, 24, &mut transaction)?;
    sys::call(folder, WRITE, 22, &mut transaction)
}

#[cfg(test)]
mod tests;
