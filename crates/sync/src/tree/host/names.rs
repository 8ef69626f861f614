//! The names of users and groups on this machine, from its name service.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;

use base::limits::DSYNC_OWNER_ENTRY_MAX;
use libc::{c_char, c_int};

/// Bytes that an entry mostly fits into.
const ENTRY: usize = 4_096;

/// Asks for an entry, with more room as long as that is what is missing. `ask` is given the entry,
/// the room for its strings, and where to say whether there is one.
fn entry<E, R>(
    ask: impl Fn(*mut E, &mut [c_char], &mut *mut E) -> c_int,
    take: impl Fn(&E) -> R,
) -> Option<R> {
    let mut room = vec![0 as c_char; ENTRY];
    loop {
        let (mut entry, mut found) = (MaybeUninit::<E>::uninit(), std::ptr::null_mut());
        match ask(entry.as_mut_ptr(), &mut room, &mut found) {
            libc::ERANGE if room.len() < DSYNC_OWNER_ENTRY_MAX => room.resize(room.len() * 4, 0),
            libc::EINTR => {}
            // SAFETY: with 0 and a result that is not null the entry is filled, and its strings lie
            // in `room`, which is still there.
            0 if !found.is_null() => return Some(take(unsafe { entry.assume_init_ref() })),
            _ => return None,
        }
    }
}

fn text(string: *const c_char) -> Vec<u8> {
    // SAFETY: the name of an entry that was found is a string with its NUL.
    unsafe { CStr::from_ptr(string) }.to_bytes().to_vec()
}

/// getpwuid_r(3), getgrgid_r(3): the name of a number.
pub fn of(group: bool, number: u32) -> Option<Vec<u8>> {
    match group {
        false => entry(
            |entry, room: &mut [c_char], found| {
                // SAFETY: all pointers are to what lives here; the length is that of the room.
                unsafe { libc::getpwuid_r(number, entry, room.as_mut_ptr(), room.len(), found) }
            },
            |entry: &libc::passwd| text(entry.pw_name),
        ),
        true => entry(
            |entry, room: &mut [c_char], found| {
                // SAFETY: as above.
                unsafe { libc::getgrgid_r(number, entry, room.as_mut_ptr(), room.len(), found) }
            },
            |entry: &libc::group| text(entry.gr_name),
        ),
    }
}

/// getpwnam_r(3), getgrnam_r(3): the number of a name.
pub fn number(group: bool, name: &[u8]) -> io::Result<Option<u32>> {
    let name: CString = super::sys::c(name)?;
    Ok(match group {
        false => entry(
            |entry, room: &mut [c_char], found| {
                let (name, length) = (name.as_ptr(), room.len());
                // SAFETY: as above; the name ends with NUL.
                unsafe { libc::getpwnam_r(name, entry, room.as_mut_ptr(), length, found) }
            },
            |entry: &libc::passwd| entry.pw_uid,
        ),
        true => entry(
            |entry, room: &mut [c_char], found| {
                let (name, length) = (name.as_ptr(), room.len());
                // SAFETY: as above.
                unsafe { libc::getgrnam_r(name, entry, room.as_mut_ptr(), length, found) }
            },
            |entry: &libc::group| entry.gr_gid,
        ),
    })
}
