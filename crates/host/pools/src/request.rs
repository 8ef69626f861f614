//! What can be requested of the pools of a machine, and the answers.

use serde::{Deserialize, Serialize};

use crate::btrfs::Scrubbed;
use crate::disk::Disk;
use crate::pool::Offer;
pub use crate::profile::FileSystem;
use crate::profile::Profile;
use crate::quota::{Accounting, Compression};
use crate::state::{Member, State};
use crate::zfs::layout::Options;
use crate::zfs::{Health, Role};

/// Most days between two scrubs.
pub const SCRUB_DAYS_MAX: u32 = 365;

/// A request. Pools are named as they were created; disks by their names below
/// `/dev/disk/by-id` or by their serial numbers; no request names a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum PoolRequest {
    /// The state of all pools. Reads no disk.
    Status {},
    /// The disks of this machine, and pools on them that are not imported. Reads disks that are
    /// not in use.
    Disks {},
    /// Creates a pool. Writes to the disks.
    Create {
        /// Its name.
        pool: String,
        /// Its profile.
        profile: Profile,
        /// Its disks.
        disks: Vec<String>,
        /// A pool of ZFS, with what it has in addition; else one of btrfs.
        #[serde(default)]
        zfs: Option<Options>,
    },
    /// Mounts a pool that is on disks of this machine, now and at each start.
    Import {
        /// Its name, or its UUID if several pools have the name.
        pool: String,
        /// Whether missing disks are accepted.
        degraded: bool,
    },
    /// Unmounts a pool, and mounts it no more at a start. Its data stays.
    Export {
        /// Which pool.
        pool: String,
    },
    /// Destroys a pool and all data on it.
    DestroyData {
        /// Which pool.
        pool: String,
        /// Its name as typed by the administrator.
        confirmation: String,
    },
    /// Reads all data and corrects what is wrong.
    Scrub {
        /// Which pool.
        pool: String,
    },
    /// Stops the task of a pool.
    Stop {
        /// Which pool.
        pool: String,
    },
    /// Replaces a disk, converts what has too few copies, and proves that nothing is left of it.
    Replace {
        /// Which pool.
        pool: String,
        /// The member: its serial number, name, or number in the pool.
        member: String,
        /// The disk in its place.
        disk: String,
    },
    /// Adds disks: one to btrfs, a group of them to ZFS.
    Add {
        /// Which pool.
        pool: String,
        /// The disks.
        disks: Vec<String>,
        /// What they are for; btrfs has data only.
        #[serde(default)]
        role: Role,
        /// Whether disks of the log are a mirror.
        #[serde(default)]
        mirror: bool,
    },
    /// Takes a disk of a pool of ZFS out of use; its data stays on it.
    Offline {
        /// Which pool.
        pool: String,
        /// The member.
        member: String,
    },
    /// Takes a disk into use again; what it has missed is written to it.
    Online {
        /// Which pool.
        pool: String,
        /// The member.
        member: String,
    },
    /// Moves data away from a disk and removes it from the pool.
    Remove {
        /// Which pool.
        pool: String,
        /// The member.
        member: String,
    },
    /// Changes settings.
    Configure {
        /// Which pool.
        pool: String,
        /// Whether it is mounted at a start even if disks are missing.
        mount_degraded: Option<bool>,
        /// Days between two scrubs; 0: no schedule.
        scrub_every_days: Option<u32>,
    },
    /// Makes the subvolume of a share, unless it is there.
    MakeShare {
        /// Which pool.
        pool: String,
        /// Name of the share.
        share: String,
    },
    /// Takes back a subvolume that [`Self::MakeShare`] has just made: it must be empty.
    TakeBackShare {
        /// Which pool.
        pool: String,
        /// Name of the share.
        share: String,
    },
    /// Sets quota, reservation and compression of a share; what is none is removed.
    ConfigureShare {
        /// Which pool.
        pool: String,
        /// Name of the share.
        share: String,
        /// What holds from now on.
        settings: ShareSettings,
    },
    /// Accounts the space that snapshots keep apart from that of their shares. Limits stay.
    AccountSnapshots {
        /// Which pool.
        pool: String,
    },
    /// The snapshots of a share in the order in which they were made.
    Snapshots {
        /// Which pool.
        pool: String,
        /// Name of the share.
        share: String,
    },
    /// Makes a read-only snapshot of a share.
    Snapshot {
        /// Which pool.
        pool: String,
        /// Name of the share.
        share: String,
        /// Name of the snapshot.
        snapshot: String,
    },
    /// Destroys a snapshot.
    DestroySnapshot {
        /// Which pool.
        pool: String,
        /// Name of the share.
        share: String,
        /// Name of the snapshot.
        snapshot: String,
    },
    /// Gives a snapshot another name.
    RenameSnapshot {
        /// Which pool.
        pool: String,
        /// Name of the share.
        share: String,
        /// Name of the snapshot.
        snapshot: String,
        /// Its new name.
        name: String,
    },
    /// Takes a share back to a snapshot. Its present state becomes a snapshot, which is writable
    /// until [`Self::Protect`].
    Rollback {
        /// Which pool.
        pool: String,
        /// Name of the share.
        share: String,
        /// Name of the snapshot.
        snapshot: String,
    },
    /// Makes all snapshots read-only.
    Protect {
        /// Which pool.
        pool: String,
    },
    /// Makes the subvolume of a new share from a snapshot.
    Clone {
        /// Which pool.
        pool: String,
        /// Name of the share of the snapshot.
        share: String,
        /// Name of the snapshot.
        snapshot: String,
        /// Name of the new share.
        name: String,
    },
}

impl PoolRequest {
    /// Its name, for the log.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Status {} => "pool status",
            Self::Disks {} => "pool disks",
            Self::Create { .. } => "pool create",
            Self::Import { .. } => "pool import",
            Self::Export { .. } => "pool export",
            Self::DestroyData { .. } => "pool destroy data",
            Self::Scrub { .. } => "pool scrub",
            Self::Stop { .. } => "pool stop",
            Self::Replace { .. } => "pool replace",
            Self::Add { .. } => "pool add",
            Self::Offline { .. } => "pool offline",
            Self::Online { .. } => "pool online",
            Self::Remove { .. } => "pool remove",
            Self::Configure { .. } => "pool configure",
            Self::MakeShare { .. } => "pool make share",
            Self::TakeBackShare { .. } => "pool take back share",
            Self::ConfigureShare { .. } => "pool configure share",
            Self::AccountSnapshots { .. } => "pool account snapshots",
            Self::Snapshots { .. } => "pool snapshots",
            Self::Snapshot { .. } => "pool snapshot",
            Self::DestroySnapshot { .. } => "pool destroy snapshot",
            Self::RenameSnapshot { .. } => "pool rename snapshot",
            Self::Rollback { .. } => "pool rollback",
            Self::Protect { .. } => "pool protect",
            Self::Clone { .. } => "pool clone",
        }
    }

    /// The pool that it names, unless it creates or imports one.
    pub fn imported(&self) -> Option<&str> {
        match self {
            Self::Status {} | Self::Disks {} | Self::Create { .. } | Self::Import { .. } => None,
            Self::Export { pool }
            | Self::DestroyData { pool, .. }
            | Self::Scrub { pool }
            | Self::Stop { pool }
            | Self::Replace { pool, .. }
            | Self::Add { pool, .. }
            | Self::Offline { pool, .. }
            | Self::Online { pool, .. }
            | Self::Remove { pool, .. }
            | Self::Configure { pool, .. }
            | Self::MakeShare { pool, .. }
            | Self::TakeBackShare { pool, .. }
            | Self::ConfigureShare { pool, .. }
            | Self::AccountSnapshots { pool }
            | Self::Snapshots { pool, .. }
            | Self::Snapshot { pool, .. }
            | Self::DestroySnapshot { pool, .. }
            | Self::RenameSnapshot { pool, .. }
            | Self::Rollback { pool, .. }
            | Self::Protect { pool }
            | Self::Clone { pool, .. } => Some(pool),
        }
    }

    /// Whether it only reads.
    pub fn reads(&self) -> bool {
        matches!(self, Self::Status {} | Self::Disks {} | Self::Snapshots { .. })
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PoolReply {
    /// To [`PoolRequest::Status`].
    Status(Status),
    /// To [`PoolRequest::Disks`].
    Disks {
        /// All disks and partitions.
        disks: Vec<Disk>,
        /// Pools that are not imported.
        offers: Vec<Offer>,
    },
    /// To [`PoolRequest::MakeShare`].
    Share {
        /// Whether the subvolume was made.
        made: bool,
    },
    /// To [`PoolRequest::Snapshots`].
    Snapshots(Vec<SnapshotStatus>),
    /// It is done, or a task has begun; one sentence.
    Done(String),
}

/// Settings of a share on a pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareSettings {
    /// Most bytes that it uses.
    pub quota: Option<u64>,
    /// Bytes that are kept free for it.
    pub reservation: Option<u64>,
    /// How new files are compressed.
    pub compression: Compression,
}

/// Space of a share on a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareUsage {
    /// Its name.
    pub share: String,
    /// Bytes that count for it.
    pub used: u64,
    /// Most bytes that it uses.
    pub quota: Option<u64>,
}

/// A snapshot of a share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotStatus {
    /// Its name.
    pub name: String,
    /// Seconds since 1970 when it was made, by the clock of that time.
    pub created_s: u64,
    /// A later one has a higher number, whatever the clock was.
    pub order: u64,
    /// Bytes that only it keeps, if they are accounted.
    pub alone: Option<u64>,
}

/// The pools of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Why this machine cannot have pools of btrfs.
    pub lacks: Option<String>,
    /// Why this machine cannot have pools of ZFS.
    #[serde(default)]
    pub lacks_zfs: Option<String>,
    /// Those that are imported, by name.
    pub pools: Vec<PoolStatus>,
}

/// A pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolStatus {
    /// Its name.
    pub name: String,
    /// What it is made with.
    #[serde(default)]
    pub file_system: FileSystem,
    /// UUID of its file system, or the number of a pool of ZFS.
    pub uuid: String,
    /// Its profile; not known before the first mount.
    pub profile: Option<Profile>,
    /// Where it is mounted.
    pub directory: String,
    /// Its state.
    pub state: State,
    /// What is wrong.
    pub reason: Option<String>,
    /// Its disks.
    pub members: Vec<MemberStatus>,
    /// Bytes for data, used and free.
    pub capacity: u64,
    /// Bytes of data and metadata, once.
    pub used: u64,
    /// Bytes that clients can write.
    pub available: u64,
    /// Bytes of data of files, once.
    #[serde(default)]
    pub used_data: u64,
    /// Bytes of data that only snapshots keep, if they are accounted.
    #[serde(default)]
    pub used_snapshots: Option<u64>,
    /// How space of shares is accounted.
    #[serde(default)]
    pub accounting: Accounting,
    /// Space of shares, as far as it is accounted.
    #[serde(default)]
    pub usage: Vec<ShareUsage>,
    /// What scrubs have done since the helper started, all disks together.
    #[serde(default)]
    pub scrubbed: Scrubbed,
    /// Bytes of chunks with fewer copies than the profile.
    pub without_copies: u64,
    /// Whether it is mounted at a start even if disks are missing.
    pub mount_degraded: bool,
    /// Days between two scrubs.
    pub scrub_every_days: Option<u32>,
    /// The task that runs.
    pub task: Option<TaskStatus>,
    /// Tasks that have ended, oldest first.
    pub history: Vec<Ended>,
    /// Subvolumes of shares.
    pub shares: Vec<String>,
    /// Snapshots: share, name, and seconds since 1970.
    pub snapshots: Vec<(String, String, u64)>,
}

/// What identifies a disk of a pool, also when it is missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Number in the pool.
    pub devid: u64,
    /// Name of the kernel when it was last seen.
    pub device: String,
    /// Serial number.
    pub serial: String,
    /// Model.
    pub model: String,
    /// Name below `/dev/disk/by-id`.
    pub id: String,
    /// Seconds since 1970 when it was last seen.
    pub seen_s: u64,
    /// Its name in a pool of ZFS.
    #[serde(default)]
    pub vdev: String,
}

impl Identity {
    /// The name that people find it by.
    pub fn title(&self) -> String {
        let serial = (!self.serial.is_empty()).then(|| format!("serial number {}", self.serial));
        let id = (!self.id.is_empty()).then(|| self.id.clone());
        match serial.or(id) {
            Some(known) if self.device.is_empty() => known,
            Some(known) => format!("{known} ({})", self.device),
            None if self.device.is_empty() => format!("number {}", self.devid),
            None => format!("number {} ({})", self.devid, self.device),
        }
    }
}

/// A disk of a pool with its state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberStatus {
    /// What identifies it.
    pub identity: Identity,
    /// As the file system has it.
    pub member: Member,
    /// What it is for.
    #[serde(default)]
    pub role: Role,
    /// The group that it is in, as `mirror-0` and `replacing-1`; btrfs has none.
    #[serde(default)]
    pub group: String,
    /// Its state in a pool of ZFS.
    #[serde(default)]
    pub health: Option<Health>,
}

/// What a task does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A scrub.
    Scrub,
    /// Replace, convert, proof.
    Replace,
    /// After a disk has returned, or data was written without it: scrub if need be, convert, proof.
    Repair,
    /// A disk is removed.
    Remove,
    /// ZFS: a disk gets the data that it lacks.
    Resilver,
}

impl Kind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scrub => "scrub",
            Self::Replace => "replace",
            Self::Repair => "repair",
            Self::Remove => "remove",
            Self::Resilver => "resilver",
        }
    }
}

/// A part of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// All data is read.
    Scrub,
    /// A disk is written.
    Replace,
    /// Chunks get their copies.
    Convert,
    /// A disk is emptied.
    Remove,
    /// ZFS: a disk gets the data that it lacks.
    Resilver,
}

impl Phase {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scrub => "scrub",
            Self::Replace => "replace",
            Self::Convert => "convert",
            Self::Remove => "remove",
            Self::Resilver => "resilver",
        }
    }
}

/// A task that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStatus {
    /// What it does.
    pub kind: Kind,
    /// What it does now.
    pub phase: Phase,
    /// Thousandths of the task; never less than before.
    pub thousandths: u64,
    /// Seconds until the end of the phase, if that is known.
    pub seconds_left: Option<u64>,
    /// Seconds since 1970 when it began.
    pub started_s: u64,
}

/// A task that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// What it did.
    pub kind: Kind,
    /// Seconds since 1970 when it began.
    pub started_s: u64,
    /// Seconds since 1970 when it ended.
    pub ended_s: u64,
    /// Whether all of it was done.
    pub complete: bool,
    /// Its result, one sentence.
    pub result: String,
}
