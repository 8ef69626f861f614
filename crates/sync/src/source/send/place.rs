//! Blocks that the other side has at the same place. Of a large file that was changed that is most
//! of it, so they are looked for as their sums come, and what is left is searched for blocks that
//! have moved when all sums are there.

use std::sync::Arc;

use base::limits::{DSYNC_EARLY_MAX, DSYNC_EARLY_OF, DSYNC_LEFT_MAX, DSYNC_MISSES, DSYNC_PIECE};
use wire::dsync::{Basis, Sum};

use super::super::coming::Coming;
use super::{Failed, Sending, filled};
use crate::delta::{Index, Part};
use crate::digest::strong;
use crate::error::Why;
use crate::stop::Watched;
use crate::tree::Tree;

/// A part of the file about which nothing was sent yet.
struct Left {
    start: u64,
    end: u64,
    /// Where that ended which lies before it: between them is a hole.
    before: u64,
}

/// Blocks that are looked for.
struct BlockSearch<'a> {
    coming: &'a Arc<Watched<Coming>>,
    id: u64,
    /// Bytes of a block, and how many there are.
    block: u64,
    count: u64,
    /// Sums from that of block `first` on.
    sums: Vec<Sum>,
    first: u64,
    /// Bytes of the file from `from` on, of which there are `have`.
    bytes: Vec<u8>,
    from: u64,
    have: usize,
    /// Blocks in a row that were not there, and how many are left out after the next.
    misses: u64,
    skip: u64,
    left: Vec<Left>,
    /// Bytes that may still be sent before all sums have come, and in how many parts.
    early: (u64, usize),
    /// Blocks at their places that were not reported yet: where they begin, and their sums.
    run: (u64, Vec<Sum>),
}

impl BlockSearch<'_> {
    /// The sum of a block, when it has come.
    fn sum(&mut self, which: u64) -> Result<[u8; 16], Why> {
        let at = |first: u64| which.checked_sub(first).and_then(|at| usize::try_from(at).ok());
        if let Some(sum) = at(self.first).and_then(|at| self.sums.get(at)) {
            return Ok(sum.strong);
        }
        self.sums = self.coming.wait(|coming| coming.from(self.id, at(0)?))?;
        self.first = which;
        Ok(self.sums.first().map_or([0; 16], |sum| sum.strong))
    }

    /// The sum of a block, if that is at its place.
    fn at_place(&mut self, at: u64) -> Result<Option<Sum>, Why> {
        let which = at / self.block;
        let there = self.sum(which)?;
        let here = (at - self.from) as usize..(at - self.from + self.block) as usize;
        let same = strong(&self.bytes[here]) == there;
        let sum = self.sums.get((which - self.first) as usize);
        Ok(sum.filter(|_| same).cloned())
    }

    /// How many blocks to advance after one that was not there: a file in which data was inserted
    /// has none any more, and is read and hashed for nothing.
    fn missed(&mut self) -> u64 {
        self.misses += 1;
        if self.misses > DSYNC_MISSES {
            self.skip = self.skip.saturating_mul(2).max(1);
        }
        self.skip.saturating_add(1)
    }
}

impl<T: Tree> Sending<'_, T> {
    /// Sends a file by what is different from what the other side has, while the sums of that are
    /// coming; those, when all have come.
    pub(super) fn differences(&mut self, basis: &Basis, size: u64) -> Result<Index, Failed> {
        let (shared, id) = (self.shared, self.id);
        let mut places = BlockSearch {
            coming: &shared.coming,
            id,
            block: u64::from(basis.block),
            count: u64::from(basis.count),
            sums: Vec::new(),
            first: 0,
            bytes: vec![0; DSYNC_PIECE],
            from: 0,
            have: 0,
            misses: 0,
            skip: 0,
            left: Vec::new(),
            early: (size / DSYNC_EARLY_OF, DSYNC_LEFT_MAX / 2),
            run: (0, Vec::new()),
        };
        let mut at = 0;
        while let Some((start, end)) = shared.tree.next_data(self.file, at)? {
            let end = end.min(size);
            if start >= end {
                break;
            }
            self.look(&mut places, (start, end))?;
            at = end;
        }
        let sums = shared.coming.wait(|coming| coming.all(id))?;
        let index = Index::new(basis.block as usize, sums);
        for Left { start, end, before } in places.left {
            self.end = before;
            self.data((start, end), Some(&index))?;
        }
        Ok(index)
    }

    /// Looks for the blocks of a range without holes.
    fn look(
        &mut self,
        places: &mut BlockSearch<'_>,
        (start, end): (u64, u64),
    ) -> Result<(), Failed> {
        let block = places.block;
        let last = end.min(block.saturating_mul(places.count));
        // Where the range begins about which nothing was sent or noted.
        let (mut open, mut at) = (start, start.next_multiple_of(block));
        let fits = |at: u64| last.checked_sub(at).is_some_and(|left| left >= block);
        while fits(at) && places.left.len() < DSYNC_LEFT_MAX && self.holds(places, at, last)? {
            let Some(sum) = places.at_place(at)? else {
                at = at.saturating_add(places.missed().saturating_mul(block));
                continue;
            };
            (places.misses, places.skip) = (0, 0);
            let full = (places.run.1.len() as u64 + 1) * block > DSYNC_PIECE as u64;
            if open < at || full {
                self.report_placed(places)?;
                self.between(places, (open, at))?;
            }
            if places.run.1.is_empty() {
                places.run.0 = at;
            }
            places.run.1.push(sum);
            at += block;
            open = at;
        }
        self.report_placed(places)?;
        self.leave(places, (open, end));
        Ok(())
    }

    /// Has a block in memory; whether it is as long as it should be.
    fn holds(&self, places: &mut BlockSearch<'_>, at: u64, last: u64) -> Result<bool, Failed> {
        let here = places.from..places.from + places.have as u64;
        if !(here.contains(&at) && at + places.block <= here.end) {
            let want = places.bytes.len().min((last - at) as usize);
            places.have = filled(&self.shared.tree, self.file, &mut places.bytes[..want], at)?;
            places.from = at;
        }
        Ok(at + places.block <= places.from + places.have as u64)
    }

    /// Reports the blocks that are at their places.
    fn report_placed(&mut self, places: &mut BlockSearch<'_>) -> Result<(), Failed> {
        let (at, sums) = (places.run.0, std::mem::take(&mut places.run.1));
        let length = sums.len() as u64 * places.block;
        match length {
            0 => Ok(()),
            _ => self.part(Part::Had(at, at, length as u32, &sums)),
        }
    }

    /// Sends a part that lies between blocks at their places, or notes it. What is small was
    /// mostly written over where it is: that it could have moved there is no reason to let the
    /// link wait for all sums.
    fn between(
        &mut self,
        places: &mut BlockSearch<'_>,
        (start, end): (u64, u64),
    ) -> Result<(), Failed> {
        if start >= end {
            return Ok(());
        }
        let (bytes, parts) = places.early;
        let less = bytes.checked_sub(end - start).zip(parts.checked_sub(1));
        match less.filter(|_| end - start <= DSYNC_EARLY_MAX) {
            Some(less) => {
                places.early = less;
                self.data((start, end), None)
            }
            None => {
                self.leave(places, (start, end));
                Ok(())
            }
        }
    }

    /// Notes a part about which nothing was sent.
    fn leave(&mut self, places: &mut BlockSearch<'_>, (start, end): (u64, u64)) {
        if start < end {
            places.left.push(Left { start, end, before: self.end });
            self.end = end;
        }
    }
}
