//! `bitmap4` (RFC 7531): a set of small numbers, of attributes mostly.

use base::limits::NFS4_BITMAP_WORDS_MAX;

use crate::xdr::{Decode, DecodeError, Encode, Reader, Writer};

/// Words that are kept: all attributes of today fit three.
const WORDS: usize = 4;
/// Stands for every number beyond the last that is kept; nothing has this number.
const BEYOND: u32 = WORDS as u32 * 32 - 1;

/// A set of numbers below 127. Greater ones of a peer are kept as "one that we do not know":
/// number 127.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Bitmap4 {
    words: [u32; WORDS],
}

impl Bitmap4 {
    /// Nothing.
    pub const EMPTY: Self = Self { words: [0; WORDS] };

    /// These numbers; those above 126 are not added.
    pub const fn of(numbers: &[u32]) -> Self {
        let mut set = Self::EMPTY;
        let mut i = 0;
        while i < numbers.len() {
            set = set.with(numbers[i]);
            i += 1;
        }
        set
    }

    /// This set and `number`.
    #[must_use]
    pub const fn with(mut self, number: u32) -> Self {
        if number < BEYOND {
            self.words[(number / 32) as usize] |= 1 << (number % 32);
        }
        self
    }

    /// Whether `number` is in it.
    #[inline]
    pub const fn has(&self, number: u32) -> bool {
        number <= BEYOND && self.words[(number / 32) as usize] & (1 << (number % 32)) != 0
    }

    /// Adds `number`.
    #[inline]
    pub fn add(&mut self, number: u32) {
        *self = self.with(number);
    }

    /// Takes `number` out.
    #[inline]
    pub fn remove(&mut self, number: u32) {
        if let Some(word) = self.words.get_mut((number / 32) as usize) {
            *word &= !(1 << (number % 32));
        }
    }

    /// What is in both.
    #[must_use]
    #[inline]
    pub const fn and(mut self, other: &Self) -> Self {
        let mut i = 0;
        while i < WORDS {
            self.words[i] &= other.words[i];
            i += 1;
        }
        self
    }

    /// What is in either.
    #[must_use]
    pub const fn or(mut self, other: &Self) -> Self {
        let mut i = 0;
        while i < WORDS {
            self.words[i] |= other.words[i];
            i += 1;
        }
        self
    }

    /// What is in this one but not in `other`.
    #[must_use]
    pub const fn without(mut self, other: &Self) -> Self {
        let mut i = 0;
        while i < WORDS {
            self.words[i] &= !other.words[i];
            i += 1;
        }
        self
    }

    /// Whether nothing is in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.words == [0; WORDS]
    }

    /// The first word, for bitmaps that are flags (IO_ADVISE, CB_RECALL_ANY).
    pub const fn first_word(&self) -> u32 {
        self.words[0]
    }

    /// The numbers in it, from the least on.
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<> {
        let words = self.words;
        (0u32..).zip(words).flat_map(|(at, mut word)| {
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros();
                word &= word.wrapping_sub(1);
                (bit < 32).then_some(at * 32 + bit)
            })
        })
    }
}

impl Encode for Bitmap4 {
    #[inline]
    fn encode(&self, w: &mut Writer<'_>) {
        let unused = self.words.iter().rev().take_while(|word| **word == 0).count();
        let used = WORDS - unused;
        w.u32(used as u32);
        self.words.iter().take(used).for_each(|word| w.u32(*word));
    }
}

impl Decode<'_> for Bitmap4 {
    #[inline]
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = r.length(NFS4_BITMAP_WORDS_MAX, "bitmap4")?;
        let mut set = Self::EMPTY;
        for at in 0..count {
            let word = r.u32("bitmap4")?;
            match set.words.get_mut(at) {
                Some(kept) => *kept = word,
                None if word != 0 => set.words[WORDS - 1] |= 1 << (BEYOND % 32),
                None => {}
            }
        }
        Ok(set)
    }
}
