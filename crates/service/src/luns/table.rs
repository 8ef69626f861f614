//! The table of units: the identity of each, the file of its blocks, and its node in the tree.
//! `docs/formats/luns.md` describes the format.
//!
//! The key of a record is the identifier of the unit, so a new name of its node changes one record.
//! The previous name is stored with it: a configuration that was not stored in the end finds its
//! unit again.

use std::path::{Path, PathBuf};

use base::limits::{LUN_RECORD_MAX, LUNS_MAX};
use vfs::journal::{Journal, JournalError, Limits};

/// What the journal begins with.
pub const MAGIC: [u8; 8] = *b"PLIMLUN1";
/// First byte of a record; those of before began with their identifier, 6xh.
const VERSION: u8 = 2;
/// Length of a record of before.
const OLD: usize = 22;
/// The project of units of before.
const OLD_PROJECT: &str = "default";

/// Identifier of a unit: NAA type 6.
pub type Guid = [u8; 16];

/// What is to become of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It is there.
    Used = 0,
    /// Its node was destroyed; its file is removed when that is final.
    Destroyed = 1,
    /// It was copied for a node that is about to be made.
    Copied = 2,
}

/// A unit in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its number at its targets.
    pub number: u16,
    /// Bytes of a block.
    pub block: u32,
    /// What is to become of it.
    pub stage: Stage,
    /// Its node: `PROJECT/NAME`.
    pub name: String,
    /// What that was before it was renamed, or nothing.
    pub before: String,
    /// Its file: below the folder of units if it is relative.
    pub path: PathBuf,
}

impl Record {
    fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend(self.number.to_le_bytes());
        out.extend(self.block.to_le_bytes());
        out.push(self.stage as u8);
        let path = self.path.as_os_str().as_encoded_bytes();
        for part in [self.name.as_bytes(), self.before.as_bytes(), path] {
            let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
            out.extend(length.to_le_bytes());
            out.extend(&part[..usize::from(length)]);
        }
        out
    }

    /// A record's value; `None` for what another version has written.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (version, rest) = bytes.split_first()?;
        if *version != VERSION {
            return None;
        }
        let (number, rest) = rest.split_first_chunk()?;
        let (block, rest) = rest.split_first_chunk()?;
        let (stage, mut rest) = rest.split_first()?;
        let mut text = || {
            let (length, after) = rest.split_first_chunk()?;
            let (text, after) = after.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
            rest = after;
            String::from_utf8(text.to_vec()).ok()
        };
        let (name, before, path) = (text()?, text()?, text()?);
        let stage = match stage {
            0 => Stage::Used,
            1 => Stage::Destroyed,
            2 => Stage::Copied,
            _ => return None,
        };
        let (number, block) = (u16::from_le_bytes(*number), u32::from_le_bytes(*block));
        Some(Self { number, block, stage, name, before, path: PathBuf::from(path) })
    }

    /// A record of the old format, with its name as the key.
    fn old(key: &[u8], bytes: &[u8]) -> Option<(Guid, Self)> {
        let (guid, rest) = bytes.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let block = u32::from_le_bytes(rest.try_into().ok()?);
        let name = String::from_utf8(key.to_vec()).ok()?;
        let record = Self {
            number: u16::from_le_bytes(*number),
            block,
            stage: Stage::Used,
            path: PathBuf::from(format!("{name}.lun")),
            name: format!("{OLD_PROJECT}/{name}"),
            before: String::new(),
        };
        Some((*guid, record))
    }
}

/// All units.
pub struct Table {
    journal: Journal,
}

impl Table {
    /// Opens or creates the file; records of the old format are rewritten.
    ///
    /// # Errors
    /// It cannot be read or written, or is something else.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let limits = Limits {
            record_max: LUN_RECORD_MAX,
            file_max: 4 * (LUNS_MAX * LUN_RECORD_MAX) as u64,
            compact: (LUNS_MAX * 256) as u64,
        };
        let (journal, unwritten) = Journal::open(path, MAGIC, limits)?;
        unwritten.map_or(Ok(()), Err)?;
        let table = Self { journal };
        for (key, value) in table.journal.records() {
            if value.len() == OLD
                && let Some((guid, record)) = Record::old(&key, &value)
            {
                table.put(&guid, &record)?;
                table.journal.remove(&[&key])?;
            }
        }
        Ok(table)
    }

    /// All that can be understood.
    pub fn records(&self) -> Vec<(Guid, Record)> {
        let records = self.journal.records().into_iter();
        let one = |(key, value): (Vec<u8>, Vec<u8>)| {
            Some((Guid::try_from(key).ok()?, Record::decode(&value)?))
        };
        records.filter_map(one).collect()
    }

    /// The unit of a node. One that was renamed is found by its name before, unless there is a node
    /// of the name that it has now: `is_node` checks that.
    pub fn of(&self, name: &str, is_node: &dyn Fn(&str) -> bool) -> Option<(Guid, Record)> {
        let records = self.records();
        let was = |record: &Record| record.before == name && !is_node(&record.name);
        let found = records.iter().find(|(_, record)| record.name == name);
        found.or_else(|| records.iter().find(|(_, record)| was(record))).cloned()
    }

    /// Enters a unit. On disk when it returns.
    ///
    /// # Errors
    /// It cannot be written; then what was there is there still.
    pub fn put(&self, guid: &Guid, record: &Record) -> Result<(), JournalError> {
        self.journal.put(guid, &record.encode())
    }

    /// Takes a unit out.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn remove(&self, guid: &Guid) -> Result<(), JournalError> {
        self.journal.remove(&[guid])
    }
}

#[cfg(test)]
mod tests;
