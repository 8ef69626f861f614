//! Files get their content before the load; those that have it already are left alone.

use super::{Dialect, Outcome, Pipe};
use crate::client::{ClientError, Completion, Fault, Op};
use base::clock::Deadline;
use base::limits::LAB_SILENCE_MAX;
use std::time::Duration;

/// Writes in flight while files are filled.
const FILL_SLOTS: u32 = 8;
/// Bytes of each of them.
const FILL_BYTES: u64 = 256 << 10;
/// Bytes looked at, at either end, to find out whether a file already has its content.
const PROBE_BYTES: u64 = 4096;

/// Name of a status number of the version that is spoken.
pub type StatusName = fn(u32) -> String;

impl<D: Dialect> Pipe<D> {
    /// Whether a file of `size` bytes has its content at both ends.
    ///
    /// # Errors
    /// The connection breaks, or a READ is refused.
    pub fn is_filled(
        &mut self,
        file: u32,
        size: u64,
        name: StatusName,
    ) -> Result<bool, ClientError> {
        let len = size.min(PROBE_BYTES);
        let ends = [0, size - len].map(|offset| Op::Read { file, offset, len: len as u32 });
        for (op, outcome) in self.all(ends.into_iter())? {
            match outcome {
                Ok(_) => {}
                Err(Fault::Corrupt | Fault::Short) => return Ok(false),
                Err(fault) => return Err(failed(op, fault, name)),
            }
        }
        Ok(true)
    }

    /// Writes the content of a file, not yet stable.
    ///
    /// # Errors
    /// The connection breaks, or a WRITE fails.
    pub fn write_content(
        &mut self,
        file: u32,
        size: u64,
        name: StatusName,
    ) -> Result<(), ClientError> {
        let blocks = size.div_ceil(FILL_BYTES);
        let write = move |n: u64| {
            let offset = n * FILL_BYTES;
            let len = FILL_BYTES.min(size - offset) as u32;
            Op::Write { file, offset, len, stable: false }
        };
        self.succeed((0..blocks).map(write), name)
    }

    /// Runs all of `ops`, none of which may fail.
    ///
    /// # Errors
    /// The connection breaks, or the first failure.
    pub fn succeed(
        &mut self,
        ops: impl Iterator<Item = Op>,
        name: StatusName,
    ) -> Result<(), ClientError> {
        for (op, outcome) in self.all(ops)? {
            outcome.map_err(|fault| failed(op, fault, name))?;
        }
        Ok(())
    }

    /// Runs all of `ops`, some at a time.
    fn all(
        &mut self,
        mut ops: impl Iterator<Item = Op>,
    ) -> Result<Vec<(Op, Outcome)>, ClientError> {
        let mut running: Vec<Option<Op>> = vec![None; FILL_SLOTS as usize];
        let (mut ended, mut done) = (Vec::new(), Vec::<Completion>::new());
        let mut deadline = Deadline::after(LAB_SILENCE_MAX);
        loop {
            for (slot, place) in running.iter_mut().enumerate().filter(|(_, p)| p.is_none()) {
                let Some(op) = ops.next() else { break };
                *place = Some(op);
                self.submit(slot as u32, op);
            }
            if running.iter().all(Option::is_none) {
                return Ok(ended);
            }
            self.push()?;
            self.wait(Duration::from_millis(100), &mut done)?;
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
}

fn failed(op: Op, fault: Fault, name: StatusName) -> ClientError {
    let status = match fault {
        Fault::Status(number) => name(number),
        other => other.to_string(),
    };
    ClientError::Refused { what: format!("{op} while preparing"), status }
}
