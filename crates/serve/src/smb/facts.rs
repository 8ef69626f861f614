//! Attributes as Windows has them.

use vfs::attr::{Attr, FileType, SetTime, Time};
use vfs::fs::access as unix;
use wire::smb::class::attributes;
use wire::smb::create::{Facts, access};
use wire::smb::time;

fn filetime(time: Time) -> u64 {
    time::from_unix(time.sec, time.nsec)
}

/// What Windows is told of a file.
pub(super) fn of(attr: &Attr) -> Facts {
    let created = attr.birth.unwrap_or_else(|| attr.mtime.min(attr.ctime));
    let is_dir = attr.kind == FileType::Directory;
    let mut bits = match attr.kind {
        FileType::Directory => attributes::DIRECTORY,
        FileType::Regular => attributes::ARCHIVE,
        _ => attributes::NORMAL,
    };
    if !is_dir && attr.mode & 0o222 == 0 {
        bits |= attributes::READ_ONLY;
    }
    let (allocation, size) = if is_dir { (0, 0) } else { (attr.used, attr.size) };
    Facts {
        created: filetime(created),
        accessed: filetime(attr.atime),
        written: filetime(attr.mtime),
        changed: filetime(attr.ctime),
        allocation,
        size,
        attributes: bits,
    }
}

/// A time that a client sets: 0 and all ones leave it, and so does what comes before it.
pub(super) fn set_time(time: u64) -> SetTime {
    match time {
        0 | 0xffff_ffff_ffff_fffe | u64::MAX => SetTime::Keep,
        time => {
            let (sec, nsec) = time::to_unix(time);
            SetTime::At(Time { sec, nsec })
        }
    }
}

/// Rights of a user, from what the file system grants him.
pub(super) fn rights(granted: u32, attr: &Attr, (owns, may_delete): (bool, bool)) -> u32 {
    let mut mask = access::READ_ATTRIBUTES | access::READ_CONTROL | access::SYNCHRONIZE;
    mask |= access::READ_EA;
    if granted & unix::READ != 0 {
        mask |= access::READ_DATA;
    }
    if granted & (unix::MODIFY | unix::EXTEND) != 0 {
        mask |= access::WRITE_DATA | access::APPEND_DATA | access::WRITE_ATTRIBUTES;
        mask |= access::WRITE_EA;
    }
    let is_dir = attr.kind == FileType::Directory;
    if is_dir && granted & unix::DELETE != 0 {
        mask |= access::DELETE_CHILD;
    }
    let runs = if is_dir { unix::LOOKUP } else { unix::EXECUTE };
    if granted & runs != 0 || (!is_dir && granted & unix::READ != 0) {
        // Windows runs programs that it may read: permission to execute is for Unix.
        mask |= access::EXECUTE;
    }
    if owns {
        mask |= access::WRITE_DAC | access::WRITE_OWNER | access::WRITE_ATTRIBUTES;
        mask |= access::WRITE_EA;
    }
    if may_delete {
        mask |= access::DELETE;
    }
    mask
}

/// Everything that is asked of the file system for [`rights`].
pub(super) const ALL_UNIX: u32 =
    unix::READ | unix::LOOKUP | unix::MODIFY | unix::EXTEND | unix::DELETE | unix::EXECUTE;

#[cfg(test)]
mod tests;
