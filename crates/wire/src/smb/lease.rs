//! Oplocks and leases (MS-SMB2 §2.2.13.2.8, §2.2.13.2.10, §2.2.14.2.10, §2.2.23 to §2.2.25): the
//! context of CREATE, notifications that they are broken, acknowledgements.

use super::codec::{Field, Reader, Result, SmbError};
use super::create::FileId;
use super::header::HEADER;

/// OplockLevel.
pub mod level {
    /// None.
    pub const NONE: u8 = 0;
    /// What was read may be cached.
    pub const II: u8 = 1;
    /// What is written, too.
    pub const EXCLUSIVE: u8 = 8;
    /// The open as well.
    pub const BATCH: u8 = 9;
    /// A lease is requested by a context.
    pub const LEASE: u8 = 0xff;
}

/// LeaseState.
pub mod state {
    /// What was read may be cached.
    pub const READ: u32 = 1;
    /// Opens may be.
    pub const HANDLE: u32 = 2;
    /// What is written may be.
    pub const WRITE: u32 = 4;
}

/// Flags of the context and of notifications.
pub mod lease_flags {
    /// The answer: a break is in progress.
    pub const BREAK_IN_PROGRESS: u32 = 2;
    /// ParentLeaseKey is valid.
    pub const PARENT_KEY_SET: u32 = 4;
    /// A notification: it must be acknowledged.
    pub const ACK_REQUIRED: u32 = 1;
}

/// The key of a lease, chosen by the client.
pub type LeaseKey = [u8; 16];

/// `RqLs`: what is requested, or granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// LeaseKey.
    pub key: LeaseKey,
    /// LeaseState.
    pub state: u32,
    /// [`lease_flags`].
    pub flags: u32,
    /// LeaseDuration, always 0.
    pub duration: u64,
    /// What version 2 has in addition.
    pub v2: Option<LeaseV2>,
}

fixed! {
    /// The second part of a lease of version 2.
    pub struct LeaseV2 {
        /// ParentLeaseKey.
        pub parent: [u8; 16],
        /// Epoch.
        pub epoch: u16,
        /// Zero.
        pub reserved: u16,
    }
}

/// Bytes of version 1, which version 2 begins with.
const V1: usize = 32;
const V2: usize = V1 + LeaseV2::SIZE;

impl Lease {
    /// Reads the data of the context: its length is that of the version.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(data: &[u8]) -> Result<Self> {
        let mut r = Reader::new(data, "lease");
        let (key, state, flags, duration) = (r.get()?, r.get()?, r.get()?, r.get()?);
        let v2 = match data.len() {
            V1 => None,
            V2 => Some(r.get()?),
            _ => return Err(SmbError::Value("lease")),
        };
        Ok(Self { key, state, flags, duration, v2 })
    }

    /// Appends it.
    pub fn put(&self, out: &mut Vec<u8>) {
        self.key.put(out);
        self.state.put(out);
        self.flags.put(out);
        self.duration.put(out);
        if let Some(v2) = &self.v2 {
            v2.put(out);
        }
    }
}

body! {
    /// An oplock is broken: the notification, the acknowledgement and its answer are alike.
    pub struct OplockBreak = 24 {
        /// [`level`].
        pub level: u8,
        /// Zero.
        pub reserved: u8,
        /// Zero.
        pub reserved2: u32,
        /// The open.
        pub file: FileId,
    }
}

body! {
    /// A lease is broken: the notification.
    pub struct LeaseBreak = 44 {
        /// NewEpoch; 0 for a lease of version 1.
        pub epoch: u16,
        /// [`lease_flags`].
        pub flags: u32,
        /// LeaseKey.
        pub key: LeaseKey,
        /// CurrentLeaseState.
        pub from: u32,
        /// NewLeaseState.
        pub to: u32,
        /// BreakReason, AccessMaskHint, ShareMaskHint: zero.
        pub hints: [u8; 12],
    }
}

body! {
    /// The acknowledgement of a broken lease, and its answer.
    pub struct LeaseAck = 36 {
        /// Zero.
        pub reserved: u16,
        /// Zero.
        pub flags: u32,
        /// LeaseKey.
        pub key: LeaseKey,
        /// LeaseState: what is kept.
        pub state: u32,
        /// LeaseDuration: zero.
        pub duration: u64,
    }
}

/// OPLOCK_BREAK of a client, or the answer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ack {
    /// Of an oplock.
    Oplock(OplockBreak),
    /// Of a lease.
    Lease(LeaseAck),
}

impl Ack {
    /// Reads the body of a message: each has its own structure size.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(msg: &[u8]) -> Result<Self> {
        match Reader::at(msg, HEADER, "OPLOCK_BREAK")?.get::<u16>()? {
            24 => OplockBreak::decode(msg).map(Self::Oplock),
            36 => LeaseAck::decode(msg).map(Self::Lease),
            _ => Err(SmbError::Value("OPLOCK_BREAK")),
        }
    }

    /// Appends the body.
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Oplock(ack) => ack.put_body(out),
            Self::Lease(ack) => ack.put_body(out),
        }
    }
}

/// What a server sends of its own, and what it answers to an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// A lease is broken.
    Lease(LeaseBreak),
    /// An oplock is broken, or an acknowledgement is answered.
    Other(Ack),
}

impl Notice {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(msg: &[u8]) -> Result<Self> {
        match Reader::at(msg, HEADER, "OPLOCK_BREAK")?.get::<u16>()? {
            44 => LeaseBreak::decode(msg).map(Self::Lease),
            _ => Ack::decode(msg).map(Self::Other),
        }
    }

    /// Appends the body.
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Lease(lease) => lease.put_body(out),
            Self::Other(ack) => ack.put(out),
        }
    }
}

#[cfg(test)]
mod tests;
