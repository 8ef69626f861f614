//! What names directories have, in any case, so that not every name that is new has to be compared
//! with all that are there: making ten thousand files would look at fifty million names.
//!
//! A directory is known by its change attribute. What is changed through [`FoldIndex::changed`]
//! keeps it known; what changes it otherwise makes it be read again. Only hashes are kept: they say
//! that a name is in no case there, or that the directory must be looked through.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::limits::SMB_FOLD_INDEX_NAMES;

use super::fold;
use crate::attr::Wcc;
use crate::locks::FileKey;

/// The names of one directory.
struct Names {
    change: u64,
    /// How many names there are of each hash.
    hashes: HashMap<u64, u32>,
    used: u64,
}

#[derive(Default)]
struct Dirs {
    known: HashMap<FileKey, Names>,
    /// Hashes of all.
    total: usize,
    /// Counts uses: the one not used for longest is forgotten first.
    now: u64,
}

/// Names of directories, up to [`SMB_FOLD_INDEX_NAMES`] in all.
#[derive(Default)]
pub struct FoldIndex {
    dirs: Mutex<Dirs>,
    hasher: RandomState,
}

impl std::fmt::Debug for FoldIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FoldIndex").finish_non_exhaustive()
    }
}

impl Dirs {
    fn forget(&mut self, dir: &FileKey) {
        if let Some(gone) = self.known.remove(dir) {
            self.total -= gone.hashes.len();
        }
    }

    fn make_room(&mut self, count: usize) {
        while self.total + count > SMB_FOLD_INDEX_NAMES {
            let oldest = self.known.iter().min_by_key(|(_, names)| names.used);
            let Some(oldest) = oldest.map(|(dir, _)| *dir) else { return };
            self.forget(&oldest);
        }
    }
}

impl FoldIndex {
    fn dirs(&self) -> MutexGuard<'_, Dirs> {
        self.dirs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hash(&self, name: &[u8]) -> u64 {
        self.hasher.hash_one(fold(name))
    }

    /// Whether a directory whose change attribute is `change` may have this name in some case.
    /// `None` if it is not known.
    pub(super) fn may_have(&self, dir: FileKey, change: u64, name: &[u8]) -> Option<bool> {
        let hash = self.hash(name);
        let mut dirs = self.dirs();
        dirs.now += 1;
        let now = dirs.now;
        let names = dirs.known.get_mut(&dir).filter(|names| names.change == change)?;
        names.used = now;
        Some(names.hashes.contains_key(&hash))
    }

    /// All names of a directory, by their hashes.
    pub(super) fn fill(&self, dir: FileKey, change: u64, hashes: Vec<u64>) {
        let mut counted = HashMap::with_capacity(hashes.len());
        for hash in hashes {
            *counted.entry(hash).or_insert(0) += 1;
        }
        let mut dirs = self.dirs();
        dirs.forget(&dir);
        dirs.make_room(counted.len());
        dirs.now += 1;
        let used = dirs.now;
        dirs.total += counted.len();
        dirs.known.insert(dir, Names { change, hashes: counted, used });
    }

    /// A directory was changed by the caller: what went and what came. One that somebody else has
    /// changed besides is not known any more.
    pub fn changed(&self, wcc: &Wcc, gone: Option<&[u8]>, new: Option<&[u8]>) {
        let (Some(before), Some(after)) = (&wcc.before, &wcc.after) else { return };
        let (gone, new) = (gone.map(|name| self.hash(name)), new.map(|name| self.hash(name)));
        let mut guard = self.dirs();
        let dirs = &mut *guard;
        let key = FileKey::from(after);
        let Some(names) = dirs.known.get_mut(&key) else { return };
        if names.change != before.change {
            return dirs.forget(&key);
        }
        names.change = after.change;
        let length = names.hashes.len();
        if let Some(gone) = gone
            && let Some(count) = names.hashes.get_mut(&gone)
        {
            *count -= 1;
            if *count == 0 {
                names.hashes.remove(&gone);
            }
        }
        if let Some(new) = new {
            *names.hashes.entry(new).or_insert(0) += 1;
        }
        dirs.total = dirs.total + names.hashes.len() - length;
        dirs.make_room(0);
    }
}

#[cfg(test)]
mod tests;
