//! The bounded table from file ids to names, for display in statistics.
//!
//! LOOKUP, CREATE, listings and RENAME feed it with (file, parent, last name); a path is put
//! together by following parents. It is a cache: nothing is decided by it, and entries that were
//! not used lately are evicted.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::limits::{DEPTH_MAX, NAMES_MAX};
use probe::op::FileId;

use crate::spread::Spread;

/// Parts with a lock each.
const SHARDS: usize = 32;

enum PathState {
    Name {
        parent: FileId,
        name: Box<[u8]>,
    },
    /// Met by its handle only.
    Inode(u64),
}

#[derive(Default)]
struct Shard {
    known: HashMap<FileId, PathState, BuildHasherDefault<Spread>>,
    order: VecDeque<FileId>,
}

impl Shard {
    /// Room for a file that is not known yet.
    fn make_room(&mut self, file: FileId, most: usize) {
        while self.order.len() >= most {
            let Some(oldest) = self.order.pop_front() else { break };
            self.known.remove(&oldest);
        }
        self.order.push_back(file);
    }
}

/// File id → (parent, last name).
pub struct Paths {
    shards: Vec<Mutex<Shard>>,
    per_shard: usize,
}

impl Default for Paths {
    fn default() -> Self {
        Self::with_capacity(NAMES_MAX)
    }
}

impl Paths {
    /// A table of at most about `capacity` names.
    pub fn with_capacity(capacity: usize) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { shards, per_shard: (capacity / SHARDS).max(1) }
    }

    fn shard(&self, file: FileId) -> MutexGuard<'_, Shard> {
        let at = (file >> 32) as usize % SHARDS;
        self.shards[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `file` was met as `name` in `parent`.
    pub fn note(&self, file: FileId, parent: FileId, name: &[u8]) {
        if file == parent || matches!(name, b"." | b"..") {
            return;
        }
        let mut shard = self.shard(file);
        match shard.known.get(&file) {
            Some(PathState::Name { parent: old, name: last })
                if *old == parent && **last == *name =>
            {
                return;
            }
            Some(_) => {}
            None => shard.make_room(file, self.per_shard),
        }
        shard.known.insert(file, PathState::Name { parent, name: name.into() });
    }

    /// `file` was met by its handle: a name that is known stays.
    pub fn note_inode(&self, file: FileId, ino: u64) {
        let mut shard = self.shard(file);
        if !shard.known.contains_key(&file) {
            shard.make_room(file, self.per_shard);
            shard.known.insert(file, PathState::Inode(ino));
        }
    }

    /// The inode number of a file that was met by its handle only.
    pub fn inode(&self, file: FileId) -> Option<u64> {
        match self.shard(file).known.get(&file)? {
            PathState::Inode(ino) => Some(*ino),
            PathState::Name { .. } => None,
        }
    }

    /// How many names it holds.
    pub fn len(&self) -> usize {
        let len = |s: &Mutex<Shard>| s.lock().unwrap_or_else(PoisonError::into_inner).known.len();
        self.shards.iter().map(len).sum()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name by which `file` was last met, and where.
    pub fn last(&self, file: FileId) -> Option<(FileId, Box<[u8]>)> {
        match self.shard(file).known.get(&file)? {
            PathState::Name { parent, name } => Some((*parent, name.clone())),
            PathState::Inode(_) => None,
        }
    }

    /// The path of `file` below `root`, without a leading slash; empty for the root itself.
    pub fn path_of(&self, file: FileId, root: FileId) -> Option<Vec<u8>> {
        let mut parts = Vec::new();
        let mut at = file;
        while at != root {
            // Two renames crossing each other can leave a circle of memories.
            if parts.len() >= DEPTH_MAX {
                return None;
            }
            let (parent, name) = self.last(at)?;
            parts.push(name);
            at = parent;
        }
        parts.reverse();
        Some(parts.join(&b'/'))
    }
}

#[cfg(test)]
mod tests;
