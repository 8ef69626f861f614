//! Finding in a file what the other side has of it: sums of the blocks that it has, and a walk over
//! the new content that looks at every position for one of them. The weak sum moves on by a byte at
//! little cost; the strong one decides.

use std::io;

use base::limits::{
    DSYNC_BLOCK_MAX, DSYNC_BLOCK_MIN, DSYNC_BLOCKS_MAX, DSYNC_DELTA_MIN, DSYNC_PIECE,
};
use wire::dsync::{Basis, Sum};

use crate::digest::strong;

#[cfg(test)]
mod tests;

/// How a file of `size` bytes is cut, to be sent by differences; `None` if that does not pay.
pub fn basis(size: u64) -> Option<Basis> {
    if size < DSYNC_DELTA_MIN {
        return None;
    }
    // The root balances the sums that are sent against what one changed byte costs.
    let block = size.isqrt().next_power_of_two().clamp(DSYNC_BLOCK_MIN, DSYNC_BLOCK_MAX);
    let count = size / block;
    let fits = usize::try_from(count).is_ok_and(|n| n <= DSYNC_BLOCKS_MAX);
    fits.then_some(Basis { block: block as u32, count: count as u32 })
}

/// Whether a basis is one that [`basis`] could give.
pub fn is_basis(basis: &Basis) -> bool {
    let block = u64::from(basis.block);
    block.is_power_of_two()
        && (DSYNC_BLOCK_MIN..=DSYNC_BLOCK_MAX).contains(&block)
        && (1..=DSYNC_BLOCKS_MAX).contains(&(basis.count as usize))
}

/// The sums of a block.
pub fn sum(block: &[u8]) -> Sum {
    Sum { weak: Weak::of(block).value(), strong: strong(block) }
}

/// Bytes that are added at once, each to the sum of its column: no column waits for another.
const COLUMNS: usize = 32;
/// Rows after which the columns are put together: their sums fit into 16 bits.
const ROWS: usize = 128;

/// A sum that moves on by a byte: the sum of the bytes, and the sum of those sums.
#[derive(Clone, Copy)]
struct Weak {
    a: u32,
    b: u32,
}

impl Weak {
    fn of(block: &[u8]) -> Self {
        let mut weak = Self { a: 0, b: 0 };
        let (rows, rest) = block.as_chunks();
        rows.chunks(ROWS).for_each(|rows| weak.rows(rows));
        for byte in rest {
            weak.a = weak.a.wrapping_add(u32::from(*byte));
            weak.b = weak.b.wrapping_add(weak.a);
        }
        weak
    }

    /// Takes some rows: a byte is in the sum of the sums as often as bytes come from it on, which
    /// is by whole rows, and by its place in its own.
    fn rows(&mut self, rows: &[[u8; COLUMNS]]) {
        let (mut sums, mut before) = ([0u16; COLUMNS], [0u32; COLUMNS]);
        for row in rows {
            for (before, sum) in before.iter_mut().zip(sums) {
                *before += u32::from(sum);
            }
            for (sum, byte) in sums.iter_mut().zip(row) {
                *sum += u16::from(*byte);
            }
        }
        let total = |values: &mut dyn Iterator<Item = u32>| values.fold(0, u32::wrapping_add);
        let from_here = (1..=COLUMNS as u32).rev();
        let placed = total(&mut sums.iter().zip(from_here).map(|(sum, n)| u32::from(*sum) * n));
        let by_rows = total(&mut before.into_iter()).wrapping_mul(COLUMNS as u32);
        let bytes = (rows.len() * COLUMNS) as u32;
        self.b = self.b.wrapping_add(self.a.wrapping_mul(bytes)).wrapping_add(by_rows);
        self.b = self.b.wrapping_add(placed);
        self.a = self.a.wrapping_add(total(&mut sums.into_iter().map(u32::from)));
    }

    fn roll(&mut self, length: u32, out: u8, new: u8) {
        self.a = self.a.wrapping_sub(u32::from(out)).wrapping_add(u32::from(new));
        self.b = self.b.wrapping_sub(length.wrapping_mul(u32::from(out))).wrapping_add(self.a);
    }

    fn value(self) -> u32 {
        (self.a & 0xffff) | (self.b << 16)
    }
}

/// What the other side has, to be looked up by weak sum.
pub struct Index {
    block: usize,
    sums: Vec<Sum>,
    /// The first block of each bucket, and the next of the same bucket; 0 is none, 1 the first.
    heads: Vec<u32>,
    next: Vec<u32>,
    shift: u32,
    /// A Bloom filter of the weak sums with one hash function, small enough to stay in the
    /// processor cache while it is queried for every byte.
    known: Vec<u64>,
}

impl Index {
    /// Of the sums of blocks of `block` bytes.
    pub fn new(block: usize, sums: Vec<Sum>) -> Self {
        // Most buckets are empty, so that one lookup mostly shows that there is no match.
        let bits = (sums.len().max(1) * 8).next_power_of_two().ilog2().clamp(12, 24);
        let mut index = Self {
            block,
            heads: vec![0; 1 << bits],
            next: vec![0; sums.len()],
            shift: 32 - bits,
            known: vec![0; 1 << (KNOWN_BITS - 6)],
            sums,
        };
        // The last goes in first: the lists are in the order of the file.
        for at in (0..index.sums.len()).rev() {
            let bucket = index.bucket(index.sums[at].weak);
            index.next[at] = index.heads[bucket];
            index.heads[bucket] = at as u32 + 1;
            let (word, bit) = Self::known(index.sums[at].weak);
            index.known[word] |= bit;
        }
        index
    }

    /// Word and bit of the filter for a weak sum.
    fn known(weak: u32) -> (usize, u64) {
        let at = weak.wrapping_mul(SPREAD) >> (32 - KNOWN_BITS);
        (at as usize >> 6, 1 << (at & 63))
    }

    fn bucket(&self, weak: u32) -> usize {
        (weak.wrapping_mul(SPREAD) >> self.shift) as usize
    }

    /// Whether these bytes are that block.
    fn is_at(&self, which: usize, block: &[u8]) -> bool {
        self.sums.get(which).is_some_and(|sum| sum.strong == strong(block))
    }

    /// Moves a sum on over bytes until it is that of a block: how far, and which; or until no byte
    /// is left that could come in.
    fn next(
        &self,
        weak: &mut Weak,
        bytes: &[u8],
        like: impl Fn(usize) -> usize,
    ) -> (usize, Option<usize>) {
        let coming = bytes.get(self.block..).unwrap_or_default();
        for (at, (out, new)) in bytes.iter().zip(coming).enumerate() {
            weak.roll(self.block as u32, *out, *new);
            let (word, bit) = Self::known(weak.value());
            if self.known[word] & bit == 0 {
                continue;
            }
            let here = at + 1;
            let found = self.find(weak.value(), &bytes[here..here + self.block], || like(here));
            if found.is_some() {
                return (here, found);
            }
        }
        (coming.len(), None)
    }

    /// Which block these bytes are; `like` rather than another, since copies that follow each other
    /// become one.
    fn find(&self, weak: u32, block: &[u8], like: impl Fn() -> usize) -> Option<usize> {
        let mut at = self.heads[self.bucket(weak)];
        let mut hash = None;
        let mut found = None;
        // A file of equal blocks has one list of all: only its begin is looked at.
        for _ in 0..LIST_MAX {
            let Some(which) = (at as usize).checked_sub(1) else { break };
            at = self.next[which];
            let sum = &self.sums[which];
            if sum.weak != weak || sum.strong != *hash.get_or_insert_with(|| strong(block)) {
                continue;
            }
            if which == like() {
                return Some(which);
            }
            found = found.or(Some(which));
        }
        found?;
        let liked = self.sums.get(like()).filter(|sum| Some(sum.strong) == hash);
        if liked.is_some() { Some(like()) } else { found }
    }
}

/// Spreads sums over their highest bits: 2^32 divided by the golden section.
const SPREAD: u32 = 0x9e37_79b1;
/// How many bits, as a power of two, say what sums there may be: 128 KiB, a sixteenth of them set
/// by a file of 4 GiB.
const KNOWN_BITS: u32 = 20;
/// Blocks of one bucket that are looked at.
const LIST_MAX: usize = 64;

/// A part of a file: where it lies, and what it is.
#[derive(Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Bytes that the other side does not have.
    New(u64, &'a [u8]),
    /// Blocks that it has: where they are here, where there, how many bytes, and their sums.
    Had(u64, u64, u32, &'a [Sum]),
}

/// Walks over `start..end` of a file; calls `emit` for all parts in their order, none above
/// [`DSYNC_PIECE`] bytes.
///
/// # Errors
/// Those of `read` and `emit`. A file that has become shorter ends early.
pub fn walk<E: From<io::Error>>(
    index: &Index,
    (start, end): (u64, u64),
    read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
    emit: impl FnMut(Part<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let buffer = Buffer { bytes: Vec::new(), have: 0, from: start, end, read };
    let mut walk = Walk { index, buffer, emit, copied: None };
    walk.run(start)
}

/// The part of the file that is in memory.
struct Buffer<R> {
    /// Room for it, which stays.
    bytes: Vec<u8>,
    /// How much of it there is.
    have: usize,
    /// Where the first of them lies.
    from: u64,
    /// Where the walk ends.
    end: u64,
    read: R,
}

impl<R: FnMut(&mut [u8], u64) -> io::Result<usize>> Buffer<R> {
    /// `length` bytes from `at` on, or all up to the end.
    fn get(&mut self, at: u64, length: usize) -> io::Result<&[u8]> {
        let mut first = (at - self.from) as usize;
        if self.have < first + length && self.from + (self.have as u64) < self.end {
            self.bytes.copy_within(first..self.have, 0);
            self.have -= first;
            (self.from, first) = (at, 0);
            self.fill(length)?;
        }
        let rest = self.bytes[..self.have].get(first..).unwrap_or_default();
        Ok(&rest[..rest.len().min(length)])
    }

    fn fill(&mut self, length: usize) -> io::Result<()> {
        let want = (length.max(READ) as u64).min(self.end - self.from) as usize;
        if self.bytes.len() < want {
            self.bytes.resize(want, 0);
        }
        while self.have < want {
            match (self.read)(&mut self.bytes[self.have..want], self.from + self.have as u64)? {
                0 => {
                    self.end = self.from + self.have as u64;
                    break;
                }
                n => self.have += n,
            }
        }
        Ok(())
    }
}

/// Bytes that are read at once: what is moved down for it is a quarter at most.
const READ: usize = 4 * DSYNC_PIECE;

struct Walk<'i, R, T> {
    index: &'i Index,
    buffer: Buffer<R>,
    emit: T,
    /// A copy that may grow: as in [`Part::Had`].
    copied: Option<(u64, u64, u32)>,
}

impl<R, T, E: From<io::Error>> Walk<'_, R, T>
where
    R: FnMut(&mut [u8], u64) -> io::Result<usize>,
    T: FnMut(Part<'_>) -> Result<(), E>,
{
    fn run(&mut self, start: u64) -> Result<(), E> {
        let block = self.index.block;
        let (mut literal, mut at) = (start, start);
        let mut weak: Option<Weak> = None;
        loop {
            let held = (at - literal) as usize;
            // What comes in when the sum moves on: by a byte, or until a piece is full.
            let rolls = weak.is_some();
            let ahead = if rolls { DSYNC_PIECE } else { held + 1 };
            let bytes = self.buffer.get(literal, ahead + block)?;
            let Some(here) = bytes.get(held..held + block) else { break };
            let after = self.copied.map(|(_, from, length)| from + u64::from(length));
            // The block behind the last copied one, or, without one, the block at this position.
            let like = |on: usize| (after.unwrap_or(at + on as u64) / block as u64) as usize;
            let (moved, found) = match &mut weak {
                Some(weak) => self.index.next(weak, &bytes[held..], like),
                // Mostly a block is followed by the next one, which a comparison of one sum
                // confirms.
                None if self.index.is_at(like(0), here) => (0, Some(like(0))),
                None => {
                    let sum = weak.insert(Weak::of(here)).value();
                    (0, self.index.find(sum, here, || like(0)))
                }
            };
            let over = rolls && bytes.len() < ahead + block;
            at += moved as u64;
            if let Some(which) = found {
                self.literal(literal, held + moved)?;
                self.had(at, (which * block) as u64)?;
                at += block as u64;
                (literal, weak) = (at, None);
            } else if over {
                break;
            } else if held + moved >= DSYNC_PIECE {
                self.literal(literal, held + moved)?;
                literal = at;
            }
        }
        self.rest(literal)
    }

    /// What is left is less than a block and what was before it.
    fn rest(&mut self, mut literal: u64) -> Result<(), E> {
        loop {
            let length = self.buffer.get(literal, DSYNC_PIECE)?.len();
            if length == 0 {
                return self.emit_copied();
            }
            self.literal(literal, length)?;
            literal += length as u64;
        }
    }

    fn literal(&mut self, at: u64, length: usize) -> Result<(), E> {
        if length == 0 {
            return Ok(());
        }
        self.emit_copied()?;
        let bytes = self.buffer.get(at, length)?;
        (self.emit)(Part::New(at, bytes))
    }

    fn had(&mut self, at: u64, from: u64) -> Result<(), E> {
        let block = self.index.block as u32;
        if let Some((begin, old, length)) = &mut self.copied
            && *begin + u64::from(*length) == at
            && *old + u64::from(*length) == from
            && (*length + block) as usize <= DSYNC_PIECE
        {
            *length += block;
            return Ok(());
        }
        self.emit_copied()?;
        self.copied = Some((at, from, block));
        Ok(())
    }

    fn emit_copied(&mut self) -> Result<(), E> {
        let Some((at, from, length)) = self.copied.take() else { return Ok(()) };
        let (first, count) = (from as usize / self.index.block, length as usize / self.index.block);
        let sums = self.index.sums.get(first..first + count).unwrap_or_default();
        (self.emit)(Part::Had(at, from, length, sums))
    }
}
