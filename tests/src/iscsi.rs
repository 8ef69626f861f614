//! An initiator of iSCSI: blocking, one connection, any number of commands in flight; and a relay
//! that can cut connections and flip a bit on the way.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use wire::iscsi::chap::CHALLENGE;
use wire::iscsi::command::{CdbParts, ScsiCommand, TaskAttribute};
use wire::iscsi::data::{DataOut, R2t};
use wire::iscsi::frame::{Framed, Framer};
use wire::iscsi::login::{Isid, LoginRequest, LoginStatus};
use wire::iscsi::login_initiator::{InitiatorLogin, Next, Proof};
use wire::iscsi::login_phase::{Credentials, Identity};
use wire::iscsi::negotiate::Parameters;
use wire::iscsi::tmf::{Function, TmfOutcome, TmfRequest};
use wire::iscsi::{Digests, InitiatorSn, Request, Response, Serial};
use wire::scsi::cdb::{Blocks, CacheRange, Io, ModeSelect, PersistentReserveOut, Width};
use wire::scsi::cdb::{ReserveIn, ReserveOut};
use wire::scsi::lun::Lun;
use wire::scsi::mode::{Caching, Header};
use wire::scsi::reserve::{More, Parameters as ReserveParameters};
use wire::scsi::{Cdb, Sense, Status};

pub mod relay;

/// Longest wait for one answer.
const ANSWER: Duration = crate::patience(30);
/// Bytes of a block.
pub const BLOCK: usize = 512;
/// Bytes of data that one Data-Out carries.
const PIECE: usize = 8192;

/// What initiators need to know of a server's units.
#[derive(Debug, Clone)]
pub struct Access {
    /// The target's name.
    pub target: String,
    /// What initiators sign in with.
    pub secret: String,
}

impl Access {
    /// As the server keeps it in its state directory.
    ///
    /// # Panics
    /// When it has no units.
    pub fn of(state: &Path) -> Self {
        let read = |name: &str| {
            let path = state.join("luns").join(name);
            let text = fs::read_to_string(&path);
            text.unwrap_or_else(|e| panic!("{}: {e}", path.display())).trim().to_owned()
        };
        Self { target: read("target"), secret: read("secret") }
    }

    /// What the target proves itself with: a name and a secret.
    ///
    /// # Panics
    /// When the server has no units.
    pub fn own(state: &Path) -> (String, String) {
        let path = state.join("luns/target-secret");
        let text = fs::read_to_string(&path);
        let secret = text.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        ("plimsoll-target".to_owned(), secret.trim().to_owned())
    }

    /// URL of a unit, as libiscsi and the laboratory take it.
    pub fn url(&self, at: SocketAddr, lun: u16) -> String {
        format!("iscsi://plimsoll%{}@{at}/{}/{lun}", self.secret, self.target)
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: Status,
    /// Sense data, with CHECK CONDITION.
    pub sense: Option<Sense>,
    /// What it has read.
    pub data: Vec<u8>,
}

impl Answer {
    /// Whether it ended with GOOD.
    pub fn is_good(&self) -> bool {
        self.status == Status::GOOD
    }
}

/// An initiator, signed in.
pub struct Initiator {
    stream: TcpStream,
    input: Vec<u8>,
    framer: Framer,
    parameters: Parameters,
    cmd_sn: Serial,
    exp_stat_sn: Serial,
    tag: u32,
    /// Data of reads that have not ended, by tag.
    reads: HashMap<u32, Vec<u8>>,
    /// Data of writes that have not ended.
    writes: HashMap<u32, Vec<u8>>,
    /// The unit that commands are for.
    lun: u64,
    /// Commands that have ended while something else was waited for.
    early: VecDeque<(u32, Answer)>,
}

/// What has come.
enum Came {
    Ended(u32, Answer),
    Managed(TmfOutcome),
}

impl Initiator {
    /// Signs in; `number` makes the initiator port.
    ///
    /// # Errors
    /// The connection breaks, or the target refuses.
    pub fn connect(at: SocketAddr, access: &Access, number: u8) -> io::Result<Self> {
        Self::over(TcpStream::connect(at)?, access, u16::from(number))
    }

    /// As [`Initiator::connect`], over an existing connection.
    ///
    /// # Errors
    /// The connection breaks, or the target refuses.
    pub fn over(stream: TcpStream, access: &Access, number: u16) -> io::Result<Self> {
        Self::with_port(stream, access, (number, number))
    }

    /// The same, with numbers for the name of the initiator and for the ISID of its port.
    ///
    /// # Errors
    /// The connection breaks, or the target refuses.
    pub fn with_port(
        stream: TcpStream,
        access: &Access,
        (name, port): (u16, u16),
    ) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER))?;
        let wishes = Parameters { initial_r2t: false, max_recv_data: 65_536, ..Default::default() };
        let mut this = Self {
            stream,
            input: Vec::new(),
            framer: Framer::new(Digests::default(), 8192),
            parameters: Parameters::default(),
            cmd_sn: Serial(1),
            exp_stat_sn: Serial(0),
            tag: 0,
            reads: HashMap::new(),
            writes: HashMap::new(),
            lun: 0,
            early: VecDeque::new(),
        };
        this.log_in(access, (name, port), wishes)?;
        this.select(0)?;
        Ok(this)
    }

    /// Sends commands to this unit from now on.
    ///
    /// # Errors
    /// The connection breaks, or the number has no address.
    pub fn select(&mut self, lun: u16) -> io::Result<()> {
        self.lun = Lun::of(lun).ok_or_else(|| io::Error::other("no address"))?.0;
        // The first command of a new nexus returns a unit attention.
        for _ in 0..2 {
            self.run(&Cdb::TestUnitReady, &[], 0)?;
        }
        Ok(())
    }

    /// Sends a task management function, about the task with this tag or the unit, and waits for
    /// its answer.
    ///
    /// # Errors
    /// The connection breaks.
    pub fn manage(&mut self, function: Function, tag: u32) -> io::Result<TmfOutcome> {
        let sn = InitiatorSn { cmd_sn: self.cmd_sn, exp_stat_sn: self.exp_stat_sn };
        self.tag += 1;
        self.send(&Request::Tmf(TmfRequest {
            immediate: true,
            function,
            lun: self.lun,
            itt: self.tag,
            referenced_tag: tag,
            sn,
            ref_cmd_sn: sn.cmd_sn.minus(1),
            exp_data_sn: Serial(0),
        }))?;
        loop {
            match self.came()? {
                Came::Managed(outcome) => return Ok(outcome),
                Came::Ended(tag, answer) => self.early.push_back((tag, answer)),
            }
        }
    }

    fn log_in(
        &mut self,
        access: &Access,
        (name, port): (u16, u16),
        wishes: Parameters,
    ) -> io::Result<()> {
        let [high, low] = port.to_be_bytes();
        let identity = Identity {
            initiator: format!("iqn.2026-01.test:{name}"),
            target: Some(access.target.clone()),
            is_discovery: false,
        };
        let secret = access.secret.clone().into_bytes();
        let initiator = Credentials { name: "plimsoll".to_owned(), secret };
        let proof = Proof { initiator, target: None, random: [low; 1 + CHALLENGE] };
        let mut login = InitiatorLogin::new(identity, Some(proof), wishes);
        let (mut stages, mut text) = login.begin();
        loop {
            let sn = InitiatorSn { cmd_sn: self.cmd_sn, exp_stat_sn: self.exp_stat_sn };
            self.send(&Request::Login(LoginRequest {
                stages,
                version_max: 0,
                version_min: 0,
                isid: Isid([0x80, low, high, 0, 0, 0]),
                tsih: 0,
                itt: 7,
                cid: 0,
                sn,
                data: &text,
            }))?;
            let (status, stat_sn, next) = self.receive(|response| match response {
                Response::Login(pdu) => Ok((pdu.status, pdu.sn.stat_sn, login.take(&pdu))),
                other => Err(io::Error::other(format!("no login response: {other:?}"))),
            })??;
            self.exp_stat_sn = stat_sn.next();
            if status != LoginStatus::SUCCESS {
                return Err(io::Error::other(format!("refused: {status:?}")));
            }
            match next.map_err(io::Error::other)? {
                Next::Send(then, more) => (stages, text) = (then, more),
                Next::Done => break,
            }
        }
        self.parameters = login.parameters();
        self.framer = Framer::new(self.parameters.digests, wishes.max_recv_data as usize);
        Ok(())
    }

    fn send(&mut self, request: &Request<'_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        request.put(&mut bytes, self.parameters.digests);
        self.stream.write_all(&bytes)
    }

    /// The next PDU.
    fn receive<T>(&mut self, look: impl FnOnce(Response<'_>) -> T) -> io::Result<T> {
        let mut buffer = [0; 64 << 10];
        loop {
            match self.framer.next(&self.input).map_err(io::Error::other)? {
                Framed::Complete(pdu) => {
                    let data = pdu.data.map_err(|_| io::Error::other("a digest does not fit"))?;
                    let response = Response::decode(&pdu.head, data).map_err(io::Error::other)?;
                    let (looked, consumed) = (look(response), pdu.consumed);
                    self.input.drain(..consumed);
                    return Ok(looked);
                }
                Framed::Need(_) => match self.stream.read(&mut buffer)? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    count => self.input.extend_from_slice(&buffer[..count]),
                },
            }
        }
    }

    /// Sends a command with what it writes and the bytes that it may read; its tag.
    ///
    /// # Errors
    /// The connection breaks.
    ///
    /// # Panics
    /// For a command that has no CDB.
    pub fn start(&mut self, cdb: &Cdb, out: &[u8], expect: u32) -> io::Result<u32> {
        self.tag += 1;
        let itt = self.tag;
        let sn = InitiatorSn { cmd_sn: self.cmd_sn, exp_stat_sn: self.exp_stat_sn };
        self.cmd_sn = self.cmd_sn.next();
        let most = self.parameters.first_burst.min(self.parameters.max_send_data) as usize;
        let now = &out[..out.len().min(most)];
        let bytes = cdb.encode().expect("a CDB");
        self.send(&Request::ScsiCommand(ScsiCommand {
            immediate: false,
            is_final: true,
            read: expect > 0,
            write: !out.is_empty(),
            attribute: TaskAttribute::SIMPLE,
            lun: self.lun,
            itt,
            expected_length: expect.max(out.len() as u32),
            read_length: None,
            sn,
            cdb: CdbParts::from(bytes.bytes()),
            data: now,
        }))?;
        self.writes.insert(itt, out.to_vec());
        Ok(itt)
    }

    fn answer(&mut self, ask: &R2t) -> io::Result<()> {
        let all = self.writes.get(&ask.itt).cloned().unwrap_or_default();
        let (start, end) = (ask.offset as usize, (ask.offset + ask.length) as usize);
        let (exp_stat_sn, mut at, mut number) = (self.exp_stat_sn, start, 0);
        while at < end {
            let to = end.min(at + PIECE);
            self.send(&Request::DataOut(DataOut {
                is_final: to == end,
                lun: ask.lun,
                itt: ask.itt,
                ttt: ask.ttt,
                exp_stat_sn,
                data_sn: Serial(number),
                offset: at as u32,
                data: all.get(at..to).ok_or(io::ErrorKind::InvalidData)?,
            }))?;
            (at, number) = (to, number + 1);
        }
        Ok(())
    }

    /// Waits until a command has ended; which.
    ///
    /// # Errors
    /// The connection breaks, or the target does not keep to the protocol.
    pub fn ended(&mut self) -> io::Result<(u32, Answer)> {
        if let Some(ended) = self.early.pop_front() {
            return Ok(ended);
        }
        match self.came()? {
            Came::Ended(tag, answer) => Ok((tag, answer)),
            Came::Managed(outcome) => Err(io::Error::other(format!("not asked for: {outcome:?}"))),
        }
    }

    fn came(&mut self) -> io::Result<Came> {
        enum Got {
            Data(u32, Vec<u8>, Option<Answer>),
            Ended(u32, Answer),
            R2t(R2t),
            Managed(TmfOutcome),
            Other(String),
        }
        loop {
            let (got, stat_sn) = self.receive(|response| match response {
                Response::DataIn(pdu) => {
                    let end = pdu.status.map(|status| Answer {
                        status: Status(status.status),
                        sense: None,
                        data: Vec::new(),
                    });
                    let stat_sn = end.is_some().then_some(pdu.sn.stat_sn);
                    (Got::Data(pdu.itt, pdu.data.to_vec(), end), stat_sn)
                }
                Response::ScsiResponse(pdu) => {
                    let sense = Sense::decode(pdu.sense).ok();
                    let answer = Answer { status: Status(pdu.status), sense, data: Vec::new() };
                    (Got::Ended(pdu.itt, answer), Some(pdu.sn.stat_sn))
                }
                Response::R2t(pdu) => (Got::R2t(pdu), None),
                Response::Tmf(pdu) => (Got::Managed(pdu.outcome), Some(pdu.sn.stat_sn)),
                other => (Got::Other(format!("{other:?}")), None),
            })?;
            if let Some(stat_sn) = stat_sn {
                self.exp_stat_sn = stat_sn.next();
            }
            let (tag, mut answer) = match got {
                Got::R2t(ask) => {
                    self.answer(&ask)?;
                    continue;
                }
                Got::Data(tag, data, end) => {
                    self.reads.entry(tag).or_default().extend(data);
                    let Some(end) = end else { continue };
                    (tag, end)
                }
                Got::Ended(tag, answer) => (tag, answer),
                Got::Managed(outcome) => return Ok(Came::Managed(outcome)),
                Got::Other(what) => return Err(io::Error::other(what)),
            };
            self.writes.remove(&tag);
            answer.data = self.reads.remove(&tag).unwrap_or_default();
            return Ok(Came::Ended(tag, answer));
        }
    }

    /// Runs a command to its end; nothing else may be in flight.
    ///
    /// # Errors
    /// The connection breaks.
    pub fn run(&mut self, cdb: &Cdb, out: &[u8], expect: u32) -> io::Result<Answer> {
        let tag = self.start(cdb, out, expect)?;
        let (ended, answer) = self.ended()?;
        if ended == tag { Ok(answer) } else { Err(io::Error::other("another command has ended")) }
    }

    /// Runs a command that must end well.
    ///
    /// # Panics
    /// When it does not.
    pub fn good(&mut self, cdb: &Cdb, out: &[u8], expect: u32) -> Vec<u8> {
        match self.run(cdb, out, expect) {
            Ok(answer) if answer.is_good() => answer.data,
            other => panic!("{cdb:?}: {other:?}"),
        }
    }

    /// Switches the write cache on or off.
    ///
    /// # Panics
    /// When the target refuses.
    pub fn set_write_cache(&mut self, on: bool) {
        let (cdb, list) = write_cache(on);
        self.good(&cdb, &list, 0);
    }
}

/// Blocks from `lba` on, in the long form.
pub fn blocks(lba: u64, count: u32) -> Blocks {
    Blocks { width: Width::Sixteen, lba, count, group: 0 }
}

/// A transfer of blocks.
pub fn io(lba: u64, count: u32, fua: bool) -> Io {
    Io { blocks: blocks(lba, count), no_cache: false, force_unit_access: fua }
}

/// SYNCHRONIZE CACHE of the whole unit.
pub fn synchronize() -> Cdb {
    Cdb::SynchronizeCache(CacheRange { blocks: blocks(0, 0), immediate: false })
}

/// MODE SELECT that switches the write cache on or off, and its parameters.
pub fn write_cache(on: bool) -> (Cdb, Vec<u8>) {
    let mut list = Vec::new();
    Header::default().put(Width::Ten, &mut list);
    Caching { write_cache: on, ..Caching::default() }.put(&mut list);
    let list_length = list.len() as u16;
    let width = Width::Ten;
    (Cdb::ModeSelect(ModeSelect { width, page_format: true, save: false, list_length }), list)
}

/// PERSISTENT RESERVE OUT, and its parameters.
pub fn reserve(action: ReserveOut, kind: u8, key: u64, other: u64, aptpl: bool) -> (Cdb, Vec<u8>) {
    let more = More::Plain { all_ports: false, initiators: Vec::new() };
    let mut list = Vec::new();
    ReserveParameters { key, action_key: other, persist: aptpl, more }.put(&mut list);
    let list_length = list.len() as u32;
    (Cdb::PersistentReserveOut(PersistentReserveOut { action, scope: 0, kind, list_length }), list)
}

/// PERSISTENT RESERVE IN, with room for every answer.
pub fn reserved(action: ReserveIn) -> Cdb {
    Cdb::PersistentReserveIn { action, allocation: 1024 }
}
