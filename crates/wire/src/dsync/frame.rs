//! Frames: a length of four bytes, then one message.

use base::limits::DSYNC_FRAME_MAX;

use super::Message;
use crate::xdr::{DecodeError, Encode, Writer, decode_all};

/// Bytes before a message.
pub const HEAD: usize = 4;

/// Appends a frame with this message.
pub fn put(message: &Message<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    let w = &mut Writer::new(out);
    w.u32(0);
    message.encode(w);
    let length = w.len() - start - HEAD;
    debug_assert!(length <= DSYNC_FRAME_MAX, "a frame that the other side refuses");
    w.patch_u32(start, length as u32);
}

/// The length of the message that follows a frame's head.
///
/// # Errors
/// [`DecodeError::TooLong`], before anything is kept for it.
pub fn length(head: [u8; HEAD]) -> Result<usize, DecodeError> {
    let got = u32::from_be_bytes(head) as usize;
    if got > DSYNC_FRAME_MAX {
        return Err(DecodeError::TooLong { what: "frame", max: DSYNC_FRAME_MAX, got });
    }
    Ok(got)
}

/// The message of a frame, without its head.
///
/// # Errors
/// What is wrong with it.
pub fn message(body: &[u8]) -> Result<Message<'_>, DecodeError> {
    decode_all(body)
}
