//! Pools of ZFS: the same requests, by the commands of ZFS.
//!
//! A pool is imported without an entry in the cache file of ZFS: this program imports it at its
//! start, and no other. Its settings are user properties of its root dataset, its shares datasets
//! below it, mounted where those of btrfs are.
//!
//! - `change`: create, import, export, destroy. `disks`: replace, add, remove, offline, online.
//!   `look`: the state. `shares`: datasets and snapshots.

mod change;
mod disks;
mod look;
mod shares;

use std::path::{Path, PathBuf};

use base::clock::{Clock, NS_PER_S, SystemClock};

use super::{Keeper, lock, wrong};
use crate::pool::Failure;
use crate::request::{FileSystem, PoolReply, PoolRequest};
use crate::zfs::command::{self, CHANGE_TIME, READ_TIME, Tools};
use crate::zfs::table;

/// User property: the profile.
const PROFILE: &str = "plimsoll:profile";
/// User property: whether the pool is mounted without missing disks.
const MOUNT_DEGRADED: &str = "plimsoll:mount_degraded";
/// User property: days between two scrubs.
const SCRUB_EVERY_DAYS: &str = "plimsoll:scrub_every_days";

/// How long it is good whether ZFS answers. Longer than a command that hangs may take.
const LACKED_NS: u64 = 30 * NS_PER_S;

/// The device of the kernel behind a name of ZFS: a path, or the last part of one.
fn kernel_name(name: &str) -> Option<String> {
    let below = |folder: &str| Path::new(folder).join(name);
    let candidates: Vec<PathBuf> = if name.starts_with('/') {
        vec![PathBuf::from(name)]
    } else {
        let part = PathBuf::from(format!("/dev/disk/by-id/{name}-part1"));
        vec![below("/dev"), part, below("/dev/disk/by-id"), below("/dev/disk/by-partuuid")]
    };
    candidates.into_iter().find_map(|path| {
        let real = std::fs::canonicalize(path).ok()?;
        let kernel = real.strip_prefix("/dev").ok()?.to_str()?.to_owned();
        (!kernel.is_empty() && !kernel.contains('/')).then_some(kernel)
    })
}

impl Keeper {
    /// The commands of ZFS.
    fn tools(&self) -> Result<Tools, Failure> {
        let mut found = lock(&self.tools);
        if let Some(tools) = found.as_ref() {
            return Ok(tools.clone());
        }
        let tools = Tools::find()?;
        *found = Some(tools.clone());
        Ok(tools)
    }

    /// Why this machine cannot have pools of ZFS.
    pub(super) fn lacks_zfs(&self) -> Option<String> {
        if !command::are_installed() {
            *lock(&self.tools) = None;
            return Some(command::CommandError::NotInstalled.to_string());
        }
        let listed = self.tools().and_then(|tools| self.imported_zfs(&tools));
        listed.err().map(|why| format!("ZFS does not answer: {why}"))
    }

    /// The same for a state, from some seconds ago: a command of ZFS costs more than all the rest
    /// of a state, and waits for a pool that hangs.
    pub(super) fn lacked_zfs(&self) -> Option<String> {
        let mut seen = lock(&self.lacked_zfs);
        let now = SystemClock.monotonic_ns();
        if let Some((checked, lacked)) = seen.as_mut() {
            if now.saturating_sub(*checked) < LACKED_NS {
                return lacked.clone();
            }
            // One thread at a time, unless it hangs.
            *checked = now;
            let (lacked, own) = (lacked.clone(), self.own.clone());
            drop(seen);
            let check = move || {
                let Some(keeper) = own.upgrade() else { return };
                let lacks = keeper.lacks_zfs();
                *lock(&keeper.lacked_zfs) = Some((SystemClock.monotonic_ns(), lacks));
            };
            // Without a thread the next state tries it again.
            let _ = std::thread::Builder::new().name("pool-zfs".to_owned()).spawn(check);
            return lacked;
        }
        drop(seen);
        let lacks = self.lacks_zfs();
        *lock(&self.lacked_zfs) = Some((SystemClock.monotonic_ns(), lacks.clone()));
        lacks
    }

    /// Pools that ZFS has imported: name and number.
    fn imported_zfs(&self, tools: &Tools) -> Result<Vec<(String, String)>, Failure> {
        let output = tools.zpool(&["list", "-H", "-o", "name,guid"], READ_TIME)?;
        let lines = table::lines::<2>(&output).into_iter();
        Ok(lines.map(|[name, guid]| (name.to_owned(), guid.trim().to_owned())).collect())
    }

    /// Whether an imported pool is one of ZFS.
    pub(super) fn is_zfs(&self, name: &str) -> bool {
        let inner = self.inner();
        inner.known.get(name).is_some_and(|known| known.file_system == FileSystem::Zfs)
    }

    /// Whether ZFS has imported this pool.
    pub(super) fn is_imported_zfs(&self, name: &str) -> bool {
        let Ok(known) = self.known(name) else { return false };
        let all = self.tools().and_then(|tools| self.imported_zfs(&tools)).unwrap_or_default();
        all.iter().any(|(one, guid)| one == name && *guid == known.uuid)
    }

    /// The commands, if ZFS has imported this pool.
    fn of_zfs(&self, name: &str) -> Result<Tools, Failure> {
        let known = self.known(name)?;
        let tools = self.tools()?;
        let all = self.imported_zfs(&tools)?;
        if all.iter().any(|(one, guid)| one == name && *guid == known.uuid) {
            return Ok(tools);
        }
        let why = self.inner().failed.get(name).cloned();
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        wrong(format!("the pool {name} is not mounted{why}"))
    }

    /// The answer to a request that concerns a pool of ZFS; none for all others.
    pub(super) fn answer_zfs(&self, request: &PoolRequest) -> Option<Result<PoolReply, Failure>> {
        if let PoolRequest::Create { pool, profile, disks, zfs: Some(options) } = request {
            let done = self.create_zfs(pool, *profile, disks, options);
            return Some(done.map(PoolReply::Done));
        }
        let name = request.imported().filter(|name| self.is_zfs(name))?;
        if let PoolRequest::MakeShare { share, .. } = request {
            let made = self.make_dataset(name, share);
            return Some(made.map(|made| PoolReply::Share { made }));
        }
        if let PoolRequest::Snapshots { share, .. } = request {
            return Some(self.snapshots_of_zfs(name, share).map(PoolReply::Snapshots));
        }
        Some(self.act_on_zfs(name, request).map(PoolReply::Done))
    }

    fn act_on_zfs(&self, name: &str, request: &PoolRequest) -> Result<String, Failure> {
        match request {
            PoolRequest::Export { .. } => self.export_zfs(name),
            PoolRequest::DestroyData { confirmation, .. } => {
                self.destroy_data_zfs(name, confirmation)
            }
            PoolRequest::Scrub { .. } => self.scrub_zfs(name),
            PoolRequest::Stop { .. } => self.stop_zfs(name),
            PoolRequest::Replace { member, disk, .. } => self.replace_zfs(name, member, disk),
            PoolRequest::Add { disks, role, mirror, .. } => {
                self.add_zfs(name, disks, *role, *mirror)
            }
            PoolRequest::Remove { member, .. } => self.remove_zfs(name, member),
            PoolRequest::Offline { member, .. } => self.set_online_zfs(name, member, false),
            PoolRequest::Online { member, .. } => self.set_online_zfs(name, member, true),
            PoolRequest::Configure { mount_degraded, scrub_every_days, .. } => {
                self.configure_zfs(name, *mount_degraded, *scrub_every_days)
            }
            PoolRequest::TakeBackShare { share, .. } => self.take_back_dataset(name, share),
            PoolRequest::ConfigureShare { share, settings, .. } => {
                self.configure_dataset(name, share, settings)
            }
            PoolRequest::Snapshot { share, snapshot, .. } => {
                self.snapshot_zfs(name, share, snapshot)
            }
            PoolRequest::DestroySnapshot { share, snapshot, .. } => {
                self.destroy_snapshot_zfs(name, share, snapshot)
            }
            PoolRequest::RenameSnapshot { share, snapshot, name: new, .. } => {
                self.rename_snapshot_zfs(name, (share, snapshot), new)
            }
            PoolRequest::Rollback { share, snapshot, .. } => {
                self.rollback_zfs(name, share, snapshot)
            }
            // No snapshot of ZFS was ever writable.
            PoolRequest::Protect { .. } => Ok("All snapshots are read-only.".to_owned()),
            PoolRequest::Clone { share, snapshot, name: new, .. } => {
                self.clone_zfs(name, (share, snapshot), new)
            }
            PoolRequest::AccountSnapshots { .. } => {
                wrong(format!("the pool {name} accounts snapshots already"))
            }
            _ => wrong(format!("a pool of ZFS has no request {}", request.name())),
        }
    }

    fn scrub_zfs(&self, name: &str) -> Result<String, Failure> {
        let _one = lock(&self.changing);
        let tools = self.of_zfs(name)?;
        tools.zpool(&["scrub", name], CHANGE_TIME)?;
        Ok(format!("A scrub of the pool {name} has begun."))
    }

    fn stop_zfs(&self, name: &str) -> Result<String, Failure> {
        let _one = lock(&self.changing);
        let tools = self.of_zfs(name)?;
        tools.zpool(&["scrub", "-s", name], CHANGE_TIME)?;
        Ok(format!("The scrub of the pool {name} is stopped."))
    }
}
