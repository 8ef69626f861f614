//! What a tree returns for an entry.

use wire::dsync::{Meta, Time};

/// What was seen of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScannedEntry {
    /// Its metadata. `link` is always there.
    pub meta: Meta,
    /// How many names it has.
    pub names: u64,
    /// When anything of it was changed, in nanoseconds: shows that it was changed meanwhile.
    pub ctime_ns: i128,
}

impl ScannedEntry {
    /// What is another when anything of it was changed.
    pub fn stamp(&self) -> Stamp {
        let (size, mtime) = (self.meta.size, self.meta.mtime.clone());
        Stamp { ctime_ns: self.ctime_ns, size, mtime }
    }
}

/// What shows a change. The time of change of an inode covers everything, but may be as coarse as a
/// tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// As in [`ScannedEntry`].
    pub ctime_ns: i128,
    /// Bytes.
    pub size: u64,
    /// When the content was changed.
    pub mtime: Time,
}
