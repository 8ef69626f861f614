//! The table of handles as text, without a server: what `plimsoll inspect` shows of a
//! `handles-TAG-FORM.redb`.

use base::text::hex;
use redb::backends::InMemoryBackend;
use redb::{Database, ReadableDatabase, ReadableTable, StorageBackend, TableError};

use super::{DIRS, MOVED, take_dir, take_moved};
use crate::host::ids::Ident;

/// A directory of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirRow {
    /// Inode number.
    pub ino: u64,
    /// Birth time, ns since the epoch; 0 where the file system keeps none.
    pub birth: u64,
    /// The directory that names it now.
    pub parent: String,
    /// The directory in its handle.
    pub hint: String,
    /// Its name; bytes that are no UTF-8 are replaced.
    pub name: String,
}

/// A file of the table that was renamed or linked across directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedRow {
    /// What identifies it.
    pub file: String,
    /// The directory in its handle.
    pub hint: String,
    /// Directories that it is or was in, the last first.
    pub parents: Vec<String>,
}

/// What a table holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// By inode number.
    pub dirs: Vec<DirRow>,
    /// By identity.
    pub moved: Vec<MovedRow>,
    /// Rows that another version has written.
    pub unknown: u64,
}

/// Reads the table in the bytes of a file. They are a copy, so that neither a server's lock nor an
/// unclean end stands in the way, and nothing is repaired in place.
///
/// # Errors
/// When the bytes are no such database, or are damaged.
pub fn read(bytes: &[u8], kernel: bool) -> Result<Content, Box<redb::Error>> {
    let boxed = |e: redb::Error| Box::new(e);
    let memory = InMemoryBackend::new();
    let filled = memory.set_len(bytes.len() as u64).and_then(|()| memory.write(0, bytes));
    filled.map_err(|e| boxed(redb::Error::Io(e)))?;
    let db = Database::builder().create_with_backend(memory).map_err(|e| boxed(e.into()))?;
    rows(&db, kernel).map_err(boxed)
}

fn rows(db: &Database, kernel: bool) -> Result<Content, redb::Error> {
    let mut content = Content::default();
    let txn = db.begin_read()?;
    match txn.open_table(DIRS) {
        Err(TableError::TableDoesNotExist(_)) => {}
        table => {
            for row in table?.iter()? {
                let (ino, record) = row?;
                let Some(dir) = take_dir(record.value(), kernel) else {
                    content.unknown += 1;
                    continue;
                };
                content.dirs.push(DirRow {
                    ino: ino.value(),
                    birth: dir.birth,
                    parent: text(&dir.parent),
                    hint: text(&dir.hint),
                    name: String::from_utf8_lossy(&dir.name).into_owned(),
                });
            }
        }
    }
    match txn.open_table(MOVED) {
        Err(TableError::TableDoesNotExist(_)) => {}
        table => {
            for row in table?.iter()? {
                let (file, record) = row?;
                let file = Ident::from_bytes(file.value(), kernel);
                let Some((file, moved)) = file.zip(take_moved(record.value(), kernel)) else {
                    content.unknown += 1;
                    continue;
                };
                let parents = moved.parents.iter().map(text).collect();
                content.moved.push(MovedRow {
                    file: text(&file),
                    hint: text(&moved.hint),
                    parents,
                });
            }
        }
    }
    Ok(content)
}

/// `inode 12 of 1700000000`, or the kernel's handle as type and bytes.
fn text(ident: &Ident) -> String {
    match ident {
        Ident::Inode { ino, birth: 0 } => format!("inode {ino}"),
        Ident::Inode { ino, birth } => format!("inode {ino} born {birth}"),
        Ident::Kernel(handle) => {
            format!("kernel handle {} {}", handle.kind, hex(handle.bytes()))
        }
    }
}

#[cfg(test)]
mod tests;
