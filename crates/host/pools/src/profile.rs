//! How a pool spreads data over its disks.

use linux_raw_sys::btrfs;
use serde::{Deserialize, Serialize};

/// What a pool is made with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystem {
    /// btrfs, by the kernel's own interface.
    #[default]
    Btrfs,
    /// ZFS, by its commands.
    Zfs,
}

impl FileSystem {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Btrfs => "btrfs",
            Self::Zfs => "zfs",
        }
    }
}

/// The profile of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Data once, spread over all disks; metadata twice.
    Stripe,
    /// Data and metadata on two disks each.
    Mirror,
    /// Data and metadata on three disks each.
    Copies3,
    /// ZFS: data with one disk of parity for each group.
    Parity1,
    /// ZFS: with two disks of parity.
    Parity2,
    /// ZFS: with three disks of parity.
    Parity3,
}

const PROFILE_BITS: u64 = btrfs::BTRFS_BLOCK_GROUP_PROFILE_MASK as u64;
const RAID1: u64 = btrfs::BTRFS_BLOCK_GROUP_RAID1 as u64;
const RAID1C3: u64 = btrfs::BTRFS_BLOCK_GROUP_RAID1C3 as u64;
const RAID1C4: u64 = btrfs::BTRFS_BLOCK_GROUP_RAID1C4 as u64;
const RAID10: u64 = btrfs::BTRFS_BLOCK_GROUP_RAID10 as u64;

impl Profile {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Stripe, Self::Mirror, Self::Copies3, Self::Parity1, Self::Parity2, Self::Parity3];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stripe => "stripe",
            Self::Mirror => "mirror",
            Self::Copies3 => "copies3",
            Self::Parity1 => "parity1",
            Self::Parity2 => "parity2",
            Self::Parity3 => "parity3",
        }
    }

    /// The one of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }

    /// Copies of data, on as many disks.
    pub fn copies(self) -> usize {
        match self {
            Self::Mirror => 2,
            Self::Copies3 => 3,
            Self::Stripe | Self::Parity1 | Self::Parity2 | Self::Parity3 => 1,
        }
    }

    /// Disks of parity in each group.
    pub fn parity(self) -> usize {
        match self {
            Self::Parity1 => 1,
            Self::Parity2 => 2,
            Self::Parity3 => 3,
            Self::Stripe | Self::Mirror | Self::Copies3 => 0,
        }
    }

    /// Whether btrfs has it.
    pub fn is_of_btrfs(self) -> bool {
        self.parity() == 0
    }

    /// Fewest disks: parity with fewer would be a mirror that is slower.
    pub fn disks_min(self) -> usize {
        if self.parity() > 0 { self.parity() + 2 } else { self.copies() }
    }

    /// Disks that may fail without loss of data.
    pub fn tolerance(self) -> usize {
        self.copies() - 1 + self.parity()
    }

    /// Profiles of data and metadata for `mkfs.btrfs` on this number of disks.
    pub fn for_mkfs(self, disks: usize) -> (&'static str, &'static str) {
        match self {
            Self::Stripe if disks == 1 => ("single", "dup"),
            Self::Stripe | Self::Parity1 | Self::Parity2 | Self::Parity3 => ("raid0", "raid1"),
            Self::Mirror => ("raid1", "raid1"),
            Self::Copies3 => ("raid1c3", "raid1c3"),
        }
    }

    /// What a conversion makes of chunks; nothing for data without copies.
    pub fn target(self) -> Option<u64> {
        match self {
            Self::Mirror => Some(RAID1),
            Self::Copies3 => Some(RAID1C3),
            Self::Stripe | Self::Parity1 | Self::Parity2 | Self::Parity3 => None,
        }
    }

    /// Whether a chunk of these flags has as many copies as the profile promises.
    pub fn is_kept_by(self, flags: u64) -> bool {
        match self {
            Self::Stripe | Self::Parity1 | Self::Parity2 | Self::Parity3 => true,
            Self::Mirror => flags & (RAID1 | RAID10 | RAID1C3 | RAID1C4) != 0,
            Self::Copies3 => flags & (RAID1C3 | RAID1C4) != 0,
        }
    }

    /// Bytes for data on disks of these sizes, without metadata: as btrfs gives chunks, each on
    /// the disks with the most free space.
    pub fn capacity(self, sizes: &[u64]) -> u64 {
        let copies = self.copies() as u64;
        if sizes.len() < self.disks_min() {
            return 0;
        }
        // The sum over all disks, of each at most as much as the chunks that it can be part of.
        let mut bytes = sizes.iter().sum::<u64>() / copies;
        loop {
            let next = sizes.iter().map(|size| (*size).min(bytes)).sum::<u64>() / copies;
            if next >= bytes {
                return bytes;
            }
            bytes = next;
        }
    }
}

/// Name of the profile of a chunk.
pub fn chunk_name(flags: u64) -> &'static str {
    match flags & PROFILE_BITS {
        0 => "single",
        RAID1 => "mirror",
        RAID1C3 => "three copies",
        RAID1C4 => "four copies",
        RAID10 => "striped mirror",
        bits if bits == u64::from(btrfs::BTRFS_BLOCK_GROUP_DUP) => "two copies on one disk",
        bits if bits == u64::from(btrfs::BTRFS_BLOCK_GROUP_RAID0) => "stripe",
        _ => "parity",
    }
}

#[cfg(test)]
mod tests;
