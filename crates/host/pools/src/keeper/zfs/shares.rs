//! Shares on a pool of ZFS: a dataset for each, and its snapshots.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::super::{Keeper, lock, tried, wrong};
use crate::pool::Failure;
use crate::quota::Compression;
use crate::request::ShareSettings;
use crate::subvolume;
use crate::zfs::command::CHANGE_TIME;

/// Checks a name of a share or a snapshot: ZFS has fewer characters than btrfs.
fn checked(name: &str) -> Result<(), Failure> {
    subvolume::check_name(name).map_err(Failure::Wrong)?;
    let is_one = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if name.bytes().all(is_one) {
        return Ok(());
    }
    wrong("on a pool of ZFS a name has letters, digits, '-', '_' and '.'")
}

impl Keeper {
    /// The dataset of a share; it is made if it is not there. Whether it was made.
    pub(super) fn make_dataset(&self, name: &str, share: &str) -> Result<bool, Failure> {
        checked(share)?;
        let _one = lock(&self.changing);
        let tools = self.of_zfs(name)?;
        let dataset = format!("{name}/{share}");
        let at = self.at(name).join(share);
        let list = ["get", "-H", "-p", "-o", "value", "mounted", &dataset];
        if let Ok(mounted) = tools.zfs(&list, CHANGE_TIME) {
            if mounted.trim() != "yes" {
                tools.zfs(&["mount", &dataset], CHANGE_TIME)?;
            }
            return Ok(false);
        }
        if at.symlink_metadata().is_ok() {
            return wrong(format!("there is something else named {share} in the pool {name}"));
        }
        tools.zfs(&["create", &dataset], CHANGE_TIME)?;
        let mode = fs::Permissions::from_mode(0o755);
        tried(fs::set_permissions(&at, mode), "set the mode of the dataset")?;
        Ok(true)
    }

    /// Takes back what [`Self::make_dataset`] has made: only an empty dataset.
    pub(super) fn take_back_dataset(&self, name: &str, share: &str) -> Result<String, Failure> {
        checked(share)?;
        let _one = lock(&self.changing);
        let tools = self.of_zfs(name)?;
        let mut entries = tried(fs::read_dir(self.at(name).join(share)), "read the dataset")?;
        if entries.next().is_some() {
            return wrong(format!("{share} is not an empty dataset"));
        }
        // Without -r: one with snapshots stays.
        tools.zfs(&["destroy", &format!("{name}/{share}")], CHANGE_TIME)?;
        Ok(format!("The dataset {share} is destroyed."))
    }

    /// Sets quota, reservation and compression of a dataset: one at a time, for zfs-fuse.
    pub(super) fn configure_dataset(
        &self,
        name: &str,
        share: &str,
        settings: &ShareSettings,
    ) -> Result<String, Failure> {
        checked(share)?;
        let compression = match settings.compression {
            Compression::Off => "off",
            Compression::Zstd => "zstd",
            Compression::Zlib => "gzip",
            Compression::Lzo => return wrong("ZFS has no compression lzo: choose zstd or zlib"),
        };
        let _one = lock(&self.changing);
        let tools = self.of_zfs(name)?;
        let dataset = format!("{name}/{share}");
        let bytes = |bytes: Option<u64>| bytes.map_or("none".to_owned(), |bytes| bytes.to_string());
        for property in [
            format!("quota={}", bytes(settings.quota)),
            format!("reservation={}", bytes(settings.reservation)),
            format!("compression={compression}"),
        ] {
            tools.zfs(&["set", &property, &dataset], CHANGE_TIME)?;
        }
        Ok(format!("The settings of {share} are changed."))
    }

    pub(super) fn snapshot_zfs(
        &self,
        name: &str,
        share: &str,
        snapshot: &str,
    ) -> Result<String, Failure> {
        self.change_snapshot_zfs("snapshot", name, share, snapshot)?;
        Ok(format!("The snapshot {snapshot} of {share} is created."))
    }

    pub(super) fn destroy_snapshot_zfs(
        &self,
        name: &str,
        share: &str,
        snapshot: &str,
    ) -> Result<String, Failure> {
        self.change_snapshot_zfs("destroy", name, share, snapshot)?;
        Ok(format!("The snapshot {snapshot} of {share} is destroyed."))
    }

    /// A command of `zfs` about one snapshot.
    fn change_snapshot_zfs(
        &self,
        command: &str,
        name: &str,
        share: &str,
        snapshot: &str,
    ) -> Result<(), Failure> {
        checked(share)?;
        checked(snapshot)?;
        let _one = lock(&self.changing);
        let tools = self.of_zfs(name)?;
        tools.zfs(&[command, &format!("{name}/{share}@{snapshot}")], CHANGE_TIME)?;
        Ok(())
    }
}
