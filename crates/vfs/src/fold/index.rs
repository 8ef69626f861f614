//! What names directories have, in any case, so that a name that is not there as it is written does
//! not need a search: a path of 40 bytes can ask for hundreds of them, by links.
//!
//! A directory is known by its change attribute. What is changed through [`FoldIndex::changed`]
//! keeps it known; what changes it otherwise makes it be read again. Of a directory with more names
//! than are looked at, only that is known.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::limits::{SMB_FOLD_DIR_BYTES, SMB_FOLD_INDEX_BYTES, SMB_FOLD_NAME_BYTES};

use super::fold;
use crate::attr::Wcc;
use crate::locks::FileKey;

/// The names of one directory.
struct Names {
    change: u64,
    /// Names by the hash of what they are in upper case, each behind its length; `None` if there
    /// are too many.
    by_hash: Option<HashMap<u64, Box<[u8]>>>,
    bytes: usize,
    used: u64,
}

impl Names {
    /// Adds a name, or takes one away.
    fn change(&mut self, hash: u64, name: &[u8], is_new: bool) {
        let Some(by_hash) = &mut self.by_hash else { return };
        let there = by_hash.remove(&hash).unwrap_or_default();
        let others = each(&there).filter(|other| *other != name);
        let all: Vec<&[u8]> = others.chain(is_new.then_some(name)).collect();
        self.bytes = self.bytes.saturating_sub(bytes_of(&there));
        if !all.is_empty() {
            let packed = pack(all.into_iter());
            self.bytes += bytes_of(&packed);
            by_hash.insert(hash, packed);
        }
    }
}

/// Names in one allocation, each behind its length.
fn pack<'n>(names: impl Iterator<Item = &'n [u8]>) -> Box<[u8]> {
    let mut packed = Vec::new();
    for name in names {
        // No file system has longer ones than 255 bytes; one that is cut is looked up in vain.
        let length = name.len().min(usize::from(u8::MAX));
        packed.push(length as u8);
        packed.extend_from_slice(name.get(..length).unwrap_or_default());
    }
    packed.into()
}

/// The names in such an allocation.
fn each(mut packed: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = packed.split_first()?;
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        packed = rest;
        Some(name)
    })
}

/// Bytes that such an allocation takes of the index; none if it is empty.
fn bytes_of(packed: &[u8]) -> usize {
    if packed.is_empty() { 0 } else { SMB_FOLD_NAME_BYTES + packed.len() }
}

#[derive(Default)]
struct Dirs {
    known: HashMap<FileKey, Names>,
    /// By their last use: the one not used for longest is forgotten first.
    uses: BTreeMap<u64, FileKey>,
    /// Bytes of all.
    total: usize,
    /// Counts uses.
    now: u64,
}

/// Names of directories, up to [`SMB_FOLD_INDEX_BYTES`] in all.
#[derive(Default)]
pub struct FoldIndex {
    dirs: Mutex<Dirs>,
    hasher: RandomState,
}

/// What is known of a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FoldedNames {
    /// Nothing.
    Nothing,
    /// The directory has more names than are looked at.
    TooMany,
    /// These names may be the same in another case.
    Names(Vec<Vec<u8>>),
}

impl std::fmt::Debug for FoldIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FoldIndex").finish_non_exhaustive()
    }
}

impl Dirs {
    fn forget(&mut self, dir: &FileKey) {
        if let Some(gone) = self.known.remove(dir) {
            self.uses.remove(&gone.used);
            self.total = self.total.saturating_sub(gone.bytes);
        }
    }

    fn make_room(&mut self, bytes: usize) {
        while self.total + bytes > SMB_FOLD_INDEX_BYTES {
            let Some((_, oldest)) = self.uses.first_key_value() else { return };
            let oldest = *oldest;
            self.forget(&oldest);
        }
    }

    /// The names of a directory with the change attribute `change`, as used just now.
    fn used(&mut self, dir: FileKey, change: u64) -> Option<&Names> {
        self.now += 1;
        let names = self.known.get_mut(&dir).filter(|names| names.change == change)?;
        self.uses.remove(&std::mem::replace(&mut names.used, self.now));
        self.uses.insert(self.now, dir);
        Some(names)
    }
}

/// Names of a directory while it is read for the first time.
pub(super) struct Filling<'a> {
    index: &'a FoldIndex,
    by_hash: HashMap<u64, Box<[u8]>>,
    bytes: usize,
}

impl Filling<'_> {
    /// One more name.
    pub(super) fn add(&mut self, name: &[u8]) {
        let slot = self.by_hash.entry(self.index.hash(name)).or_default();
        let before = bytes_of(slot);
        *slot = pack(each(slot).chain([name]));
        self.bytes = self.bytes.saturating_sub(before) + bytes_of(slot);
    }
}

impl FoldIndex {
    fn dirs(&self) -> MutexGuard<'_, Dirs> {
        self.dirs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hash(&self, name: &[u8]) -> u64 {
        self.hasher.hash_one(fold(name))
    }

    /// What is known of this name in any case, in a directory with the change attribute `change`.
    pub(super) fn known(&self, dir: FileKey, change: u64, name: &[u8]) -> FoldedNames {
        let hash = self.hash(name);
        let mut dirs = self.dirs();
        let Some(names) = dirs.used(dir, change) else { return FoldedNames::Nothing };
        let Some(by_hash) = &names.by_hash else { return FoldedNames::TooMany };
        let packed = by_hash.get(&hash).map(AsRef::as_ref).unwrap_or_default();
        FoldedNames::Names(each(packed).map(<[u8]>::to_vec).collect())
    }

    /// Begins to take the names of a directory.
    pub(super) fn filling(&self) -> Filling<'_> {
        Filling { index: self, by_hash: HashMap::new(), bytes: SMB_FOLD_DIR_BYTES }
    }

    /// All names of a directory are there; `None`: there are too many.
    pub(super) fn fill(&self, dir: FileKey, change: u64, filled: Option<Filling<'_>>) {
        let (by_hash, bytes) = match filled {
            Some(filled) => (Some(filled.by_hash), filled.bytes),
            None => (None, SMB_FOLD_DIR_BYTES),
        };
        if bytes > SMB_FOLD_INDEX_BYTES {
            return;
        }
        let mut dirs = self.dirs();
        dirs.forget(&dir);
        dirs.make_room(bytes);
        dirs.now += 1;
        let used = dirs.now;
        dirs.total += bytes;
        dirs.uses.insert(used, dir);
        dirs.known.insert(dir, Names { change, by_hash, bytes, used });
    }

    /// A directory was changed by the caller: the name that went and the one that came. One that
    /// was also changed otherwise is not known any more.
    pub fn changed(&self, wcc: &Wcc, gone: Option<&[u8]>, new: Option<&[u8]>) {
        let (Some(before), Some(after)) = (&wcc.before, &wcc.after) else { return };
        let hashed = |name: Option<_>| name.map(|name| (self.hash(name), name));
        let (gone, new) = (hashed(gone), hashed(new));
        let mut guard = self.dirs();
        let dirs = &mut *guard;
        let key = FileKey::from(after);
        let Some(names) = dirs.known.get_mut(&key) else { return };
        // One with too many names may have fewer now.
        if names.change != before.change || names.by_hash.is_none() && gone.is_some() {
            return dirs.forget(&key);
        }
        names.change = after.change;
        let bytes = names.bytes;
        if let Some((hash, gone)) = gone {
            names.change(hash, gone, false);
        }
        if let Some((hash, new)) = new {
            names.change(hash, new, true);
        }
        dirs.total = dirs.total.saturating_sub(bytes) + names.bytes;
        dirs.make_room(0);
    }
}

#[cfg(test)]
mod tests;
