//! Files of clients on a disk without a file system: one behind the other, by the numbers of the
//! client and of the file, so that clients of one job do not meet.

use super::{Client, ClientError, Completion, Fault, FileSet, Op};
use crate::workload::{Kind, Shape};
use base::clock::Deadline;
use base::limits::LAB_SILENCE_MAX;
use std::time::Duration;

/// Where files begin.
const ALIGN: u64 = 4096;
/// Writes in flight while files are filled.
const FILL_SLOTS: u32 = 8;
/// Bytes of each of them.
const FILL_BYTES: u64 = 256 << 10;

/// An operation and what became of it.
type Ended = (Op, Result<u32, Fault>);

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

/// Whether a disk with blocks of so many bytes has such operations.
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
        let len = set.size.min(ALIGN);
        let ends = [0, set.size - len].map(|offset| Op::Read { file, offset, len: len as u32 });
        let looked = all(client, ends.into_iter())?;
        let is_right = |done: &Ended| match done.1 {
            Ok(_) => Ok(true),
            Err(Fault::Corrupt) => Ok(false),
            Err(fault) => Err(failed(done.0, fault)),
        };
        let right = looked.iter().map(is_right).collect::<Result<Vec<_>, _>>()?;
        if right.into_iter().all(|right| right) {
            continue;
        }
        let write = |n: u64| {
            let offset = n * FILL_BYTES;
            let len = FILL_BYTES.min(set.size - offset) as u32;
            Op::Write { file, offset, len, stable: false }
        };
        succeed(client, (0..set.size.div_ceil(FILL_BYTES)).map(write))?;
        has_written = true;
    }
    if has_written {
        succeed(client, std::iter::once(Op::Commit { file: 0 }))?;
    }
    Ok(())
}

fn succeed(client: &mut dyn Client, ops: impl Iterator<Item = Op>) -> Result<(), ClientError> {
    for (op, outcome) in all(client, ops)? {
        outcome.map_err(|fault| failed(op, fault))?;
    }
    Ok(())
}

fn failed(op: Op, fault: Fault) -> ClientError {
    ClientError::Refused { what: format!("{op} while preparing"), status: fault.to_string() }
}

/// Runs all of `ops`, some at a time.
fn all(
    client: &mut dyn Client,
    mut ops: impl Iterator<Item = Op>,
) -> Result<Vec<Ended>, ClientError> {
    let mut running: Vec<Option<Op>> = vec![None; FILL_SLOTS as usize];
    let (mut ended, mut done) = (Vec::new(), Vec::<Completion>::new());
    let mut deadline = Deadline::after(LAB_SILENCE_MAX);
    loop {
        for (slot, place) in running.iter_mut().enumerate().filter(|(_, place)| place.is_none()) {
            let Some(op) = ops.next() else { break };
            *place = Some(op);
            client.submit(slot as u32, op)?;
        }
        if running.iter().all(Option::is_none) {
            return Ok(ended);
        }
        client.flush()?;
        client.wait(Duration::from_millis(100), &mut done)?;
        for completion in done.drain(..) {
            let place = running.get_mut(completion.slot as usize).and_then(Option::take);
            ended.extend(place.map(|op| (op, completion.outcome)));
            deadline = Deadline::after(LAB_SILENCE_MAX);
        }
        if deadline.passed() {
            return Err(ClientError::Silent("preparation", LAB_SILENCE_MAX));
        }
    }
}

#[cfg(test)]
mod tests;
