//! One finished operation, as the request path writes it down: 64 bytes, no pointers.
//!
//! Every breakdown (operation, client, user, share, file, latency, size, offset, status) is a
//! function of this record, so a new question needs no new code on the request path.

pub use base::protocol::Protocol;

use crate::phases::PhaseParts;

/// Bits of [`OpRecord::flags`].
pub mod flag {
    /// The reply came from the duplicate-request cache; counted apart from `ops`.
    pub const REPLAY: u8 = 1;
    /// `offset` and `size` are valid (READ, WRITE, COMMIT).
    pub const HAS_RANGE: u8 = 2;
    /// `file` is valid.
    pub const HAS_FILE: u8 = 4;
    /// The data went from the client to the server (WRITE).
    pub const INWARD: u8 = 8;
    /// The operation waited for the pool instead of being answered at once.
    pub const POOLED: u8 = 16;
    /// A piece of the data of an operation that is still in progress: its bytes are counted as they
    /// flow, the operation itself when it ends, without them.
    pub const PIECE: u8 = 32;
    /// The call came by RDMA instead of over a stream.
    pub const RDMA: u8 = 64;
}

/// A file as the statistics count it: a hash of file system, inode and generation, so that a name
/// can change and be reused without two files becoming one. 0 is "no file".
pub type FileId = u64;

/// One finished operation. `done_ns` decides which second it belongs to, everywhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct OpRecord {
    /// Wall time at which the reply was handed to the network, in ns since the epoch: for each
    /// protocol in `docs/howto/watch.md`.
    pub done_ns: u64,
    /// From the arrival of the request to `done_ns`.
    pub latency_ns: u64,
    /// The file, or 0.
    pub file: FileId,
    /// Byte offset within the file, for operations that have one.
    pub offset: u64,
    /// What `latency_ns` was spent with.
    pub phases: PhaseParts,
    /// Bytes of file data that the operation moved (READ, WRITE); 0 for others.
    pub bytes: u32,
    /// Bytes asked for (READ count, WRITE length); what the size breakdown shows.
    pub size: u32,
    /// Client: number given by [`crate::names`].
    pub client: u32,
    /// User: the uid of the caller, or `u32::MAX` when the call had none; of iSCSI the I_T nexus,
    /// by its number in [`crate::names::Nexuses`].
    pub user: u32,
    /// Share: number given by [`crate::names`]; 0 is "no share". Of iSCSI the logical unit,
    /// likewise.
    pub share: u16,
    /// The protocol's own status (NFS3ERR_*), 0 is OK.
    pub status: u16,
    /// [`Protocol`] as a number.
    pub protocol: u8,
    /// Operation: the protocol's own number (NFSv3 procedure).
    pub op: u8,
    /// Bits of [`flag`].
    pub flags: u8,
    /// Core that served it.
    pub core: u8,
}

const _: () = assert!(size_of::<OpRecord>() == 64);
