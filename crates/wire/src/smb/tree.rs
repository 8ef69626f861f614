//! TREE_CONNECT (MS-SMB2 §2.2.9, §2.2.10).

use base::limits::SMB_PATH_MAX;

use super::codec::{Field, Reader, Result, SmbError, buffer};
use super::header::HEADER;

/// TREE_CONNECT of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// Flags of 3.1.1; with 4 the path is in an extension.
    pub flags: u16,
    /// `\\server\share` in UTF-16LE.
    pub path: &'a [u8],
}

impl<'a> Request<'a> {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(msg: &'a [u8]) -> Result<Self> {
        let mut r = Reader::at(msg, HEADER, "TREE_CONNECT")?;
        r.size(9)?;
        let flags: u16 = r.get()?;
        let (offset, len): (u16, u16) = (r.get()?, r.get()?);
        if flags & 4 != 0 {
            // PathOffset is from the extension's begin then; it serves redirection by clusters.
            return Err(SmbError::Value("TREE_CONNECT extension"));
        }
        let path = buffer(msg, (offset.into(), len.into()), SMB_PATH_MAX, "path")?;
        Ok(Self { flags, path })
    }

    /// Appends the body.
    pub fn put(&self, out: &mut Vec<u8>) {
        9u16.put(out);
        self.flags.put(out);
        ((HEADER + 8) as u16).put(out);
        (self.path.len() as u16).put(out);
        out.extend_from_slice(self.path);
    }
}

/// ShareType.
pub mod share_type {
    /// Files.
    pub const DISK: u8 = 1;
    /// Pipes.
    pub const PIPE: u8 = 2;
}

/// ShareFlags.
pub mod share_flags {
    /// Clients keep nothing for when they are off line.
    pub const NO_CACHING: u32 = 0x30;
    /// Everything must be encrypted.
    pub const ENCRYPT: u32 = 0x8000;
}

/// Capabilities of a share.
pub mod share_capabilities {
    /// It grants persistent handles.
    pub const CONTINUOUS_AVAILABILITY: u32 = 0x10;
}

body! {
    /// What a server answers.
    pub struct Response = 16 {
        /// [`share_type`].
        pub share_type: u8,
        /// Zero.
        pub reserved: u8,
        /// [`share_flags`].
        pub flags: u32,
        /// What the share can do.
        pub capabilities: u32,
        /// Access mask of the user.
        pub maximal_access: u32,
    }
}
