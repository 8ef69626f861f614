//! The table of handles as people read it: every row of the file, from its bytes alone, so that a
//! running server's file can be looked at too.

use std::fmt;

use redb::backends::InMemoryBackend;
use redb::{Builder, ReadableDatabase, ReadableTable, StorageBackend, TableError};

use super::{DIRS, DirRecord, MOVED, take_dir, take_moved};
use crate::host::ids::Ident;

/// What a table says. Rows that another version wrote are counted, not shown.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct TableDump {
    /// A line for each known directory, in the order of their inode numbers.
    pub dirs: Vec<String>,
    /// A line for each file that was renamed or linked across directories.
    pub moved: Vec<String>,
    /// Rows that cannot be read.
    pub unknown: usize,
}

/// Reads the bytes of a `handles-TAG-FORM.redb`; `kernel` when FORM says so.
///
/// # Errors
/// When they are no such table, or damaged beyond what the database repairs.
pub fn dump_table(bytes: &[u8], kernel: bool) -> Result<TableDump, redb::Error> {
    let backend = InMemoryBackend::new();
    backend.set_len(bytes.len() as u64)?;
    backend.write(0, bytes)?;
    let read = Builder::new().create_with_backend(backend)?.begin_read()?;
    let mut dump = TableDump::default();
    match read.open_table(DIRS) {
        Err(TableError::TableDoesNotExist(_)) => {}
        table => {
            for row in table?.iter()? {
                let (ino, record) = row?;
                match take_dir(record.value(), kernel) {
                    Some(record) => dump.dirs.push(directory(ino.value(), &record)),
                    None => dump.unknown += 1,
                }
            }
        }
    }
    match read.open_table(MOVED) {
        Err(TableError::TableDoesNotExist(_)) => {}
        table => {
            for row in table?.iter()? {
                let (ident, record) = row?;
                let ident = Ident::from_bytes(ident.value(), kernel);
                match ident.zip(take_moved(record.value(), kernel)) {
                    Some((ident, moved)) => {
                        let places: Vec<_> =
                            moved.parents.iter().map(ToString::to_string).collect();
                        let (hint, places) = (moved.hint, places.join(", "));
                        dump.moved.push(format!("{ident} first met in {hint}, then in {places}"));
                    }
                    None => dump.unknown += 1,
                }
            }
        }
    }
    Ok(dump)
}

fn directory(ino: u64, record: &DirRecord) -> String {
    let name = String::from_utf8_lossy(&record.name);
    let DirRecord { birth, parent, hint, .. } = record;
    format!("inode {ino} (born {birth}) is {name:?} in {parent}; its handle says {hint}")
}

impl fmt::Display for Ident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inode { ino, .. } => write!(f, "inode {ino}"),
            Self::Kernel(handle) => {
                write!(f, "handle {}:", handle.kind)?;
                handle.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
