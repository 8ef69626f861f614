//! Files of a connection get their content before the load; those that have it are left alone.

use super::{Dialect, Pipe};
use crate::client::fill::{self, Slots, StatusName};
use crate::client::{ClientError, Completion, Fault, Op};
use std::time::Duration;

impl<D: Dialect> Slots for Pipe<D> {
    fn submit(&mut self, slot: u32, op: Op) -> Result<(), ClientError> {
        Self::submit(self, slot, op);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ClientError> {
        self.push()
    }

    fn wait(&mut self, timeout: Duration, done: &mut Vec<Completion>) -> Result<(), ClientError> {
        Self::wait(self, timeout, done)
    }
}

/// What connections that run operations in slots do with files.
pub trait FillFiles: Slots {
    /// Whether a file of `size` bytes has its content at both ends.
    ///
    /// # Errors
    /// The connection breaks, or a READ is refused.
    fn is_filled(&mut self, file: u32, size: u64, name: StatusName) -> Result<bool, ClientError> {
        for (op, outcome) in fill::all(self, fill::ends(file, size))? {
            match outcome {
                Ok(_) => {}
                Err(Fault::Corrupt | Fault::Short) => return Ok(false),
                Err(fault) => return Err(fill::failed(op, fault, name)),
            }
        }
        Ok(true)
    }

    /// Writes the content of a file, not yet stable.
    ///
    /// # Errors
    /// The connection breaks, or a WRITE fails.
    fn write_content(&mut self, file: u32, size: u64, name: StatusName) -> Result<(), ClientError> {
        fill::succeed(self, fill::writes(file, size), name)
    }

    /// Runs all of `ops`, none of which may fail.
    ///
    /// # Errors
    /// The connection breaks, or the first failure.
    fn succeed(
        &mut self,
        ops: impl Iterator<Item = Op>,
        name: StatusName,
    ) -> Result<(), ClientError> {
        fill::succeed(self, ops, name)
    }
}

impl<S: Slots> FillFiles for S {}
