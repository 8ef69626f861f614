//! Operations and bytes, counted together, and such a count of one file.

use crate::op::{FileId, OpRecord, flag};

/// Operations and the file bytes that they moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cell {
    /// Operations.
    pub count: u64,
    /// Bytes of file data.
    pub bytes: u64,
}

impl Cell {
    /// What one record counts: an operation, unless it is a piece of one ([`flag::PIECE`]).
    #[inline]
    pub fn of(record: &OpRecord) -> Self {
        let count = u64::from(record.flags & flag::PIECE == 0);
        Self { count, bytes: u64::from(record.bytes) }
    }
    /// Adds another cell. A sum beyond the range stays at its end: a figure that is wrong must not
    /// end the collector.
    pub fn merge(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
    /// How much it weighs among `all`, for choosing what gets a row: a share of the operations and
    /// a share of the bytes count alike, so that one large stream outweighs many idle glances.
    pub fn share_of(self, all: Self) -> u128 {
        let operations = u128::from(self.count) * u128::from(all.bytes.max(1));
        operations.saturating_add(u128::from(self.bytes) * u128::from(all.count.max(1)))
    }
}

/// One operation on one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileRow {
    /// The file.
    pub file: FileId,
    /// [`crate::op::Protocol`] as a number.
    pub protocol: u8,
    /// The protocol's operation.
    pub op: u8,
    /// How often, how much.
    pub cell: Cell,
}
