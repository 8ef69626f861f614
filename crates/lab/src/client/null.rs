//! The client of nothing: every operation is done when it is asked for. What it reaches is what
//! the generator can do at most, the yardstick of the generator guard.

use super::{Client, ClientError, Completion, FileSet, Op};
use std::time::Duration;

/// Completes everything at once.
#[derive(Default)]
pub struct NullClient {
    ready: Vec<Completion>,
}

impl NullClient {
    /// A client of nothing.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Client for NullClient {
    fn prepare(&mut self, _set: &FileSet) -> Result<(), ClientError> {
        Ok(())
    }

    fn clean(&mut self, _set: &FileSet) -> Result<(), ClientError> {
        Ok(())
    }

    fn submit(&mut self, slot: u32, op: Op) -> Result<(), ClientError> {
        let bytes = match op {
            Op::Read { len, .. } | Op::Write { len, .. } => len,
            _ => 0,
        };
        self.ready.push(Completion { slot, outcome: Ok(bytes) });
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ClientError> {
        Ok(())
    }

    fn wait(&mut self, _timeout: Duration, done: &mut Vec<Completion>) -> Result<(), ClientError> {
        done.append(&mut self.ready);
        Ok(())
    }
}
