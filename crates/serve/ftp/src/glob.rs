//! Patterns of names with `*` and `?`, as LIST and NLST have them, pure.
//!
//! A name is compared in one pass over its bytes, whatever the pattern: one bit for each place in
//! the pattern that may have been reached (the bit-parallel simulation of a nondeterministic
//! automaton; G. Navarro, M. Raffinot, "Flexible Pattern Matching in Strings", chapter 4). Trying
//! the places one after the other takes the product of both lengths, for each name of a directory.

use base::limits::NAME_MAX;

/// Words of 64 places: before the first symbol, and behind each of as many as a name can have.
const WORDS: usize = NAME_MAX / 64 + 1;

type StateSet = [u64; WORDS];

/// A pattern.
pub(super) struct Glob {
    /// Whether it begins with a dot: names that do are meant by such patterns only.
    dotted: bool,
    /// Bytes that it takes without those of its stars; `None` if that is more than a name has.
    symbols: Option<usize>,
    /// For each byte, the places from which it leads to the next.
    takes: Vec<StateSet>,
    /// The places at a star, where any byte may come.
    stays: StateSet,
}

fn set(places: &mut StateSet, at: usize) {
    if let Some(word) = places.get_mut(at / 64) {
        *word |= 1 << (at % 64);
    }
}

impl Glob {
    /// A pattern as it is written.
    pub(super) fn new(pattern: &[u8]) -> Self {
        let (mut takes, mut stays) = (vec![StateSet::default(); 256], StateSet::default());
        let mut symbols = 0;
        for letter in pattern {
            match letter {
                b'*' => set(&mut stays, symbols),
                b'?' => {
                    takes.iter_mut().for_each(|places| set(places, symbols));
                    symbols += 1;
                }
                letter => {
                    if let Some(places) = takes.get_mut(usize::from(*letter)) {
                        set(places, symbols);
                    }
                    symbols += 1;
                }
            }
        }
        let symbols = Some(symbols).filter(|symbols| *symbols <= NAME_MAX);
        Self { dotted: pattern.starts_with(b"."), symbols, takes, stays }
    }

    /// Whether a name fits.
    pub(super) fn fits(&self, name: &[u8]) -> bool {
        let Some(symbols) = self.symbols else { return false };
        if name.starts_with(b".") && !self.dotted {
            return false;
        }
        let mut reached = StateSet::default();
        reached[0] = 1;
        for letter in name {
            let Some(takes) = self.takes.get(usize::from(*letter)) else { return false };
            let mut carry = 0;
            for ((place, takes), stays) in reached.iter_mut().zip(takes).zip(&self.stays) {
                let leads = *place & takes;
                *place = *place & stays | leads << 1 | carry;
                carry = leads >> 63;
            }
        }
        reached.get(symbols / 64).is_some_and(|word| word >> (symbols % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests;
