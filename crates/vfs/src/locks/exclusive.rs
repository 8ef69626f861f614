//! Files that the server keeps to itself while it exports them as logical units: no share shows
//! them, under no name and by no handle. They are known by device and inode, so that a second hard
//! link and a share that overlaps another are no way to them either.
//!
//! Every operation on a file checks this, so the usual case costs one load: a bit for each residue
//! of the inode number shows that no such file can exist.
//!
//! The directories and symbolic links by which such a file is found keep their names as long: after
//! a restart it would be found nowhere, or another file in its place.
//!
//! A file system has another device number after a remount, and another one may have the number
//! then. So a file is known by its path as well: before a share is opened, those that lie in its
//! directory, or had its device number, are looked up again ([`ExclusiveFiles::renew`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::symlink_metadata;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use base::claim::Mark;

/// Device and inode of a file.
pub type Inode = (u64, u64);

/// A file that is known by its path.
#[derive(Debug)]
struct Entry {
    number: u64,
    /// Without symbolic links.
    path: PathBuf,
    /// What it is, the last one, and was on earlier mounts.
    files: Vec<Inode>,
    /// Directories and symbolic links by which it is found, unless that does not matter.
    above: Option<Vec<Inode>>,
    /// For programs that do not go through a share; `None` for a block device, and where the file
    /// system has no locks.
    mark: Option<Mark>,
}

/// The entry of a file in the set: [`ExclusiveFiles::enter`].
#[derive(Debug)]
pub struct EntryNumber(u64);

/// The files that no share shows now.
#[derive(Debug, Default)]
pub struct ExclusiveFiles {
    /// Residues of the inode numbers that are in the set.
    residues: AtomicU64,
    files: RwLock<BTreeSet<Inode>>,
    /// What lies on the way to them, and for how many of them.
    above: RwLock<BTreeMap<Inode, usize>>,
    /// Those that are known by their paths, and the number of the next one.
    entries: Mutex<(Vec<Entry>, u64)>,
}

fn residue(ino: u64) -> u64 {
    1 << (ino % 64)
}

impl ExclusiveFiles {
    /// Keeps a file from all shares; false if it is in the set already.
    pub fn insert(&self, file: Inode) -> bool {
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = files.insert(file);
        self.residues.fetch_or(residue(file.1), Ordering::SeqCst);
        is_new
    }

    /// Gives a file back to the shares.
    pub fn remove(&self, file: Inode) {
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        files.remove(&file);
        let residues = files.iter().fold(0, |all, (_, ino)| all | residue(*ino));
        self.residues.store(residues, Ordering::SeqCst);
    }

    fn entries(&self) -> MutexGuard<'_, (Vec<Entry>, u64)> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the file at a path from all shares, and marks it for programs that do not go through
    /// one; `None` if it is in the set already. With `is_found` what lies on the way to it keeps
    /// its name.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn enter(&self, path: &Path, is_found: bool) -> io::Result<Option<EntryNumber>> {
        let file = of(path)?;
        let above = if is_found { Some(above(path)?) } else { None };
        let real = path.canonicalize()?;
        let mut entries = self.entries();
        if !self.insert(file) {
            return Ok(None);
        }
        self.keep_names(above.as_deref().unwrap_or_default());
        let number = entries.1;
        let (mark, files) = (mark(path), vec![file]);
        entries.0.push(Entry { number, path: real, files, above, mark });
        entries.1 += 1;
        Ok(Some(EntryNumber(number)))
    }

    /// Gives a file back to the shares.
    pub fn leave(&self, number: &EntryNumber) {
        let mut entries = self.entries();
        let Some(at) = entries.0.iter().position(|one| one.number == number.0) else { return };
        let one = entries.0.swap_remove(at);
        self.let_go_names(one.above.as_deref().unwrap_or_default());
        one.files.into_iter().for_each(|file| self.remove(file));
    }

    /// A directory is about to be served: files in it are looked up again.
    ///
    /// # Errors
    /// The directory cannot be looked at.
    pub fn renew(&self, directory: &Path) -> io::Result<()> {
        let (directory, device) = (directory.canonicalize()?, of(directory)?.0);
        self.renew_all(device, |one| one.path.starts_with(&directory));
        Ok(())
    }

    /// The same of files that lie elsewhere and had the device number of the directory: on an
    /// earlier mount, so that files with their inode numbers are others.
    ///
    /// # Errors
    /// The directory cannot be looked at.
    pub fn renew_elsewhere(&self, directory: &Path) -> io::Result<()> {
        let (directory, device) = (directory.canonicalize()?, of(directory)?.0);
        let had_it = |one: &Entry| one.files.iter().any(|(before, _)| *before == device);
        self.renew_all(device, |one| !one.path.starts_with(&directory) && had_it(one));
        Ok(())
    }

    fn renew_all(&self, device: u64, is_meant: impl Fn(&Entry) -> bool) {
        let meant = |one: &Entry| is_meant(one).then(|| (one.number, one.path.clone()));
        let all: Vec<_> = self.entries().0.iter().filter_map(meant).collect();
        for (number, path) in all {
            // Not under the lock: a file system may not respond.
            let now = of(&path).ok();
            let is_new = |one: &Entry| one.number == number && one.files.last() != now.as_ref();
            if self.entries().0.iter().any(is_new) {
                let of_now = (above(&path).ok(), mark(&path));
                if let Some(one) = self.entries().0.iter_mut().find(|one| is_new(one)) {
                    self.renew_one(one, device, now, of_now);
                }
            }
        }
    }

    fn renew_one(
        &self,
        one: &mut Entry,
        device: u64,
        now: Option<Inode>,
        (above, mark): (Option<Vec<Inode>>, Option<Mark>),
    ) {
        // Those of other devices may be served from an earlier mount for a moment.
        for file in one.files.extract_if(.., |(before, _)| *before == device) {
            self.remove(file);
        }
        let Some(now) = now else { return };
        self.insert(now);
        one.files.push(now);
        one.mark = mark;
        if let (Some(before), Some(above)) = (&mut one.above, above) {
            self.keep_names(&above);
            self.let_go_names(before);
            *before = above;
        }
    }

    /// Whether the file with this inode number on this device is kept from shares.
    #[inline]
    pub fn contains(&self, device: u64, ino: u64) -> bool {
        if self.residues.load(Ordering::Acquire) & residue(ino) == 0 {
            return false;
        }
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        files.contains(&(device, ino))
    }

    /// All of them.
    pub fn list(&self) -> Vec<Inode> {
        self.files.read().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    /// Has these directories and symbolic links keep their names, until they are let go as often.
    pub fn keep_names(&self, above: &[Inode]) {
        let mut kept = self.above.write().unwrap_or_else(PoisonError::into_inner);
        above.iter().for_each(|inode| *kept.entry(*inode).or_default() += 1);
    }

    /// See [`ExclusiveFiles::keep_names`].
    pub fn let_go_names(&self, above: &[Inode]) {
        let mut kept = self.above.write().unwrap_or_else(PoisonError::into_inner);
        for inode in above {
            if let Some(count) = kept.get_mut(inode) {
                *count -= 1;
            }
        }
        kept.retain(|_, count| *count > 0);
    }

    /// Whether what has this inode number on this device must keep its name.
    pub fn keeps_name(&self, device: u64, ino: u64) -> bool {
        let kept = self.above.read().unwrap_or_else(PoisonError::into_inner);
        kept.contains_key(&(device, ino))
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.residues.load(Ordering::Acquire) == 0
    }
}

/// Device and inode of what is at a path.
fn of(path: &Path) -> io::Result<Inode> {
    std::fs::metadata(path).map(|meta| (meta.dev(), meta.ino()))
}

fn mark(path: &Path) -> Option<Mark> {
    let is_device = std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_block_device());
    if is_device { None } else { Mark::set(path).ok() }
}

/// Directories and symbolic links on the way to a file: those that are named, and those that are
/// there.
fn above(path: &Path) -> io::Result<Vec<Inode>> {
    let real = path.canonicalize()?;
    let named = path.ancestors();
    let all = named.chain(real.ancestors().skip(1)).filter(|at| !at.as_os_str().is_empty());
    let mut above = Vec::new();
    for at in all {
        let meta = symlink_metadata(at)?;
        if !meta.is_file() {
            above.push((meta.dev(), meta.ino()));
        }
    }
    above.sort_unstable();
    above.dedup();
    Ok(above)
}

#[cfg(test)]
mod tests;
