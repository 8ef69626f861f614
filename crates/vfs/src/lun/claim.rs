//! A unit's claim on its file: while it lives no share shows the file, in the table of opens and
//! locks it is open with everything denied to others, and no share gives what lies above it
//! another name. It is marked ([`base::claim`]) for programs that do not go through a share.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use base::protocol::Protocol;
use thiserror::Error;

use crate::host::key_of;
use crate::locks::exclusive::{EntryNumber, Inode};
use crate::locks::{
    ClientKey, FileKey, LockTable, Owner, Refused, SHARE_DELETE, SHARE_READ, SHARE_WRITE, Share,
};

/// What a unit does with its file, and what others may not.
const ALL: Share =
    Share { access: SHARE_READ | SHARE_WRITE, deny: SHARE_READ | SHARE_WRITE | SHARE_DELETE };

/// How it is opened in the table.
type OpenMethod = fn(&LockTable, FileKey, &Owner, Share) -> Result<Share, Refused>;

/// Why a file cannot be a unit's.
#[derive(Debug, Error)]
pub enum ClaimError {
    /// It is one's already.
    #[error("another unit has it")]
    InUse,
    /// A client has it open.
    #[error("a client has it open over {0}")]
    Open(&'static str),
    /// Clients may reclaim what they had open before the server started.
    #[error("clients may still reclaim it after the restart; try again in a minute")]
    Grace,
    /// A client has it delegated, and was asked to give it back.
    #[error("a client has it delegated, and was asked to give it back")]
    Delegated,
    /// The table of opens has no room for it.
    #[error("too many files are open")]
    Full,
    /// It cannot be looked at.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A claim on a file; released when dropped.
pub struct Claim {
    locks: Arc<LockTable>,
    file: Inode,
    /// In the set of files that no share shows.
    entry: EntryNumber,
    opened: Option<(FileKey, Owner)>,
}

impl Claim {
    /// Claims the file, or the block device, at a path; `name` is the unit's, for people.
    ///
    /// # Errors
    /// [`ClaimError`]; shares show the file as before.
    pub fn take(locks: &Arc<LockTable>, path: &Path, name: &str) -> Result<Self, ClaimError> {
        Self::of(locks, path, name, LockTable::open)
    }

    /// As [`Claim::take`], of a file that was the unit's before the server started, or was made for
    /// it: no client can reclaim anything of it.
    ///
    /// # Errors
    /// [`ClaimError`]; shares show the file as before.
    pub fn retake(locks: &Arc<LockTable>, path: &Path, name: &str) -> Result<Self, ClaimError> {
        Self::of(locks, path, name, LockTable::reopen)
    }

    fn of(
        locks: &Arc<LockTable>,
        path: &Path,
        name: &str,
        open: OpenMethod,
    ) -> Result<Self, ClaimError> {
        let meta = std::fs::metadata(path)?;
        let file = (meta.dev(), meta.ino());
        // Hidden first: no client can open it between the question and the claim.
        let entry = locks.exclusive().enter(path, true)?.ok_or(ClaimError::InUse)?;
        let mut claim = Self { locks: Arc::clone(locks), file, entry, opened: None };
        if !meta.file_type().is_block_device() {
            claim.open(path, name, open)?;
        }
        Ok(claim)
    }

    fn open(&mut self, path: &Path, name: &str, open: OpenMethod) -> Result<(), ClaimError> {
        let key = key_of(path)?;
        let client = ClientKey { protocol: Protocol::Iscsi, id: self.file.1 };
        let owner = Owner::new(client, name.as_bytes()).ok_or(ClaimError::Full)?;
        open(&self.locks, key, &owner, ALL).map_err(|refused| match refused {
            Refused::Grace => ClaimError::Grace,
            Refused::Shared(by) => ClaimError::Open(by.client.protocol.service().title()),
            Refused::Recalling => ClaimError::Delegated,
            _ => ClaimError::Full,
        })?;
        self.opened = Some((key, owner));
        Ok(())
    }

    /// Device and inode of the file.
    pub fn file(&self) -> Inode {
        self.file
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some((key, owner)) = &self.opened {
            self.locks.close(*key, owner);
        }
        self.locks.exclusive().leave(&self.entry);
    }
}
