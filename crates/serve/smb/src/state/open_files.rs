//! Files that are open over SMB: which times are shown, and what it takes to remove them at their
//! last close. By which names they are open, and which of these are to be removed, the table of all
//! protocols knows ([`vfs::locks::links`]).

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::limits::SMB_CHANGE_TIMES_MAX;
use vfs::locks::{FileKey, LinkId, Location};

use super::times::Times;

/// Counts opens, from before others may find them by a name to their end: what it takes to remove a
/// name is kept as long as any open of the file is counted.
pub(crate) trait CountsOpens: Send + Sync {
    /// A file is open once more.
    fn opened(&self, key: FileKey);
    /// An open has come to nothing. `removed` if it was the last one of a name that is to be
    /// removed: where that is.
    fn abandoned(&self, key: FileKey, removed: Option<(LinkId, Location)>);
}

/// What is open, over all connections. `T` is what it takes to remove a file.
pub(crate) struct OpenFiles<T> {
    files: Mutex<HashMap<FileKey, One<T>>>,
    closed: Mutex<Closed>,
}

/// Times of files that were closed after a client had set a change time, the oldest first.
#[derive(Default)]
struct Closed {
    times: HashMap<FileKey, Times>,
    order: VecDeque<FileKey>,
}

impl Closed {
    fn remember(&mut self, key: FileKey, times: Times) {
        if self.times.insert(key, times).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > SMB_CHANGE_TIMES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.times.remove(&oldest);
        }
    }
}

struct One<T> {
    opens: usize,
    /// By the names that are to be removed.
    removals: Vec<(LinkId, T)>,
    times: Times,
}

impl<T> Default for OpenFiles<T> {
    fn default() -> Self {
        Self { files: Mutex::default(), closed: Mutex::default() }
    }
}

impl<T> OpenFiles<T> {
    fn files(&self) -> MutexGuard<'_, HashMap<FileKey, One<T>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn closed(&self) -> MutexGuard<'_, Closed> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another open of a file.
    pub fn open(&self, key: FileKey) {
        let times = self.closed().times.get(&key).copied().unwrap_or_default();
        let mut files = self.files();
        let new = One { opens: 0, removals: Vec::new(), times };
        files.entry(key).or_insert(new).opens += 1;
    }

    /// Looks at the times of a file that is open, or changes them; or looks at those that are
    /// remembered of one that was.
    pub fn times<R>(&self, key: FileKey, what: impl FnOnce(&mut Times) -> R) -> Option<R> {
        if let Some(file) = self.files().get_mut(&key) {
            return Some(what(&mut file.times));
        }
        let mut remembered = self.closed().times.get(&key).copied()?;
        Some(what(&mut remembered))
    }

    /// What it takes to remove a name, if it is to be removed.
    pub fn set_removal(&self, key: FileKey, name: LinkId, removal: Option<T>) {
        if let Some(file) = self.files().get_mut(&key) {
            file.removals.retain(|(other, _)| *other != name);
            file.removals.extend(removal.map(|removal| (name, removal)));
        }
    }

    /// One open less. With the last one of a name that is to be removed: what that takes.
    pub fn close(&self, key: FileKey, removed: Option<LinkId>) -> Option<T> {
        let mut files = self.files();
        let file = files.get_mut(&key)?;
        let place = file.removals.iter().position(|(name, _)| Some(*name) == removed);
        let removal = place.map(|place| file.removals.swap_remove(place).1);
        file.opens = file.opens.saturating_sub(1);
        if file.opens > 0 {
            return removal;
        }
        let gone = files.remove(&key)?;
        drop(files);
        if gone.times.has_change() && removal.is_none() {
            self.closed().remember(key, gone.times);
        }
        removal
    }

    /// How many files are open.
    pub fn count(&self) -> usize {
        self.files().len()
    }
}

#[cfg(test)]
mod tests;
