//! Files that are open over SMB: by which names, which of these are to be removed at their last
//! close, and which times are shown.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::limits::SMB_CHANGE_TIMES_MAX;
use vfs::handle::Handle;
use vfs::locks::FileKey;
use wire::smb::status::NtStatus;

use super::location::Location;
use super::times::Times;

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

/// A name by which a file is open, among its others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NameId(u64);

/// A name by which a file is open: a link of MS-FSA §2.1.1.5. Whoever has it open sees a rename by
/// others.
struct Name<T> {
    id: NameId,
    at: Location,
    opens: usize,
    removal: Option<T>,
}

struct One<T> {
    opens: usize,
    names: Vec<Name<T>>,
    next: u64,
    times: Times,
}

impl<T> One<T> {
    fn name(&mut self, id: NameId) -> Option<&mut Name<T>> {
        self.names.iter_mut().find(|name| name.id == id)
    }

    fn open(&mut self, at: Location) -> Result<NameId, NtStatus> {
        if let Some(name) = self.names.iter_mut().find(|name| name.at.is_same(&at)) {
            if name.removal.is_some() {
                return Err(NtStatus::DELETE_PENDING);
            }
            name.opens += 1;
            return Ok(name.id);
        }
        let id = NameId(self.next);
        self.next += 1;
        self.names.push(Name { id, at, opens: 1, removal: None });
        Ok(id)
    }

    /// One open of a name less; what is to be removed after the last one, and where.
    fn close(&mut self, id: NameId) -> Option<(T, Location)> {
        let place = self.names.iter().position(|name| name.id == id)?;
        let name = self.names.get_mut(place)?;
        name.opens = name.opens.saturating_sub(1);
        if name.opens > 0 {
            return None;
        }
        let Name { at, removal, .. } = self.names.swap_remove(place);
        removal.map(|removal| (removal, at))
    }
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

    /// Another open of a file, by the name that it has there; the root of a share has none.
    ///
    /// # Errors
    /// STATUS_DELETE_PENDING if the name is to be removed, so that there can be no other.
    pub fn open(&self, key: FileKey, at: Option<Location>) -> Result<Option<NameId>, NtStatus> {
        let times = self.closed().times.get(&key).copied().unwrap_or_default();
        let mut files = self.files();
        let new = One { opens: 0, names: Vec::new(), next: 0, times };
        let file = files.entry(key).or_insert(new);
        let name = at.map(|at| file.open(at)).transpose()?;
        file.opens += 1;
        Ok(name)
    }

    /// Looks at a name by which a file is open, or changes it.
    fn name<R>(
        &self,
        key: FileKey,
        name: Option<NameId>,
        what: impl FnOnce(&mut Name<T>) -> R,
    ) -> Option<R> {
        self.files().get_mut(&key)?.name(name?).map(what)
    }

    /// Where a file is that is open by this name.
    pub fn location(&self, key: FileKey, name: Option<NameId>) -> Option<Location> {
        self.name(key, name, |name| name.at.clone())
    }

    /// What has this name has another one now.
    pub fn moved(&self, key: FileKey, name: Option<NameId>, to: Location) {
        self.name(key, name, |name| name.at = to);
    }

    /// Directories of a file system that have open files in them.
    pub fn dirs(&self, fsid: u64) -> HashSet<Handle> {
        let files = self.files();
        let of = files.iter().filter(|(key, _)| key.fsid == fsid);
        of.flat_map(|(_, one)| &one.names).map(|name| name.at.dir).collect()
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

    /// The name is to be removed when nobody has it open any more, or with `None` is not.
    pub fn set_removal(&self, key: FileKey, name: Option<NameId>, removal: Option<T>) {
        self.name(key, name, |name| name.removal = removal);
    }

    /// Whether the name is to be removed.
    pub fn is_to_be_removed(&self, key: FileKey, name: Option<NameId>) -> bool {
        self.name(key, name, |name| name.removal.is_some()).unwrap_or(false)
    }

    /// Whether what is found there is to be removed.
    pub fn is_to_be_removed_at(&self, key: FileKey, at: Option<&Location>) -> bool {
        let files = self.files();
        let (Some(file), Some(at)) = (files.get(&key), at) else { return false };
        file.names.iter().any(|name| name.removal.is_some() && name.at.is_same(at))
    }

    /// One open less. After the last one of its name: what is to be removed now, and where.
    pub fn close(&self, key: FileKey, name: Option<NameId>) -> Option<(T, Location)> {
        let mut files = self.files();
        let file = files.get_mut(&key)?;
        let removal = name.and_then(|name| file.close(name));
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
