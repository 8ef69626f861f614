//! An initiator for tests: blocking, one connection, strict about what it gets.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use wire::iscsi::command::{CdbParts, Residual, ScsiCommand, TaskAttribute};
use wire::iscsi::data::{DataOut, R2t};
use wire::iscsi::frame::{Framed, Framer};
use wire::iscsi::login::{Isid, LoginRequest, LoginStatus};
use wire::iscsi::login_initiator::{InitiatorLogin, Next, Proof};
use wire::iscsi::login_phase::Identity;
use wire::iscsi::logout::{LogoutOutcome, LogoutReason, LogoutRequest};
use wire::iscsi::negotiate::Parameters;
use wire::iscsi::text::TextRequest;
use wire::iscsi::tmf::{Function, TmfOutcome, TmfRequest};
use wire::iscsi::{Digests, InitiatorSn, RESERVED_TAG, Request, Response, Serial};
use wire::scsi::{Cdb, Sense, Status};

use super::{BLOCK, Bench, TARGET};

/// How long an answer may take; far more than any does.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub status: Status,
    pub sense: Option<Sense>,
    pub residual: Residual,
    pub data: Vec<u8>,
    /// R2Ts that were sent for it, as the target has counted them.
    pub asked: u32,
}

/// Whatever came, with nothing borrowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Got {
    Answer(u32, Answer),
    R2t(R2t),
    Management(u32, TmfOutcome),
    Reject(u8),
    Ping(u32),
    Pong(u32, Vec<u8>),
    Text(Vec<u8>),
    LoggedOut,
    /// A logout that was refused, and why.
    Stays(u8),
    Event(u8),
}

/// An initiator.
pub(super) struct Client {
    stream: TcpStream,
    input: Vec<u8>,
    framer: Framer,
    digests: Digests,
    pub parameters: Parameters,
    cmd_sn: Serial,
    exp_stat_sn: Serial,
    pub max_cmd_sn: Serial,
    tag: u32,
    /// The target transfer tag that continues an exchange of text.
    pub text_tag: u32,
    /// Data of reads that have not ended.
    partial: std::collections::HashMap<u32, Vec<u8>>,
    /// What is held back, while that is so.
    held: Option<Vec<u8>>,
}

/// How to log in.
#[derive(Clone)]
pub(super) struct How {
    pub name: &'static str,
    pub target: &'static str,
    pub isid: u8,
    pub proof: Option<Proof>,
    pub wishes: Parameters,
    pub discovery: bool,
}

impl Default for How {
    fn default() -> Self {
        let wishes = Parameters {
            initial_r2t: false,
            max_recv_data: 64 << 10,
            max_outstanding_r2t: 4,
            ..Parameters::default()
        };
        let name = "iqn.2026-01.test:i";
        Self { name, target: TARGET, isid: 1, proof: None, wishes, discovery: false }
    }
}

fn is(expected: bool, what: &str) {
    assert!(expected, "{what}");
}

impl Client {
    pub fn new(bench: &Bench, how: &How) -> Self {
        Self::log_in(bench, how).expect("it may log in")
    }

    /// Logs in, or gives the status with which that was refused.
    pub fn log_in(bench: &Bench, how: &How) -> Result<Self, LoginStatus> {
        let stream = TcpStream::connect(bench.at).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut client = Self {
            stream,
            input: Vec::new(),
            framer: Framer::new(Digests::default(), 8192),
            digests: Digests::default(),
            parameters: how.wishes,
            cmd_sn: Serial(u32::MAX - 2),
            exp_stat_sn: Serial(0),
            max_cmd_sn: Serial(0),
            tag: 0,
            text_tag: RESERVED_TAG,
            partial: Default::default(),
            held: None,
        };
        let identity = Identity {
            initiator: how.name.to_owned(),
            target: (!how.discovery).then(|| how.target.to_owned()),
            is_discovery: how.discovery,
        };
        let mut login = InitiatorLogin::new(identity, how.proof.clone(), how.wishes);
        let (mut stages, mut text) = login.begin();
        loop {
            let sn = InitiatorSn { cmd_sn: client.cmd_sn, exp_stat_sn: client.exp_stat_sn };
            client.send(&Request::Login(LoginRequest {
                stages,
                version_max: 0,
                version_min: 0,
                isid: Isid([how.isid; 6]),
                tsih: 0,
                itt: 7,
                cid: 0,
                sn,
                data: &text,
            }));
            let taken = client.receive(|response| match response {
                Response::Login(login_response) => {
                    (login_response.status, login_response.sn, login.take(&login_response))
                }
                other => panic!("no login response: {other:?}"),
            });
            let (status, sn, next) = taken.expect("an answer");
            client.exp_stat_sn = sn.stat_sn.next();
            client.max_cmd_sn = sn.max_cmd_sn;
            if status != LoginStatus::SUCCESS {
                return Err(status);
            }
            match next {
                Ok(Next::Send(next, more)) => (stages, text) = (next, more),
                Ok(Next::Done) => break,
                Err(error) => panic!("the target is at fault: {error}"),
            }
        }
        client.parameters = login.parameters();
        client.digests = client.parameters.digests;
        client.framer = Framer::new(client.digests, client.parameters.max_recv_data as usize);
        Ok(client)
    }

    /// Sends a PDU as it is.
    pub fn send(&mut self, request: &Request<'_>) {
        let mut bytes = Vec::new();
        request.put(&mut bytes, self.digests);
        match &mut self.held {
            Some(held) => held.extend(bytes),
            None => self.stream.write_all(&bytes).expect("it takes it"),
        }
    }

    /// Holds what is sent back, or sends all of that at once.
    pub fn hold(&mut self, holds: bool) {
        let held = std::mem::replace(&mut self.held, holds.then(Vec::new));
        self.stream.write_all(&held.unwrap_or_default()).expect("it takes it");
    }

    /// Waits until something has come, and leaves it where it is.
    pub fn await_something(&self) {
        assert_eq!(self.stream.peek(&mut [0]).expect("something comes"), 1);
    }

    /// Sends a PDU as it is; the number that it was made with is used again.
    pub fn resend(&mut self, request: &Request<'_>) {
        self.cmd_sn = self.cmd_sn.minus(1);
        self.send(request);
    }

    /// Sends a PDU with one of its data bits flipped.
    pub fn send_damaged(&mut self, request: &Request<'_>) {
        let mut bytes = Vec::new();
        request.put(&mut bytes, self.digests);
        let at = bytes.len() - 20;
        bytes[at] ^= 0x10;
        self.stream.write_all(&bytes).expect("it takes it");
    }

    /// The next PDU; `None` when the target has closed the connection.
    fn receive<T>(&mut self, look: impl FnOnce(Response<'_>) -> T) -> Option<T> {
        loop {
            match self.framer.next(&self.input).expect("a PDU") {
                Framed::Complete(pdu) => {
                    let data = pdu.data.expect("digests fit");
                    let looked = look(Response::decode(&pdu.head, data).expect("a PDU"));
                    let consumed = pdu.consumed;
                    self.input.drain(..consumed);
                    return Some(looked);
                }
                Framed::Need(_) => {
                    let mut buffer = [0; 64 << 10];
                    match self.stream.read(&mut buffer) {
                        Ok(0) => return None,
                        Ok(count) => self.input.extend_from_slice(&buffer[..count]),
                        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                            return None;
                        }
                        Err(error) => panic!("no answer: {error}"),
                    }
                }
            }
        }
    }

    fn number(&mut self, sn: wire::iscsi::TargetSn, has_status: bool) {
        if has_status {
            assert_eq!(sn.stat_sn, self.exp_stat_sn, "StatSN has no gap");
            self.exp_stat_sn = sn.stat_sn.next();
        }
        is(!sn.max_cmd_sn.is_before(self.max_cmd_sn), "MaxCmdSN never goes back");
        self.max_cmd_sn = sn.max_cmd_sn;
    }

    /// What comes next; `None` at the end.
    pub fn next(&mut self) -> Option<Got> {
        loop {
            enum Raw {
                Got(Got, wire::iscsi::TargetSn, bool),
                Data(u32, u32, Vec<u8>, wire::iscsi::TargetSn, Option<(u8, Residual)>),
            }
            let mut text_tag = self.text_tag;
            let raw = self.receive(|response| match response {
                Response::DataIn(pdu) => {
                    let status = pdu.status.map(|status| (status.status, status.residual));
                    Raw::Data(pdu.itt, pdu.offset, pdu.data.to_vec(), pdu.sn, status)
                }
                Response::ScsiResponse(pdu) => {
                    let sense = Sense::decode(pdu.sense).ok();
                    let (status, residual) = (Status(pdu.status), pdu.residual);
                    let asked = pdu.exp_data_sn.0;
                    let answer = Answer { status, sense, residual, data: Vec::new(), asked };
                    Raw::Got(Got::Answer(pdu.itt, answer), pdu.sn, true)
                }
                Response::R2t(pdu) => Raw::Got(Got::R2t(pdu), pdu.sn, false),
                Response::Tmf(pdu) => Raw::Got(Got::Management(pdu.itt, pdu.outcome), pdu.sn, true),
                Response::Reject(pdu) => Raw::Got(Got::Reject(pdu.reason.0), pdu.sn, true),
                Response::NopIn(pdu) if pdu.itt == RESERVED_TAG => {
                    Raw::Got(Got::Ping(pdu.ttt), pdu.sn, false)
                }
                Response::NopIn(pdu) => {
                    Raw::Got(Got::Pong(pdu.itt, pdu.data.to_vec()), pdu.sn, true)
                }
                Response::Text(pdu) => {
                    text_tag = pdu.ttt;
                    Raw::Got(Got::Text(pdu.data.to_vec()), pdu.sn, true)
                }
                Response::Logout(pdu) if pdu.outcome == LogoutOutcome::CLOSED => {
                    Raw::Got(Got::LoggedOut, pdu.sn, true)
                }
                Response::Logout(pdu) => Raw::Got(Got::Stays(pdu.outcome.0), pdu.sn, true),
                Response::Async(pdu) => Raw::Got(Got::Event(pdu.event.0), pdu.sn, true),
                Response::Login(_) => panic!("a login response"),
            })?;
            self.text_tag = text_tag;
            match raw {
                Raw::Got(got, sn, has_status) => {
                    self.number(sn, has_status);
                    return Some(got);
                }
                Raw::Data(itt, offset, data, sn, status) => {
                    self.number(sn, status.is_some());
                    let whole = self.partial.entry(itt).or_default();
                    assert_eq!(whole.len(), offset as usize, "data comes in order");
                    whole.extend_from_slice(&data);
                    if let Some((status, residual)) = status {
                        let data = self.partial.remove(&itt).unwrap_or_default();
                        let status = Status(status);
                        let answer = Answer { status, sense: None, residual, data, asked: 0 };
                        return Some(Got::Answer(itt, answer));
                    }
                }
            }
        }
    }

    fn take_tag(&mut self) -> u32 {
        self.tag += 1;
        self.tag
    }

    fn take_sn(&mut self) -> InitiatorSn {
        let sn = InitiatorSn { cmd_sn: self.cmd_sn, exp_stat_sn: self.exp_stat_sn };
        self.cmd_sn = self.cmd_sn.next();
        sn
    }

    fn immediate_sn(&self) -> InitiatorSn {
        InitiatorSn { cmd_sn: self.cmd_sn, exp_stat_sn: self.exp_stat_sn }
    }

    /// Sends a command with this expected length and immediate data; returns its task tag.
    pub fn start(&mut self, lun: u16, cdb: Cdb, write: bool, expected: u32, now: &[u8]) -> u32 {
        let bytes = cdb.encode().expect("a CDB");
        self.start_bytes(lun, bytes.bytes(), write, expected, now)
    }

    pub fn start_bytes(
        &mut self,
        lun: u16,
        cdb: &[u8],
        write: bool,
        expected: u32,
        now: &[u8],
    ) -> u32 {
        let (itt, sn) = (self.take_tag(), self.take_sn());
        let command = ScsiCommand {
            immediate: false,
            is_final: true,
            read: !write && expected > 0,
            write,
            attribute: TaskAttribute::SIMPLE,
            lun: u64::from(lun) << 48,
            itt,
            expected_length: expected,
            read_length: None,
            sn,
            cdb: CdbParts::from(cdb),
            data: now,
        };
        self.send(&Request::ScsiCommand(command));
        itt
    }

    /// Answers an R2T with data, cut into pieces of at most `piece` bytes.
    pub fn answer(&mut self, ask: &R2t, all: &[u8], piece: usize) {
        let (start, end) = (ask.offset as usize, (ask.offset + ask.length) as usize);
        let (mut at, mut number) = (start, 0);
        while at < end {
            let to = end.min(at + piece);
            let pdu = DataOut {
                is_final: to == end,
                lun: ask.lun,
                itt: ask.itt,
                ttt: ask.ttt,
                exp_stat_sn: self.exp_stat_sn,
                data_sn: Serial(number),
                offset: at as u32,
                data: &all[at..to],
            };
            self.send(&Request::DataOut(pdu));
            (at, number) = (to, number + 1);
        }
    }

    /// Sends a Data-Out as it is.
    pub fn data_out(&mut self, pdu: DataOut<'_>) {
        self.send(&Request::DataOut(pdu));
    }

    /// Runs a command to its end.
    pub fn run(&mut self, lun: u16, cdb: Cdb, write: bool, expected: u32, data: &[u8]) -> Answer {
        let now = if write && self.parameters.immediate_data {
            &data[..data.len().min(self.parameters.first_burst as usize).min(4096)]
        } else {
            &[]
        };
        let itt = self.start(lun, cdb, write, expected, now);
        self.finish(itt, data)
    }

    /// Answers R2Ts of a command until it ends.
    pub fn finish(&mut self, itt: u32, data: &[u8]) -> Answer {
        loop {
            match self.next() {
                Some(Got::R2t(ask)) => self.answer(&ask, data, 8192),
                Some(Got::Answer(tag, answer)) if tag == itt => return answer,
                other => panic!("no answer to {itt}: {other:?}"),
            }
        }
    }

    pub fn read(&mut self, lun: u16, lba: u64, count: u32) -> Answer {
        self.run(lun, read(lba, count), false, count * BLOCK as u32, &[])
    }

    pub fn write(&mut self, lun: u16, lba: u64, data: &[u8]) -> Answer {
        let count = (data.len() / BLOCK) as u32;
        self.run(lun, write(lba, count), true, data.len() as u32, data)
    }

    /// Clears the unit attention conditions of a new session.
    pub fn settle(&mut self, lun: u16) {
        let answer = self.run(lun, Cdb::TestUnitReady, false, 0, &[]);
        assert_eq!(answer.sense.map(|s| s.asc), Some(wire::scsi::Asc::POWER_ON_OR_RESET));
        assert_eq!(self.run(lun, Cdb::TestUnitReady, false, 0, &[]).status, Status::GOOD);
    }

    pub fn manage(&mut self, lun: u16, function: Function, referenced_tag: u32) -> u32 {
        let (itt, sn) = (self.take_tag(), self.immediate_sn());
        self.send(&Request::Tmf(TmfRequest {
            immediate: true,
            function,
            lun: u64::from(lun) << 48,
            itt,
            referenced_tag,
            sn,
            ref_cmd_sn: sn.cmd_sn.minus(1),
            exp_data_sn: Serial(0),
        }));
        itt
    }

    /// Sends a task management function and takes its answer.
    pub fn managed(&mut self, lun: u16, function: Function, referenced_tag: u32) -> TmfOutcome {
        let itt = self.manage(lun, function, referenced_tag);
        match self.next() {
            Some(Got::Management(tag, outcome)) if tag == itt => outcome,
            other => panic!("no answer: {other:?}"),
        }
    }

    pub fn ping(&mut self, data: &[u8]) -> Option<Got> {
        let (itt, sn) = (self.take_tag(), self.immediate_sn());
        let nop =
            wire::iscsi::nop::NopOut { immediate: true, lun: 0, itt, ttt: RESERVED_TAG, sn, data };
        self.send(&Request::NopOut(nop));
        self.next()
    }

    pub fn text(&mut self, data: &[u8]) -> Option<Got> {
        self.text_of(data, true)
    }

    /// Text after which, if it is not final, more is to come.
    pub fn text_of(&mut self, data: &[u8], is_final: bool) -> Option<Got> {
        let (itt, sn) = (self.take_tag(), self.take_sn());
        self.send(&Request::Text(TextRequest {
            immediate: false,
            is_final,
            to_be_continued: false,
            lun: 0,
            itt,
            ttt: self.text_tag,
            sn,
            data,
        }));
        self.next()
    }

    pub fn log_out(&mut self) {
        self.log_out_of(LogoutReason::CloseSession, 0);
    }

    pub fn log_out_of(&mut self, reason: LogoutReason, cid: u16) {
        let (itt, sn) = (self.take_tag(), self.take_sn());
        self.send(&Request::Logout(LogoutRequest { immediate: false, reason, itt, cid, sn }));
    }

    /// A command as a PDU that is not sent by [`Client::start`].
    pub fn command<'a>(&mut self, lun: u16, cdb: &'a [u8], data: &'a [u8]) -> ScsiCommand<'a> {
        let (itt, sn) = (self.take_tag(), self.take_sn());
        ScsiCommand {
            immediate: false,
            is_final: true,
            read: false,
            write: true,
            attribute: TaskAttribute::SIMPLE,
            lun: u64::from(lun) << 48,
            itt,
            expected_length: data.len() as u32,
            read_length: None,
            sn,
            cdb: CdbParts::from(cdb),
            data,
        }
    }
}

pub(super) fn read(lba: u64, count: u32) -> Cdb {
    Cdb::Read(io(lba, count))
}

pub(super) fn write(lba: u64, count: u32) -> Cdb {
    Cdb::Write(io(lba, count))
}

pub(super) fn io(lba: u64, count: u32) -> wire::scsi::cdb::Io {
    let width = wire::scsi::cdb::Width::Sixteen;
    let blocks = wire::scsi::cdb::Blocks { width, lba, count, group: 0 };
    wire::scsi::cdb::Io { blocks, no_cache: false, force_unit_access: false }
}
