//! Commands of one session and their data: a slot's number is its command's tag.

use super::stream::Stream;
use crate::client::layout::Layout;
use crate::client::{Checker, ClientError, Completion, Fault, Op, Transport};
use base::limits::LAB_SILENCE_MAX;
use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::time::Duration;
use wire::iscsi::command::{CdbParts, ScsiCommand, TaskAttribute};
use wire::iscsi::data::{DataOut, R2t};
use wire::iscsi::logout::{LogoutReason, LogoutRequest};
use wire::iscsi::negotiate::Parameters;
use wire::iscsi::nop::NopOut;
use wire::iscsi::{InitiatorSn, RESERVED_TAG, Request, Response, Serial, TargetSn};
use wire::scsi::cdb::{Blocks, CacheRange, Io, Width};
use wire::scsi::{Cdb, Sense, Status};

/// Tag of a command that runs alone; no slot has this number.
const ALONE: u32 = u32::MAX - 1;
/// Bytes gathered for one send: large enough to share its cost among many commands.
const GATHERED: usize = 256 << 10;
/// Receives that one wait may take before the driver looks at its clock again.
const RECEIVES_PER_WAIT: u32 = 16;

/// How a command ended: what it has read, or its status as Plimsoll counts it (the sense key in the
/// upper byte).
pub type Answer = Result<Vec<u8>, u32>;

/// A command in flight in a slot.
#[derive(Debug, Clone, Copy)]
struct Running {
    op: Op,
    received: u32,
    is_right: bool,
}

/// A command that runs alone.
#[derive(Debug, Default)]
struct SingleCommand {
    out: Vec<u8>,
    data: Vec<u8>,
    ended: Option<u32>,
}

/// Data that the target has asked for, as far as it was sent.
struct Solicited {
    ask: R2t,
    sent: u32,
    number: u32,
}

/// What a PDU means.
enum Event {
    Data { tag: u32, status: Option<u32>, sn: TargetSn },
    Ended { tag: u32, status: u32, sn: TargetSn },
    R2t(R2t),
    Ping { ttt: u32, lun: u64, sn: TargetSn },
    LoggedOut,
}

/// The session.
pub struct Session {
    stream: Stream,
    lun: u64,
    checker: Checker,
    parameters: Parameters,
    sn: InitiatorSn,
    max_cmd_sn: Serial,
    /// Bytes of a block.
    pub block: u32,
    /// Where files lie.
    pub layout: Layout,
    /// Commands that were answered.
    pub answered: u64,
    running: Vec<Option<Running>>,
    pending: VecDeque<(u32, Op)>,
    asked: VecDeque<Solicited>,
    alone: SingleCommand,
    ready: Vec<Completion>,
    content: Vec<u8>,
}

impl Session {
    /// A session that has just begun.
    pub fn new(
        stream: Stream,
        lun: u64,
        checker: Checker,
        sn: InitiatorSn,
        max_cmd_sn: Serial,
        parameters: Parameters,
    ) -> Self {
        Self {
            stream,
            lun,
            checker,
            parameters,
            sn,
            max_cmd_sn,
            block: 512,
            layout: Layout::default(),
            answered: 0,
            running: Vec::new(),
            pending: VecDeque::new(),
            asked: VecDeque::new(),
            alone: SingleCommand::default(),
            ready: Vec::new(),
            content: Vec::new(),
        }
    }

    /// Commands that may be sent now.
    pub fn window(&self) -> u32 {
        self.max_cmd_sn.next().since(self.sn.cmd_sn).unwrap_or(0)
    }

    /// The socket's descriptor.
    pub fn descriptor(&self) -> RawFd {
        self.stream.link.descriptor()
    }

    /// TCP statistics of the connection.
    pub fn transport(&self) -> Option<Transport> {
        self.stream.link.transport()
    }

    /// Keeps `op` for `slot` until it may be sent.
    #[inline]
    pub fn submit(&mut self, slot: u32, op: Op) {
        self.pending.push_back((slot, op));
    }

    /// Sends all that may be sent; takes in answers whenever the socket is full.
    ///
    /// # Errors
    /// The connection is gone, or the target breaks the protocol.
    pub fn push(&mut self) -> Result<(), ClientError> {
        loop {
            while self.stream.waiting() < GATHERED && self.put_one() {}
            if self.stream.waiting() == 0 {
                return Ok(());
            }
            if !self.stream.send_some()? && self.stream.link.wait_both()? {
                self.pull()?;
            }
        }
    }

    /// Appends a piece of data that was asked for, or a command; false when there is neither, or
    /// the window is closed.
    fn put_one(&mut self) -> bool {
        if let Some(asked) = self.asked.pop_front() {
            self.put_data(asked);
            return true;
        }
        if self.window() == 0 {
            return false;
        }
        let Some((slot, op)) = self.pending.pop_front() else { return false };
        let at = slot as usize;
        if self.running.len() <= at {
            self.running.resize(at + 1, None);
        }
        if let Some(place) = self.running.get_mut(at) {
            *place = Some(Running { op, received: 0, is_right: true });
        }
        let (cdb, length) = self.command(op);
        let write = matches!(op, Op::Write { .. });
        let now = if write { self.unsolicited(length) } else { 0 };
        let mut content = std::mem::take(&mut self.content);
        self.fill(op, 0, now, &mut content);
        let read = if write { 0 } else { length };
        self.put_command(slot, &cdb, (&content, if write { length } else { 0 }), read);
        self.content = content;
        true
    }

    /// Bytes of immediate data that go with a command that writes `length` bytes.
    fn unsolicited(&self, length: u32) -> u32 {
        if !self.parameters.immediate_data {
            return 0;
        }
        length.min(self.parameters.first_burst).min(self.parameters.max_send_data)
    }

    fn put_command(&mut self, tag: u32, cdb: &Cdb, (now, write): (&[u8], u32), read: u32) {
        let Some(bytes) = cdb.encode() else { return };
        let sn = self.sn;
        self.sn.cmd_sn = sn.cmd_sn.next();
        self.stream.put(&Request::ScsiCommand(ScsiCommand {
            immediate: false,
            is_final: true,
            read: read > 0,
            write: write > 0,
            attribute: TaskAttribute::SIMPLE,
            lun: self.lun,
            itt: tag,
            expected_length: write.max(read),
            read_length: None,
            sn,
            cdb: CdbParts::from(bytes.bytes()),
            data: now,
        }));
    }

    /// One Data-Out of what was asked for; the rest is asked for still.
    fn put_data(&mut self, mut asked: Solicited) {
        let Solicited { ask, sent, number } = asked;
        let count = (ask.length - sent).min(self.parameters.max_send_data);
        let offset = ask.offset + sent;
        let mut content = std::mem::take(&mut self.content);
        match self.running.get(ask.itt as usize).copied().flatten() {
            Some(running) => self.fill(running.op, offset, count, &mut content),
            None => {
                let (start, end) = (offset as usize, (offset + count) as usize);
                content.clear();
                content.extend_from_slice(self.alone.out.get(start..end).unwrap_or_default());
            }
        }
        self.stream.put(&Request::DataOut(DataOut {
            is_final: sent + count >= ask.length,
            lun: ask.lun,
            itt: ask.itt,
            ttt: ask.ttt,
            exp_stat_sn: self.sn.exp_stat_sn,
            data_sn: Serial(number),
            offset,
            data: &content,
        }));
        self.content = content;
        (asked.sent, asked.number) = (sent + count, number + 1);
        if asked.sent < ask.length {
            self.asked.push_front(asked);
        }
    }

    /// A part of what a write carries; nothing of other operations.
    fn fill(&self, op: Op, from: u32, count: u32, content: &mut Vec<u8>) {
        content.resize(count as usize, 0);
        if let Op::Write { file, offset, .. } = op {
            let key = self.layout.key(file);
            self.checker.content.fill(key, offset + u64::from(from), content);
        }
    }

    /// The command of an operation and the bytes that it moves.
    fn command(&self, op: Op) -> (Cdb, u32) {
        let block = u64::from(self.block.max(1));
        let io = |file: u32, offset: u64, len: u32, fua: bool| Io {
            blocks: Blocks {
                width: Width::Sixteen,
                lba: (self.layout.at(file) + offset) / block,
                count: len / self.block.max(1),
                group: 0,
            },
            no_cache: false,
            force_unit_access: fua,
        };
        match op {
            Op::Read { file, offset, len } => (Cdb::Read(io(file, offset, len, false)), len),
            Op::Write { file, offset, len, stable } => {
                (Cdb::Write(io(file, offset, len, stable)), len)
            }
            Op::Commit { .. } => {
                let blocks = Blocks { width: Width::Sixteen, lba: 0, count: 0, group: 0 };
                (Cdb::SynchronizeCache(CacheRange { blocks, immediate: false }), 0)
            }
            // Operations on names never come here: `layout::check`.
            _ => (Cdb::TestUnitReady, 0),
        }
    }

    /// One receive and everything in it. False when nothing came within the link's timeout.
    fn pull(&mut self) -> Result<bool, ClientError> {
        if !self.stream.receive()? {
            return Ok(false);
        }
        loop {
            let Self { stream, checker, running, layout, alone, .. } = self;
            let event = stream.next(|response| take(response, checker, running, layout, alone))?;
            match event {
                None => return Ok(true),
                Some(event) => self.apply(event?)?,
            }
        }
    }

    fn number(&mut self, sn: TargetSn, has_status: bool) {
        if has_status {
            self.sn.exp_stat_sn = sn.stat_sn.next();
        }
        if sn.max_cmd_sn.is_after(self.max_cmd_sn) {
            self.max_cmd_sn = sn.max_cmd_sn;
        }
    }

    fn apply(&mut self, event: Event) -> Result<(), ClientError> {
        match event {
            Event::R2t(ask) => {
                self.asked.push_back(Solicited { ask, sent: 0, number: 0 });
            }
            Event::Data { tag, status, sn } => {
                self.number(sn, status.is_some());
                if let Some(status) = status {
                    self.end(tag, status)?;
                }
            }
            Event::Ended { tag, status, sn } => {
                self.number(sn, true);
                self.end(tag, status)?;
            }
            Event::Ping { ttt, lun, sn } => {
                self.number(sn, false);
                let (immediate, sn) = (true, self.sn);
                let pong = NopOut { immediate, lun, itt: RESERVED_TAG, ttt, sn, data: &[] };
                self.stream.put(&Request::NopOut(pong));
            }
            Event::LoggedOut => return Err(ClientError::Closed),
        }
        Ok(())
    }

    fn end(&mut self, tag: u32, status: u32) -> Result<(), ClientError> {
        self.answered += 1;
        if tag == ALONE {
            self.alone.ended = Some(status);
            return Ok(());
        }
        let ended = self.running.get_mut(tag as usize).and_then(Option::take);
        let Some(Running { op, received, is_right }) = ended else {
            return Err(ClientError::Protocol("an answer to no command".to_owned()));
        };
        let outcome = match op {
            _ if status != 0 => Err(Fault::Status(status)),
            Op::Read { len, .. } if received < len => Err(Fault::Short),
            Op::Read { .. } if !is_right => Err(Fault::Corrupt),
            Op::Read { len, .. } | Op::Write { len, .. } => Ok(len),
            _ => Ok(0),
        };
        self.ready.push(Completion { slot: tag, outcome });
        Ok(())
    }

    /// Takes in what has come, or comes within `timeout`.
    ///
    /// # Errors
    /// As [`Session::push`].
    pub fn wait(
        &mut self,
        timeout: Duration,
        done: &mut Vec<Completion>,
    ) -> Result<(), ClientError> {
        for _ in 0..RECEIVES_PER_WAIT {
            // What was asked for, answers to pings, and commands for which there is room now.
            self.push()?;
            self.stream.link.set_timeout(timeout)?;
            if !self.ready.is_empty() || !self.pull()? {
                break;
            }
        }
        self.push()?;
        done.append(&mut self.ready);
        Ok(())
    }

    /// Runs one command when nothing else is in flight.
    ///
    /// # Errors
    /// As [`Session::push`], and when no answer comes.
    pub fn exchange(&mut self, cdb: &Cdb, out: &[u8], read: u32) -> Result<Answer, ClientError> {
        self.alone = SingleCommand { out: out.to_vec(), ..SingleCommand::default() };
        let now = self.unsolicited(out.len() as u32) as usize;
        let write = (out.get(..now).unwrap_or_default(), out.len() as u32);
        self.put_command(ALONE, cdb, write, read);
        self.stream.link.set_timeout(LAB_SILENCE_MAX)?;
        loop {
            self.push()?;
            if let Some(status) = self.alone.ended.take() {
                let data = std::mem::take(&mut self.alone.data);
                return Ok(if status == 0 { Ok(data) } else { Err(status) });
            }
            if !self.pull()? {
                return Err(ClientError::Silent("a command", LAB_SILENCE_MAX));
            }
        }
    }

    /// As [`Session::exchange`], of a command that must end well.
    ///
    /// # Errors
    /// As there, and when the target refuses.
    pub fn succeed(
        &mut self,
        cdb: &Cdb,
        out: &[u8],
        read: u32,
        what: &str,
    ) -> Result<Vec<u8>, ClientError> {
        let refused = |status: u32| ClientError::Refused {
            what: what.to_owned(),
            status: status.to_string(),
        };
        self.exchange(cdb, out, read)?.map_err(refused)
    }

    /// Ends the session in good order.
    ///
    /// # Errors
    /// As [`Session::exchange`].
    pub fn log_out(&mut self, within: Duration) -> Result<(), ClientError> {
        let (reason, sn) = (LogoutReason::CloseSession, self.sn);
        let request = LogoutRequest { immediate: true, reason, itt: ALONE, cid: 0, sn };
        self.stream.put(&Request::Logout(request));
        self.stream.send_all()?;
        self.stream.link.set_timeout(within)?;
        while self.pull()? {}
        Ok(())
    }
}

/// The event that a PDU stands for. Data is checked.
fn take(
    response: Response<'_>,
    checker: &Checker,
    running: &mut [Option<Running>],
    layout: &Layout,
    alone: &mut SingleCommand,
) -> Result<Event, ClientError> {
    match response {
        Response::DataIn(pdu) => {
            if let Some(Some(running)) = running.get_mut(pdu.itt as usize)
                && let Op::Read { file, offset, len } = running.op
            {
                let (at, length) = (u64::from(pdu.offset), u64::from(len));
                running.is_right &=
                    checker.is_right(layout.key(file), offset, length, at, pdu.data);
                running.received += pdu.data.len() as u32;
            } else if pdu.itt == ALONE {
                alone.data.extend_from_slice(pdu.data);
            }
            let status = pdu.status.map(|status| u32::from(status.status));
            Ok(Event::Data { tag: pdu.itt, status, sn: pdu.sn })
        }
        Response::ScsiResponse(pdu) => {
            let status = match (Status(pdu.status), Sense::decode(pdu.sense)) {
                (Status::CHECK_CONDITION, Ok(sense)) => u32::from(sense.key.0) << 8 | 2,
                (Status(number), _) => u32::from(number),
            };
            Ok(Event::Ended { tag: pdu.itt, status, sn: pdu.sn })
        }
        Response::R2t(ask) => Ok(Event::R2t(ask)),
        Response::NopIn(pdu) => Ok(Event::Ping { ttt: pdu.ttt, lun: pdu.lun, sn: pdu.sn }),
        Response::Logout(_) | Response::Async(_) => Ok(Event::LoggedOut),
        other => Err(ClientError::Protocol(format!("not asked for: {other:?}"))),
    }
}
