//! Messages on a TCP connection (MS-SMB2 §2.1): a zero byte, a length of 24 bits, the message.

use super::codec::{Result, SmbError};

/// Bytes before a message.
pub const PREFIX: usize = 4;

/// A keep-alive of NetBIOS (RFC 1002 §4.3.6), which old clients send on this port too: it is
/// nothing.
pub const KEEP_ALIVE: [u8; PREFIX] = [0x85, 0, 0, 0];

/// Bytes of the message behind a prefix.
///
/// # Errors
/// [`SmbError::Value`] if it is no such prefix (a NetBIOS session request is none);
/// [`SmbError::Limit`] beyond `max`.
pub fn length(prefix: [u8; PREFIX], max: usize) -> Result<usize> {
    let [kind, length @ ..] = prefix;
    if kind != 0 {
        return Err(SmbError::Value("frame"));
    }
    let [a, b, c] = length;
    let length = u32::from_be_bytes([0, a, b, c]) as usize;
    if length > max { Err(SmbError::Limit("frame")) } else { Ok(length) }
}

/// The prefix of a message of these bytes; `None` if it is too long to have one.
pub fn prefix(length: usize) -> Option<[u8; PREFIX]> {
    let length = u32::try_from(length).ok().filter(|length| *length < 1 << 24)?;
    Some(length.to_be_bytes())
}
