//! Content of test files: a pure function of (seed, file, offset), so that any block read can be
//! checked without keeping what was written.
//!
//! A table of random words is laid over the file at a place and under a mask that differ for each
//! 4 KiB block. Within a block the words are unrelated (nothing to compress); no two blocks are
//! equal (nothing to deduplicate). Making and checking run at memory speed, so that a load client
//! can afford to check every byte of small reads.

use base::random::{Random, SeededRandom};

/// Unit of placement: no two blocks of this size have the same content.
pub const BLOCK: usize = 4096;
/// Words of the random table: 64 KiB stay in the second-level cache next to the socket buffers.
const TABLE_WORDS: usize = 8192;
const BLOCK_WORDS: usize = BLOCK / 8;

/// The content of every file of one run.
#[derive(Clone)]
pub struct Content {
    seed: u64,
    table: std::sync::Arc<[u64]>,
}

impl Content {
    /// The content that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        let mut random = SeededRandom::new(seed);
        let table = (0..TABLE_WORDS + BLOCK_WORDS).map(|_| random.next_u64()).collect();
        Self { seed, table }
    }

    /// Fills `out` with what `file` holds from `offset` on.
    pub fn fill(&self, file: u64, offset: u64, out: &mut [u8]) {
        self.walk(file, offset, out.len(), |part, from, words, key| {
            write_words(&mut out[part], from, words, key);
        });
    }

    /// The number of the first byte of `data` that differs from what `file` holds at `offset`.
    pub fn mismatch(&self, file: u64, offset: u64, data: &[u8]) -> Option<usize> {
        let mut wrong = None;
        self.walk(file, offset, data.len(), |part, from, words, key| {
            if wrong.is_none() {
                let start = part.start;
                wrong = differs(&data[part], from, words, key).map(|n| start + n);
            }
        });
        wrong
    }

    /// Calls `each(range of the buffer, byte within the block, words of the block, mask)`.
    #[inline]
    fn walk(
        &self,
        file: u64,
        offset: u64,
        len: usize,
        mut each: impl FnMut(std::ops::Range<usize>, usize, &[u64], u64),
    ) {
        let mut at = 0;
        while at < len {
            let here = offset + at as u64;
            let block = here / BLOCK as u64;
            let from = (here % BLOCK as u64) as usize;
            let (key, place) = self.place(file, block);
            let part = (BLOCK - from).min(len - at);
            each(at..at + part, from, &self.table[place..place + BLOCK_WORDS], key);
            at += part;
        }
    }

    /// Mask and place in the table of one block.
    #[inline]
    fn place(&self, file: u64, block: u64) -> (u64, usize) {
        let mut z = self.seed
            ^ file.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ block.wrapping_add(1).wrapping_mul(0xd1b5_4a32_d192_ed03);
        z = (z ^ (z >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        z = (z ^ (z >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (z ^ (z >> 32), (z as usize) % TABLE_WORDS)
    }
}

/// Byte `n` of a block.
#[inline]
fn byte(words: &[u64], n: usize, key: u64) -> u8 {
    ((words[n / 8] ^ key) >> (8 * (n % 8))) as u8
}

#[inline]
fn write_words(out: &mut [u8], from: usize, words: &[u64], key: u64) {
    let lead = ((8 - from % 8) % 8).min(out.len());
    let (head, rest) = out.split_at_mut(lead);
    for (n, slot) in head.iter_mut().enumerate() {
        *slot = byte(words, from + n, key);
    }
    let start = from + lead;
    let mut chunks = rest.chunks_exact_mut(8);
    let source = &words[(start / 8).min(words.len())..];
    let whole = chunks.len();
    for (chunk, word) in (&mut chunks).zip(source) {
        chunk.copy_from_slice(&(word ^ key).to_le_bytes());
    }
    for (n, slot) in chunks.into_remainder().iter_mut().enumerate() {
        *slot = byte(words, start + whole * 8 + n, key);
    }
}

#[inline]
fn differs(data: &[u8], from: usize, words: &[u64], key: u64) -> Option<usize> {
    let lead = ((8 - from % 8) % 8).min(data.len());
    let (head, rest) = data.split_at(lead);
    let start = from + lead;
    let chunks = rest.chunks_exact(8);
    let whole = chunks.len();
    let source = &words[(start / 8).min(words.len())..];
    // No early exit in the common case: a running difference lets the loop use wide registers.
    let mut difference = 0;
    for (chunk, word) in chunks.clone().zip(source) {
        difference |= u64::from_le_bytes(chunk.try_into().unwrap_or_default()) ^ word ^ key;
    }
    let tail = chunks.remainder();
    let edges_fit = head.iter().enumerate().all(|(n, b)| *b == byte(words, from + n, key))
        && tail.iter().enumerate().all(|(n, b)| *b == byte(words, start + whole * 8 + n, key));
    if difference == 0 && edges_fit {
        return None;
    }
    data.iter().enumerate().position(|(n, b)| *b != byte(words, from + n, key))
}

#[cfg(test)]
mod tests;
