//! Data of writes: what comes with and after a command, what is asked for, and the start of the
//! command when all of it is there.

use std::sync::Arc;

use vfs::fs::Flush;
use vfs::status::Status as Failure;
use wire::iscsi::command::ScsiCommand;
use wire::iscsi::data::{DataOut, R2t};
use wire::scsi::{Asc, Sense, SenseKey};

use super::conn::stream::Wire;
use super::dispatch::Meant;
use super::scsi::{self, Done, Fail};
use super::session::{About, Finished, Session, Stage, Task};
use super::state::gather::{Fault, Gather};
use super::state::tasks::{Mark, Verdict};
use super::unit::Unit;
use super::{status, tmf};
use crate::transport::budget::Held;
use crate::transport::buffers::ReplyBuf;

/// What a fault of the data is to the command (RFC 7143 §11.4.7.2).
fn sense_of(fault: Fault) -> Sense {
    let asc = match fault {
        Fault::Unexpected => Asc::UNEXPECTED_UNSOLICITED_DATA,
        Fault::Short => Asc::NOT_ENOUGH_UNSOLICITED_DATA,
        Fault::Number | Fault::Place => Asc::DATA_PHASE_ERROR,
    };
    Sense::new(SenseKey::ABORTED_COMMAND, asc)
}

impl Session {
    /// A command has come: it begins, or waits for its data.
    pub fn gather(
        &mut self,
        wire: &mut Wire,
        command: &ScsiCommand<'_>,
        about: About,
        meant: Meant,
    ) {
        let Meant { request, buffer, needs, .. } = meant;
        let goes_on = !command.is_final;
        let needs = match (&request, command.write) {
            (Ok(_), true) => u32::try_from(needs).unwrap_or(u32::MAX),
            _ => 0,
        };
        if needs == 0 && !goes_on {
            return self.begin(wire, about, request, (buffer, Vec::new()), None);
        }
        let expected = command.expected_length;
        let room = Vec::with_capacity(needs.min(expected) as usize);
        let bounds = self.bounds;
        match Gather::new((needs, expected), command.data, goes_on, bounds, room) {
            Err(fault) => {
                let failed = Done::failed(Fail::Sense(sense_of(fault)));
                self.respond(wire, &about, &failed, ReplyBuf::default());
            }
            Ok(gather) if gather.is_whole() => {
                let held = self.core.budget.hold(gather.wanted() as usize);
                self.begin(wire, about, request, (buffer, gather.into_data()), Some(held));
            }
            Ok(gather) => self.enter(wire, command, about, request, gather),
        }
    }

    fn enter(
        &mut self,
        wire: &mut Wire,
        command: &ScsiCommand<'_>,
        about: About,
        request: Result<scsi::Request, Done>,
        gather: Gather,
    ) {
        let Some(joined) = &self.joined else { return };
        let mark = Mark::new(joined.port().clone(), about.itt, &self.wake);
        let entered = request.as_ref().ok().map(|request| {
            let number = request.unit.enter(&mark);
            (Arc::clone(&request.unit), number)
        });
        let held = self.core.budget.hold(gather.wanted() as usize);
        let (gather, request, lun) = (Box::new(gather), Box::new(request), command.lun);
        let stage = Stage::Gathering { gather, request, lun, held };
        self.tasks.insert(about.itt, Task { about, mark, entered, stage });
        self.ask(wire, about.itt);
    }

    /// Asks for the data of a command, as much as may be asked for at once.
    fn ask(&mut self, wire: &mut Wire, itt: u32) {
        loop {
            let (tag, sn, bounds) = (self.tag(), self.sn(), self.bounds);
            let Some(task) = self.tasks.get_mut(&itt) else { return };
            let Stage::Gathering { gather, lun, .. } = &mut task.stage else { return };
            let Some(ask) = gather.ask(bounds, tag) else { return };
            wire.put(&R2t {
                lun: *lun,
                itt,
                ttt: ask.tag,
                sn,
                r2t_sn: ask.number,
                offset: ask.offset,
                length: ask.length,
            });
        }
    }

    /// Data of a command has come. What belongs to none, because that was aborted or has failed, is
    /// not used (RFC 7143 §11.5.1).
    pub fn data_out(&mut self, wire: &mut Wire, data: &DataOut<'_>) {
        let Some(task) = self.tasks.get_mut(&data.itt) else { return };
        let Stage::Gathering { gather, .. } = &mut task.stage else { return };
        if task.mark.verdict().is_some() {
            return;
        }
        match gather.take(data) {
            Err(fault) => self.fail_gathering(wire, data.itt, sense_of(fault)),
            Ok(()) if gather.is_whole() => self.begin_gathered(wire, data.itt),
            Ok(()) => self.ask(wire, data.itt),
        }
    }

    /// A command fails whose data comes.
    pub fn fail_gathering(&mut self, wire: &mut Wire, itt: u32, sense: Sense) {
        let gathers = |task: &Task| matches!(task.stage, Stage::Gathering { .. });
        if self.tasks.get(&itt).is_some_and(gathers) {
            self.ended(wire, itt, Done::failed(Fail::Sense(sense)), ReplyBuf::default());
        }
    }

    fn begin_gathered(&mut self, wire: &mut Wire, itt: u32) {
        let Some(task) = self.tasks.remove(&itt) else { return };
        let Task { mut about, mark, entered, stage } = task;
        let Stage::Gathering { gather, request, held, .. } = stage else { return };
        if let Some((unit, number)) = &entered {
            unit.ended(*number);
        }
        if let Some(verdict) = mark.verdict() {
            return match verdict {
                Verdict::Silent => self.forget(&about),
                Verdict::Told => {
                    let status = wire::scsi::Status::TASK_ABORTED;
                    let done = Done { status, ..Done::good(0) };
                    self.respond(wire, &about, &done, ReplyBuf::default());
                }
            };
        }
        about.asked = gather.asked();
        let data = gather.into_data();
        self.begin(wire, about, *request, (ReplyBuf::default(), data), Some(held));
    }

    /// A command begins: at once if it can end at once, otherwise where it may block.
    fn begin(
        &mut self,
        wire: &mut Wire,
        about: About,
        request: Result<scsi::Request, Done>,
        (buffer, data): (ReplyBuf, Vec<u8>),
        held: Option<Held>,
    ) {
        let request = match request {
            Ok(request) => request,
            Err(done) => return self.respond(wire, &about, &done, buffer),
        };
        let mut buffer = self.core.buffers.take_reply();
        let budgets = &self.core.engine.budgets;
        let tried = budgets.contain(|| scsi::execute(&request, &data, false, &mut buffer));
        let done = match tried {
            Err(failure) => Done::failed(status::of(failure, Asc::INTERNAL_TARGET_FAILURE)),
            Ok(Ok(done)) if done.flush.is_empty() && done.aborts.is_empty() => done,
            Ok(Ok(done)) => return self.spawn(about, request, Work::Flush(done, buffer), held),
            Ok(Err(Fail::WouldBlock)) => {
                buffer.truncate(0);
                let work = Work::Execute(data, buffer);
                return self.spawn(about, request, work, held);
            }
            Ok(Err(fail)) => {
                buffer.truncate(0);
                Done::failed(fail)
            }
        };
        self.respond(wire, &about, &done, buffer);
    }

    /// Runs the rest of a command beside the connection.
    fn spawn(&mut self, about: About, request: scsi::Request, work: Work, held: Option<Held>) {
        let mark = Mark::new(request.nexus.port.clone(), about.itt, &self.wake);
        let number = request.unit.enter(&mark);
        let (itt, client) = (about.itt, u64::from(self.client));
        let held = held.unwrap_or_else(|| self.core.budget.hold(0));
        let entered = Some((Arc::clone(&request.unit), number));
        let task = Task { about, mark: Arc::clone(&mark), entered, stage: Stage::Running(held) };
        self.tasks.insert(itt, task);
        self.running.spawn_local(async move {
            let unit = Arc::clone(&request.unit);
            let (done, buffer) = run(request, work, &mark, client).await;
            mark.end();
            unit.ended(number);
            Finished::Command { itt, done, buffer }
        });
    }
}

/// What is left of a command.
enum Work {
    /// All of it, with its data.
    Execute(Vec<u8>, ReplyBuf),
    /// What it has changed is to be on disk.
    Flush(Done, ReplyBuf),
}

/// Runs what is left of a command, on the unit's threads.
async fn run(
    request: scsi::Request,
    work: Work,
    mark: &Arc<Mark>,
    client: u64,
) -> (Done, ReplyBuf) {
    let (mut done, buffer) = match work {
        Work::Flush(done, buffer) => (done, buffer),
        Work::Execute(data, buffer) => execute(&request, (data, buffer), mark, client).await,
    };
    if !done.flush.is_empty() {
        let flush = std::mem::take(&mut done.flush);
        let outcome = flushed(&request.unit, flush).await;
        if let Some(written) = done.settles {
            request.nexus.settle(written);
        }
        if let Err(failure) = outcome {
            return (Done::failed(status::of(failure, Asc::WRITE_ERROR)), ReplyBuf::default());
        }
    }
    if !done.aborts.is_empty() {
        let ports = std::mem::take(&mut done.aborts);
        let unit = &request.unit;
        let running = unit.abort(Verdict::Told, |other| ports.contains(&other.port));
        // They have lost their right to the unit; that their disk is stuck changes nothing of it.
        let _ = tmf::wait_over(vec![(Arc::clone(unit), running, unit.ranges.snapshot())]).await;
    }
    (done, buffer)
}

/// Carries a command out where it may block.
async fn execute(
    request: &scsi::Request,
    (data, mut buffer): (Vec<u8>, ReplyBuf),
    mark: &Arc<Mark>,
    client: u64,
) -> (Done, ReplyBuf) {
    let (sender, ended) = tokio::sync::oneshot::channel();
    let (own, mark) = (request.clone(), Arc::clone(mark));
    let job = move || {
        if !mark.begin() {
            return;
        }
        let run = || scsi::execute(&own, &data, true, &mut buffer);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        let done = match outcome {
            Ok(Ok(done)) => done,
            Ok(Err(fail)) => {
                buffer.truncate(0);
                Done::failed(fail)
            }
            Err(_) => Done::failed(status::of(Failure::Fault, Asc::INTERNAL_TARGET_FAILURE)),
        };
        // Who asked may have gone.
        let _ = sender.send((done, buffer));
    };
    let failed = |failure| {
        let done = Done::failed(status::of(failure, Asc::INTERNAL_TARGET_FAILURE));
        (done, ReplyBuf::default())
    };
    if let Err(failure) = request.unit.engine.run(client, job) {
        return failed(failure);
    }
    // Nothing comes of one that was aborted before it began: nobody answers it either.
    ended.await.unwrap_or_else(|_| failed(Failure::Fault))
}

/// Waits until something is on disk.
async fn flushed(unit: &Unit, flush: Flush) -> vfs::fs::Result<()> {
    let (sender, ended) = tokio::sync::oneshot::channel();
    let done = move |outcome| {
        // Who asked may have gone.
        let _ = sender.send(outcome);
    };
    unit.engine.flush(flush, Box::new(done));
    ended.await.unwrap_or(Err(Failure::Fault))
}
