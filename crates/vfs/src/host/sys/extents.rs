//! System calls on parts of files: room, holes, copies.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::{check, check_size};

fn off(n: u64) -> io::Result<libc::off_t> {
    libc::off_t::try_from(n).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))
}

/// fallocate(2): reserves room, and lets the file grow.
pub fn allocate(fd: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::fallocate(fd.as_raw_fd(), 0, off(offset)?, off(len)?) }).map(drop)
}

/// fallocate(2): makes a hole.
pub fn punch(fd: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: no memory is involved.
    check(unsafe { libc::fallocate(fd.as_raw_fd(), mode, off(offset)?, off(len)?) }).map(drop)
}

/// fallocate(2): makes zeros that have room.
pub fn zero(fd: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    let mode = libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: no memory is involved.
    check(unsafe { libc::fallocate(fd.as_raw_fd(), mode, off(offset)?, off(len)?) }).map(drop)
}

/// lseek(2) to data, or to a hole. Moves the descriptor's position, which nothing else uses.
pub fn seek(fd: BorrowedFd<'_>, offset: u64, hole: bool) -> io::Result<u64> {
    let whence = if hole { libc::SEEK_HOLE } else { libc::SEEK_DATA };
    // SAFETY: no memory is involved.
    let at = unsafe { libc::lseek(fd.as_raw_fd(), off(offset)?, whence) };
    u64::try_from(at).map_err(|_| io::Error::last_os_error())
}

/// copy_file_range(2).
pub fn copy(
    from: (BorrowedFd<'_>, u64),
    to: (BorrowedFd<'_>, u64),
    len: usize,
) -> io::Result<usize> {
    let (mut at, mut dest) = (off(from.1)?, off(to.1)?);
    // SAFETY: both offsets are ours to be changed.
    check_size(unsafe {
        libc::copy_file_range(
            from.0.as_raw_fd(),
            &raw mut at,
            to.0.as_raw_fd(),
            &raw mut dest,
            len,
            0,
        )
    })
}

/// `struct file_clone_range` (ioctl_ficlonerange(2)).
#[repr(C)]
struct CloneRange {
    src_fd: i64,
    src_offset: u64,
    src_length: u64,
    dest_offset: u64,
}

/// `_IOW(0x94, 13, struct file_clone_range)`.
const FICLONERANGE: libc::c_ulong = 0x4020_940d;

/// ioctl_ficlonerange(2); a length of 0 is to the end of the source.
pub fn clone(from: (BorrowedFd<'_>, u64), to: (BorrowedFd<'_>, u64), len: u64) -> io::Result<()> {
    let range = CloneRange {
        src_fd: i64::from(from.0.as_raw_fd()),
        src_offset: from.1,
        src_length: len,
        dest_offset: to.1,
    };
    // SAFETY: the kernel reads one such structure.
    check(unsafe { libc::ioctl(to.0.as_raw_fd(), FICLONERANGE as _, &raw const range) }).map(drop)
}
