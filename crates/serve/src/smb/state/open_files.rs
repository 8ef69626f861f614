//! Files that are open over SMB, and whether each is to be removed at its last close.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use vfs::locks::FileKey;

/// What is open, over all connections. `T` is what it takes to remove a file.
pub struct OpenFiles<T> {
    files: Mutex<HashMap<FileKey, One<T>>>,
}

struct One<T> {
    opens: usize,
    removal: Option<T>,
}

impl<T> Default for OpenFiles<T> {
    fn default() -> Self {
        Self { files: Mutex::default() }
    }
}

impl<T> OpenFiles<T> {
    fn files(&self) -> MutexGuard<'_, HashMap<FileKey, One<T>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another open; false if the file is to be removed, so that there can be none.
    pub fn open(&self, key: FileKey) -> bool {
        let mut files = self.files();
        let file = files.entry(key).or_insert(One { opens: 0, removal: None });
        if file.removal.is_some() {
            return false;
        }
        file.opens += 1;
        true
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
        files.remove(&key)?.removal
    }

    /// How many files are open.
    pub fn count(&self) -> usize {
        self.files().len()
    }
}

#[cfg(test)]
mod tests;
