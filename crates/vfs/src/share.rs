//! Shares: a name, a tree of files, whether it may be changed and by whom. Found by export path
//! (`/export/NAME`) or by the tag that every handle carries.

use std::collections::HashMap;
use std::sync::Arc;

use base::limits::SHARES_MAX;
use thiserror::Error;

use crate::fs::FileSystem;
use crate::handle::Handle;
use crate::locks::LockTable;

mod leasing;
mod read_only;
pub mod rules;

pub use leasing::Leasing;
pub use read_only::ReadOnly;

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
    /// Who may use it, how far, and as whom.
    pub rules: Arc<rules::Current>,
}

impl Share {
    /// The path by which it is mounted.
    pub fn export_path(&self) -> String {
        format!("{EXPORT}{}", self.name)
    }
}

/// Why a share cannot be added: the administrator's fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ShareError {
    /// There is a share of this name.
    #[error("there is a share named {0} already")]
    Taken(String),
    /// Two names have the same tag, so that handles could not be told apart.
    #[error("share {0} cannot be told from {1} by its handles: choose another name")]
    Alike(String, String),
    /// No more fit.
    #[error("no more than {SHARES_MAX} shares")]
    TooMany,
    /// The file system was opened with another tag than the name's.
    #[error("the handles of share {0} do not carry its tag")]
    WrongTag(String),
}

/// The tag of a share in its handles: a hash of its name, the same on every start.
pub fn tag(name: &str) -> u32 {
    let hash = blake3::derive_key("plimsoll 2026 share tag", name.as_bytes());
    let [a, b, c, d, ..] = hash;
    u32::from_le_bytes([a, b, c, d])
}

/// The tag that a handle carries (bytes 1 to 4 of every handle of ours).
pub fn tag_of(handle: &Handle) -> Option<u32> {
    let tag = handle.as_bytes().get(1..5)?;
    tag.try_into().ok().map(u32::from_le_bytes)
}

/// All shares. Built at start; a change makes a new table.
#[derive(Default, Clone)]
pub struct ShareTable {
    shares: Vec<Arc<Share>>,
    by_tag: HashMap<u32, Arc<Share>>,
    locks: Option<Arc<LockTable>>,
}

impl ShareTable {
    /// A table whose shares, added from now on, recall the delegations in `locks` when they are
    /// changed. Without it nobody may grant any.
    pub fn with_locks(locks: Arc<LockTable>) -> Self {
        Self { locks: Some(locks), ..Self::default() }
    }

    /// Adds a share; with `read_only` every change is refused. Numbers are given from 1 on.
    pub fn add(
        &mut self,
        name: &str,
        fs: Arc<dyn FileSystem>,
        read_only: bool,
    ) -> Result<Arc<Share>, ShareError> {
        let tag = tag(name);
        if let Some(other) = self.by_tag.get(&tag) {
            let error = if other.name == name {
                ShareError::Taken(name.to_owned())
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
        let fs: Arc<dyn FileSystem> = match &self.locks {
            // What cannot be changed through us needs no recalls.
            Some(locks) if !read_only => Arc::new(Leasing::new(fs, Arc::clone(locks))),
            _ if read_only => Arc::new(ReadOnly::new(fs)),
            _ => fs,
        };
        let id = self.shares.len() as u16 + 1;
        let share =
            Arc::new(Share { name: name.to_owned(), fs, read_only, id, rules: Arc::default() });
        self.shares.push(Arc::clone(&share));
        self.by_tag.insert(tag, Arc::clone(&share));
        Ok(share)
    }

    /// The share of an export path, with or without a slash at the end.
    pub fn by_path(&self, path: &[u8]) -> Option<&Arc<Share>> {
        let name = path.strip_prefix(EXPORT.as_bytes())?;
        let name = name.strip_suffix(b"/").unwrap_or(name);
        self.shares.iter().find(|share| share.name.as_bytes() == name)
    }

    /// The share whose file a handle names. Says nothing yet about the handle being good.
    #[inline]
    pub fn by_handle(&self, handle: &Handle) -> Option<&Arc<Share>> {
        self.by_tag.get(&tag_of(handle)?)
    }

    /// The share with this number in statistics.
    pub fn by_id(&self, id: u16) -> Option<&Arc<Share>> {
        self.shares.get(usize::from(id).checked_sub(1)?)
    }

    /// All, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Share>> {
        self.shares.iter()
    }
}

#[cfg(test)]
mod tests;
