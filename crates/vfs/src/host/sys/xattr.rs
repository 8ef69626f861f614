//! System calls on extended attributes, through `/proc/self/fd`: the descriptors that we hold on
//! files are O_PATH, on which they do not work directly.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::OnceLock;

use libc::{c_char, c_void};

use super::{ProcPath, check, check_size};

/// getxattr(2).
pub fn get(fd: BorrowedFd<'_>, name: &CStr, max: usize) -> io::Result<Vec<u8>> {
    get_of(libc::getxattr, ProcPath::new(fd).as_cstr(), (name, max))
}

/// The attribute of an entry of a directory: of a link itself. By getxattrat(2) where the kernel
/// has it, otherwise by lgetxattr(2) of a path below `/proc`, which takes twice as long.
pub fn get_at(
    (dir, entry): (BorrowedFd<'_>, &CStr),
    name: &CStr,
    max: usize,
) -> io::Result<Vec<u8>> {
    if has_getxattrat() {
        return of_most(max, |out| getxattrat((dir.as_raw_fd(), entry), name, out));
    }
    let dir = ProcPath::new(dir);
    let path = [dir.as_cstr().to_bytes(), b"/", entry.to_bytes_with_nul()].concat();
    let path = CStr::from_bytes_with_nul(&path).map_err(io::Error::other)?;
    get_of(libc::lgetxattr, path, (name, max))
}

/// Number of getxattrat(2), from Linux 6.13 on the same on all architectures.
const GETXATTRAT: libc::c_long = 464;

/// `struct xattr_args` of the kernel.
#[repr(C)]
struct Value {
    value: u64,
    size: u32,
    flags: u32,
}

/// Whether this kernel has getxattrat(2), and lets it be called.
fn has_getxattrat() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    let ask = || match getxattrat((libc::AT_FDCWD, c"/"), c"user.plimsoll", &mut [0]) {
        // What filters system calls may answer so.
        Err(e) => !matches!(e.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)),
        Ok(_) => true,
    };
    *HAS.get_or_init(ask)
}

fn getxattrat((dir, entry): (RawFd, &CStr), name: &CStr, out: &mut [u8]) -> io::Result<usize> {
    let size = u32::try_from(out.len()).unwrap_or(u32::MAX);
    let args = Value { value: out.as_mut_ptr() as u64, size, flags: 0 };
    // SAFETY: both strings end with NUL; `args` describes `out`, and both live as long as the call.
    let got = unsafe {
        libc::syscall(
            GETXATTRAT,
            dir,
            entry.as_ptr(),
            libc::AT_SYMLINK_NOFOLLOW,
            name.as_ptr(),
            &raw const args,
            size_of::<Value>(),
        )
    };
    check_size(got as isize)
}

/// getxattr(2) or lgetxattr(2).
type Get = unsafe extern "C" fn(*const c_char, *const c_char, *mut c_void, usize) -> isize;

fn get_of(get: Get, path: &CStr, (name, max): (&CStr, usize)) -> io::Result<Vec<u8>> {
    of_most(max, |out| {
        // SAFETY: both strings end with NUL; pointer and length describe `out`.
        check_size(unsafe { get(path.as_ptr(), name.as_ptr(), out.as_mut_ptr().cast(), out.len()) })
    })
}

/// A value of at most `max` bytes, into a buffer that `ask` fills.
fn of_most(max: usize, ask: impl Fn(&mut [u8]) -> io::Result<usize>) -> io::Result<Vec<u8>> {
    // Most are short, and most files have none: nothing is allocated for those. A size of 0 would
    // ask for the length only.
    let mut short = [0; 256];
    let most = short.len().min(max.max(1));
    let room = short.get_mut(..most).unwrap_or_default();
    match ask(room) {
        Err(e) if e.raw_os_error() == Some(libc::ERANGE) => {
            let mut out = vec![0; max];
            let got = ask(&mut out)?;
            out.truncate(got);
            Ok(out)
        }
        got => got.map(|got| room.get(..got).unwrap_or_default().to_vec()),
    }
}

/// setxattr(2) with `XATTR_CREATE`, `XATTR_REPLACE` or 0.
pub fn set(fd: BorrowedFd<'_>, name: &CStr, value: &[u8], flags: libc::c_int) -> io::Result<()> {
    let path = ProcPath::new(fd);
    // SAFETY: both strings end with NUL; pointer and length describe `value`.
    check(unsafe {
        libc::setxattr(
            path.as_cstr().as_ptr(),
            name.as_ptr(),
            value.as_ptr().cast(),
            value.len(),
            flags,
        )
    })
    .map(drop)
}

/// listxattr(2): the names, each with a NUL behind it.
pub fn list(fd: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    let path = ProcPath::new(fd);
    let mut out = vec![0; base::limits::XATTR_LIST_MAX];
    // SAFETY: the path ends with NUL; pointer and length describe `out`.
    let got = check_size(unsafe {
        libc::listxattr(path.as_cstr().as_ptr(), out.as_mut_ptr().cast(), out.len())
    })?;
    out.truncate(got);
    Ok(out)
}

/// removexattr(2).
pub fn remove(fd: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    let path = ProcPath::new(fd);
    // SAFETY: both strings end with NUL.
    check(unsafe { libc::removexattr(path.as_cstr().as_ptr(), name.as_ptr()) }).map(drop)
}
