//! dsync on shares: the answering side of a run, within the server. A client reaches it as the
//! subsystem `dsync` of the SSH service, which authenticates the user and protects the control
//! stream; content may use additional data streams, as between any two sides.
//!
//! The engine of [`sync`] has threads of its own, which wait; a run has a handful of them, and
//! there are at most [`base::limits::DSYNC_SHARE_RUNS`] of them, with a part for one address. What
//! it does to files it does through the one file system of the share, with the caller's rights, and
//! each operation is counted as one.
//!
//! - `conn`: the bytes between a channel and the threads of a run.
//! - [`tree`]: a directory of a share as a tree. `meta`: attributes of files, read and set.
//! - [`count`]: records of operations. `permits`: the limit on runs.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use sync::streams::listen::Reachable;
use vfs::locks::FileKey;

use super::Owners;
use files::Caller;

mod conn;
pub mod count;
mod meta;
mod permits;
pub mod tree;

use self::permits::RunPermits;

pub use self::conn::serve;

/// What the runs of a server share.
#[derive(Default)]
pub struct Dsync {
    /// Directories that are written to: one run each.
    busy: Arc<Busy>,
    permits: RunPermits,
}

/// Directories that are written to.
type Busy = Mutex<HashSet<FileKey>>;

/// A directory that only one run writes to, as long as this lives.
struct ExclusiveDirectory {
    busy: Arc<Busy>,
    key: FileKey,
}

impl ExclusiveDirectory {
    /// `None` if another run has it.
    fn take(busy: &Arc<Busy>, key: FileKey) -> Option<Self> {
        let mut held = busy.lock().unwrap_or_else(PoisonError::into_inner);
        held.insert(key).then(|| Self { busy: Arc::clone(busy), key })
    }
}

impl Drop for ExclusiveDirectory {
    fn drop(&mut self) {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

/// A requested run.
pub struct Request {
    /// The caller, with the root that it sees as `/`.
    pub who: Caller,
    /// The server address to which the client has connected, if known, and the ports for data
    /// streams: the server chooses them because it has privileges that the client lacks.
    pub at: Reachable,
    /// Permission bits that a directory created for the caller does not get.
    pub umask: u32,
    /// Names of users and groups.
    pub owners: Arc<dyn Owners>,
    /// Why runs are refused to the caller; `None` if they are not.
    pub refused: Option<&'static str>,
}
