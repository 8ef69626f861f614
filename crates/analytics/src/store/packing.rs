//! A live segment becomes a sealed one, a pack at a time: however wide the hour was, no more of it
//! is in memory than a pack, the names that it adds, and what compressing them takes.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use base::limits::PACK_BYTES_MAX;
use zstd::bulk::Compressor;

use super::codec::{Reader, put, split};
use super::segment::{Blocks, Header, SegmentError, Step, block, kind};

/// Compression of sealed segments: above this zstd takes more time than it saves here.
const ZSTD_LEVEL: i32 = 9;

/// Writes the sealed form of the live segment `live` to `sealed`, at most `frames` frames to a
/// block, and removes the live one once the other is on disk.
///
/// # Errors
/// The live one is damaged, or the system refuses: then it is as it was.
pub(crate) fn seal(live: &Path, sealed: &Path, frames: usize) -> Result<(), SegmentError> {
    let temporary = sealed.with_extension("tmp");
    let packed =
        pack(live, &temporary, frames).and_then(|()| Ok(std::fs::rename(&temporary, sealed)?));
    if packed.is_err() {
        // Its space may be what is missing.
        drop(std::fs::remove_file(&temporary));
    }
    packed?;
    if let Some(folder) = sealed.parent() {
        File::open(folder)?.sync_all()?;
    }
    std::fs::remove_file(live)?;
    Ok(())
}

fn pack(live: &Path, to: &Path, frames: usize) -> Result<(), SegmentError> {
    let mut blocks = Blocks::open(live)?;
    let mut packer = Packer::new(File::create(to)?, blocks.header, frames)?;
    while let Step::Block(kind, payload) = blocks.next(&|_, _| true)? {
        match kind {
            kind::FRAME => packer.add(&payload)?,
            kind::RESTART => packer.restart()?,
            _ => {}
        }
    }
    packer.finish()
}

/// The pack at hand, and the file that it goes to.
struct Packer {
    file: BufWriter<File>,
    compressor: Compressor<'static>,
    frames_max: usize,
    /// Names that the pack adds, and how many.
    names: (Vec<u8>, u64),
    /// Its frames, each after its length, and how many.
    bodies: (Vec<u8>, usize),
    /// Of its first and last frame.
    times: [u64; 2],
}

impl Packer {
    fn new(file: File, header: Header, frames_max: usize) -> Result<Self, SegmentError> {
        let mut file = BufWriter::new(file);
        file.write_all(&Header { sealed: true, ..header }.encode())?;
        Ok(Self {
            file,
            compressor: Compressor::new(ZSTD_LEVEL)?,
            frames_max,
            names: Default::default(),
            bodies: Default::default(),
            times: [0; 2],
        })
    }

    fn add(&mut self, frame: &[u8]) -> Result<(), SegmentError> {
        let (count, names, body) = split(frame)?;
        let longest = (self.names.0.len() + names.len()).max(self.bodies.0.len() + body.len());
        if self.bodies.1 >= self.frames_max || longest > PACK_BYTES_MAX {
            self.flush()?;
        }
        self.times[1] = Reader::new(body).number("time")?;
        if self.bodies.1 == 0 {
            self.times[0] = self.times[1];
        }
        self.names.0.extend_from_slice(names);
        self.names.1 += count;
        put(&mut self.bodies.0, body.len() as u64);
        self.bodies.0.extend_from_slice(body);
        self.bodies.1 += 1;
        Ok(())
    }

    fn restart(&mut self) -> Result<(), SegmentError> {
        self.flush()?;
        Ok(self.file.write_all(&block(kind::RESTART, &[]))?)
    }

    /// Writes the pack at hand, after the names that it adds.
    fn flush(&mut self) -> Result<(), SegmentError> {
        let (bodies, frames) = &mut self.bodies;
        if *frames == 0 {
            return Ok(());
        }
        let (names, count) = &mut self.names;
        if *count > 0 {
            let mut dictionary = Vec::with_capacity(names.len() + 10);
            put(&mut dictionary, *count);
            dictionary.extend_from_slice(names);
            let packed = self.compressor.compress(&dictionary)?;
            self.file.write_all(&block(kind::DICTIONARY, &packed))?;
        }
        let mut pack = self.times.map(u64::to_le_bytes).concat();
        pack.extend(self.compressor.compress(bodies)?);
        self.file.write_all(&block(kind::PACK, &pack))?;
        (*count, *frames) = (0, 0);
        names.clear();
        bodies.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<(), SegmentError> {
        self.flush()?;
        self.file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
