//! Marks on files that a server has claimed for a logical unit, which every process of this machine
//! can see: a lock of one byte far behind any data (fcntl(2), open file description locks). The
//! kernel removes it with the process, however that ends.
//!
//! Plimsoll's programs that work on plain paths (`plimsoll dsync`, the laboratory) look for it
//! before they read, replace or remove a file. Inside a server the table of opens and locks
//! decides.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

/// Where the marked byte is: behind the largest file of any file system, and not where programs
/// lock whole files.
const MARK_AT: i64 = i64::MAX - 0x706c_696d;

/// A mark. It ends when this is dropped.
#[derive(Debug)]
pub struct Mark {
    _file: File,
}

fn range(kind: i32) -> libc::flock {
    // SAFETY: plain data, for which all zeros is a value.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = kind as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    (range.l_start, range.l_len) = (MARK_AT, 1);
    range
}

impl Mark {
    /// Marks a file or a directory.
    ///
    /// # Errors
    /// It cannot be opened, or its file system has no locks.
    pub fn set(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let range = range(libc::F_RDLCK);
        // SAFETY: the descriptor is open, and `range` outlives the call.
        let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const range) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(Self { _file: file }) }
    }
}

/// Whether a server has marked this file or directory, which is open for reading.
pub fn is_marked(file: &impl AsFd) -> bool {
    let mut found = range(libc::F_WRLCK);
    let fd = file.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open, and `found` outlives the call.
    let done = unsafe { libc::fcntl(fd, libc::F_OFD_GETLK, &raw mut found) };
    // Another program's lock of the whole file covers the byte, too, and is no mark.
    done == 0
        && found.l_type == libc::F_RDLCK as libc::c_short
        && (found.l_start, found.l_len) == (MARK_AT, 1)
}

#[cfg(test)]
mod tests;
