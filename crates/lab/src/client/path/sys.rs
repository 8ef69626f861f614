//! System calls on a name in a directory. None of them follows a symbolic link.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};

/// Permission bits of a new directory and a new file, before the umask.
const DIRECTORY: libc::mode_t = 0o777;
const FILE: libc::mode_t = 0o666;

fn checked(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn at(dir: &File, name: &str, flags: i32) -> io::Result<File> {
    let name = CString::new(name)?;
    let flags = flags | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the name ends with a zero.
    let fd = unsafe { libc::openat(dir.as_raw_fd(), name.as_ptr(), flags, FILE) };
    let fd: RawFd = checked(fd)?;
    // SAFETY: the kernel has just given this descriptor to us alone.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Opens a directory, which is created if there is none.
pub(super) fn directory(dir: &File, name: &str) -> io::Result<File> {
    let path = CString::new(name)?;
    // SAFETY: the name ends with a zero.
    match checked(unsafe { libc::mkdirat(dir.as_raw_fd(), path.as_ptr(), DIRECTORY) }) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
        _ => at(dir, name, libc::O_RDONLY | libc::O_DIRECTORY),
    }
}

/// Opens a file for reading and writing, which is created if there is none; with `new` there must
/// be none.
pub(super) fn open(dir: &File, name: &str, new: bool) -> io::Result<File> {
    let exclusive = if new { libc::O_EXCL } else { 0 };
    // Opening a FIFO in the place of the file does not wait.
    at(dir, name, libc::O_RDWR | libc::O_CREAT | libc::O_NONBLOCK | exclusive)
}

/// Looks for a name.
pub(super) fn look(dir: &File, name: &str) -> io::Result<()> {
    let name = CString::new(name)?;
    // SAFETY: plain data, for which all zeros is a value.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    let flags = libc::AT_SYMLINK_NOFOLLOW;
    // SAFETY: the name ends with a zero, and `stat` is of this function.
    checked(unsafe { libc::fstatat(dir.as_raw_fd(), name.as_ptr(), &raw mut stat, flags) })?;
    Ok(())
}

/// Removes a file.
pub(super) fn remove(dir: &File, name: &str) -> io::Result<()> {
    let name = CString::new(name)?;
    // SAFETY: the name ends with a zero.
    checked(unsafe { libc::unlinkat(dir.as_raw_fd(), name.as_ptr(), 0) })?;
    Ok(())
}
