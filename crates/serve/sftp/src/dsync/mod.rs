//! dsync on shares: the answering side of a run, within the server. A client reaches it as the
//! subsystem `dsync` of the SSH service, so who he is, and how the control stream is protected, is
//! settled before; content may go over streams of its own beside it, as between any two sides.
//!
//! The engine of [`sync`] has threads of its own, which wait; a run has a handful of them, and
//! there are at most [`base::limits::DSYNC_SHARE_RUNS`] of them, with a part for one address. What
//! it does to files it does through the one file system of the share, with the caller's rights, and
//! each operation is counted as one.
//!
//! - `conn`: what goes between a channel and the threads of a run.
//! - [`tree`]: a directory of a share as a tree. `meta`: what is told of a file, and given to it.
//! - [`count`]: what is written down of an operation. `permits`: how many runs there are.

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

/// A run that somebody asks for.
pub struct Request {
    /// Who, with what he sees as `/`.
    pub who: Caller,
    /// The address by which he has reached this machine, if that is known, and the ports where
    /// streams for data may come: the server has rights that who asks has not, and chooses.
    pub at: Reachable,
    /// Permission bits that a directory made for him does not get.
    pub umask: u32,
    /// What users and groups are called.
    pub owners: Arc<dyn Owners>,
    /// Why there are no runs for him, if there are none.
    pub refused: Option<&'static str>,
}
