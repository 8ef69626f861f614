//! dsync: the protocol between the two sides of a synchronisation of directories. One side, the
//! source, reads a tree; the other, the destination, makes its own the same and decides what it
//! needs for that. `docs/protocols/dsync.md` has the order of messages.
//!
//! Everything is XDR (RFC 4506) in frames ([`frame`]): a length, then one [`Message`]. Names are
//! bytes, as on disk.
//!
//! - [`entry`]: the metadata of a file.
//! - [`frame`]: cutting frames, and writing them.
//! - [`message`]: the messages.

pub mod entry;
pub mod frame;
pub mod message;

#[cfg(test)]
mod tests;

pub use entry::{Entry, FileId, Kind, Meta, Time, Xattr};
pub use message::*;

use crate::xdr::{Decode, DecodeError, Encode, Reader, Writer};

/// What both sides begin with: that it is dsync, whatever else a program may print first.
pub const MAGIC: [u8; 8] = *b"PLMDSYNC";
/// The version of the messages, sent by both sides. Another one is refused.
pub const VERSION: u32 = 8;

/// A byte string of at most `MAX` bytes that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, PartialOrd, Ord, Hash)]
pub struct Bytes<const MAX: usize>(pub Vec<u8>);

impl<const MAX: usize> Encode for Bytes<MAX> {
    fn encode(&self, w: &mut Writer<'_>) {
        debug_assert!(self.0.len() <= MAX, "a string longer than the other side takes");
        w.opaque(&self.0);
    }
}

impl<const MAX: usize> Decode<'_> for Bytes<MAX> {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self(r.opaque(MAX, "string")?.to_vec()))
    }
}

#[cfg(test)]
impl<const MAX: usize> crate::arb::Arb<'_> for Bytes<MAX> {
    fn arb(g: &mut crate::arb::Gen<'_>) -> Self {
        Self(g.bytes(MAX).to_vec())
    }
}
