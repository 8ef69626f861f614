//! RPC over RDMA, version 1 (RFC 8166): the header before each message, its chunk lists, what
//! chunks do to a message, and the private data of a connection (RFC 8797).
//!
//! A message is *reduced* when data of it is moved by chunks: the data and its padding are left
//! out, its length stays (§3.4.4). Which data may be, the bindings of NFS say (RFC 8267): [`ddp`].
//! Above the framing a message is always whole, so that nothing that keeps messages (the
//! duplicate-request cache, a slot) knows how they came.

mod chunks;
pub mod ddp;
mod header;
mod layout;
mod private;

pub use chunks::{Chunk, Chunks, Piece, ReadSegment, Segment, Transfer, reduced};
pub use header::{Body, Header, HeaderError, Refusal, VERSION};
pub use layout::{ChunkError, Copy, Layout, Read};
pub use private::PrivateData;

#[cfg(test)]
mod tests;
