//! Checking what was read: all of a small read; of a large one its ends and a stated share.

use crate::pattern::{BLOCK, Content};

/// Reads up to this size are checked whole.
pub const WHOLE_MAX: u64 = 64 << 10;

/// Checks parts of reads as they arrive, in any cut.
#[derive(Clone)]
pub struct Checker {
    /// The content that is expected.
    pub content: Content,
    one_in: u32,
}

impl Checker {
    /// Of reads above [`WHOLE_MAX`] one block in `one_in` is checked, and the first and last
    /// block always; 1 checks all, 0 nothing at all of any read.
    pub fn new(content: Content, one_in: u32) -> Self {
        Self { content, one_in }
    }

    /// The share of bytes checked of reads of `len` bytes, 0..=1.
    pub fn share(&self, len: u64) -> f64 {
        match self.one_in {
            0 => 0.0,
            _ if len <= WHOLE_MAX => 1.0,
            n => (1.0 / f64::from(n) + 2.0 * BLOCK as f64 / len as f64).min(1.0),
        }
    }

    /// Whether `data`, which lies `at` bytes into a read of `file` at `offset` over `len` bytes,
    /// is as expected where it is looked at.
    pub fn is_right(&self, file: u64, offset: u64, len: u64, at: u64, data: &[u8]) -> bool {
        match self.one_in {
            0 => true,
            _ if len <= WHOLE_MAX => self.fits(file, offset + at, data),
            1 => self.fits(file, offset + at, data),
            n => self.sampled(file, offset, len, at, data, u64::from(n)),
        }
    }

    fn fits(&self, file: u64, offset: u64, data: &[u8]) -> bool {
        self.content.mismatch(file, offset, data).is_none()
    }

    fn sampled(&self, file: u64, offset: u64, len: u64, at: u64, data: &[u8], n: u64) -> bool {
        let (start, end) = (offset + at, offset + at + data.len() as u64);
        let block = BLOCK as u64;
        let (first, last) = (offset / block, (offset + len - 1) / block);
        let check = |number: u64| {
            let from = (number * block).max(start);
            let to = ((number + 1) * block).min(end);
            let part = data.get((from - start) as usize..(to.max(from) - start) as usize);
            part.is_none_or(|part| self.fits(file, from, part))
        };
        let here = start / block..end.div_ceil(block);
        let edge = |number: u64| number == first || number == last;
        // A place in each group that moves from group to group: a period in the damage cannot
        // hide between the samples for long.
        let due = |number: u64| (number + number / n).is_multiple_of(n) || edge(number);
        here.filter(|number| due(*number)).all(check)
    }
}

#[cfg(test)]
mod tests;
