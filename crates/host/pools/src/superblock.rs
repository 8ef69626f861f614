//! The superblock of btrfs, as far as it names a file system and the device that it is on.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};

/// Offsets of the copies of a superblock.
pub const COPIES: [u64; 3] = [64 << 10, 64 << 20, 256 << 30];
/// Size of a superblock.
pub const SIZE: usize = 4096;
/// Before the name in the label of a pool of Plimsoll.
pub const LABEL_PREFIX: &str = "plimsoll:";
const MAGIC: &[u8] = b"_BHRfS_M";
const LABEL: std::ops::Range<usize> = 0x12b..0x22b;
const DEVICE: usize = 0xc9;

/// What a superblock has of its file system and its device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Superblock {
    /// UUID of the file system, in lower case with dashes.
    pub uuid: String,
    /// Label of the file system.
    pub label: String,
    /// Generation of the last transaction.
    pub generation: u64,
    /// Devices of the file system.
    pub devices: u64,
    /// Number of this device in it.
    pub devid: u64,
    /// Bytes of this device.
    pub device_bytes: u64,
}

impl Superblock {
    /// Name of the pool, if it is one of Plimsoll's.
    pub fn pool(&self) -> Option<&str> {
        self.label.strip_prefix(LABEL_PREFIX)
    }

    /// Reads that of a device; none if the device has none.
    ///
    /// # Errors
    /// The device cannot be read.
    pub fn read(file: &File, size: u64) -> io::Result<Option<Self>> {
        let [first, ..] = COPIES;
        if size < first + SIZE as u64 {
            return Ok(None);
        }
        let mut bytes = [0; SIZE];
        file.read_exact_at(&mut bytes, first)?;
        Ok(Self::parse(&bytes))
    }

    /// Reads one from its bytes; none without the magic number.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        (bytes.get(0x40..0x48)? == MAGIC).then_some(())?;
        let label = bytes.get(LABEL)?.split(|byte| *byte == 0).next()?;
        Some(Self {
            uuid: uuid(bytes.get(0x20..0x30)?),
            label: String::from_utf8_lossy(label).into_owned(),
            generation: word(bytes, 0x48)?,
            devices: word(bytes, 0x88)?,
            devid: word(bytes, DEVICE)?,
            device_bytes: word(bytes, DEVICE + 8)?,
        })
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Sixteen bytes as a UUID is written.
pub fn uuid(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests;
