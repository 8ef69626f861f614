//! Sequence numbers of iSCSI: CmdSN, StatSN, DataSN and their kin are 32 bits wide, wrap, and are
//! compared by serial number arithmetic (RFC 1982, RFC 7143 §4.2.2.1).

use std::cmp::Ordering;
use std::fmt;

/// A sequence number. There is no `Ord`: the order of these numbers is not transitive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Serial(pub u32);

impl Serial {
    /// Half of all numbers: two that are so far apart have no order (RFC 1982 §3.2).
    const HALF: u32 = 1 << 31;

    /// The number `count` after this one. `count` must be below 2^31 to mean "after".
    #[must_use]
    pub const fn plus(self, count: u32) -> Self {
        Self(self.0.wrapping_add(count))
    }

    /// The next number.
    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// The number `count` before this one.
    #[must_use]
    pub const fn minus(self, count: u32) -> Self {
        Self(self.0.wrapping_sub(count))
    }

    /// How this number lies to another; `None` if they are exactly 2^31 apart.
    pub const fn compare(self, other: Self) -> Option<Ordering> {
        match self.0.wrapping_sub(other.0) {
            0 => Some(Ordering::Equal),
            Self::HALF => None,
            ahead if ahead < Self::HALF => Some(Ordering::Greater),
            _ => Some(Ordering::Less),
        }
    }

    /// Whether this number comes before the other.
    pub const fn is_before(self, other: Self) -> bool {
        matches!(self.compare(other), Some(Ordering::Less))
    }

    /// Whether this number comes after the other.
    pub const fn is_after(self, other: Self) -> bool {
        matches!(self.compare(other), Some(Ordering::Greater))
    }

    /// How many numbers lie from `start` to this one, or `None` if this one comes before it.
    pub const fn since(self, start: Self) -> Option<u32> {
        match self.compare(start) {
            Some(Ordering::Less) | None => None,
            Some(_) => Some(self.0.wrapping_sub(start.0)),
        }
    }

    /// Whether this number is in `first..=last`. A `last` of `first - 1` is a closed window, which
    /// holds no number (RFC 7143 §4.2.2.1: MaxCmdSN = ExpCmdSN - 1).
    pub const fn is_within(self, first: Self, last: Self) -> bool {
        let width = last.next().0.wrapping_sub(first.0);
        width <= Self::HALF && self.0.wrapping_sub(first.0) < width
    }
}

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
