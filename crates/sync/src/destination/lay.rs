//! Blocks of a file that is to be replaced, copied to its temporary file, each at its offset,
//! before it is known whether they stay: most blocks of a large file that was changed do.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use base::limits::{DSYNC_LAID_MAX, DSYNC_PIECE};
use wire::dsync::Basis;

use super::Shared;
use super::entry::EntryDecision;
use super::files::Writing;
use super::laid::Laid;
use super::plan::Open;
use crate::tree::Tree;

impl<T: Tree> Shared<T> {
    /// A temporary file to lay blocks of the old one in, if the old one has no holes, holes can be
    /// punched in the file, there is space, and no file of another run is to be resumed.
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

    /// Removes what was laid.
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
