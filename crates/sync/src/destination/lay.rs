//! Blocks of what a file replaces that lie beside its place already, each where it was, before it
//! is known whether they stay: of a large file that was changed most do.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base::limits::{DSYNC_LAID_MAX, DSYNC_PIECE};
use wire::dsync::{Basis, Copy, Sum};

use super::Shared;
use super::decide::EntryDecision;
use super::files::{Aside, Writing};
use super::plan::Open;
use crate::digest::Digest;
use crate::link::lock;
use crate::tree::Tree;

/// How a block has come to lie beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lies {
    /// It shares its place on the disk with the old one.
    Cloned,
    /// It was written.
    Written,
}

/// A file beside its place in which blocks of the old one are laid.
pub struct Laid<T: Tree> {
    pub aside: Arc<Aside<T>>,
    /// Held while something is written of it here.
    pub turn: Mutex<()>,
    /// Its size.
    size: u64,
    block: usize,
    /// What lies there, from the first block on: what was read back, or written, had this sum.
    sums: Mutex<Vec<([u8; 16], Lies)>>,
    /// Whether no more is laid, since a write has failed.
    failed: AtomicBool,
    _place: Place,
}

/// One of the places for files that are laid.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
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
    fn place(&self) -> Option<Place> {
        let more = |taken: usize| (taken < DSYNC_LAID_MAX).then_some(taken + 1);
        self.places.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        Some(Place(Arc::clone(&self.places)))
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

    /// Nothing more is laid: nobody wants it.
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

impl<T: Tree> Shared<T> {
    /// A file beside its place to lay blocks of the old one in, if that has no holes, holes can be
    /// made in it again, there is room, and nothing of it is there from another run.
    pub(super) fn lay(
        &self,
        open: &Open<T>,
        case: &EntryDecision,
        (basis, old): (&Basis, &T::File),
    ) -> Option<Arc<Laid<T>>> {
        let (size, name) = (case.wanted.size, self.aside_for(&case.name, case.wanted.size)?);
        let own = case.own.as_ref()?.meta.size;
        let dense = self.tree.next_data(old, 0).ok()?.is_some_and(|all| all == (0, own));
        let place = if dense { self.lays.place()? } else { return None };
        let dir = self.tree.dir(&open.node.path).ok()?;
        // The new file may have holes that the old one has not, and be all that there is room for.
        if self.tree.room(&dir).ok()? < size.saturating_mul(DSYNC_LAID_MAX as u64) {
            return None;
        }
        let aside = Arc::new(self.new_aside(dir, name, size).ok()?);
        let (turn, sums, failed) = (Mutex::default(), Mutex::default(), AtomicBool::new(false));
        let block = basis.block as usize;
        if self.tree.punch(&aside.file, 0, size.min(block as u64)).is_err() {
            self.sweep_aside(&aside);
            return None;
        }
        Some(Arc::new(Laid { aside, turn, size, block, sums, failed, _place: place }))
    }

    /// A file begins of which something may be laid.
    pub(super) fn use_laid(&self, id: u64, writing: &mut Writing<T>) {
        let Some(laid) = self.lays.take(id) else { return };
        if laid.size == writing.wanted.size {
            writing.aside = Some(Arc::clone(&laid.aside));
            writing.laid = Some(laid);
        } else {
            self.sweep_laid(&laid);
        }
    }

    /// Takes away what was laid.
    pub(super) fn sweep_laid(&self, laid: &Laid<T>) {
        laid.give_up();
        self.sweep_aside(&laid.aside);
    }

    /// Takes what was there before out of a part of a file that is a hole now.
    pub(super) fn clear(&self, writing: &mut Writing<T>, (start, end): (u64, u64)) {
        let end = end.min(writing.had());
        if start < end {
            self.try_aside(writing, |aside| {
                let made = self.tree.punch(&aside.file, start, end - start);
                // Where no hole can be made the content is right at least.
                made.or_else(|_| self.write_zeros(&aside.file, start, end))
            });
        }
    }

    fn write_zeros(&self, file: &T::File, start: u64, end: u64) -> io::Result<()> {
        let zeros = vec![0; DSYNC_PIECE.min((end - start) as usize)];
        (start..end).step_by(DSYNC_PIECE).try_for_each(|at| {
            let length = zeros.len().min((end - at) as usize);
            self.tree.write(file, &zeros[..length], at)
        })
    }
}
