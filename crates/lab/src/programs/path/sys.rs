//! System calls on names below the folder of a run. None of them follows a symbolic link, and none
//! leaves the folder.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};

/// Permission bits of new directories and files, before the umask.
const DIRECTORY: libc::mode_t = 0o777;
const FILE: u64 = 0o666;
/// Bytes of one read of a directory.
const LIST_BYTES: usize = 32 << 10;

fn checked(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Opens a path of several names below `root` (openat2(2)).
pub(super) fn open(root: &File, path: &str, flags: i32) -> io::Result<File> {
    let path = CString::new(path)?;
    // SAFETY: plain data, for which all zeros is a value.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (flags | libc::O_CLOEXEC) as u64;
    how.mode = if flags & libc::O_CREAT == 0 { 0 } else { FILE };
    how.resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS;
    let size = size_of::<libc::open_how>();
    // SAFETY: the path ends with a zero, `how` is of this function and has the size that is passed.
    let fd = unsafe {
        libc::syscall(libc::SYS_openat2, root.as_raw_fd(), path.as_ptr(), &raw mut how, size)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given this descriptor to this call alone.
    Ok(unsafe { File::from_raw_fd(fd as RawFd) })
}

/// Looks for a name.
pub(super) fn look(parent: &File, name: &str) -> io::Result<()> {
    let name = CString::new(name)?;
    // SAFETY: plain data, for which all zeros is a value.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    let flags = libc::AT_SYMLINK_NOFOLLOW;
    // SAFETY: the name ends with a zero, and `stat` is of this function.
    checked(unsafe { libc::fstatat(parent.as_raw_fd(), name.as_ptr(), &raw mut stat, flags) })
}

/// Removes a file.
pub(super) fn remove(parent: &File, name: &str) -> io::Result<()> {
    let name = CString::new(name)?;
    // SAFETY: the name ends with a zero.
    checked(unsafe { libc::unlinkat(parent.as_raw_fd(), name.as_ptr(), 0) })
}

/// Makes a directory.
pub(super) fn make_directory(parent: &File, name: &str) -> io::Result<()> {
    let name = CString::new(name)?;
    // SAFETY: the name ends with a zero.
    checked(unsafe { libc::mkdirat(parent.as_raw_fd(), name.as_ptr(), DIRECTORY) })
}

/// Removes a directory.
pub(super) fn remove_directory(parent: &File, name: &str) -> io::Result<()> {
    let name = CString::new(name)?;
    // SAFETY: the name ends with a zero.
    checked(unsafe { libc::unlinkat(parent.as_raw_fd(), name.as_ptr(), libc::AT_REMOVEDIR) })
}

/// Reads a whole directory: bytes of its entries, and reads that it took.
pub(super) fn list(directory: &File) -> io::Result<(u64, u64)> {
    let mut buffer = [0u8; LIST_BYTES];
    let (mut bytes, mut reads) = (0, 0);
    loop {
        let fd = directory.as_raw_fd();
        // SAFETY: the buffer is of this function and as long as the length that is passed.
        let got =
            unsafe { libc::syscall(libc::SYS_getdents64, fd, buffer.as_mut_ptr(), buffer.len()) };
        reads += 1;
        match got {
            0 => return Ok((bytes, reads)),
            n if n < 0 => return Err(io::Error::last_os_error()),
            n => bytes += n as u64,
        }
    }
}
