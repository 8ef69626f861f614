//! Between the file contract's attributes and those on the wire (RFC 1813 §2.5, §2.6).

use vfs::attr::{Attr, Before, FileType, SetAttr, SetTime, Time, Wcc};
use vfs::status::Status;
use wire::nfs3::{Fattr3, Ftype3, Nfstime3, Sattr3, Specdata3, WccAttr, WccData};

/// Nanoseconds of a time.
const NSECONDS_MAX: u32 = 999_999_999;

/// Times on the wire are unsigned seconds: what lies outside is moved to the nearest end.
pub(super) fn nfstime(time: Time) -> Nfstime3 {
    let seconds = u32::try_from(time.sec.max(0)).unwrap_or(u32::MAX);
    Nfstime3 { seconds, nseconds: time.nsec }
}

/// The time of a guard, which is compared; too many nanoseconds are cut.
pub(super) fn time(time: Nfstime3) -> Time {
    Time { sec: i64::from(time.seconds), nsec: time.nseconds.min(NSECONDS_MAX) }
}

fn ftype(kind: FileType) -> Ftype3 {
    match kind {
        FileType::Regular => Ftype3::REG,
        FileType::Directory => Ftype3::DIR,
        FileType::Symlink => Ftype3::LNK,
        FileType::Block => Ftype3::BLK,
        FileType::Character => Ftype3::CHR,
        FileType::Fifo => Ftype3::FIFO,
        FileType::Socket => Ftype3::SOCK,
    }
}

/// Attributes for the wire.
pub(super) fn fattr(attr: &Attr) -> Fattr3 {
    Fattr3 {
        ftype: ftype(attr.kind),
        mode: attr.mode,
        nlink: attr.nlink,
        uid: attr.uid,
        gid: attr.gid,
        size: attr.size,
        used: attr.used,
        rdev: Specdata3 { specdata1: attr.rdev.0, specdata2: attr.rdev.1 },
        fsid: attr.fsid,
        fileid: attr.fileid,
        atime: nfstime(attr.atime),
        mtime: nfstime(attr.mtime),
        ctime: nfstime(attr.ctime),
    }
}

/// Before and after, for the wire.
pub(super) fn wcc(wcc: &Wcc) -> WccData {
    let before =
        |b: &Before| WccAttr { size: b.size, mtime: nfstime(b.mtime), ctime: nfstime(b.ctime) };
    WccData { before: wcc.before.as_ref().map(before), after: wcc.after.as_ref().map(fattr) }
}

fn set_time(how: wire::nfs3::SetTime) -> Result<SetTime, Status> {
    match how {
        wire::nfs3::SetTime::DontChange => Ok(SetTime::Keep),
        wire::nfs3::SetTime::ServerTime => Ok(SetTime::Now),
        wire::nfs3::SetTime::ClientTime(at) if at.nseconds > NSECONDS_MAX => Err(Status::Invalid),
        wire::nfs3::SetTime::ClientTime(at) => Ok(SetTime::At(time(at))),
    }
}

/// What a client wants to set.
///
/// # Errors
/// [`Status::Invalid`] for a time of a second or more of nanoseconds (RFC 1813 §2.5).
pub(super) fn set_attr(set: &Sattr3) -> Result<SetAttr, Status> {
    Ok(SetAttr {
        mode: set.mode.map(|mode| mode & 0o7777),
        uid: set.uid,
        gid: set.gid,
        size: set.size,
        atime: set_time(set.atime)?,
        mtime: set_time(set.mtime)?,
        umask: None,
    })
}

#[cfg(test)]
mod tests;
