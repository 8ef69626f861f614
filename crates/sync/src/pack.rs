//! Pieces that are sent compressed, by zstd at its fastest level: only what shrinks, which a sample
//! shows, and only where bytes wait for the link anyway.

use std::borrow::Cow;
use std::sync::Mutex;

use base::limits::{DSYNC_PACK_SAMPLE, DSYNC_PIECE};
use zstd::bulk::{Compressor, Decompressor};

use crate::error::SyncError;
use crate::stop::lock;

#[cfg(test)]
mod tests;

/// Level of zstd: more takes longer than most links.
const LEVEL: i32 = 1;

/// Packs.
#[derive(Default)]
pub struct Packer(Mutex<Vec<Compressor<'static>>>);

impl Packer {
    /// The bytes packed, if an eighth at least is saved by that.
    pub fn pack(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let idle = lock(&self.0).pop();
        // What cannot be packed is sent as it is.
        let mut compressor = idle.or_else(|| Compressor::new(LEVEL).ok())?;
        let mut pays = |bytes: &[u8]| {
            let packed = compressor.compress(bytes).ok()?;
            (packed.len() <= bytes.len() - bytes.len() / 8).then_some(packed)
        };
        let packed = match sample(bytes) {
            Some(sample) => pays(sample).and_then(|_| pays(bytes)),
            None => pays(bytes),
        };
        lock(&self.0).push(compressor);
        packed.filter(|packed| packed.len() < bytes.len())
    }
}

/// The middle of a piece that is much longer than it.
fn sample(bytes: &[u8]) -> Option<&[u8]> {
    let begin = bytes.len().checked_sub(DSYNC_PACK_SAMPLE)? / 2;
    bytes.get(begin..begin + DSYNC_PACK_SAMPLE).filter(|s| s.len() * 4 <= bytes.len())
}

/// Unpacks.
#[derive(Default)]
pub struct Unpacker(Mutex<Vec<Decompressor<'static>>>);

impl Unpacker {
    /// The bytes of a piece; `unpacked` is their number if they came compressed, and 0 if not.
    ///
    /// # Errors
    /// [`SyncError::Broken`]: they do not decompress to that length; [`SyncError::Machine`].
    pub fn bytes<'a>(&self, came: &'a [u8], unpacked: u32) -> Result<Cow<'a, [u8]>, SyncError> {
        let length = unpacked as usize;
        if length == 0 {
            return Ok(Cow::Borrowed(came));
        }
        if length > DSYNC_PIECE {
            return Err(SyncError::Broken("a block that is too large after decompression"));
        }
        let idle = lock(&self.0).pop();
        let mut decompressor = match idle {
            Some(idle) => idle,
            None => Decompressor::new().map_err(SyncError::Machine)?,
        };
        // It never makes more than `length` bytes.
        let bytes = decompressor.decompress(came, length);
        lock(&self.0).push(decompressor);
        match bytes {
            Ok(bytes) if bytes.len() == length => Ok(Cow::Owned(bytes)),
            _ => Err(SyncError::Broken("a block whose size does not match after decompression")),
        }
    }
}
