//! What a file remembers about changes that are not on disk yet, and about flushes that failed.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use base::limits::FLUSH_FAILURES_KEPT;

use crate::host::lock::lock;

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

/// What a node remembers about flushing.
#[derive(Default)]
pub struct FlushState {
    /// Number of the last change.
    pub(super) seq: AtomicU64,
    pub(super) dirty: AtomicBool,
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
    pub fn unstable(&self, fd: &Arc<OwnedFd>, shared: &FlushShared) {
        self.changed();
        if !self.dirty.swap(true, Ordering::AcqRel) {
            shared.dirty.fetch_add(1, Ordering::Relaxed);
        }
        let mut inner = lock(&self.inner);
        if inner.fd.is_none() {
            inner.fd = Some(Arc::clone(fd));
        }
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
