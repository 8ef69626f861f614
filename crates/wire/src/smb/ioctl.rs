//! IOCTL (MS-SMB2 §2.2.31, §2.2.32).

use base::limits::{SMB_COPY_CHUNKS_MAX, SMB_TRANSACT_MAX};

use super::codec::{Field, Reader, Result, SmbError, buffer, pad};
use super::create::FileId;
use super::header::HEADER;

/// Control codes.
pub mod code {
    /// Where a share of DFS is.
    pub const DFS_GET_REFERRALS: u32 = 0x0006_0194;
    /// The same, extended.
    pub const DFS_GET_REFERRALS_EX: u32 = 0x0006_01b0;
    /// Whether a pipe has something.
    pub const PIPE_PEEK: u32 = 0x0011_400c;
    /// Wait for a pipe.
    pub const PIPE_WAIT: u32 = 0x0011_0018;
    /// Write to a pipe and read.
    pub const PIPE_TRANSCEIVE: u32 = 0x0011_c017;
    /// Times of snapshots.
    pub const ENUMERATE_SNAPSHOTS: u32 = 0x0014_4064;
    /// Copies on the server.
    pub const COPYCHUNK: u32 = 0x0014_40f2;
    /// The same, to a file that cannot be read.
    pub const COPYCHUNK_WRITE: u32 = 0x0014_80f2;
    /// A key for a file to copy from.
    pub const REQUEST_RESUME_KEY: u32 = 0x0014_0078;
    /// An open that outlives its connection.
    pub const LMR_REQUEST_RESILIENCY: u32 = 0x0014_01d4;
    /// Addresses of the server.
    pub const QUERY_NETWORK_INTERFACE: u32 = 0x0014_01fc;
    /// Whether the negotiation was as it seems.
    pub const VALIDATE_NEGOTIATE: u32 = 0x0014_0204;
    /// The file may have holes.
    pub const SET_SPARSE: u32 = 0x0009_00c4;
    /// Zeros.
    pub const SET_ZERO_DATA: u32 = 0x0009_80c8;
    /// Where there is data.
    pub const QUERY_ALLOCATED_RANGES: u32 = 0x0009_40cf;
    /// How a file is compressed.
    pub const GET_COMPRESSION: u32 = 0x0009_003c;
    /// Compresses it.
    pub const SET_COMPRESSION: u32 = 0x0009_c040;
    /// Shares blocks.
    pub const DUPLICATE_EXTENTS: u32 = 0x0009_8344;
    /// Makes an identifier.
    pub const CREATE_OR_GET_OBJECT_ID: u32 = 0x0009_00c0;
    /// What a reparse point is.
    pub const GET_REPARSE_POINT: u32 = 0x0009_00a8;
}

/// It is a control code of a file system.
pub const IS_FSCTL: u32 = 1;

/// IOCTL of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// [`code`].
    pub code: u32,
    /// The open.
    pub file: FileId,
    /// Most bytes of the answer.
    pub output_max: u32,
    /// [`IS_FSCTL`].
    pub flags: u32,
    /// What it is done with.
    pub input: &'a [u8],
}

impl<'a> Request<'a> {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(msg: &'a [u8]) -> Result<Self> {
        let mut r = Reader::at(msg, HEADER, "IOCTL")?;
        r.size(57)?;
        let _reserved: u16 = r.get()?;
        let (code, file) = (r.get()?, r.get()?);
        let (at, len, _input_max): (u32, u32, u32) = (r.get()?, r.get()?, r.get()?);
        let (_output_at, _output_len, output_max): (u32, u32, u32) = (r.get()?, r.get()?, r.get()?);
        let flags = r.get()?;
        let input = buffer(msg, (at as usize, len as usize), SMB_TRANSACT_MAX, "IOCTL")?;
        Ok(Self { code, file, output_max, flags, input })
    }

    /// Appends the body.
    pub fn put(&self, out: &mut Vec<u8>) {
        57u16.put(out);
        0u16.put(out);
        self.code.put(out);
        self.file.put(out);
        ((HEADER + 56) as u32).put(out);
        (self.input.len() as u32).put(out);
        0u32.put(out);
        ((HEADER + 56) as u32).put(out);
        0u32.put(out);
        self.output_max.put(out);
        self.flags.put(out);
        0u32.put(out);
        out.extend_from_slice(self.input);
    }
}

/// What a server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response<'a> {
    /// As in the request.
    pub code: u32,
    /// The open.
    pub file: FileId,
    /// What came out.
    pub output: &'a [u8],
}

impl<'a> Response<'a> {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(msg: &'a [u8]) -> Result<Self> {
        let mut r = Reader::at(msg, HEADER, "IOCTL response")?;
        r.size(49)?;
        let _reserved: u16 = r.get()?;
        let (code, file) = (r.get()?, r.get()?);
        let (_input_at, _input_len): (u32, u32) = (r.get()?, r.get()?);
        let (at, len): (u32, u32) = (r.get()?, r.get()?);
        let place = (at as usize, len as usize);
        let output = buffer(msg, place, SMB_TRANSACT_MAX, "IOCTL response")?;
        Ok(Self { code, file, output })
    }

    /// Appends the body to a message that begins at `start`.
    pub fn put(&self, out: &mut Vec<u8>, start: usize) {
        49u16.put(out);
        0u16.put(out);
        self.code.put(out);
        self.file.put(out);
        let at = (HEADER + 48) as u32;
        at.put(out);
        0u32.put(out);
        at.put(out);
        (self.output.len() as u32).put(out);
        0u64.put(out);
        pad(out, start, 8);
        out.extend_from_slice(self.output);
    }
}

/// FSCTL_VALIDATE_NEGOTIATE_INFO (§2.2.31.4): what the client has sent in NEGOTIATE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidateNegotiate {
    /// Capabilities.
    pub capabilities: u32,
    /// The client.
    pub guid: [u8; 16],
    /// SecurityMode.
    pub security_mode: u16,
    /// Dialects.
    pub dialects: Vec<u16>,
}

impl ValidateNegotiate {
    /// Reads the input.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(input: &[u8]) -> Result<Self> {
        let mut r = Reader::new(input, "VALIDATE_NEGOTIATE");
        let (capabilities, guid, security_mode) = (r.get()?, r.get()?, r.get()?);
        let count: u16 = r.get()?;
        let dialects = (0..count).map(|_| r.get()).collect::<Result<_>>()?;
        Ok(Self { capabilities, guid, security_mode, dialects })
    }
}

fixed! {
    /// What it is answered with (§2.2.32.6).
    pub struct Negotiated {
        /// Capabilities of the server.
        pub capabilities: u32,
        /// The server.
        pub guid: [u8; 16],
        /// SecurityMode of the server.
        pub security_mode: u16,
        /// The dialect.
        pub dialect: u16,
    }
}

fixed! {
    /// A piece to copy (§2.2.31.1.1).
    pub struct Chunk {
        /// From where in the source.
        pub source: u64,
        /// To where.
        pub target: u64,
        /// Bytes.
        pub length: u32,
        /// Zero.
        pub reserved: u32,
    }
}

/// FSCTL_SRV_COPYCHUNK (§2.2.31.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyChunks {
    /// The source.
    pub key: [u8; 24],
    /// The pieces.
    pub chunks: Vec<Chunk>,
}

impl CopyChunks {
    /// Reads the input.
    ///
    /// # Errors
    /// [`SmbError`]; [`SmbError::Limit`] for more pieces than are taken.
    pub fn decode(input: &[u8]) -> Result<Self> {
        let mut r = Reader::new(input, "COPYCHUNK");
        let (key, count): (_, u32) = (r.get()?, r.get()?);
        let _reserved: u32 = r.get()?;
        if count as usize > SMB_COPY_CHUNKS_MAX {
            return Err(SmbError::Limit("COPYCHUNK"));
        }
        let chunks = (0..count).map(|_| r.get()).collect::<Result<_>>()?;
        Ok(Self { key, chunks })
    }
}

fixed! {
    /// DUPLICATE_EXTENTS_DATA (MS-FSCC §2.3.7.1).
    pub struct Extents {
        /// The file with the blocks to share.
        pub source: FileId,
        /// From where in it.
        pub from: u64,
        /// To where.
        pub to: u64,
        /// Bytes.
        pub length: u64,
    }
}

fixed! {
    /// What it is answered with (§2.2.32.1).
    pub struct Copied {
        /// Chunks that were copied.
        pub chunks: u32,
        /// Bytes of the chunk that was not copied to its end.
        pub partial: u32,
        /// Bytes in all.
        pub total: u32,
    }
}
