//! Sums of what is here. The source looks for the blocks of a large file at their places as their
//! sums come; most are there, so they are copied to the temporary file while they are read for
//! their sums, and not read again.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use base::limits::{DSYNC_PIECE, DSYNC_SUMS_EACH, DSYNC_THREADS};
use wire::dsync::{Basis, Sum};

use super::Shared;
use super::laid::{Laid, Lies};
use crate::delta;
use crate::error::Why;
use crate::stop::lock;
use crate::tree::{Tree, fill};

/// Some blocks that follow each other.
struct Part {
    /// Which, in the order of the file.
    number: usize,
    /// Fewer than there are blocks where they could not be read.
    sums: Vec<Sum>,
    /// How they were copied to the temporary file; nothing if they were not.
    lies: Option<Lies>,
}

/// What the threads that make sums share.
struct Work<'a, T: Tree> {
    file: &'a T::File,
    block: usize,
    count: usize,
    laid: Option<&'a Laid<T>>,
    /// The next part that no thread has taken.
    next: AtomicUsize,
    /// Whether no more parts are needed.
    over: AtomicBool,
}

impl<T: Tree> Work<'_, T> {
    fn each(&self) -> usize {
        (DSYNC_PIECE / self.block).max(1)
    }

    /// The blocks of a part; empty behind the last.
    fn blocks(&self, number: usize) -> Range<usize> {
        let first = self.count.min(number.saturating_mul(self.each()));
        first..self.count.min(first + self.each())
    }
}

impl<T: Tree> Shared<T> {
    /// The sums of a file's blocks, as far as they can be read.
    pub(super) fn sums_of(&self, file: &T::File, mut basis: Basis) -> Option<(Basis, Vec<Sum>)> {
        let mut all = Vec::with_capacity(basis.count as usize);
        self.each_sum(file, &basis, None, |sums| {
            all.extend_from_slice(sums);
            Ok(())
        })
        .ok()?;
        basis.count = all.len() as u32;
        (!all.is_empty()).then_some((basis, all))
    }

    /// Calls `emit` for the sums of a file's blocks in their order, made by several threads; all
    /// that could be read.
    ///
    /// # Errors
    /// That of `emit`.
    pub(super) fn each_sum(
        &self,
        file: &T::File,
        basis: &Basis,
        laid: Option<&Laid<T>>,
        mut emit: impl FnMut(&[Sum]) -> Result<(), Why>,
    ) -> Result<(), Why> {
        let (block, count) = (basis.block as usize, basis.count as usize);
        let (next, over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = Work { file, block, count, laid, next, over };
        let threads = count.div_ceil(DSYNC_SUMS_EACH).min(DSYNC_THREADS);
        let (done, parts) = channel();
        thread::scope(|scope| {
            let begin = |_| {
                let (work, done) = (&work, done.clone());
                let makes = move || self.make_sums(work, &done);
                thread::Builder::new().spawn_scoped(scope, makes).ok()
            };
            // For little none is started, and where none can be had this one does it.
            let begun = (threads > 1).then(|| (0..threads).filter_map(begin).count());
            if begun.unwrap_or(0) == 0 {
                self.make_sums(&work, &done);
            }
            drop(done);
            let (mut early, mut number) = (BTreeMap::new(), 0);
            for part in parts {
                early.insert(part.number, part);
                while let Some(part) = early.remove(&number) {
                    let whole = part.sums.len() == work.blocks(number).len();
                    if let Some(laid) = laid {
                        laid.lies(&part.sums, part.lies);
                    }
                    let emitted = emit(&part.sums);
                    if emitted.is_err() || !whole {
                        // It has become shorter: what was read is what is here.
                        work.over.store(true, Ordering::Relaxed);
                        return emitted;
                    }
                    number += 1;
                }
            }
            Ok(())
        })
    }

    /// Makes sums of parts until there are no more.
    fn make_sums(&self, work: &Work<'_, T>, done: &Sender<Part>) {
        let mut bytes = vec![0; work.block * work.each()];
        while !work.over.load(Ordering::Relaxed) {
            let number = work.next.fetch_add(1, Ordering::Relaxed);
            let blocks = work.blocks(number);
            if blocks.is_empty() {
                return;
            }
            let at = blocks.start as u64 * work.block as u64;
            let bytes = &mut bytes[..blocks.len() * work.block];
            let (read, lies) = self.take_part(work, bytes, at);
            let sums = bytes[..read].chunks_exact(work.block).map(delta::sum).collect();
            if done.send(Part { number, sums, lies }).is_err() {
                return;
            }
        }
    }

    /// Reads a part, and copies it to the temporary file: how much could be read, and how it was
    /// copied.
    fn take_part(&self, work: &Work<'_, T>, bytes: &mut [u8], at: u64) -> (usize, Option<Lies>) {
        let length = bytes.len() as u64;
        let laid = work.laid.filter(|laid| laid.takes(at + length));
        if let Some(Laid { aside, .. }) = laid
            && self.tree.share((work.file, at), (&aside.file, at), length)
            && fill(&self.tree, &aside.file, bytes, at).0 == bytes.len()
        {
            return (bytes.len(), Some(Lies::Cloned));
        }
        let (read, _) = fill(&self.tree, work.file, bytes, at);
        let whole = laid.filter(|_| read == bytes.len());
        let wrote = whole.is_some_and(|laid| {
            // A file system executes one write of a file at a time, and a thread that waits for it
            // computes nothing.
            let _turn = lock(&laid.turn);
            laid.did(self.tree.write(&laid.aside.file, bytes, at))
        });
        (read, wrote.then_some(Lies::Written))
    }
}
