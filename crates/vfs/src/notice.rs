//! Changes of directories, for clients that wait for one (CHANGE_NOTIFY of SMB): that there was
//! one, not which; a client reads the directory again.
//!
//! A directory that the back end watches ([`crate::fs::FileSystem::watch`]) is reported by it, also
//! if another program changes it. What the watch does not cover is reported by the layer around
//! each share ([`crate::share::leasing`]): a directory of which only this server can change
//! anything, and what is below a directory, which is noticed by [`DirectoryNotices::sweep`].
//! Without a registration that costs one atomic load for each change.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::lock_order::{OrderedMutex, ranks};

use crate::locks::FileKey;

/// Kinds of changes, as bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes(u8);

impl Changes {
    /// Names come, go or change.
    pub const NAMES: Self = Self(1);
    /// Attributes of what is in the directory.
    pub const ATTRIBUTES: Self = Self(2);
    /// Its data, size and write time.
    pub const DATA: Self = Self(4);
    /// Anything: some reports were lost.
    pub const ALL: Self = Self(7);
    /// None.
    pub const NONE: Self = Self(0);

    /// These, and others.
    #[must_use]
    pub const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// These but others.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Whether some are of both.
    pub const fn meets(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }
}

/// Called on the thread that has made or seen a change; must be short.
pub type Notify = Box<dyn Fn() + Send + Sync>;

/// What a registration is for.
pub struct Interest {
    /// The directory.
    pub dir: FileKey,
    /// Which changes count.
    pub kinds: Changes,
    /// Also those of what is below, as far as this server makes them.
    pub below: bool,
    /// The back end reports changes of the directory itself.
    pub is_watched: bool,
}

struct Registered {
    interest: Interest,
    notify: Notify,
}

impl Registered {
    /// Whether the sweep notifies it of changes on its file system: of what is below, and of files
    /// of which the directory is not known.
    fn is_swept(&self, made: Changes) -> bool {
        let Interest { kinds, below, is_watched, .. } = &self.interest;
        let others = if *below { *kinds } else { kinds.without(Changes::NAMES) };
        (*below || !is_watched) && others.meets(made)
    }
}

#[derive(Default)]
struct Tables {
    by_dir: HashMap<FileKey, HashMap<u64, Registered>>,
    /// What this server has changed since the last sweep, by file system.
    made: HashMap<u64, Changes>,
}

/// Registrations of all directories.
pub struct DirectoryNotices {
    next: AtomicU64,
    /// Those that changes which this server makes may be for.
    counted: AtomicU64,
    tables: OrderedMutex<Tables>,
}

impl Default for DirectoryNotices {
    fn default() -> Self {
        let tables = OrderedMutex::new(ranks::DIRECTORY_NOTICES, Tables::default());
        Self { next: AtomicU64::new(0), counted: AtomicU64::new(0), tables }
    }
}

/// A registration, until it is dropped.
pub struct NoticeGuard {
    notices: Arc<DirectoryNotices>,
    dir: FileKey,
    id: u64,
    is_counted: bool,
}

impl Drop for NoticeGuard {
    fn drop(&mut self) {
        let mut tables = self.notices.tables.lock();
        if let Some(of_dir) = tables.by_dir.get_mut(&self.dir) {
            of_dir.remove(&self.id);
            if of_dir.is_empty() {
                tables.by_dir.remove(&self.dir);
            }
        }
        self.notices.counted.fetch_sub(u64::from(self.is_counted), Ordering::Relaxed);
    }
}

impl DirectoryNotices {
    /// Calls `notify` at each change that is of interest.
    pub fn register(self: &Arc<Self>, interest: Interest, notify: Notify) -> NoticeGuard {
        let is_counted = interest.below || !interest.is_watched;
        self.counted.fetch_add(u64::from(is_counted), Ordering::Relaxed);
        let (id, dir) = (self.next.fetch_add(1, Ordering::Relaxed), interest.dir);
        let mut tables = self.tables.lock();
        tables.by_dir.entry(dir).or_default().insert(id, Registered { interest, notify });
        drop(tables);
        NoticeGuard { notices: Arc::clone(self), dir, id, is_counted }
    }

    /// Whether changes that this server makes must be reported.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.counted.load(Ordering::Relaxed) > 0
    }

    /// The back end has seen a change in a directory.
    pub fn seen(&self, dir: FileKey, kinds: Changes) {
        notify(&self.tables.lock(), dir, |interest| {
            interest.is_watched && interest.kinds.meets(kinds)
        });
    }

    /// This server has changed names in a directory.
    pub fn names_changed(&self, dir: FileKey) {
        let mut tables = self.tables.lock();
        notify(&tables, dir, |interest| {
            !interest.is_watched && interest.kinds.meets(Changes::NAMES)
        });
        let made = tables.made.entry(dir.fsid).or_default();
        *made = made.with(Changes::NAMES);
    }

    /// This server has changed a file, of which the directory is not known.
    pub fn file_changed(&self, file: FileKey, kinds: Changes) {
        let mut tables = self.tables.lock();
        let made = tables.made.entry(file.fsid).or_default();
        *made = made.with(kinds);
    }

    /// Notifies those that want to know of changes below a directory, or of files in one that is
    /// not watched: once a second, so that a change costs the same however many there are.
    pub fn sweep(&self) {
        let mut tables = self.tables.lock();
        let made = std::mem::take(&mut tables.made);
        if made.is_empty() {
            return;
        }
        for (dir, of_dir) in &tables.by_dir {
            let Some(made) = made.get(&dir.fsid) else { continue };
            of_dir.values().filter(|one| one.is_swept(*made)).for_each(|one| (one.notify)());
        }
    }
}

/// Notifies the registrations of a directory that are interested.
fn notify(tables: &Tables, dir: FileKey, is_of: impl Fn(&Interest) -> bool) {
    let of_dir = tables.by_dir.get(&dir).into_iter().flat_map(HashMap::values);
    of_dir.filter(|one| is_of(&one.interest)).for_each(|one| (one.notify)());
}

#[cfg(test)]
mod tests;
