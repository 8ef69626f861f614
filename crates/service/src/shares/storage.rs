//! Settings of shares on pools: quota, reservation, compression, and schedules of snapshots.

use std::path::Path as FilePath;

use base::node::Path;
use control::tree::{Document, Problem};
use host_pools::quota::{Compression, FollowedShare};
use host_pools::request::ShareSettings;
use host_pools::schedule::{Every, Schedule};
use vfs::host::HostFs;
use vfs::host::snapshots::are_subvolumes;
use vfs::host::space::Part;
use vfs::share::node::{POOL, storage};

use super::config::OnPool;
use super::{ShareConfig, Subvolumes};

/// The settings of a share on a pool; none of a share on a directory.
///
/// # Errors
/// A share on a directory has a setting that only pools have.
pub fn on_pool(document: &Document, path: &Path) -> Result<Option<OnPool>, Problem> {
    let bytes = |name| document.integer(path, name).and_then(|n| u64::try_from(n).ok());
    let compression = document.text(path, storage::COMPRESSION);
    let compression = compression.as_deref().and_then(Compression::of).unwrap_or_default();
    let (quota, reservation) = (bytes(storage::QUOTA), bytes(storage::RESERVATION));
    if let Some(pool) = document.text(path, POOL) {
        let settings = ShareSettings { quota, reservation, compression };
        return Ok(Some(OnPool { pool, settings }));
    }
    let kept = storage::KEPT.into_iter().find(|name| bytes(name).is_some_and(|n| n > 0));
    let set = [
        quota.map(|_| storage::QUOTA),
        reservation.map(|_| storage::RESERVATION),
        (compression != Compression::Off).then_some(storage::COMPRESSION),
        kept,
    ];
    match set.into_iter().flatten().next() {
        None => Ok(None),
        Some(property) => {
            let sentence = "it is on a directory, and only pools have this";
            let hint = "unset it, or create a share on a pool: pool=NAME";
            Err(Problem::new(path, sentence, hint).property(property))
        }
    }
}

/// The schedules of snapshots of a share.
pub fn schedules(document: &Document, path: &Path) -> Vec<Schedule> {
    let number = |name| document.integer(path, name).and_then(|n| u32::try_from(n).ok());
    let minutes = number(storage::MINUTES).unwrap_or(storage::MINUTES_DEFAULT);
    let every = [Every::Minutes(minutes), Every::Hour, Every::Day, Every::Week, Every::Month];
    let all = every.into_iter().zip(storage::KEPT);
    let all = all.map(|(every, name)| Schedule { every, keep: number(name).unwrap_or(0) });
    all.filter(|schedule| schedule.keep > 0).collect()
}

/// What was changed of shares on pools, taken back when this goes unless it is kept.
pub(super) struct Configured<'a> {
    pools: &'a dyn Subvolumes,
    /// Shares with what held before.
    before: Vec<(String, OnPool)>,
}

impl<'a> Configured<'a> {
    pub(super) fn new(pools: &'a dyn Subvolumes) -> Self {
        Self { pools, before: Vec::new() }
    }

    /// Has the settings of a share hold; `before` are those that held.
    ///
    /// # Errors
    /// The pool refuses them; then all are as before.
    pub(super) fn set(
        &mut self,
        config: &ShareConfig,
        before: Option<&OnPool>,
    ) -> Result<(), Problem> {
        let Some(now) = config.storage.as_ref().filter(|now| Some(*now) != before) else {
            return Ok(());
        };
        let done = self.pools.configure(&now.pool, &config.name, &now.settings);
        done.map_err(|sentence| config.problem(None, &sentence, "see storage pools show"))?;
        self.before.extend(before.map(|before| (config.name.clone(), before.clone())));
        Ok(())
    }

    /// They stay.
    pub(super) fn keep(mut self) {
        self.before.clear();
    }
}

impl Drop for Configured<'_> {
    fn drop(&mut self) {
        for (share, OnPool { pool, settings }) in &self.before {
            if let Err(why) = self.pools.configure(pool, share, settings) {
                base::error!("pools", "{share}: {why}");
            }
        }
    }
}

/// Has clients of a share on a pool see its own space.
pub(super) fn follow(config: &ShareConfig, files: &HostFs) {
    if config.storage.is_none() {
        return;
    }
    // Where there is no accounting, clients see that of the pool.
    let Ok(followed) = FollowedShare::of(&config.directory) else { return };
    files.limit_space(Box::new(move || {
        followed.space().map(|space| Part { used: space.used, limit: space.limit })
    }));
}

/// The directory of the snapshots of a share, if they are directories.
pub(super) fn snapshots(config: &ShareConfig) -> Option<&FilePath> {
    let at = config.snapshots.as_deref()?;
    if are_subvolumes(&config.directory) {
        return Some(at);
    }
    base::info!(
        "shares",
        "{} has no .snapshot: snapshots of ZFS are not directories that can be served",
        config.name
    );
    None
}
