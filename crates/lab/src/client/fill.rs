//! Files get their content before the load: the operations for that, and running them, some at a
//! time.

use super::{Client, ClientError, Completion, Fault, Op};
use base::clock::Deadline;
use base::limits::LAB_SILENCE_MAX;
use std::time::Duration;

/// Operations in flight while files are filled.
const FILL_SLOTS: u32 = 8;
/// Bytes of each write.
const FILL_BYTES: u64 = 256 << 10;
/// Bytes looked at, at either end, to find out whether a file already has its content.
const PROBE_BYTES: u64 = 4096;
/// How long one wait for completions takes at most.
const WAIT: Duration = Duration::from_millis(100);

/// An operation and what became of it.
pub type Ended = (Op, Result<u32, Fault>);

/// Name of a status number of the protocol.
pub type StatusName = fn(u32) -> String;

/// What runs operations in numbered slots.
pub trait Slots {
    /// As [`Client::submit`].
    ///
    /// # Errors
    /// When the connection is gone.
    fn submit(&mut self, slot: u32, op: Op) -> Result<(), ClientError>;

    /// As [`Client::flush`].
    ///
    /// # Errors
    /// When the connection is gone.
    fn flush(&mut self) -> Result<(), ClientError>;

    /// As [`Client::wait`].
    ///
    /// # Errors
    /// When the connection is gone or the peer breaks the protocol.
    fn wait(&mut self, timeout: Duration, done: &mut Vec<Completion>) -> Result<(), ClientError>;
}

impl Slots for dyn Client + '_ {
    fn submit(&mut self, slot: u32, op: Op) -> Result<(), ClientError> {
        Client::submit(self, slot, op)
    }

    fn flush(&mut self) -> Result<(), ClientError> {
        Client::flush(self)
    }

    fn wait(&mut self, timeout: Duration, done: &mut Vec<Completion>) -> Result<(), ClientError> {
        Client::wait(self, timeout, done)
    }
}

/// READs of both ends of a file.
pub fn ends(file: u32, size: u64) -> impl Iterator<Item = Op> {
    let len = size.min(PROBE_BYTES);
    [0, size - len].into_iter().map(move |offset| Op::Read { file, offset, len: len as u32 })
}

/// WRITEs of all of a file, not yet stable.
pub fn writes(file: u32, size: u64) -> impl Iterator<Item = Op> {
    (0..size.div_ceil(FILL_BYTES)).map(move |n| {
        let offset = n * FILL_BYTES;
        let len = FILL_BYTES.min(size - offset) as u32;
        Op::Write { file, offset, len, stable: false }
    })
}

/// Runs all of `ops`, none of which may fail.
///
/// # Errors
/// The connection breaks, or the first failure.
pub fn succeed(
    on: &mut (impl Slots + ?Sized),
    ops: impl Iterator<Item = Op>,
    name: StatusName,
) -> Result<(), ClientError> {
    for (op, outcome) in all(on, ops)? {
        outcome.map_err(|fault| failed(op, fault, name))?;
    }
    Ok(())
}

/// Runs all of `ops`, some at a time.
///
/// # Errors
/// The connection breaks, or nothing ends for [`LAB_SILENCE_MAX`].
pub fn all(
    on: &mut (impl Slots + ?Sized),
    mut ops: impl Iterator<Item = Op>,
) -> Result<Vec<Ended>, ClientError> {
    let mut running: Vec<Option<Op>> = vec![None; FILL_SLOTS as usize];
    let (mut ended, mut done) = (Vec::new(), Vec::<Completion>::new());
    let mut deadline = Deadline::after(LAB_SILENCE_MAX);
    loop {
        for (slot, place) in running.iter_mut().enumerate().filter(|(_, place)| place.is_none()) {
            let Some(op) = ops.next() else { break };
            *place = Some(op);
            on.submit(slot as u32, op)?;
        }
        if running.iter().all(Option::is_none) {
            return Ok(ended);
        }
        on.flush()?;
        on.wait(WAIT, &mut done)?;
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

/// That an operation of the preparation failed.
pub fn failed(op: Op, fault: Fault, name: StatusName) -> ClientError {
    let status = match fault {
        Fault::Status(number) => name(number),
        other => other.to_string(),
    };
    ClientError::Refused { what: format!("{op} while preparing"), status }
}
