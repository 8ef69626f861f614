//! UTF-16LE text, and names of files with the characters that Windows forbids in them.
//!
//! Names on disk are bytes, mostly UTF-8. A surrogate that stands alone, as Windows permits, is
//! stored in the generalised form of UTF-8 (three bytes, WTF-8), and comes back as it was.
//! Characters that SMB forbids in a name but POSIX permits are sent as macOS and Samba's vfs_fruit
//! have it: in the private area, U+F001 to U+F029.

use super::codec::{Result, SmbError};

/// Forbidden in a name of SMB, and what stands for it (Services for Macintosh, as `ntfs_sfm`).
const MAPPED: [(u8, u16); 10] = [
    (b'"', 0xf020),
    (b'*', 0xf021),
    (b':', 0xf022),
    (b'<', 0xf023),
    (b'>', 0xf024),
    (b'?', 0xf025),
    (b'\\', 0xf026),
    (b'|', 0xf027),
    (b' ', 0xf028),
    (b'.', 0xf029),
];

/// Text as UTF-16LE.
pub fn encode(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// The units of UTF-16LE bytes.
///
/// # Errors
/// [`SmbError::Value`] for half a unit.
pub fn units(bytes: &[u8]) -> Result<impl Iterator<Item = u16> + Clone + '_> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(SmbError::Value("UTF-16"));
    }
    Ok(pairs.iter().map(|pair| u16::from_le_bytes(*pair)))
}

/// Text from UTF-16LE.
///
/// # Errors
/// [`SmbError::Value`] for what is none.
pub fn decode(bytes: &[u8]) -> Result<String> {
    let text: std::result::Result<String, _> = char::decode_utf16(units(bytes)?).collect();
    text.map_err(|_| SmbError::Value("UTF-16"))
}

/// A path or name from UTF-16LE as bytes of a file system, separators still `\`; characters of the
/// private area become what they stand for.
///
/// # Errors
/// [`SmbError::Value`] for half a unit, or one that stands for a separator.
pub fn decode_name(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut name = Vec::with_capacity(bytes.len());
    for one in char::decode_utf16(units(bytes)?) {
        let unit = match one {
            Ok(char) => match u16::try_from(char as u32) {
                Ok(unit) => unit,
                Err(_) => {
                    name.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                    continue;
                }
            },
            Err(lone) => lone.unpaired_surrogate(),
        };
        match unit {
            // It would be taken for a separator.
            0xf026 => name.extend_from_slice(&[0xef, 0x80, 0xa6]),
            0xf001..=0xf01f => name.push((unit - 0xf000) as u8),
            0xf020..=0xf029 => {
                let stands_for = MAPPED.iter().find(|(_, mapped)| *mapped == unit);
                name.extend(stands_for.map(|(byte, _)| *byte));
            }
            unit => push_unit(&mut name, unit),
        }
    }
    Ok(name)
}

/// A unit in UTF-8's form, a surrogate like any other.
fn push_unit(name: &mut Vec<u8>, unit: u16) {
    match unit {
        0..0x80 => name.push(unit as u8),
        0x80..0x800 => name.extend([0xc0 | (unit >> 6) as u8, 0x80 | (unit & 0x3f) as u8]),
        _ => name.extend([
            0xe0 | (unit >> 12) as u8,
            0x80 | (unit >> 6 & 0x3f) as u8,
            0x80 | (unit & 0x3f) as u8,
        ]),
    }
}

/// A name of a file system as UTF-16LE, appended. A byte that is no UTF-8 becomes U+FFFD, and the
/// name cannot be opened by it.
pub fn encode_name(name: &[u8], out: &mut Vec<u8>) {
    let last = name.len().saturating_sub(1);
    let mut at = 0;
    while let Some(&byte) = name.get(at) {
        if byte < 0x80 {
            let at_end = at == last && name != b"." && name != b"..";
            out.extend_from_slice(&ascii(byte, at_end).to_le_bytes());
            at += 1;
            continue;
        }
        let (used, units) = beyond_ascii(name.get(at..).unwrap_or_default());
        units.iter().filter(|unit| **unit != 0).for_each(|unit| {
            out.extend_from_slice(&unit.to_le_bytes());
        });
        at += used;
    }
}

/// What a byte is sent as; a blank or a dot at the end of a name would be cut off by Windows.
fn ascii(byte: u8, at_end: bool) -> u16 {
    match byte {
        1..0x20 => 0xf000 + u16::from(byte),
        b' ' | b'.' if !at_end => u16::from(byte),
        _ => match MAPPED.iter().find(|(forbidden, _)| *forbidden == byte) {
            Some((_, mapped)) => *mapped,
            None => u16::from(byte),
        },
    }
}

/// The character at the front, in bytes and units.
fn beyond_ascii(bytes: &[u8]) -> (usize, [u16; 2]) {
    let first = bytes.get(..bytes.len().min(4)).unwrap_or_default();
    let valid = match std::str::from_utf8(first) {
        Ok(text) => text,
        Err(error) => {
            let valid = first.get(..error.valid_up_to()).unwrap_or_default();
            std::str::from_utf8(valid).unwrap_or_default()
        }
    };
    if let Some(char) = valid.chars().next() {
        let mut units = [0; 2];
        char.encode_utf16(&mut units);
        return (char.len_utf8(), units);
    }
    match bytes {
        // A surrogate that stands alone.
        [0xed, b @ 0xa0..=0xbf, c @ 0x80..=0xbf, ..] => {
            (3, [0xd000 | u16::from(b & 0x3f) << 6 | u16::from(c & 0x3f), 0])
        }
        _ => (1, [0xfffd, 0]),
    }
}

/// Upper case of a unit, as the tables of file systems have it: simple, one to one.
pub fn upper(unit: u16) -> u16 {
    if unit < 0x80 {
        return u16::from((unit as u8).to_ascii_uppercase());
    }
    let Some(char) = char::from_u32(u32::from(unit)) else { return unit };
    let mut upper = char.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(one), None) => u16::try_from(one as u32).unwrap_or(unit),
        _ => unit,
    }
}
