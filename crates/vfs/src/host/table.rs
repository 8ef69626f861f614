//! The durable memory that keeps handles valid: where files are that were renamed or linked
//! across directories, and, where there are no kernel handles, where each known directory is.
//!
//! It is held in memory, bounded, and written in groups: new directories within a second, moved
//! files before the reply of the operation that moved them. `docs/formats/handles.md` documents
//! what the two tables of the file hold. An entry too many does no harm: it is a place to look.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;

use base::limits::{
    KNOWN_DIRS_MAX, KNOWN_MOVED_MAX, KNOWN_PARENTS_MAX, TABLE_CACHE, TABLE_WRITE_EVERY,
};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use crate::fs::{Durable, Result};
use crate::host::ids::Ident;
use crate::host::lock::lock;
use crate::host::table::aged::FifoMap;
use crate::host::table::waiting::Waiting;
use crate::status::Status;

mod aged;
pub mod inspect;
mod waiting;

/// Inode of a directory → where it is.
const DIRS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("dirs");
/// Identity of a file → the directory in its handle, and others that have had it.
const MOVED: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("moved");

/// Where a directory is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirRecord {
    /// Birth time of the directory.
    pub birth: u64,
    /// The directory that names it now.
    pub parent: Ident,
    /// The directory in its handle.
    pub hint: Ident,
    /// Its name there.
    pub name: Vec<u8>,
}

/// Where a file may be.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Moved {
    hint: Ident,
    parents: Vec<Ident>,
}

#[derive(Default)]
struct Pending {
    dirs: Waiting<u64>,
    moved: Waiting<Ident>,
}

struct State {
    dirs: FifoMap<u64, DirRecord>,
    moved: FifoMap<Ident, Moved>,
    pending: Pending,
    /// The writer waits until something is pending.
    writer_waits: bool,
    closing: bool,
}

impl State {
    fn new() -> Self {
        Self {
            dirs: FifoMap::new(KNOWN_DIRS_MAX),
            moved: FifoMap::new(KNOWN_MOVED_MAX),
            pending: Pending::default(),
            writer_waits: false,
            closing: false,
        }
    }

    /// What has to leave for it leaves the file as well.
    fn add_dir(&mut self, ino: u64, record: DirRecord) {
        if let Some(old) = self.dirs.insert(ino, record) {
            self.pending.dirs.remove(old);
        }
    }

    fn add_moved(&mut self, ident: Ident, moved: Moved) {
        if let Some(old) = self.moved.insert(ident, moved) {
            self.pending.moved.remove(old);
        }
    }
}

/// The table of one share.
pub struct Table {
    state: Mutex<State>,
    wake: Condvar,
    /// Held while it writes, so that a flush that finds nothing pending has really been written.
    db: Mutex<Option<Database>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Table {
    /// Reads the table in `path`, or makes it; without a path it lives as long as the server.
    pub fn open(path: Option<&Path>, kernel: bool) -> std::result::Result<Arc<Self>, redb::Error> {
        let create = |path| Database::builder().set_cache_size(TABLE_CACHE).create(path);
        let db = path.map(create).transpose()?;
        // The database flushes its file, not the name of a file that it has just made.
        if let Some(dir) = path.and_then(Path::parent) {
            std::fs::File::open(dir).and_then(|dir| dir.sync_all()).map_err(redb::Error::Io)?;
        }
        let mut state = State::new();
        if let Some(db) = &db {
            load(db, &mut state, kernel)?;
        }
        let durable = db.is_some();
        let table = Arc::new(Self {
            state: Mutex::new(state),
            wake: Condvar::new(),
            db: Mutex::new(db),
            writer: Mutex::default(),
        });
        if durable {
            let weak = Arc::downgrade(&table);
            let thread = std::thread::Builder::new()
                .name("handle-table".into())
                .spawn(move || write_lazily(&weak))
                .map_err(redb::Error::Io)?;
            *lock(&table.writer) = Some(thread);
        }
        Ok(table)
    }

    /// The directory in the handle of this file, if it is not the one in which it was found.
    pub fn hint(&self, ident: &Ident) -> Option<Ident> {
        let state = lock(&self.state);
        state.moved.get(ident).map(|moved| moved.hint)
    }

    /// Further directories that may hold a file.
    pub fn parents(&self, ident: &Ident) -> Vec<Ident> {
        let state = lock(&self.state);
        state.moved.get(ident).map(|moved| moved.parents.clone()).unwrap_or_default()
    }

    /// How many directories and moved files it holds.
    pub fn len(&self) -> usize {
        let state = lock(&self.state);
        state.dirs.len() + state.moved.len()
    }

    /// Where a directory is.
    pub fn dir(&self, ino: u64) -> Option<DirRecord> {
        lock(&self.state).dirs.get(&ino).cloned()
    }

    /// A directory was found as `name` in `parent`. Returns the parent in its handle.
    pub fn note_dir(&self, ident: &Ident, parent: Ident, name: &[u8]) -> Ident {
        let Ident::Inode { ino, birth } = *ident else { return parent };
        let mut state = lock(&self.state);
        let known = state.dirs.get(&ino).filter(|known| known.birth == birth);
        let hint = known.map_or(parent, |known| known.hint);
        if known.is_some_and(|known| known.parent == parent && known.name == name) {
            return hint;
        }
        let record = DirRecord { birth, parent, hint, name: name.to_vec() };
        let new = state.dirs.get(&ino).is_none();
        state.pending.dirs.put(ino, put_dir(&record), new);
        state.add_dir(ino, record);
        hint
    }

    /// A file with `hint` in its handle is or was in these directories.
    pub fn note_moved(&self, ident: &Ident, hint: Ident, places: &[Ident]) {
        let mut state = lock(&self.state);
        let mut moved = state.moved.get(ident).cloned().unwrap_or(Moved { hint, parents: vec![] });
        for place in places.iter().filter(|place| **place != moved.hint) {
            // The last place is the likeliest, so it is kept longest.
            moved.parents.retain(|known| known != place);
            moved.parents.insert(0, *place);
        }
        moved.parents.truncate(KNOWN_PARENTS_MAX);
        let new = state.moved.get(ident).is_none();
        state.pending.moved.put(*ident, put_moved(&moved), new);
        state.add_moved(*ident, moved);
    }

    /// Something is pending.
    fn wake_writer(&self, state: &mut State) {
        if std::mem::take(&mut state.writer_waits) {
            self.wake.notify_all();
        }
    }

    /// A directory is gone. If another one bears its inode number by now, that one stays.
    pub fn forget_dir(&self, ident: &Ident) {
        let Ident::Inode { ino, birth } = *ident else { return };
        let mut state = lock(&self.state);
        if state.dirs.get(&ino).is_some_and(|known| known.birth == birth) && state.dirs.remove(&ino)
        {
            state.pending.dirs.remove(ino);
            self.wake_writer(&mut state);
        }
    }

    /// A file is gone.
    pub fn forget_moved(&self, ident: &Ident) {
        let mut state = lock(&self.state);
        if state.moved.remove(ident) {
            state.pending.moved.remove(*ident);
            self.wake_writer(&mut state);
        }
    }

    /// Writes what is pending, in one transaction.
    pub fn write_out(&self) -> Result<()> {
        let mut db = lock(&self.db);
        let pending = std::mem::take(&mut lock(&self.state).pending);
        let Some(db) = db.as_mut() else { return Ok(()) };
        if pending.is_empty() {
            return Ok(());
        }
        if store(db, &pending).is_ok() {
            return Ok(());
        }
        // Nothing of it was written: it stays pending, under what came meanwhile.
        let mut state = lock(&self.state);
        state.pending.dirs.put_back(pending.dirs);
        state.pending.moved.put_back(pending.moved);
        Err(Status::Io)
    }

    /// Writes what is pending and ends the writer.
    pub fn close(&self) {
        lock(&self.state).closing = true;
        self.wake.notify_all();
        if let Some(thread) = lock(&self.writer).take() {
            // If the writer panicked, the write below still reports whether all entries are stored.
            let _ = thread.join();
        }
        // Handles found only through unwritten entries are searched for next time.
        let _ = self.write_out();
        *lock(&self.db) = None;
    }
}

/// The table as a flush target.
pub struct TableFlush(pub Arc<Table>);

impl Durable for TableFlush {
    fn key(&self) -> u64 {
        // Nodes have small numbers, tables have addresses.
        Arc::as_ptr(&self.0) as u64 | 1 << 63
    }
    fn flush(&self) -> Result<()> {
        self.0.write_out()
    }
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.dirs.is_empty() && self.moved.is_empty()
    }
}

/// Waits until something is pending, gathers more of it for a while, and writes it.
fn write_lazily(table: &Weak<Table>) {
    while let Some(table) = table.upgrade() {
        let mut state = lock(&table.state);
        while state.pending.is_empty() && !state.closing {
            state.writer_waits = true;
            state = table.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let waited = table.wake.wait_timeout_while(state, TABLE_WRITE_EVERY, |s| !s.closing);
        let closing = waited.map_or(true, |(state, _)| state.closing);
        if closing {
            return;
        }
        // A failure leaves everything pending for the next round.
        let _ = table.write_out();
    }
}

fn store(db: &Database, pending: &Pending) -> std::result::Result<(), redb::Error> {
    let txn = db.begin_write()?;
    {
        let mut dirs = txn.open_table(DIRS)?;
        for (ino, record) in pending.dirs.iter() {
            match record {
                Some(record) => dirs.insert(ino, record)?,
                None => dirs.remove(ino)?,
            };
        }
        let mut moved = txn.open_table(MOVED)?;
        for (ident, record) in pending.moved.iter() {
            let key = ident.to_bytes();
            match record {
                Some(record) => moved.insert(key.as_slice(), record)?,
                None => moved.remove(key.as_slice())?,
            };
        }
    }
    txn.commit()?;
    Ok(())
}

fn load(db: &Database, state: &mut State, kernel: bool) -> std::result::Result<(), redb::Error> {
    // A first transaction creates the tables, so that reading them cannot fail because there are
    // none.
    store(db, &Pending::default())?;
    let txn = db.begin_read()?;
    for row in txn.open_table(DIRS)?.iter()? {
        let (ino, record) = row?;
        // What we cannot read was written by another version: it is only a place to look.
        let Some(record) = take_dir(record.value(), kernel) else { continue };
        state.add_dir(ino.value(), record);
    }
    for row in txn.open_table(MOVED)?.iter()? {
        let (ident, record) = row?;
        let ident = Ident::from_bytes(ident.value(), kernel);
        let moved = take_moved(record.value(), kernel);
        let Some((ident, moved)) = ident.zip(moved) else { continue };
        state.add_moved(ident, moved);
    }
    Ok(())
}

fn put_ident(out: &mut Vec<u8>, ident: &Ident) {
    let bytes = ident.to_bytes();
    out.push(bytes.len() as u8);
    out.extend(bytes);
}

fn take_ident(rest: &mut &[u8], kernel: bool) -> Option<Ident> {
    let (len, tail) = rest.split_first()?;
    let (bytes, tail) = tail.split_at_checked(usize::from(*len))?;
    *rest = tail;
    Ident::from_bytes(bytes, kernel)
}

fn put_dir(record: &DirRecord) -> Vec<u8> {
    let mut out = record.birth.to_le_bytes().to_vec();
    put_ident(&mut out, &record.parent);
    put_ident(&mut out, &record.hint);
    out.extend(&record.name);
    out
}

fn take_dir(bytes: &[u8], kernel: bool) -> Option<DirRecord> {
    let (birth, mut rest) = bytes.split_first_chunk::<8>()?;
    let parent = take_ident(&mut rest, kernel)?;
    let hint = take_ident(&mut rest, kernel)?;
    Some(DirRecord { birth: u64::from_le_bytes(*birth), parent, hint, name: rest.to_vec() })
}

fn put_moved(moved: &Moved) -> Vec<u8> {
    let mut out = Vec::new();
    put_ident(&mut out, &moved.hint);
    moved.parents.iter().for_each(|parent| put_ident(&mut out, parent));
    out
}

fn take_moved(bytes: &[u8], kernel: bool) -> Option<Moved> {
    let mut rest = bytes;
    let hint = take_ident(&mut rest, kernel)?;
    let mut parents = Vec::new();
    while !rest.is_empty() && parents.len() < KNOWN_PARENTS_MAX {
        parents.push(take_ident(&mut rest, kernel)?);
    }
    Some(Moved { hint, parents })
}

#[cfg(test)]
mod tests;
