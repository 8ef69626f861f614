//! Logical units: block storage behind a small contract, and the state that several initiators of
//! one unit share.
//!
//! - [`Medium`]: the contract, in bytes. [`file`]: over a file or a block device ([`device`] opens
//!   one), [`mem`]: in memory, with faults for tests. [`conformance`]: what every medium must do.
//! - [`ledger`]: which writes a failed flush has lost, and which clients that concerns.
//! - [`ranges`]: blocks that a command works on, so that COMPARE AND WRITE is atomic.
//! - [`reservations`]: persistent reservations as pure state; [`reservations::store`] keeps them.
//! - [`claim`]: while a unit is exported no share shows its file.
//! - [`mapping`]: which initiator sees which unit under which number. [`node`]: what can be
//!   configured and seen of units.
//!
//! A medium never flushes on its own: [`Medium::flush`] returns what the flush group flushes. The
//! one exception is [`Medium::write_durable`], which is on disk when it returns: a write with FUA
//! need not wait for what others have left in the cache.

use std::sync::Arc;

use base::limits::LUN_BUFFER;

use crate::flush::FlushSite;
use crate::fs::{Durable, Flush, Result};
use crate::mapped::Slice;

pub mod claim;
pub mod conformance;
pub mod device;
pub mod file;
pub mod ledger;
pub mod mapping;
pub mod mem;
pub mod node;
pub mod ranges;
pub mod reservations;

pub use claim::{Claim, ClaimError};
pub use ledger::{Ledger, Written};
pub use ranges::{RangeGuard, RangeLock};

/// Bytes with one status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Whether they have space; those that have none read as zeros.
    pub is_mapped: bool,
    /// Byte after the last.
    pub end: u64,
}

/// How well a medium is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MediumStatus {
    /// Bytes that have space.
    pub allocated: u64,
    /// Flushes that failed since it was opened.
    pub flush_failures: u64,
    /// Whether there are writes that no flush has covered.
    pub is_dirty: bool,
}

/// Storage of one logical unit, addressed in bytes. Ranges lie within [`Medium::size`]: the caller
/// has checked that. What was never written, or was discarded, reads as zeros.
///
/// With `may_block` false a method answers at once or fails with
/// [`Status::WouldBlock`](crate::status::Status::WouldBlock); part of a write may be done by then.
pub trait Medium: Send + Sync {
    /// Bytes.
    fn size(&self) -> u64;

    /// Whether it cannot be written.
    fn is_read_only(&self) -> bool;

    /// Reads all of `into`.
    ///
    /// # Errors
    /// [`Status::Io`](crate::status::Status::Io) if the device fails, or holds less than it should.
    fn read(&self, offset: u64, into: &mut [u8], may_block: bool) -> Result<()>;

    /// These bytes to be sent from where they are in memory, if all of them are there at once: as
    /// they are when they leave, not as they are now.
    fn slice(&self, _offset: u64, _length: usize) -> Option<Slice> {
        None
    }

    /// Writes all of `data` into the cache.
    ///
    /// # Errors
    /// Those of a write; a part may have been written, with `WouldBlock` too.
    fn write(&self, offset: u64, data: &[u8], may_block: bool) -> Result<()>;

    /// Writes all of `data`; it is on disk when this returns. It may block.
    ///
    /// # Errors
    /// Those of a write and of a flush.
    fn write_durable(&self, offset: u64, data: &[u8]) -> Result<()>;

    /// Takes the space of these bytes away, as far as it can; they read as zeros. It may block.
    ///
    /// # Errors
    /// Those of a write.
    fn discard(&self, offset: u64, length: u64) -> Result<()>;

    /// Makes these bytes zeros that keep, or get, their space. It may block.
    ///
    /// # Errors
    /// Those of a write; with `NoSpace` nothing was changed beyond a part of the range.
    fn zero(&self, offset: u64, length: u64) -> Result<()>;

    /// What is from `offset` on. It may block.
    ///
    /// # Errors
    /// The error of the device.
    fn extent(&self, offset: u64) -> Result<Extent>;

    /// Sets its size in bytes, as far as that is possible. New bytes read as zeros.
    ///
    /// # Errors
    /// [`Status::NotSupported`](crate::status::Status::NotSupported) for a device.
    fn resize(&self, size: u64) -> Result<()>;

    /// How well it is.
    fn status(&self) -> MediumStatus;

    /// Which writes are where; see [`ledger`].
    fn ledger(&self) -> &Ledger;

    /// Brings everything that was written before to disk, its size included, and notes the outcome
    /// in the ledger. It blocks.
    ///
    /// # Errors
    /// The error of the device.
    fn sync(&self) -> Result<()>;
}

/// Copies bytes from one medium to another, which may be the same; the ranges may overlap. It may
/// block, and holds a buffer of up to [`LUN_BUFFER`] bytes meanwhile. `go_on` is called before each
/// buffer.
///
/// # Errors
/// Those of reads and writes, and of `go_on`; a part may have been copied.
pub fn copy(
    (from, at): (&dyn Medium, u64),
    (to, start): (&dyn Medium, u64),
    length: u64,
    go_on: &dyn Fn() -> Result<()>,
) -> Result<()> {
    let mut buffer = vec![0; usize::try_from(length).unwrap_or(LUN_BUFFER).min(LUN_BUFFER)];
    // From the end where the front would overwrite what is still to be read.
    let backwards = std::ptr::addr_eq(from, to) && start > at && start < at + length;
    let mut done = 0;
    while done < length {
        go_on()?;
        let count = (length - done).min(LUN_BUFFER as u64);
        let offset = if backwards { length - done - count } else { done };
        let piece = buffer.get_mut(..count as usize).unwrap_or_default();
        from.read(at + offset, piece, true)?;
        to.write(start + offset, piece, true)?;
        done += count;
    }
    Ok(())
}

/// A flush of a medium, and the writes that it is for.
struct MediumFlush {
    medium: Arc<dyn Medium>,
    written: Written,
}

impl Durable for MediumFlush {
    fn key(&self) -> u64 {
        // Nodes of shares have small numbers; this, like a table, has an address.
        Arc::as_ptr(&self.medium).cast::<()>() as u64 | 1 << 63
    }

    fn flush(&self) -> Result<()> {
        self.medium.sync()
    }

    fn covered(&self, outcome: Result<()>) -> Result<()> {
        outcome.and(self.medium.ledger().check(self.written))
    }
}

/// What brings these writes to disk, with everything else that was written before. It fails as
/// well if an earlier flush has lost any of them.
pub fn flush(medium: &Arc<dyn Medium>, site: FlushSite, written: Written) -> Flush {
    Flush::of(site, Arc::new(MediumFlush { medium: Arc::clone(medium), written }))
}

#[cfg(test)]
mod tests;
