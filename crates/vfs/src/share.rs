//! Shares: a name, a tree of files, whether it may be changed, and rules of access. Found by export
//! path (`/export/NAME`) or by the tag that every handle carries.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::limits::SHARES_MAX;
use thiserror::Error;

use crate::fs::FileSystem;
use crate::handle::Handle;
use crate::host::snapshots::Snapshots;
use crate::locks::LockTable;

mod current;
mod entered;
mod leasing;
pub mod node;
mod read_only;
pub mod rules;
mod service;
pub mod snapdir;
mod suspended;

pub use current::Shares;
pub use entered::{Origin, OriginGrant};
pub use leasing::Leasing;
pub use read_only::ReadOnly;
pub use service::{Service, ServiceRules};
pub use snapdir::SnapshotDirectory;
pub use suspended::Suspended;

/// Where shares are exported.
pub const EXPORT: &str = "/export/";

/// A share.
#[derive(Clone)]
pub struct Share {
    /// Its name; the export path is `/export/NAME`.
    pub name: String,
    /// Its files. A read-only share's refuse every change.
    pub fs: Arc<dyn FileSystem>,
    /// Whether changes are refused.
    pub read_only: bool,
    /// Its number in statistics.
    pub id: u16,
    /// Which clients may use it over each service, with which access and identity.
    pub rules: ServiceRules,
    /// Its snapshots, if it can have any.
    pub snapshots: Option<Arc<Snapshots>>,
    /// Another number once other files are served as this share (rollback): opens of before end.
    pub tree: u64,
    /// Whether clients of SMB may cache: leases and oplocks.
    caching: Arc<AtomicBool>,
    /// Whether clients of SMB get persistent handles.
    continuous: Arc<AtomicBool>,
    /// Whether the root lists `.snapshot`.
    snapdir_is_visible: Arc<AtomicBool>,
}

impl Share {
    /// The path by which it is mounted.
    pub fn export_path(&self) -> String {
        format!("{EXPORT}{}", self.name)
    }

    /// Whether clients of SMB get leases and oplocks.
    pub fn caches(&self) -> bool {
        self.caching.load(Ordering::Relaxed)
    }

    /// Sets that, for files that are opened from now on.
    pub fn set_caching(&self, caching: bool) {
        self.caching.store(caching, Ordering::Relaxed);
    }

    /// Whether clients of SMB get handles that outlive a restart of the server.
    pub fn is_continuous(&self) -> bool {
        self.continuous.load(Ordering::Relaxed)
    }

    /// Sets that, for files that are opened from now on.
    pub fn set_continuous(&self, continuous: bool) {
        self.continuous.store(continuous, Ordering::Relaxed);
    }

    /// Sets whether the root lists `.snapshot`.
    pub fn set_snapdir_visible(&self, visible: bool) {
        self.snapdir_is_visible.store(visible, Ordering::Relaxed);
    }

    /// The rules of access over a service.
    #[inline]
    pub fn rules_for(&self, service: Service) -> &Arc<rules::Current> {
        self.rules.of(service)
    }
}

/// Why a share cannot be added: the administrator's fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ShareError {
    /// There is a share of this name.
    #[error("a share named {0} already exists")]
    NameInUse(String),
    /// Two names have the same tag, so that handles would be ambiguous.
    #[error("share {0} would have the same file handles as {1}: choose another name")]
    Alike(String, String),
    /// No more fit.
    #[error("no more than {SHARES_MAX} shares")]
    TooMany,
    /// Its number in statistics is another share's, or none.
    #[error("the number of share {0} in statistics is not its own")]
    Number(String),
    /// The file system was opened with another tag than the name's.
    #[error("the handles of share {0} do not have its tag")]
    WrongTag(String),
}

/// The tag of a share in its handles: a hash of its name, the same on every start.
pub fn tag(name: &str) -> u32 {
    let hash = blake3::derive_key("plimsoll 2026 share tag", name.as_bytes());
    let [a, b, c, d, ..] = hash;
    u32::from_le_bytes([a, b, c, d])
}

/// The tag that a handle carries (bytes 1 to 4 of every Plimsoll handle).
pub fn tag_of(handle: &Handle) -> Option<u32> {
    let tag = handle.as_bytes().get(1..5)?;
    tag.try_into().ok().map(u32::from_le_bytes)
}

/// Whether a handle has the form of a Plimsoll handle: the share that it was made for may have
/// existed.
pub fn has_form(handle: &Handle) -> bool {
    crate::host::ids::has_form(handle)
}

/// The parts of a new share.
pub struct New<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its files; their handles carry the tag of the name.
    pub fs: Arc<dyn FileSystem>,
    /// Whether changes are refused.
    pub read_only: bool,
    /// Its number in statistics, which no other share has.
    pub id: u16,
    /// The rules of access over each service.
    pub rules: ServiceRules,
    /// Its snapshots, if it can have any.
    pub snapshots: Option<Arc<Snapshots>>,
    /// The number of its files ([`Share::tree`]).
    pub tree: u64,
}

/// All shares. A change makes a new table, which [`Shares`] then gives to every call.
#[derive(Default, Clone)]
pub struct ShareTable {
    /// By their numbers.
    shares: Vec<Arc<Share>>,
    by_tag: HashMap<u32, Arc<Share>>,
    locks: Option<Arc<LockTable>>,
}

impl ShareTable {
    /// A table with delegations: shares that are added from now on recall the conflicting ones in
    /// `locks` when a file is changed. Without it none may be granted.
    pub fn with_locks(locks: Arc<LockTable>) -> Self {
        Self { locks: Some(locks), ..Self::default() }
    }

    /// Adds a share; with `read_only` every change is refused. Its number is the next one, from 1.
    ///
    /// # Errors
    /// The name is taken, or there are too many.
    pub fn add(
        &mut self,
        name: &str,
        fs: Arc<dyn FileSystem>,
        read_only: bool,
    ) -> Result<Arc<Share>, ShareError> {
        let id = self.shares.last().map_or(0, |share| share.id) + 1;
        let rules = ServiceRules::default();
        self.put(New { name, fs, read_only, id, rules, snapshots: None, tree: 0 })
    }

    /// Adds a share.
    ///
    /// # Errors
    /// The name or the number is taken, or there are too many.
    pub fn put(&mut self, new: New<'_>) -> Result<Arc<Share>, ShareError> {
        let New { name, fs, read_only, id, rules, snapshots, tree } = new;
        let tag = tag(name);
        if let Some(other) = self.by_tag.get(&tag) {
            let error = if other.name == name {
                ShareError::NameInUse(name.to_owned())
            } else {
                ShareError::Alike(name.to_owned(), other.name.clone())
            };
            return Err(error);
        }
        if self.shares.len() >= SHARES_MAX {
            return Err(ShareError::TooMany);
        }
        if tag_of(&fs.root()) != Some(tag) {
            return Err(ShareError::WrongTag(name.to_owned()));
        }
        let at = match self.shares.binary_search_by_key(&id, |share| share.id) {
            Err(at) if id != 0 => at,
            _ => return Err(ShareError::Number(name.to_owned())),
        };
        let fs: Arc<dyn FileSystem> = match &self.locks {
            // What cannot be changed through us needs no recalls.
            Some(locks) if !read_only => Arc::new(Leasing::new(fs, Arc::clone(locks))),
            _ if read_only => Arc::new(ReadOnly::new(fs)),
            _ => fs,
        };
        let (caching, continuous) = (Arc::new(AtomicBool::new(true)), Arc::default());
        let snapdir_is_visible = Arc::default();
        let fs: Arc<dyn FileSystem> = match &snapshots {
            Some(all) => Arc::new(SnapshotDirectory::new(
                fs,
                Arc::clone(all),
                Arc::clone(&snapdir_is_visible),
            )),
            None => fs,
        };
        let name = name.to_owned();
        let share = Arc::new(Share {
            name,
            fs,
            read_only,
            id,
            rules,
            snapshots,
            tree,
            caching,
            continuous,
            snapdir_is_visible,
        });
        self.shares.insert(at, Arc::clone(&share));
        self.by_tag.insert(tag, Arc::clone(&share));
        Ok(share)
    }

    /// Takes a share out. Its files stay where they are; its handles are stale from then on.
    pub fn remove(&mut self, name: &str) -> Option<Arc<Share>> {
        let at = self.shares.iter().position(|share| share.name == name)?;
        self.by_tag.remove(&tag(name));
        Some(self.shares.remove(at))
    }

    /// The share of an export path, with or without a slash at the end.
    pub fn by_path(&self, path: &[u8]) -> Option<&Arc<Share>> {
        let name = path.strip_prefix(EXPORT.as_bytes())?;
        let name = name.strip_suffix(b"/").unwrap_or(name);
        self.shares.iter().find(|share| share.name.as_bytes() == name)
    }

    /// The share with the file that a handle names. The handle itself is not checked.
    #[inline]
    pub fn by_handle(&self, handle: &Handle) -> Option<&Arc<Share>> {
        self.by_tag.get(&tag_of(handle)?)
    }

    /// The share with this number in statistics.
    pub fn by_id(&self, id: u16) -> Option<&Arc<Share>> {
        let at = self.shares.binary_search_by_key(&id, |share| share.id).ok()?;
        self.shares.get(at)
    }

    /// The share of this name.
    pub fn by_name(&self, name: &str) -> Option<&Arc<Share>> {
        self.shares.iter().find(|share| share.name == name)
    }

    /// All, by their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Share>> {
        self.shares.iter()
    }
}

#[cfg(test)]
mod tests;
