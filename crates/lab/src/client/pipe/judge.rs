//! Is what came back right: content of reads, length and stability of writes, write verifiers.

use super::Outcome;
use crate::client::{Checker, Fault, content_key};

/// `writeverf3` and `verifier4`: eight bytes that change when the server may have lost what was
/// not committed.
pub type Verifier = [u8; 8];

/// What is expected of the server.
pub struct Judge {
    checker: Checker,
    /// Write verifiers since the last COMMIT, by file.
    verifiers: Vec<Option<Verifier>>,
    /// Number of the client, for the content.
    pub client: u32,
}

/// A WRITE as it was asked for.
#[derive(Debug, Clone, Copy)]
pub struct SentWrite {
    /// Which file.
    pub file: u32,
    /// Bytes.
    pub len: u32,
    /// FILE_SYNC was asked for.
    pub stable: bool,
}

impl Judge {
    /// Expects the content of `checker`.
    pub fn new(checker: Checker) -> Self {
        Self { checker, verifiers: Vec::new(), client: 0 }
    }

    /// A READ that has come as a whole.
    #[inline]
    pub fn read(&self, file: u32, offset: u64, len: u32, data: &[u8]) -> Outcome {
        if data.len() < len as usize {
            return Err(Fault::Short);
        }
        if self.is_right(file, offset, len, 0, data) { Ok(len) } else { Err(Fault::Corrupt) }
    }

    /// Whether `data`, which lies `at` bytes into a READ, is as expected where it is looked at.
    #[inline]
    pub fn is_right(&self, file: u32, offset: u64, len: u32, at: usize, data: &[u8]) -> bool {
        let key = content_key(self.client, file);
        self.checker.is_right(key, offset, u64::from(len), at as u64, data)
    }

    /// A WRITE of `count` bytes, `stable` as the server reports.
    ///
    /// # Errors
    /// It wrote less, or less stably than requested, which no server may (RFC 1813 §3.3.7,
    /// RFC 8881 §18.32.3): then `fault`.
    pub fn written(
        &mut self,
        asked: SentWrite,
        (count, stable): (u32, bool),
        verifier: Verifier,
        fault: u32,
    ) -> Outcome {
        if count < asked.len {
            return Err(Fault::Short);
        }
        match asked.stable {
            true if stable => Ok(asked.len),
            true => Err(Fault::Status(fault)),
            false => self.seen(asked.file, verifier).map(|()| asked.len),
        }
    }

    /// A COMMIT of a file.
    pub fn committed(&mut self, file: u32, verifier: Verifier) -> Outcome {
        let same = self.seen(file, verifier);
        if let Some(kept) = self.verifiers.get_mut(file as usize) {
            *kept = None;
        }
        same.map(|()| 0)
    }

    /// Compares a write verifier with those before it; another one means that the server may
    /// have lost what was unstable.
    fn seen(&mut self, file: u32, verifier: Verifier) -> Result<(), Fault> {
        if self.verifiers.len() <= file as usize {
            self.verifiers.resize(file as usize + 1, None);
        }
        let Some(kept) = self.verifiers.get_mut(file as usize) else { return Ok(()) };
        let before = kept.replace(verifier);
        if before.is_none_or(|b| b == verifier) { Ok(()) } else { Err(Fault::VerifierChanged) }
    }
}
