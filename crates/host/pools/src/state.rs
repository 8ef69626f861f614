//! The state of a pool from what is observed of it.

use serde::{Deserialize, Serialize};

use crate::profile::Profile;
use crate::record::Repair;

/// The state of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// All disks are there and all data has its copies.
    Healthy,
    /// Data has fewer copies than the profile promises.
    Degraded,
    /// A repair runs, after which the pool is healthy.
    Repairing,
    /// Data is not reachable.
    Failed,
}

impl State {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
            Self::Repairing => "repairing",
            Self::Failed => "failed",
        }
    }
}

/// A device of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Number in the file system.
    pub devid: u64,
    /// Name of the device; empty if it is missing.
    pub device: String,
    /// Whether the device is missing.
    pub missing: bool,
    /// Size in bytes.
    pub size: u64,
    /// Bytes that chunks take.
    pub allocated: u64,
    /// Errors since the counters were reset.
    pub errors: Errors,
}

/// Counters of errors of a device, as btrfs keeps them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// Failed writes.
    pub write: u64,
    /// Failed reads.
    pub read: u64,
    /// Failed flushes.
    pub flush: u64,
    /// Blocks with a wrong checksum.
    pub corruption: u64,
    /// Blocks of another generation.
    pub generation: u64,
}

impl Errors {
    /// All of them.
    pub fn sum(&self) -> u64 {
        let Self { write, read, flush, corruption, generation } = *self;
        [write, read, flush, corruption, generation].into_iter().fold(0, u64::saturating_add)
    }
}

/// Space of one kind and profile of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    /// Type and profile (`BTRFS_BLOCK_GROUP_*`).
    pub flags: u64,
    /// Bytes of chunks.
    pub total: u64,
    /// Bytes in use.
    pub used: u64,
}

/// The state of a mounted pool, and a sentence unless it is healthy.
pub fn state(
    profile: Profile,
    members: &[Member],
    spaces: &[Space],
    repair: Option<Repair>,
    repair_runs: bool,
) -> (State, Option<String>) {
    let missing: Vec<u64> = members.iter().filter(|one| one.missing).map(|one| one.devid).collect();
    let without_copies: u64 = spaces
        .iter()
        .filter(|space| !profile.is_kept_by(space.flags))
        .map(|space| space.total)
        .sum();
    if missing.len() > profile.tolerance() {
        let sentence = format!("{} devices are missing", missing.len());
        return (State::Failed, Some(sentence));
    }
    if let Some(devid) = missing.first() {
        let state = if repair_runs { State::Repairing } else { State::Degraded };
        return (state, Some(format!("device {devid} is missing: replace it")));
    }
    let sentence = match repair {
        Some(Repair::Scrub) => "a device has returned and is not scrubbed yet".to_owned(),
        _ if without_copies > 0 => {
            let mib = without_copies >> 20;
            format!("chunks of {mib} MiB have fewer copies than the profile: convert them")
        }
        Some(Repair::Convert) => "a conversion is not complete".to_owned(),
        None => return (State::Healthy, None),
    };
    (if repair_runs { State::Repairing } else { State::Degraded }, Some(sentence))
}

#[cfg(test)]
mod tests;
