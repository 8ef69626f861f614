//! Space of subvolumes: accounting by the kernel, limits, and compression.
//!
//! The kernel accounts in one of two ways. Simple accounting (Linux 6.7) counts what a subvolume
//! has written, with what only its snapshots still keep; it is exact from the creation of the pool
//! on, and costs little. Full accounting counts for each subvolume what it references and what it
//! alone keeps, also of data that was there before, and is slower with many snapshots. Usage is
//! read from memory of the kernel (`/sys/fs/btrfs`), not from a disk.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use linux_raw_sys::btrfs::{
    BTRFS_QGROUP_LIMIT_MAX_RFER, BTRFS_QUOTA_CTL_DISABLE, BTRFS_QUOTA_CTL_ENABLE,
    BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA, btrfs_ioctl_qgroup_limit_args, btrfs_ioctl_quota_ctl_args,
    btrfs_ioctl_quota_rescan_args,
};
use serde::{Deserialize, Serialize};

use crate::btrfs::Volume;
use crate::subvolume;
use crate::sys::{self, Plain, READ, WRITE};

/// The attribute that has the kernel compress new files (btrfs(5)).
const COMPRESSION: &std::ffi::CStr = c"btrfs.compression";
/// A limit of this size is none.
const NO_LIMIT: u64 = u64::MAX;

/// How the kernel accounts the space of subvolumes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Accounting {
    /// Not at all.
    #[default]
    Off,
    /// What each has written.
    Simple,
    /// What each references, and what it alone keeps.
    Full,
    /// Full, and data that was there before is still being counted.
    Scanning,
}

impl Accounting {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Simple => "simple",
            Self::Full => "full",
            Self::Scanning => "scanning",
        }
    }
}

/// How new files are compressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Not at all.
    #[default]
    Off,
    /// LZO.
    Lzo,
    /// Zstandard.
    Zstd,
    /// Deflate.
    Zlib,
}

impl Compression {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Off, Self::Lzo, Self::Zstd, Self::Zlib];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Lzo => "lzo",
            Self::Zstd => "zstd",
            Self::Zlib => "zlib",
        }
    }

    /// That of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    fn value(self) -> Option<&'static str> {
        (self != Self::Off).then(|| self.name())
    }
}

/// Space of a subvolume.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Space {
    /// Bytes that count for it.
    pub used: u64,
    /// Bytes that only it keeps; with simple accounting the same.
    pub alone: u64,
    /// Its limit.
    pub limit: Option<u64>,
}

/// Accounting of a mounted pool.
#[derive(Debug)]
pub struct Quotas {
    folder: PathBuf,
}

impl Quotas {
    /// That of a pool by its UUID.
    pub fn of(uuid: &str) -> Self {
        Self { folder: PathBuf::from(format!("/sys/fs/btrfs/{uuid}/qgroups")) }
    }

    /// How the kernel accounts now.
    ///
    /// # Errors
    /// The kernel's.
    pub fn accounting(&self, volume: &File) -> io::Result<Accounting> {
        let mode = match fs::read_to_string(self.folder.join("mode")) {
            Ok(mode) => mode,
            // Before Linux 6.7 there is full accounting, or no folder.
            Err(e) if e.kind() == io::ErrorKind::NotFound && self.folder.is_dir() => String::new(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Accounting::Off),
            Err(e) => return Err(e),
        };
        match mode.trim() {
            "disabled" => Ok(Accounting::Off),
            "squota" => Ok(Accounting::Simple),
            _ if is_scanning(volume)? => Ok(Accounting::Scanning),
            _ => Ok(Accounting::Full),
        }
    }

    /// Space of a subvolume by its number; none if it is not accounted.
    pub fn space(&self, number: u64) -> Option<Space> {
        let folder = self.folder.join(format!("0_{number}"));
        let value = |name: &str| -> Option<u64> {
            fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok()
        };
        let flags = value("limit_flags").unwrap_or(0);
        let is_limited = flags & u64::from(BTRFS_QGROUP_LIMIT_MAX_RFER) != 0;
        Some(Space {
            used: value("referenced")?,
            alone: value("exclusive")?,
            limit: value("max_referenced").filter(|limit| is_limited && *limit != NO_LIMIT),
        })
    }
}

fn control(volume: &File, command: u32) -> io::Result<()> {
    let mut arguments = btrfs_ioctl_quota_ctl_args::zeroed();
    arguments.cmd = command.into();
    sys::call(volume, READ | WRITE, 40, &mut arguments)
}

/// Begins to account simply, which is right only as long as the pool has no data.
///
/// # Errors
/// The kernel's: `EINVAL` before Linux 6.7.
pub fn enable_simple(volume: &File) -> io::Result<()> {
    control(volume, BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA)
}

/// Begins to account fully; the kernel counts what is there.
///
/// # Errors
/// The kernel's.
pub fn enable_full(volume: &File) -> io::Result<()> {
    control(volume, BTRFS_QUOTA_CTL_ENABLE)
}

/// Ends accounting, with all limits.
///
/// # Errors
/// The kernel's.
pub fn disable(volume: &File) -> io::Result<()> {
    control(volume, BTRFS_QUOTA_CTL_DISABLE)
}

/// Whether the kernel still counts what was there before.
fn is_scanning(volume: &File) -> io::Result<bool> {
    let mut arguments = btrfs_ioctl_quota_rescan_args::zeroed();
    sys::call(volume, READ, 45, &mut arguments)?;
    Ok(arguments.flags != 0)
}

/// Limits what a subvolume may use.
///
/// # Errors
/// The kernel's: `ENOTCONN` without accounting.
pub fn limit(subvolume: &File, bytes: Option<u64>) -> io::Result<()> {
    let mut arguments = btrfs_ioctl_qgroup_limit_args::zeroed();
    arguments.lim.flags = BTRFS_QGROUP_LIMIT_MAX_RFER.into();
    arguments.lim.max_rfer = bytes.unwrap_or(NO_LIMIT);
    sys::call(subvolume, READ, 43, &mut arguments)
}

/// How new files of a folder are compressed.
///
/// # Errors
/// The operating system's.
pub fn compression(folder: &File) -> io::Result<Compression> {
    let value = sys::attribute(folder, COMPRESSION)?;
    Ok(value.as_deref().and_then(Compression::of).unwrap_or_default())
}

/// Has new files of a folder compressed, and those of folders that are made in it from now on.
///
/// # Errors
/// The operating system's.
pub fn compress(folder: &File, how: Compression) -> io::Result<()> {
    if compression(folder)? == how {
        return Ok(());
    }
    sys::set_attribute(folder, COMPRESSION, how.value())
}

/// A share of which the space is followed. Its subvolume may become another one, as when a snapshot
/// takes its place.
#[derive(Debug)]
pub struct FollowedShare {
    quotas: Quotas,
    at: PathBuf,
}

impl FollowedShare {
    /// That of a share. Needs no rights.
    ///
    /// # Errors
    /// The operating system's; it is not on btrfs.
    pub fn of(at: &Path) -> io::Result<Self> {
        Ok(Self { quotas: Quotas::of(&Volume::open(at)?.uuid()?), at: at.to_owned() })
    }

    /// Its space now; none if it is not accounted.
    pub fn space(&self) -> Option<Space> {
        let number = subvolume::number(&subvolume::folder(&self.at).ok()?).ok()?;
        self.quotas.space(number)
    }
}

impl Volume {
    /// How the space of its subvolumes is accounted.
    ///
    /// # Errors
    /// The kernel's.
    pub fn accounting(&self) -> io::Result<(Quotas, Accounting)> {
        let quotas = Quotas::of(&self.uuid()?);
        let now = quotas.accounting(self.folder())?;
        Ok((quotas, now))
    }
}

#[cfg(test)]
mod tests;
