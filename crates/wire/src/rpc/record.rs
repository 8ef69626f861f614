//! Record marking (RFC 5531 §11): messages cut out of a stream of bytes, and the fragment headers
//! of those that we send.
//!
//! The framer keeps nothing between calls but a scratch buffer: the caller's receive buffer holds
//! a record until all of it is there. A record of one fragment, which is what clients send, is
//! borrowed in place.

use base::limits::{RPC_FRAGMENTS_MAX, RPC_RECORD_MAX, RPC_SCRATCH_KEEP};
use thiserror::Error;

use crate::xdr::Writer;

/// Set in the header of a record's last fragment.
const LAST_FRAGMENT: u32 = 1 << 31;
/// Bytes of a fragment header.
const HEADER: usize = 4;

/// Why a stream can no longer be cut into records. The peer is at fault; close the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RecordError {
    /// The fragments announced so far are longer than a record may be.
    #[error("record of at least {got} bytes exceeds the maximum of {max}")]
    TooLong {
        /// Most bytes.
        max: usize,
        /// Bytes announced.
        got: usize,
    },
    /// Too many fragments, empty ones included.
    #[error("record of more than {max} fragments")]
    TooManyFragments {
        /// Most fragments.
        max: usize,
    },
    /// A record without a single byte: not RPC, and a way to keep us busy.
    #[error("empty record")]
    Empty,
}

/// What [`Framer::next`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framed<'a> {
    /// Ask again when the input, from the same start, has at least this many bytes. More may be
    /// needed then; it is never more than [`Framer::INPUT_MAX`].
    Need(usize),
    /// A whole record.
    Record {
        /// The message.
        body: &'a [u8],
        /// Bytes of the input that it took, headers included.
        consumed: usize,
    },
}

/// Cuts records out of received bytes.
#[derive(Debug, Default)]
pub struct Framer {
    scratch: Vec<u8>,
}

impl Framer {
    /// Most bytes of input that one record can take, fragment headers included: what a receive
    /// buffer must be able to hold.
    pub const INPUT_MAX: usize = RPC_RECORD_MAX + HEADER * RPC_FRAGMENTS_MAX;

    /// A framer for one connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks for a record at the start of `input`, which begins at a fragment header.
    ///
    /// # Errors
    /// [`RecordError`], as soon as a header shows it: nothing is waited for or kept.
    #[inline]
    pub fn next<'a>(&'a mut self, input: &'a [u8]) -> Result<Framed<'a>, RecordError> {
        // The caller is done with the last record; one large one must not hold memory for the life
        // of an idle connection.
        if self.scratch.capacity() > RPC_SCRATCH_KEEP {
            self.scratch = Vec::new();
        }
        if let Some((header, rest)) = input.split_first_chunk::<HEADER>() {
            let header = u32::from_be_bytes(*header);
            let length = (header & !LAST_FRAGMENT) as usize;
            if header & LAST_FRAGMENT != 0 && length > 0 && length <= RPC_RECORD_MAX {
                return Ok(match rest.get(..length) {
                    Some(body) => Framed::Record { body, consumed: HEADER + length },
                    None => Framed::Need(HEADER + length),
                });
            }
        }
        self.next_fragmented(input)
    }

    #[cfg(test)]
    pub(super) fn scratch_capacity(&self) -> usize {
        self.scratch.capacity()
    }

    /// The general case: checks every header that has come, and copies once all have.
    #[cold]
    fn next_fragmented<'a>(&'a mut self, input: &'a [u8]) -> Result<Framed<'a>, RecordError> {
        let consumed = match scan(input)? {
            Scan::Need(bytes) => return Ok(Framed::Need(bytes)),
            Scan::Complete(bytes) => bytes,
        };
        self.scratch.clear();
        let mut rest = input.get(..consumed).unwrap_or_default();
        while let Some((header, after)) = rest.split_first_chunk::<HEADER>() {
            let length = (u32::from_be_bytes(*header) & !LAST_FRAGMENT) as usize;
            let (fragment, after) = after.split_at_checked(length).unwrap_or((after, &[]));
            self.scratch.extend_from_slice(fragment);
            rest = after;
        }
        Ok(Framed::Record { body: &self.scratch, consumed })
    }
}

enum Scan {
    Need(usize),
    Complete(usize),
}

fn scan(input: &[u8]) -> Result<Scan, RecordError> {
    let (mut at, mut total) = (0, 0);
    for _ in 0..RPC_FRAGMENTS_MAX {
        let Some(header) = input.get(at..).and_then(|rest| rest.first_chunk::<HEADER>()) else {
            return Ok(Scan::Need(at + HEADER));
        };
        let header = u32::from_be_bytes(*header);
        let length = (header & !LAST_FRAGMENT) as usize;
        total += length;
        at += HEADER + length;
        if total > RPC_RECORD_MAX {
            return Err(RecordError::TooLong { max: RPC_RECORD_MAX, got: total });
        }
        if header & LAST_FRAGMENT != 0 {
            return match total {
                0 => Err(RecordError::Empty),
                _ if at > input.len() => Ok(Scan::Need(at)),
                _ => Ok(Scan::Complete(at)),
            };
        }
    }
    Err(RecordError::TooManyFragments { max: RPC_FRAGMENTS_MAX })
}

/// Where a record began that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a record that is not ended has no length"]
pub struct RecordMark {
    start: usize,
}

impl RecordMark {
    /// Where in the buffer the record's header begins: truncate to here to give it up.
    pub const fn start(self) -> usize {
        self.start
    }
}

/// Begins a record: its header is patched by [`end_record`].
#[inline]
pub fn begin_record(w: &mut Writer<'_>) -> RecordMark {
    let start = w.len();
    w.u32(0);
    RecordMark { start }
}

/// Ends a record: everything written since [`begin_record`] is its one fragment.
#[inline]
pub fn end_record(w: &mut Writer<'_>, mark: RecordMark) {
    end_record_with_tail(w, mark, 0);
}

/// Ends a record of which the last `extra` bytes (padding included) are sent from elsewhere, right
/// after what is in the buffer.
#[inline]
pub fn end_record_with_tail(w: &mut Writer<'_>, mark: RecordMark, extra: usize) {
    let length = w.len() - mark.start - HEADER + extra;
    debug_assert!(length < LAST_FRAGMENT as usize);
    w.patch_u32(mark.start, LAST_FRAGMENT | length as u32);
}
