//! Sizes as options have them.

use base::node::parse_bytes;

/// A number of bytes, or one with K, M or G.
///
/// # Errors
/// It is not one, in a sentence.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text).and_then(|n| u64::try_from(n).ok());
    bytes.ok_or_else(|| {
        format!("{text:?} is not a size: expected bytes, or a number with K, M or G")
    })
}

/// The same, and not nothing.
///
/// # Errors
/// It is not one, or 0.
pub(crate) fn some_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("the size must be 1 or more".to_owned()),
        bytes => Ok(bytes),
    }
}
