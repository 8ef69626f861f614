//! DER (X.690): one value after the other, without copying. Just enough to find something in a
//! certificate; what is not well-formed ends the search.

/// INTEGER.
pub const INTEGER: u8 = 0x02;
/// OCTET STRING.
pub const OCTETS: u8 = 0x04;
/// OBJECT IDENTIFIER.
pub const OBJECT: u8 = 0x06;
/// SEQUENCE.
pub const SEQUENCE: u8 = 0x30;
/// SET.
pub const SET: u8 = 0x31;

/// Tag and content of the value at the front, and what is behind it.
pub fn next(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = der.split_first_chunk::<2>()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => (usize::from(*rest.first()?), rest.get(1..)?),
        0x82 => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        // No certificate is that long.
        _ => return None,
    };
    let (content, behind) = rest.split_at_checked(length)?;
    Some((tag, content, behind))
}

/// The values in `der`, one after the other.
pub fn values(mut der: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (tag, content, behind) = next(der)?;
        der = behind;
        Some((tag, content))
    })
}
