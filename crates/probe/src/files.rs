//! The busiest files of a second in bounded memory.
//!
//! Counts are exact until [`FILES_MAX`] (file, operation) pairs were seen. Then the median weight
//! is taken from every entry and those at zero leave: the batched form of Misra–Gries, which is
//! what space-saving is too, at a constant cost per record.
//!
//! The error bound is proven by what leaves. A row is never too high, and too low only by what it
//! had counted each time it left: at most once per purge and once in the end. So for each operation
//! the most that any one entry took along, summed over the purges, bounds what a file may lack; so
//! does all that left together. A file over all operations lacks at most the sum of these bounds.

use base::limits::{FILES_MAX, FILES_TOP};

use crate::cell::{Cell, FileRow};
use crate::op::FileId;

/// Slots of the index: twice the entries, so that probes stay short.
const SLOTS: usize = 2 * FILES_MAX;
const _: () = assert!(SLOTS.is_power_of_two() && FILES_MAX < u16::MAX as usize);

#[derive(Clone, Copy)]
struct Entry {
    file: FileId,
    protocol: u8,
    op: u8,
    /// What is left of `cell.count` after the medians.
    weight: u32,
    cell: Cell,
}

/// The files of one second.
pub(crate) struct Files {
    /// 0 is empty, `n` is entry `n - 1`.
    index: Box<[u16]>,
    entries: Vec<Entry>,
    lost: Vec<Lost>,
}

/// What has left the table, of one operation.
#[derive(Clone, Copy, Default)]
struct Lost {
    protocol: u8,
    op: u8,
    /// All of it.
    sum: Cell,
    /// The most that any one entry can have lost.
    most: Cell,
    /// The most that one entry has lost in the purge at hand.
    now: Cell,
}

impl Files {
    pub(crate) fn new() -> Self {
        let index = vec![0; SLOTS].into_boxed_slice();
        Self { index, entries: Vec::new(), lost: Vec::new() }
    }

    #[inline]
    pub(crate) fn add(&mut self, file: FileId, protocol: u8, op: u8, cell: Cell) {
        let mut slot = slot_of(file, op);
        loop {
            match self.index[slot] {
                0 => return self.insert(slot, file, protocol, op, cell),
                n => {
                    let entry = &mut self.entries[usize::from(n) - 1];
                    if entry.file == file && entry.op == op && entry.protocol == protocol {
                        entry.weight = entry.weight.saturating_add(1);
                        return entry.cell.merge(cell);
                    }
                }
            }
            slot = (slot + 1) & (SLOTS - 1);
        }
    }

    #[cold]
    fn insert(&mut self, mut slot: usize, file: FileId, protocol: u8, op: u8, cell: Cell) {
        if self.entries.len() == FILES_MAX {
            self.purge();
            slot = self.empty_slot(file, op);
        }
        self.entries.push(Entry { file, protocol, op, weight: 1, cell });
        self.index[slot] = self.entries.len() as u16;
    }

    fn empty_slot(&self, file: FileId, op: u8) -> usize {
        let mut slot = slot_of(file, op);
        while self.index[slot] != 0 {
            slot = (slot + 1) & (SLOTS - 1);
        }
        slot
    }

    /// Drops at least half of the entries, the least busy ones.
    fn purge(&mut self) {
        let mut weights: Vec<u32> = self.entries.iter().map(|e| e.weight).collect();
        let middle = weights.len() / 2;
        let median = *weights.select_nth_unstable(middle).1;
        let lost = &mut self.lost;
        self.entries.retain_mut(|entry| {
            entry.weight = entry.weight.saturating_sub(median);
            if entry.weight == 0 {
                leave(lost, entry);
            }
            entry.weight > 0
        });
        settle(lost);
        self.index.fill(0);
        for n in 0..self.entries.len() {
            let slot = self.empty_slot(self.entries[n].file, self.entries[n].op);
            self.index[slot] = n as u16 + 1;
        }
    }

    /// The busiest rows, and by how much a file may be too low over all of its operations (also one
    /// that has no row); empties the table.
    pub(crate) fn take(&mut self) -> (Vec<FileRow>, Cell) {
        let mut all = Cell::default();
        self.entries.iter().for_each(|e| all.merge(e.cell));
        self.entries
            .sort_unstable_by_key(|e| (std::cmp::Reverse(e.cell.share_of(all)), e.file, e.op));
        for entry in self.entries.iter().skip(FILES_TOP) {
            leave(&mut self.lost, entry);
        }
        settle(&mut self.lost);
        let mut error = Cell::default();
        for lost in self.lost.drain(..) {
            error.count += lost.most.count.min(lost.sum.count);
            error.bytes += lost.most.bytes.min(lost.sum.bytes);
        }
        let row =
            |e: &Entry| FileRow { file: e.file, protocol: e.protocol, op: e.op, cell: e.cell };
        let rows = self.entries.iter().take(FILES_TOP).map(row).collect();
        self.entries.clear();
        self.index.fill(0);
        (rows, error)
    }
}

/// Notes that `entry` leaves in the purge at hand.
fn leave(lost: &mut Vec<Lost>, entry: &Entry) {
    let of = (entry.protocol, entry.op);
    let at = lost.iter().position(|l| (l.protocol, l.op) == of).unwrap_or_else(|| {
        lost.push(Lost { protocol: of.0, op: of.1, ..Lost::default() });
        lost.len() - 1
    });
    let lost = &mut lost[at];
    lost.sum.merge(entry.cell);
    lost.now.count = lost.now.count.max(entry.cell.count);
    lost.now.bytes = lost.now.bytes.max(entry.cell.bytes);
}

/// Ends a purge: an entry leaves at most once in each.
fn settle(lost: &mut [Lost]) {
    for lost in lost {
        lost.most.merge(std::mem::take(&mut lost.now));
    }
}

#[inline]
fn slot_of(file: FileId, op: u8) -> usize {
    // Fibonacci hashing: the upper bits of the product depend on all bits of the key.
    let hash = (file ^ u64::from(op) << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash >> (64 - SLOTS.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests;
