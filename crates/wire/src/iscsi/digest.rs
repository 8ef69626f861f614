//! Header and data digests: CRC32C (RFC 7143 §13.1), sent with its least significant byte first.

/// Bytes of a digest.
pub const DIGEST: usize = 4;

/// Which digests a connection has. During login there are none; each direction begins to use
/// them with the first PDU of the full feature phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Digests {
    /// After the basic and additional header segments.
    pub header: bool,
    /// After a data segment and its padding, unless it is empty.
    pub data: bool,
}

/// A CRC32C that is being computed over pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Crc32c(u32);

impl Crc32c {
    /// Of no bytes yet.
    pub const fn new() -> Self {
        Self(0)
    }

    /// Continues with these bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0 = crc32c::crc32c_append(self.0, bytes);
    }

    /// The same, for a chain of calls.
    #[must_use]
    pub fn with(mut self, bytes: &[u8]) -> Self {
        self.update(bytes);
        self
    }

    /// The digest as it is sent.
    pub const fn bytes(self) -> [u8; DIGEST] {
        self.0.to_le_bytes()
    }
}

/// The digest of these bytes, as it is sent.
pub fn digest(bytes: &[u8]) -> [u8; DIGEST] {
    Crc32c::new().with(bytes).bytes()
}

/// The digest of a data segment and the zero bytes that pad it to a multiple of four.
pub fn data_digest(data: &[u8]) -> [u8; DIGEST] {
    Crc32c::new().with(data).with(pad(data.len())).bytes()
}

/// The zero bytes that pad a segment of this many bytes.
pub const fn pad(data: usize) -> &'static [u8] {
    match data % 4 {
        1 => &[0; 3],
        2 => &[0; 2],
        3 => &[0],
        _ => &[],
    }
}
