//! Logical units: their configuration, files, identities and access. `docs/formats/luns.md`
//! describes the files.
//!
//! - [`config`]: the configuration and its problems. [`table`]: the identity of each unit.
//!   [`disk`]: their files. [`room`]: the served units, changed while initiators use them.
//! - [`live`]: the branches of the tree. [`look`], [`bounded`]: storage that may not respond.
//!   [`ways`]: commands for initiators.
//!
//! No file protocol reaches the file of a unit as long as it is configured, wherever it is
//! ([`vfs::lun::claim`]).

use base::limits::{LUN_NAME_MAX, LUN_SIZE_MAX, LUN_SIZE_MIN};
use base::text::decimal;

pub mod bounded;
pub mod config;
pub mod disk;
pub mod live;
pub mod look;
pub mod room;
pub mod table;
pub mod ways;

pub use table::MAGIC;

/// The folder of the state directory.
pub const FOLDER: &str = "luns";

/// A unit of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LunGiven {
    /// Its name.
    pub name: String,
    /// Bytes, of one that is made.
    pub size: u64,
}

/// Reads `NAME=SIZE`: a size in bytes, or with K, M, G or T in powers of 1024.
///
/// # Errors
/// What is wrong with it.
pub fn parse(text: &str) -> Result<LunGiven, &'static str> {
    let (name, size) = text.split_once('=').ok_or("there is no equals sign in it")?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_good = !name.is_empty() && name.len() <= LUN_NAME_MAX && !name.starts_with('.');
    if !is_good || !name.bytes().all(is_name) {
        return Err("a name has letters, digits, '-', '_' and '.', at most 64");
    }
    let (digits, shift) = match size.as_bytes().last() {
        Some(b'K') => (size.len() - 1, 10),
        Some(b'M') => (size.len() - 1, 20),
        Some(b'G') => (size.len() - 1, 30),
        Some(b'T') => (size.len() - 1, 40),
        _ => (size.len(), 0),
    };
    let number: u64 = size
        .get(..digits)
        .and_then(decimal)
        .ok_or("a size is a number, with K, M, G or T behind it")?;
    let size = number.checked_mul(1 << shift).filter(|size| *size <= LUN_SIZE_MAX);
    match size {
        Some(size) if size >= LUN_SIZE_MIN && size.is_multiple_of(4096) => {
            Ok(LunGiven { name: name.to_owned(), size })
        }
        _ => Err("a size is at least 1M, and a multiple of 4096 bytes"),
    }
}

#[cfg(test)]
mod tests;
