//! Base 64 (RFC 4648 §4): keys, passwords of HTTP and mail, histograms on their way.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// `bytes` as text, with padding.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
        let word = word << (8 * (3 - chunk.len()));
        for n in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * n)) as usize & 63];
            text.push(if n <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// What letters stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Bits behind the last whole byte: 0, 2, 4, or the 6 of a single letter, which stands for
    /// nothing.
    pub left: u32,
}

/// The bytes that `letters` stand for; `None` when one is not of base 64. Padding is no letter:
/// how much of it there may be, and what else is passed over, is for each format to say.
pub fn decode(letters: impl IntoIterator<Item = u8>) -> Option<Decoded> {
    let letters = letters.into_iter();
    let mut bytes = Vec::with_capacity(letters.size_hint().0 * 3 / 4);
    let (mut word, mut left) = (0_u32, 0);
    for letter in letters {
        word = word << 6 | u32::from(value(letter)?);
        left += 6;
        if left >= 8 {
            left -= 8;
            bytes.push((word >> left) as u8);
        }
    }
    Some(Decoded { bytes, left })
}

fn value(letter: u8) -> Option<u8> {
    Some(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
