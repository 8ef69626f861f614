//! Conversion of the kernel's attributes to [`Attr`]. The generation is not among them: it is that
//! of the file's [`Ident`](crate::host::ids::Ident), and the caller that knows it adds it.

use std::os::fd::BorrowedFd;

use base::clock::{Clock, SystemClock};
use base::limits::TIME_DELTA_FINE_NS;

use crate::attr::{Attr, FileType, SetAttr, SetTime, Time};
use crate::host::sys;
use crate::status::Result;

/// Kind of file from `st_mode`.
pub fn kind(mode: u32) -> FileType {
    match mode & libc::S_IFMT {
        libc::S_IFDIR => FileType::Directory,
        libc::S_IFLNK => FileType::Symlink,
        libc::S_IFBLK => FileType::Block,
        libc::S_IFCHR => FileType::Character,
        libc::S_IFIFO => FileType::Fifo,
        libc::S_IFSOCK => FileType::Socket,
        _ => FileType::Regular,
    }
}

/// The file system of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Medium {
    /// Its identifier.
    pub fsid: u64,
    /// Granularity of its times, in nanoseconds.
    pub time_delta_ns: u32,
}

impl Medium {
    /// The change attribute of a file with the change time `ctime`, both in nanoseconds.
    ///
    /// Where change times are coarse, a file may be changed again without another one, and what was
    /// counted of that ends with the [`Node`](crate::host::node::Node). So the last state of such a
    /// time, which is there once the time is over, has a number that no earlier one had: the last
    /// of those that the time stands for.
    #[inline]
    pub fn change(self, ctime: u64) -> u64 {
        if self.time_delta_ns <= TIME_DELTA_FINE_NS {
            return ctime;
        }
        let delta = u64::from(self.time_delta_ns);
        let is_over = SystemClock.wall_ns() >= ctime.saturating_add(delta);
        if is_over { ctime.saturating_add(delta - 1) } else { ctime }
    }
}

/// From fstat(2).
#[inline]
pub fn from_stat(st: &libc::stat, medium: Medium) -> Attr {
    let time = |sec: i64, nsec: i64| Time { sec, nsec: nsec as u32 };
    Attr {
        kind: kind(st.st_mode),
        mode: st.st_mode & 0o7777,
        nlink: st.st_nlink as u32,
        uid: st.st_uid,
        gid: st.st_gid,
        size: st.st_size as u64,
        used: st.st_blocks as u64 * 512,
        rdev: if st.st_rdev == 0 { (0, 0) } else { sys::device_parts(st.st_rdev) },
        fsid: medium.fsid,
        fileid: st.st_ino,
        generation: 0,
        atime: time(st.st_atime, st.st_atime_nsec),
        mtime: time(st.st_mtime, st.st_mtime_nsec),
        ctime: time(st.st_ctime, st.st_ctime_nsec),
        change: medium.change(time(st.st_ctime, st.st_ctime_nsec).ns()),
        birth: None,
    }
}

/// From statx(2).
pub fn from_statx(sx: &libc::statx, medium: Medium) -> Attr {
    let time = |t: &libc::statx_timestamp| Time { sec: t.tv_sec, nsec: t.tv_nsec };
    Attr {
        kind: kind(u32::from(sx.stx_mode)),
        mode: u32::from(sx.stx_mode) & 0o7777,
        nlink: sx.stx_nlink,
        uid: sx.stx_uid,
        gid: sx.stx_gid,
        size: sx.stx_size,
        used: sx.stx_blocks * 512,
        rdev: (sx.stx_rdev_major, sx.stx_rdev_minor),
        fsid: medium.fsid,
        fileid: sx.stx_ino,
        generation: 0,
        atime: time(&sx.stx_atime),
        mtime: time(&sx.stx_mtime),
        ctime: time(&sx.stx_ctime),
        change: medium.change(time(&sx.stx_ctime).ns()),
        birth: birth_time(sx),
    }
}

/// Birth time, if the file system keeps it.
pub fn birth_time(sx: &libc::statx) -> Option<Time> {
    let known = sx.stx_mask & libc::STATX_BTIME != 0;
    known.then_some(Time { sec: sx.stx_btime.tv_sec, nsec: sx.stx_btime.tv_nsec })
}

/// Birth time in nanoseconds since the epoch; 0 if the file system does not keep it.
pub fn birth(sx: &libc::statx) -> u64 {
    birth_time(sx).map_or(0, Time::ns)
}

/// The device a file is on.
pub fn device(sx: &libc::statx) -> u64 {
    sys::device(sx.stx_dev_major, sx.stx_dev_minor)
}

/// Sets everything but the size. The owner goes before the mode, because giving a file away
/// clears bits of it.
pub fn apply(fd: BorrowedFd<'_>, set: &SetAttr) -> Result<()> {
    if set.uid.is_some() || set.gid.is_some() {
        sys::chown(fd, set.uid.unwrap_or(u32::MAX), set.gid.unwrap_or(u32::MAX))?;
    }
    if let Some(mode) = set.mode {
        sys::chmod(fd, mode & 0o7777)?;
    }
    if set.atime != SetTime::Keep || set.mtime != SetTime::Keep {
        sys::set_times(fd, &[timespec(set.atime), timespec(set.mtime)])?;
    }
    Ok(())
}

fn timespec(time: SetTime) -> libc::timespec {
    let (tv_sec, tv_nsec) = match time {
        SetTime::Keep => (0, libc::UTIME_OMIT),
        SetTime::Now => (0, libc::UTIME_NOW),
        SetTime::At(at) => (at.sec, i64::from(at.nsec)),
    };
    libc::timespec { tv_sec, tv_nsec }
}

#[cfg(test)]
mod tests;
