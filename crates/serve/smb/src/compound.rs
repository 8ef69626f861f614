//! From requests to a frame: those of a compound are carried out one after the other, and answered
//! together (MS-SMB2 §3.3.5.2.7).

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use base::clock::stamp;
use base::limits::{SMB_COMPOUND_REPLY_MAX, SMB_PENDING_AFTER, SMB_WORK_MAX};
use probe::phases::Phase;
use tokio::sync::Notify;
use vfs::fs::Extent;
use vfs::locks::Owner;
use vfs::status::Status;
use vfs::work::Work;
use wire::smb::charge::Payload;
use wire::smb::create::FileId;
use wire::smb::header::{Command, Header, flags, put_error};
use wire::smb::status::NtStatus;

use super::answers::One;
use super::connection::Connection;
use super::dispatch::{self, Outcome, Request};
use super::frame::Frame;
use super::state::session::Session;
use super::{io, reply, status};
use engine::exec::{Span, timed};
use engine::transport::buffers::ReplyBuf;
use files::SpanFacts as _;

/// What a request has left for those that are related to it (MS-SMB2 §3.3.5.2.7.2).
struct Before {
    session: u64,
    tree: u32,
    file: Option<FileId>,
    /// How requests fail that are related to one that has made no open, or had no session.
    failed: Option<NtStatus>,
    /// Nothing came before it.
    is_first: bool,
    /// The request at hand is the only one of its frame.
    is_single: bool,
    /// It is signed as it says.
    is_signed: bool,
    /// Bytes that all so far, related or not, want to be answered with.
    wanted: u64,
    /// Leases that were granted.
    granted: Vec<Owner>,
}

impl Before {
    /// That a request has paid for its bytes (MS-SMB2 §3.3.5.2.5), and that the answer to the
    /// compound is no larger than it may be.
    fn takes(&mut self, header: &Header, message: &[u8]) -> Result<(), NtStatus> {
        let payload = Payload::of(header.command, message);
        if u64::from(header.credit_charge.max(1)) < payload.charge() {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        self.wanted = self.wanted.saturating_add(payload.wanted);
        match self.wanted > SMB_COMPOUND_REPLY_MAX {
            true => Err(NtStatus::INSUFFICIENT_RESOURCES),
            false => Ok(()),
        }
    }
}

impl Before {
    /// Before the first request.
    const fn nothing(is_single: bool) -> Self {
        Self {
            session: 0,
            tree: 0,
            file: None,
            failed: None,
            is_first: true,
            is_single,
            is_signed: false,
            wanted: 0,
            granted: Vec::new(),
        }
    }

    /// A related request takes session and tree of the one before; another has its own.
    fn relate(&mut self, header: &mut Header) -> bool {
        let related = header.has(flags::RELATED);
        if related {
            header.session_id = self.session;
            header.id = u64::from(self.tree) << 32 | header.id & 0xffff_ffff;
            if self.is_first {
                self.failed = Some(NtStatus::INVALID_PARAMETER);
            }
        } else {
            (self.failed, self.file) = (None, None);
        }
        (self.session, self.tree, self.is_first) = (header.session_id, header.tree_id(), false);
        related
    }
}

/// Carries out the only request of a frame on the spot, if it is one that need not wait; false if
/// nothing was done.
pub(super) fn at_once(conn: &Connection, frame: &Frame, held: usize) -> bool {
    let Some(one) = frame.requests.iter().next() else { return false };
    let (header, message) = (one.header, frame.message(one));
    let is_known = matches!(header.command, Command::READ | Command::WRITE);
    if !is_known || header.next != 0 || header.has(flags::RELATED) {
        return false;
    }
    let (by, is_signed) = (frame.encrypted.as_ref(), one.is_signed);
    let Ok(session) = conn.session(header.session_id) else { return false };
    if conn.is_genuine(&session, &header, is_signed, by).is_err() {
        return false;
    }
    // What is refused is so the ordinary way.
    let Ok(tree) = session.tree(header.tree_id()) else { return false };
    let is_plain = by.is_none() && tree.encrypts();
    if is_plain || Before::nothing(true).takes(&header, message).is_err() {
        return false;
    }
    let is_bare = by.is_none() && !signs(&session, &header);
    let done = io::at_once(conn, &session, (&header, message), is_bare);
    let Some(done) = done else { return false };
    let mut span = conn.core.begin_at(conn.peer.1, header.command.0 as u8, frame.arrived_ns);
    span.clock.resume(conn.now_ns.get());
    // The one behind it begins then.
    conn.now_ns.set(stamp());
    span.clock.spent(Phase::Inline, conn.now_ns.get());
    span.by(&session.who);
    done.about.record(&mut span);
    let mut one = One::new(conn, &header, done.status, done.out);
    one.extent = done.extent;
    one.signer = Some(session).filter(|session| signs(session, &header));
    conn.send(vec![one], by, vec![(span, status::recorded(done.status))], held);
    true
}

/// What the requests of a frame may look at together. Dropped with the frame, or with the
/// connection: what still runs for it on the pool ends.
struct FrameWork(Arc<Work>);

impl Drop for FrameWork {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Requests in progress.
pub(super) type Running = Pin<Box<dyn Future<Output = ()>>>;

/// Begins to carry out the requests of a frame; what is left of it if they have to wait.
///
/// # Errors
/// [`Status::Fault`] if that panics outside of a command: the connection has to end.
pub(super) fn begin(
    conn: &Rc<Connection>,
    frame: Frame,
    held: usize,
) -> Result<Option<Running>, Status> {
    let mut running: Running = Box::pin(run(Rc::clone(conn), frame, held));
    // What it waits for wakes the task that it becomes then.
    let mut context = Context::from_waker(Waker::noop());
    let polled = conn.core.engine.attempt(|| running.as_mut().poll(&mut context))?;
    Ok(polled.is_pending().then_some(running))
}

/// Carries out the requests of a frame, and posts the answers.
async fn run(conn: Rc<Connection>, frame: Frame, held: usize) {
    let work = FrameWork(Arc::new(Work::new(SMB_WORK_MAX)));
    let count = frame.requests.iter().count();
    let (mut ones, mut spans) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut before = Before::nothing(frame.requests.is_single());
    for request in frame.requests.iter() {
        before.is_signed = request.is_signed;
        let request = (request.header, frame.message(request));
        let one = carry_out(&conn, (&frame, &work.0, held), request, &mut before).await;
        ones.push(one.0);
        spans.push(one.1);
    }
    let by = frame.encrypted.clone();
    frame.put_back(&conn.core);
    conn.send(ones, by.as_ref(), spans, held);
    conn.granted(&before.granted);
}

/// The span of a request, and when it begins: the first of a frame behind what was done before it.
fn begin_span(
    conn: &Connection,
    arrived_ns: u64,
    (header, is_first): (&Header, bool),
) -> (Span, u64) {
    // The one behind the last is what is none.
    let op = header.command.0.min(Command::OPLOCK_BREAK.0 + 1) as u8;
    let mut span = conn.core.begin_at(conn.peer.1, op, arrived_ns);
    let begun_ns = if is_first { conn.now_ns.get() } else { stamp() };
    span.clock.resume(begun_ns);
    (span, begun_ns)
}

async fn carry_out(
    conn: &Rc<Connection>,
    (frame, work, held): (&Frame, &Arc<Work>, usize),
    (mut header, message): (Header, &[u8]),
    before: &mut Before,
) -> (One, (Span, u16)) {
    let (mut span, begun_ns) = begin_span(conn, frame.arrived_ns, (&header, before.is_first));
    let related = before.relate(&mut header);
    let (mut is_pending, known) = (false, conn.session(header.session_id).ok());
    let _running = known.as_ref().map(Session::run);
    let done = match (before.failed.filter(|_| related), &known) {
        (Some(failed), _) => Err(failed),
        (None, None) if header.command == Command::ECHO && header.session_id == 0 => {
            Ok(reply::echo(&conn.core))
        }
        (None, None) => {
            before.failed = Some(NtStatus::INVALID_PARAMETER);
            Err(NtStatus::USER_SESSION_DELETED)
        }
        (None, Some(session)) => {
            span.by(&session.who);
            let by = frame.encrypted.as_ref();
            let genuine = conn.is_genuine(session, &header, before.is_signed, by);
            match genuine.and_then(|()| before.takes(&header, message)) {
                Err(refused) => Err(refused),
                Ok(()) => {
                    let request = Request {
                        conn,
                        session,
                        message,
                        bytes: &frame.bytes,
                        work,
                        held,
                        header,
                        before: before.file.filter(|_| related),
                        is_single: before.is_single,
                        is_bare: before.is_single && by.is_none() && !signs(session, &header),
                        encrypted: by.is_some(),
                        cancel: Rc::default(),
                        pends: Notify::new(),
                        opened: RefCell::default(),
                        in_progress: RefCell::default(),
                    };
                    let done = pin!(execute(&request, (by, before.is_single), &mut is_pending));
                    let done = timed::run(&mut span.clock, begun_ns, done).await;
                    request.record(&mut span);
                    done
                }
            }
        }
    };
    let (status, out, extent, tree) = outcome(conn, done, &mut span, before);
    // What is related to a file that was not opened fails as that did; a CLOSE after something else
    // that has failed is done.
    if header.command == Command::CREATE && known.is_some() {
        before.failed = status.is_error().then_some(status);
    }
    if let Some(tree) = tree {
        before.tree = tree;
        header.id = u64::from(tree) << 32 | header.id & 0xffff_ffff;
    }
    let mut one = One::last(conn, &header, (status, out), is_pending);
    one.extent = extent;
    one.key = conn.other_signer(header.session_id, known.is_none() && before.is_signed);
    one.echo = (status == NtStatus::USER_SESSION_DELETED).then_some(header).and_then(signature);
    // The response to LOGOFF is still signed with the session's key.
    one.signer = known.filter(|session| signs(session, &header));
    (one, (span, status::recorded(status)))
}

/// The signature of a request, if it has one.
fn signature(request: Header) -> Option<[u8; 16]> {
    request.has(flags::SIGNED).then_some(request.signature)
}

/// Whether the answer to a request is signed, unless it is encrypted.
fn signs(session: &Session, request: &Header) -> bool {
    session.signs || request.has(flags::SIGNED)
}

/// Executes a request; a single one that takes longer gets STATUS_PENDING.
async fn execute(
    request: &Request<'_>,
    (by, is_single): (Option<&Rc<Session>>, bool),
    is_pending: &mut bool,
) -> Outcome {
    let (conn, header) = (request.conn, &request.header);
    let command = pin!(dispatch::run(request));
    let mut running = pin!(conn.core.engine.attempt_async(command));
    // Most are done at once: there is no timer for them.
    let done = match poll_fn(|cx| Poll::Ready(running.as_mut().poll(cx))).await {
        Poll::Ready(done) => done,
        Poll::Pending => {
            // From now on: a client need not wait for STATUS_PENDING to cancel it.
            conn.cancels.borrow_mut().insert(header.message_id, Rc::clone(&request.cancel));
            let done = tokio::select! {
                biased;
                done = &mut running => done,
                () = pending(request), if is_single => {
                    conn.pend(header, request.session, by);
                    *is_pending = true;
                    running.await
                }
            };
            conn.cancels.borrow_mut().remove(&header.message_id);
            done
        }
    };
    done.unwrap_or_else(|fault| Err(status::of(fault)))
}

/// Waits until STATUS_PENDING is due: at once if another client is waited for.
async fn pending(request: &Request<'_>) {
    let _ = tokio::time::timeout(SMB_PENDING_AFTER, request.pends.notified()).await;
}

/// What a request has come to: its status, what is answered, and the tree that it has made.
fn outcome(
    conn: &Connection,
    done: Outcome,
    span: &mut Span,
    before: &mut Before,
) -> (NtStatus, ReplyBuf, Option<Extent>, Option<u32>) {
    match done {
        Ok(done) => {
            done.about.record(span);
            before.file = done.file.or(before.file);
            before.granted.extend(done.granted);
            (done.status, done.out, done.extent, done.tree)
        }
        Err(status) => {
            let mut out = reply::buffer(&conn.core);
            put_error(out.vec());
            (status, out, None, None)
        }
    }
}
