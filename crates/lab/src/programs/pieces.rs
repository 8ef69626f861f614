//! A range of a file in pieces, which are compared with, or made of, the content that the file has.

use super::set::content_key;
use super::worker::CallError;
use crate::client::{Checker, Fault};
use lab_program::cursor::{Call, Done};
use lab_program::program::Plan;

/// Bytes of a file that a call reads or writes.
pub(super) struct Range {
    key: u64,
    offset: u64,
    len: u64,
    piece: u64,
}

impl Range {
    /// Of a call, from this offset on, in pieces of at most `most` bytes.
    pub(super) fn of(plan: &Plan, call: &Call, offset: u64, most: u64) -> Self {
        let key = content_key(plan.seed, call.set, call.entry);
        Self { key, offset, len: call.len, piece: call.piece.min(call.len).min(most) }
    }

    /// A place and a length for each piece; `each` returns how many bytes it has moved, none at the
    /// end of a file.
    fn each(
        &self,
        buffer: &mut Vec<u8>,
        mut each: impl FnMut(u64, &mut [u8]) -> Result<u64, CallError>,
    ) -> Result<Done, CallError> {
        if buffer.len() < self.piece as usize {
            buffer.resize(self.piece as usize, 0);
        }
        let mut done = 0;
        while done < self.len {
            let len = self.piece.min(self.len - done) as usize;
            match each(self.offset + done, &mut buffer[..len])? {
                0 => break,
                moved => done += moved,
            }
        }
        Ok(Done { bytes: done, size: None })
    }

    /// Reads it: what is read must be what was written.
    pub(super) fn read(
        &self,
        checker: &Checker,
        buffer: &mut Vec<u8>,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<usize, CallError>,
    ) -> Result<Done, CallError> {
        self.each(buffer, |at, bytes| {
            let got = read(at, bytes)?;
            let right = got == 0 || checker.is_right(self.key, at, got as u64, 0, &bytes[..got]);
            if right { Ok(got as u64) } else { Err(CallError::Fault(Fault::Corrupt)) }
        })
    }

    /// Writes it.
    pub(super) fn write(
        &self,
        checker: &Checker,
        buffer: &mut Vec<u8>,
        mut write: impl FnMut(u64, &[u8]) -> Result<usize, CallError>,
    ) -> Result<Done, CallError> {
        self.each(buffer, |at, bytes| {
            checker.content.fill(self.key, at, bytes);
            match write(at, bytes)? {
                0 => Err(CallError::Fault(Fault::Short)),
                put => Ok(put as u64),
            }
        })
    }
}

#[cfg(test)]
mod tests;
