//! READ, WRITE and FLUSH (MS-SMB2 §2.2.17 to §2.2.22).

use base::limits::SMB_IO_MAX;

use super::codec::{Field, Reader, Result, SmbError, buffer};
use super::create::FileId;
use super::header::HEADER;

/// READ of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadRequest {
    /// Bytes.
    pub length: u32,
    /// From where on.
    pub offset: u64,
    /// The open.
    pub file: FileId,
    /// Fewer than these are an error.
    pub minimum: u32,
}

impl ReadRequest {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(msg: &[u8]) -> Result<Self> {
        let mut r = Reader::at(msg, HEADER, "READ")?;
        r.size(49)?;
        let _padding_flags: u16 = r.get()?;
        let (length, offset, file, minimum) = (r.get()?, r.get()?, r.get()?, r.get()?);
        Ok(Self { length, offset, file, minimum })
    }

    /// Appends the body.
    pub fn put(&self, out: &mut Vec<u8>) {
        49u16.put(out);
        // Where the client would like the data: behind the header of the response.
        ((HEADER + 16) as u16).put(out);
        self.length.put(out);
        self.offset.put(out);
        self.file.put(out);
        self.minimum.put(out);
        // Channel, RemainingBytes, no channel information, one byte of buffer.
        [0u8; 13].put(out);
    }
}

/// Bytes of the body of a response to READ before its data.
pub const READ_HEAD: usize = 16;

/// Appends the body of a response to READ, but for its data, which follows.
pub fn put_read_head(out: &mut Vec<u8>, length: usize) {
    17u16.put(out);
    ((HEADER + READ_HEAD) as u16).put(out);
    (length as u32).put(out);
    0u64.put(out);
}

/// The data of a response to READ.
///
/// # Errors
/// [`SmbError`].
pub fn read_data(msg: &[u8]) -> Result<&[u8]> {
    let mut r = Reader::at(msg, HEADER, "READ response")?;
    r.size(17)?;
    let (offset, _reserved): (u8, u8) = (r.get()?, r.get()?);
    let length: u32 = r.get()?;
    buffer(msg, (offset.into(), length as usize), SMB_IO_MAX, "READ response")
}

/// WRITE of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteRequest<'a> {
    /// From where on.
    pub offset: u64,
    /// The open.
    pub file: FileId,
    /// [`WRITE_THROUGH`].
    pub flags: u32,
    /// What to write.
    pub data: &'a [u8],
}

/// The data is on disk before the answer leaves.
pub const WRITE_THROUGH: u32 = 1;
/// The fixed part of WRITE.
const WRITE_HEAD: usize = 48;

impl<'a> WriteRequest<'a> {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(msg: &'a [u8]) -> Result<Self> {
        let mut r = Reader::at(msg, HEADER, "WRITE")?;
        r.size(49)?;
        let (at, length): (u16, u32) = (r.get()?, r.get()?);
        let (offset, file) = (r.get()?, r.get()?);
        let (_channel, _remaining, _channel_info): (u32, u32, u32) = (r.get()?, r.get()?, r.get()?);
        let flags = r.get()?;
        if length > 0 && usize::from(at) < HEADER + WRITE_HEAD {
            return Err(SmbError::Value("WRITE"));
        }
        let data = buffer(msg, (at.into(), length as usize), SMB_IO_MAX, "WRITE")?;
        Ok(Self { offset, file, flags, data })
    }

    /// Appends the body.
    pub fn put(&self, out: &mut Vec<u8>) {
        49u16.put(out);
        ((HEADER + WRITE_HEAD) as u16).put(out);
        (self.data.len() as u32).put(out);
        self.offset.put(out);
        self.file.put(out);
        [0u8; 12].put(out);
        self.flags.put(out);
        out.extend_from_slice(self.data);
    }
}

body! {
    /// What a server answers to WRITE.
    pub struct WriteResponse = 17 {
        /// Zero.
        pub reserved: u16,
        /// Bytes that were written.
        pub count: u32,
        /// Zero.
        pub remaining: u32,
        /// Zero.
        pub channel_info: u32,
    }
}

body! {
    /// FLUSH of a client.
    pub struct FlushRequest = 24 {
        /// Zero.
        pub reserved: [u8; 6],
        /// The open.
        pub file: FileId,
    }
}
