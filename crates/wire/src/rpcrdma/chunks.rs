//! Chunks: ranges of a peer's memory that data is read from or written to (RFC 8166 §3.4).

use std::ops::Range;

use base::limits::{RDMA_READ_SEGMENTS_MAX, RDMA_SEGMENTS_MAX, RDMA_WRITE_CHUNKS_MAX};

use crate::xdr::{Decode, DecodeError, Encode, Item, Reader, Seq, Writer, padding};

xdr_struct! {
    /// A range of the requester's memory (`xdr_rdma_segment`).
    #[derive(Copy)]
    pub struct Segment {
        /// Its key (R_key, STag).
        pub handle: u32,
        /// Bytes; in a reply those that were written.
        pub length: u32,
        /// Where it begins, as the key has it.
        pub offset: u64,
    }
}

xdr_struct! {
    /// A segment of the read list (`xdr_read_chunk`). Those of one position are one chunk.
    #[derive(Copy)]
    pub struct ReadSegment {
        /// Where in the whole message the data belongs; 0 is the message itself.
        pub position: u32,
        /// Where it is.
        pub target: Segment,
    }
}

/// A write chunk or reply chunk (`xdr_write_chunk`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chunk(pub Vec<Segment>);

impl Encode for Chunk {
    fn encode(&self, w: &mut Writer<'_>) {
        w.u32(self.0.len() as u32);
        self.0.iter().for_each(|segment| segment.encode(w));
    }
}

impl Decode<'_> for Chunk {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Seq::<Segment, RDMA_SEGMENTS_MAX>::item(r, "xdr_write_chunk").map(|seq| Self(seq.0))
    }
}

#[cfg(test)]
impl crate::arb::Arb<'_> for Chunk {
    fn arb(g: &mut crate::arb::Gen<'_>) -> Self {
        Self(g.list(4))
    }
}

/// A part of our memory, and where in the peer's it comes from or goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The range in local memory.
    pub local: Range<usize>,
    /// The peer's key.
    pub handle: u32,
    /// Where in its memory.
    pub offset: u64,
}

/// Data that fills a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// What goes where.
    pub pieces: Vec<Piece>,
    /// The chunk as the reply has it: with the lengths that were written.
    pub filled: Chunk,
}

impl Chunk {
    /// Bytes that fit.
    pub fn capacity(&self) -> u64 {
        self.0.iter().map(|segment| u64::from(segment.length)).sum()
    }

    /// The chunk as a reply has it that does not use it (RFC 8166 §4.4.6).
    pub fn unused(&self) -> Self {
        Self(self.0.iter().map(|segment| Segment { length: 0, ..*segment }).collect())
    }

    /// How `data`, a range of local memory, fills the chunk. `None` if it does not fit.
    pub fn fill(&self, data: Range<usize>) -> Option<Transfer> {
        let (mut at, mut pieces, mut filled) = (data.start, Vec::new(), Vec::new());
        for segment in &self.0 {
            let length = data.end.saturating_sub(at).min(segment.length as usize);
            if length > 0 {
                let Segment { handle, offset, .. } = *segment;
                pieces.push(Piece { local: at..at + length, handle, offset });
            }
            filled.push(Segment { length: length as u32, ..*segment });
            at += length;
        }
        (at == data.end).then_some(Transfer { pieces, filled: Self(filled) })
    }
}

/// The three lists of a header.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chunks {
    /// Where parts of the message are.
    pub reads: Vec<ReadSegment>,
    /// Where data of the reply goes.
    pub writes: Vec<Chunk>,
    /// Where the reply goes if it is too long to be sent.
    pub reply: Option<Chunk>,
}

impl Chunks {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty() && self.reply.is_none()
    }

    /// The first key in them: the one for remote invalidation with SEND, if the peer supports that
    /// (RFC 8797 §4.1).
    pub fn first_handle(&self) -> Option<u32> {
        let reads = self.reads.iter().map(|read| read.target.handle);
        let writes = self.writes.iter().chain(&self.reply).flat_map(|chunk| &chunk.0);
        reads.chain(writes.map(|segment| segment.handle)).next()
    }

    /// Whether nothing in them has the key 0, which no memory has, or reaches beyond the end of
    /// what a key can address; and no chunk shares a range with another or with itself.
    pub fn are_sound(&self) -> bool {
        let writes = self.writes.iter().chain(&self.reply).flat_map(|chunk| &chunk.0);
        let written: Vec<Segment> = writes.copied().filter(|segment| segment.length > 0).collect();
        let read = self.reads.iter().map(|read| &read.target);
        let good =
            |s: &Segment| s.handle != 0 && s.offset.checked_add(u64::from(s.length)).is_some();
        if !read.chain(&written).all(good) {
            return false;
        }
        // What is written must not be written twice; what is read may be read twice.
        let mut ranges: Vec<_> = written.iter().map(|s| (s.handle, s.offset, s.length)).collect();
        ranges.sort_unstable();
        ranges.windows(2).all(|two| match two {
            [(one, at, length), (other, next, _)] => {
                one != other || at + u64::from(*length) <= *next
            }
            _ => true,
        })
    }
}

impl Encode for Chunks {
    fn encode(&self, w: &mut Writer<'_>) {
        for read in &self.reads {
            w.bool(true);
            read.encode(w);
        }
        w.bool(false);
        for chunk in &self.writes {
            w.bool(true);
            chunk.encode(w);
        }
        w.bool(false);
        self.reply.encode(w);
    }
}

impl Decode<'_> for Chunks {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let reads = r.list(RDMA_READ_SEGMENTS_MAX, "rdma_reads")?;
        let writes = r.list(RDMA_WRITE_CHUNKS_MAX, "rdma_writes")?;
        Ok(Self { reads, writes, reply: Option::decode(r)? })
    }
}

#[cfg(test)]
impl crate::arb::Arb<'_> for Chunks {
    fn arb(g: &mut crate::arb::Gen<'_>) -> Self {
        Self { reads: g.list(4), writes: g.list(3), reply: g.arb() }
    }
}

/// A message without these data items, which are in order and each followed by its padding.
pub fn reduced(message: &[u8], items: &[Range<usize>], out: &mut Vec<u8>) {
    let mut from = 0;
    for item in items {
        out.extend_from_slice(message.get(from..item.start).unwrap_or_default());
        from = item.end + padding(item.len());
    }
    out.extend_from_slice(message.get(from..).unwrap_or_default());
}
