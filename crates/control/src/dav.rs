//! What the API needs of WebDAV's locks: their list with the owners, and the release of a lock
//! without an active client.

use serde::{Deserialize, Serialize};

use crate::nfs::Listing;

/// The locks that WebDAV clients hold. To release one writes to disk.
pub trait DavState: Send + Sync {
    /// Locks by their files, at most as many as the API shows.
    fn locks(&self) -> Listing<DavLock>;
    /// The lock of this id; `None` if there is none.
    fn lock(&self, id: &str) -> Option<DavLock>;
    /// Releases a lock on behalf of the user `by`; returns the lock. `None` if there is none.
    ///
    /// # Errors
    /// It cannot be written, and stays.
    fn release(&self, id: &str, by: &str) -> Result<Option<DavLock>, String>;
}

/// A lock on a file or a directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DavLock {
    /// Its id in the API: a part of its token, which distinguishes it from others and cannot be
    /// used in place of the token.
    pub id: String,
    /// The user that holds it.
    pub user: String,
    /// The address from where, if it is known.
    pub client: Option<String>,
    /// The address with the name that its machine reports.
    pub label: String,
    /// What is locked, as the list of shares names it: `/SHARE/dir/file`.
    pub file: String,
    /// The share.
    pub share: String,
    /// `exclusive` or `shared`.
    pub scope: String,
    /// `0`: only what is named; `infinity`: with all that is below.
    pub depth: String,
    /// The owner as sent by the client, escaped for display.
    pub owner: String,
    /// Since when, in seconds since the epoch, if it is known.
    pub since: Option<u64>,
    /// For how many seconds it was taken or last refreshed.
    pub timeout_s: u64,
    /// Seconds until it ends, unless it is refreshed.
    pub left_s: u64,
}
