//! Quotas and compression of shares, and the space that they use.

use std::fs::File;
use std::path::Path;

use super::shares::{SNAPSHOTS, checked, subvolumes};
use super::{Keeper, lock, tried, wrong};
use crate::btrfs::Volume;
use crate::pool::Failure;
use crate::quota::{self, Accounting, Quotas};
use crate::request::{PoolStatus, ShareSettings, ShareUsage, SnapshotStatus};
use crate::subvolume;

/// Least quota: the kernel takes some metadata of a share for each change that is not written yet,
/// and below this even small files may be refused.
const QUOTA_MIN: u64 = 16 << 20;

/// A subvolume that is open, with its number.
fn open(at: &Path) -> std::io::Result<(File, u64)> {
    let folder = subvolume::folder(at)?;
    let number = subvolume::number(&folder)?;
    Ok((folder, number))
}

/// Enters the space of shares and snapshots into the state of a mounted pool. What cannot be read
/// is left out: it is state only.
pub(super) fn account(volume: &Volume, status: &mut PoolStatus) {
    let Ok((quotas, accounting)) = volume.accounting() else { return };
    status.accounting = accounting;
    if accounting == Accounting::Off {
        return;
    }
    let one = |share: &String| {
        let (_, number) = open(&volume.path().join(share)).ok()?;
        let space = quotas.space(number)?;
        Some(ShareUsage { share: share.clone(), used: space.used, quota: space.limit })
    };
    status.usage = status.shares.iter().filter_map(one).collect();
    if accounting == Accounting::Full {
        // Metadata of shares is among what they use, so that this is a little too small.
        let shares: u64 = status.usage.iter().map(|one| one.used).sum();
        status.used_snapshots = Some(match status.snapshots.is_empty() {
            true => 0,
            false => status.used_data.saturating_sub(shares),
        });
    }
}

/// Begins to account the space of a new pool: as long as it has no data, in the way that costs
/// least. A kernel without any is no reason to refuse a pool.
pub(super) fn begin(volume: &Volume) {
    let done =
        quota::enable_simple(volume.folder()).or_else(|_| quota::enable_full(volume.folder()));
    if let Err(e) = done {
        base::error!("host", "the space of shares is not accounted: {e}");
    }
}

/// The subvolume of a share, open.
fn open_share(volume: &Volume, share: &str) -> Result<(File, u64), Failure> {
    checked(share)?;
    let at = volume.path().join(share);
    if !subvolume::is_one(&at) {
        return wrong(format!("there is no subvolume {share} in the pool"));
    }
    tried(open(&at), "open the share")
}

impl Keeper {
    pub(super) fn configure_share(
        &self,
        name: &str,
        share: &str,
        settings: &ShareSettings,
    ) -> Result<String, Failure> {
        if settings.reservation.is_some() {
            return wrong("btrfs cannot reserve space for a share: use quotas of the other shares");
        }
        if settings.quota.is_some_and(|quota| quota < QUOTA_MIN) {
            return wrong(format!("a quota has at least {} MiB", QUOTA_MIN >> 20));
        }
        let _one = lock(&self.changing);
        let volume = self.volume(name)?;
        let (folder, number) = open_share(&volume, share)?;
        let (quotas, accounting) = tried(volume.accounting(), "read the accounting of the pool")?;
        let now = quotas.space(number).and_then(|space| space.limit);
        if now != settings.quota {
            if accounting == Accounting::Off {
                // There is data: only full accounting counts it.
                tried(quota::enable_full(volume.folder()), "account the space of shares")?;
            }
            tried(quota::limit(&folder, settings.quota), "set the quota")?;
        }
        tried(quota::compress(&folder, settings.compression), "set the compression")?;
        Ok(format!("The settings of the share {share} are changed."))
    }

    pub(super) fn account_snapshots(&self, name: &str) -> Result<String, Failure> {
        let _one = lock(&self.changing);
        let volume = self.volume(name)?;
        let (quotas, accounting) = tried(volume.accounting(), "read the accounting of the pool")?;
        match accounting {
            Accounting::Full | Accounting::Scanning => {
                return wrong(format!("the pool {name} accounts snapshots already"));
            }
            Accounting::Simple => {
                // Limits go with the accounting that they belong to.
                let limits = limits(&volume, &quotas);
                tried(quota::disable(volume.folder()), "end simple accounting")?;
                tried(quota::enable_full(volume.folder()), "begin full accounting")?;
                for (folder, limit) in limits {
                    tried(quota::limit(&folder, Some(limit)), "set a quota again")?;
                }
            }
            Accounting::Off => {
                tried(quota::enable_full(volume.folder()), "begin full accounting")?;
            }
        }
        Ok(format!("The space of snapshots of the pool {name} is being counted."))
    }

    pub(super) fn snapshots_of(
        &self,
        name: &str,
        share: &str,
    ) -> Result<Vec<SnapshotStatus>, Failure> {
        checked(share)?;
        let volume = self.volume(name)?;
        let (quotas, accounting) = tried(volume.accounting(), "read the accounting of the pool")?;
        let at = volume.path().join(SNAPSHOTS).join(share);
        let one = |snapshot: String| {
            let (folder, order) = open(&at.join(&snapshot)).ok()?;
            let created_s = subvolume::made_s(&folder).ok()?;
            let space = quotas.space(order).filter(|_| accounting == Accounting::Full);
            let alone = space.map(|space| space.alone);
            Some(SnapshotStatus { name: snapshot, created_s, order, alone })
        };
        let mut all: Vec<SnapshotStatus> = subvolumes(&at).into_iter().filter_map(one).collect();
        all.sort_by_key(|one| one.order);
        Ok(all)
    }
}

/// Shares with a quota, open.
fn limits(volume: &Volume, quotas: &Quotas) -> Vec<(File, u64)> {
    let one = |share: String| {
        let (folder, number) = open(&volume.path().join(share)).ok()?;
        let limit = quotas.space(number)?.limit?;
        Some((folder, limit))
    };
    subvolumes(volume.path()).into_iter().filter_map(one).collect()
}
