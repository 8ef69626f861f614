//! Steps that look first and then change what they have seen: one after the other for one subject,
//! over all connections of the process. A write at the end of a file is one, and a name that is
//! given to a file under a condition.
//!
//! Only threads of the pool wait here, each for one step of another; so there are at most as many
//! subjects as threads. Those of different subjects do not wait for each other: a share that does
//! not respond holds up no other one.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use vfs::attr::{Attr, Wcc};
use vfs::fs::{Change, Changed, Context, FileSystem, Flush};
use vfs::handle::Handle;
use vfs::locks::FileKey;
use vfs::status::Status;

use super::node::Spot;

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

/// Asked on a thread of the pool right before a file takes a name; if it is false, the file does
/// not take it. No other upload or rename of this server gives the name to something else between
/// the two.
pub type Condition = Arc<dyn Fn() -> bool + Send + Sync>;

/// The condition that always holds.
pub(super) fn always() -> Condition {
    Arc::new(|| true)
}

/// A name in a directory.
type Named<'a> = (&'a Handle, &'a [u8]);

/// Renames if a condition holds; whether it did. To be called on a thread that may wait.
pub(super) fn rename_if(
    fs: &dyn FileSystem,
    cx: Context<'_>,
    from: Named<'_>,
    to: Named<'_>,
    condition: &dyn Fn() -> bool,
) -> Change<bool> {
    let _step = Step::on_name(to.0, to.1);
    if !condition() {
        return Ok(Changed { value: false, wcc: Wcc::default(), flush: Flush::NONE });
    }
    let Changed { wcc, flush, .. } = fs.rename(cx, from, to)?;
    Ok(Changed { value: true, wcc, flush })
}

impl Spot {
    /// The condition that what is there now, or that nothing is, passes a test; a failure to find
    /// out does not.
    pub fn now(&self, passes: impl Fn(Option<&Attr>) -> bool + Send + Sync + 'static) -> Condition {
        let (fs, cred) = (Arc::clone(&self.reached.share.fs), Arc::clone(&self.reached.cred));
        let (dir, name) = (self.dir, self.name.clone());
        Arc::new(move || {
            let cx = Context { cred: &cred, may_block: true };
            match fs.lookup(cx, &dir, &name) {
                Ok((entry, _)) => passes(Some(&entry.attr)),
                Err(failed) => failed.status == Status::NotFound && passes(None),
            }
        })
    }
}

#[cfg(test)]
mod tests;
