//! SESSION_SETUP and LOGOFF (MS-SMB2 §2.2.5 to §2.2.8).

use base::limits::SMB_BLOB_MAX;

use super::codec::{Field, Reader, Result, buffer};
use super::header::HEADER;

/// SessionFlags of a response.
pub mod session_flags {
    /// A guest.
    pub const GUEST: u16 = 1;
    /// An anonymous session.
    pub const NULL: u16 = 2;
    /// Everything must be encrypted.
    pub const ENCRYPT: u16 = 4;
}

/// SESSION_SETUP of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// 1: it binds this connection to a session of another.
    pub flags: u8,
    /// As in NEGOTIATE.
    pub security_mode: u8,
    /// As in NEGOTIATE.
    pub capabilities: u32,
    /// A session of the same client that was lost.
    pub previous_session: u64,
    /// A token of SPNEGO or NTLM.
    pub blob: &'a [u8],
}

/// The connection is to be bound to a session that there is.
pub const BINDING: u8 = 1;

impl<'a> Request<'a> {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`SmbError`](super::codec::SmbError).
    pub fn decode(msg: &'a [u8]) -> Result<Self> {
        let mut r = Reader::at(msg, HEADER, "SESSION_SETUP")?;
        r.size(25)?;
        let (flags, security_mode, capabilities) = (r.get()?, r.get()?, r.get()?);
        let _channel: u32 = r.get()?;
        let (offset, len): (u16, u16) = (r.get()?, r.get()?);
        let previous_session = r.get()?;
        let blob = buffer(msg, (offset.into(), len.into()), SMB_BLOB_MAX, "blob")?;
        Ok(Self { flags, security_mode, capabilities, previous_session, blob })
    }

    /// Appends the body.
    pub fn put(&self, out: &mut Vec<u8>) {
        25u16.put(out);
        self.flags.put(out);
        self.security_mode.put(out);
        self.capabilities.put(out);
        0u32.put(out);
        ((HEADER + 24) as u16).put(out);
        (self.blob.len() as u16).put(out);
        self.previous_session.put(out);
        out.extend_from_slice(self.blob);
    }
}

/// What a server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response<'a> {
    /// [`session_flags`].
    pub flags: u16,
    /// A token of SPNEGO or NTLM.
    pub blob: &'a [u8],
}

impl<'a> Response<'a> {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`SmbError`](super::codec::SmbError).
    pub fn decode(msg: &'a [u8]) -> Result<Self> {
        let mut r = Reader::at(msg, HEADER, "SESSION_SETUP response")?;
        r.size(9)?;
        let flags = r.get()?;
        let (offset, len): (u16, u16) = (r.get()?, r.get()?);
        let blob = buffer(msg, (offset.into(), len.into()), SMB_BLOB_MAX, "blob")?;
        Ok(Self { flags, blob })
    }

    /// Appends the body.
    pub fn put(&self, out: &mut Vec<u8>) {
        9u16.put(out);
        self.flags.put(out);
        ((HEADER + 8) as u16).put(out);
        (self.blob.len() as u16).put(out);
        out.extend_from_slice(self.blob);
    }
}

body! {
    /// LOGOFF, TREE_DISCONNECT, ECHO and CANCEL, and what is answered to them: nothing but a
    /// size.
    pub struct Empty = 4 {
        /// Zero.
        pub reserved: u16,
    }
}
