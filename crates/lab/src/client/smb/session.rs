//! Requests of one session, many at once: operations become frames, responses completions.

use super::outstanding::{Outstanding, Owner, Reply};
use super::protection::Protection;
use super::stream::Stream;
use crate::client::{ClientError, Completion, FileSet, Op, Transport, content_key};
use base::limits::LAB_SILENCE_MAX;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::RawFd;
use std::time::Duration;
use wire::smb::class::file_class;
use wire::smb::codec::{Field, pad, patch};
use wire::smb::create::{
    CloseRequest, Disposition, FileId, Request as Create, access, options, share_access,
};
use wire::smb::header::{Command, HEADER, Header, flags};
use wire::smb::info::{QueryRequest, info_type};
use wire::smb::io::{FlushRequest, ReadRequest, WRITE_THROUGH, WriteRequest};
use wire::smb::session::Empty;
use wire::smb::utf16;

/// Bytes gathered for one send: large enough to share its cost among many requests.
const GATHERED: usize = 256 << 10;
/// Receives that one wait may take before the driver looks at its clock again.
const RECEIVES_PER_WAIT: u32 = 16;
/// CreditRequest of each request: as many credits as servers grant.
const CREDITS: u16 = 512;
/// Bytes that one credit pays for (MS-SMB2 §3.1.5.2).
const CREDIT_BYTES: u32 = 64 << 10;
/// Other clients may do everything with a file meanwhile.
pub const SHARED: u32 = share_access::READ | share_access::WRITE | share_access::DELETE;
/// ImpersonationLevel: the server acts as the user.
const IMPERSONATION: u32 = 2;

/// Credits that a READ or WRITE of `bytes` bytes takes.
#[inline]
pub const fn charge(bytes: u32) -> u16 {
    match bytes {
        0 => 1,
        bytes => ((bytes - 1) / CREDIT_BYTES + 1) as u16,
    }
}

/// Requests of an operation, and credits of all of them.
#[inline]
const fn requests(op: Op) -> (u8, u16) {
    match op {
        Op::Read { len, .. } | Op::Write { len, .. } => (1, charge(len)),
        Op::Null | Op::Getattr { .. } | Op::Commit { .. } => (1, 1),
        Op::Lookup { .. } | Op::Create { .. } | Op::Remove { .. } => (2, 2),
    }
}

/// The parameters of a CREATE request.
#[derive(Debug, Clone, Copy)]
pub struct OpenRequest {
    /// Rights.
    pub access: u32,
    /// What to do with what is there.
    pub disposition: Disposition,
    /// CreateOptions.
    pub options: u32,
}

impl OpenRequest {
    /// A new file, as the workload makes it.
    const NEW: Self = Self {
        access: access::GENERIC_READ | access::GENERIC_WRITE,
        disposition: Disposition::Create,
        options: options::NON_DIRECTORY,
    };
    /// What is there, to look at.
    pub const LOOK: Self =
        Self { access: access::READ_ATTRIBUTES, disposition: Disposition::Open, options: 0 };
    /// What is there, to be removed when it is closed.
    pub const GONE: Self = Self {
        access: access::DELETE,
        disposition: Disposition::Open,
        options: options::DELETE_ON_CLOSE,
    };

    /// Appends the body of a CREATE of `path`, to a message that begins at `start`.
    pub fn put(&self, path: &str, out: &mut Vec<u8>, start: usize) {
        let name = utf16::encode(path);
        let create = Create {
            oplock: 0,
            impersonation: IMPERSONATION,
            access: self.access,
            attributes: 0,
            share: SHARED,
            disposition: self.disposition as u32,
            options: self.options,
            name: &name,
            contexts: &[],
        };
        create.put(out, start);
    }
}

/// A request within its frame.
#[derive(Clone, Copy)]
struct Part {
    command: Command,
    charge: u16,
    /// It is about the file of the request before.
    related: bool,
    /// Nothing follows it in its frame.
    last: bool,
}

/// The session.
pub struct Session {
    stream: Stream,
    /// What protects its messages.
    pub protection: Protection,
    /// What was sent and not answered yet.
    pub outstanding: Outstanding,
    /// The tree.
    pub tree: u32,
    /// Open files, by number.
    pub files: Vec<FileId>,
    /// The directory of the files, with `\` at its end.
    pub dir: String,
    /// Requests of [`Session::exchange`] that were answered, by command.
    pub by_name: BTreeMap<&'static str, u64>,
    next_id: u64,
    pending: VecDeque<(u32, Op)>,
}

impl Session {
    /// A session that is not set up yet.
    pub fn new(stream: Stream, outstanding: Outstanding) -> Self {
        Self {
            stream,
            protection: Protection::default(),
            outstanding,
            tree: 0,
            files: Vec::new(),
            dir: String::new(),
            by_name: BTreeMap::new(),
            next_id: 0,
            pending: VecDeque::new(),
        }
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

    /// Sends all that may be sent; takes in responses whenever the socket is full.
    ///
    /// # Errors
    /// The connection is gone, or the server breaks the protocol.
    pub fn push(&mut self) -> Result<(), ClientError> {
        loop {
            while self.stream.waiting() < GATHERED && self.put_next()? {}
            if self.stream.waiting() == 0 {
                return Ok(());
            }
            if !self.stream.send_some()? && self.stream.link.wait_both()? {
                self.pull()?;
            }
        }
    }

    /// Appends the next operation; false if there is none, or credits are missing.
    fn put_next(&mut self) -> Result<bool, ClientError> {
        let Some(&(slot, op)) = self.pending.front() else { return Ok(false) };
        let (count, charge) = requests(op);
        if !self.outstanding.has_room(self.next_id, charge) {
            return Ok(false);
        }
        self.pending.pop_front();
        self.outstanding.begin(slot, op, count);
        let frame = self.begin();
        self.put(Owner::Slot(slot), op)?;
        self.end(frame)?;
        Ok(true)
    }

    /// Appends the requests of an operation.
    fn put(&mut self, owner: Owner, op: Op) -> Result<(), ClientError> {
        let one = |command| Part { command, charge: 1, related: false, last: true };
        match op {
            Op::Null => self.message(owner, one(Command::ECHO), |_, out, _| {
                Empty { reserved: 0 }.put_body(out);
            }),
            Op::Getattr { file } => self.message(owner, one(Command::QUERY_INFO), |it, out, _| {
                let (class, info_type) = (file_class::NETWORK_OPEN, info_type::FILE);
                let (file, output_max) = (it.file(file), NETWORK_OPEN_BYTES);
                let (additional, flags, input) = (0, 0, &[][..]);
                QueryRequest { info_type, class, output_max, additional, flags, file, input }
                    .put(out);
            }),
            Op::Read { file, offset, len } => {
                let part = Part { charge: charge(len), ..one(Command::READ) };
                self.message(owner, part, |it, out, _| {
                    let file = it.file(file);
                    ReadRequest { length: len, offset, file, minimum: 0 }.put(out);
                })
            }
            Op::Write { file, offset, len, stable } => {
                let part = Part { charge: charge(len), ..one(Command::WRITE) };
                self.message(owner, part, |it, out, start| {
                    let flags = if stable { WRITE_THROUGH } else { 0 };
                    let number = it.file(file);
                    WriteRequest { offset, file: number, flags, data: &[] }.put(out);
                    patch(out, start + HEADER + 4, &len.to_le_bytes());
                    let data = out.len();
                    out.resize(data + len as usize, 0);
                    let key = content_key(it.outstanding.client, file);
                    let room = out.get_mut(data..).unwrap_or_default();
                    it.outstanding.checker.content.fill(key, offset, room);
                })
            }
            Op::Commit { file } => self.message(owner, one(Command::FLUSH), |it, out, _| {
                FlushRequest { reserved: [0; 6], file: it.file(file) }.put_body(out);
            }),
            Op::Lookup { file } => {
                let name = self.outstanding.set.file_name(file);
                self.open_and_close(owner, &name, OpenRequest::LOOK)
            }
            Op::Create { name } => {
                self.open_and_close(owner, &FileSet::made_name(name), OpenRequest::NEW)
            }
            Op::Remove { name } => {
                self.open_and_close(owner, &FileSet::made_name(name), OpenRequest::GONE)
            }
        }
    }

    /// CREATE and CLOSE of a file in the client's directory, in one frame.
    fn open_and_close(
        &mut self,
        owner: Owner,
        name: &str,
        open: OpenRequest,
    ) -> Result<(), ClientError> {
        let create = Part { command: Command::CREATE, charge: 1, related: false, last: false };
        self.message(owner, create, |it, out, start| {
            open.put(&format!("{}{name}", it.dir), out, start);
        })?;
        let close = Part { command: Command::CLOSE, related: true, last: true, ..create };
        self.message(owner, close, |_, out, _| {
            CloseRequest { flags: 0, reserved: 0, file: FileId::RELATED }.put_body(out);
        })
    }

    #[inline]
    fn file(&self, number: u32) -> FileId {
        self.files.get(number as usize).copied().unwrap_or(FileId::RELATED)
    }

    /// Begins a frame; where it begins.
    fn begin(&mut self) -> usize {
        let out = self.stream.out();
        let at = out.len();
        self.protection.begin(out);
        at
    }

    fn end(&mut self, frame: usize) -> Result<(), ClientError> {
        self.protection.end(self.stream.out(), frame)
    }

    /// Appends a request to the frame; `body` gets the offset at which the message begins.
    fn message(
        &mut self,
        owner: Owner,
        part: Part,
        body: impl FnOnce(&Self, &mut Vec<u8>, usize),
    ) -> Result<(), ClientError> {
        let related = if part.related { flags::RELATED } else { 0 };
        let header = Header {
            credit_charge: part.charge,
            status: 0,
            command: part.command,
            credits: CREDITS,
            flags: related | self.protection.flags(),
            next: 0,
            message_id: self.next_id,
            id: u64::from(self.tree) << 32,
            session_id: self.protection.session_id,
            signature: [0; 16],
        };
        self.outstanding.sent(self.next_id, part.charge, owner);
        self.next_id += u64::from(part.charge);
        let mut out = std::mem::take(self.stream.out());
        let start = out.len();
        header.put(&mut out);
        body(self, &mut out, start);
        if !part.last {
            pad(&mut out, start, 8);
            let next = (out.len() - start) as u32;
            patch(&mut out, start + NEXT_AT, &next.to_le_bytes());
        }
        let signed = self.protection.sign(out.get_mut(start..).unwrap_or_default());
        *self.stream.out() = out;
        signed
    }

    /// One receive and everything in it. False when nothing came within the link's timeout.
    fn pull(&mut self) -> Result<bool, ClientError> {
        if !self.stream.receive()? {
            return Ok(false);
        }
        while let Some(frame) = self.stream.frame()? {
            self.outstanding.take(frame, &self.protection)?;
        }
        Ok(true)
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
            // Those for which there are credits now.
            self.push()?;
            self.stream.link.set_timeout(timeout)?;
            if !self.outstanding.ready.is_empty() || !self.pull()? {
                break;
            }
        }
        done.append(&mut self.outstanding.ready);
        Ok(())
    }

    /// One request when nothing else is in flight; its response.
    ///
    /// # Errors
    /// As [`Session::push`], and when no response comes.
    pub fn exchange(
        &mut self,
        command: Command,
        body: impl FnOnce(&mut Vec<u8>, usize),
    ) -> Result<Reply, ClientError> {
        self.exchange_charged((command, 1), body)
    }

    /// The same for a request that takes several credits.
    ///
    /// # Errors
    /// As [`Session::exchange`].
    pub fn exchange_charged(
        &mut self,
        (command, charge): (Command, u16),
        body: impl FnOnce(&mut Vec<u8>, usize),
    ) -> Result<Reply, ClientError> {
        let part = Part { command, charge, related: false, last: true };
        let frame = self.begin();
        let mut sent = Vec::new();
        self.message(Owner::Single, part, |_, out, start| {
            body(out, start);
            sent = out.get(start..).unwrap_or_default().to_vec();
        })?;
        self.end(frame)?;
        let what = Command::NAMES.get(usize::from(command.0)).copied().unwrap_or("a request");
        self.stream.link.set_timeout(LAB_SILENCE_MAX)?;
        loop {
            self.push()?;
            if let Some(reply) = self.outstanding.alone.take() {
                *self.by_name.entry(what).or_default() += 1;
                return Ok(Reply { sent, ..reply });
            }
            if !self.pull()? {
                return Err(ClientError::Silent(what, LAB_SILENCE_MAX));
            }
        }
    }

    /// CREATE of a path in the share.
    ///
    /// # Errors
    /// As [`Session::exchange`].
    pub fn create(&mut self, path: &str, open: OpenRequest) -> Result<Reply, ClientError> {
        self.exchange(Command::CREATE, |out, start| open.put(path, out, start))
    }

    /// CLOSE of an open.
    ///
    /// # Errors
    /// As [`Session::exchange`].
    pub fn close(&mut self, file: FileId) -> Result<Reply, ClientError> {
        self.exchange(Command::CLOSE, |out, _| {
            CloseRequest { flags: 0, reserved: 0, file }.put_body(out);
        })
    }
}

/// Where NextCommand stands in a header.
const NEXT_AT: usize = 20;
/// Bytes of FileNetworkOpenInformation.
const NETWORK_OPEN_BYTES: u32 = 56;
