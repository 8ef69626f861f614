//! System calls that std does not have: ioctls of btrfs, mounts, exclusive opens.

use std::ffi::{CStr, CString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use linux_raw_sys::btrfs::BTRFS_IOCTL_MAGIC;

/// The argument is written by the program.
pub(crate) const WRITE: u32 = 1;
/// The argument is written by the kernel.
pub(crate) const READ: u32 = 2;

/// A structure of btrfs without pointers, of which all bit patterns are valid.
///
/// # Safety
/// The type is one of the fixed structures of `linux/btrfs.h`.
pub(crate) unsafe trait Plain: Sized {
    /// With zeros.
    fn zeroed() -> Self {
        // SAFETY: all bit patterns are valid.
        unsafe { std::mem::zeroed() }
    }
}

macro_rules! plain {
    ($($name:ident),*) => {
        // SAFETY: fixed structures of `linux/btrfs.h`.
        $(unsafe impl Plain for linux_raw_sys::btrfs::$name {})*
    };
}
plain!(
    btrfs_ioctl_fs_info_args,
    btrfs_ioctl_dev_info_args,
    btrfs_ioctl_get_dev_stats,
    btrfs_ioctl_scrub_args,
    btrfs_ioctl_balance_args,
    btrfs_ioctl_dev_replace_args,
    btrfs_ioctl_get_subvol_info_args,
    btrfs_ioctl_quota_ctl_args,
    btrfs_ioctl_quota_rescan_args,
    btrfs_ioctl_qgroup_limit_args,
    btrfs_ioctl_search_args,
    btrfs_ioctl_vol_args,
    btrfs_ioctl_vol_args_v2
);

// SAFETY: flags of a subvolume.
unsafe impl Plain for u64 {}

/// Exchanges two names of a file system in one step (renameat2(2)).
pub(crate) fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    let [one, other] = [one, other].map(|path| CString::new(path.as_os_str().as_bytes()));
    let (one, other, here) = (one?, other?, libc::AT_FDCWD);
    // SAFETY: both paths end with a zero and outlive the call.
    let done =
        unsafe { libc::renameat2(here, one.as_ptr(), here, other.as_ptr(), libc::RENAME_EXCHANGE) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Number of a request of btrfs (`_IOC` of `asm-generic/ioctl.h`).
const fn code(direction: u32, number: u32, size: usize) -> libc::c_ulong {
    ((direction << 30) | ((size as u32) << 16) | (BTRFS_IOCTL_MAGIC << 8) | number) as libc::c_ulong
}

/// A request of btrfs with a structure that the kernel reads, fills, or both.
pub(crate) fn call<T: Plain>(
    file: &File,
    direction: u32,
    number: u32,
    argument: &mut T,
) -> io::Result<()> {
    let request = code(direction, number, size_of::<T>());
    // SAFETY: the size in the number is that of the structure, which the kernel fills.
    match unsafe { libc::ioctl(file.as_raw_fd(), request as _, std::ptr::from_mut(argument)) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A request without a structure; `value` is its argument.
pub(crate) fn call_plain(file: &File, number: u32, value: libc::c_ulong) -> io::Result<()> {
    // The argument is an int by its number, and none at all for requests that take nothing.
    let (direction, size) = if value == 0 { (0, 0) } else { (WRITE, size_of::<libc::c_int>()) };
    // SAFETY: the kernel reads no memory for these requests.
    match unsafe { libc::ioctl(file.as_raw_fd(), code(direction, number, size) as _, value) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Space of a file system: as many entries of three words as fit behind the two words of the head.
pub(crate) fn spaces(file: &File, words: &mut [u64]) -> io::Result<()> {
    let entries = words.len().saturating_sub(2) / 3;
    let Some(slots) = words.first_mut() else { return Err(io::ErrorKind::InvalidInput.into()) };
    *slots = entries as u64;
    // SAFETY: the kernel fills at most as many entries as the first word states.
    match unsafe {
        libc::ioctl(file.as_raw_fd(), code(READ | WRITE, 20, 16) as _, words.as_mut_ptr())
    } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn text(of: &Path) -> io::Result<CString> {
    CString::new(of.as_os_str().as_bytes()).map_err(io::Error::other)
}

/// Mounts a btrfs.
pub(crate) fn mount(device: &Path, at: &Path, flags: u64, options: &str) -> io::Result<()> {
    let (device, at) = (text(device)?, text(at)?);
    let options = CString::new(options).map_err(io::Error::other)?;
    // SAFETY: texts with a zero at their end.
    let done = unsafe {
        let options = options.as_ptr().cast();
        libc::mount(device.as_ptr(), at.as_ptr(), c"btrfs".as_ptr(), flags as _, options)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Unmounts a file system that is not in use.
pub(crate) fn unmount(at: &Path) -> io::Result<()> {
    let at = text(at)?;
    // SAFETY: a text with a zero at its end.
    let done = unsafe { libc::umount2(at.as_ptr(), libc::UMOUNT_NOFOLLOW) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Opens a block device that no other program and no file system uses.
pub(crate) fn open_exclusive(path: &Path, write: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(write).custom_flags(libc::O_EXCL | libc::O_CLOEXEC);
    options.open(path)
}

/// Writes back all of a file system.
pub(crate) fn sync_file_system(file: &File) -> io::Result<()> {
    // SAFETY: no pointers.
    let done = unsafe { libc::syncfs(file.as_raw_fd()) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes space for a file.
pub(crate) fn allocate(file: &File, bytes: u32) -> io::Result<()> {
    // SAFETY: no pointers.
    let done = unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, bytes.into()) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Longest value of an attribute that is read.
const ATTRIBUTE_MAX: usize = 64;

/// An extended attribute of a file; none if it has no such attribute.
pub(crate) fn attribute(file: &File, name: &CStr) -> io::Result<Option<String>> {
    let mut value = [0_u8; ATTRIBUTE_MAX];
    // SAFETY: a text with a zero at its end, and a buffer with its length.
    let length = unsafe {
        libc::fgetxattr(file.as_raw_fd(), name.as_ptr(), value.as_mut_ptr().cast(), value.len())
    };
    let Ok(length) = usize::try_from(length) else {
        let error = io::Error::last_os_error();
        return if error.raw_os_error() == Some(libc::ENODATA) { Ok(None) } else { Err(error) };
    };
    Ok(value.get(..length).map(|text| String::from_utf8_lossy(text).into_owned()))
}

/// Sets an extended attribute of a file, or removes it.
pub(crate) fn set_attribute(file: &File, name: &CStr, value: Option<&str>) -> io::Result<()> {
    let (descriptor, name) = (file.as_raw_fd(), name.as_ptr());
    // SAFETY: a text with a zero at its end, and a text with its length.
    let done = unsafe {
        match value {
            Some(text) => libc::fsetxattr(descriptor, name, text.as_ptr().cast(), text.len(), 0),
            None => libc::fremovexattr(descriptor, name),
        }
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
