//! Temporary files in which blocks of the old ones are laid.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base::limits::DSYNC_LAID_MAX;
use wire::dsync::{Copy, Sum};

use super::aside::Aside;
use crate::digest::Digest;
use crate::stop::lock;
use crate::tree::Tree;

/// How a block was copied into the temporary file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lies {
    /// It shares its place on the disk with the old one.
    Cloned,
    /// It was written.
    Written,
}

/// A temporary file in which blocks of the old one are laid.
pub struct Laid<T: Tree> {
    pub aside: Arc<Aside<T>>,
    /// Held while something is written of it here.
    pub turn: Mutex<()>,
    /// Its size.
    pub(super) size: u64,
    pub(super) block: usize,
    /// What lies there, from the first block on: what was read back, or written, had this sum.
    pub(super) sums: Mutex<Vec<([u8; 16], Lies)>>,
    /// Whether no more is laid, since a write has failed.
    pub(super) failed: AtomicBool,
    pub(super) _place: Permit,
}

/// One of the places for files that are laid.
pub(super) struct Permit(Arc<AtomicUsize>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Files that are laid and have not begun, by the number of their question.
pub struct Lays<T: Tree> {
    waiting: Mutex<HashMap<u64, Arc<Laid<T>>>>,
    places: Arc<AtomicUsize>,
}

impl<T: Tree> Default for Lays<T> {
    fn default() -> Self {
        Self { waiting: Mutex::default(), places: Arc::default() }
    }
}

impl<T: Tree> Lays<T> {
    /// A place, if there is one.
    pub(super) fn place(&self) -> Option<Permit> {
        let more = |taken: usize| (taken < DSYNC_LAID_MAX).then_some(taken + 1);
        self.places.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        Some(Permit(Arc::clone(&self.places)))
    }

    /// One that waits for its begin.
    pub fn insert(&self, id: u64, laid: &Arc<Laid<T>>) {
        lock(&self.waiting).insert(id, Arc::clone(laid));
    }

    /// One that begins, or never will.
    pub fn take(&self, id: u64) -> Option<Arc<Laid<T>>> {
        lock(&self.waiting).remove(&id)
    }
}

impl<T: Tree> Laid<T> {
    /// Whether what ends here may be laid.
    pub fn takes(&self, end: u64) -> bool {
        end <= self.size && !self.failed.load(Ordering::Relaxed)
    }

    /// Whether a write has worked; if not, nothing more is laid.
    pub fn did(&self, wrote: io::Result<()>) -> bool {
        self.failed.fetch_or(wrote.is_err(), Ordering::Relaxed);
        wrote.is_ok()
    }

    /// Lays nothing more: the file is abandoned.
    pub fn give_up(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    /// The next blocks lie there, or do not; then none behind them count.
    pub fn lies(&self, sums: &[Sum], how: Option<Lies>) {
        match how {
            Some(how) if !self.failed.load(Ordering::Relaxed) => {
                lock(&self.sums).extend(sums.iter().map(|sum| (sum.strong, how)));
            }
            _ => self.give_up(),
        }
    }

    /// What is hashed of a piece that lies at its place, and how many bytes of it are clones;
    /// nothing if it does not lie there.
    pub fn has(&self, copy: &Copy) -> Option<(Digest, u64)> {
        let block = self.block as u64;
        let aligned = copy.offset.is_multiple_of(block) && u64::from(copy.length) % block == 0;
        if copy.from != copy.offset || !aligned {
            return None;
        }
        let first = usize::try_from(copy.offset / block).ok()?;
        let sums = lock(&self.sums);
        let these = sums.get(first..first.checked_add(copy.length as usize / self.block)?)?;
        let (mut digest, mut cloned) = (Digest::default(), 0);
        for (at, (strong, how)) in (copy.offset..).step_by(self.block).zip(these) {
            digest.block(at, strong);
            cloned += if *how == Lies::Cloned { block } else { 0 };
        }
        Some((digest, cloned))
    }
}
