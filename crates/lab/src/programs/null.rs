//! The target of nothing: each call is done when it is made. It shows what the generator can do,
//! and that a program is the same for the same seed.

use super::worker::{CallError, Worker};
use lab_program::cursor::{Call, Done};

/// Carries out everything at once.
#[derive(Debug, Default)]
pub struct NullWorker;

impl Worker for NullWorker {
    #[inline]
    fn call(&mut self, call: &Call) -> Result<Done, CallError> {
        let bytes = if call.op.is_transfer() { call.len } else { 0 };
        Ok(Done { bytes, size: None })
    }
}
