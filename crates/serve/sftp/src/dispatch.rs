//! What a request is: which ones it waits for, which function does it, and what is measured of it.

use files::SpanFacts as _;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;

use base::clock::stamp;
use base::limits::{SFTP_GATHER_BYTES, SFTP_IO_MAX};
use probe::phases::{Phase, PhaseClock};
use wire::sftp::packet::Packet;
use wire::sftp::reply::Status;
use wire::sftp::request::{OfHandle, OfPath, SetByHandle, SetByPath, TwoPaths, Write};
use wire::sftp::{
    Attrs, Data, Extended, HandleBytes, Name, NamesEncoder, OpenFlags, PacketType, PathBytes,
    Reply, Request, StatusCode, Str,
};
use wire::xdr::{Reader, Writer};

use super::SymlinkOrder;
use super::attr::{self, Path};
use super::order::Footprint;
use super::state::{Open, OpenDir, OpenFile, Session};
use super::status::{Refusal, Result};
use super::{dir, extended, io, names, open};
use engine::exec::timed;
use engine::transport::buffers::ReplyBuf;
use files::{Links, Node, Span};

/// Numbers of operations in the statistics (`schema/sftp.toml`).
pub(crate) mod op {
    /// What is none.
    pub const UNKNOWN: u8 = 0;
    /// posix-rename; the other extensions follow as [`wire::sftp::Extended::KNOWN`] has them.
    pub const EXTENSIONS: u8 = 20;
    /// An extension that is not known.
    pub const EXTENDED: u8 = 31;
}

/// The answer to a request, or to several that were done in one.
pub(super) struct Answer {
    /// Whole packets.
    pub reply: ReplyBuf,
    /// What to write down when they have left.
    pub spans: Vec<(Span, u16)>,
    /// Bytes that are free then.
    pub held: usize,
}

/// A request that is being done.
pub(super) type Running = Pin<Box<dyn Future<Output = Answer>>>;

/// A request that is to be done.
pub(super) enum Job {
    /// Any but WRITE.
    Other(Running),
    /// One or more WRITEs, the next where the last ended.
    Write(Gathered),
}

/// WRITEs that are done in one.
pub(super) struct Gathered {
    file: Rc<OpenFile>,
    offset: u64,
    data: Vec<u8>,
    parts: Vec<(u32, Span)>,
}

/// What was made of a packet.
pub(super) enum RequestOutcome {
    /// It is to be done when its turn has come.
    Job(Footprint, Job),
    /// It is answered.
    Answer(Answer),
}

/// What a request brought, before it is a packet.
enum ReplyContent {
    Done,
    Handle(u32),
    Attrs(Attrs),
    Path(Vec<u8>),
    Extended(Vec<u8>),
    /// A packet, and the bytes of file data in it.
    Packet(ReplyBuf, usize),
}

/// The operation of a request in the statistics.
fn op_of(request: &Request<'_>) -> u8 {
    match request {
        Request::Extended(extended) => {
            let mut known = (op::EXTENSIONS..).zip(Extended::KNOWN);
            let known = known.find(|(_, (name, _))| name.as_bytes() == extended.name());
            known.map_or(op::EXTENDED, |(op, _)| op)
        }
        // "init" and "version" share a name, so all after them are one less.
        request => request.kind().0 - 1,
    }
}

impl Gathered {
    /// Whether a WRITE continues where this one ends, and fits.
    fn takes(&self, file: &Rc<OpenFile>, offset: u64, len: usize) -> bool {
        let end = self.offset.saturating_add(self.data.len() as u64);
        Rc::ptr_eq(&self.file, file)
            && (file.append || end == offset)
            && self.data.len() + len <= SFTP_GATHER_BYTES
    }

    async fn run(self, s: Rc<Session>) -> Answer {
        let Self { file, offset, data, parts } = self;
        let held = data.len();
        let mut clock = PhaseClock::default();
        let written = {
            let write = pin!(io::write(&s, &file, offset, data));
            timed::run(&mut clock, pin!(s.core.engine.attempt_async(write))).await
        };
        let outcome = written.unwrap_or_else(|status| Ok(file.changed::<u64>(Err(status))?));
        file.note_written(&outcome, held);
        let mut reply = s.core.buffers.take_reply();
        let mut spans = Vec::with_capacity(parts.len());
        let mut w = Writer::new(reply.vec());
        for (id, mut span) in parts {
            if outcome.is_err() {
                span.moved(0);
            }
            // All of them were queued until then.
            span.clock = clock;
            let code = put_status(&mut w, id, outcome.as_ref().map(|_| ()));
            spans.push((span, code));
        }
        Answer { reply, spans, held }
    }
}

impl Job {
    /// Begins to do it.
    pub fn start(self, s: &Rc<Session>) -> Running {
        match self {
            Self::Other(running) => running,
            Self::Write(gathered) => Box::pin(gathered.run(Rc::clone(s))),
        }
    }
}

fn put_status(w: &mut Writer<'_>, id: u32, outcome: std::result::Result<(), &Refusal>) -> u16 {
    let (code, message) = match outcome {
        Ok(()) => (StatusCode::OK, "Success"),
        Err(refusal) => (refusal.code, &*refusal.message),
    };
    let message = Str(message.as_bytes());
    Reply::Status(Status { code, message, language: Str(b"en") }).put(w, id);
    code.0 as u16
}

impl Session {
    /// The answer to a request.
    fn answer(
        &self,
        (id, mut span, held): (u32, Span, usize),
        outcome: Result<ReplyContent>,
    ) -> Answer {
        let mut code = StatusCode::OK.0 as u16;
        let mut reply = match outcome {
            Ok(ReplyContent::Packet(packet, moved)) => {
                span.moved(moved);
                return Answer { reply: packet, spans: vec![(span, code)], held };
            }
            _ => self.core.buffers.take_reply(),
        };
        let mut w = Writer::new(reply.vec());
        match outcome {
            Ok(ReplyContent::Done) => code = put_status(&mut w, id, Ok(())),
            Ok(ReplyContent::Handle(number)) => {
                Reply::Handle(HandleBytes(&number.to_be_bytes())).put(&mut w, id);
            }
            Ok(ReplyContent::Attrs(attrs)) => Reply::Attrs(attrs).put(&mut w, id),
            Ok(ReplyContent::Path(path)) => put_path(&mut w, id, &path),
            Ok(ReplyContent::Extended(bytes)) => Reply::Extended(&bytes).put(&mut w, id),
            Ok(ReplyContent::Packet(..)) => {}
            Err(refusal) => code = put_status(&mut w, id, Err(&refusal)),
        }
        Answer { reply, spans: vec![(span, code)], held }
    }

    /// Takes a packet that came at `arrived_ns`.
    pub(super) fn take(
        self: &Rc<Self>,
        packet: Packet<'_>,
        arrived_ns: u64,
    ) -> Option<RequestOutcome> {
        let mut r = Reader::new(packet.body);
        // Without an id nothing can be answered.
        let id = r.u32("id").ok()?;
        let decoded = Request::decode(packet.kind, &mut r);
        let op = decoded.as_ref().ok().and_then(|r| r.as_ref()).map_or(op::UNKNOWN, op_of);
        let mut span = self.core.begin_at(self.who.client, op, arrived_ns);
        span.by(&self.who);
        let taken = match decoded {
            Err(_) => Err(Refusal::bad("Malformed request")),
            Ok(None) => Err(Refusal {
                code: StatusCode::OP_UNSUPPORTED,
                message: format!("Unknown packet type {}", packet.kind.0).into(),
            }),
            Ok(Some(request)) => {
                let job = self.core.engine.attempt(|| self.job(id, span, request));
                job.unwrap_or_else(|status| Err(status.into()))
            }
        };
        Some(match taken {
            Ok((footprint, job)) => RequestOutcome::Job(footprint, job),
            Err(refusal) => {
                span.clock.spent(Phase::Inline, stamp());
                RequestOutcome::Answer(self.answer((id, span, 0), Err(refusal)))
            }
        })
    }

    /// Adds a packet to WRITEs that have not begun. False if it is not a WRITE that continues where
    /// they end.
    pub(super) fn gather(&self, last: &mut Job, packet: Packet<'_>, arrived_ns: u64) -> bool {
        let Job::Write(last) = last else { return false };
        let mut r = Reader::new(packet.body);
        let Ok(id) = r.u32("id") else { return false };
        let Ok(Some(Request::Write(args))) = Request::decode(packet.kind, &mut r) else {
            return false;
        };
        let Ok(file) = self.file(args.handle) else { return false };
        if !last.takes(&file, args.offset, args.data.0.len()) {
            return false;
        }
        let mut span = self.core.begin_at(self.who.client, PacketType::WRITE.0 - 1, arrived_ns);
        span.by(&self.who);
        self.note_write(&mut span, &file, &args);
        last.data.extend_from_slice(args.data.0);
        last.parts.push((id, span));
        true
    }

    fn note_write(&self, span: &mut Span, file: &OpenFile, args: &Write<'_>) {
        let len = args.data.0.len();
        span.of(&file.node);
        span.range(args.offset, len as u64, true);
        span.moved(len);
        self.hold(len);
    }

    /// The job of a request. Handles are looked up now: a CLOSE that came before holds.
    fn job(
        self: &Rc<Self>,
        id: u32,
        mut span: Span,
        request: Request<'_>,
    ) -> Result<(Footprint, Job)> {
        match request {
            Request::Read(args) => {
                let file = self.file(args.handle)?;
                let held = (args.len as usize).min(SFTP_IO_MAX);
                span.of(&file.node);
                span.range(args.offset, u64::from(args.len), false);
                self.hold(held);
                let footprint = Footprint::file(file.part(args.offset, held as u64, false));
                let s = Rc::clone(self);
                let running = async move {
                    let read = pin!(io::read(&s, &file, (id, args.offset, args.len)));
                    let read = pin!(s.core.engine.attempt_async(read));
                    let read = timed::run(&mut span.clock, read).await;
                    let read = read.unwrap_or_else(|status| Err(status.into()));
                    file.note_read(args.offset, &read);
                    let said = read.map(|(packet, moved)| ReplyContent::Packet(packet, moved));
                    s.answer((id, span, held), said)
                };
                Ok((footprint, Job::Other(Box::pin(running))))
            }
            Request::Write(args) => {
                let (file, Data(bytes)) = (self.file(args.handle)?, args.data);
                self.note_write(&mut span, &file, &args);
                let mut data = self.core.engine.large.take(SFTP_GATHER_BYTES);
                data.extend_from_slice(bytes);
                // Writes to a file are done one after the other, whatever the bytes: the file
                // system does the same, and those that wait are gathered.
                let footprint = Footprint::file(file.whole_file(true));
                let parts = vec![(id, span)];
                Ok((footprint, Job::Write(Gathered { file, offset: args.offset, data, parts })))
            }
            request => {
                let (footprint, asked) = self.asked(&request)?;
                let s = Rc::clone(self);
                let running = async move {
                    let mut seen = None;
                    let changes = asked.changes();
                    let said = {
                        let said = pin!(run(&s, id, asked, &mut seen));
                        let said = pin!(s.core.engine.attempt_async(said));
                        timed::run(&mut span.clock, said).await
                    };
                    let said = said.unwrap_or_else(|status| match changes {
                        Some(file) => Ok(file.changed(Err(status))?),
                        None => Err(status.into()),
                    });
                    if let Some(node) = &seen {
                        span.of(node);
                    }
                    s.answer((id, span, 0), said)
                };
                Ok((footprint, Job::Other(Box::pin(running))))
            }
        }
    }

    /// A request, made independent of the packet.
    fn asked(&self, request: &Request<'_>) -> Result<(Footprint, PendingRequest)> {
        match request {
            Request::Open(args) => {
                let path = self.path(args.filename)?;
                // OPEN may give an upload in progress its final name.
                let footprint = Footprint::path(&path, true);
                Ok((footprint, PendingRequest::Open(path, args.pflags, args.attrs)))
            }
            Request::Symlink(args) => {
                let (target, link) = match self.settings.symlink {
                    SymlinkOrder::OpenSsh => (args.targetpath, args.linkpath),
                    SymlinkOrder::Draft => (args.linkpath, args.targetpath),
                };
                let (path, target) = (self.path(link)?, target.0.to_vec());
                Ok((Footprint::path(&path, true), PendingRequest::Symlink(path, target)))
            }
            Request::Rename(args) => {
                self.two(args, |from, to| PendingRequest::Rename(from, to, false))
            }
            Request::Lstat(args) => self.look(args, |path| PendingRequest::Stat(path, Links::Keep)),
            Request::Stat(args) => {
                self.look(args, |path| PendingRequest::Stat(path, Links::Follow))
            }
            Request::Opendir(args) => self.look(args, PendingRequest::Opendir),
            Request::Readlink(args) => self.look(args, PendingRequest::Readlink),
            Request::Remove(args) => self.change(args, PendingRequest::Remove),
            Request::Rmdir(args) => self.change(args, PendingRequest::Rmdir),
            Request::Setstat(args) => self.set(args, Links::Follow),
            Request::Mkdir(SetByPath { path, attrs }) => {
                let path = self.path(*path)?;
                Ok((Footprint::path(&path, true), PendingRequest::Mkdir(path, *attrs)))
            }
            Request::Realpath(OfPath { path }) => Ok((
                Footprint::default(),
                PendingRequest::Ready(ReplyContent::Path(names::realpath(self, path.0)?)),
            )),
            Request::Extended(extended) => self.asked_extended(extended),
            Request::Close(_) | Request::Fstat(_) | Request::Fsetstat(_) | Request::Readdir(_) => {
                self.asked_of_handle(request)
            }
            Request::Read(_) | Request::Write(_) => Err(Refusal::failure("Asked elsewhere")),
        }
    }

    fn asked_of_handle(&self, request: &Request<'_>) -> Result<(Footprint, PendingRequest)> {
        match request {
            Request::Close(OfHandle { handle }) => {
                let (number, open) = self.closing(*handle)?;
                let mut footprint = of_open(&open, true);
                if let Open::File(file) = &open
                    && file.writes
                {
                    footprint.paths = Footprint::path(&file.path.borrow(), true).paths;
                }
                Ok((footprint, PendingRequest::Close(number, open)))
            }
            Request::Fstat(OfHandle { handle }) => {
                let open = self.open(*handle)?;
                Ok((of_open(&open, false), PendingRequest::Fstat(open)))
            }
            Request::Fsetstat(SetByHandle { handle, attrs }) => {
                let open = self.open(*handle)?;
                Ok((of_open(&open, true), PendingRequest::Fsetstat(open, *attrs)))
            }
            Request::Readdir(OfHandle { handle }) => {
                let dir = self.dir(*handle)?;
                Ok((Footprint::file(dir.part()), PendingRequest::Readdir(dir)))
            }
            _ => Err(Refusal::failure("Asked elsewhere")),
        }
    }

    fn asked_extended(&self, extended: &Extended<'_>) -> Result<(Footprint, PendingRequest)> {
        let at_once = |bytes| {
            Ok((Footprint::default(), PendingRequest::Ready(ReplyContent::Extended(bytes))))
        };
        let path =
            |path| Ok((Footprint::default(), PendingRequest::Ready(ReplyContent::Path(path))));
        match extended {
            Extended::PosixRename(args) => {
                self.two(args, |from, to| PendingRequest::Rename(from, to, true))
            }
            Extended::Hardlink(args) => self.two(args, PendingRequest::Link),
            Extended::Statvfs(args) => self.look(args, PendingRequest::Statvfs),
            Extended::Lsetstat(args) => self.set(args, Links::Keep),
            Extended::Limits(()) => at_once(extended::limits()),
            Extended::UsersGroupsById(asked) => at_once(extended::names(self, asked)),
            Extended::ExpandPath(args) => path(names::expand(self, args.path.0)?),
            Extended::HomeDirectory(args) => path(names::home(self, args.username.0)?.to_bytes()),
            Extended::Fstatvfs(args) => {
                let open = self.open(args.handle)?;
                Ok((of_open(&open, false), PendingRequest::Fstatvfs(open)))
            }
            Extended::Fsync(args) => {
                let file = self.file(args.handle)?;
                Ok((Footprint::file(file.whole_file(true)), PendingRequest::Fsync(file)))
            }
            Extended::CopyData(args) => {
                let (from, to) = (self.file(args.read_handle)?, self.file(args.write_handle)?);
                let mut footprint = Footprint::file(from.whole_file(false));
                footprint.files[1] = Some(to.whole_file(true));
                let (from, to) = ((from, args.read_offset), (to, args.write_offset));
                Ok((footprint, PendingRequest::Copy(from, to, args.read_len)))
            }
            Extended::Unknown(..) => Err(Refusal {
                code: StatusCode::OP_UNSUPPORTED,
                message: "Unknown extension".into(),
            }),
        }
    }

    fn look(
        &self,
        args: &OfPath<'_>,
        ask: impl Fn(Path) -> PendingRequest,
    ) -> Result<(Footprint, PendingRequest)> {
        let path = self.path(args.path)?;
        Ok((Footprint::path(&path, false), ask(path)))
    }

    fn change(
        &self,
        args: &OfPath<'_>,
        ask: impl Fn(Path) -> PendingRequest,
    ) -> Result<(Footprint, PendingRequest)> {
        let path = self.path(args.path)?;
        Ok((Footprint::path(&path, true), ask(path)))
    }

    fn set(&self, args: &SetByPath<'_>, links: Links) -> Result<(Footprint, PendingRequest)> {
        let path = self.path(args.path)?;
        Ok((Footprint::path(&path, true), PendingRequest::Setstat(path, links, args.attrs)))
    }

    fn two(
        &self,
        args: &TwoPaths<'_>,
        ask: impl Fn(Path, Path) -> PendingRequest,
    ) -> Result<(Footprint, PendingRequest)> {
        let (from, to) = (self.path(args.oldpath)?, self.path(args.newpath)?);
        Ok((Footprint::two_paths(&from, &to), ask(from, to)))
    }
}

fn of_open(open: &Open, write: bool) -> Footprint {
    Footprint::file(match open {
        Open::File(file) => file.whole_file(write),
        Open::Dir(dir) => dir.part(),
    })
}

fn put_path(w: &mut Writer<'_>, id: u32, path: &[u8]) {
    let mut names = NamesEncoder::begin(w, id, usize::MAX);
    let (filename, longname) = (PathBytes(path), Str(path));
    names.add(&Name { filename, longname, attrs: Attrs::default() });
    names.finish();
}

/// A request as it waits for its turn.
enum PendingRequest {
    Ready(ReplyContent),
    Open(Path, OpenFlags, Attrs),
    Close(u32, Open),
    Stat(Path, Links),
    Fstat(Open),
    Setstat(Path, Links, Attrs),
    Fsetstat(Open, Attrs),
    Opendir(Path),
    Readdir(Rc<OpenDir>),
    Remove(Path),
    Mkdir(Path, Attrs),
    Rmdir(Path),
    Rename(Path, Path, bool),
    Link(Path, Path),
    Readlink(Path),
    Symlink(Path, Vec<u8>),
    Statvfs(Path),
    Fstatvfs(Open),
    Fsync(Rc<OpenFile>),
    Copy((Rc<OpenFile>, u64), (Rc<OpenFile>, u64), u64),
}

impl PendingRequest {
    /// The open file with data that it changes: its content is unknown after a panic.
    fn changes(&self) -> Option<Rc<OpenFile>> {
        match self {
            Self::Copy(_, (file, _), _) | Self::Fsync(file) => Some(Rc::clone(file)),
            _ => None,
        }
    }
}

/// Does a request; `seen` is the file that it was about.
async fn run(
    s: &Session,
    id: u32,
    asked: PendingRequest,
    seen: &mut Option<Node>,
) -> Result<ReplyContent> {
    let done = |()| ReplyContent::Done;
    match asked {
        PendingRequest::Ready(said) => Ok(said),
        PendingRequest::Open(path, flags, attrs) => {
            open::open(s, path, (flags, attrs), seen).await.map(ReplyContent::Handle)
        }
        PendingRequest::Close(handle, open) => {
            note(&open, seen);
            open::close(s, (handle, open)).await.map(done)
        }
        PendingRequest::Stat(path, links) => {
            attr::stat(s, &path, links, seen).await.map(ReplyContent::Attrs)
        }
        PendingRequest::Fstat(open) => {
            note(&open, seen);
            attr::of_handle(s, &open).await.map(ReplyContent::Attrs)
        }
        PendingRequest::Setstat(path, links, attrs) => {
            attr::set(s, &path, (links, &attrs), seen).await.map(done)
        }
        PendingRequest::Fsetstat(open, attrs) => {
            note(&open, seen);
            attr::set_handle(s, &open, &attrs).await.map(done)
        }
        PendingRequest::Opendir(path) => dir::open(s, path, seen).await.map(ReplyContent::Handle),
        PendingRequest::Readdir(dir) => {
            dir::read(s, &dir, id).await.map(|packet| ReplyContent::Packet(packet, 0))
        }
        PendingRequest::Fstatvfs(open) => {
            extended::by_handle(s, &open).await.map(ReplyContent::Extended)
        }
        PendingRequest::Statvfs(path) => {
            extended::by_path(s, path, seen).await.map(ReplyContent::Extended)
        }
        PendingRequest::Fsync(file) => {
            *seen = Some(file.node.clone());
            io::fsync(s, &file).await.map(done)
        }
        PendingRequest::Copy((from, from_at), (to, to_at), len) => {
            *seen = Some(to.node.clone());
            io::copy(s, (&from, from_at), (&to, to_at), len).await.map(done)
        }
        asked => change_names(s, asked, seen).await,
    }
}

async fn change_names(
    s: &Session,
    asked: PendingRequest,
    seen: &mut Option<Node>,
) -> Result<ReplyContent> {
    let done = |()| ReplyContent::Done;
    match asked {
        PendingRequest::Remove(path) => names::remove(s, path, seen).await.map(done),
        PendingRequest::Mkdir(path, attrs) => names::mkdir(s, (path, attrs), seen).await.map(done),
        PendingRequest::Rmdir(path) => names::rmdir(s, path, seen).await.map(done),
        PendingRequest::Rename(from, to, replace) => {
            names::rename(s, (from, to), replace, seen).await.map(done)
        }
        PendingRequest::Link(from, to) => names::link(s, (from, to), seen).await.map(done),
        PendingRequest::Readlink(path) => {
            names::readlink(s, path, seen).await.map(ReplyContent::Path)
        }
        PendingRequest::Symlink(path, target) => names::symlink(s, path, &target).await.map(done),
        _ => Err(Refusal::failure("Asked elsewhere")),
    }
}

/// The file of a handle is what a request was about.
fn note(open: &Open, seen: &mut Option<Node>) {
    if let Open::File(file) = open {
        *seen = Some(file.node.clone());
    }
}

/// The answer to INIT: the version, and what else there is.
pub(super) fn version() -> Vec<u8> {
    use wire::sftp::packet::{Hello, begin_packet, end_packet};
    use wire::xdr::Encode;
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes);
    let begun = begin_packet(&mut w, PacketType::VERSION);
    let known = Extended::KNOWN.iter();
    let extensions = known.map(|(name, v)| (Str(name.as_bytes()), Str(v.as_bytes()))).collect();
    Hello { version: wire::sftp::SFTP_VERSION, extensions }.encode(&mut w);
    end_packet(&mut w, begun, 0);
    bytes
}
