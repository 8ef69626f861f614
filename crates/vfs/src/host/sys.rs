//! The system calls of the back end, and most of its unsafe code: each function checks nothing but
//! the result, and returns the errno as its error.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

use base::memory::cached_pages;
use libc::{c_int, c_long};

pub mod extents;
pub mod identity;
pub mod subvolume;
pub mod xattr;

/// Longest kernel handle that we carry: btrfs has 20 bytes, which is the longest of those we know.
pub const KERNEL_HANDLE_MAX: usize = 32;

/// What `name_to_handle_at` gives: a type and some bytes that only the file system understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KernelHandle {
    /// `handle_type`.
    pub kind: u8,
    len: u8,
    bytes: [u8; KERNEL_HANDLE_MAX],
}

impl KernelHandle {
    /// A kernel handle of these parts; `None` if it is longer than any we make.
    pub fn new(kind: u8, data: &[u8]) -> Option<Self> {
        let mut bytes = [0; KERNEL_HANDLE_MAX];
        bytes.get_mut(..data.len())?.copy_from_slice(data);
        Some(Self { kind, len: data.len() as u8, bytes })
    }

    /// `f_handle`.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// `struct file_handle` with room behind it.
#[repr(C)]
struct RawHandle {
    bytes: u32,
    kind: i32,
    data: [u8; KERNEL_HANDLE_MAX],
}

/// `struct open_how` (openat2(2)).
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

/// `openat2`: refuse to leave this mount.
pub const NO_XDEV: u64 = 0x01;
/// `openat2`: refuse symbolic links on the way.
pub const NO_SYMLINKS: u64 = 0x04;
/// `openat2`: refuse to leave the directory.
pub const BENEATH: u64 = 0x08;
/// `openat2`: only from the caches; EAGAIN otherwise.
pub const CACHED: u64 = 0x20;

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn check_long(result: c_long) -> io::Result<c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn check_size(result: isize) -> io::Result<usize> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
}

fn owned(fd: c_int) -> io::Result<OwnedFd> {
    let fd = check(fd)?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// openat(2), with O_CLOEXEC and O_NOFOLLOW added.
pub fn open_at(dir: BorrowedFd<'_>, name: &CStr, flags: c_int, mode: u32) -> io::Result<OwnedFd> {
    let flags = flags | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: `name` ends with NUL and outlives the call.
    owned(unsafe { libc::openat(dir.as_raw_fd(), name.as_ptr(), flags, mode) })
}

/// open(2) of a path given by the administrator; symbolic links are followed.
pub fn open_path(path: &CStr, flags: c_int) -> io::Result<OwnedFd> {
    // SAFETY: `path` ends with NUL and outlives the call.
    owned(unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) })
}

/// openat2(2) with O_CLOEXEC and O_NOFOLLOW added.
pub fn open_at2(
    dir: BorrowedFd<'_>,
    name: &CStr,
    flags: c_int,
    resolve: u64,
) -> io::Result<OwnedFd> {
    let flags = (flags | libc::O_CLOEXEC | libc::O_NOFOLLOW) as u64;
    let how = OpenHow { flags, mode: 0, resolve };
    // SAFETY: `name` ends with NUL; `how` is the structure of the kernel, with its size.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            dir.as_raw_fd(),
            name.as_ptr(),
            &raw const how,
            size_of::<OpenHow>(),
        )
    };
    owned(fd as c_int)
}

/// Opens once more what a descriptor leads to, with other flags (through `/proc/self/fd`).
pub fn reopen(fd: BorrowedFd<'_>, flags: c_int) -> io::Result<OwnedFd> {
    let path = ProcPath::new(fd);
    open_path(path.as_cstr(), flags)
}

/// An O_PATH descriptor for what another descriptor leads to. From an O_PATH one it is a copy:
/// opening a symbolic link through `/proc` would follow it.
pub fn reopen_path(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: F_GETFL involves no memory.
    let flags = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) })?;
    if flags & libc::O_PATH != 0 { same(fd) } else { reopen(fd, libc::O_PATH) }
}

/// `/proc/self/fd/N` without an allocation.
struct ProcPath {
    bytes: [u8; 32],
}

impl ProcPath {
    fn new(fd: BorrowedFd<'_>) -> Self {
        use std::io::Write as _;
        let mut bytes = [0; 32];
        // 14 + 10 digits + NUL fit into 32 bytes, so this cannot fail.
        let _ = write!(&mut bytes[..31], "/proc/self/fd/{}", fd.as_raw_fd());
        Self { bytes }
    }
    fn as_cstr(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

/// The path that the kernel knows for a descriptor (readlink of `/proc/self/fd/N`).
pub fn path_of(fd: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    let path = ProcPath::new(fd);
    let mut out = vec![0; base::limits::PATH_MAX];
    // SAFETY: the path ends with NUL; pointer and length describe `out`.
    let n = check_size(unsafe {
        libc::readlink(path.as_cstr().as_ptr(), out.as_mut_ptr().cast(), out.len())
    })?;
    out.truncate(n);
    Ok(out)
}

/// fstat(2); works on O_PATH descriptors.
#[inline]
pub fn stat(fd: BorrowedFd<'_>) -> io::Result<libc::stat> {
    let mut out = MaybeUninit::uninit();
    // SAFETY: the kernel fills `out` when it returns 0.
    check(unsafe { libc::fstat(fd.as_raw_fd(), out.as_mut_ptr()) })?;
    // SAFETY: filled just above.
    Ok(unsafe { out.assume_init() })
}

/// statx(2) of a name in a directory (of the directory itself for the empty name), links not
/// followed: the basic attributes, birth time and whether it is the root of a mount.
pub fn statx_at(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<libc::statx> {
    let mut out = MaybeUninit::uninit();
    let flags = libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH | libc::AT_NO_AUTOMOUNT;
    let mask = libc::STATX_BASIC_STATS | libc::STATX_BTIME | libc::STATX_MNT_ID;
    // SAFETY: `name` ends with NUL; the kernel fills `out` when it returns 0.
    check(unsafe { libc::statx(dir.as_raw_fd(), name.as_ptr(), flags, mask, out.as_mut_ptr()) })?;
    // SAFETY: filled just above.
    Ok(unsafe { out.assume_init() })
}

/// fstatfs(2).
pub fn statfs(fd: BorrowedFd<'_>) -> io::Result<libc::statfs> {
    let mut out = MaybeUninit::uninit();
    // SAFETY: the kernel fills `out` when it returns 0.
    check(unsafe { libc::fstatfs(fd.as_raw_fd(), out.as_mut_ptr()) })?;
    // SAFETY: filled just above.
    Ok(unsafe { out.assume_init() })
}

/// Bytes that this user may still write on the file system of a path.
pub fn bytes_free(path: &Path) -> io::Result<u64> {
    let stats = statfs(File::open(path)?.as_fd())?;
    Ok(stats.f_bavail.saturating_mul(stats.f_frsize.cast_unsigned()))
}

/// `f_fsid` as one number; 0 where the file system has none.
pub fn fsid(stats: &libc::statfs) -> u64 {
    // SAFETY: `fsid_t` is two 32-bit numbers on Linux; libc only hides the field.
    unsafe { std::mem::transmute_copy::<libc::fsid_t, u64>(&stats.f_fsid) }
}

/// name_to_handle_at(2) of a name, or of the descriptor itself for the empty name.
pub fn handle_of(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<KernelHandle> {
    let mut raw =
        RawHandle { bytes: KERNEL_HANDLE_MAX as u32, kind: 0, data: [0; KERNEL_HANDLE_MAX] };
    let mut mount: c_int = 0;
    // SAFETY: `raw` is a `file_handle` with `bytes` of room behind it; `name` ends with NUL.
    check(unsafe {
        libc::name_to_handle_at(
            dir.as_raw_fd(),
            name.as_ptr(),
            (&raw mut raw).cast(),
            &raw mut mount,
            libc::AT_EMPTY_PATH,
        )
    })?;
    let data = raw.data.get(..raw.bytes as usize);
    u8::try_from(raw.kind)
        .ok()
        .zip(data)
        .and_then(|(kind, data)| KernelHandle::new(kind, data))
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EOVERFLOW))
}

/// open_by_handle_at(2). Needs CAP_DAC_READ_SEARCH.
pub fn open_by_handle(
    mount: BorrowedFd<'_>,
    handle: &KernelHandle,
    flags: c_int,
) -> io::Result<OwnedFd> {
    let mut raw = RawHandle {
        bytes: u32::from(handle.len),
        kind: i32::from(handle.kind),
        data: handle.bytes,
    };
    let flags = flags | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: `raw` is a `file_handle` with initialised `bytes`.
    owned(unsafe { libc::open_by_handle_at(mount.as_raw_fd(), (&raw mut raw).cast(), flags) })
}

/// preadv2(2) of one buffer. With `nowait`, EAGAIN when the data is not in memory.
#[inline]
pub fn read_at(fd: BorrowedFd<'_>, buf: &mut [u8], offset: u64, nowait: bool) -> io::Result<usize> {
    let iov = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
    let flags = if nowait { libc::RWF_NOWAIT } else { 0 };
    // SAFETY: the vector describes `buf`, which is ours to write for the call.
    check_size(unsafe {
        libc::preadv2(fd.as_raw_fd(), &raw const iov, 1, offset as libc::off_t, flags)
    })
}

/// Whether all pages of this part of a file are in the page cache (cachestat(2)). `None` where the
/// kernel does not report it: before Linux 6.5, or for a file of another user.
pub fn in_cache(fd: BorrowedFd<'_>, offset: u64, count: usize) -> Option<bool> {
    const PAGE: u64 = 4096;
    let cached = cached_pages(fd, offset, count as u64).ok()?;
    let last = offset + (count as u64).saturating_sub(1);
    Some(cached.resident > last / PAGE - offset / PAGE)
}

/// Asks for a part of a file to be read into the page cache, and does not wait for it
/// (posix_fadvise(2)). A file system that takes no advice is none the worse for it.
pub fn will_need(fd: BorrowedFd<'_>, offset: u64, count: usize) {
    let Ok(offset) = libc::off_t::try_from(offset) else { return };
    // SAFETY: no memory is involved.
    unsafe {
        libc::posix_fadvise(fd.as_raw_fd(), offset, count as libc::off_t, libc::POSIX_FADV_WILLNEED)
    };
}

/// pwrite(2).
pub fn write_at(fd: BorrowedFd<'_>, data: &[u8], offset: u64) -> io::Result<usize> {
    // SAFETY: pointer and length describe `data`.
    check_size(unsafe {
        libc::pwrite(fd.as_raw_fd(), data.as_ptr().cast(), data.len(), offset as libc::off_t)
    })
}

/// pwritev2(2) of one buffer, with `RWF_*` flags.
pub fn write_flags(
    fd: BorrowedFd<'_>,
    data: &[u8],
    offset: u64,
    flags: c_int,
) -> io::Result<usize> {
    let iov = libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() };
    // SAFETY: the vector describes `data`, which the kernel only reads.
    check_size(unsafe {
        libc::pwritev2(fd.as_raw_fd(), &raw const iov, 1, offset as libc::off_t, flags)
    })
}

/// fsync(2), or fdatasync(2).
pub fn sync(fd: BorrowedFd<'_>, data_only: bool) -> io::Result<()> {
    let fd = fd.as_raw_fd();
    // SAFETY: no memory is involved.
    check(unsafe { if data_only { libc::fdatasync(fd) } else { libc::fsync(fd) } }).map(drop)
}

/// syncfs(2).
pub fn sync_all(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::syncfs(fd.as_raw_fd()) }).map(drop)
}

/// Whether [`sync_all`] brings everything to disk. It does so by the rules of these file systems;
/// others, of network servers and in user space, need not be sent it, and some leave the disk's own
/// cache alone.
pub fn syncs_all(stats: &libc::statfs) -> bool {
    // linux/magic.h, and zfs, bcachefs of their own sources.
    const EXT4_SUPER_MAGIC: u64 = 0xef53;
    const XFS_SUPER_MAGIC: u64 = 0x5846_5342;
    const BTRFS_SUPER_MAGIC: u64 = 0x9123_683e;
    const F2FS_SUPER_MAGIC: u64 = 0xf2f5_2010;
    const OVERLAYFS_SUPER_MAGIC: u64 = 0x794c_7630;
    const TMPFS_MAGIC: u64 = 0x0102_1994;
    const ZFS_SUPER_MAGIC: u64 = 0x2fc1_2fc1;
    const BCACHEFS_SUPER_MAGIC: u64 = 0xca45_1a4e;
    matches!(
        stats.f_type as u64,
        EXT4_SUPER_MAGIC
            | XFS_SUPER_MAGIC
            | BTRFS_SUPER_MAGIC
            | F2FS_SUPER_MAGIC
            | OVERLAYFS_SUPER_MAGIC
            | TMPFS_MAGIC
            | ZFS_SUPER_MAGIC
            | BCACHEFS_SUPER_MAGIC
    )
}

/// Whether write-back has failed since this was last asked by the same descriptor, or a flush by
/// it: sync_file_range(2), which waits for pages that are being written and begins nothing.
///
/// # Errors
/// The one that the write-back has met.
pub fn check_written_back(fd: BorrowedFd<'_>) -> io::Result<()> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE;
    // SAFETY: no memory is involved; a length of 0 means to the end of the file.
    check(unsafe { libc::sync_file_range(fd.as_raw_fd(), 0, 0, flags) }).map(drop)
}

/// ftruncate(2).
pub fn truncate(fd: BorrowedFd<'_>, size: u64) -> io::Result<()> {
    let size = i64::try_from(size).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    // SAFETY: no memory is involved.
    check(unsafe { libc::ftruncate(fd.as_raw_fd(), size) }).map(drop)
}

/// Sets permission bits through any descriptor, O_PATH too: fchmodat2(2), else through `/proc`.
pub fn chmod(fd: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
    // SAFETY: the empty name ends with NUL.
    let done = check_long(unsafe {
        libc::syscall(libc::SYS_fchmodat2, fd.as_raw_fd(), c"".as_ptr(), mode, libc::AT_EMPTY_PATH)
    });
    match done {
        Err(e) if matches!(e.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL)) => {
            let path = ProcPath::new(fd);
            // SAFETY: the path ends with NUL.
            check(unsafe { libc::chmod(path.as_cstr().as_ptr(), mode) }).map(drop)
        }
        other => other.map(drop),
    }
}

/// fchownat(2) of the descriptor itself; `u32::MAX` leaves an id as it is.
pub fn chown(fd: BorrowedFd<'_>, uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: the empty name ends with NUL.
    check(unsafe { libc::fchownat(fd.as_raw_fd(), c"".as_ptr(), uid, gid, libc::AT_EMPTY_PATH) })
        .map(drop)
}

/// utimensat(2) of the descriptor itself.
pub fn set_times(fd: BorrowedFd<'_>, times: &[libc::timespec; 2]) -> io::Result<()> {
    // SAFETY: the empty name ends with NUL; `times` are two.
    check(unsafe {
        libc::utimensat(fd.as_raw_fd(), c"".as_ptr(), times.as_ptr(), libc::AT_EMPTY_PATH)
    })
    .map(drop)
}

/// The granularity of the times of a directory's file system, in nanoseconds: what it makes of a
/// time that it is given, for a file without a name. Where there are none, or nothing may be
/// written, by the kind of the file system; 1 if nothing is known.
pub fn time_delta_ns(dir: BorrowedFd<'_>, stats: &libc::statfs) -> u32 {
    const MSDOS_SUPER_MAGIC: u64 = 0x4d44;
    const EXFAT_SUPER_MAGIC: u64 = 0x2011_bab0;
    // An odd second, since some keep only even ones.
    const GIVEN: libc::timespec = libc::timespec { tv_sec: 1_000_000_001, tv_nsec: 999_999_999 };
    let kept = open_at(dir, c".", libc::O_TMPFILE | libc::O_RDWR, 0o600).and_then(|file| {
        set_times(file.as_fd(), &[GIVEN, GIVEN])?;
        stat(file.as_fd())
    });
    let lost = |kept: libc::stat| {
        (GIVEN.tv_sec - kept.st_mtime) * 1_000_000_000 + GIVEN.tv_nsec - kept.st_mtime_nsec
    };
    match kept.map(lost) {
        Ok(lost) => u32::try_from(lost).map_or(1, |lost| lost.saturating_add(1)),
        Err(_) => match stats.f_type as u64 {
            MSDOS_SUPER_MAGIC => 2_000_000_000,
            EXFAT_SUPER_MAGIC => 10_000_000,
            _ => 1,
        },
    }
}

/// mkdirat(2).
pub fn mkdir_at(dir: BorrowedFd<'_>, name: &CStr, mode: u32) -> io::Result<()> {
    // SAFETY: `name` ends with NUL.
    check(unsafe { libc::mkdirat(dir.as_raw_fd(), name.as_ptr(), mode) }).map(drop)
}

/// mknodat(2).
pub fn mknod_at(dir: BorrowedFd<'_>, name: &CStr, mode: u32, dev: u64) -> io::Result<()> {
    // SAFETY: `name` ends with NUL.
    check(unsafe { libc::mknodat(dir.as_raw_fd(), name.as_ptr(), mode, dev) }).map(drop)
}

/// symlinkat(2).
pub fn symlink_at(target: &CStr, dir: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    // SAFETY: both end with NUL.
    check(unsafe { libc::symlinkat(target.as_ptr(), dir.as_raw_fd(), name.as_ptr()) }).map(drop)
}

/// readlinkat(2) of the descriptor itself.
pub fn readlink(fd: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    let mut out = vec![0; base::limits::PATH_MAX];
    // SAFETY: the empty name ends with NUL; pointer and length describe `out`.
    let n = check_size(unsafe {
        libc::readlinkat(fd.as_raw_fd(), c"".as_ptr(), out.as_mut_ptr().cast(), out.len())
    })?;
    out.truncate(n);
    Ok(out)
}

/// unlinkat(2); `dir_too` removes a directory.
pub fn unlink_at(dir: BorrowedFd<'_>, name: &CStr, dir_too: bool) -> io::Result<()> {
    let flags = if dir_too { libc::AT_REMOVEDIR } else { 0 };
    // SAFETY: `name` ends with NUL.
    check(unsafe { libc::unlinkat(dir.as_raw_fd(), name.as_ptr(), flags) }).map(drop)
}

/// renameat(2).
pub fn rename_at(from: (BorrowedFd<'_>, &CStr), to: (BorrowedFd<'_>, &CStr)) -> io::Result<()> {
    // SAFETY: both names end with NUL.
    check(unsafe {
        libc::renameat(from.0.as_raw_fd(), from.1.as_ptr(), to.0.as_raw_fd(), to.1.as_ptr())
    })
    .map(drop)
}

/// linkat(2) of what a descriptor leads to, O_PATH too (through `/proc/self/fd`).
pub fn link_at(file: BorrowedFd<'_>, dir: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    let path = ProcPath::new(file);
    // SAFETY: both names end with NUL.
    check(unsafe {
        libc::linkat(
            libc::AT_FDCWD,
            path.as_cstr().as_ptr(),
            dir.as_raw_fd(),
            name.as_ptr(),
            libc::AT_SYMLINK_FOLLOW,
        )
    })
    .map(drop)
}

/// faccessat2(2) of the descriptor itself with the thread's effective identity.
pub fn may(fd: BorrowedFd<'_>, rwx: u32) -> io::Result<()> {
    // SAFETY: the empty name ends with NUL.
    check_long(unsafe {
        libc::syscall(
            libc::SYS_faccessat2,
            fd.as_raw_fd(),
            c"".as_ptr(),
            rwx,
            libc::AT_EMPTY_PATH | libc::AT_EACCESS,
        )
    })
    .map(drop)
}

/// Whether the file has a POSIX access control list.
pub fn has_acl(fd: BorrowedFd<'_>) -> io::Result<bool> {
    let path = ProcPath::new(fd);
    let name = c"system.posix_acl_access";
    // SAFETY: both strings end with NUL; with a size of 0 the kernel only returns the length.
    let n =
        unsafe { libc::getxattr(path.as_cstr().as_ptr(), name.as_ptr(), std::ptr::null_mut(), 0) };
    match check_size(n) {
        Ok(_) => Ok(true),
        Err(e) if matches!(e.raw_os_error(), Some(libc::ENODATA | libc::EOPNOTSUPP)) => Ok(false),
        Err(e) => Err(e),
    }
}

/// getdents64(2): the raw entries; 0 bytes at the end.
pub fn dents(fd: BorrowedFd<'_>, buf: &mut [u8]) -> io::Result<usize> {
    // SAFETY: pointer and length describe `buf`.
    let n =
        unsafe { libc::syscall(libc::SYS_getdents64, fd.as_raw_fd(), buf.as_mut_ptr(), buf.len()) };
    check_size(n as isize)
}

/// lseek(2) of a directory to a cookie that getdents64 gave.
pub fn seek_dir(fd: BorrowedFd<'_>, cookie: u64) -> io::Result<()> {
    // SAFETY: no memory is involved.
    let n = unsafe { libc::lseek(fd.as_raw_fd(), cookie as libc::off_t, libc::SEEK_SET) };
    if n < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The thread's own file-system user; only raw calls change one thread alone.
pub fn set_fsuid(uid: u32) -> u32 {
    // SAFETY: no memory is involved. The call returns the previous id and cannot fail visibly.
    unsafe { libc::syscall(libc::SYS_setfsuid, uid) as u32 }
}

/// The thread's own file-system group.
pub fn set_fsgid(gid: u32) -> u32 {
    // SAFETY: as for `set_fsuid`.
    unsafe { libc::syscall(libc::SYS_setfsgid, gid) as u32 }
}

/// The thread's own supplementary groups.
pub fn set_groups(groups: &[u32]) -> io::Result<()> {
    // SAFETY: pointer and length describe `groups`.
    check_long(unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) })
        .map(drop)
}

/// The sets of a thread (capabilities(7)), as bit masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Effective.
    pub effective: u64,
    /// May be made effective.
    pub permitted: u64,
    /// Kept over execve(2).
    pub inheritable: u64,
}

/// CAP_SYS_RESOURCE.
pub const CAP_SYS_RESOURCE: u64 = 1 << 24;
/// What the kernel drops when the file-system user changes from root (`CAP_FS_SET`).
pub const CAPS_OVER_FILES: u64 = 0x1f | 1 << 9 | 1 << 27 | 1 << 32;

/// `struct __user_cap_header_struct`, version 3, this thread.
#[repr(C)]
struct CapHeader {
    version: u32,
    pid: c_int,
}

const CAP_VERSION: u32 = 0x2008_0522;

/// capget(2) of this thread.
pub fn capabilities() -> io::Result<Capabilities> {
    let mut header = CapHeader { version: CAP_VERSION, pid: 0 };
    let mut data = [[0_u32; 3]; 2];
    // SAFETY: version 3 takes a header and two structures of three numbers.
    check_long(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()) })?;
    let [low, high] = data;
    let set = |n: usize| u64::from(low[n]) | u64::from(high[n]) << 32;
    Ok(Capabilities { effective: set(0), permitted: set(1), inheritable: set(2) })
}

/// capset(2) of this thread alone.
pub fn set_capabilities(caps: &Capabilities) -> io::Result<()> {
    let mut header = CapHeader { version: CAP_VERSION, pid: 0 };
    let sets = [caps.effective, caps.permitted, caps.inheritable];
    let data = [sets.map(|set| set as u32), sets.map(|set| (set >> 32) as u32)];
    // SAFETY: as for `capabilities`.
    check_long(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, data.as_ptr()) }).map(drop)
}

/// Sets O_NOATIME on an open descriptor. Needs the owner or CAP_FOWNER.
pub fn leave_atime(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: F_GETFL and F_SETFL involve no memory.
    unsafe {
        let flags = check(libc::fcntl(fd.as_raw_fd(), libc::F_GETFL))?;
        check(libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NOATIME)).map(drop)
    }
}

/// The process's supplementary groups.
pub fn groups() -> Vec<u32> {
    // SAFETY: with a size of 0 the kernel only returns the count.
    let count = unsafe { libc::getgroups(0, std::ptr::null_mut()) };
    let mut out = vec![0; count.max(0) as usize];
    // SAFETY: pointer and length describe `out`.
    let got = unsafe { libc::getgroups(out.len() as c_int, out.as_mut_ptr()) };
    out.truncate(got.max(0) as usize);
    out
}

/// Effective user and group of the process.
pub fn effective_ids() -> (u32, u32) {
    // SAFETY: these calls cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// Gives this thread a umask of its own (it was the whole process's); returns whether it has one.
pub fn own_umask() -> bool {
    // SAFETY: no memory is involved; only this thread's view is changed.
    unsafe { libc::unshare(libc::CLONE_FS) == 0 }
}

/// umask(2): sets it and returns the previous one.
pub fn umask(mask: u32) -> u32 {
    // SAFETY: cannot fail.
    unsafe { libc::umask(mask) }
}

/// The limit on descriptors of this process (soft).
pub fn descriptor_limit() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills `limit`.
    let done = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    if done == 0 { usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX) } else { 1_024 }
}

/// A device number from its parts.
pub fn device(major: u32, minor: u32) -> u64 {
    libc::makedev(major, minor)
}

/// The parts of a device number.
pub fn device_parts(dev: u64) -> (u32, u32) {
    (libc::major(dev), libc::minor(dev))
}

/// The current directory as a base for absolute and relative paths.
pub fn here() -> BorrowedFd<'static> {
    // SAFETY: AT_FDCWD is always valid and is never closed.
    unsafe { BorrowedFd::borrow_raw(libc::AT_FDCWD) }
}

/// A descriptor for the same open file, so that errors of the file's write-back are seen once.
pub fn same(fd: impl AsFd) -> io::Result<OwnedFd> {
    fd.as_fd().try_clone_to_owned()
}
