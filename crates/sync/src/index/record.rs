//! What an index holds, as bytes (`docs/formats/dsync-index.md`), and the order of it.

use std::cmp::Ordering;
use std::io::{self, Read};

use base::limits::{DSYNC_INDEX_PLACE_MAX, PATH_MAX};
use thiserror::Error;
use wire::dsync::{FileId, Kind, Role, Time};

use crate::tree::{ScannedEntry, is_path, split};

/// What a file begins with.
pub const MAGIC: [u8; 8] = *b"PLMdsidx";
/// The form of what follows.
pub const VERSION: u32 = 1;
/// Bytes of a record behind its path.
pub const BODY: usize = 86;
/// Stands where the length of the next path would: there is none.
const END: u16 = u16::MAX;
const _: () = assert!(PATH_MAX < END as usize);
/// Bytes of the hash at the end.
const HASH: usize = 32;

/// Why what is there is no index that can be used.
#[derive(Debug, Error)]
pub enum Unfit {
    /// It could not be read.
    #[error("it cannot be read")]
    Read(#[from] io::Error),
    /// Something else.
    #[error("it is not a dsync index")]
    Foreign,
    /// Another version has written it.
    #[error("it has version {0}, this is version {VERSION}")]
    Version(u32),
    /// It is of other directories.
    #[error("it belongs to other directories")]
    Directories,
    /// It is not what was written.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
}

/// The two places that an index is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedTrees {
    /// Where the source is.
    pub source: Vec<u8>,
    /// Where the destination is.
    pub destination: Vec<u8>,
}

/// What detects that a file was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// What it is.
    pub kind: Kind,
    /// Its bytes; 0 for all but files.
    pub size: u64,
    /// When its content was changed.
    pub mtime: Time,
    /// When anything of it was changed, in nanoseconds since the epoch.
    pub ctime_ns: i128,
    /// Which file it is.
    pub file: FileId,
}

impl State {
    /// That of what was seen.
    pub fn of(seen: &ScannedEntry) -> Option<Self> {
        Some(Self {
            kind: seen.meta.kind,
            size: seen.meta.size,
            mtime: seen.meta.mtime.clone(),
            ctime_ns: seen.ctime_ns,
            file: seen.meta.link.clone()?,
        })
    }
}

/// An entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The way to it from the top.
    pub path: Vec<u8>,
    /// As it was.
    pub state: State,
    /// BLAKE3 of its content, if that was computed.
    pub sum: Option<[u8; 32]>,
}

/// The order of a walk: the names of a directory, then what is in those of them that are
/// directories.
pub fn order(one: &[u8], other: &[u8]) -> Ordering {
    let ((one, first), (other, second)) = (split(one), split(other));
    let slash = |b: &u8| *b == b'/';
    one.split(slash).cmp(other.split(slash)).then_with(|| first.cmp(second))
}

/// A record's state and sum.
pub fn body(state: &State, sum: Option<&[u8; 32]>) -> [u8; BODY] {
    let mut bytes = Vec::with_capacity(BODY);
    bytes.extend([state.kind.0 as u8, u8::from(sum.is_some())]);
    bytes.extend(state.size.to_le_bytes());
    bytes.extend(state.mtime.seconds.to_le_bytes());
    bytes.extend(state.mtime.nanoseconds.to_le_bytes());
    bytes.extend(state.ctime_ns.to_le_bytes());
    bytes.extend(state.file.device.to_le_bytes());
    bytes.extend(state.file.inode.to_le_bytes());
    bytes.extend(sum.unwrap_or(&[0; 32]));
    let mut body = [0; BODY];
    body.copy_from_slice(&bytes);
    body
}

/// The begin of a record.
pub fn head(path: &[u8]) -> Vec<u8> {
    debug_assert!(path.len() < PATH_MAX, "a path that is too long");
    [&(path.len() as u16).to_le_bytes(), path].concat()
}

/// What stands before the records.
pub fn begin(places: &IndexedTrees) -> Vec<u8> {
    let mut bytes = [&MAGIC[..], &VERSION.to_le_bytes()].concat();
    for place in [&places.source, &places.destination] {
        let place = &place[..place.len().min(DSYNC_INDEX_PLACE_MAX)];
        bytes.extend((place.len() as u32).to_le_bytes());
        bytes.extend(place);
    }
    bytes
}

/// What ends the records of a side.
pub fn end() -> [u8; 2] {
    END.to_le_bytes()
}

fn take<const N: usize>(read: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    read.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Reads a record; nothing at the end of a side's. A record of kind [`Kind::UNREADABLE`] was never
/// filled in.
///
/// # Errors
/// It ends before, or cannot be one.
pub fn read(read: &mut impl Read) -> Result<Option<Record>, Unfit> {
    let length = u16::from_le_bytes(take(read)?);
    if length == END {
        return Ok(None);
    }
    let mut path = vec![0; usize::from(length)];
    read.read_exact(&mut path)?;
    if path.is_empty() || !is_path(&path) {
        return Err(Unfit::Damaged("a path that leads nowhere"));
    }
    let [kind, summed] = take(read)?;
    let state = State {
        kind: Kind(u32::from(kind)),
        size: u64::from_le_bytes(take(read)?),
        mtime: Time {
            seconds: i64::from_le_bytes(take(read)?),
            nanoseconds: u32::from_le_bytes(take(read)?),
        },
        ctime_ns: i128::from_le_bytes(take(read)?),
        file: FileId {
            device: u64::from_le_bytes(take(read)?),
            inode: u64::from_le_bytes(take(read)?),
        },
    };
    let sum = take(read)?;
    if state.kind.known_name().is_none() || summed > 1 {
        return Err(Unfit::Damaged("an entry of an unknown kind"));
    }
    Ok(Some(Record { path, state, sum: (summed == 1).then_some(sum) }))
}

/// Hashes what it reads, and counts it.
struct Hashing<R> {
    read: R,
    hasher: blake3::Hasher,
    at: u64,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.read.read(bytes)?;
        self.hasher.update(&bytes[..count]);
        self.at += count as u64;
        Ok(count)
    }
}

/// The parts of an index, in the order in which they are read.
pub enum Part {
    /// A record, and where it begins.
    Record(Role, u64, Record),
    /// The records of a side end here.
    End(Role, u64),
}

/// Reads a whole index: the places that it is about. What `each` gets is only valid when all was
/// read, because the hash is at the end.
///
/// # Errors
/// It is none that was written whole.
pub fn scan(read: impl Read, each: impl FnMut(Part)) -> Result<IndexedTrees, Unfit> {
    scan_all(read, each).map_err(|unfit| match unfit {
        Unfit::Read(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
            Unfit::Damaged("it ends too early")
        }
        other => other,
    })
}

fn scan_all(bytes: impl Read, mut each: impl FnMut(Part)) -> Result<IndexedTrees, Unfit> {
    let mut bytes = Hashing { read: bytes, hasher: blake3::Hasher::new(), at: 0 };
    if take(&mut bytes)? != MAGIC {
        return Err(Unfit::Foreign);
    }
    let version = u32::from_le_bytes(take(&mut bytes)?);
    if version != VERSION {
        return Err(Unfit::Version(version));
    }
    let (source, destination) = (place(&mut bytes)?, place(&mut bytes)?);
    for role in [Role::SOURCE, Role::DESTINATION] {
        let mut last: Option<Vec<u8>> = None;
        loop {
            let at = bytes.at;
            let Some(record) = self::read(&mut bytes)? else {
                each(Part::End(role, at));
                break;
            };
            if record.state.kind == Kind::UNREADABLE {
                return Err(Unfit::Damaged("an entry of an unknown kind"));
            }
            if last.is_some_and(|last| order(&last, &record.path) != Ordering::Less) {
                return Err(Unfit::Damaged("entries out of order"));
            }
            last = Some(record.path.clone());
            each(Part::Record(role, at, record));
        }
    }
    let hash = bytes.hasher.finalize();
    if take::<HASH>(&mut bytes.read)? != *hash.as_bytes() {
        return Err(Unfit::Damaged("its hash is another"));
    }
    match bytes.read.read(&mut [0])? {
        0 => Ok(IndexedTrees { source, destination }),
        _ => Err(Unfit::Damaged("something follows its end")),
    }
}

fn place(read: &mut impl Read) -> Result<Vec<u8>, Unfit> {
    let length = u32::from_le_bytes(take(read)?) as usize;
    if length > DSYNC_INDEX_PLACE_MAX {
        return Err(Unfit::Damaged("a place that is longer than any"));
    }
    let mut bytes = vec![0; length];
    read.read_exact(&mut bytes)?;
    Ok(bytes)
}
