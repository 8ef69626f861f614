//! Files of clients on a disk without a file system: one behind the other, by the numbers of the
//! client and of the file, so that clients of one job do not meet.

use super::fill::{self, Ended};
use super::{Client, ClientError, Fault, FileSet, Op};
use crate::workload::{Kind, Shape};

/// Where files begin.
const ALIGN: u64 = 4096;

/// Where one client's files lie.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// Number of the client; names its content.
    pub client: u32,
    files: u64,
    /// Bytes from one file to the next.
    step: u64,
}

impl Layout {
    /// Of a client on a disk of `size` bytes.
    ///
    /// # Errors
    /// [`ClientError::Target`]: they do not fit.
    pub fn new(set: &FileSet, size: u64) -> Result<Self, ClientError> {
        let step = set.size.next_multiple_of(ALIGN);
        let layout = Self { client: set.client, files: set.files.into(), step };
        if layout.end() <= size {
            return Ok(layout);
        }
        let what = format!("client {} with {} files of {} bytes", set.client, set.files, set.size);
        Err(ClientError::Target(what, "does not fit on the disk: all clients share it"))
    }

    /// First byte of the first file.
    pub fn start(&self) -> u64 {
        u64::from(self.client).saturating_mul(self.files).saturating_mul(self.step)
    }

    /// Byte after the last file.
    pub fn end(&self) -> u64 {
        self.start().saturating_add(self.files.saturating_mul(self.step))
    }

    /// First byte of a file.
    #[inline]
    pub fn at(&self, file: u32) -> u64 {
        self.start() + u64::from(file) * self.step
    }

    /// The number under which [`Content`](crate::pattern::Content) knows a file.
    #[inline]
    pub fn key(&self, file: u32) -> u64 {
        super::content_key(self.client, file)
    }
}

/// Whether a disk with blocks of `block` bytes has such operations.
///
/// # Errors
/// [`ClientError::Target`] if it has not.
pub fn check(shape: &Shape, block: u32) -> Result<(), ClientError> {
    let wrong = |why| ClientError::Target(shape.kind.name().to_owned(), why);
    match shape.kind {
        Kind::Create | Kind::Getattr | Kind::Lookup => {
            Err(wrong("is about names of files, which a disk does not have"))
        }
        Kind::Null => Ok(()),
        _ if !u64::from(shape.block).is_multiple_of(u64::from(block.max(1))) => {
            Err(wrong("has blocks that are not whole blocks of the disk"))
        }
        _ => Ok(()),
    }
}

/// Makes all files of a set hold their content; those that do already are left alone.
///
/// # Errors
/// The target refuses or breaks off.
pub fn prepare(client: &mut dyn Client, set: &FileSet) -> Result<(), ClientError> {
    let mut has_written = false;
    for file in 0..set.files {
        let looked = fill::all(client, fill::ends(file, set.size))?;
        let is_right = |done: &Ended| match done.1 {
            Ok(_) => Ok(true),
            Err(Fault::Corrupt) => Ok(false),
            Err(fault) => Err(fill::failed(done.0, fault, status)),
        };
        let right = looked.iter().map(is_right).collect::<Result<Vec<_>, _>>()?;
        if right.into_iter().all(|right| right) {
            continue;
        }
        fill::succeed(client, fill::writes(file, set.size), status)?;
        has_written = true;
    }
    if has_written {
        fill::succeed(client, std::iter::once(Op::Commit { file: 0 }), status)?;
    }
    Ok(())
}

fn status(number: u32) -> String {
    Fault::Status(number).to_string()
}

#[cfg(test)]
mod tests;
