//! The table at the end of an archive, which grows as long as the archive is made: a part of the
//! bytes that a core may hold for its peers.

use std::collections::VecDeque;

use base::limits::{HTTP_ARCHIVE_ENTRIES_MAX, HTTP_ARCHIVE_TABLE_MAX, HTTP_PIECE};

use engine::transport::budget::CoreBudget;

/// Records of members, as they are sent.
#[derive(Default)]
pub struct Table {
    /// Pieces of some [`HTTP_PIECE`].
    pieces: VecDeque<Vec<u8>>,
    count: usize,
    /// Bytes taken from the budget.
    taken: usize,
}

impl Table {
    /// How many members there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether a record of this length is one more than an archive has.
    pub fn is_full(&self, length: usize) -> bool {
        self.count >= HTTP_ARCHIVE_ENTRIES_MAX || self.taken + length > HTTP_ARCHIVE_TABLE_MAX
    }

    /// Adds a record; false if there are no bytes for it now.
    #[must_use]
    pub fn add(&mut self, record: &[u8], budget: &CoreBudget) -> bool {
        let has_room = |piece: &Vec<u8>| piece.capacity() - piece.len() >= record.len();
        if !self.pieces.back().is_some_and(has_room) {
            let size = HTTP_PIECE.max(record.len());
            if !budget.has_large(size) {
                return false;
            }
            budget.take_bytes(size);
            self.taken += size;
            self.pieces.push_back(Vec::with_capacity(size));
        }
        if let Some(piece) = self.pieces.back_mut() {
            piece.extend_from_slice(record);
            self.count += 1;
        }
        true
    }

    /// Takes the next piece.
    pub fn take(&mut self, budget: &CoreBudget) -> Option<Vec<u8>> {
        let piece = self.pieces.pop_front()?;
        budget.give_bytes(piece.capacity());
        self.taken = self.taken.saturating_sub(piece.capacity());
        Some(piece)
    }

    /// Gives back what was taken.
    pub fn clear(&mut self, budget: &CoreBudget) {
        budget.give_bytes(std::mem::take(&mut self.taken));
        self.pieces.clear();
    }
}

#[cfg(test)]
mod tests;
