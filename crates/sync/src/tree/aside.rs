//! Names of what is not whole yet. They are dsync's own: neither carried, nor compared; what a run
//! that broke off has left of them is taken up by the next, or swept.

use base::random::{Random, SystemRandom};

/// What such a name begins with.
const PREFIX: &[u8] = b".plimsoll-dsync-";
/// Digits behind it.
const DIGITS: usize = 16;

/// A new one.
pub fn aside_name() -> Vec<u8> {
    numbered(SystemRandom.next_u64())
}

/// The name for a file that can be resumed after a run breaks off: the same in each run.
pub fn aside_of(name: &[u8]) -> Vec<u8> {
    let hash = blake3::hash(name);
    numbered(hash.as_bytes().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes)))
}

fn numbered(number: u64) -> Vec<u8> {
    [PREFIX, format!("{number:016x}").as_bytes()].concat()
}

/// Whether a name is such a one.
pub fn is_aside(name: &[u8]) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|digits| {
        digits.len() == DIGITS && digits.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}
