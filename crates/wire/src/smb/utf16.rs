//! UTF-16LE text, and names of files with the characters that Windows forbids in them.
//!
//! Names on disk are bytes, mostly UTF-8. A surrogate that stands alone, as Windows permits, is
//! stored in the generalised form of UTF-8 (three bytes, WTF-8), and comes back as it was.
//! Characters that SMB forbids in a name but POSIX permits are sent as macOS and Samba's vfs_fruit
//! have it: in the private area, U+F001 to U+F029. Bytes that are no UTF-8 are sent as Cygwin does,
//! as U+F080 to U+F0FF. A name that has such a character itself is sent byte by byte in that form,
//! so that no two names are sent alike.

use super::codec::{Result, SmbError};

/// Where bytes are in the private area.
const PRIVATE: u16 = 0xf000;

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

/// A name from UTF-16LE as bytes of a file system: the inverse of [`encode_name`]. A blank or a dot
/// at the end may also be sent as it is.
///
/// # Errors
/// [`SmbError::Value`] for half a unit, and for what no name of a file system is sent as: a file
/// made by it would be listed under another name.
pub fn decode_name(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut name = Vec::with_capacity(bytes.len());
    let mut chars = char::decode_utf16(units(bytes)?).peekable();
    while let Some(one) = chars.next() {
        let is_last = chars.peek().is_none();
        match one {
            Ok(char) => match stands_for(char, is_last) {
                Some(byte) => name.push(byte),
                None => name.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            },
            Err(lone) => push_surrogate(&mut name, lone.unpaired_surrogate()),
        }
    }
    let mut again = Vec::with_capacity(bytes.len());
    encode_name(&name, &mut again);
    let is_same = match bytes.split_last_chunk() {
        Some((front, [b' ' | b'.', 0])) => again.get(..front.len()) == Some(front),
        _ => again == bytes,
    };
    if is_same { Ok(name) } else { Err(SmbError::Value("name")) }
}

/// The byte that a character of the private area stands for in a name.
fn stands_for(char: char, is_last: bool) -> Option<u8> {
    let unit = u16::try_from(u32::from(char)).ok()?;
    match unit {
        // Control characters, and bytes that are no UTF-8.
        0xf001..=0xf01f | 0xf080..=0xf0ff => Some((unit - PRIVATE) as u8),
        // A blank and a dot are sent as they are anywhere else.
        0xf028 | 0xf029 if !is_last => None,
        _ => MAPPED.iter().find(|(_, mapped)| *mapped == unit).map(|(byte, _)| *byte),
    }
}

/// A surrogate that stands alone, in the form that UTF-8 has for characters of three bytes.
fn push_surrogate(name: &mut Vec<u8>, unit: u16) {
    name.extend([
        0xe0 | (unit >> 12) as u8,
        0x80 | (unit >> 6 & 0x3f) as u8,
        0x80 | (unit & 0x3f) as u8,
    ]);
}

/// A name of a file system as UTF-16LE, appended: at most one unit for each byte. Different names
/// are sent differently, and [`decode_name`] has each back.
pub fn encode_name(name: &[u8], out: &mut Vec<u8>) {
    let mut put = |unit: u16| out.extend_from_slice(&unit.to_le_bytes());
    if matches!(name, b"." | b"..") {
        return name.iter().for_each(|byte| put(u16::from(*byte)));
    }
    let mut rest = name;
    while let Some((&first, behind)) = rest.split_first() {
        if first < 0x80 {
            put(ascii(first, behind.is_empty()));
            rest = behind;
            continue;
        }
        let (part, units, behind) = beyond_ascii(rest);
        match units {
            Some(units) => units.iter().filter(|unit| **unit != 0).for_each(|unit| put(*unit)),
            None => part.iter().for_each(|byte| put(PRIVATE + u16::from(*byte))),
        }
        rest = behind;
    }
}

/// What a byte is sent as; a blank or a dot at the end of a name would be cut off by Windows.
fn ascii(byte: u8, at_end: bool) -> u16 {
    match byte {
        1..0x20 => PRIVATE + u16::from(byte),
        b' ' | b'.' if !at_end => u16::from(byte),
        _ => match MAPPED.iter().find(|(forbidden, _)| *forbidden == byte) {
            Some((_, mapped)) => *mapped,
            None => u16::from(byte),
        },
    }
}

/// The character at the front: its bytes, its units unless its bytes are sent one by one, and what
/// is behind it. One by one go those of no character, of one that would stand for a byte, and of a
/// surrogate that would be taken for one half of a pair.
fn beyond_ascii(bytes: &[u8]) -> (&[u8], Option<[u16; 2]>, &[u8]) {
    let first = bytes.get(..bytes.len().min(4)).unwrap_or_default();
    let valid = match std::str::from_utf8(first) {
        Ok(text) => text,
        Err(error) => {
            let valid = first.get(..error.valid_up_to()).unwrap_or_default();
            std::str::from_utf8(valid).unwrap_or_default()
        }
    };
    let split = |at: usize| bytes.split_at_checked(at).unwrap_or((bytes, &[]));
    if let Some(char) = valid.chars().next() {
        let (part, behind) = split(char.len_utf8());
        let mut units = [0; 2];
        char.encode_utf16(&mut units);
        let is_taken = stands_for(char, behind.is_empty()).is_some();
        return (part, (!is_taken).then_some(units), behind);
    }
    let Some(unit) = surrogate(bytes) else {
        let (part, behind) = split(1);
        return (part, None, behind);
    };
    let (part, behind) = split(3);
    let is_half = unit < 0xdc00 && surrogate(behind).is_some_and(|next| next >= 0xdc00);
    (part, (!is_half).then_some([unit, 0]), behind)
}

/// The surrogate at the front that stands alone.
fn surrogate(bytes: &[u8]) -> Option<u16> {
    match bytes {
        [0xed, b @ 0xa0..=0xbf, c @ 0x80..=0xbf, ..] => {
            Some(0xd000 | u16::from(b & 0x3f) << 6 | u16::from(c & 0x3f))
        }
        _ => None,
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

#[cfg(test)]
mod tests;
