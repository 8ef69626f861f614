//! Shares on a pool of ZFS: a dataset for each, and its snapshots.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::super::{Keeper, lock, tried, wrong};
use crate::pool::Failure;
use crate::quota::Compression;
use crate::request::{ShareSettings, SnapshotStatus};
use crate::subvolume;
use crate::zfs::command::{CHANGE_TIME, READ_TIME, Tools};
use crate::zfs::table;

/// Checks a name of a share or a snapshot: ZFS has fewer characters than btrfs.
fn checked(name: &str) -> Result<(), Failure> {
    subvolume::check_name(name).map_err(Failure::Wrong)?;
    let is_one = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if name.bytes().all(is_one) {
        return Ok(());
    }
    wrong("on a pool of ZFS a name has letters, digits, '-', '_' and '.'")
}

/// Snapshots of a share in the order of the transactions in which they were made.
fn snapshots(tools: &Tools, dataset: &str) -> Result<Vec<SnapshotStatus>, Failure> {
    let properties = "type,used,creation,createtxg";
    let get = ["get", "-H", "-p", "-r", "-o", "name,property,value", properties, dataset];
    let all = table::properties(&tools.zfs(&get, READ_TIME)?);
    let prefix = format!("{dataset}@");
    let one = |(name, of): (&String, &BTreeMap<String, String>)| {
        let name = name.strip_prefix(&prefix)?.to_owned();
        let created_s = table::bytes(of, "creation").unwrap_or(0);
        let order = table::bytes(of, "createtxg").unwrap_or(created_s);
        Some(SnapshotStatus { name, created_s, order, alone: table::bytes(of, "used") })
    };
    let mut found: Vec<SnapshotStatus> = all.iter().filter_map(one).collect();
    found.sort_by_key(|one| one.order);
    Ok(found)
}

impl Keeper {
    pub(super) fn snapshots_of_zfs(
        &self,
        name: &str,
        share: &str,
    ) -> Result<Vec<SnapshotStatus>, Failure> {
        checked(share)?;
        snapshots(&self.of_zfs(name)?, &format!("{name}/{share}"))
    }

    /// Takes a share back to its latest snapshot. ZFS would destroy later ones: they are named.
    pub(super) fn rollback_zfs(
        &self,
        name: &str,
        share: &str,
        snapshot: &str,
    ) -> Result<String, Failure> {
        self.change_zfs(name, &[share, snapshot], |tools| {
            let dataset = format!("{name}/{share}");
            let all = snapshots(tools, &dataset)?;
            let Some(at) = all.iter().position(|one| one.name == snapshot) else {
                return wrong(format!("there is no snapshot {snapshot} of {share}"));
            };
            let later: Vec<&str> = all.iter().skip(at + 1).map(|one| one.name.as_str()).collect();
            if !later.is_empty() {
                return wrong(format!(
                    "ZFS can only go back to the latest snapshot; destroy the later ones first: {}",
                    later.join(", ")
                ));
            }
            tools.zfs(&["rollback", &format!("{dataset}@{snapshot}")], CHANGE_TIME)?;
            Ok(format!("{share} has the state of {snapshot}; what was changed since then is gone."))
        })
    }

    /// Makes the dataset of a new share from a snapshot, which stays as long as the new share.
    pub(super) fn clone_zfs(
        &self,
        name: &str,
        (share, snapshot): (&str, &str),
        new: &str,
    ) -> Result<String, Failure> {
        self.change_zfs(name, &[share, snapshot, new], |tools| {
            if self.at(name).join(new).symlink_metadata().is_ok() {
                return wrong(format!("there is something named {new} in the pool {name}"));
            }
            let source = format!("{name}/{share}@{snapshot}");
            tools.zfs(&["clone", &source, &format!("{name}/{new}")], CHANGE_TIME)?;
            Ok(format!("{new} is a copy of {share}@{snapshot}."))
        })
    }

    pub(super) fn rename_snapshot_zfs(
        &self,
        name: &str,
        (share, snapshot): (&str, &str),
        new: &str,
    ) -> Result<String, Failure> {
        let of = |snapshot: &str| format!("{name}/{share}@{snapshot}");
        self.change_zfs(name, &[share, snapshot, new], |tools| {
            Ok(tools.zfs(&["rename", &of(snapshot), &of(new)], CHANGE_TIME)?)
        })?;
        Ok(format!("The snapshot {snapshot} of {share} is named {new}."))
    }

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
        let named = format!("{name}/{share}@{snapshot}");
        let change = |tools: &Tools| Ok(tools.zfs(&[command, &named], CHANGE_TIME)?);
        self.change_zfs(name, &[share, snapshot], change).map(drop)
    }

    /// Makes a change of a pool, alone, once these names are checked.
    fn change_zfs<T>(
        &self,
        pool: &str,
        names: &[&str],
        change: impl FnOnce(&Tools) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        names.iter().try_for_each(|name| checked(name))?;
        let _one = lock(&self.changing);
        change(&self.of_zfs(pool)?)
    }
}
