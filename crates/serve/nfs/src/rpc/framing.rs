//! Messages on a byte stream: record marking (RFC 5531 §11). Nothing below a connection knows of
//! it: calls and replies are messages there, with room before them if their framing wants some.

use wire::rpc::{RecordMark, begin_record, end_record, end_record_with_tail};
use wire::xdr::Writer;

/// Bytes that a record wants before its message, for its marker.
pub(super) const HEADROOM: usize = 4;

/// Begins a record in `out`: a message follows.
#[inline]
pub(super) fn begin(out: &mut Vec<u8>) -> RecordMark {
    begin_record(&mut Writer::new(out))
}

/// Ends it; `tail` bytes of its message are sent from elsewhere, right behind it.
#[inline]
pub(super) fn end(out: &mut Vec<u8>, mark: RecordMark, tail: usize) {
    end_record_with_tail(&mut Writer::new(out), mark, tail);
}

/// Makes a record of a message that has [`HEADROOM`] before it.
pub(super) fn seal(record: &mut [u8]) {
    const LAST_FRAGMENT: u32 = 1 << 31;
    debug_assert!(record.len() >= HEADROOM, "there is room for a marker");
    let marker = LAST_FRAGMENT | record.len().saturating_sub(HEADROOM) as u32;
    if let Some(first) = record.first_chunk_mut() {
        *first = marker.to_be_bytes();
    }
}

/// Appends a message as a record.
pub(super) fn append(out: &mut Vec<u8>, message: &[u8]) {
    let mut w = Writer::new(out);
    let mark = begin_record(&mut w);
    w.raw(message);
    end_record(&mut w, mark);
}

#[cfg(test)]
mod tests;
