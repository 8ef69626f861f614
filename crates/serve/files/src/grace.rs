//! Waiting for the end of the grace period: what clients of NFS may reclaim is neither written nor
//! renamed before ([`vfs::locks::grace`]).

use std::sync::Arc;
use std::sync::mpsc;

use base::clock::Deadline;
use base::limits::DSYNC_GRACE_LOOK;
use tokio::sync::oneshot;
use vfs::locks::LockTable;

/// What the table calls at the end; taken back if it is dropped before.
struct Notice<'a> {
    locks: &'a LockTable,
    number: Option<u64>,
}

impl<'a> Notice<'a> {
    fn new(locks: &'a LockTable, ended: impl FnOnce() + Send + 'static) -> Self {
        Self { locks, number: locks.when_grace_ends(Box::new(ended)) }
    }
}

impl Drop for Notice<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.locks.forget_grace(number);
        }
    }
}

/// How long a request waits for the end.
pub fn patience(locks: &LockTable) -> Deadline {
    Deadline::after(locks.grace_patience())
}

/// Waits until the grace period has ended; false if it has not by then.
pub async fn ended(locks: &Arc<LockTable>, until: Deadline) -> bool {
    let (done, end) = oneshot::channel();
    let _notice = Notice::new(locks, move || {
        // The request may have ended.
        let _ = done.send(());
    });
    let Some(left) = until.left() else { return !locks.in_grace() };
    tokio::time::timeout(left, end).await.is_ok()
}

/// The same on a thread that may wait, for as long as the period lasts, which the lease bounds;
/// false if `continues` turned false before. So do runs of dsync and of replication: they have no
/// client that would ask again.
pub fn ended_blocking(locks: &LockTable, continues: impl Fn() -> bool) -> bool {
    let (done, end) = mpsc::channel();
    let _notice = Notice::new(locks, move || {
        let _ = done.send(());
    });
    loop {
        match end.recv_timeout(DSYNC_GRACE_LOOK) {
            Ok(()) => return true,
            Err(_) if continues() => {}
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests;
