//! Names for files that survive restart and rename. A protocol carries them as opaque bytes.

use base::limits::NFS3_FHSIZE;
use base::text::hex;

/// An opaque file handle: at most 64 bytes, so that it fits NFSv3. Made and read by a back end.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle {
    len: u8,
    bytes: [u8; NFS3_FHSIZE],
}

impl Handle {
    /// A handle of these bytes; `None` when there are none or too many.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() || bytes.len() > NFS3_FHSIZE {
            return None;
        }
        let mut all = [0; NFS3_FHSIZE];
        all[..bytes.len()].copy_from_slice(bytes);
        Some(Self { len: bytes.len() as u8, bytes: all })
    }

    /// A handle of eight bytes, for what is not in a back end.
    pub fn short(bytes: [u8; 8]) -> Self {
        let mut all = [0; NFS3_FHSIZE];
        all[..8].copy_from_slice(&bytes);
        Self { len: 8, bytes: all }
    }

    /// The bytes on the wire.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Handle({})", hex(self.as_bytes()))
    }
}
