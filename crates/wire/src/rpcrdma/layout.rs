//! How a call is put together: what came with its header, and what is read from the client into
//! the gaps (RFC 8166 §3.4.5, §3.5).
//!
//! A position counts bytes of the whole message, data and padding of chunks before it included.
//! The padding of a chunk is not transferred, and belongs to the message all the same.

use std::ops::Range;

use base::limits::RDMA_CALL_MAX;
use thiserror::Error;

use super::chunks::{Piece, ReadSegment};
use crate::xdr::padding;

/// Why a read list fits no message: answer ERR_CHUNK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ChunkError {
    /// Positions must rise, and be those of items of XDR.
    #[error("position {position} of a read chunk is out of order or not aligned")]
    Position {
        /// The position.
        position: u32,
    },
    /// A position behind the end of the message.
    #[error("position {position} of a read chunk is beyond the message")]
    Beyond {
        /// The position.
        position: u32,
    },
    /// A message both behind the header and at position 0, or in neither place.
    #[error("the message is in no place, or in two")]
    MessageLocation,
    /// More bytes than a call may have.
    #[error("a call of more than {RDMA_CALL_MAX} bytes")]
    TooLong,
}

/// Bytes that came with the header, and where they belong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copy {
    /// Of what came.
    pub from: Range<usize>,
    /// Where in the message.
    pub to: usize,
}

/// Bytes to read from the client: `local` is where in the message.
pub type Read = Piece;

/// A message in parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout {
    /// Bytes of the whole message.
    pub length: usize,
    /// What is there already.
    pub copies: Vec<Copy>,
    /// What must be read.
    pub reads: Vec<Read>,
    /// Bytes between them, which are zero.
    pub zeros: Vec<Range<usize>>,
}

/// Where the bytes come from that are not in a chunk of their own.
enum Base<'a> {
    Inline { length: usize },
    Long { segments: &'a [ReadSegment] },
}

impl Base<'_> {
    fn len(&self) -> u64 {
        match self {
            Self::Inline { length } => *length as u64,
            Self::Long { segments } => segments.iter().map(|s| u64::from(s.target.length)).sum(),
        }
    }
}

/// How many segments at the front have this position: a client may send any order.
fn at_position(reads: &[ReadSegment], position: u32) -> usize {
    reads.iter().take_while(|read| read.position == position).count()
}

impl Layout {
    /// The layout of a message of which `inline` bytes came with the header.
    ///
    /// # Errors
    /// [`ChunkError`].
    pub fn of(inline: usize, reads: &[ReadSegment]) -> Result<Self, ChunkError> {
        let (long, mut rest) = reads.split_at(at_position(reads, 0));
        let base = match (inline, long) {
            // What is behind the header of a message that is read is none of it.
            (0, long) if long.iter().all(|read| read.target.length == 0) => {
                return Err(ChunkError::MessageLocation);
            }
            (_, []) => Base::Inline { length: inline },
            (0, segments) => Base::Long { segments },
            _ => return Err(ChunkError::MessageLocation),
        };
        let data: u64 = rest.iter().map(|read| u64::from(read.target.length)).sum();
        let pads = 4 * rest.len() as u64;
        if base.len() + data + pads > RDMA_CALL_MAX as u64 {
            return Err(ChunkError::TooLong);
        }
        // All lengths are now known to fit.
        let (total, mut layout, mut taken) = (base.len() as usize, Self::default(), 0);
        while let Some(first) = rest.first() {
            let position = first.position as usize;
            let (chunk, later) = rest.split_at(at_position(rest, first.position));
            if !position.is_multiple_of(4) || position < layout.length {
                return Err(ChunkError::Position { position: first.position });
            }
            let before = position - layout.length;
            if before > total - taken {
                return Err(ChunkError::Beyond { position: first.position });
            }
            layout.take(&base, taken..taken + before);
            taken += before;
            layout.read(chunk);
            rest = later;
        }
        layout.take(&base, taken..total);
        Ok(layout)
    }

    /// A part of what is in no chunk of its own comes next.
    fn take(&mut self, base: &Base<'_>, part: Range<usize>) {
        match base {
            Base::Inline { .. } => {
                if !part.is_empty() {
                    self.copies.push(Copy { from: part.clone(), to: self.length });
                    self.length += part.len();
                }
            }
            Base::Long { segments } => {
                let mut at = 0;
                for ReadSegment { target, .. } in *segments {
                    let end = at + target.length as usize;
                    let (from, to) = (part.start.max(at), part.end.min(end));
                    if from < to {
                        let offset = target.offset.wrapping_add((from - at) as u64);
                        self.piece(to - from, target.handle, offset);
                    }
                    at = end;
                }
            }
        }
    }

    fn piece(&mut self, length: usize, handle: u32, offset: u64) {
        let local = self.length..self.length + length;
        self.length = local.end;
        self.reads.push(Piece { local, handle, offset });
    }

    /// A chunk comes next, and its padding.
    fn read(&mut self, chunk: &[ReadSegment]) {
        let start = self.length;
        for ReadSegment { target, .. } in chunk.iter().filter(|read| read.target.length > 0) {
            self.piece(target.length as usize, target.handle, target.offset);
        }
        let pad = padding(self.length - start);
        if pad > 0 {
            self.zeros.push(self.length..self.length + pad);
            self.length += pad;
        }
    }

    /// Puts in place what is there already.
    pub fn place(&self, inline: &[u8], message: &mut [u8]) {
        for Copy { from, to } in &self.copies {
            let to = message.get_mut(*to..to + from.len());
            if let (Some(to), Some(from)) = (to, inline.get(from.clone())) {
                to.copy_from_slice(from);
            }
        }
        for zeros in &self.zeros {
            message.get_mut(zeros.clone()).unwrap_or_default().fill(0);
        }
    }
}
