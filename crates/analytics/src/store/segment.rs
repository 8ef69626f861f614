//! One segment file: a header, then blocks with a checksum each.
//!
//! A live segment has one block for each frame and is cut off at the first bad block when it is
//! opened for writing. A sealed one ([`super::packing`]) has its frames in packed blocks, each
//! after the names that it adds and with the times that it covers, so that a reader skips what it
//! does not need. When the dictionary is full the numbering of names restarts, in both kinds.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use base::limits::{BLOCK_MAX, FRAME_MAX};

use super::codec::{Damage, Decoder, Encoder, PartSelector, Reader, crc32, split};
use crate::model::Frame;

const MAGIC: &[u8; 8] = b"PLIMSTAT";
const VERSION: u16 = 3;
/// The oldest version that is read: one without restarts of the dictionary.
const VERSION_OLDEST: u16 = 2;
pub(crate) const HEADER_LEN: usize = 32;
/// Kind, length, checksum.
const BLOCK_HEADER_LEN: usize = 9;

/// Kinds of block.
pub(super) mod kind {
    pub(crate) const FRAME: u8 = 1;
    pub(crate) const DICTIONARY: u8 = 2;
    pub(crate) const PACK: u8 = 3;
    /// Names are numbered from 0 again.
    pub(crate) const RESTART: u8 = 4;
}

/// Why a segment cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// The system refused.
    #[error("segment cannot be read or written: {0}")]
    Io(#[from] io::Error),
    /// The file is not a segment, or from a later version.
    #[error("not a statistics segment: {0}")]
    Foreign(&'static str),
    /// The file is ours and damaged.
    #[error(transparent)]
    Damaged(#[from] Damage),
}

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Whether it is finished and packed.
    pub sealed: bool,
    /// Seconds in a frame.
    pub span: u32,
    /// Its first possible time, in seconds since the epoch.
    pub start: u64,
}

impl Header {
    pub(super) fn encode(self) -> [u8; HEADER_LEN] {
        let mut out = [0; HEADER_LEN];
        out[..8].copy_from_slice(MAGIC);
        out[8..10].copy_from_slice(&VERSION.to_le_bytes());
        out[10] = u8::from(self.sealed);
        out[12..16].copy_from_slice(&self.span.to_le_bytes());
        out[16..24].copy_from_slice(&self.start.to_le_bytes());
        let crc = crc32(&[&out[..28]]);
        out[28..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8; HEADER_LEN]) -> Result<Self, SegmentError> {
        let number = |from: usize, len: usize| {
            bytes[from..from + len].iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b))
        };
        if &bytes[..8] != MAGIC {
            return Err(SegmentError::Foreign("it does not start with PLIMSTAT"));
        }
        if number(28, 4) != u64::from(crc32(&[&bytes[..28]])) {
            return Err(SegmentError::Foreign("its header is damaged"));
        }
        if !(VERSION_OLDEST.into()..=VERSION.into()).contains(&number(8, 2)) {
            return Err(SegmentError::Foreign("unknown version"));
        }
        let (span, start) = (number(12, 4) as u32, number(16, 8));
        Ok(Self { sealed: bytes[10] == 1, span, start })
    }
}

pub(super) fn block(kind: u8, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_le_bytes();
    let mut out = Vec::with_capacity(BLOCK_HEADER_LEN + payload.len());
    out.push(kind);
    out.extend_from_slice(&len);
    out.extend_from_slice(&crc32(&[&[kind], &len, payload]).to_le_bytes());
    out.extend_from_slice(payload);
    out
}

/// Reads blocks up to the end or the first bad one.
pub(super) struct Blocks {
    file: BufReader<File>,
    pub(super) header: Header,
    /// End of the last good block.
    good: u64,
    /// End of the file when it was opened: no block reaches beyond, whatever its length field is.
    end: u64,
}

pub(super) enum Step {
    Block(u8, Vec<u8>),
    /// A packed block outside of the wanted times.
    Skipped,
    End,
}

impl Blocks {
    pub(super) fn open(path: &Path) -> Result<Self, SegmentError> {
        let file = File::open(path)?;
        let end = file.metadata()?.len();
        let mut file = BufReader::with_capacity(64 << 10, file);
        let mut bytes = [0; HEADER_LEN];
        match file.read_exact(&mut bytes) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(SegmentError::Foreign("it is shorter than a header"));
            }
            done => done?,
        }
        let header = Header::decode(&bytes)?;
        Ok(Self { file, header, good: HEADER_LEN as u64, end })
    }

    /// The next block. Frames and dictionaries always; packs only when `want` is true for their
    /// first and last time.
    pub(super) fn next(&mut self, want: &dyn Fn(u64, u64) -> bool) -> Result<Step, SegmentError> {
        let mut head = [0; BLOCK_HEADER_LEN];
        if !fill(&mut self.file, &mut head)? {
            return Ok(Step::End);
        }
        let (kind, len) = (head[0], u32::from_le_bytes([head[1], head[2], head[3], head[4]]));
        let limit = if kind == kind::FRAME { FRAME_MAX } else { BLOCK_MAX };
        let left = self.end.saturating_sub(self.good + BLOCK_HEADER_LEN as u64);
        if len as usize > limit || u64::from(len) > left {
            return Ok(Step::End);
        }
        let mut payload = vec![0; 16.min(len as usize)];
        if !fill(&mut self.file, &mut payload)? {
            return Ok(Step::End);
        }
        if let (kind::PACK, Some((first, last))) = (kind, pack_times(&payload))
            && !want(first, last)
        {
            self.file.seek_relative(i64::from(len) - payload.len() as i64)?;
            self.good += (BLOCK_HEADER_LEN + len as usize) as u64;
            return Ok(Step::Skipped);
        }
        let have = payload.len();
        payload.resize(len as usize, 0);
        if !fill(&mut self.file, &mut payload[have..])? {
            return Ok(Step::End);
        }
        let crc = u32::from_le_bytes([head[5], head[6], head[7], head[8]]);
        if crc32(&[&head[..5], &payload]) != crc {
            return Ok(Step::End);
        }
        self.good += (BLOCK_HEADER_LEN + payload.len()) as u64;
        Ok(Step::Block(kind, payload))
    }
}

/// `false` at the end of the file.
fn fill(file: &mut impl Read, out: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(out) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        done => done.map(|()| true),
    }
}

fn pack_times(payload: &[u8]) -> Option<(u64, u64)> {
    let word = |at: usize| Some(u64::from_le_bytes(payload.get(at..at + 8)?.try_into().ok()?));
    Some((word(0)?, word(8)?))
}

/// Shows the frames of a segment within `from..to`, with the tables that are wanted. Ends at
/// the first bad block of a live segment; that is how far it was written.
///
/// # Errors
/// When the file cannot be read, is not a segment, or has a valid checksum over invalid data.
pub(crate) fn read(
    path: &Path,
    (from, to): (u64, u64),
    want: PartSelector<'_>,
    visit: &mut dyn FnMut(Frame),
) -> Result<Header, SegmentError> {
    let mut blocks = Blocks::open(path)?;
    let span = blocks.header.span;
    let mut decoder = Decoder::default();
    let mut show = |decoder: &mut Decoder, body: &[u8]| {
        let time = Reader::new(body).number("time")?;
        if (from..to).contains(&time) {
            visit(decoder.body(body, span, want)?);
        }
        Ok::<(), Damage>(())
    };
    loop {
        match blocks.next(&|first, last| first < to && last >= from)? {
            Step::End => return Ok(blocks.header),
            Step::Skipped => {}
            Step::Block(kind::FRAME, payload) => {
                let (count, names, body) = split(&payload)?;
                decoder.add(count, names)?;
                show(&mut decoder, body)?;
            }
            Step::Block(kind::DICTIONARY, payload) => {
                let names = unpack(&payload)?;
                let mut reader = Reader::new(&names);
                let count = reader.number("number of names")?;
                decoder.add(count, &names[reader.at()..])?;
            }
            Step::Block(kind::PACK, payload) => {
                each_frame(payload.get(16..).unwrap_or(&[]), |body| show(&mut decoder, body))?;
            }
            Step::Block(kind::RESTART, _) => decoder.restart(),
            // A kind that a later version has added: not for us.
            Step::Block(..) => {}
        }
    }
}

/// Time of the first frame of a segment, if it has one.
///
/// # Errors
/// As [`read`].
pub(crate) fn first(path: &Path) -> Result<Option<u64>, SegmentError> {
    let mut blocks = Blocks::open(path)?;
    loop {
        match blocks.next(&|_, _| true)? {
            Step::End => return Ok(None),
            Step::Block(kind::FRAME, payload) => {
                let (_, _, body) = split(&payload)?;
                return Ok(Some(Reader::new(body).number("time")?));
            }
            Step::Block(kind::PACK, payload) => {
                return Ok(pack_times(&payload).map(|(first, _)| first));
            }
            Step::Block(..) | Step::Skipped => {}
        }
    }
}

fn unpack(packed: &[u8]) -> Result<Vec<u8>, SegmentError> {
    let mut raw = Vec::new();
    let unpacked = zstd::stream::read::Decoder::with_buffer(packed)?;
    unpacked.take(BLOCK_MAX as u64).read_to_end(&mut raw)?;
    Ok(raw)
}

/// Shows the frames of a pack one after the other: all of them together take many times what the
/// pack does.
fn each_frame(
    packed: &[u8],
    mut show: impl FnMut(&[u8]) -> Result<(), Damage>,
) -> Result<(), SegmentError> {
    let mut raw = BufReader::new(zstd::stream::read::Decoder::with_buffer(packed)?);
    let (mut body, mut at) = (Vec::new(), 0);
    while !raw.fill_buf()?.is_empty() {
        let len = frame_len(&mut raw)?.filter(|len| *len <= FRAME_MAX);
        let Some(len) = len else { return Err(Damage { what: "length of a frame", at }.into()) };
        body.resize(len, 0);
        if !fill(&mut raw, &mut body)? {
            return Err(Damage { what: "frame", at }.into());
        }
        at += len;
        show(&body)?;
    }
    Ok(())
}

/// The number that stands before a frame; `None` when it is none.
fn frame_len(raw: &mut impl Read) -> io::Result<Option<usize>> {
    // As many bytes as the longest number has.
    let mut bytes = [0; 10];
    for n in 0..bytes.len() {
        if !fill(raw, &mut bytes[n..=n])? {
            return Ok(None);
        }
        if bytes[n] & 0x80 == 0 {
            let len = Reader::new(&bytes[..=n]).number("length of a frame").ok();
            return Ok(len.and_then(|len| usize::try_from(len).ok()));
        }
    }
    Ok(None)
}

/// A live segment that is being written.
pub(crate) struct Writer {
    pub(super) file: File,
    encoder: Encoder,
    pub(crate) header: Header,
    /// Time of the newest frame.
    pub(crate) last: Option<u64>,
    /// End of the last good block: where the next one is written.
    end: u64,
    /// A write has failed: there may be a part of a block beyond `end`, and the encoder has numbers
    /// for names that are not in the file.
    torn: bool,
}

impl Writer {
    /// Creates a segment, or continues the one at `path`, truncated at its first bad block.
    pub(crate) fn open(path: &Path, header: Header) -> Result<Self, SegmentError> {
        match Self::resume(path) {
            Err(SegmentError::Io(e)) if e.kind() == io::ErrorKind::NotFound => {}
            // Shorter than a header: the power went while it was being made.
            Err(SegmentError::Foreign(_)) if shorter_than_header(path) => {}
            done => return done,
        }
        let mut file = File::create(path)?;
        file.write_all(&header.encode())?;
        // After a power cut a name without its inode could be a file that we may not open.
        file.sync_all()?;
        let (encoder, end) = (Encoder::default(), HEADER_LEN as u64);
        Ok(Self { file, encoder, header, last: None, end, torn: false })
    }

    fn resume(path: &Path) -> Result<Self, SegmentError> {
        let mut blocks = Blocks::open(path)?;
        let mut decoder = Decoder::default();
        let mut last = None;
        while let Step::Block(kind, payload) = blocks.next(&|_, _| true)? {
            if kind == kind::FRAME {
                let (count, names, body) = split(&payload)?;
                decoder.add(count, names)?;
                last = Some(Reader::new(body).number("time")?);
            } else if kind == kind::RESTART {
                decoder.restart();
            }
        }
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        // What is written from here on is of this version.
        file.write_all_at(&blocks.header.encode(), 0)?;
        let (encoder, header, end) = (Encoder::resume(&decoder), blocks.header, blocks.good);
        file.set_len(end)?;
        Ok(Self { file, encoder, header, last, end, torn: false })
    }

    /// Writes a frame; one system call, so that a reader or a crash sees all of it or a bad block.
    /// When it fails, the next frame takes its place: nothing behind a bad block is ever read.
    pub(crate) fn append(&mut self, frame: &Frame) -> Result<(), SegmentError> {
        if self.torn {
            self.file.set_len(self.end)?;
        }
        let mut bytes = Vec::new();
        if self.torn || self.encoder.is_full() {
            self.encoder = Encoder::default();
            bytes = block(kind::RESTART, &[]);
        }
        bytes.extend(block(kind::FRAME, &self.encoder.frame(frame)));
        self.torn = true;
        self.file.write_all_at(&bytes, self.end)?;
        self.torn = false;
        self.end += bytes.len() as u64;
        self.last = Some(frame.time);
        Ok(())
    }

    /// Brings it to the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

fn shorter_than_header(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.len() < HEADER_LEN as u64)
}
