//! Data of writes: what comes with and after a command, what is asked for, and the start of the
//! command when all of it is there.

use std::sync::Arc;

use base::clock::stamp;
use probe::phases::Phase;
use vfs::status::Status as Failure;
use wire::iscsi::command::ScsiCommand;
use wire::iscsi::data::{DataOut, R2t};
use wire::scsi::{Asc, Sense, SenseKey};

use super::admission::Admission;
use super::conn::stream::Wire;
use super::dispatch::PreparedCommand;
use super::operation::{Command, TaskEntry};
use super::scsi::{self, Attempt, Done, Fail};
use super::session::{About, Session, Stage, Task};
use super::state::gather::{Fault, Gather};
use super::state::tasks::{Mark, Payload};
use super::status;
use engine::transport::budget::ReservedBytes;
use engine::transport::buffers::ReplyBuf;

/// What a fault of the data is to the command (RFC 7143 §11.4.7.2).
fn sense_of(fault: Fault) -> Sense {
    let asc = match fault {
        Fault::Unexpected => Asc::UNEXPECTED_UNSOLICITED_DATA,
        Fault::Short => Asc::NOT_ENOUGH_UNSOLICITED_DATA,
        Fault::Number | Fault::Offset => Asc::DATA_PHASE_ERROR,
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
        meant: PreparedCommand,
    ) {
        let PreparedCommand { request, buffer, needs, .. } = meant;
        let goes_on = !command.is_final;
        let needs = match (&request, command.write) {
            (Ok(_), true) => u32::try_from(needs).unwrap_or(u32::MAX),
            _ => 0,
        };
        if needs == 0 && !goes_on {
            return self.begin(wire, about, request, (buffer, Vec::new()), None);
        }
        let (expected, bounds) = (command.expected_length, self.bounds);
        let needs = needs.min(expected);
        let unasked = match goes_on {
            true => bounds.first.min(needs) as usize,
            false => command.data.len().min(needs as usize),
        };
        let working = request.as_ref().map_or(0, scsi::Request::working_bytes);
        let admission = self.admit((needs as usize, working), unasked);
        let room = Vec::with_capacity(match &admission {
            Admission::Reserved(_) => needs as usize,
            Admission::Partial(held) => held.bytes(),
            // It is written at once or not at all.
            Admission::Full => command.data.len().min(needs as usize),
        });
        let gather = Gather::new((needs, expected), command.data, goes_on, bounds, room);
        let gather = match gather {
            Ok(gather) => gather,
            Err(fault) => {
                let failed = Done::failed(Fail::Sense(sense_of(fault)));
                return self.respond(wire, &about, &failed, ReplyBuf::default());
            }
        };
        match admission {
            Admission::Reserved(held) if gather.is_whole() => {
                self.begin(wire, about, request, (buffer, gather.into_data()), Some(held));
            }
            Admission::Full if gather.is_whole() => {
                self.begin(wire, about, request, (buffer, gather.into_data()), None);
            }
            Admission::Reserved(held) => {
                self.enter(wire, command, about, request, (gather, held, true));
            }
            Admission::Partial(held) => {
                self.enter(wire, command, about, request, (gather, held, false));
            }
            Admission::Full => self.refuse_full(wire, &about),
        }
    }

    fn enter(
        &mut self,
        wire: &mut Wire,
        command: &ScsiCommand<'_>,
        about: About,
        request: Result<scsi::Request, Done>,
        (gather, held, is_admitted): (Gather, ReservedBytes, bool),
    ) {
        let Some(joined) = &self.joined else { return };
        let mark = Mark::new(joined.port().clone(), about.itt, &self.wake);
        let unit = request.as_ref().ok().map(|request| Arc::clone(&request.unit));
        let entered = unit.as_ref().map(|unit| TaskEntry::new(unit, &mark));
        let (gather, request, lun) = (Box::new(gather), Box::new(request), command.lun);
        let stage = Stage::Gathering { gather, request, lun, held, is_admitted, entered };
        self.tasks.insert(about.itt, Task { about, mark, unit, stage });
        match is_admitted {
            true => self.ask(wire, about.itt),
            false => self.line.push_back(about.itt),
        }
    }

    /// Asks for the data of a command, as much as may be asked for at once.
    pub fn ask(&mut self, wire: &mut Wire, itt: u32) {
        loop {
            let (tag, sn, bounds) = (self.tag(), self.sn(), self.bounds);
            let Some(task) = self.tasks.get_mut(&itt) else { return };
            let Stage::Gathering { gather, lun, is_admitted: true, .. } = &mut task.stage else {
                return;
            };
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

    /// Fails a command that is still receiving data.
    pub fn fail_gathering(&mut self, wire: &mut Wire, itt: u32, sense: Sense) {
        let gathers = |task: &Task| matches!(task.stage, Stage::Gathering { .. });
        if self.tasks.get(&itt).is_some_and(gathers) {
            self.ended(wire, itt, Done::failed(Fail::Sense(sense)), ReplyBuf::default());
        }
    }

    fn begin_gathered(&mut self, wire: &mut Wire, itt: u32) {
        let Some(task) = self.tasks.remove(&itt) else { return };
        let Task { mut about, mark, stage, .. } = task;
        let Stage::Gathering { gather, request, held, entered, .. } = stage else { return };
        drop(entered);
        if let Some(verdict) = mark.verdict() {
            return self.aborted(wire, &about, verdict);
        }
        about.asked = gather.asked();
        let data = gather.into_data();
        self.begin(wire, about, *request, (ReplyBuf::default(), data), Some(held));
    }

    /// A command begins: at once if it can end at once, otherwise where it may block.
    fn begin(
        &mut self,
        wire: &mut Wire,
        mut about: About,
        request: Result<scsi::Request, Done>,
        (buffer, data): (ReplyBuf, Vec<u8>),
        held: Option<ReservedBytes>,
    ) {
        about.clock.resume(self.now_ns);
        let request = match request {
            Ok(request) => request,
            Err(done) => return self.respond(wire, &about, &done, buffer),
        };
        let maps = self.may_map(&about);
        let mut buffer = self.core.buffers.take_reply();
        let step = || scsi::attempt(&request, &data, maps, &mut buffer);
        let tried = self.core.engine.attempt(step);
        self.tried(&mut about);
        let (done, attempt) = tried.unwrap_or_else(|failure| {
            buffer.truncate(0);
            let fault = status::of(failure, Asc::INTERNAL_TARGET_FAILURE);
            (Done::failed(fault), Attempt::Done)
        });
        let done = match attempt {
            Attempt::Done => return self.respond(wire, &about, &done, buffer),
            Attempt::Extent(slice) => {
                self.core.buffers.give_reply(buffer);
                return self.respond_mapped(wire, &about, &done, slice);
            }
            Attempt::WouldBlock(_) => {
                return self.submit(wire, about, (request, data, buffer), None, held);
            }
            Attempt::Durable(flush, _) => Done { flush, ..done },
            Attempt::Suspended => done,
        };
        self.submit(wire, about, (request, Vec::new(), buffer), Some(done), held);
    }

    /// A command was tried on this thread; the one behind it begins now.
    fn tried(&mut self, about: &mut About) {
        self.now_ns = stamp();
        about.clock.spent(Phase::Inline, self.now_ns);
    }

    /// Gives the engine of its unit a command, or what is left of one that is `done` but for its
    /// flush and the tasks that it ends. `held` is the memory of its data, or of what it will have
    /// read, if that is reserved.
    pub fn submit(
        &mut self,
        wire: &mut Wire,
        about: About,
        (request, data, buffer): (scsi::Request, Vec<u8>, ReplyBuf),
        done: Option<Done>,
        held: Option<ReservedBytes>,
    ) {
        let needs = (data.len() + about.reply_max(), request.working_bytes());
        let held = match held.filter(|_| done.is_none()) {
            Some(held) if held.bytes() >= data.len().max(1) => held,
            _ if done.is_some() => self.core.budget.hold(0),
            _ => match self.admit(needs, data.len()) {
                Admission::Reserved(held) => held,
                _ if data.is_empty() => return self.wait_in_line(about, request),
                _ => return self.refuse_full(wire, &about),
            },
        };
        let unit = Arc::clone(&request.unit);
        let mark = Mark::new(request.nexus.port.clone(), about.itt, &self.wake);
        let entered = TaskEntry::new(&unit, &mark);
        let (itt, clock) = (about.itt, about.clock);
        let task = Task {
            about,
            mark: Arc::clone(&mark),
            unit: Some(Arc::clone(&unit)),
            stage: Stage::Running(held.bytes()),
        };
        self.tasks.insert(itt, task);
        let has_run = done.is_some();
        let mut done = done.unwrap_or_else(|| Done::good(0));
        let flush = std::mem::take(&mut done.flush);
        if has_run && flush.is_empty() {
            return self.abort_others(itt, done, (buffer, entered));
        }
        mark.load(Payload { data, held: held.into_send() });
        let to = Arc::clone(&self.completions);
        let request = scsi::Request { mark: Some(Arc::clone(&mark)), ..request };
        let command = Command { itt, request, held: None, buffer, done, mark, entered, to, clock };
        let engine = match unit.threads.engine(&self.core.engine) {
            Ok(engine) if has_run => return engine.flush(flush, command),
            Ok(engine) => engine,
            Err(_) => return self.crowded(wire, itt),
        };
        match engine.pool.reserve_of((u64::from(self.client), self.core.budget.connection())) {
            Some(slot) => engine.submit(slot, command),
            None => self.crowded(wire, itt),
        }
    }

    /// A command for which there is no place.
    fn crowded(&mut self, wire: &mut Wire, itt: u32) {
        let failed = Done::failed(status::of(Failure::Busy, Asc::INTERNAL_TARGET_FAILURE));
        self.ended(wire, itt, failed, ReplyBuf::default());
    }
}
