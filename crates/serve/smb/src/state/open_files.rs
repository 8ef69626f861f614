//! Files that are open over SMB: where each is, whether it is to be removed at its last close, and
//! which of its times are shown.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::limits::SMB_CHANGE_TIMES_MAX;
use vfs::handle::Handle;
use vfs::locks::FileKey;

use super::times::Times;

/// What is open, over all connections. `T` is what it takes to remove a file.
pub struct OpenFiles<T> {
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
    removal: Option<T>,
    /// Its directory, by the name of the last open.
    dir: Option<Handle>,
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

    /// Another open of a file in `dir`; false if the file is to be removed, so that there can be
    /// none.
    pub fn open(&self, key: FileKey, dir: Option<Handle>) -> bool {
        let times = self.closed().times.get(&key).copied().unwrap_or_default();
        let mut files = self.files();
        let new = One { opens: 0, removal: None, dir, times };
        let file = files.entry(key).or_insert(new);
        if file.removal.is_some() {
            return false;
        }
        file.opens += 1;
        file.dir = dir;
        true
    }

    /// The file is in another directory now.
    pub fn moved(&self, key: FileKey, dir: Handle) {
        if let Some(file) = self.files().get_mut(&key) {
            file.dir = Some(dir);
        }
    }

    /// Directories of a file system that have open files in them.
    pub fn dirs(&self, fsid: u64) -> HashSet<Handle> {
        let files = self.files();
        files.iter().filter(|(key, _)| key.fsid == fsid).filter_map(|(_, one)| one.dir).collect()
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

    /// The file is to be removed when nobody has it open any more, or with `None` is not.
    pub fn set_removal(&self, key: FileKey, removal: Option<T>) {
        if let Some(file) = self.files().get_mut(&key) {
            file.removal = removal;
        }
    }

    /// Whether the file is to be removed.
    pub fn is_to_be_removed(&self, key: FileKey) -> bool {
        self.files().get(&key).is_some_and(|file| file.removal.is_some())
    }

    /// One open less. After the last one: what is to be removed now.
    pub fn close(&self, key: FileKey) -> Option<T> {
        let mut files = self.files();
        let file = files.get_mut(&key)?;
        file.opens = file.opens.saturating_sub(1);
        if file.opens > 0 {
            return None;
        }
        let gone = files.remove(&key)?;
        drop(files);
        if gone.times.has_change() && gone.removal.is_none() {
            self.closed().remember(key, gone.times);
        }
        gone.removal
    }

    /// How many files are open.
    pub fn count(&self) -> usize {
        self.files().len()
    }
}

#[cfg(test)]
mod tests;
