//! Locks on files that end with the last process that has them open.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Locks the file for its open file description (`F_OFD_SETLK`); false if it is locked already.
pub(crate) fn lock(file: &File) -> io::Result<bool> {
    // SAFETY: plain numbers; zero is valid for each.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    // SAFETY: the structure outlives the call.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw mut lock) };
    if done == 0 {
        return Ok(true);
    }
    match io::Error::last_os_error() {
        e if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        e => Err(e),
    }
}
