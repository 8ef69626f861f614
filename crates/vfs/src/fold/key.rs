//! The key by which names are compared where clients do not distinguish case: one for case and for
//! canonical equivalence (UAX #15), so that one look at a directory serves both. macOS sends names
//! composed (NFC); trees that came from HFS+ or from rsync on a Mac have them decomposed (NFD).

use unicode_normalization::UnicodeNormalization;

/// A name as it is compared: canonically decomposed, each character in upper case if that is one
/// character, as the tables of Windows have it. A name that is no UTF-8 is compared as it is.
pub fn fold(name: &[u8]) -> Vec<u8> {
    if name.is_ascii() {
        return name.to_ascii_uppercase();
    }
    match std::str::from_utf8(name) {
        Ok(text) => text.nfd().map(upper).collect::<String>().into_bytes(),
        Err(_) => name.to_vec(),
    }
}

/// A name in upper case, composed as it was.
fn cased(name: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(name) {
        Ok(text) => text.chars().map(upper).collect::<String>().into_bytes(),
        Err(_) => name.to_vec(),
    }
}

fn upper(char: char) -> char {
    let mut upper = char.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(one), None) => one,
        _ => char,
    }
}

/// A name that is looked for.
pub(super) struct NameQuery<'a> {
    name: &'a [u8],
    is_ascii: bool,
    key: Vec<u8>,
    cased: Vec<u8>,
}

impl<'a> NameQuery<'a> {
    pub(super) fn new(name: &'a [u8]) -> Self {
        Self { name, is_ascii: name.is_ascii(), key: fold(name), cased: cased(name) }
    }

    /// How near another name is: 0 if it differs only in case, 1 if it is canonically equivalent to
    /// one that does. `None` for the name itself and for all others. Nothing is allocated for names
    /// of ASCII, which most are.
    pub(super) fn rank(&self, other: &[u8]) -> Option<u8> {
        if self.name == other {
            return None;
        }
        if other.is_ascii() && self.is_ascii {
            return other.eq_ignore_ascii_case(self.name).then_some(0);
        }
        if fold(other) != self.key {
            return None;
        }
        Some(u8::from(cased(other) != self.cased))
    }
}

#[cfg(test)]
mod tests;
