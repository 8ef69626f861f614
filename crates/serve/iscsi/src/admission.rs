//! Memory of commands. All bytes that a command will hold, those that it works with included
//! ([`scsi::Request::working_bytes`]), are reserved at once in the budget of its core, before its
//! data is asked for and before it waits for its disk; one for which there is no room waits, in the
//! order in which commands came. So no command holds a part and waits for the rest: what is
//! admitted ends, and others continue. One command of each session is admitted in any case, or
//! sessions that have none would wait for those that have many.
//!
//! What comes unasked (immediate data, and what InitialR2T=No allows) cannot wait outside: for that
//! there is room, or the command is answered TASK SET FULL, after which initiators try again.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::clock::stamp;
use vfs::status::Status as Failure;
use wire::scsi::Asc;

use super::conn::stream::Wire;
use super::operation::TaskEntry;
use super::scsi::{self, Done};
use super::session::{About, Session, Stage, Task};
use super::state::gather::Gather;
use super::state::tasks::Mark;
use super::status;
use engine::transport::budget::ReservedBytes;
use engine::transport::buffers::ReplyBuf;

/// What a command gets of the budget.
pub(super) enum Admission {
    /// All that it needs.
    Reserved(ReservedBytes),
    /// What comes unasked; it waits for the rest.
    Partial(ReservedBytes),
    /// Nothing: there is no room for what comes unasked.
    Full,
}

/// Bytes that a command holds while its data is received.
fn gathered_bytes(gather: &Gather, request: &Result<scsi::Request, Done>) -> usize {
    gather.wanted() as usize + request.as_ref().map_or(0, scsi::Request::working_bytes)
}

impl Session {
    /// Reserves the bytes that a command needs: what it sends or takes, of which `unsolicited`
    /// come without an R2T, and its buffers.
    pub fn admit(&self, (moved, working): (usize, usize), unasked: usize) -> Admission {
        let (budget, needs) = (&self.core.budget, moved + working);
        // What has come need not stand in line: it is held anyway.
        let may_pass = self.line.is_empty() || moved <= unasked;
        if may_pass && let Some(held) = budget.try_hold(needs) {
            return Admission::Reserved(held);
        }
        if needs == 0 || !self.has_admitted() {
            return Admission::Reserved(budget.hold(needs));
        }
        self.core.iscsi.waits.fetch_add(1, Relaxed);
        match unasked {
            0 => Admission::Partial(budget.hold(0)),
            _ if moved <= unasked => Admission::Full,
            _ => budget.try_hold(unasked).map_or(Admission::Full, Admission::Partial),
        }
    }

    /// Whether a command of this session has all the memory that it needs, and more than none.
    fn has_admitted(&self) -> bool {
        let holds = |task: &Task| match &task.stage {
            Stage::Gathering { held, is_admitted, .. } => *is_admitted && held.bytes() > 0,
            Stage::Waiting { .. } => false,
            Stage::Running(bytes) => *bytes > 0,
        };
        self.tasks.values().any(holds)
    }

    /// The memory that the first of the commands lacks that wait for some.
    pub fn lacks_memory(&self) -> Option<usize> {
        self.line.front().map(|itt| self.missing(*itt))
    }

    /// The memory that a command lacks which waits for it.
    fn missing(&self, itt: u32) -> usize {
        match self.tasks.get(&itt) {
            Some(Task { stage: Stage::Gathering { gather, held, request, .. }, .. }) => {
                gathered_bytes(gather, request).saturating_sub(held.bytes())
            }
            Some(Task { about, stage: Stage::Waiting { request, .. }, .. }) => {
                about.reply_max() + request.working_bytes()
            }
            _ => 0,
        }
    }

    /// A read that cannot end at once waits until there is memory for it.
    pub fn wait_in_line(&mut self, about: About, request: scsi::Request) {
        let mark = Mark::new(request.nexus.port.clone(), about.itt, &self.wake);
        let unit = Arc::clone(&request.unit);
        let entered = TaskEntry::new(&unit, &mark);
        let stage = Stage::Waiting { request: Box::new(request), entered };
        self.tasks.insert(about.itt, Task { about, mark, unit: Some(unit), stage });
        self.line.push_back(about.itt);
    }

    /// Continues commands that wait for memory, as far as there is some now.
    pub fn continue_waiting(&mut self, wire: &mut Wire) {
        while let Some(itt) = self.line.front().copied() {
            if !self.core.budget.has_bytes(self.missing(itt)) && self.has_admitted() {
                return;
            }
            self.line.pop_front();
            self.admit_waiting(wire, itt);
        }
    }

    /// A task that has waited in line is admitted.
    fn admit_waiting(&mut self, wire: &mut Wire, itt: u32) {
        let Some(task) = self.tasks.get_mut(&itt) else { return };
        match &mut task.stage {
            Stage::Gathering { gather, held, request, is_admitted, .. } => {
                held.set(gathered_bytes(gather, request));
                gather.make_room();
                *is_admitted = true;
                self.ask(wire, itt);
            }
            Stage::Waiting { .. } => {
                let Some(Task { mut about, mark, stage, .. }) = self.tasks.remove(&itt) else {
                    return;
                };
                let Stage::Waiting { request, entered } = stage else { return };
                drop(entered);
                if let Some(verdict) = mark.verdict() {
                    return self.aborted(wire, &about, verdict);
                }
                // Until now it was queued.
                about.clock.resume(stamp());
                let held = self.core.budget.hold(about.reply_max() + request.working_bytes());
                let left = (*request, Vec::new(), ReplyBuf::default());
                self.submit(wire, about, left, None, Some(held));
            }
            Stage::Running(_) => {}
        }
    }

    /// A command for which there is no room.
    pub fn refuse_full(&mut self, wire: &mut Wire, about: &About) {
        let failed = Done::failed(status::of(Failure::Busy, Asc::INTERNAL_TARGET_FAILURE));
        self.respond(wire, about, &failed, ReplyBuf::default());
    }
}
