//! Rollback, clones and names of snapshots.
//!
//! A rollback makes a writable copy of a snapshot next to the share and exchanges the two in one
//! step (renameat2(2)): whatever happens, the share is the old state or the new one. The old state
//! becomes a snapshot. Until it has its name there it is the work copy; which of the two a crash
//! has left is known by the numbers of subvolumes, which rise in the order of their creation.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use base::units;

use super::shares::{SNAPSHOTS, checked};
use super::{Keeper, lock, now_s, tried, wrong};
use crate::pool::Failure;
use crate::{subvolume, sys};

/// The work copy of a share, in the folder of snapshots: no share has a name that begins so.
const WORK: &str = ".rollback-";
/// Names the step at which a test ends the process.
const STOP: &str = "PLIMSOLL_TEST_ROLLBACK_STOP";
/// What the old state is called.
const BEFORE: &str = "before-rollback-";
/// Snapshots of the same second that are counted on.
const SAME_SECOND_MAX: usize = 100;

/// A share with its folder of snapshots.
struct Target {
    top: File,
    share: PathBuf,
    /// The folder of all snapshots, in which the work copy is.
    all: PathBuf,
    folder: PathBuf,
}

impl Target {
    fn work(&self, share: &str) -> (PathBuf, String) {
        let name = format!("{WORK}{share}");
        (self.all.join(&name), name)
    }
}

impl Keeper {
    fn place(&self, name: &str, share: &str) -> Result<Target, Failure> {
        checked(share)?;
        let volume = self.volume(name)?;
        let top = tried(subvolume::folder(volume.path()), "open the pool")?;
        let (at, all) = (volume.path().join(share), volume.path().join(SNAPSHOTS));
        let folder = self.snapshots(name, share)?;
        Ok(Target { top, share: at, all, folder })
    }

    /// The snapshot of a request.
    fn source(place: &Target, share: &str, snapshot: &str) -> Result<File, Failure> {
        checked(snapshot)?;
        let at = place.folder.join(snapshot);
        if !subvolume::is_one(&at) {
            return wrong(format!("there is no snapshot {snapshot} of {share}"));
        }
        tried(subvolume::folder(&at), "open the snapshot")
    }

    /// Takes a share back to a snapshot. Its present state becomes a snapshot, which stays
    /// writable until [`Self::protect`].
    pub(super) fn rollback(
        &self,
        name: &str,
        share: &str,
        snapshot: &str,
    ) -> Result<String, Failure> {
        let _one = lock(&self.changing);
        let place = self.place(name, share)?;
        let source = Self::source(&place, share, snapshot)?;
        if !subvolume::is_one(&place.share) {
            return wrong(format!("the pool {name} has no subvolume {share}"));
        }
        self.finish(&place, share)?;
        let (work, work_name) = place.work(share);
        let all = tried(subvolume::folder(&place.all), "open the folder of snapshots")?;
        // What is written of the share until now is in the state that is kept.
        tried(sys::sync_file_system(&place.top), "write back the pool")?;
        tried(subvolume::copy(&source, &all, &work_name), "copy the snapshot")?;
        stop_here("copied");
        tried(sys::exchange(&work, &place.share), "exchange the share")?;
        stop_here("exchanged");
        let kept = keep(&place, &work)?;
        stop_here("kept");
        tried(sys::sync_file_system(&place.top), "write back the pool")?;
        Ok(format!("{share} has the state of {snapshot}; the state before is the snapshot {kept}."))
    }

    /// Finishes what a crash has left of a rollback.
    fn finish(&self, place: &Target, share: &str) -> Result<(), Failure> {
        let (work, work_name) = place.work(share);
        if !subvolume::is_one(&work) {
            return Ok(());
        }
        let number = |at: &Path| subvolume::folder(at).and_then(|at| subvolume::number(&at));
        let left = tried(number(&work), "read the subvolume")?;
        // Without a share nothing was exchanged, and something else has removed it.
        let exchanged = match number(&place.share) {
            Ok(live) => left < live,
            Err(_) => true,
        };
        if exchanged {
            return keep(place, &work).map(drop);
        }
        let all = tried(subvolume::folder(&place.all), "open the folder of snapshots")?;
        tried(subvolume::destroy(&all, &work_name), "destroy an unfinished copy")
    }

    /// Makes snapshots read-only that a rollback has left writable, and finishes rollbacks that a
    /// crash has ended. `changing` is held.
    pub(super) fn recover(&self, name: &str) -> Result<(), Failure> {
        let all = self.volume(name)?.path().join(SNAPSHOTS);
        let Ok(entries) = fs::read_dir(&all) else { return Ok(()) };
        for entry in entries.flatten() {
            let Ok(file) = entry.file_name().into_string() else { continue };
            if let Some(share) = file.strip_prefix(WORK) {
                let place = self.place(name, share)?;
                self.finish(&place, share)?;
            }
        }
        for entry in fs::read_dir(&all).into_iter().flatten().flatten() {
            protect_below(&entry.path())?;
        }
        Ok(())
    }

    /// Makes the state before a rollback read-only, after the last change of it.
    pub(super) fn protect(&self, name: &str) -> Result<String, Failure> {
        let _one = lock(&self.changing);
        self.recover(name)?;
        tried(self.volume(name)?.sync(), "write back the pool")?;
        Ok("All snapshots are read-only.".to_owned())
    }

    /// Makes the subvolume of a new share from a snapshot.
    pub(super) fn clone_share(
        &self,
        name: &str,
        (share, snapshot): (&str, &str),
        new: &str,
    ) -> Result<String, Failure> {
        checked(new)?;
        let _one = lock(&self.changing);
        let place = self.place(name, share)?;
        let source = Self::source(&place, share, snapshot)?;
        let at = place.share.with_file_name(new);
        if at.symlink_metadata().is_ok() {
            return wrong(format!("there is something named {new} in the pool {name}"));
        }
        tried(subvolume::copy(&source, &place.top, new), "copy the snapshot")?;
        Ok(format!("{new} is a copy of {share}@{snapshot}."))
    }

    /// Gives a snapshot another name.
    pub(super) fn rename_snapshot(
        &self,
        name: &str,
        (share, snapshot): (&str, &str),
        new: &str,
    ) -> Result<String, Failure> {
        checked(new)?;
        let _one = lock(&self.changing);
        let place = self.place(name, share)?;
        drop(Self::source(&place, share, snapshot)?);
        let (from, to) = (place.folder.join(snapshot), place.folder.join(new));
        if to.symlink_metadata().is_ok() {
            return wrong(format!("there is a snapshot {new} of {share}"));
        }
        tried(fs::rename(from, to), "rename the snapshot")?;
        tried(subvolume::commit(&place.top), "write the name of the snapshot")?;
        Ok(format!("The snapshot {snapshot} of {share} is named {new}."))
    }
}

/// Makes a snapshot of the state before a rollback; gives its name.
fn keep(place: &Target, work: &Path) -> Result<String, Failure> {
    let time = units::utc(i64::try_from(now_s()).unwrap_or_default());
    let time: String = time.chars().filter(|c| c.is_ascii_digit()).take(14).collect();
    let names = (1..=SAME_SECOND_MAX).map(|n| match n {
        1 => format!("{BEFORE}{time}"),
        n => format!("{BEFORE}{time}-{n}"),
    });
    let free = |name: &String| place.folder.join(name).symlink_metadata().is_err();
    let Some(kept) = names.into_iter().find(free) else {
        return wrong("too many rollbacks in one second");
    };
    tried(fs::rename(work, place.folder.join(&kept)), "keep the state before")?;
    Ok(kept)
}

fn protect_below(folder: &Path) -> Result<(), Failure> {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !subvolume::is_one(&entry.path()) {
            continue;
        }
        let opened = tried(subvolume::folder(&entry.path()), "open the snapshot")?;
        tried(subvolume::protect(&opened), "make the snapshot read-only")?;
    }
    Ok(())
}

/// Ends the process at a step, in tests of a crash there ([`STOP`]).
fn stop_here(step: &str) {
    if cfg!(debug_assertions) && std::env::var(STOP).is_ok_and(|at| at == step) {
        std::process::abort();
    }
}
