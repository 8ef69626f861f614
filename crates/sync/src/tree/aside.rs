//! Names of what is not whole yet. They are dsync's own: neither carried, nor compared; what a run
//! that broke off has left of them is swept by the next.

use base::random::{Random, SystemRandom};

/// What such a name begins with.
const PREFIX: &[u8] = b".plimsoll-dsync-";
/// Digits behind it.
const DIGITS: usize = 16;

/// A new one.
pub fn aside_name() -> Vec<u8> {
    [PREFIX, format!("{:016x}", SystemRandom.next_u64()).as_bytes()].concat()
}

/// Whether a name is such a one.
pub fn is_aside(name: &[u8]) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|digits| {
        digits.len() == DIGITS && digits.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}
