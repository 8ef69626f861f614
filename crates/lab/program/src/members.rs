//! Which entries of a set exist: a bit each, and a sum per 512 of them by which the n-th existing
//! or missing one is found.
//!
//! A thread that creates and removes files has a slice of the set alone: each so-many-th entry. Its
//! choices then depend on nothing that other threads do, and are the same on any number of agents.

/// Bits of one block, of which the sum is kept.
const BLOCK: usize = 512;
const WORDS: usize = BLOCK / 64;

/// Where a rotation through a slice continues.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rotor {
    /// Among existing entries.
    pub existing: u64,
    /// Among missing entries.
    pub missing: u64,
}

/// A slice of the entries of a set.
#[derive(Debug, Clone)]
pub struct Slice {
    first: u64,
    step: u64,
    len: u64,
    ones: u64,
    words: Vec<u64>,
    /// A binary indexed tree over the sums of blocks.
    sums: Vec<u32>,
}

impl Slice {
    /// Of `entries`, those from `first` in steps of `step`, which exist if `exists` holds.
    pub fn new(entries: u64, first: u64, step: u64, exists: impl Fn(u64) -> bool) -> Self {
        let step = step.max(1);
        let len = if first < entries { (entries - first).div_ceil(step) } else { 0 };
        let words = vec![0; (len as usize).div_ceil(64)];
        let sums = vec![0; words.len().div_ceil(WORDS) + 1];
        let mut slice = Self { first, step, len, ones: 0, words, sums };
        for local in 0..len {
            if exists(slice.entry(local)) {
                slice.words[local as usize / 64] |= 1 << (local % 64);
            }
        }
        slice.sum();
        slice
    }

    /// Entries, existing or not.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no entries at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Entries that exist.
    pub fn existing(&self) -> u64 {
        self.ones
    }

    /// Whether an entry of this slice exists.
    pub fn exists(&self, entry: u64) -> bool {
        self.local(entry).is_some_and(|local| self.bit(local))
    }

    /// Records that an entry exists, or that it does not.
    pub fn set(&mut self, entry: u64, exists: bool) {
        let Some(local) = self.local(entry) else { return };
        if self.bit(local) == exists {
            return;
        }
        self.words[local as usize / 64] ^= 1 << (local % 64);
        let change = if exists { 1 } else { u32::MAX };
        let mut block = local as usize / BLOCK + 1;
        while let Some(sum) = self.sums.get_mut(block) {
            *sum = sum.wrapping_add(change);
            block += block & block.wrapping_neg();
        }
        self.ones = if exists { self.ones + 1 } else { self.ones - 1 };
    }

    /// The n-th existing entry, from 0.
    pub fn nth_existing(&self, n: u64) -> Option<u64> {
        (n < self.ones).then(|| self.select(n, true))
    }

    /// The n-th missing entry, from 0.
    pub fn nth_missing(&self, n: u64) -> Option<u64> {
        (n < self.len - self.ones).then(|| self.select(n, false))
    }

    /// The next existing entry in rotation that is not `busy`.
    pub fn next_existing(&self, rotor: &mut Rotor, busy: impl Fn(u64) -> bool) -> Option<u64> {
        let local = self.search(rotor.existing, true, busy)?;
        rotor.existing = local + 1;
        Some(self.entry(local))
    }

    /// The next missing entry in rotation that is not `busy`.
    pub fn next_missing(&self, rotor: &mut Rotor, busy: impl Fn(u64) -> bool) -> Option<u64> {
        let local = self.search(rotor.missing, false, busy)?;
        rotor.missing = local + 1;
        Some(self.entry(local))
    }

    /// Where the rotations of the `n`-th of `all` threads start, so that they are spread.
    pub fn rotor(&self, n: u64, all: u64) -> Rotor {
        let at = (u128::from(self.len) * u128::from(n) / u128::from(all.max(1))) as u64;
        Rotor { existing: at, missing: at }
    }

    /// Bytes of memory that the slice takes.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.words.capacity() * 8 + self.sums.capacity() * 4
    }

    fn entry(&self, local: u64) -> u64 {
        self.first + local * self.step
    }

    fn local(&self, entry: u64) -> Option<u64> {
        let from = entry.checked_sub(self.first)?;
        let local = from / self.step;
        (from % self.step == 0 && local < self.len).then_some(local)
    }

    fn bit(&self, local: u64) -> bool {
        self.words[local as usize / 64] >> (local % 64) & 1 == 1
    }

    fn sum(&mut self) {
        for (word, bits) in self.words.iter().enumerate() {
            self.sums[word / WORDS + 1] += bits.count_ones();
        }
        self.ones = self.sums.iter().map(|sum| u64::from(*sum)).sum();
        for block in 1..self.sums.len() {
            let above = block + (block & block.wrapping_neg());
            if above < self.sums.len() {
                self.sums[above] += self.sums[block];
            }
        }
    }

    /// The entry with the n-th bit of value `one`; there must be one.
    fn select(&self, n: u64, one: bool) -> u64 {
        let (mut block, mut left) = (0, n);
        let mut stride = self.sums.len().next_power_of_two();
        while stride > 0 {
            let to = block + stride;
            if let Some(sum) = self.sums.get(to) {
                let end = (to * BLOCK).min(self.len as usize);
                let bits = (end - block * BLOCK) as u64;
                let here = if one { u64::from(*sum) } else { bits - u64::from(*sum) };
                if here <= left {
                    (block, left) = (to, left - here);
                }
            }
            stride /= 2;
        }
        for (word, bits) in self.words.iter().enumerate().skip(block * WORDS) {
            let mut bits = if one { *bits } else { !*bits };
            let here = u64::from(bits.count_ones());
            if here <= left {
                left -= here;
                continue;
            }
            for _ in 0..left {
                bits &= bits - 1;
            }
            return self.entry(word as u64 * 64 + u64::from(bits.trailing_zeros()));
        }
        // The caller has compared with the sum.
        self.entry(self.len - 1)
    }

    /// The first bit of value `one` from `from` on, around the end, of which the entry is not busy.
    fn search(&self, from: u64, one: bool, busy: impl Fn(u64) -> bool) -> Option<u64> {
        let count = if one { self.ones } else { self.len - self.ones };
        if count == 0 {
            return None;
        }
        let start = if from >= self.len { 0 } else { from };
        let first = |range: std::ops::Range<u64>| self.scan(range, one, &busy);
        first(start..self.len).or_else(|| first(0..start))
    }

    fn scan(
        &self,
        range: std::ops::Range<u64>,
        one: bool,
        busy: &impl Fn(u64) -> bool,
    ) -> Option<u64> {
        let mut at = range.start;
        while at < range.end {
            let word = self.words[at as usize / 64];
            let mut bits = if one { word } else { !word } & (u64::MAX << (at % 64));
            while bits != 0 {
                let local = at / 64 * 64 + u64::from(bits.trailing_zeros());
                if local >= range.end {
                    return None;
                }
                if !busy(self.entry(local)) {
                    return Some(local);
                }
                bits &= bits - 1;
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }
}

#[cfg(test)]
mod tests;
