//! ZFS by its two commands, `zpool` and `zfs`, as child processes: no library of ZFS is linked, and
//! no shell is started.
//!
//! - [`command`]: the child processes, with fixed arguments, a time limit and bounded output.
//! - [`text`]: the output of `zpool status` and `zpool import` as people read it, in which all
//!   versions differ a little. [`json`]: that of OpenZFS 2.3 and later. [`table`]: `-H`.
//! - [`layout`]: the arguments of a new pool. [`label`]: labels on disks are made unreadable.
//! - [`state`]: the state of a pool, its task, and the results of scans.
//!
//! The parsers are pure, and have whatever they are given: output of a foreign program is data.

pub mod command;
pub mod json;
pub mod label;
pub mod layout;
pub mod state;
pub mod table;
pub mod text;
pub mod value;

use serde::{Deserialize, Serialize};

/// Most devices of a pool that are read: more than a machine can have connected.
pub const LEAVES_MAX: usize = 4_096;
/// Most pools of an output that are read.
pub const POOLS_MAX: usize = 256;
/// Levels of groups: `mirror-0`, `spare-0`, `replacing-0` and one to spare.
pub const GROUPS_MAX: usize = 8;

/// What a device of a pool is for.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Data and metadata.
    #[default]
    Data,
    /// The intent log of synchronous writes.
    Log,
    /// A cache of reads.
    Cache,
    /// A spare for a failed disk.
    Spare,
    /// Metadata or deduplication tables apart from the data.
    Special,
}

impl Role {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Log => "log",
            Self::Cache => "cache",
            Self::Spare => "spare",
            Self::Special => "special",
        }
    }
}

/// The state of a pool or a device, as ZFS has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// It works.
    Online,
    /// It works with fewer copies, or with too many errors.
    Degraded,
    /// Too many errors, or a wrong label: it is not used.
    Faulted,
    /// Taken offline by the administrator.
    Offline,
    /// Its device was pulled.
    Removed,
    /// It cannot be opened.
    Unavailable,
    /// A spare that is not in use.
    Available,
    /// A spare that is in use.
    InUse,
    /// Input and output of the pool wait for its devices.
    Suspended,
    /// All else.
    #[default]
    Unknown,
}

impl Health {
    /// The state of this word.
    pub fn of(word: &str) -> Self {
        match word {
            "ONLINE" | "HEALTHY" => Self::Online,
            "DEGRADED" => Self::Degraded,
            "FAULTED" => Self::Faulted,
            "OFFLINE" => Self::Offline,
            "REMOVED" => Self::Removed,
            "UNAVAIL" | "CANT_OPEN" | "CLOSED" => Self::Unavailable,
            "AVAIL" => Self::Available,
            "INUSE" => Self::InUse,
            "SUSPENDED" => Self::Suspended,
            _ => Self::Unknown,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Online => "online",
            Self::Degraded => "degraded",
            Self::Faulted => "faulted",
            Self::Offline => "offline",
            Self::Removed => "removed",
            Self::Unavailable => "unavailable",
            Self::Available => "available",
            Self::InUse => "in use",
            Self::Suspended => "suspended",
            Self::Unknown => "unknown",
        }
    }

    /// Whether a device in this state does what it is for.
    pub fn is_good(self) -> bool {
        matches!(self, Self::Online | Self::Available | Self::InUse)
    }
}

/// A device of a pool: a disk, a partition or a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leaf {
    /// What it is for.
    pub role: Role,
    /// Groups that it is in, the outermost first: `mirror-0`, `replacing-1`.
    pub groups: Vec<String>,
    /// Its name in the output, which all commands accept: a path, its last part, or a number.
    pub name: String,
    /// Its state.
    pub health: Health,
    /// Failed reads.
    pub read: u64,
    /// Failed writes.
    pub write: u64,
    /// Blocks with a wrong checksum.
    pub checksum: u64,
    /// What else the output has: `too many errors`, `was /dev/sdb1`, `(resilvering)`.
    pub note: String,
    /// The path that a missing device had.
    pub was: Option<String>,
}

/// What a scan does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanKind {
    /// All data is read.
    Scrub,
    /// Data is written to a device that lacks it.
    Resilver,
}

/// How far a scan is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ScanState {
    /// There was none.
    #[default]
    None,
    /// It runs.
    Running,
    /// It was paused.
    Paused,
    /// It has ended.
    Finished,
    /// It was stopped.
    Canceled,
}

/// The last scan of a pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scan {
    /// What it does.
    pub kind: Option<ScanKind>,
    /// How far it is.
    pub state: ScanState,
    /// Seconds since 1970 when it began.
    pub started_s: Option<u64>,
    /// Seconds since 1970 when it ended.
    pub ended_s: Option<u64>,
    /// Seconds that it has taken, where no time of its start is given.
    pub elapsed_s: Option<u64>,
    /// Thousandths that are done.
    pub thousandths: Option<u64>,
    /// Seconds that are left.
    pub seconds_left: Option<u64>,
    /// Bytes that were repaired or written.
    pub repaired: Option<u64>,
    /// Errors that were found and not corrected.
    pub errors: Option<u64>,
}

/// A pool, as `zpool status` or `zpool import` has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// Its number, if the output has it.
    pub guid: Option<u64>,
    /// Its state.
    pub health: Health,
    /// What is wrong, in sentences.
    pub status: String,
    /// Files and blocks without a right copy.
    pub errors: u64,
    /// Its last scan.
    pub scan: Scan,
    /// Its devices, in the order of the output.
    pub leaves: Vec<Leaf>,
}

#[cfg(test)]
mod tests;
