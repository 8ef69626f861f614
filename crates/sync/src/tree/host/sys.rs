//! The system calls of a tree; with `names` and those of `load` the only unsafe code of this room:
//! each function checks nothing but the result.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use base::limits::{PATH_MAX, XATTR_LIST_MAX, XATTR_VALUE_MAX};
use libc::c_int;

/// `struct open_how` (openat2(2)).
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

/// `openat2`: refuse symbolic links on the way, those of `/proc` included.
const NO_LINKS: u64 = 0x04 | 0x02;
/// `openat2`: refuse to leave the directory.
const BENEATH: u64 = 0x08;

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn check_size(result: isize) -> io::Result<usize> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
}

fn owned(fd: c_int) -> io::Result<OwnedFd> {
    let fd = check(fd)?;
    // SAFETY: the kernel has just returned this descriptor; nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn off(n: u64) -> io::Result<libc::off_t> {
    libc::off_t::try_from(n).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))
}

/// A name or path as the kernel takes it.
pub fn c(bytes: &[u8]) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// open(2) of what a person named; symbolic links are followed.
pub fn open_path(path: &CStr, flags: c_int) -> io::Result<OwnedFd> {
    // SAFETY: `path` ends with NUL and outlives the call.
    owned(unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) })
}

/// openat2(2): what lies below a directory, by a way without symbolic links.
pub fn open_beneath(top: BorrowedFd<'_>, path: &CStr, flags: c_int) -> io::Result<OwnedFd> {
    let flags = (flags | libc::O_CLOEXEC | libc::O_NOFOLLOW) as u64;
    let how = OpenHow { flags, mode: 0, resolve: NO_LINKS | BENEATH };
    // SAFETY: `path` ends with NUL; `how` is the structure of the kernel, with its size.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            top.as_raw_fd(),
            path.as_ptr(),
            &raw const how,
            size_of::<OpenHow>(),
        )
    };
    owned(fd as c_int)
}

/// openat(2) of an entry, which is not followed.
pub fn open_at(dir: BorrowedFd<'_>, name: &CStr, flags: c_int, mode: u32) -> io::Result<OwnedFd> {
    let flags = flags | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: `name` ends with NUL and outlives the call.
    owned(unsafe { libc::openat(dir.as_raw_fd(), name.as_ptr(), flags, mode) })
}

/// fstat(2); works on O_PATH descriptors.
pub fn stat(fd: BorrowedFd<'_>) -> io::Result<libc::stat> {
    let mut out = MaybeUninit::uninit();
    // SAFETY: the kernel fills `out` when it returns 0.
    check(unsafe { libc::fstat(fd.as_raw_fd(), out.as_mut_ptr()) })?;
    // SAFETY: filled just above.
    Ok(unsafe { out.assume_init() })
}

/// The parts of a device number.
pub fn device_parts(device: u64) -> (u32, u32) {
    (libc::major(device), libc::minor(device))
}

/// readlinkat(2) of the descriptor itself.
pub fn readlink(fd: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    let mut out = vec![0; PATH_MAX];
    // SAFETY: the empty name ends with NUL; pointer and length describe `out`.
    let n = check_size(unsafe {
        libc::readlinkat(fd.as_raw_fd(), c"".as_ptr(), out.as_mut_ptr().cast(), out.len())
    })?;
    out.truncate(n);
    Ok(out)
}

/// A stream of a directory's names.
struct Stream(*mut libc::DIR);

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: opened by fdopendir, closed once.
        unsafe { libc::closedir(self.0) };
    }
}

/// All names of a directory, in the order of the file system, without `.` and `..`. The descriptor
/// is used up.
pub fn names(dir: OwnedFd, each: &mut dyn FnMut(&[u8], u64) -> io::Result<()>) -> io::Result<()> {
    use std::os::fd::IntoRawFd;
    let fd = dir.into_raw_fd();
    // SAFETY: the descriptor is ours, and the stream's from here on.
    let stream = unsafe { libc::fdopendir(fd) };
    if stream.is_null() {
        let error = io::Error::last_os_error();
        // SAFETY: it stayed ours.
        unsafe { libc::close(fd) };
        return Err(error);
    }
    let stream = Stream(stream);
    loop {
        // SAFETY: errno is this thread's own; it alone distinguishes an error from the end.
        unsafe { *libc::__errno_location() = 0 };
        // SAFETY: the stream is open and used by this thread only.
        let entry = unsafe { libc::readdir64(stream.0) };
        if entry.is_null() {
            let error = io::Error::last_os_error();
            return if error.raw_os_error() == Some(0) { Ok(()) } else { Err(error) };
        }
        // SAFETY: an entry's name ends with NUL and lives until the next call.
        let (name, inode) =
            unsafe { (CStr::from_ptr((*entry).d_name.as_ptr()).to_bytes(), (*entry).d_ino) };
        if name != b"." && name != b".." {
            each(name, inode)?;
        }
    }
}

/// pread(2).
pub fn read(fd: BorrowedFd<'_>, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let offset = off(offset)?;
    // SAFETY: pointer and length describe `bytes`.
    check_size(unsafe {
        libc::pread(fd.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), offset)
    })
}

/// pwrite(2).
pub fn write(fd: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> io::Result<usize> {
    // SAFETY: pointer and length describe `bytes`.
    check_size(unsafe {
        libc::pwrite(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), off(offset)?)
    })
}

/// copy_file_range(2) of bytes at the same place in both.
pub fn copy_range(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    offset: u64,
    length: u64,
) -> io::Result<usize> {
    let (mut read, mut write) = (off(offset)?, off(offset)?);
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    // SAFETY: both offsets are local, and outlive the call.
    check_size(unsafe {
        libc::copy_file_range(
            from.as_raw_fd(),
            &raw mut read,
            to.as_raw_fd(),
            &raw mut write,
            length,
            0,
        )
    })
}

/// ioctl_ficlonerange(2): whole blocks, or up to the end of the file.
pub fn share_range(
    from: (BorrowedFd<'_>, u64),
    to: (BorrowedFd<'_>, u64),
    length: u64,
) -> io::Result<()> {
    let range = libc::file_clone_range {
        src_fd: i64::from(from.0.as_raw_fd()),
        src_offset: from.1,
        src_length: length,
        dest_offset: to.1,
    };
    // SAFETY: `range` is the structure that this request reads.
    let done = unsafe { libc::ioctl(to.0.as_raw_fd(), libc::FICLONERANGE as _, &raw const range) };
    check(done).map(drop)
}

/// lseek(2) to data, or to a hole. ENXIO after the last data.
pub fn seek(fd: BorrowedFd<'_>, offset: u64, hole: bool) -> io::Result<u64> {
    let whence = if hole { libc::SEEK_HOLE } else { libc::SEEK_DATA };
    // SAFETY: no memory is involved.
    let at = unsafe { libc::lseek(fd.as_raw_fd(), off(offset)?, whence) };
    u64::try_from(at).map_err(|_| io::Error::last_os_error())
}

/// ftruncate(2).
pub fn truncate(fd: BorrowedFd<'_>, size: u64) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::ftruncate(fd.as_raw_fd(), off(size)?) }).map(drop)
}

/// fallocate(2) that makes a hole, with the size as it was.
pub fn punch(fd: BorrowedFd<'_>, offset: u64, length: u64) -> io::Result<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: no memory is involved.
    let done = unsafe { libc::fallocate(fd.as_raw_fd(), mode, off(offset)?, off(length)?) };
    check(done).map(drop)
}

/// Bytes that the caller may still write, by fstatvfs(3).
pub fn room(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut said = MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the kernel fills the structure, or returns an error.
    let said = unsafe {
        check(libc::fstatvfs(fd.as_raw_fd(), said.as_mut_ptr()))?;
        said.assume_init()
    };
    // A file system that reports no size has no limit of its own.
    Ok(if said.f_blocks == 0 { u64::MAX } else { said.f_bavail.saturating_mul(said.f_frsize) })
}

/// `/proc/self/fd/N`: for calls that take no O_PATH descriptor.
fn proc_path(fd: BorrowedFd<'_>) -> CString {
    CString::new(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap_or_default()
}

/// Opens for reading what an O_PATH descriptor leads to, which is no symbolic link.
pub fn reopen(fd: BorrowedFd<'_>, flags: c_int) -> io::Result<OwnedFd> {
    open_path(&proc_path(fd), flags)
}

/// Sets permission bits through any descriptor but that of a symbolic link.
pub fn chmod(fd: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
    let path = proc_path(fd);
    // SAFETY: the path ends with NUL.
    check(unsafe { libc::chmod(path.as_ptr(), mode) }).map(drop)
}

/// fchownat(2) of the descriptor itself.
pub fn chown(fd: BorrowedFd<'_>, uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: the empty name ends with NUL.
    check(unsafe { libc::fchownat(fd.as_raw_fd(), c"".as_ptr(), uid, gid, libc::AT_EMPTY_PATH) })
        .map(drop)
}

/// utimensat(2) of the descriptor itself: the time of change only.
pub fn set_mtime(fd: BorrowedFd<'_>, seconds: i64, nanoseconds: u32) -> io::Result<()> {
    let leave = libc::timespec { tv_sec: 0, tv_nsec: libc::UTIME_OMIT };
    let set = libc::timespec { tv_sec: seconds, tv_nsec: i64::from(nanoseconds) };
    let times = [leave, set];
    // SAFETY: the empty name ends with NUL; `times` are two.
    check(unsafe {
        libc::utimensat(fd.as_raw_fd(), c"".as_ptr(), times.as_ptr(), libc::AT_EMPTY_PATH)
    })
    .map(drop)
}

/// The finest difference of times of change that the file system of a directory keeps, in
/// nanoseconds: what it makes of a time that it is given, for a file without a name. Where there
/// are none, by the kind of the file system; 1 if nothing is known.
pub fn time_step_ns(dir: BorrowedFd<'_>) -> u64 {
    // An odd second, since some keep only even ones.
    const SECONDS: i64 = 1_000_000_001;
    const NANOSECONDS: u32 = 999_999_999;
    let kept = open_at(dir, c".", libc::O_TMPFILE | libc::O_RDWR, 0o600).and_then(|file| {
        set_mtime(file.as_fd(), SECONDS, NANOSECONDS)?;
        stat(file.as_fd())
    });
    let Ok(kept) = kept else { return time_step_of_kind(dir) };
    let lost =
        (SECONDS - kept.st_mtime) * 1_000_000_000 + i64::from(NANOSECONDS) - kept.st_mtime_nsec;
    u64::try_from(lost).map_or(1, |lost| lost + 1)
}

/// The same by the kind of the file system (statfs(2)).
fn time_step_of_kind(dir: BorrowedFd<'_>) -> u64 {
    const MSDOS_SUPER_MAGIC: i64 = 0x4d44;
    const EXFAT_SUPER_MAGIC: i64 = 0x2011_bab0;
    let mut said = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the kernel fills the structure, or returns an error.
    let filled = check(unsafe { libc::fstatfs(dir.as_raw_fd(), said.as_mut_ptr()) }).is_ok();
    if !filled {
        return 1;
    }
    // SAFETY: filled just above.
    match unsafe { said.assume_init() }.f_type {
        MSDOS_SUPER_MAGIC => 2_000_000_000,
        EXFAT_SUPER_MAGIC => 10_000_000,
        _ => 1,
    }
}

/// mkdirat(2).
pub fn mkdir(dir: BorrowedFd<'_>, name: &CStr, mode: u32) -> io::Result<()> {
    // SAFETY: `name` ends with NUL.
    check(unsafe { libc::mkdirat(dir.as_raw_fd(), name.as_ptr(), mode) }).map(drop)
}

/// mknodat(2).
pub fn mknod(dir: BorrowedFd<'_>, name: &CStr, mode: u32, parts: (u32, u32)) -> io::Result<()> {
    let device = libc::makedev(parts.0, parts.1);
    // SAFETY: `name` ends with NUL.
    check(unsafe { libc::mknodat(dir.as_raw_fd(), name.as_ptr(), mode, device) }).map(drop)
}

/// symlinkat(2).
pub fn symlink(target: &CStr, dir: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    // SAFETY: both end with NUL.
    check(unsafe { libc::symlinkat(target.as_ptr(), dir.as_raw_fd(), name.as_ptr()) }).map(drop)
}

/// linkat(2) of an entry, which is not followed.
pub fn link(from: (BorrowedFd<'_>, &CStr), to: (BorrowedFd<'_>, &CStr)) -> io::Result<()> {
    // SAFETY: both names end with NUL.
    check(unsafe {
        libc::linkat(from.0.as_raw_fd(), from.1.as_ptr(), to.0.as_raw_fd(), to.1.as_ptr(), 0)
    })
    .map(drop)
}

/// renameat(2) within a directory.
pub fn rename(dir: BorrowedFd<'_>, from: &CStr, to: &CStr) -> io::Result<()> {
    let fd = dir.as_raw_fd();
    // SAFETY: both names end with NUL.
    check(unsafe { libc::renameat(fd, from.as_ptr(), fd, to.as_ptr()) }).map(drop)
}

/// unlinkat(2).
pub fn unlink(dir: BorrowedFd<'_>, name: &CStr, directory: bool) -> io::Result<()> {
    let flags = if directory { libc::AT_REMOVEDIR } else { 0 };
    // SAFETY: `name` ends with NUL.
    check(unsafe { libc::unlinkat(dir.as_raw_fd(), name.as_ptr(), flags) }).map(drop)
}

/// flock(2), exclusive, without waiting.
pub fn lock(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::flock(fd.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }).map(drop)
}

/// flock(2): what was locked is free.
pub fn unlock(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::flock(fd.as_raw_fd(), libc::LOCK_UN) }).map(drop)
}

/// syncfs(2).
pub fn sync_all(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::syncfs(fd.as_raw_fd()) }).map(drop)
}

/// The user that permissions are checked for.
pub fn effective_user() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// listxattr(2): the names.
pub fn xattr_names(fd: BorrowedFd<'_>) -> io::Result<Vec<Vec<u8>>> {
    let path = proc_path(fd);
    let ask = |out: &mut [u8]| {
        // SAFETY: the path ends with NUL; pointer and length describe `out`.
        check_size(unsafe { libc::listxattr(path.as_ptr(), out.as_mut_ptr().cast(), out.len()) })
    };
    let out = fill(ask, XATTR_LIST_MAX)?;
    let names = out.split(|b| *b == 0).filter(|name| !name.is_empty());
    Ok(names.map(<[u8]>::to_vec).collect())
}

/// getxattr(2).
pub fn xattr(fd: BorrowedFd<'_>, name: &CStr) -> io::Result<Vec<u8>> {
    let path = proc_path(fd);
    let ask = |out: &mut [u8]| {
        let (at, room) = (out.as_mut_ptr().cast(), out.len());
        // SAFETY: both strings end with NUL; pointer and length describe `out`.
        check_size(unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), at, room) })
    };
    fill(ask, XATTR_VALUE_MAX)
}

/// Most lists and values are short. (A size of 0 would ask for the length only.)
fn fill(ask: impl Fn(&mut [u8]) -> io::Result<usize>, most: usize) -> io::Result<Vec<u8>> {
    let mut out = vec![0; 256];
    let got = match ask(&mut out) {
        Err(e) if e.raw_os_error() == Some(libc::ERANGE) => {
            out.resize(most, 0);
            ask(&mut out)?
        }
        other => other?,
    };
    out.truncate(got);
    Ok(out)
}

/// setxattr(2).
pub fn set_xattr(fd: BorrowedFd<'_>, name: &CStr, value: &[u8]) -> io::Result<()> {
    let path = proc_path(fd);
    let (at, length) = (value.as_ptr().cast(), value.len());
    // SAFETY: both strings end with NUL; pointer and length describe `value`.
    check(unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), at, length, 0) }).map(drop)
}

/// removexattr(2).
pub fn remove_xattr(fd: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    let path = proc_path(fd);
    // SAFETY: both strings end with NUL.
    check(unsafe { libc::removexattr(path.as_ptr(), name.as_ptr()) }).map(drop)
}
