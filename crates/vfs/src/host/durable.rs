//! What is not on disk yet, per file: flush targets, and the memory of flushes that failed.
//!
//! The kernel reports a failed write-back once and then marks the pages clean: a second fsync
//! succeeds although the data is gone. So every change of a file takes a number; a failed flush
//! loses a range of numbers, and each caller with one of them gets the error, whichever flush came
//! after. An unstable write has no caller waiting: the first COMMIT of each user after the failure
//! gets the error, and so does every COMMIT that was in progress; and
//! [`HostFs::flush_failures`](crate::fs::FileSystem::flush_failures) changes, and with it the write
//! verifier, which notifies the other clients of a user.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::limits::FLUSH_TOLD_MAX;

use crate::attr::FileType;
use crate::fs::{Durable, Result};
use crate::host::flush_state::{FlushShared, Inner, Waiter};
use crate::host::lock::lock;
use crate::host::node::Node;
use crate::host::nodes::Nodes;
use crate::host::sys;
use crate::status::Status;

/// A file or directory to be flushed.
pub struct NodeFlush {
    /// What is flushed.
    pub node: Arc<Node>,
    /// A descriptor that can be flushed by, if the caller has one.
    pub fd: Option<Arc<OwnedFd>>,
    /// Only data and what is needed to find it.
    pub data_only: bool,
    /// The caller that waits.
    pub waiter: Waiter,
    /// What it shares with others.
    pub shared: Arc<FlushShared>,
}

impl NodeFlush {
    /// A descriptor to flush by. `None` if there is none: without privilege, of a file that its
    /// owner has made unreadable and unwritable.
    fn descriptor(&self, inner: &Inner) -> Option<Arc<OwnedFd>> {
        if let Some(fd) = inner.fd.as_ref().or(self.fd.as_ref()) {
            return Some(Arc::clone(fd));
        }
        if let Some(kept) = lock(&self.node.files).first() {
            return Some(Arc::clone(&kept.fd));
        }
        // This is a thread of the server's own, which acts as the server.
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let fd = sys::reopen(self.node.fd(), libc::O_RDONLY | flags)
            .or_else(|_| sys::reopen(self.node.fd(), libc::O_WRONLY | flags));
        fd.ok().map(Arc::new)
    }

    fn sync(&self, inner: &Inner) -> std::io::Result<()> {
        let Some(fd) = self.descriptor(inner) else {
            return sys::sync_all(self.shared.mount.as_fd());
        };
        match sys::sync(fd.as_fd(), self.data_only) {
            // Some file systems have nothing to flush for a directory and say so.
            Err(e)
                if self.node.kind == FileType::Directory
                    && e.raw_os_error() == Some(libc::EINVAL) =>
            {
                Ok(())
            }
            other => other,
        }
    }

    /// Whether an earlier flush has lost what this caller waits for.
    fn check_losses(&self, inner: &mut Inner) -> Result<()> {
        let lost = match self.waiter {
            Waiter::Change(seq) => inner.has_lost(seq),
            Waiter::Commit { uid, losses } => {
                let first = !inner.lost.is_empty() && !inner.reported_to.contains(&uid);
                if first {
                    if inner.reported_to.len() >= FLUSH_TOLD_MAX {
                        inner.reported_to.clear();
                    }
                    inner.reported_to.push(uid);
                }
                first || self.node.flush.losses.load(Ordering::Acquire) != losses
            }
        };
        if lost { Err(Status::Io) } else { Ok(()) }
    }
}

/// The whole file system, for a link or a special file with changed attributes: there is no
/// descriptor to flush one by. Where the kernel does not pass syncfs(2) on (FUSE), the flush of its
/// directory must suffice.
pub struct AllFlush {
    /// The file system.
    pub shared: Arc<FlushShared>,
    /// Its files, where syncfs(2) is passed on: those with unstable writes have none left
    /// afterwards.
    pub nodes: Option<Arc<Nodes>>,
}

impl Durable for AllFlush {
    fn key(&self) -> u64 {
        // Nodes have small numbers; this, like a table, has an address.
        Arc::as_ptr(&self.shared) as u64 | 1 << 63
    }

    fn flush(&self) -> Result<()> {
        // Taken before: what is written from now on is flushed or not. Mostly there are none, and
        // the table need not be searched.
        let has_dirty = self.shared.dirty.load(Ordering::Relaxed) > 0;
        let nodes = self.nodes.as_ref().filter(|_| has_dirty);
        let dirty = nodes.map(|nodes| nodes.dirty()).unwrap_or_default();
        sys::sync_all(self.shared.mount.as_fd()).map_err(|_| {
            self.shared.failures.fetch_add(1, Ordering::Relaxed);
            Status::Io
        })?;
        let mut outcome = Ok(());
        for (node, upto) in dirty {
            outcome = node.flush.flushed_with_all(upto, &self.shared).and(outcome);
        }
        outcome
    }
}

impl Durable for NodeFlush {
    fn key(&self) -> u64 {
        self.node.flush.key() << 1 | u64::from(self.data_only)
    }

    fn flush(&self) -> Result<()> {
        let state = &self.node.flush;
        // One flush of a file at a time: of two at once only one would see the error.
        let mut inner = lock(&state.inner);
        let upto = state.last_change();
        match self.sync(&inner) {
            Ok(()) => {
                state.flushed(&mut inner, upto);
                Ok(())
            }
            Err(error) => Err(state.lost(&mut inner, upto, &self.shared, error.into())),
        }
    }

    fn covered(&self, outcome: Result<()>) -> Result<()> {
        // Both are evaluated: a COMMIT with a failed flush has reported the earlier loss as well.
        let losses = self.check_losses(&mut lock(&self.node.flush.inner));
        outcome.and(losses)
    }
}

#[cfg(test)]
mod tests;
