//! From requests to a frame: those of a compound are carried out one after the other, and answered
//! together (MS-SMB2 §3.3.5.2.7). All that a request must be before its command sees it is looked
//! at here: genuine, of a session, paid for.

use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use base::clock::stamp;
use base::limits::{SMB_COMPOUND_REPLY_MAX, SMB_PENDING_AFTER};
use vfs::fs::Extent;
use vfs::locks::Owner;
use vfs::status::Status;
use vfs::work::Work;
use wire::smb::charge::Payload;
use wire::smb::create::FileId;
use wire::smb::header::{Command, Header, flags};
use wire::smb::status::NtStatus;

use super::answers::One;
use super::connection::Connection;
use super::dispatch::{self, DispatchResult, Handled, Reply, Request, Steps};
use super::few::Few;
use super::frame::{Frame, Located};
use super::request::Progress;
use super::state::session::{Running, Session};
use super::{reply, status};
use engine::exec::{Span, timed};
use files::SpanFacts as _;

/// What a request has left for those that are related to it (MS-SMB2 §3.3.5.2.7.2).
#[derive(Default)]
struct Before {
    session: u64,
    tree: u32,
    file: Option<FileId>,
    /// How requests fail that are related to one that has made no open, or had no session.
    failed: Option<NtStatus>,
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

    /// A related request takes session and tree of the one before, and fails as that did; another
    /// has its own.
    fn relate(&mut self, header: &mut Header, is_first: bool) -> Result<(), NtStatus> {
        if header.has(flags::RELATED) {
            header.session_id = self.session;
            header.id = u64::from(self.tree) << 32 | header.id & 0xffff_ffff;
            if is_first {
                self.failed = Some(NtStatus::INVALID_PARAMETER);
            }
        } else {
            (self.failed, self.file) = (None, None);
        }
        (self.session, self.tree) = (header.session_id, header.tree_id());
        self.failed.map_or(Ok(()), Err)
    }
}

/// What the requests of a frame may look at together. Dropped with the frame, or with the
/// connection: what still runs for it on the pool ends.
struct FrameWork(Arc<Work>);

impl Drop for FrameWork {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A request that is carried out.
struct Current {
    header: Header,
    /// Its session, of which it is one of those in progress.
    session: Option<Running>,
    is_signed: bool,
    /// It was answered with STATUS_PENDING.
    is_pending: bool,
    span: Span,
}

/// One that waits.
struct Waiting {
    current: Current,
    request: Rc<Request>,
    /// What is left of its command.
    steps: Steps,
}

/// The requests of a frame, of which those up to `next` are carried out.
struct Compound {
    conn: Rc<Connection>,
    frame: Frame,
    held: usize,
    work: Option<FrameWork>,
    before: Before,
    next: usize,
    answers: Few<One>,
    spans: Few<(Span, u16)>,
}

/// Requests that wait.
pub(super) type Suspended = Pin<Box<dyn Future<Output = ()>>>;

/// Carries out the requests of a frame, and posts the answers; what is left of it if one of them
/// has to wait.
///
/// # Errors
/// [`Status::Fault`] if that panics outside of a command: the connection has to end.
pub(super) fn begin(
    conn: &Rc<Connection>,
    frame: Frame,
    held: usize,
) -> Result<Option<Suspended>, Status> {
    let mut compound = Compound {
        conn: Rc::clone(conn),
        frame,
        held,
        work: None,
        before: Before::default(),
        next: 0,
        answers: Few::default(),
        spans: Few::default(),
    };
    conn.core.engine.attempt(move || {
        let Some(waiting) = compound.run() else {
            compound.post();
            return None;
        };
        let mut suspended: Suspended = Box::pin(compound.resume(waiting));
        // STATUS_PENDING is sent at once. What it waits for wakes the task that it becomes.
        let mut context = Context::from_waker(Waker::noop());
        suspended.as_mut().poll(&mut context).is_pending().then_some(suspended)
    })
}

impl Compound {
    /// Carries out requests up to one that has to wait.
    fn run(&mut self) -> Option<Waiting> {
        while let Some(one) = self.frame.requests.get(self.next).copied() {
            let waiting = self.carry_out(&one);
            self.next += 1;
            if waiting.is_some() {
                return waiting;
            }
        }
        None
    }

    /// Carries out the others when that one waits no more, and posts the answers.
    async fn resume(mut self, waiting: Waiting) {
        let mut next = Some(waiting);
        while let Some(waiting) = next {
            self.wait(waiting).await;
            next = self.run();
        }
        self.post();
    }

    fn post(self) {
        let Self { conn, frame, held, answers, spans, before, .. } = self;
        let by = frame.encrypted.clone();
        frame.put_back(&conn.core);
        conn.send(answers, by.as_ref(), spans, held);
        conn.granted(&before.granted);
    }

    /// Carries out a request; what is left of it if it has to wait.
    fn carry_out(&mut self, one: &Located) -> Option<Waiting> {
        let (conn, is_first) = (&self.conn, self.next == 0);
        let Located { mut header, is_signed, .. } = *one;
        // The one behind the last is what is none.
        let op = header.command.0.min(Command::OPLOCK_BREAK.0 + 1) as u8;
        let mut span = conn.core.begin_at(conn.peer.1, op, self.frame.arrived_ns);
        // The first of a frame begins behind what was done before it.
        let begun_ns = if is_first { conn.now_ns.get() } else { stamp() };
        span.clock.resume(begun_ns);
        let related = self.before.relate(&mut header, is_first);
        let session = conn.session(header.session_id).ok().map(Session::run);
        if let Some(session) = session.as_ref().filter(|_| related.is_ok()) {
            span.by(&session.who);
        }
        let admitted = related.and_then(|()| self.admit(session.as_deref(), &header, one));
        let request = match (&admitted, &session) {
            (Ok(()), Some(session)) => Some(self.request(Rc::clone(session), header, one)),
            _ => None,
        };
        let current = Current { header, session, is_signed, is_pending: false, span };
        match (admitted, request) {
            (Ok(()), Some(request)) => return self.execute(current, request, begun_ns),
            (Ok(()), None) => {
                let reply = reply::echo(&self.conn.core);
                self.answer(current, Ok((reply, None)));
            }
            (Err(refused), _) => self.answer(current, Err(refused)),
        }
        None
    }

    /// That a request may be carried out.
    ///
    /// # Errors
    /// The status of its response.
    fn admit(
        &mut self,
        session: Option<&Rc<Session>>,
        header: &Header,
        one: &Located,
    ) -> Result<(), NtStatus> {
        let Some(session) = session else {
            if header.command == Command::ECHO && header.session_id == 0 {
                return Ok(());
            }
            self.before.failed = Some(NtStatus::INVALID_PARAMETER);
            return Err(NtStatus::USER_SESSION_DELETED);
        };
        let by = self.frame.encrypted.as_ref();
        self.conn.is_genuine(session, header, one.is_signed, by)?;
        self.before.takes(header, self.frame.message(one))
    }

    /// A request as its command has it.
    fn request(&self, session: Rc<Session>, header: Header, one: &Located) -> Request {
        let (frame, is_single) = (&self.frame, self.frame.requests.is_single());
        let encrypted = frame.encrypted.is_some();
        Request {
            conn: Rc::clone(&self.conn),
            bytes: Arc::clone(&frame.bytes),
            place: frame.place(one),
            held: self.held,
            before: self.before.file.filter(|_| header.has(flags::RELATED)),
            is_single,
            is_bare: is_single && !encrypted && !signs(&session, &header),
            encrypted,
            progress: Progress::within(self.work.as_ref().map(|work| &work.0)),
            session,
            header,
        }
    }

    /// Executes a request that may be carried out.
    fn execute(
        &mut self,
        mut current: Current,
        request: Request,
        begun_ns: u64,
    ) -> Option<Waiting> {
        let conn = Rc::clone(&self.conn);
        let engine = &conn.core.engine;
        let clock = &mut current.span.clock;
        let (tried, ended_ns) =
            timed::tried(clock, begun_ns, || engine.attempt(|| dispatch::run(&request)));
        // The one behind it begins then.
        conn.now_ns.set(ended_ns);
        let resume = match contained(tried) {
            Ok(DispatchResult::WouldBlock(Some(resume))) => resume,
            handled => {
                self.finish(current, &request, handled);
                return None;
            }
        };
        let request = Rc::new(request);
        // Most steps need not wait: what they are done with is done here.
        let mut context = Context::from_waker(Waker::noop());
        let (polled, ended_ns) = timed::tried(clock, ended_ns, || {
            engine.attempt(|| {
                let mut steps = resume.resume(Rc::clone(&request));
                let done = steps.as_mut().poll(&mut context);
                (steps, done)
            })
        });
        conn.now_ns.set(ended_ns);
        let steps = match polled {
            Ok((steps, Poll::Pending)) => steps,
            Ok((steps, Poll::Ready(handled))) => {
                drop(steps);
                self.finish(current, &request, handled);
                return None;
            }
            Err(fault) => {
                self.finish(current, &request, Err(status::of(fault)));
                return None;
            }
        };
        // From now on: a client need not wait for STATUS_PENDING to cancel it.
        let cancel = Rc::clone(request.cancel());
        conn.cancels.borrow_mut().insert(request.header.message_id, cancel);
        self.work.get_or_insert_with(|| FrameWork(Arc::clone(request.work())));
        Some(Waiting { current, request, steps })
    }

    /// Waits for the rest of a request; a single one that takes longer gets STATUS_PENDING.
    async fn wait(&mut self, waiting: Waiting) {
        let Waiting { mut current, request, mut steps } = waiting;
        let (conn, by, is_pending) =
            (&self.conn, self.frame.encrypted.as_ref(), &mut current.is_pending);
        let rest = async {
            let mut rest = pin!(conn.core.engine.attempt_async(Pin::new(&mut steps)));
            tokio::select! {
                biased;
                done = &mut rest => done,
                () = pending(&request), if request.is_single => {
                    conn.pend(&request.header, &request.session, by);
                    *is_pending = true;
                    rest.await
                }
            }
        };
        let handled = contained(timed::run(&mut current.span.clock, pin!(rest)).await);
        conn.cancels.borrow_mut().remove(&request.header.message_id);
        drop(steps);
        self.finish(current, &request, handled);
    }

    /// A request has been carried out.
    fn finish(&mut self, mut current: Current, request: &Request, handled: Handled) {
        request.record(&mut current.span);
        if self.work.is_none() {
            self.work = request.begun_work().map(|work| FrameWork(Arc::clone(work)));
        }
        let extent = match handled {
            Ok(DispatchResult::Done) => None,
            Ok(DispatchResult::Extent(extent)) => Some(extent),
            Err(status) => return self.answer(current, Err(status)),
            // No command leaves anything else when it has ended.
            Ok(_) => return self.answer(current, Err(NtStatus::INTERNAL_ERROR)),
        };
        let reply = request.take_reply().ok_or(NtStatus::INTERNAL_ERROR);
        self.answer(current, reply.map(|reply| (reply, extent)));
    }

    /// Adds the answer to a request to those of its compound.
    fn answer(&mut self, current: Current, done: Result<(Reply, Option<Extent>), NtStatus>) {
        let Current { mut header, session, is_signed, is_pending, mut span } = current;
        let conn = &self.conn;
        let (reply, extent) =
            done.unwrap_or_else(|status| (Reply::error(status, reply::buffer(&conn.core)), None));
        let Reply { status, out, file, tree, granted, moved } = reply;
        if let Some(moved) = moved {
            moved.record(&mut span);
        }
        let before = &mut self.before;
        before.file = file.or(before.file);
        before.granted.extend(granted);
        // What is related to a file that was not opened fails as that did; a CLOSE after something
        // else that has failed is done.
        if header.command == Command::CREATE && session.is_some() {
            before.failed = status.is_error().then_some(status);
        }
        if let Some(tree) = tree {
            before.tree = tree;
            header.id = u64::from(tree) << 32 | header.id & 0xffff_ffff;
        }
        let mut one = One::last(conn, &header, (status, out), is_pending);
        one.extent = extent;
        one.key = conn.other_signer(header.session_id, session.is_none() && is_signed);
        let is_unknown = status == NtStatus::USER_SESSION_DELETED;
        one.echo = (is_unknown && header.has(flags::SIGNED)).then_some(header.signature);
        // The response to LOGOFF is still signed with the session's key.
        let session = session.as_deref().filter(|session| signs(session, &header));
        one.signer = session.cloned();
        self.answers.push(one);
        self.spans.push((span, status::recorded(status)));
    }
}

/// What a step has come to that may have panicked.
fn contained(step: Result<Handled, Status>) -> Handled {
    step.unwrap_or_else(|fault| Err(status::of(fault)))
}

/// Whether the answer to a request is signed, unless it is encrypted.
fn signs(session: &Session, request: &Header) -> bool {
    session.signs || request.has(flags::SIGNED)
}

/// Waits until STATUS_PENDING is due: at once if another client is waited for.
async fn pending(request: &Request) {
    let _ = tokio::time::timeout(SMB_PENDING_AFTER, request.pends()).await;
}
