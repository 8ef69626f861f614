//! LOCK (MS-SMB2 §2.2.26).

use base::limits::SMB_LOCKS_MAX;

use super::codec::{Field, Reader, Result, SmbError};
use super::create::FileId;
use super::header::HEADER;

/// Flags of an element.
pub mod lock_flags {
    /// Others may read.
    pub const SHARED: u32 = 1;
    /// Other opens may neither read nor write the range.
    pub const EXCLUSIVE: u32 = 2;
    /// It ends.
    pub const UNLOCK: u32 = 4;
    /// Do not wait.
    pub const FAIL_IMMEDIATELY: u32 = 0x10;
}

fixed! {
    /// A range to lock or unlock.
    pub struct Element {
        /// Its first byte.
        pub offset: u64,
        /// Bytes.
        pub length: u64,
        /// [`lock_flags`].
        pub flags: u32,
        /// Zero.
        pub reserved: u32,
    }
}

/// LOCK of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Which of the open's requests that may be sent again it is ([`Request::sequence`]).
    pub lock_sequence: u32,
    /// The open.
    pub file: FileId,
    /// Ranges.
    pub locks: Vec<Element>,
}

/// Bits of LockSequenceNumber; those above it are LockSequenceIndex.
const NUMBER_BITS: u32 = 4;

impl Request {
    /// LockSequenceIndex, from 1 on if it has one, and LockSequenceNumber.
    pub const fn sequence(&self) -> (u32, u8) {
        let number = self.lock_sequence & ((1 << NUMBER_BITS) - 1);
        (self.lock_sequence >> NUMBER_BITS, number as u8)
    }

    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(msg: &[u8]) -> Result<Self> {
        let mut r = Reader::at(msg, HEADER, "LOCK")?;
        r.size(48)?;
        let count: u16 = r.get()?;
        let lock_sequence = r.get()?;
        let file = r.get()?;
        if count == 0 {
            return Err(SmbError::Value("LOCK"));
        }
        if usize::from(count) > SMB_LOCKS_MAX {
            return Err(SmbError::Limit("LOCK"));
        }
        let locks = (0..count).map(|_| r.get()).collect::<Result<_>>()?;
        Ok(Self { lock_sequence, file, locks })
    }

    /// Appends the body.
    pub fn put(&self, out: &mut Vec<u8>) {
        48u16.put(out);
        (self.locks.len() as u16).put(out);
        self.lock_sequence.put(out);
        self.file.put(out);
        self.locks.iter().for_each(|lock| lock.put(out));
    }
}
