//! The arguments of a new pool, and what the profiles of ZFS give.

use serde::{Deserialize, Serialize};

use super::Role;
use crate::profile::Profile;

/// Most disks of a group with parity: wider groups take days to resilver.
pub const GROUP_MAX: usize = 12;
/// Smallest and largest record size of a dataset: powers of two between them.
pub const RECORD_MIN: u64 = 4 << 10;
/// Largest record size that all versions have.
pub const RECORD_MAX: u64 = 128 << 10;

/// What a pool of ZFS has in addition to its data disks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Disks of the intent log.
    pub log: Vec<String>,
    /// Whether the log is a mirror; else it is striped.
    pub log_mirror: bool,
    /// Disks of the read cache.
    pub cache: Vec<String>,
    /// Spares.
    pub spares: Vec<String>,
    /// Record size of shares in bytes.
    pub record_size: Option<u64>,
}

impl Options {
    /// Checks what no command checks in words that fit.
    ///
    /// # Errors
    /// One sentence.
    pub fn check(&self) -> Result<(), String> {
        if self.log_mirror && self.log.len() < 2 {
            return Err("a mirrored log has at least two disks".to_owned());
        }
        self.record_size.map_or(Ok(()), check_record_size)
    }

    /// All disks, those of the data first.
    pub fn with_data(&self, data: &[String]) -> Vec<String> {
        [data, &self.log, &self.cache, &self.spares].concat()
    }
}

/// Checks a record size.
///
/// # Errors
/// One sentence.
pub fn check_record_size(bytes: u64) -> Result<(), String> {
    if bytes.is_power_of_two() && (RECORD_MIN..=RECORD_MAX).contains(&bytes) {
        return Ok(());
    }
    let (least, most) = (RECORD_MIN >> 10, RECORD_MAX >> 10);
    Err(format!("a record size is a power of two from {least} to {most} KiB"))
}

/// Disks of each group of a profile on this number of disks.
///
/// # Errors
/// One sentence: they cannot be divided.
pub fn group(profile: Profile, disks: usize) -> Result<usize, String> {
    let least = profile.disks_min();
    if disks < least {
        return Err(format!("a pool of profile {} has at least {least} disks", profile.name()));
    }
    let width = match profile {
        Profile::Stripe => Some(1),
        Profile::Mirror | Profile::Copies3 => Some(least),
        _ => {
            let mut widths = (least..=GROUP_MAX.min(disks)).rev();
            widths.find(|width| disks.is_multiple_of(*width))
        }
    };
    width.filter(|width| disks.is_multiple_of(*width)).ok_or_else(|| match profile.parity() {
        0 => format!(
            "{disks} disks cannot be divided into mirrors of {least}: add or leave out disks"
        ),
        _ => format!(
            "{disks} disks cannot be divided into groups of {least} to {GROUP_MAX} disks of equal \
             number: add or leave out disks"
        ),
    })
}

/// The word before the disks of a group.
fn word(profile: Profile) -> Option<&'static str> {
    match profile {
        Profile::Stripe => None,
        Profile::Mirror | Profile::Copies3 => Some("mirror"),
        Profile::Parity1 => Some("raidz1"),
        Profile::Parity2 => Some("raidz2"),
        Profile::Parity3 => Some("raidz3"),
    }
}

/// Arguments for data disks.
///
/// # Errors
/// As [`group`].
pub fn data(profile: Profile, disks: &[String]) -> Result<Vec<String>, String> {
    let width = group(profile, disks.len())?;
    let mut arguments = Vec::new();
    for group in disks.chunks(width) {
        arguments.extend(word(profile).map(str::to_owned));
        arguments.extend_from_slice(group);
    }
    Ok(arguments)
}

/// Arguments for disks of another role.
pub fn others(role: Role, mirror: bool, disks: &[String]) -> Vec<String> {
    if disks.is_empty() {
        return Vec::new();
    }
    let heading = match role {
        Role::Log if mirror => &["log", "mirror"][..],
        Role::Log => &["log"],
        Role::Cache => &["cache"],
        Role::Spare => &["spare"],
        Role::Data | Role::Special => &[],
    };
    heading.iter().map(|word| (*word).to_owned()).chain(disks.iter().cloned()).collect()
}

/// Bytes for data on disks of these sizes, in their order; 0 if they do not fit the profile.
pub fn capacity(profile: Profile, sizes: &[u64]) -> u64 {
    let Ok(width) = group(profile, sizes.len()) else { return 0 };
    let of_group = |group: &[u64]| {
        let least = group.iter().min().copied().unwrap_or(0);
        let disks = group.len().saturating_sub(profile.parity()) as u64;
        if profile.parity() > 0 { least.saturating_mul(disks) } else { least }
    };
    sizes.chunks(width).map(of_group).sum()
}

/// The profile of groups of a pool that has none entered: of the names of its groups and the number
/// of disks in each.
pub fn profile_of(groups: &[(String, usize)]) -> Profile {
    let one = |(name, disks): &(String, usize)| match (name.as_str(), disks) {
        (name, _) if name.starts_with("raidz1") => Profile::Parity1,
        (name, _) if name.starts_with("raidz2") => Profile::Parity2,
        (name, _) if name.starts_with("raidz3") => Profile::Parity3,
        (name, 3..) if name.starts_with("mirror") => Profile::Copies3,
        (name, 2) if name.starts_with("mirror") => Profile::Mirror,
        _ => Profile::Stripe,
    };
    // The weakest of them is what the pool survives.
    groups.iter().map(one).min_by_key(|profile| profile.tolerance()).unwrap_or(Profile::Stripe)
}

#[cfg(test)]
mod tests;
