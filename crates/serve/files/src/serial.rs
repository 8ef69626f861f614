//! Steps that look first and then change what they have seen: one after the other for one subject,
//! over all connections of the process. A write at the end of a file is one, and a name that is
//! given to a file under a condition.
//!
//! Only threads of the pool wait here, each for one step of another; so there are at most as many
//! subjects as threads. Those of different subjects do not wait for each other: a share that does
//! not respond holds up no other one.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use vfs::handle::Handle;
use vfs::locks::FileKey;

/// Digests of the subjects of steps in progress.
static BUSY: Mutex<Vec<u64>> = Mutex::new(Vec::new());
/// Woken when one of them has ended.
static ENDED: Condvar = Condvar::new();

/// No other step on the same subject is in progress until this is dropped.
pub struct Step(u64);

fn busy() -> MutexGuard<'static, Vec<u64>> {
    BUSY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Step {
    /// On the end of a file. To be called on a thread that may wait.
    pub fn on_end(file: FileKey) -> Self {
        Self::on(&(file.fsid, file.fileid, file.generation))
    }

    /// On what has a name in a directory. To be called on a thread that may wait.
    pub fn on_name(dir: &Handle, name: &[u8]) -> Self {
        Self::on(&(dir.as_bytes(), name))
    }

    fn on(subject: &impl Hash) -> Self {
        let mut digest = DefaultHasher::new();
        subject.hash(&mut digest);
        let digest = digest.finish();
        let mut busy = busy();
        while busy.contains(&digest) {
            busy = ENDED.wait(busy).unwrap_or_else(PoisonError::into_inner);
        }
        busy.push(digest);
        Self(digest)
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        busy().retain(|digest| *digest != self.0);
        ENDED.notify_all();
    }
}

#[cfg(test)]
mod tests;
