//! The private data of each side at connection establishment (RFC 8797).

use base::limits::RDMA_INLINE_DEFAULT;

/// RFC 8797 §4: the magic number of this format.
const MAGIC: [u8; 4] = [0xf6, 0xab, 0x0e, 0x18];
const VERSION: u8 = 1;
/// The sender can have its memory invalidated by the peer's SEND.
const REMOTE_INVALIDATION: u8 = 1;
/// Sizes are in units of this many bytes.
const UNIT: usize = 1024;

/// The parameters of a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrivateData {
    /// Whether it can have its memory invalidated remotely.
    pub remote_invalidation: bool,
    /// Most bytes that it will send at once: 1 KiB to 256 KiB.
    pub send: usize,
    /// Most bytes that it can receive at once.
    pub receive: usize,
}

/// The defaults for a peer without private data (RFC 8166 §3.3.2).
impl Default for PrivateData {
    fn default() -> Self {
        let (send, receive) = (RDMA_INLINE_DEFAULT, RDMA_INLINE_DEFAULT);
        Self { remote_invalidation: false, send, receive }
    }
}

impl PrivateData {
    /// Bytes of it.
    pub const LENGTH: usize = 8;

    /// Decodes it; `None` for any other format. What a connection manager appends is ignored.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let [m, a, g, i, version, flags, send, receive] = *bytes.first_chunk()?;
        if [m, a, g, i] != MAGIC || version != VERSION {
            return None;
        }
        let size = |byte: u8| (usize::from(byte) + 1) * UNIT;
        let remote_invalidation = flags & REMOTE_INVALIDATION != 0;
        Some(Self { remote_invalidation, send: size(send), receive: size(receive) })
    }

    /// Writes it. Sizes are rounded down to the units of the format.
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let size = |bytes: usize| u8::try_from((bytes / UNIT).saturating_sub(1)).unwrap_or(u8::MAX);
        let flags = if self.remote_invalidation { REMOTE_INVALIDATION } else { 0 };
        let [m, a, g, i] = MAGIC;
        [m, a, g, i, VERSION, flags, size(self.send), size(self.receive)]
    }
}
