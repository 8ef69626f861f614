//! Text of negotiations (RFC 7143 §6.1): pairs `key=value`, each ended by a zero byte, which may go
//! over several PDUs.

use base::limits::{ISCSI_KEY_MAX, ISCSI_LARGE_VALUE_MAX, ISCSI_PAIRS_MAX, ISCSI_VALUE_MAX};
use thiserror::Error;

use super::keys::Key;

/// Why text cannot be understood. The peer is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TextError {
    /// More text than we take of one negotiation.
    #[error("text of {got} bytes exceeds the maximum of {max}")]
    TooLong {
        /// Most bytes.
        max: usize,
        /// Bytes so far.
        got: usize,
    },
    /// More pairs than we take.
    #[error("more than {max} pairs of key and value")]
    TooManyPairs {
        /// Most pairs.
        max: usize,
    },
    /// The last pair has no zero byte at its end.
    #[error("the last pair is not ended")]
    Unterminated,
    /// Text without `=`.
    #[error("a pair has no equals sign")]
    NoEquals,
    /// A key that is empty, too long, or has characters that keys may not have.
    #[error("a key is not well formed")]
    BadKey,
    /// A value that is too long or not UTF-8.
    #[error("a value is not well formed")]
    BadValue,
}

/// A key and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair<'a> {
    /// The key, well formed.
    pub key: &'a str,
    /// The value; it may be empty.
    pub value: &'a str,
}

/// Collects the text of PDUs until one without the C bit.
#[derive(Debug)]
pub struct Collector {
    text: Vec<u8>,
    max: usize,
    is_open: bool,
}

impl Collector {
    /// Takes text of at most `max` bytes before it is whole.
    pub const fn new(max: usize) -> Self {
        Self { text: Vec::new(), max, is_open: false }
    }

    /// Whether the collected text continues in the next PDU.
    pub const fn is_open(&self) -> bool {
        self.is_open
    }

    /// Bytes of memory that it holds.
    pub const fn bytes(&self) -> usize {
        self.text.capacity()
    }

    /// Takes the data segment of a PDU. When it is the last, the text is there until the next call.
    ///
    /// # Errors
    /// [`TextError::TooLong`]; nothing is kept then.
    pub fn push(&mut self, data: &[u8], to_be_continued: bool) -> Result<Option<&[u8]>, TextError> {
        if !self.is_open {
            self.text.clear();
        }
        let got = self.text.len() + data.len();
        if got > self.max {
            self.text = Vec::new();
            self.is_open = false;
            return Err(TextError::TooLong { max: self.max, got });
        }
        self.text.extend_from_slice(data);
        self.is_open = to_be_continued;
        Ok((!to_be_continued).then_some(&self.text[..]))
    }
}

/// The pairs of whole text, in their order. Empty ones, which some initiators pad with, are
/// skipped.
///
/// # Errors
/// The first thing that is wrong.
pub fn parse(text: &[u8]) -> Result<Vec<Pair<'_>>, TextError> {
    let mut pairs = Vec::new();
    let Some((last, text)) = text.split_last() else { return Ok(pairs) };
    if *last != 0 {
        return Err(TextError::Unterminated);
    }
    for piece in text.split(|byte| *byte == 0).filter(|piece| !piece.is_empty()) {
        if pairs.len() == ISCSI_PAIRS_MAX {
            return Err(TextError::TooManyPairs { max: ISCSI_PAIRS_MAX });
        }
        pairs.push(pair(piece)?);
    }
    Ok(pairs)
}

fn pair(piece: &[u8]) -> Result<Pair<'_>, TextError> {
    let at = piece.iter().position(|byte| *byte == b'=').ok_or(TextError::NoEquals)?;
    let (key, value) = piece.split_at_checked(at).ok_or(TextError::NoEquals)?;
    let value = value.get(1..).unwrap_or_default();
    if !is_key(key) {
        return Err(TextError::BadKey);
    }
    let key = std::str::from_utf8(key).map_err(|_| TextError::BadKey)?;
    let is_large = Key::of(key).is_some_and(Key::is_large_binary);
    if value.len() > if is_large { ISCSI_LARGE_VALUE_MAX } else { ISCSI_VALUE_MAX } {
        return Err(TextError::BadValue);
    }
    let value = std::str::from_utf8(value).map_err(|_| TextError::BadValue)?;
    Ok(Pair { key, value })
}

/// Whether it is a key (§6.1): a letter, then letters, digits and a few signs. Extensions such as
/// `X#NodeArchitecture` have a number sign as well.
fn is_key(key: &[u8]) -> bool {
    let sign = |byte: &u8| byte.is_ascii_alphanumeric() || b".-+@_#".contains(byte);
    key.len() <= ISCSI_KEY_MAX
        && key.first().is_some_and(u8::is_ascii_alphabetic)
        && key.iter().all(sign)
}

/// Whether a key that the RFC has comes twice in one text (§6.2: a key is negotiated once).
pub fn has_key_twice(pairs: &[Pair<'_>]) -> bool {
    let mut keys: Vec<Key> = pairs.iter().filter_map(|pair| Key::of(pair.key)).collect();
    keys.sort_unstable();
    keys.windows(2).any(|two| two[0] == two[1])
}

/// Appends a pair.
pub fn put(out: &mut Vec<u8>, key: &str, value: &str) {
    debug_assert!(is_key(key.as_bytes()) && !value.contains('\0'), "{key}={value:?}");
    out.extend_from_slice(key.as_bytes());
    out.push(b'=');
    out.extend_from_slice(value.as_bytes());
    out.push(0);
}

/// Text cut into data segments of at most `max` bytes, each with whether the text continues: one
/// segment at least. A `max` of 0 counts as 1.
pub fn segments(text: &[u8], max: usize) -> impl Iterator<Item = (&[u8], bool)> {
    let max = max.max(1);
    let count = text.len().div_ceil(max).max(1);
    (0..count).map(move |i| {
        let end = text.len().min((i + 1) * max);
        (text.get(i * max..end).unwrap_or_default(), i + 1 < count)
    })
}
