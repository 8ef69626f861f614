//! A directory and all that is in it as one ZIP, made while it is sent: nothing is compressed, so
//! it leaves as fast as the files can be read, and ZIP can be opened everywhere.
//!
//! Format: PKWARE's APPNOTE 6.3.10, with ZIP64 where sizes need it. What cannot be read is named in
//! a file of its own at the end.

mod table;

use std::rc::Rc;
use std::sync::Arc;

use base::limits::{HTTP_ARCHIVE_DEPTH_MAX, TRANSFER_OPEN_TRIES, TRANSFER_PIECE};
use base::units::{Civil, civil};
use vfs::attr::FileType;
use vfs::fs::Context;
use vfs::status::Status;

use self::table::Table;
use super::attachment::attachment;
use super::descent::Descent;
use super::exchange::Exchange;
use super::request::Local;
use super::response::{Broken, Produce, Response};
use engine::transport::buffers::ReplyBuf;
use files::list::Listed;
use files::reader::Reader;
use files::{Node, VPath};

/// Sizes and offsets from here on do not fit their fields (APPNOTE §4.3.9.2).
const LARGE: u64 = 0xffff_ffff;
/// Counts from here on do not fit theirs.
const MANY: usize = 0xffff;
/// Bytes of a record in the table at most, its name apart.
const RECORD_MAX: usize = 128;
/// Names at the end what is missing.
const MISSING: &str = "NOT-IN-THIS-ARCHIVE.txt";

/// The entry of a file in the central directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Member {
    name: Vec<u8>,
    modified: i64,
    mode: u32,
    crc: u32,
    size: u64,
    offset: u64,
}

impl Member {
    fn is_dir(&self) -> bool {
        self.name.ends_with(b"/")
    }

    /// Bit 3: the checksum comes after the data; bit 11: the name is UTF-8.
    fn flags(&self) -> u16 {
        let late = if self.is_dir() { 0 } else { 1 << 3 };
        late | if std::str::from_utf8(&self.name).is_ok() { 1 << 11 } else { 0 }
    }

    /// Time and date of MS-DOS, which begins in 1980 and counts two seconds at a time; in UTC.
    fn dos_time(&self) -> (u16, u16) {
        let Civil { year, month, day, hour: h, minute: m, second: s } = civil(self.modified);
        if !(1980..2108).contains(&year) {
            return (0, 1 << 5 | 1);
        }
        let time = h << 11 | m << 5 | (s / 2);
        let day = (year - 1980) << 9 | month << 5 | day;
        (time as u16, day as u16)
    }

    /// The time as UNIX has it (extra field 0x5455), if it fits.
    fn unix_time(&self) -> Vec<u8> {
        let Ok(time) = i32::try_from(self.modified) else { return Vec::new() };
        [&0x5455_u16.to_le_bytes()[..], &5_u16.to_le_bytes(), &[1], &time.to_le_bytes()].concat()
    }

    /// What local header and table have in common: from the version needed to the length of the
    /// name.
    fn common(&self, (crc, size): (u32, u64), extra: usize) -> Vec<u8> {
        let (time, day) = self.dos_time();
        let mut out = Vec::with_capacity(30 + self.name.len());
        for field in [45, self.flags(), 0, time, day] {
            out.extend(field.to_le_bytes());
        }
        out.extend(crc.to_le_bytes());
        let size = size.min(LARGE) as u32;
        out.extend(size.to_le_bytes());
        out.extend(size.to_le_bytes());
        out.extend((self.name.len() as u16).to_le_bytes());
        out.extend((extra as u16).to_le_bytes());
        out
    }

    /// In front of the data. `large` if more than 4 GiB are to come.
    fn local(&self, large: bool) -> Vec<u8> {
        let mut extra = self.unix_time();
        if large {
            extra.extend(1_u16.to_le_bytes());
            extra.extend(16_u16.to_le_bytes());
            extra.extend([0; 16]);
        }
        let size = if large { LARGE } else { 0 };
        let common = self.common((0, size), extra.len());
        [&b"PK\x03\x04"[..], &common, &self.name, &extra].concat()
    }

    /// Behind the data.
    fn descriptor(&self, large: bool) -> Vec<u8> {
        let mut out = b"PK\x07\x08".to_vec();
        out.extend(self.crc.to_le_bytes());
        for _ in 0..2 {
            if large {
                out.extend(self.size.to_le_bytes());
            } else {
                out.extend((self.size as u32).to_le_bytes());
            }
        }
        out
    }

    /// In the table at the end.
    fn central(&self) -> Vec<u8> {
        let mut wide = Vec::new();
        if self.size >= LARGE {
            wide.extend(self.size.to_le_bytes());
            wide.extend(self.size.to_le_bytes());
        }
        if self.offset >= LARGE {
            wide.extend(self.offset.to_le_bytes());
        }
        let mut extra = self.unix_time();
        if !wide.is_empty() {
            extra.extend(1_u16.to_le_bytes());
            extra.extend((wide.len() as u16).to_le_bytes());
            extra.extend(wide);
        }
        // Made by UNIX, by version 4.5 of the format.
        let mut out = [&b"PK\x01\x02"[..], &(3_u16 << 8 | 45).to_le_bytes()].concat();
        out.extend(self.common((self.crc, self.size), extra.len()));
        // No comment, on the first disk, nothing about text.
        out.extend([0; 6]);
        let dos = if self.is_dir() { 0x10 } else { 0 };
        out.extend((self.mode << 16 | dos).to_le_bytes());
        out.extend((self.offset.min(LARGE) as u32).to_le_bytes());
        out.extend(&self.name);
        out.extend(extra);
        out
    }
}

/// The end of the archive: where its table is.
fn end(count: usize, (start, length): (u64, u64)) -> Vec<u8> {
    let mut out = Vec::new();
    if count >= MANY || start >= LARGE || length >= LARGE {
        out.extend(b"PK\x06\x06");
        out.extend(44_u64.to_le_bytes());
        out.extend([45, 3, 45, 0]);
        out.extend([0; 8]);
        for field in [count as u64, count as u64, length, start] {
            out.extend(field.to_le_bytes());
        }
        out.extend(b"PK\x06\x07");
        out.extend([0; 4]);
        out.extend((start + length).to_le_bytes());
        out.extend(1_u32.to_le_bytes());
    }
    out.extend(b"PK\x05\x06");
    out.extend([0; 4]);
    for _ in 0..2 {
        out.extend((count.min(MANY) as u16).to_le_bytes());
    }
    out.extend((length.min(LARGE) as u32).to_le_bytes());
    out.extend((start.min(LARGE) as u32).to_le_bytes());
    out.extend([0; 2]);
    out
}

/// A file that is being read.
struct Reading {
    reader: Reader,
    member: Member,
    crc: crc32fast::Hasher,
    large: bool,
}

/// An archive that is being made.
struct Zip {
    cx: Rc<Exchange>,
    walk: Descent<()>,
    reading: Option<Reading>,
    table: Table,
    /// Where the table begins, once all before it is made.
    start: Option<u64>,
    missing: Vec<u8>,
    /// Bytes made so far.
    at: u64,
    buf: ReplyBuf,
}

/// Answers with a directory as an archive.
pub fn zip(cx: &Rc<Exchange>, (path, node): (&VPath, Node)) -> Response {
    let name = path.name().unwrap_or(b"share").to_vec();
    let zip = Zip {
        cx: Rc::clone(cx),
        walk: Descent::new(node, ()),
        reading: None,
        table: Table::default(),
        start: None,
        missing: Vec::new(),
        at: 0,
        buf: ReplyBuf::default(),
    };
    Response::new(200)
        .with("content-disposition", attachment(&[&name, &b".zip"[..]].concat()))
        .with("cache-control", "private, no-store")
        .stream("application/zip", zip)
}

impl Zip {
    fn put(&mut self, into: &mut Vec<u8>, bytes: &[u8]) {
        into.extend_from_slice(bytes);
        self.at += bytes.len() as u64;
    }

    fn miss(&mut self, name: &[u8], why: &str) {
        if self.missing.len() < TRANSFER_PIECE {
            self.missing.extend_from_slice(name);
            self.missing.extend_from_slice(format!(": {why}\n").as_bytes());
        }
    }

    async fn part(&mut self, into: &mut Vec<u8>) -> Result<bool, Broken> {
        if let Some(reading) = self.reading.take() {
            self.read_on(into, reading).await?;
            return Ok(true);
        }
        if self.walk.depth() == 0 {
            return self.finish(into);
        }
        let Some(listed) = self.walk.take() else {
            match self.walk.fill(&self.cx.core, &self.cx.caller).await {
                Ok(true) => {}
                Ok(false) => drop(self.walk.leave()),
                Err(why) => {
                    let name = self.path(b"");
                    self.miss(&name, &why.to_string());
                    drop(self.walk.leave());
                }
            }
            return Ok(true);
        };
        self.enter(into, listed).await?;
        Ok(true)
    }

    /// The path of an entry of the current directory.
    fn path(&self, name: &[u8]) -> Vec<u8> {
        let mut path = Vec::new();
        for part in self.walk.components() {
            path.extend_from_slice(part);
            path.push(b'/');
        }
        path.extend_from_slice(name);
        path
    }

    /// A member is complete.
    fn add(&mut self, member: &Member) -> Result<(), Broken> {
        match self.table.add(&member.central(), &self.cx.core.budget) {
            true => Ok(()),
            false => Err(Broken("not enough memory for the archive directory".to_owned())),
        }
    }

    async fn enter(&mut self, into: &mut Vec<u8>, listed: Listed) -> Result<(), Broken> {
        let Some((dir, ())) = self.walk.current() else { return Ok(()) };
        let dir = dir.clone();
        let name = self.path(&listed.name);
        let Some((handle, attr)) = listed.entry else {
            let why = match listed.mounted {
                Some(_) => "on another file system",
                None => "removed, or access denied",
            };
            self.miss(&name, why);
            return Ok(());
        };
        // Its slash, if it is a directory, and the record around the name.
        if name.len() + 1 >= MANY || self.table.is_full(name.len() + RECORD_MAX) {
            self.miss(&name, "too many files");
            return Ok(());
        }
        let (modified, mode) = (attr.mtime.sec, attr.mode & 0o777);
        let member =
            Member { name, modified, offset: self.at, mode: 0o100_000 | mode, ..Member::default() };
        match attr.kind {
            FileType::Directory if self.walk.depth() > HTTP_ARCHIVE_DEPTH_MAX => {
                self.miss(&member.name, "too deep");
            }
            FileType::Directory => {
                let name = [member.name.as_slice(), b"/"].concat();
                let member = Member { name, mode: 0o040_000 | mode, ..member };
                self.put(into, &member.local(false));
                self.add(&member)?;
                let node = Node { handle, attr, ..dir };
                self.walk.enter(listed, node, ()).map_err(|why| Broken(why.to_string()))?;
            }
            FileType::Regular => match self.open(&dir, &listed.name).await {
                Ok(reader) => {
                    let attr = &reader.node().attr;
                    let (modified, mode) = (attr.mtime.sec, 0o100_000 | attr.mode & 0o777);
                    let member = Member { modified, mode, ..member };
                    // It may grow until it is read.
                    let large = attr.size >= LARGE / 2;
                    self.put(into, &member.local(large));
                    let crc = crc32fast::Hasher::new();
                    self.reading = Some(Reading { reader, member, crc, large });
                }
                Err(why) => self.miss(&member.name, &why.to_string()),
            },
            // The target of a symbolic link may be outside the directory.
            _ => self.miss(&member.name, "not a regular file"),
        }
        Ok(())
    }

    /// Opens the file that a name of a directory leads to now: it may have been replaced since it
    /// was listed, and by its name it is found faster than by a handle of the listing.
    async fn open(&self, dir: &Node, name: &[u8]) -> vfs::fs::Result<Reader> {
        let (core, who) = (&self.cx.core, &self.cx.caller);
        let mut opened = Err(Status::Stale);
        for _ in 0..TRANSFER_OPEN_TRIES {
            let (fs, at, name) = (Arc::clone(&dir.reached.share.fs), dir.handle, name.to_vec());
            let look = move |cx: Context<'_>| match fs.lookup(cx, &at, &name) {
                Ok((entry, _)) => Ok(entry),
                Err(failed) => Err(failed.status),
            };
            let entry = core.look(who, &dir.reached.cred, look).await?;
            let node = Node { handle: entry.handle, attr: entry.attr, ..dir.clone() };
            opened = core.reader(who, node).await;
            if opened.as_ref().err() != Some(&Status::Stale) {
                break;
            }
        }
        opened
    }

    async fn read_on(&mut self, into: &mut Vec<u8>, mut reading: Reading) -> Result<(), Broken> {
        self.buf.truncate(0);
        let piece = (reading.member.size, TRANSFER_PIECE);
        let cx = Rc::clone(&self.cx);
        let read = reading.reader.read(&cx.core, &cx.caller, piece, &mut self.buf).await;
        let (count, eof) = read.map_err(|why| Broken(why.to_string()))?;
        let bytes = self.buf.as_slice();
        reading.crc.update(bytes);
        into.extend_from_slice(bytes);
        self.at += count as u64;
        reading.member.size += count as u64;
        if !reading.large && reading.member.size >= LARGE {
            return Err(Broken("a file grew beyond the size in its header".to_owned()));
        }
        if !eof && count > 0 {
            self.reading = Some(reading);
            return Ok(());
        }
        reading.member.crc = reading.crc.finalize();
        self.put(into, &reading.member.descriptor(reading.large));
        self.add(&reading.member)
    }

    /// What is missing, the table piece by piece, and the end; false after that.
    fn finish(&mut self, into: &mut Vec<u8>) -> Result<bool, Broken> {
        let Some(start) = self.start else {
            self.write_missing(into)?;
            self.start = Some(self.at);
            return Ok(true);
        };
        let piece = self.table.take(&self.cx.core.budget);
        match &piece {
            Some(piece) => self.put(into, piece),
            None => {
                let end = end(self.table.count(), (start, self.at - start));
                self.put(into, &end);
            }
        }
        Ok(piece.is_some())
    }

    fn write_missing(&mut self, into: &mut Vec<u8>) -> Result<(), Broken> {
        if self.missing.is_empty() {
            return Ok(());
        }
        let text = std::mem::take(&mut self.missing);
        let (crc, size) = (crc32fast::hash(&text), text.len() as u64);
        let name = MISSING.as_bytes().to_vec();
        let mode = 0o100_644;
        let member = Member { name, mode, crc, size, offset: self.at, modified: 0 };
        self.put(into, &member.local(false));
        self.put(into, &text);
        self.put(into, &member.descriptor(false));
        self.add(&member)
    }
}

impl Drop for Zip {
    fn drop(&mut self) {
        self.table.clear(&self.cx.core.budget);
    }
}

impl Produce for Zip {
    fn next<'a>(&'a mut self, into: &'a mut Vec<u8>) -> Local<'a, Result<bool, Broken>> {
        Box::pin(self.part(into))
    }
}
