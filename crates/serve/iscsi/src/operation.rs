//! A command that has left its connection's thread, as the engine has it.

use std::sync::Arc;

use probe::phases::PhaseClock;
use vfs::fs::Flush;
use vfs::status::Status as Failed;
use wire::iscsi::tmf::TmfOutcome;
use wire::scsi::Asc;

use super::scsi::{self, Done, Fail};
use super::state::tasks::Mark;
use super::status;
use super::unit::Unit;
use engine::exec::{CompletionQueue, Failure, Operation};
use engine::transport::budget::SendReservedBytes;
use engine::transport::buffers::ReplyBuf;

/// A place among the tasks of a unit. When it is dropped, the task has no further effect.
pub(super) struct TaskEntry {
    unit: Arc<Unit>,
    mark: Arc<Mark>,
    number: u64,
}

impl TaskEntry {
    /// A task that does not end at once.
    pub fn new(unit: &Arc<Unit>, mark: &Arc<Mark>) -> Self {
        let number = unit.enter(mark);
        Self { unit: Arc::clone(unit), mark: Arc::clone(mark), number }
    }

    /// Whether it is the place of this task.
    pub fn is_of(&self, mark: &Arc<Mark>) -> bool {
        Arc::ptr_eq(&self.mark, mark)
    }
}

impl Drop for TaskEntry {
    fn drop(&mut self) {
        self.unit.ended(self.number);
        self.mark.end();
    }
}

/// The completion of an operation that ran outside the connection's thread. Without its connection
/// it is dropped: what it has entered ends all the same.
#[expect(clippy::large_enum_variant, reason = "nearly all of them are commands")]
pub(super) enum Finished {
    /// A command, with the memory of what it has read.
    Command {
        itt: u32,
        done: Done,
        buffer: ReplyBuf,
        entered: TaskEntry,
        held: Option<SendReservedBytes>,
        clock: PhaseClock,
    },
    /// Task management.
    Management { itt: u32, immediate: bool, outcome: TmfOutcome, ends: bool },
}

/// A command, or what is left of it.
pub(super) struct Command {
    pub itt: u32,
    pub request: scsi::Request,
    /// The memory of what it has read; that of its data is with the mark until it begins.
    pub held: Option<SendReservedBytes>,
    /// What it sends.
    pub buffer: ReplyBuf,
    /// What it came to, once it has run.
    pub done: Done,
    pub mark: Arc<Mark>,
    pub entered: TaskEntry,
    /// The connection.
    pub to: Arc<CompletionQueue<Finished>>,
    /// What its time went to.
    pub clock: PhaseClock,
}

impl Command {
    fn fail(&mut self, fail: Fail) {
        self.buffer.truncate(0);
        self.done = Done::failed(fail);
    }
}

impl Operation for Command {
    /// A task that was aborted before never begins.
    fn begins(&self) -> bool {
        self.mark.begin()
    }

    fn clock(&mut self) -> &mut PhaseClock {
        &mut self.clock
    }

    fn run(&mut self) -> Option<Flush> {
        let (data, held) = match self.mark.take_payload() {
            Some(payload) => (payload.data, Some(payload.held)),
            None => (Vec::new(), None),
        };
        match scsi::execute(&self.request, &data, true, &mut self.buffer) {
            Ok(done) => self.done = done,
            Err(fail) => self.fail(fail),
        }
        // What was written is not needed any more, whatever its flush still waits for.
        drop(data);
        self.held = held.filter(|_| !self.buffer.is_empty());
        let flush = std::mem::take(&mut self.done.flush);
        (!flush.is_empty()).then_some(flush)
    }

    fn flushed(&mut self, outcome: vfs::fs::Result<()>) {
        let Err(failure) = outcome else { return };
        // A flush that was not made reports nothing about writes.
        let was_made = !matches!(failure, Failed::Busy | Failed::Fault);
        let settles = self.done.settles.take().filter(|_| was_made);
        self.fail(status::of(failure, Asc::WRITE_ERROR));
        self.done.settles = settles;
    }

    /// One that was cancelled is not answered: its verdict decides what is sent to the initiator.
    fn failed(&mut self, _why: Failure) {
        self.fail(status::of(Failed::Fault, Asc::INTERNAL_TARGET_FAILURE));
    }

    fn complete(self) {
        let Self { itt, done, held, buffer, entered, to, clock, .. } = self;
        to.push(Finished::Command { itt, done, buffer, entered, held, clock });
    }
}
