//! Files that the server keeps to itself while it exports them as logical units: no share shows
//! them, under no name and by no handle. They are known by device and inode, so that a second hard
//! link and a share that overlaps another are no way to them either.
//!
//! Every operation on a held file asks, so the usual answer costs one load: a bit for each residue
//! of the inode number says that there can be none.
//!
//! The directories and symbolic links by which such a file is found keep their names as long: after
//! a restart it would be found nowhere, or another file in its place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

/// Device and inode of a file.
pub type Inode = (u64, u64);

/// The files that no share shows now.
#[derive(Debug, Default)]
pub struct ExclusiveFiles {
    /// Residues of the inode numbers that are in the set.
    residues: AtomicU64,
    files: RwLock<BTreeSet<Inode>>,
    /// What lies on the way to them, and for how many of them.
    above: RwLock<BTreeMap<Inode, usize>>,
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

#[cfg(test)]
mod tests;
