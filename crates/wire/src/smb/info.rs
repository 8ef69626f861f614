//! QUERY_INFO and SET_INFO (MS-SMB2 §2.2.37 to §2.2.40). What they carry is in [`super::class`].

use base::limits::SMB_TRANSACT_MAX;

use super::codec::{Field, Reader, Result, buffer};
use super::create::FileId;
use super::header::HEADER;

/// InfoType.
pub mod info_type {
    /// Of a file.
    pub const FILE: u8 = 1;
    /// Of its file system.
    pub const FILE_SYSTEM: u8 = 2;
    /// A security descriptor.
    pub const SECURITY: u8 = 3;
    /// Quotas.
    pub const QUOTA: u8 = 4;
}

/// QUERY_INFO of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryRequest<'a> {
    /// [`info_type`].
    pub info_type: u8,
    /// The class.
    pub class: u8,
    /// Most bytes of the answer.
    pub output_max: u32,
    /// Which parts of a security descriptor.
    pub additional: u32,
    /// Flags of FileFullEaInformation.
    pub flags: u32,
    /// The open.
    pub file: FileId,
    /// What some classes ask with.
    pub input: &'a [u8],
}

impl<'a> QueryRequest<'a> {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`SmbError`](super::codec::SmbError).
    pub fn decode(msg: &'a [u8]) -> Result<Self> {
        let mut r = Reader::at(msg, HEADER, "QUERY_INFO")?;
        r.size(41)?;
        let (info_type, class, output_max) = (r.get()?, r.get()?, r.get()?);
        let (at, _reserved, len): (u16, u16, u32) = (r.get()?, r.get()?, r.get()?);
        let (additional, flags, file) = (r.get()?, r.get()?, r.get()?);
        let input = buffer(msg, (at.into(), len as usize), SMB_TRANSACT_MAX, "QUERY_INFO")?;
        Ok(Self { info_type, class, output_max, additional, flags, file, input })
    }

    /// Appends the body.
    pub fn put(&self, out: &mut Vec<u8>) {
        41u16.put(out);
        self.info_type.put(out);
        self.class.put(out);
        self.output_max.put(out);
        (if self.input.is_empty() { 0 } else { (HEADER + 40) as u16 }).put(out);
        0u16.put(out);
        (self.input.len() as u32).put(out);
        self.additional.put(out);
        self.flags.put(out);
        self.file.put(out);
        out.extend_from_slice(self.input);
    }
}

/// SET_INFO of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetRequest<'a> {
    /// [`info_type`].
    pub info_type: u8,
    /// The class.
    pub class: u8,
    /// Which parts of a security descriptor.
    pub additional: u32,
    /// The open.
    pub file: FileId,
    /// What to set.
    pub data: &'a [u8],
}

impl<'a> SetRequest<'a> {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`SmbError`](super::codec::SmbError).
    pub fn decode(msg: &'a [u8]) -> Result<Self> {
        let mut r = Reader::at(msg, HEADER, "SET_INFO")?;
        r.size(33)?;
        let (info_type, class, len): (_, _, u32) = (r.get()?, r.get()?, r.get()?);
        let (at, _reserved): (u16, u16) = (r.get()?, r.get()?);
        let (additional, file) = (r.get()?, r.get()?);
        let data = buffer(msg, (at.into(), len as usize), SMB_TRANSACT_MAX, "SET_INFO")?;
        Ok(Self { info_type, class, additional, file, data })
    }

    /// Appends the body.
    pub fn put(&self, out: &mut Vec<u8>) {
        33u16.put(out);
        self.info_type.put(out);
        self.class.put(out);
        (self.data.len() as u32).put(out);
        ((HEADER + 32) as u16).put(out);
        0u16.put(out);
        self.additional.put(out);
        self.file.put(out);
        out.extend_from_slice(self.data);
    }
}

/// Appends the body of the answer to SET_INFO.
pub fn put_set(out: &mut Vec<u8>) {
    2u16.put(out);
}
