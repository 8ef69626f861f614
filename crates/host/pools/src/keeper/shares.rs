//! Shares on a pool: a subvolume for each, and snapshots of it in a folder that no share shows.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::{Keeper, lock, tried, wrong};
use crate::pool::Failure;
use crate::subvolume;

/// The folder of snapshots, in the top-level subvolume: one folder for each share.
pub const SNAPSHOTS: &str = ".snapshots";
/// Most shares and snapshots of a pool that are listed: a reply to the server has all of them.
pub const LISTED_MAX: usize = 4_096;

pub(super) fn checked(name: &str) -> Result<(), Failure> {
    subvolume::check_name(name).map_err(Failure::Wrong)
}

/// Subvolumes of a folder, by name.
pub(super) fn subvolumes(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names = entries.flatten().filter(|entry| subvolume::is_one(&entry.path()));
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.take(LISTED_MAX).collect();
    names.sort();
    names
}

impl Keeper {
    /// The subvolume of a share; it is made if it is not there. Whether it was made.
    pub(super) fn make_share(&self, name: &str, share: &str) -> Result<bool, Failure> {
        checked(share)?;
        let _one = lock(&self.changing);
        let volume = self.volume(name)?;
        let at = volume.path().join(share);
        if subvolume::is_one(&at) {
            return Ok(false);
        }
        if at.symlink_metadata().is_ok() {
            return wrong(format!("there is something else named {share} in the pool {name}"));
        }
        let parent = tried(subvolume::folder(volume.path()), "open the pool")?;
        tried(subvolume::create(&parent, share), "create the subvolume")?;
        let mode = fs::Permissions::from_mode(0o755);
        tried(fs::set_permissions(&at, mode), "set the mode of the subvolume")?;
        // Since Linux 6.6 the creation alone leaves it to the next commit.
        tried(subvolume::commit(&parent), "write the subvolume")?;
        Ok(true)
    }

    /// Takes back what [`Self::make_share`] has made: only an empty subvolume.
    pub(super) fn take_back_share(&self, name: &str, share: &str) -> Result<String, Failure> {
        checked(share)?;
        let _one = lock(&self.changing);
        let volume = self.volume(name)?;
        let at = volume.path().join(share);
        let mut entries = tried(fs::read_dir(&at), "read the subvolume")?;
        if !subvolume::is_one(&at) || entries.next().is_some() {
            return wrong(format!("{share} is not an empty subvolume"));
        }
        let parent = tried(subvolume::folder(volume.path()), "open the pool")?;
        tried(subvolume::destroy(&parent, share), "destroy the subvolume")?;
        Ok(format!("The subvolume {share} is destroyed."))
    }

    /// The folder of the snapshots of a share; it is made if it is not there.
    pub(super) fn snapshots(&self, name: &str, share: &str) -> Result<PathBuf, Failure> {
        let volume = self.volume(name)?;
        let mut folder = volume.path().to_owned();
        for part in [SNAPSHOTS, share] {
            folder.push(part);
            let made = DirBuilder::new().mode(0o700).create(&folder);
            match made {
                Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
                    return tried(Err(e), "make the folder of snapshots");
                }
                _ => {}
            }
            tried(subvolume::folder(&folder), "open the folder of snapshots")?;
        }
        Ok(folder)
    }

    pub(super) fn snapshot(&self, name: &str, share: &str, as_: &str) -> Result<String, Failure> {
        checked(share)?;
        checked(as_)?;
        let _one = lock(&self.changing);
        let source = self.volume(name)?.path().join(share);
        if !subvolume::is_one(&source) {
            return wrong(format!("the pool {name} has no subvolume {share}"));
        }
        let folder = self.snapshots(name, share)?;
        if folder.join(as_).symlink_metadata().is_ok() {
            return wrong(format!("there is a snapshot {as_} of {share}"));
        }
        let source = tried(subvolume::folder(&source), "open the share")?;
        let parent = tried(subvolume::folder(&folder), "open the folder of snapshots")?;
        tried(subvolume::snapshot(&source, &parent, as_), "create the snapshot")?;
        Ok(format!("The snapshot {as_} of {share} is created."))
    }

    pub(super) fn destroy_snapshot(
        &self,
        name: &str,
        share: &str,
        snapshot: &str,
    ) -> Result<String, Failure> {
        checked(share)?;
        checked(snapshot)?;
        let _one = lock(&self.changing);
        let folder = self.snapshots(name, share)?;
        if !subvolume::is_one(&folder.join(snapshot)) {
            return wrong(format!("there is no snapshot {snapshot} of {share}"));
        }
        let parent = tried(subvolume::folder(&folder), "open the folder of snapshots")?;
        tried(subvolume::destroy(&parent, snapshot), "destroy the snapshot")?;
        tried(subvolume::commit(&parent), "write that the snapshot is destroyed")?;
        Ok(format!("The snapshot {snapshot} of {share} is destroyed."))
    }

    /// Shares of a mounted pool, and its snapshots with the times at which they were made.
    pub(super) fn shares_of(&self, name: &str) -> (Vec<String>, Vec<(String, String, u64)>) {
        let at = self.at(name);
        let shares = subvolumes(&at);
        let folder = at.join(SNAPSHOTS);
        let Ok(entries) = fs::read_dir(&folder) else { return (shares, Vec::new()) };
        let of = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        // Work copies of rollbacks are not of a share.
        let of = of.filter(|share| !share.starts_with('.'));
        let mut of: Vec<String> = of.take(LISTED_MAX).collect();
        of.sort();
        let all = of.iter().flat_map(|share| {
            let folder = folder.join(share);
            subvolumes(&folder).into_iter().map(move |snapshot| {
                let opened = subvolume::folder(&folder.join(&snapshot));
                let made = opened.and_then(|opened| subvolume::made_s(&opened)).unwrap_or(0);
                (share.clone(), snapshot, made)
            })
        });
        let snapshots = all.take(LISTED_MAX).collect();
        (shares, snapshots)
    }
}
