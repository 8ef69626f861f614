//! System calls on extended attributes, through `/proc/self/fd`: the descriptors that we hold on
//! files are O_PATH, on which they do not work directly.

use std::ffi::CStr;
use std::io;
use std::os::fd::BorrowedFd;

use libc::{c_char, c_void};

use super::{ProcPath, check, check_size};

/// getxattr(2).
pub fn get(fd: BorrowedFd<'_>, name: &CStr, max: usize) -> io::Result<Vec<u8>> {
    get_of(libc::getxattr, ProcPath::new(fd).as_cstr(), (name, max))
}

/// lgetxattr(2) of an entry of a directory: of a link itself.
pub fn get_at(
    (dir, entry): (BorrowedFd<'_>, &CStr),
    name: &CStr,
    max: usize,
) -> io::Result<Vec<u8>> {
    let dir = ProcPath::new(dir);
    let path = [dir.as_cstr().to_bytes(), b"/", entry.to_bytes_with_nul()].concat();
    let path = CStr::from_bytes_with_nul(&path).map_err(io::Error::other)?;
    get_of(libc::lgetxattr, path, (name, max))
}

/// getxattr(2) or lgetxattr(2).
type Get = unsafe extern "C" fn(*const c_char, *const c_char, *mut c_void, usize) -> isize;

fn get_of(get: Get, path: &CStr, (name, max): (&CStr, usize)) -> io::Result<Vec<u8>> {
    let ask = |out: &mut [u8]| {
        // SAFETY: both strings end with NUL; pointer and length describe `out`.
        check_size(unsafe { get(path.as_ptr(), name.as_ptr(), out.as_mut_ptr().cast(), out.len()) })
    };
    // Most are short. A size of 0 would ask for the length only.
    let mut out = vec![0; 256.min(max.max(1))];
    let got = match ask(&mut out) {
        Err(e) if e.raw_os_error() == Some(libc::ERANGE) => {
            out.resize(max, 0);
            ask(&mut out)?
        }
        other => other?,
    };
    out.truncate(got);
    Ok(out)
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
