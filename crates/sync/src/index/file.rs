//! An index on the disk: one that was kept, and what becomes the next.

use std::cmp::Ordering;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base::limits::{DSYNC_INDEX_BLOCK, DSYNC_INDEX_MAX, DSYNC_PIECE};
use wire::dsync::Role;

use super::record::{self, IndexedTrees, Part, Record, State, Unfit, body, order};
use crate::tree::aside::aside_name;

/// A range of a file.
struct Range<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl Read for Range<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let room = bytes.len().min(usize::try_from(self.end - self.at).unwrap_or(usize::MAX));
        let count = self.file.read_at(&mut bytes[..room], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// Records one after the other, in their order.
pub struct Records<'a>(BufReader<Range<'a>>, Option<Record>);

impl<'a> Records<'a> {
    fn of(file: &'a File, at: u64, end: u64) -> Self {
        let room = usize::try_from(DSYNC_INDEX_BLOCK).unwrap_or(0);
        let mut records = Self(BufReader::with_capacity(room, Range { file, at, end }), None);
        records.step();
        records
    }

    fn step(&mut self) {
        // What cannot be read was not kept.
        self.1 = record::read(&mut self.0).ok().flatten();
    }

    /// The record of an entry, behind all that were asked for before.
    pub fn find(&mut self, path: &[u8]) -> Option<Record> {
        while let Some(record) = &self.1 {
            match order(&record.path, path) {
                Ordering::Less => self.step(),
                Ordering::Equal => {
                    let found = self.1.take();
                    self.step();
                    return found;
                }
                Ordering::Greater => return None,
            }
        }
        None
    }
}

/// What is known of where a side's records lie.
#[derive(Default)]
struct Side {
    /// Where some of them begin, [`DSYNC_INDEX_BLOCK`] apart or a bit more.
    marks: Vec<u64>,
    end: u64,
}

/// An index that was kept.
pub struct SavedIndex {
    file: File,
    sides: [Side; 2],
}

/// The place of a side in what there are two of.
pub fn at(role: Role) -> usize {
    usize::from(role != Role::SOURCE)
}

impl SavedIndex {
    /// Opens one; nothing if there is none. All of it is read and its hash compared.
    ///
    /// # Errors
    /// Why it is not to be used.
    pub fn open(path: &Path, places: &IndexedTrees) -> Result<Option<Self>, Unfit> {
        // Without O_NONBLOCK, open(2) of a FIFO would wait for a writer.
        let flags = libc::O_NONBLOCK;
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(Unfit::Foreign);
        }
        if meta.len() > DSYNC_INDEX_MAX {
            return Err(Unfit::Damaged("it is larger than any"));
        }
        let mut sides = [Side::default(), Side::default()];
        let bytes =
            BufReader::with_capacity(DSYNC_PIECE, Range { file: &file, at: 0, end: meta.len() });
        let of = record::scan(bytes, |part| match part {
            Part::Record(role, offset, _) => {
                let marks = &mut sides[at(role)].marks;
                if marks.last().is_none_or(|last| offset - last >= DSYNC_INDEX_BLOCK) {
                    marks.push(offset);
                }
            }
            Part::End(role, offset) => sides[at(role)].end = offset,
        })?;
        if of != *places {
            return Err(Unfit::Directories);
        }
        Ok(Some(Self { file, sides }))
    }

    /// All records of a side.
    pub fn records(&self, role: Role) -> Records<'_> {
        let side = &self.sides[at(role)];
        let start = side.marks.first().copied().unwrap_or(side.end);
        Records::of(&self.file, start, side.end)
    }

    /// The record of an entry.
    pub fn find(&self, role: Role, path: &[u8]) -> Option<Record> {
        let side = &self.sides[at(role)];
        let before = |mark: &u64| {
            let mut range = Range { file: &self.file, at: *mark, end: side.end };
            let record = record::read(&mut range).ok().flatten();
            record.is_some_and(|record| order(&record.path, path) != Ordering::Greater)
        };
        let behind = side.marks.partition_point(before);
        let start = *side.marks.get(behind.checked_sub(1)?)?;
        let end = side.marks.get(behind).copied().unwrap_or(side.end);
        Records::of(&self.file, start, end).find(path)
    }
}

/// A file without a name, in the directory of the index.
fn nameless(beside: &Path) -> io::Result<File> {
    let path = new_name(beside);
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

fn new_name(beside: &Path) -> PathBuf {
    beside.with_file_name(std::ffi::OsStr::from_bytes(&aside_name()))
}

/// Sums as they are computed, by paths in the order of the walk.
pub struct Spool {
    file: File,
    at: u64,
    last: Vec<u8>,
}

impl Spool {
    /// None.
    pub fn new(beside: &Path) -> io::Result<Self> {
        Ok(Self { file: nameless(beside)?, at: 0, last: Vec::new() })
    }

    /// Makes room for the sum of a file: its offset. A request out of order gets none, so the
    /// requests of the other side cost no more than one sum a file.
    pub fn enter(&mut self, path: &[u8]) -> io::Result<Option<u64>> {
        let head = record::head(path);
        let full = self.at + (head.len() + record::BODY) as u64 > DSYNC_INDEX_MAX;
        if full || (!self.last.is_empty() && order(&self.last, path) != Ordering::Less) {
            return Ok(None);
        }
        let slot = self.at + head.len() as u64;
        self.file.write_all_at(&[&head[..], &[0; record::BODY]].concat(), self.at)?;
        self.at = slot + record::BODY as u64;
        self.last = path.to_vec();
        Ok(Some(slot))
    }

    /// Fills it in.
    pub fn fill(&self, slot: u64, state: &State, sum: &[u8; 32]) -> io::Result<()> {
        self.file.write_all_at(&body(state, Some(sum)), slot)
    }

    /// All records.
    pub fn records(&self) -> Records<'_> {
        Records::of(&self.file, 0, self.at)
    }
}

/// The records of a side, for the next index.
pub struct Draft {
    file: BufWriter<File>,
    bytes: u64,
}

impl Draft {
    /// None.
    pub fn new(beside: &Path) -> io::Result<Self> {
        Ok(Self { file: BufWriter::with_capacity(DSYNC_PIECE, nameless(beside)?), bytes: 0 })
    }

    /// Adds one.
    pub fn add(&mut self, record: &Record) -> io::Result<()> {
        let head = record::head(&record.path);
        self.file.write_all(&head)?;
        self.file.write_all(&body(&record.state, record.sum.as_ref()))?;
        self.bytes += (head.len() + record::BODY) as u64;
        match self.bytes > DSYNC_INDEX_MAX / 4 {
            true => Err(io::Error::other("there are more entries than an index may have")),
            false => Ok(()),
        }
    }
}

/// Writes an index atomically: to a temporary file, flushed and then renamed.
pub fn write(path: &Path, places: &IndexedTrees, sides: [Option<Draft>; 2]) -> io::Result<()> {
    let new = new_name(path);
    let written = write_new(&new, places, sides).and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        // There may be none.
        let _none = std::fs::remove_file(&new);
        return written;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn write_new(new: &Path, places: &IndexedTrees, sides: [Option<Draft>; 2]) -> io::Result<()> {
    let mut hasher = blake3::Hasher::new();
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new)?;
    let mut put = |bytes: &[u8]| {
        hasher.update(bytes);
        file.write_all(bytes)
    };
    put(&record::begin(places))?;
    let mut piece = vec![0; DSYNC_PIECE];
    for side in sides {
        if let Some(Draft { mut file, bytes }) = side {
            file.flush()?;
            let mut records = Range { file: file.get_ref(), at: 0, end: bytes };
            loop {
                match records.read(&mut piece)? {
                    0 => break,
                    count => put(&piece[..count])?,
                }
            }
        }
        put(&record::end())?;
    }
    let hash = hasher.finalize();
    file.write_all(hash.as_bytes())?;
    file.sync_all()
}
