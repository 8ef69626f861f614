//! CREATE and CLOSE (MS-SMB2 §2.2.13 to §2.2.16).

use base::limits::{SMB_CREATE_CONTEXTS_BYTES, SMB_PATH_MAX};

use super::codec::{Field, Reader, Result, SmbError, buffer, pad, patch};
use super::header::HEADER;

fixed! {
    /// An open.
    pub struct FileId {
        /// Outlives a connection.
        pub persistent: u64,
        /// Of this session.
        pub volatile: u64,
    }
}

impl FileId {
    /// In a related request: the open of the request before.
    pub const RELATED: Self = Self { persistent: u64::MAX, volatile: u64::MAX };
}

/// Access masks (§2.2.13.1).
pub mod access {
    /// Read data, or list a directory.
    pub const READ_DATA: u32 = 1;
    /// Write data, or add a file to a directory.
    pub const WRITE_DATA: u32 = 2;
    /// Append data, or add a directory.
    pub const APPEND_DATA: u32 = 4;
    /// Read extended attributes.
    pub const READ_EA: u32 = 8;
    /// Write extended attributes.
    pub const WRITE_EA: u32 = 0x10;
    /// Execute, or pass through a directory.
    pub const EXECUTE: u32 = 0x20;
    /// Remove what is in a directory.
    pub const DELETE_CHILD: u32 = 0x40;
    /// Read attributes.
    pub const READ_ATTRIBUTES: u32 = 0x80;
    /// Write attributes.
    pub const WRITE_ATTRIBUTES: u32 = 0x100;
    /// Remove or rename it.
    pub const DELETE: u32 = 0x1_0000;
    /// Read its security descriptor.
    pub const READ_CONTROL: u32 = 0x2_0000;
    /// Change its permissions.
    pub const WRITE_DAC: u32 = 0x4_0000;
    /// Change its owner.
    pub const WRITE_OWNER: u32 = 0x8_0000;
    /// Wait for it.
    pub const SYNCHRONIZE: u32 = 0x10_0000;
    /// Its audit.
    pub const SYSTEM_SECURITY: u32 = 0x100_0000;
    /// As much as there is.
    pub const MAXIMUM_ALLOWED: u32 = 0x200_0000;
    /// Everything.
    pub const GENERIC_ALL: u32 = 0x1000_0000;
    /// What executing takes.
    pub const GENERIC_EXECUTE: u32 = 0x2000_0000;
    /// What writing takes.
    pub const GENERIC_WRITE: u32 = 0x4000_0000;
    /// What reading takes.
    pub const GENERIC_READ: u32 = 0x8000_0000;
    /// Bits that are no right.
    pub const UNKNOWN: u32 = 0x0ce0_fe00;
    /// Everything, as rights of files.
    pub const ALL: u32 = 0x1f_01ff;
    /// Reading, as rights of files.
    pub const READ: u32 = 0x12_0089;
    /// Writing, as rights of files.
    pub const WRITE: u32 = 0x12_0116;
    /// Executing, as rights of files.
    pub const RUN: u32 = 0x12_00a0;

    /// Generic rights as rights of files.
    pub const fn specific(mask: u32) -> u32 {
        let generic = GENERIC_ALL | GENERIC_EXECUTE | GENERIC_WRITE | GENERIC_READ;
        let mut specific = mask & !generic;
        if mask & GENERIC_ALL != 0 {
            specific |= ALL;
        }
        if mask & GENERIC_EXECUTE != 0 {
            specific |= RUN;
        }
        if mask & GENERIC_WRITE != 0 {
            specific |= WRITE;
        }
        if mask & GENERIC_READ != 0 {
            specific |= READ;
        }
        specific
    }
}

/// ShareAccess.
pub mod share_access {
    /// Others may read.
    pub const READ: u32 = 1;
    /// Others may write.
    pub const WRITE: u32 = 2;
    /// Others may remove and rename.
    pub const DELETE: u32 = 4;
}

/// CreateOptions.
pub mod options {
    /// It must be a directory.
    pub const DIRECTORY: u32 = 1;
    /// Each write is on disk before it is answered.
    pub const WRITE_THROUGH: u32 = 2;
    /// It is read and written from the begin to the end.
    pub const SEQUENTIAL_ONLY: u32 = 4;
    /// Nothing of it is cached.
    pub const NO_INTERMEDIATE_BUFFERING: u32 = 8;
    /// It must be no directory.
    pub const NON_DIRECTORY: u32 = 0x40;
    /// The client knows no extended attributes.
    pub const NO_EA_KNOWLEDGE: u32 = 0x200;
    /// It is removed when it is closed.
    pub const DELETE_ON_CLOSE: u32 = 0x1000;
    /// The name is a number of a file.
    pub const OPEN_BY_FILE_ID: u32 = 0x2000;
    /// A reparse point is meant itself.
    pub const OPEN_REPARSE_POINT: u32 = 0x20_0000;
    /// Those that no server serves over SMB 2: a tree connect with the open, the name as a number
    /// of a file, and a filter for oplocks.
    pub const NOT_SERVED: u32 = 0x80 | OPEN_BY_FILE_ID | 0x10_0000;
    /// Those that there are not.
    pub const UNKNOWN: u32 = 0xff00_0000;
}

/// CreateDisposition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// Replace it or make it.
    Supersede = 0,
    /// It must be there.
    Open = 1,
    /// It must not be there.
    Create = 2,
    /// Open or make it.
    OpenIf = 3,
    /// It must be there, and is emptied.
    Overwrite = 4,
    /// Empty or make it.
    OverwriteIf = 5,
}

impl Disposition {
    /// The disposition of this number.
    ///
    /// # Errors
    /// [`SmbError::Value`].
    pub const fn of(number: u32) -> Result<Self> {
        Ok(match number {
            0 => Self::Supersede,
            1 => Self::Open,
            2 => Self::Create,
            3 => Self::OpenIf,
            4 => Self::Overwrite,
            5 => Self::OverwriteIf,
            _ => return Err(SmbError::Value("CreateDisposition")),
        })
    }
}

/// CREATE of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// RequestedOplockLevel.
    pub oplock: u8,
    /// ImpersonationLevel.
    pub impersonation: u32,
    /// [`access`].
    pub access: u32,
    /// Attributes of a new file ([`super::class::attributes`]).
    pub attributes: u32,
    /// [`share_access`].
    pub share: u32,
    /// [`Disposition`].
    pub disposition: u32,
    /// [`options`].
    pub options: u32,
    /// The path in UTF-16LE, without a leading `\`.
    pub name: &'a [u8],
    /// Create contexts ([`super::contexts`]).
    pub contexts: &'a [u8],
}

/// Bytes of the fixed part.
const FIXED: usize = 56;

impl<'a> Request<'a> {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(msg: &'a [u8]) -> Result<Self> {
        let mut r = Reader::at(msg, HEADER, "CREATE")?;
        r.size(57)?;
        let _security_flags: u8 = r.get()?;
        let (oplock, impersonation) = (r.get()?, r.get()?);
        let _reserved: [u8; 16] = r.get()?;
        let (access, attributes, share) = (r.get()?, r.get()?, r.get()?);
        let (disposition, options) = (r.get()?, r.get()?);
        let (name_at, name_len): (u16, u16) = (r.get()?, r.get()?);
        let (contexts_at, contexts_len): (u32, u32) = (r.get()?, r.get()?);
        let name = buffer(msg, (name_at.into(), name_len.into()), SMB_PATH_MAX, "name")?;
        let place = (contexts_at as usize, contexts_len as usize);
        let contexts = buffer(msg, place, SMB_CREATE_CONTEXTS_BYTES, "create contexts")?;
        Ok(Self {
            oplock,
            impersonation,
            access,
            attributes,
            share,
            disposition,
            options,
            name,
            contexts,
        })
    }

    /// Appends the body to a message that begins at `start`.
    pub fn put(&self, out: &mut Vec<u8>, start: usize) {
        57u16.put(out);
        0u8.put(out);
        self.oplock.put(out);
        self.impersonation.put(out);
        [0u8; 16].put(out);
        self.access.put(out);
        self.attributes.put(out);
        self.share.put(out);
        self.disposition.put(out);
        self.options.put(out);
        ((HEADER + FIXED) as u16).put(out);
        (self.name.len() as u16).put(out);
        let at = out.len();
        0u64.put(out);
        out.extend_from_slice(self.name);
        if self.name.is_empty() {
            // The buffer has one byte at least.
            out.push(0);
        }
        if !self.contexts.is_empty() {
            pad(out, start, 8);
            let offset = (out.len() - start) as u32;
            patch(out, at, &offset.to_le_bytes());
            patch(out, at + 4, &(self.contexts.len() as u32).to_le_bytes());
            out.extend_from_slice(self.contexts);
        }
    }
}

fixed! {
    /// What CREATE and CLOSE return about a file.
    #[derive(Default)]
    pub struct Facts {
        /// FILETIME of its making.
        pub created: u64,
        /// Of the last access.
        pub accessed: u64,
        /// Of the last write.
        pub written: u64,
        /// Of the last change.
        pub changed: u64,
        /// Bytes on disk.
        pub allocation: u64,
        /// Bytes.
        pub size: u64,
        /// [`super::class::attributes`].
        pub attributes: u32,
    }
}

/// CreateAction.
pub mod action {
    /// It was replaced.
    pub const SUPERSEDED: u32 = 0;
    /// It was opened.
    pub const OPENED: u32 = 1;
    /// It was made.
    pub const CREATED: u32 = 2;
    /// It was emptied.
    pub const OVERWRITTEN: u32 = 3;
}

/// What a server answers to CREATE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response<'a> {
    /// OplockLevel.
    pub oplock: u8,
    /// [`action`].
    pub action: u32,
    /// The file.
    pub facts: Facts,
    /// The open.
    pub file: FileId,
    /// Create contexts.
    pub contexts: &'a [u8],
}

impl<'a> Response<'a> {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(msg: &'a [u8]) -> Result<Self> {
        let mut r = Reader::at(msg, HEADER, "CREATE response")?;
        r.size(89)?;
        let oplock = r.get()?;
        let _flags: u8 = r.get()?;
        let (action, facts) = (r.get()?, r.get()?);
        let _reserved: u32 = r.get()?;
        let file = r.get()?;
        let (at, len): (u32, u32) = (r.get()?, r.get()?);
        let place = (at as usize, len as usize);
        let contexts = buffer(msg, place, SMB_CREATE_CONTEXTS_BYTES, "create contexts")?;
        Ok(Self { oplock, action, facts, file, contexts })
    }

    /// Appends the body.
    pub fn put(&self, out: &mut Vec<u8>) {
        89u16.put(out);
        self.oplock.put(out);
        0u8.put(out);
        self.action.put(out);
        self.facts.put(out);
        0u32.put(out);
        self.file.put(out);
        let offset = if self.contexts.is_empty() { 0 } else { HEADER + 88 };
        (offset as u32).put(out);
        (self.contexts.len() as u32).put(out);
        out.extend_from_slice(self.contexts);
    }
}

body! {
    /// CLOSE of a client.
    pub struct CloseRequest = 24 {
        /// 1: the response contains the attributes of the file.
        pub flags: u16,
        /// Zero.
        pub reserved: u32,
        /// The open.
        pub file: FileId,
    }
}

/// The response to CLOSE contains the attributes of the file.
pub const POSTQUERY: u16 = 1;

body! {
    /// What a server answers to CLOSE.
    pub struct CloseResponse = 60 {
        /// [`POSTQUERY`] if what follows is so.
        pub flags: u16,
        /// Zero.
        pub reserved: u32,
        /// The file.
        pub facts: Facts,
    }
}
