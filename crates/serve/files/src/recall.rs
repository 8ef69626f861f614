//! Waiting for a lease or a delegation that is in the way ([`vfs::locks::leases`]): until its
//! holder has returned or acknowledged it, or has lost it.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use base::clock::Deadline;
use base::limits::BUSY_LOOK;
use tokio::sync::oneshot;
use vfs::locks::{FileKey, LockTable, WaitId};

/// What the table calls when the lease has changed; taken back if it is dropped before.
struct Notice<'a> {
    locks: &'a LockTable,
    key: FileKey,
    number: Option<WaitId>,
    /// When the holder loses the lease.
    left: Option<Duration>,
}

impl<'a> Notice<'a> {
    fn new(locks: &'a LockTable, key: FileKey, released: impl FnOnce() + Send + 'static) -> Self {
        let (number, left) = match locks.when_released(key, Box::new(released)) {
            Some((number, left)) => (Some(number), left),
            None => (None, None),
        };
        Self { locks, key, number, left }
    }

    /// How long to wait at most.
    fn patience(&self, until: Deadline) -> Duration {
        let most = until.left().unwrap_or_default();
        self.left.map_or(most, |left| left.min(most))
    }
}

impl Drop for Notice<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.locks.forget_released(self.key, number);
        }
    }
}

/// Waits until a lease of this file has changed, or is lost; the caller tries again then. Where
/// no lease is in the way, that is after [`BUSY_LOOK`].
pub async fn released(locks: &Arc<LockTable>, key: Option<FileKey>, until: Deadline) {
    let Some(key) = key else { return tokio::time::sleep(BUSY_LOOK).await };
    let (done, end) = oneshot::channel();
    let notice = Notice::new(locks, key, move || {
        // The request may have ended.
        let _ = done.send(());
    });
    let _ = tokio::time::timeout(notice.patience(until), end).await;
}

/// The same on a thread that may wait.
pub fn released_blocking(locks: &LockTable, key: Option<FileKey>, until: Deadline) {
    let Some(key) = key else { return std::thread::sleep(BUSY_LOOK) };
    let (done, end) = mpsc::channel();
    let notice = Notice::new(locks, key, move || {
        let _ = done.send(());
    });
    let _ = end.recv_timeout(notice.patience(until));
}
