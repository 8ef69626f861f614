//! Where data differ, and the sense data that reports it.

use wire::scsi::{Asc, Sense, SenseKey};

use super::Fail;

/// MISCOMPARE, with the first byte that differs.
pub(super) fn miscompare(at: usize) -> Fail {
    let sense = Sense::new(SenseKey::MISCOMPARE, Asc::MISCOMPARE);
    Fail::Sense(sense.with_information(at as u64))
}

/// The first byte that differs.
pub(super) fn difference(one: &[u8], other: &[u8]) -> Option<usize> {
    if one == other {
        return None;
    }
    one.iter().zip(other).position(|(a, b)| a != b)
}
