//! Frames as bytes: variable-length numbers, names by number from the segment's dictionary.
//!
//! The layout is in `docs/formats/segments.md`. Reading checks every length; damage is an error
//! with a place, never a panic.

use std::collections::HashMap;
use std::sync::Arc;

use base::buckets;
use base::limits::{DICTIONARY_BYTES_MAX, DICTIONARY_NAMES_MAX};

use crate::model::{Frame, Key, Name, Table};

/// Longest name or label in a dictionary: a path of 4 KiB with its share.
const NAME_MAX: u64 = 8 << 10;

/// What is wrong with bytes that should be a frame. The disk's fault, or another program's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("damaged frame: {what} at byte {at}")]
pub struct Damage {
    /// What was being read.
    pub what: &'static str,
    /// Where.
    pub at: usize,
}

/// Appends `n`, seven bits to a byte, low ones first (LEB128).
pub(crate) fn put(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Reads from a slice.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn damage<T>(&self, what: &'static str) -> Result<T, Damage> {
        Err(Damage { what, at: self.at })
    }

    pub(crate) fn number(&mut self, what: &'static str) -> Result<u64, Damage> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let Some(byte) = self.bytes.get(self.at) else { return self.damage(what) };
            self.at += 1;
            n |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(n);
            }
        }
        self.damage(what)
    }

    pub(crate) fn take(&mut self, len: u64, what: &'static str) -> Result<&'a [u8], Damage> {
        let end = usize::try_from(len).ok().and_then(|len| self.at.checked_add(len));
        match end.and_then(|end| Some((end, self.bytes.get(self.at..end)?))) {
            Some((end, bytes)) => {
                self.at = end;
                Ok(bytes)
            }
            None => self.damage(what),
        }
    }

    fn text(&mut self, what: &'static str) -> Result<String, Damage> {
        let len = self.number(what)?;
        if len > NAME_MAX {
            return self.damage(what);
        }
        // Written by us from a string: what is not UTF-8 is shown as well as it can be.
        Ok(String::from_utf8_lossy(self.take(len, what)?).into_owned())
    }
}

/// The dictionary of a segment, while it is being written.
#[derive(Default)]
pub(crate) struct Encoder {
    numbers: HashMap<Arc<Name>, u64>,
    words: HashMap<Arc<str>, u64>,
    /// Names that the frame at hand has added, encoded, and how many.
    added: (Vec<u8>, u64),
    count: u64,
    /// Of all names, in bytes.
    text: usize,
}

impl Encoder {
    /// A dictionary that holds what was read back from a segment.
    pub(crate) fn resume(decoder: &Decoder) -> Self {
        let mut encoder = Self::default();
        for name in &decoder.names {
            encoder.number(name);
        }
        encoder.added = Default::default();
        encoder
    }

    /// Whether the next frame should begin with an empty one: names that come and go, as those of
    /// files do, would fill the memory in the course of an hour or a month.
    pub(crate) fn is_full(&self) -> bool {
        self.count >= DICTIONARY_NAMES_MAX || self.text >= DICTIONARY_BYTES_MAX
    }

    fn number(&mut self, name: &Arc<Name>) -> u64 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.count;
        self.count += 1;
        self.numbers.insert(name.clone(), number);
        let same = name.label == name.key;
        for text in [name.key.as_str(), if same { "" } else { name.label.as_str() }] {
            let text = text.as_bytes();
            let text = &text[..text.len().min(NAME_MAX as usize)];
            put(&mut self.added.0, text.len() as u64);
            self.added.0.extend_from_slice(text);
            self.text += text.len();
        }
        self.added.1 += 1;
        number
    }

    fn word(&mut self, word: &Arc<str>) -> u64 {
        if let Some(number) = self.words.get(word) {
            return *number;
        }
        let number = self.number(&Name::plain(word));
        self.words.insert(word.clone(), number);
        number
    }

    fn key(&mut self, key: &Key) -> u64 {
        match key {
            Key::Other => 0,
            Key::Bucket(n) => 1 + 2 * u64::from(*n),
            Key::Name(name) => 2 + 2 * self.number(name),
        }
    }

    /// The bytes of a frame: the names that it adds, then its body.
    pub(crate) fn frame(&mut self, frame: &Frame) -> Vec<u8> {
        let mut body = Vec::with_capacity(2048);
        for n in [frame.time, u64::from(frame.covered), frame.dropped, frame.tables.len() as u64] {
            put(&mut body, n);
        }
        let mut bytes = Vec::with_capacity(1024);
        for table in &frame.tables {
            put(&mut body, self.word(&table.stat));
            put(&mut body, self.word(&table.dimensions[0]));
            put(&mut body, self.word(&table.dimensions[1]));
            bytes.clear();
            self.table(table, &mut bytes);
            put(&mut body, bytes.len() as u64);
            body.extend_from_slice(&bytes);
        }
        let (names, count) = std::mem::take(&mut self.added);
        let mut out = Vec::with_capacity(body.len() + names.len() + 10);
        put(&mut out, count);
        put(&mut out, names.len() as u64);
        out.extend_from_slice(&names);
        out.extend_from_slice(&body);
        out
    }

    /// Rows in runs of one first key; the second keys of a run go up in steps.
    fn table(&mut self, table: &Table, out: &mut Vec<u8>) {
        for n in table.total.into_iter().chain(table.error) {
            put(out, n);
        }
        let mut rows: Vec<_> =
            table.rows.iter().map(|(a, b, f)| (self.key(a), self.key(b), *f)).collect();
        rows.sort_unstable();
        let mut runs = Vec::new();
        for run in rows.chunk_by(|x, y| x.0 == y.0) {
            runs.push(run);
        }
        put(out, runs.len() as u64);
        for run in &runs {
            put(out, run[0].0);
            put(out, run.len() as u64);
            let mut last = 0;
            for (_, b, _) in *run {
                put(out, b - last);
                last = *b;
            }
        }
        for column in 0..2 {
            // A column of zeros, as samples and operations without data have, is one byte.
            let used = rows.iter().any(|(_, _, f)| f[column] > 0);
            out.push(u8::from(used));
            if used {
                rows.iter().for_each(|(_, _, f)| put(out, f[column]));
            }
        }
    }
}

/// How much of a table a reader needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Not at all.
    Nothing,
    /// Its total and error bound, without rows.
    Total,
    /// All of it.
    Rows,
}

/// Which part of the table of a statistic with its two dimensions is needed.
pub type PartSelector<'a> = &'a dyn Fn(&str, [&str; 2]) -> Part;

/// Needs everything.
pub fn everything(_: &str, _: [&str; 2]) -> Part {
    Part::Rows
}

/// What the numbers at the head of a table mean.
#[derive(Clone)]
struct Head {
    part: Part,
    stat: Arc<str>,
    dimensions: [Arc<str>; 2],
}

/// The dictionary of a segment, while it is being read with one question.
#[derive(Default)]
pub(crate) struct Decoder {
    pub(crate) names: Vec<Arc<Name>>,
    heads: HashMap<[u64; 3], Head>,
}

/// Splits a frame into the names that it adds, with their number, and its body.
pub(crate) fn split(frame: &[u8]) -> Result<(u64, &[u8], &[u8]), Damage> {
    let mut reader = Reader::new(frame);
    let count = reader.number("number of names")?;
    let len = reader.number("length of names")?;
    let names = reader.take(len, "names")?;
    Ok((count, names, &frame[reader.at()..]))
}

impl Decoder {
    /// Forgets all names: they are numbered from 0 again.
    pub(crate) fn restart(&mut self) {
        *self = Self::default();
    }

    /// Adds `count` names.
    pub(crate) fn add(&mut self, count: u64, names: &[u8]) -> Result<(), Damage> {
        let mut reader = Reader::new(names);
        for _ in 0..count {
            let (key, label) = (reader.text("name")?, reader.text("label")?);
            let label = if label.is_empty() { key.clone() } else { label };
            self.names.push(Arc::new(Name { key, label }));
        }
        Ok(())
    }

    fn name(&self, number: u64, at: usize) -> Result<&Arc<Name>, Damage> {
        let name = usize::try_from(number).ok().and_then(|n| self.names.get(n));
        name.ok_or(Damage { what: "number of a name", at })
    }

    fn head(
        &mut self,
        numbers: [u64; 3],
        at: usize,
        want: PartSelector<'_>,
    ) -> Result<Head, Damage> {
        if let Some(head) = self.heads.get(&numbers) {
            return Ok(head.clone());
        }
        let word = |number| Ok(Arc::<str>::from(self.name(number, at)?.key.as_str()));
        let [stat, a, b] = numbers.map(word);
        let (stat, dimensions) = (stat?, [a?, b?]);
        let part = want(&stat, [&dimensions[0], &dimensions[1]]);
        let head = Head { part, stat, dimensions };
        self.heads.insert(numbers, head.clone());
        Ok(head)
    }

    fn key(&self, n: u64, at: usize) -> Result<Key, Damage> {
        match n {
            0 => Ok(Key::Other),
            n if n % 2 == 1 => match u8::try_from(n / 2) {
                Ok(bucket) if usize::from(bucket) < buckets::COUNT => Ok(Key::Bucket(bucket)),
                _ => Err(Damage { what: "bucket", at }),
            },
            n => Ok(Key::Name(self.name((n - 2) / 2, at)?.clone())),
        }
    }

    /// The frame in `body`, with the tables that `want` selects.
    pub(crate) fn body(
        &mut self,
        body: &[u8],
        span: u32,
        want: PartSelector<'_>,
    ) -> Result<Frame, Damage> {
        let mut reader = Reader::new(body);
        let time = reader.number("time")?;
        let covered = reader.number("seconds covered")?.min(u64::from(u32::MAX)) as u32;
        let dropped = reader.number("dropped")?;
        let tables = reader.number("number of tables")?;
        let mut frame = Frame { time, span, covered, dropped, tables: Vec::new() };
        for _ in 0..tables {
            let numbers = [
                reader.number("statistic")?,
                reader.number("dimension")?,
                reader.number("dimension")?,
            ];
            let len = reader.number("length of a table")?;
            let bytes = reader.take(len, "table")?;
            let head = self.head(numbers, reader.at(), want)?;
            if head.part != Part::Nothing {
                frame.tables.push(self.table(head, bytes)?);
            }
        }
        Ok(frame)
    }

    fn table(&self, head: Head, bytes: &[u8]) -> Result<Table, Damage> {
        let Head { part, stat, dimensions } = head;
        let mut reader = Reader::new(bytes);
        let total = [reader.number("total")?, reader.number("total")?];
        let error = [reader.number("error bound")?, reader.number("error bound")?];
        let mut rows = Vec::new();
        if part == Part::Total {
            return Ok(Table { stat, dimensions, total, error, rows });
        }
        for _ in 0..reader.number("number of runs")? {
            let a = reader.number("key")?;
            let a = self.key(a, reader.at())?;
            let mut last = 0u64;
            for _ in 0..reader.number("length of a run")? {
                last = last.saturating_add(reader.number("key")?);
                rows.push((a.clone(), self.key(last, reader.at())?, [0; 2]));
            }
        }
        for column in 0..2 {
            if reader.take(1, "column")? == [1] {
                for row in &mut rows {
                    row.2[column] = reader.number("figure")?;
                }
            }
        }
        if !reader.is_empty() {
            return reader.damage("end of a table");
        }
        rows.sort_unstable();
        Ok(Table { stat, dimensions, total, error, rows })
    }
}

/// CRC-32 (IEEE 802.3) of `parts` one after the other.
pub(crate) fn crc32(parts: &[&[u8]]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut n = 0;
        while n < 256 {
            let (mut c, mut k) = (n as u32, 0);
            while k < 8 {
                c = if c & 1 != 0 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 };
                k += 1;
            }
            table[n] = c;
            n += 1;
        }
        table
    };
    let step = |crc: u32, byte: &u8| TABLE[((crc ^ u32::from(*byte)) & 0xff) as usize] ^ (crc >> 8);
    !parts.iter().flat_map(|part| part.iter()).fold(!0, step)
}
