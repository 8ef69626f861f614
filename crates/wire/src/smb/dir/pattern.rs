//! Patterns of QUERY_DIRECTORY (MS-FSA §2.1.4.4). The positions of a name that a pattern can have
//! reached are the bits of a few words, so that one unit of the pattern costs the same however many
//! stars are before it: a name costs O(its length + that of the pattern).

use base::limits::{NAME_MAX, SMB_PATTERN_MAX};

use crate::smb::codec::{Result, SmbError};
use crate::smb::utf16;

/// `<`: as `*`, up to the last dot.
const DOS_STAR: u16 = b'<' as u16;
/// `>`: as `?`, or nothing before a dot or at the end.
const DOS_QM: u16 = b'>' as u16;
/// `"`: a dot, or nothing at the end.
const DOS_DOT: u16 = b'"' as u16;
const STAR: u16 = b'*' as u16;
const QM: u16 = b'?' as u16;
const DOT: u16 = b'.' as u16;

/// One unit of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Symbol {
    Star,
    Any,
    DosStar,
    DosAny,
    DosDot,
    /// A unit of a name: its place among those that the pattern has.
    Unit(usize),
}

/// A pattern for names, in upper case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    symbols: Vec<Symbol>,
    /// Units of the pattern without wildcards, in order.
    alphabet: Vec<u16>,
    /// Units that a name has at least.
    shortest: usize,
    has_wildcards: bool,
}

impl Pattern {
    /// A pattern in UTF-16LE.
    ///
    /// # Errors
    /// [`SmbError::Value`]; [`SmbError::Limit`] if it is longer than any name can be.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        if bytes.len() > SMB_PATTERN_MAX {
            return Err(SmbError::Limit("pattern"));
        }
        let mut units: Vec<u16> = utf16::units(bytes)?.map(utf16::upper).collect();
        // Two stars are one.
        units.dedup_by(|one, before| *one == STAR && *before == STAR);
        let is_wildcard = |unit: &u16| [DOS_STAR, DOS_QM, DOS_DOT, STAR, QM].contains(unit);
        let has_wildcards = units.iter().any(is_wildcard);
        let mut alphabet: Vec<u16> =
            units.iter().copied().filter(|unit| !is_wildcard(unit)).collect();
        alphabet.sort_unstable();
        alphabet.dedup();
        let symbol = |unit: &u16| match *unit {
            STAR => Symbol::Star,
            QM => Symbol::Any,
            DOS_STAR => Symbol::DosStar,
            DOS_QM => Symbol::DosAny,
            DOS_DOT => Symbol::DosDot,
            unit => Symbol::Unit(alphabet.binary_search(&unit).unwrap_or_default()),
        };
        let symbols: Vec<Symbol> = units.iter().map(symbol).collect();
        let takes = |symbol: &&Symbol| matches!(symbol, Symbol::Any | Symbol::Unit(_));
        let shortest = symbols.iter().filter(takes).count();
        Ok(Self { symbols, alphabet, shortest, has_wildcards })
    }

    /// Whether more than one name can match.
    pub const fn has_wildcards(&self) -> bool {
        self.has_wildcards
    }

    /// Whether every name matches.
    pub fn is_all(&self) -> bool {
        self.symbols == [Symbol::Star]
    }

    /// Whether a name in UTF-16LE matches; none does that is longer than file systems have them.
    pub fn matches(&self, name: &[u8]) -> bool {
        if self.is_all() {
            return true;
        }
        let Ok(units) = utf16::units(name) else { return false };
        let name: Vec<u16> = units.map(utf16::upper).collect();
        if name.len() < self.shortest || name.len() > NAME_MAX {
            return false;
        }
        let places = NamePositions::of(&name, &self.alphabet);
        let mut reached = Bits::at(0);
        for symbol in &self.symbols {
            reached = places.step(reached, *symbol);
            if reached.lowest().is_none() {
                return false;
            }
        }
        reached.has(name.len())
    }
}

/// Words of 64 positions: those before, between and behind the units of the longest name.
const WORDS: usize = (NAME_MAX + 1).div_ceil(64);

/// A set of positions in a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Bits([u64; WORDS]);

impl Bits {
    fn at(position: usize) -> Self {
        let mut bits = Self::default();
        bits.add(position);
        bits
    }

    /// All positions up to this one.
    fn up_to(position: usize) -> Self {
        let mut bits = Self::default();
        for (number, word) in bits.0.iter_mut().enumerate() {
            *word = match (position + 1).saturating_sub(64 * number) {
                64.. => u64::MAX,
                some => (1 << some) - 1,
            };
        }
        bits
    }

    fn add(&mut self, position: usize) {
        if let Some(word) = self.0.get_mut(position / 64) {
            *word |= 1 << (position % 64);
        }
    }

    fn has(&self, position: usize) -> bool {
        self.0.get(position / 64).is_some_and(|word| word >> (position % 64) & 1 == 1)
    }

    fn with(self, other: Self) -> Self {
        Self(std::array::from_fn(|n| self.word(n) | other.word(n)))
    }

    fn within(self, other: Self) -> Self {
        Self(std::array::from_fn(|n| self.word(n) & other.word(n)))
    }

    fn without(self, other: Self) -> Self {
        Self(std::array::from_fn(|n| self.word(n) & !other.word(n)))
    }

    fn word(&self, number: usize) -> u64 {
        self.0.get(number).copied().unwrap_or_default()
    }

    /// Each one further.
    fn next(self) -> Self {
        let mut carry = 0;
        Self(self.0.map(|word| {
            let next = word << 1 | carry;
            carry = word >> 63;
            next
        }))
    }

    fn lowest(&self) -> Option<usize> {
        let number = self.0.iter().position(|word| *word != 0)?;
        Some(64 * number + self.word(number).trailing_zeros() as usize)
    }

    /// All positions from the lowest one on, up to `last`; none if there is none.
    fn filled_up_to(self, last: usize) -> Self {
        match self.lowest() {
            None => Self::default(),
            Some(0) => Self::up_to(last),
            Some(lowest) => Self::up_to(last).without(Self::up_to(lowest - 1)),
        }
    }
}

/// Where what a pattern has is in a name.
struct NamePositions {
    /// Of each unit of the alphabet.
    of: Vec<Bits>,
    dots: Bits,
    last_dot: Option<usize>,
    /// The end of the name.
    end: usize,
}

impl NamePositions {
    fn of(name: &[u16], alphabet: &[u16]) -> Self {
        let (mut of, mut dots) = (vec![Bits::default(); alphabet.len()], Bits::default());
        for (position, unit) in name.iter().enumerate() {
            if let Ok(symbol) = alphabet.binary_search(unit)
                && let Some(bits) = of.get_mut(symbol)
            {
                bits.add(position);
            }
            if *unit == DOT {
                dots.add(position);
            }
        }
        let last_dot = name.iter().rposition(|unit| *unit == DOT);
        Self { of, dots, last_dot, end: name.len() }
    }

    /// What is reached with one unit more of the pattern.
    fn step(&self, reached: Bits, symbol: Symbol) -> Bits {
        let end = Bits::at(self.end);
        match symbol {
            Symbol::Unit(symbol) => {
                reached.within(self.of.get(symbol).copied().unwrap_or_default()).next()
            }
            Symbol::Any => reached.without(end).next(),
            Symbol::Star => reached.filled_up_to(self.end),
            Symbol::DosStar => match self.last_dot {
                None => reached.filled_up_to(self.end),
                Some(dot) => {
                    let before = Bits::up_to(dot);
                    let to_dot = reached.within(before).filled_up_to(dot + 1);
                    to_dot.with(reached.without(before).filled_up_to(self.end))
                }
            },
            Symbol::DosAny => {
                let stays = self.dots.with(end);
                reached.within(stays).with(reached.without(stays).next())
            }
            Symbol::DosDot => reached.within(self.dots).next().with(reached.within(end)),
        }
    }
}

#[cfg(test)]
mod tests;
