//! The busiest files of a second in bounded memory.
//!
//! Counts are exact until [`FILES_MAX`] (file, operation) pairs were seen. Then the median weight
//! is taken from every entry and those at zero leave: the batched form of Misra–Gries, which is
//! what space-saving is too. A row is then too low by at most the sum of the medians taken (the
//! error bound), never too high, at a constant cost per record.

use base::limits::{FILES_MAX, FILES_TOP};

use crate::op::FileId;
use crate::second::{Cell, FileRow};

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
    error: u64,
}

impl Files {
    pub(crate) fn new() -> Self {
        let index = vec![0; SLOTS].into_boxed_slice();
        Self { index, entries: Vec::new(), error: 0 }
    }

    #[inline]
    pub(crate) fn add(&mut self, file: FileId, protocol: u8, op: u8, bytes: u64) {
        let mut slot = slot_of(file, op);
        loop {
            match self.index[slot] {
                0 => return self.insert(slot, file, protocol, op, bytes),
                n => {
                    let entry = &mut self.entries[usize::from(n) - 1];
                    if entry.file == file && entry.op == op && entry.protocol == protocol {
                        entry.weight = entry.weight.saturating_add(1);
                        return entry.cell.add(bytes);
                    }
                }
            }
            slot = (slot + 1) & (SLOTS - 1);
        }
    }

    #[cold]
    fn insert(&mut self, mut slot: usize, file: FileId, protocol: u8, op: u8, bytes: u64) {
        if self.entries.len() == FILES_MAX {
            self.purge();
            slot = self.empty_slot(file, op);
        }
        let cell = Cell { count: 1, bytes };
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
        self.error += u64::from(median);
        self.entries.retain_mut(|entry| {
            entry.weight = entry.weight.saturating_sub(median);
            entry.weight > 0
        });
        self.index.fill(0);
        for n in 0..self.entries.len() {
            let slot = self.empty_slot(self.entries[n].file, self.entries[n].op);
            self.index[slot] = n as u16 + 1;
        }
    }

    /// The busiest rows and by how much a file's row for one operation may be too low (also for
    /// files that have no row); empties the table.
    pub(crate) fn take(&mut self) -> (Vec<FileRow>, u64) {
        let mut error = self.error;
        self.entries.sort_unstable_by_key(|e| (std::cmp::Reverse(e.cell.count), e.file, e.op));
        if let Some(cut) = self.entries.get(FILES_TOP) {
            error += cut.cell.count;
        }
        let row =
            |e: &Entry| FileRow { file: e.file, protocol: e.protocol, op: e.op, cell: e.cell };
        let rows = self.entries.iter().take(FILES_TOP).map(row).collect();
        self.entries.clear();
        self.index.fill(0);
        self.error = 0;
        (rows, error)
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
