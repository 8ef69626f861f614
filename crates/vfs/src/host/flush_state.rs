//! What a file remembers about changes that are not on disk yet, and about flushes that failed.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use base::limits::FLUSH_FAILURES_KEPT;

use crate::fs::Result;
use crate::host::lock::lock;
use crate::host::sys;
use crate::status::Status;

/// What all files of a back end have in common when it comes to flushing.
#[derive(Debug)]
pub struct FlushShared {
    /// The root, to flush the whole file system by where a file cannot be opened at all.
    pub mount: OwnedFd,
    /// Flushes that failed.
    pub failures: AtomicU64,
    /// Files with unstable writes.
    pub dirty: AtomicU64,
}

/// The count of one file with unstable writes, as long as it lives: also a file that is removed
/// before a flush is counted no longer than that.
struct DirtyCount(Arc<FlushShared>);

impl DirtyCount {
    fn new(shared: &Arc<FlushShared>) -> Self {
        shared.dirty.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(shared))
    }
}

impl Drop for DirtyCount {
    fn drop(&mut self) {
        self.0.dirty.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a node remembers about flushing.
#[derive(Default)]
pub struct FlushState {
    /// Number of the last change.
    pub(super) seq: AtomicU64,
    /// Whether `inner` has a count; changed with it locked, and read without that.
    dirty: AtomicBool,
    /// Flushes that failed.
    pub(super) losses: AtomicU64,
    key: std::sync::OnceLock<u64>,
    pub(super) inner: Mutex<Inner>,
}

#[derive(Default)]
pub(super) struct Inner {
    /// Changes up to this number are on disk, or lost.
    pub(super) done: u64,
    /// Ranges lost: first and last number.
    pub(super) lost: Vec<(u64, u64)>,
    /// Users to which a COMMIT has reported the loss.
    pub(super) reported_to: Vec<u32>,
    /// The descriptor to flush by, opened no later than the first change: a younger one might
    /// not see an error that was reported to another.
    pub(super) fd: Option<Arc<OwnedFd>>,
    /// While unstable writes wait for a flush.
    counted: Option<DirtyCount>,
}

impl FlushState {
    /// Whether unstable writes wait for a flush.
    pub fn is_dirty(&self) -> bool {
        self.dirty.load(Ordering::Acquire)
    }

    /// A change has been made: its number.
    pub fn changed(&self) -> u64 {
        self.seq.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// An unstable write has been made through `fd`.
    pub fn unstable(&self, fd: &Arc<OwnedFd>, shared: &Arc<FlushShared>) {
        // All of it under the lock: a flush that ends now must not count this write among its own.
        let mut inner = lock(&self.inner);
        self.changed();
        inner.counted.get_or_insert_with(|| DirtyCount::new(shared));
        inner.fd.get_or_insert_with(|| Arc::clone(fd));
        self.dirty.store(true, Ordering::Release);
    }

    /// Number of the last change.
    pub fn last_change(&self) -> u64 {
        self.seq.load(Ordering::Acquire)
    }

    /// All changes up to this number are on disk. A later one keeps the file dirty.
    pub(super) fn flushed(&self, inner: &mut Inner, upto: u64) {
        inner.done = inner.done.max(upto);
        if self.last_change() == upto {
            self.clean(inner);
        }
    }

    /// A flush of all changes up to this number has failed: what its callers get.
    pub(super) fn lost(
        &self,
        inner: &mut Inner,
        upto: u64,
        shared: &FlushShared,
        status: Status,
    ) -> Status {
        shared.failures.fetch_add(1, Ordering::Relaxed);
        inner.lose(upto);
        inner.done = upto;
        self.losses.fetch_add(1, Ordering::AcqRel);
        match status {
            full @ (Status::NoSpace | Status::Quota) => full,
            _ => Status::Io,
        }
    }

    /// A flush of the whole file system has succeeded that began when this was the number of the
    /// last change. Whether the data of this file was lost is known by its own descriptor alone:
    /// of several flushes of the whole only one gets the error.
    pub(super) fn flushed_with_all(&self, upto: u64, shared: &FlushShared) -> Result<()> {
        let mut inner = lock(&self.inner);
        let checked = inner.fd.as_ref().map_or(Ok(()), |fd| sys::check_written_back(fd.as_fd()));
        let Err(error) = checked else {
            self.flushed(&mut inner, upto);
            return Ok(());
        };
        match error.raw_os_error() {
            Some(libc::EIO | libc::ENOSPC | libc::EDQUOT) => {
                // A flush of the file may have ended since `upto` was read.
                Err(self.lost(&mut inner, self.last_change(), shared, error.into()))
            }
            // It cannot be checked here: a flush of the file remains to be done.
            _ => Ok(()),
        }
    }

    /// Counts its unstable writes no longer, flushed or not: its file is released. If a flush is in
    /// progress, the end of that does it, or of the node.
    pub(super) fn release(&self) {
        if let Ok(mut inner) = self.inner.try_lock() {
            self.clean(&mut inner);
        }
    }

    fn clean(&self, inner: &mut Inner) {
        inner.fd = None;
        inner.counted = None;
        self.dirty.store(false, Ordering::Release);
    }

    /// Whether a COMMIT has anything to flush or to report.
    pub fn needs_commit(&self) -> bool {
        self.is_dirty() || self.losses.load(Ordering::Acquire) > 0
    }

    /// The waiter of a COMMIT by `uid` that begins now.
    pub fn commit(&self, uid: u32) -> Waiter {
        Waiter::Commit { uid, losses: self.losses.load(Ordering::Acquire) }
    }

    /// The same number for all targets of one file and no other.
    pub(super) fn key(&self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        *self.key.get_or_init(|| NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Inner {
    pub(super) fn lose(&mut self, upto: u64) {
        self.lost.push((self.done + 1, upto.max(self.done + 1)));
        self.reported_to.clear();
        if self.lost.len() > FLUSH_FAILURES_KEPT {
            let (_, last) = self.lost.remove(1);
            if let Some(first) = self.lost.first_mut() {
                first.1 = last;
            }
        }
    }

    pub(super) fn has_lost(&self, seq: u64) -> bool {
        self.lost.iter().any(|(first, last)| (*first..=*last).contains(&seq))
    }
}

/// The caller that waits for a flush of a file.
#[derive(Debug, Clone, Copy)]
pub enum Waiter {
    /// The caller of the change with this number.
    Change(u64),
    /// A COMMIT: all unstable writes before it. See [`FlushState::commit`].
    Commit {
        /// The user.
        uid: u32,
        /// Flushes of the file that had failed when it began: its reply carries the write verifier
        /// of that time, which does not cover later ones.
        losses: u64,
    },
}
