//! Attributes of a file, and the changes that a caller may ask for.

use base::clock::NS_PER_S;
use base::limits::CHANGE_SETTLED;

/// Seconds and nanoseconds since the epoch; seconds may be negative on disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Whole seconds.
    pub sec: i64,
    /// 0..1 000 000 000.
    pub nsec: u32,
}

impl Time {
    /// Nanoseconds since the epoch; before it, and after the year 2554, what is left of the number.
    pub const fn ns(self) -> u64 {
        (self.sec as u64).wrapping_mul(1_000_000_000).wrapping_add(self.nsec as u64)
    }

    /// The time that is `ns` nanoseconds after the epoch.
    pub const fn from_ns(ns: u64) -> Self {
        Self { sec: (ns / 1_000_000_000) as i64, nsec: (ns % 1_000_000_000) as u32 }
    }

    /// Whether a change after the time `now` (nanoseconds since the epoch) gets another change time
    /// than this one.
    pub fn is_settled(self, now: u64) -> bool {
        let changed = u64::try_from(self.sec).ok().and_then(|sec| sec.checked_mul(NS_PER_S));
        let changed = changed.and_then(|ns| ns.checked_add(u64::from(self.nsec)));
        let settled = CHANGE_SETTLED.as_nanos() as u64;
        changed.is_some_and(|changed| changed.saturating_add(settled) < now)
    }
}

/// What kind of thing a name leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileType {
    /// Regular file.
    Regular,
    /// Directory.
    Directory,
    /// Symbolic link.
    Symlink,
    /// Block device.
    Block,
    /// Character device.
    Character,
    /// Named pipe.
    Fifo,
    /// Socket.
    Socket,
}

/// The attributes of a file that protocols report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attr {
    /// Kind of file.
    pub kind: FileType,
    /// Permission bits with setuid, setgid and sticky: 12 bits.
    pub mode: u32,
    /// Hard links.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes.
    pub size: u64,
    /// Bytes of disk in use.
    pub used: u64,
    /// Major and minor number, for devices.
    pub rdev: (u32, u32),
    /// File system: the same for all files of one file system, over restarts where possible.
    pub fsid: u64,
    /// Inode number.
    pub fileid: u64,
    /// Distinguishes files that have had the same inode number one after the other: derived from
    /// the inode's generation where the kernel reports it (in its file handle), otherwise from the
    /// birth time. 0 where the file system has neither.
    pub generation: u64,
    /// Last access.
    pub atime: Time,
    /// Last change of the data.
    pub mtime: Time,
    /// Last change of data or attributes.
    pub ctime: Time,
    /// The change attribute (RFC 8881 §5.8.1.4): different after each change of data or attributes,
    /// and never lower. It is the change time in nanoseconds, plus one for each further change by
    /// this server within the same tick of the file system's clock. After a restart it is as
    /// reliable as that time.
    pub change: u64,
    /// Birth time, if the file system records it and the caller requests it: GETATTR does.
    pub birth: Option<Time>,
}

impl Attr {
    /// Attributes of the list of shares: a read-only directory.
    pub fn of_shares() -> Self {
        let time = Time::default();
        Self {
            kind: FileType::Directory,
            mode: 0o555,
            nlink: 2,
            uid: 0,
            gid: 0,
            size: 0,
            used: 0,
            rdev: (0, 0),
            fsid: 0,
            fileid: 0,
            generation: 0,
            atime: time,
            mtime: time,
            ctime: time,
            change: 0,
            birth: None,
        }
    }
}

/// A time that a caller sets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SetTime {
    /// Leave it.
    #[default]
    Keep,
    /// The server's time now.
    Now,
    /// This time.
    At(Time),
}

/// Changes asked for by SETATTR, or the first attributes of a new file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SetAttr {
    /// New permission bits.
    pub mode: Option<u32>,
    /// New owner.
    pub uid: Option<u32>,
    /// New group.
    pub gid: Option<u32>,
    /// New length: truncates or extends.
    pub size: Option<u64>,
    /// New access time.
    pub atime: SetTime,
    /// New modification time.
    pub mtime: SetTime,
    /// Permission bits to clear in the mode of a new file, unless its directory has a default
    /// access control list (RFC 8275). Has no effect on an existing file.
    pub umask: Option<u32>,
}

/// Attributes before a change, for weak cache consistency (RFC 1813 §2.3.8, `wcc_attr`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Before {
    /// Bytes.
    pub size: u64,
    /// Last change of the data.
    pub mtime: Time,
    /// Last change of data or attributes.
    pub ctime: Time,
    /// The change attribute, for `change_info4`.
    pub change: u64,
}

impl From<&Attr> for Before {
    fn from(attr: &Attr) -> Self {
        Self { size: attr.size, mtime: attr.mtime, ctime: attr.ctime, change: attr.change }
    }
}

/// A file or directory before and after a change. Either side may be unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wcc {
    /// As it was.
    pub before: Option<Before>,
    /// As it is.
    pub after: Option<Attr>,
}
