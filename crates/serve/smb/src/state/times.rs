//! Times of a file that is open, as SMB shows them where they are others than the file system's.
//!
//! - A write is shown in the write time a moment later, or when the file is flushed, cut, closed or
//!   has its attributes set: as in Windows before 2019 and in Samba, so that a program that copies
//!   a file and sets its times last is not overtaken by its own writes.
//! - A change time that a client sets holds until the file changes again: Unix has none to set.
//! - A time that an open has set, or has asked to leave alone by -1, is not changed by what is
//!   written with that open (MS-FSA §2.1.5.15.2, UserSetModificationTime and UserSetChangeTime);
//!   -2 ends that.

use vfs::attr::Time;
use wire::smb::create::Facts;

/// How long a write is not shown, unless something else shows it: as in Windows.
pub const WRITE_TIME_DELAY_NS: u64 = 2_000_000_000;

/// Times that an open has set, or has asked to leave alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UserTimes {
    /// The write time.
    pub written: Option<Time>,
    /// The change time, as FILETIME.
    pub changed: Option<u64>,
}

impl UserTimes {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What is asked of a time by FileBasicInformation (MS-FSCC §2.4.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedTime {
    /// 0: nothing.
    Nothing,
    /// -1: the open leaves it alone from now on.
    Leave,
    /// -2: the open changes it again.
    Follow,
    /// It is set, as FILETIME, and left alone from now on.
    Set(u64),
}

impl AskedTime {
    /// The request in a field; `None` for other negative numbers, which are no time.
    pub const fn of(field: u64) -> Option<Self> {
        Some(match field {
            0 => Self::Nothing,
            u64::MAX => Self::Leave,
            0xffff_ffff_ffff_fffe => Self::Follow,
            time if time <= i64::MAX as u64 => Self::Set(time),
            _ => return None,
        })
    }

    /// What an open leaves alone from now on, if that is known: `held` so far, `now` the time as it
    /// is before the change, `set` the time as it is set.
    pub fn holds<T: Copy>(self, held: Option<T>, now: T, set: impl FnOnce(u64) -> T) -> Option<T> {
        match self {
            Self::Nothing => held,
            Self::Leave => Some(held.unwrap_or(now)),
            Self::Follow => None,
            Self::Set(time) => Some(set(time)),
        }
    }
}

/// What is shown of one file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// The write time before what was written last, and until when it is shown.
    before_write: Option<(u64, u64)>,
    /// A change time that was set, and the one of the file system while it holds.
    change: Option<(u64, Time)>,
}

impl Times {
    /// Something is written now: the write time that was shown before stays for a while. Returns
    /// until when.
    pub fn written(&mut self, shown: u64, now_ns: u64) -> u64 {
        match self.before_write {
            Some((_, until_ns)) if now_ns < until_ns => until_ns,
            _ => {
                let until_ns = now_ns.saturating_add(WRITE_TIME_DELAY_NS);
                self.before_write = Some((shown, until_ns));
                until_ns
            }
        }
    }

    /// Writes are shown from now on; returns whether they were not shown yet.
    pub fn settle(&mut self, now_ns: u64) -> bool {
        self.before_write.take().is_some_and(|(_, until_ns)| now_ns < until_ns)
    }

    /// A client has set the change time; `ctime` is that of the file system after it.
    pub const fn set_change(&mut self, change: u64, ctime: Time) {
        self.change = Some((change, ctime));
    }

    /// The change time that was set, if it still holds.
    pub fn change_at(&self, ctime: Time) -> Option<u64> {
        self.change.filter(|(_, at)| *at == ctime).map(|(change, _)| change)
    }

    /// Whether there is something to be remembered after the file is closed.
    pub const fn has_change(&self) -> bool {
        self.change.is_some()
    }

    /// Puts in what is shown.
    pub fn show(&self, facts: &mut Facts, ctime: Time, now_ns: u64) {
        if let Some((shown, until_ns)) = self.before_write
            && now_ns < until_ns
        {
            facts.written = shown;
        }
        if let Some(change) = self.change_at(ctime) {
            facts.changed = change;
        }
    }
}

#[cfg(test)]
mod tests;
