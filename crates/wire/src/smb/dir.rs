//! QUERY_DIRECTORY (MS-SMB2 §2.2.33, §2.2.34), its entries (MS-FSCC §2.4) and patterns.

use base::limits::{SMB_PATH_MAX, SMB_TRANSACT_MAX};

use super::codec::{Field, Reader, Result, SmbError, buffer, pad, patch};
use super::create::{Facts, FileId};
use super::header::HEADER;

mod pattern;

pub use pattern::Pattern;

/// Flags of a request.
pub mod query_flags {
    /// From the begin again.
    pub const RESTART: u8 = 1;
    /// One entry.
    pub const SINGLE: u8 = 2;
    /// From an index on, which is not known here.
    pub const INDEX: u8 = 4;
    /// With a new pattern, from the begin.
    pub const REOPEN: u8 = 0x10;
}

/// QUERY_DIRECTORY of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The information of each entry: [`Level`].
    pub level: u8,
    /// [`query_flags`].
    pub flags: u8,
    /// The open.
    pub file: FileId,
    /// The pattern in UTF-16LE.
    pub pattern: &'a [u8],
    /// Most bytes of the answer.
    pub output_max: u32,
}

impl<'a> Request<'a> {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(msg: &'a [u8]) -> Result<Self> {
        let mut r = Reader::at(msg, HEADER, "QUERY_DIRECTORY")?;
        r.size(33)?;
        let (level, flags) = (r.get()?, r.get()?);
        let _index: u32 = r.get()?;
        let file = r.get()?;
        let (at, len): (u16, u16) = (r.get()?, r.get()?);
        let output_max = r.get()?;
        let pattern = buffer(msg, (at.into(), len.into()), SMB_PATH_MAX, "pattern")?;
        Ok(Self { level, flags, file, pattern, output_max })
    }

    /// Appends the body.
    pub fn put(&self, out: &mut Vec<u8>) {
        33u16.put(out);
        self.level.put(out);
        self.flags.put(out);
        0u32.put(out);
        self.file.put(out);
        ((HEADER + 32) as u16).put(out);
        (self.pattern.len() as u16).put(out);
        self.output_max.put(out);
        out.extend_from_slice(self.pattern);
    }
}

/// Appends the body of an answer that is one buffer: of QUERY_DIRECTORY, QUERY_INFO.
pub fn put_output(out: &mut Vec<u8>, data: &[u8]) {
    9u16.put(out);
    (if data.is_empty() { 0 } else { (HEADER + 8) as u16 }).put(out);
    (data.len() as u32).put(out);
    out.extend_from_slice(data);
}

/// The buffer of such an answer.
///
/// # Errors
/// [`SmbError`].
pub fn output(msg: &[u8]) -> Result<&[u8]> {
    let mut r = Reader::at(msg, HEADER, "output")?;
    r.size(9)?;
    let (at, len): (u16, u32) = (r.get()?, r.get()?);
    buffer(msg, (at.into(), len as usize), SMB_TRANSACT_MAX, "output")
}

/// The information of each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// FileDirectoryInformation.
    Directory = 1,
    /// FileFullDirectoryInformation.
    Full = 2,
    /// FileBothDirectoryInformation.
    Both = 3,
    /// FileNamesInformation.
    Names = 12,
    /// FileIdBothDirectoryInformation.
    IdBoth = 37,
    /// FileIdFullDirectoryInformation.
    IdFull = 38,
}

impl Level {
    /// The level of this number.
    pub const fn of(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Directory,
            2 => Self::Full,
            3 => Self::Both,
            12 => Self::Names,
            37 => Self::IdBoth,
            38 => Self::IdFull,
            _ => return None,
        })
    }
}

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What is known of it.
    pub facts: Facts,
    /// Its number.
    pub fileid: u64,
    /// Its name in UTF-16LE.
    pub name: Vec<u8>,
}

/// Writes entries, as far as they fit.
#[derive(Debug)]
pub struct Entries {
    level: Level,
    out: Vec<u8>,
    max: usize,
    last: Option<usize>,
}

impl Entries {
    /// None yet, in `max` bytes.
    pub const fn new(level: Level, max: usize) -> Self {
        Self { level, out: Vec::new(), max, last: None }
    }

    /// Adds an entry; false if there is no room for it.
    pub fn add(&mut self, entry: &Entry) -> bool {
        let before = self.out.len();
        pad(&mut self.out, 0, 8);
        let at = self.out.len();
        put_entry(self.level, entry, &mut self.out);
        if self.out.len() > self.max {
            self.out.truncate(before);
            return false;
        }
        if let Some(last) = self.last.replace(at) {
            patch(&mut self.out, last, &((at - last) as u32).to_le_bytes());
        }
        true
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// What to answer.
    pub fn finish(self) -> Vec<u8> {
        self.out
    }
}

fn put_entry(level: Level, entry: &Entry, out: &mut Vec<u8>) {
    let (facts, name_len) = (&entry.facts, entry.name.len() as u32);
    // NextEntryOffset is set by the one that follows; FileIndex is not known.
    0u64.put(out);
    if level == Level::Names {
        name_len.put(out);
        out.extend_from_slice(&entry.name);
        return;
    }
    for time in [facts.created, facts.accessed, facts.written, facts.changed] {
        time.put(out);
    }
    facts.size.put(out);
    facts.allocation.put(out);
    facts.attributes.put(out);
    name_len.put(out);
    if level != Level::Directory {
        // EaSize is 0: otherwise clients query the extended attributes of each entry.
        0u32.put(out);
    }
    if matches!(level, Level::Both | Level::IdBoth) {
        // There are no short names.
        [0u8; 26].put(out);
    }
    match level {
        Level::IdBoth => {
            0u16.put(out);
            entry.fileid.put(out);
        }
        Level::IdFull => {
            0u32.put(out);
            entry.fileid.put(out);
        }
        _ => {}
    }
    out.extend_from_slice(&entry.name);
}

/// Entries of an answer.
///
/// # Errors
/// [`SmbError`].
pub fn entries(level: Level, bytes: &[u8]) -> Result<Vec<Entry>> {
    let (mut rest, mut entries) = (bytes, Vec::new());
    while !rest.is_empty() {
        let mut r = Reader::new(rest, "entry");
        let next = r.get::<u32>()? as usize;
        entries.push(entry(level, &mut r)?);
        if next == 0 {
            break;
        }
        if next < 12 {
            return Err(SmbError::Value("entry"));
        }
        rest = rest.get(next..).ok_or(SmbError::Short("entry"))?;
    }
    Ok(entries)
}

fn entry(level: Level, r: &mut Reader<'_>) -> Result<Entry> {
    let _index: u32 = r.get()?;
    let mut facts = Facts::default();
    if level == Level::Names {
        let len: u32 = r.get()?;
        return Ok(Entry { facts, fileid: 0, name: r.take(len as usize)?.to_vec() });
    }
    (facts.created, facts.accessed) = (r.get()?, r.get()?);
    (facts.written, facts.changed) = (r.get()?, r.get()?);
    (facts.size, facts.allocation, facts.attributes) = (r.get()?, r.get()?, r.get()?);
    let len: u32 = r.get()?;
    if level != Level::Directory {
        let _ea: u32 = r.get()?;
    }
    if matches!(level, Level::Both | Level::IdBoth) {
        let _short: [u8; 26] = r.get()?;
    }
    let fileid = match level {
        Level::IdBoth => {
            let _reserved: u16 = r.get()?;
            r.get()?
        }
        Level::IdFull => {
            let _reserved: u32 = r.get()?;
            r.get()?
        }
        _ => 0,
    };
    Ok(Entry { facts, fileid, name: r.take(len as usize)?.to_vec() })
}
