//! Key-value records in an internal file: each change is on disk when the call returns.
//!
//! Changes are appended with a checksum and flushed. A torn record at the end was never
//! acknowledged and is truncated. When most of the file is old, the records are written to a
//! temporary file, which is renamed over it. The content of the records is defined by their owner.
//! All of them are in memory: this is for thousands, not millions.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use thiserror::Error;

use crate::flush::FlushSite;

/// What a journal may hold.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of a key and its value together.
    pub record_max: usize,
    /// Largest file that is read or written, in bytes: it is rewritten before it is longer.
    pub file_max: u64,
    /// A file that is longer than this, and more than half old, is rewritten.
    pub compact: u64,
}

/// Why a change is not kept.
#[derive(Debug, Error)]
pub enum JournalError {
    /// The file cannot be read, or holds something else: the machine's fault.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file cannot be written: the machine's fault.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The record is longer than [`Limits::record_max`]: the caller's fault.
    #[error("the record is too long")]
    TooLong,
}

/// Keys and their values.
pub type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// A key and its new value; without one it is removed.
pub type Change<'a> = (&'a [u8], Option<&'a [u8]>);

/// Bytes of a record's check.
pub(crate) const CHECK: usize = 8;
/// Bytes before the key: length of what follows without the check, verb, length of the key.
const HEAD: usize = 4 + 1 + 2;
/// The key has this value from now on.
const PUT: u8 = 1;
/// There is no such key any more.
const GONE: u8 = 2;

/// An open journal.
pub struct Journal {
    path: PathBuf,
    magic: [u8; 8],
    limits: Limits,
    inner: Mutex<Inner>,
}

struct Inner {
    records: Records,
    /// None if the file must be rewritten first: an attempt has failed, or the state of its end is
    /// unknown.
    file: Option<File>,
    len: u64,
    /// Bytes of obsolete records.
    old: u64,
}

impl Journal {
    /// Opens or makes the file, which begins with `magic`. If it cannot be written now, as on a
    /// full disk, that is the second value: the records are there all the same, and changes are
    /// taken as soon as it can be.
    ///
    /// # Errors
    /// It cannot be read, or is something else.
    pub fn open(
        path: &Path,
        magic: [u8; 8],
        limits: Limits,
    ) -> Result<(Self, Option<JournalError>), JournalError> {
        let failed = |source| JournalError::Read { path: path.to_path_buf(), source };
        let mut bytes = Vec::new();
        match File::open(path) {
            Ok(file) => {
                file.take(limits.file_max + 1).read_to_end(&mut bytes).map_err(failed)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        if bytes.len() as u64 > limits.file_max {
            // Bytes beyond the limit would be lost when the file is rewritten.
            return Err(failed(io::ErrorKind::FileTooLarge.into()));
        }
        let records = read(&bytes, magic).map_err(failed)?;
        // Rewritten at each start: this removes a torn end and keeps the file short.
        let inner = Mutex::new(Inner { records, file: None, len: 0, old: 0 });
        let journal = Self { path: path.to_path_buf(), magic, limits, inner };
        let unwritten = journal.rewrite(&mut journal.lock()).err();
        Ok((journal, unwritten))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing under this lock panics half way through a change.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All records.
    pub fn records(&self) -> Records {
        self.lock().records.clone()
    }

    /// Gives a key a value. On disk when it returns; if that fails the old value stays.
    ///
    /// # Errors
    /// It is too long, or cannot be written.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<(), JournalError> {
        self.change(&[(key, Some(value))])
    }

    /// Removes keys; it is no error if some do not exist. On disk when it returns.
    ///
    /// # Errors
    /// It cannot be written; then all of them still exist.
    pub fn remove(&self, keys: &[&[u8]]) -> Result<(), JournalError> {
        let mut inner = self.lock();
        let there = keys.iter().filter(|key| inner.records.contains_key(**key));
        let changes: Vec<Change<'_>> = there.map(|key| (*key, None)).collect();
        if changes.is_empty() {
            return Ok(());
        }
        self.apply(&mut inner, &changes)
    }

    /// Makes changes in their order, with one flush for all: a key gets a value, or is removed.
    /// On disk when it returns; if that fails nothing has changed.
    ///
    /// # Errors
    /// One is too long, or they cannot be written.
    pub fn change(&self, changes: &[Change<'_>]) -> Result<(), JournalError> {
        self.apply(&mut self.lock(), changes)
    }

    fn apply(&self, inner: &mut Inner, changes: &[Change<'_>]) -> Result<(), JournalError> {
        let mut bytes = Vec::new();
        for (key, value) in changes {
            let length = key.len() + value.map_or(0, <[u8]>::len);
            if length > self.limits.record_max || key.len() > usize::from(u16::MAX) {
                return Err(JournalError::TooLong);
            }
            bytes.extend(match value {
                Some(value) => encode(PUT, key, value),
                None => encode(GONE, key, &[]),
            });
        }
        self.append(inner, &bytes)?;
        for (key, value) in changes {
            let before = match value {
                Some(value) => inner.records.insert(key.to_vec(), value.to_vec()),
                None => {
                    inner.old += (HEAD + key.len() + CHECK) as u64;
                    inner.records.remove(*key)
                }
            };
            if let Some(before) = before {
                inner.old += (HEAD + key.len() + before.len() + CHECK) as u64;
            }
        }
        self.compact(inner);
        Ok(())
    }

    fn append(&self, inner: &mut Inner, bytes: &[u8]) -> Result<(), JournalError> {
        let too_long = inner.len + bytes.len() as u64 > self.limits.file_max;
        if too_long {
            self.rewrite(inner)?;
        }
        let mut file = match inner.file.take() {
            Some(file) => file,
            None => self.rewritten(inner)?,
        };
        let flush = |file: &File| match FlushSite::Journal.enabled() {
            true => file.sync_data(),
            false => Ok(()),
        };
        let done = file.write_all(bytes).and_then(|()| flush(&file));
        if let Err(source) = done {
            // A second flush would prove nothing: the file is rewritten without the record, now or
            // before the next change.
            self.rewrite(inner)?;
            return Err(JournalError::Write { path: self.path.clone(), source });
        }
        (inner.file, inner.len) = (Some(file), inner.len + bytes.len() as u64);
        Ok(())
    }

    fn compact(&self, inner: &mut Inner) {
        if inner.len > self.limits.compact && inner.old * 2 > inner.len {
            // The change that brought us here is on disk already; what failed is tried again when
            // the next one comes.
            let _ = self.rewrite(inner);
        }
    }

    fn rewrite(&self, inner: &mut Inner) -> Result<(), JournalError> {
        // If this fails, the name may be another file's already.
        inner.file = None;
        inner.file = Some(self.rewritten(inner)?);
        Ok(())
    }

    fn rewritten(&self, inner: &mut Inner) -> Result<File, JournalError> {
        let whole = write_whole(&self.path, self.magic, &inner.records);
        let (file, len) =
            whole.map_err(|source| JournalError::Write { path: self.path.clone(), source })?;
        (inner.len, inner.old) = (len, 0);
        Ok(file)
    }
}

fn encode(verb: u8, key: &[u8], value: &[u8]) -> Vec<u8> {
    let len = 3 + key.len() + value.len();
    let mut out = Vec::with_capacity(4 + len + CHECK);
    // The limits are far below what these hold.
    out.extend((len as u32).to_le_bytes());
    out.push(verb);
    out.extend((key.len() as u16).to_le_bytes());
    out.extend(key);
    out.extend(value);
    let check = check(&out);
    out.extend(check);
    out
}

/// The check of a record.
pub(crate) fn check(bytes: &[u8]) -> [u8; CHECK] {
    let hash = blake3::hash(bytes);
    hash.as_bytes().first_chunk().copied().unwrap_or_default()
}

/// Verb, key, value, and where the next record begins.
fn decode(bytes: &[u8]) -> Option<(u8, &[u8], &[u8], usize)> {
    let end = 4 + u32::from_le_bytes(*bytes.first_chunk()?) as usize;
    let body = bytes.get(..end)?;
    if bytes.get(end..end + CHECK)? != check(body) {
        return None;
    }
    let key = usize::from(u16::from_le_bytes(*body.get(5..)?.first_chunk()?));
    let (key, value) = body.get(HEAD..)?.split_at_checked(key)?;
    Some((*body.get(4)?, key, value, end + CHECK))
}

/// The records in the bytes of a file, as `plimsoll inspect` shows them. An incomplete record at
/// the end was never acknowledged, and ends the reading.
///
/// # Errors
/// `InvalidData` if the bytes are something else.
pub fn read(bytes: &[u8], magic: [u8; 8]) -> io::Result<Records> {
    if magic.starts_with(bytes) {
        return Ok(Records::new());
    }
    let mut rest = bytes.strip_prefix(&magic).ok_or(io::ErrorKind::InvalidData)?;
    let mut records = Records::new();
    while let Some((verb, key, value, len)) = decode(rest) {
        match verb {
            PUT => records.insert(key.to_vec(), value.to_vec()),
            GONE => records.remove(key),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        rest = rest.get(len..).unwrap_or_default();
    }
    Ok(records)
}

fn write_whole(path: &Path, magic: [u8; 8], records: &Records) -> io::Result<(File, u64)> {
    let mut bytes = magic.to_vec();
    records.iter().for_each(|(key, value)| bytes.extend(encode(PUT, key, value)));
    replace(path, &bytes)
}

/// Writes a file aside, flushes it, renames it, flushes the folder; gives it for appending, and its
/// length.
///
/// # Errors
/// The error of the system call; then the file is unchanged.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<(File, u64)> {
    let aside = path.with_extension("new");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
    file.write_all(bytes)?;
    if FlushSite::JournalWhole.enabled() {
        file.sync_all()?;
    }
    std::fs::rename(&aside, path)?;
    let folder = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    if FlushSite::JournalName.enabled() {
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok((file, bytes.len() as u64))
}

#[cfg(test)]
mod tests;
