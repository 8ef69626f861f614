//! A request as its command has it: genuine, of a session of its connection. What the command
//! comes to.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use base::limits::SMB_WORK_MAX;
use tokio::sync::Notify;
use vfs::work::Work;
use wire::smb::create::FileId;
use wire::smb::header::{Command, Header, flags};
use wire::smb::negotiate::Dialect;
use wire::smb::status::NtStatus;

use super::connection::{Cancel, Connection, WaitPermit};
use super::reply::{self, Reply};
use super::state::opens::{Open, OpenOf};
use super::state::seats::OpenReservation;
use super::state::session::{Session, Tree, TreeOf};
use engine::exec::{self, Span};
use engine::transport::buffers::ReplyBuf;
use files::{Caller, SpanFacts as _};

/// What a command comes to. With `Done` and `Extent` its reply is with its request
/// ([`Request::done`]); data that is sent from a file leaves behind that.
pub(super) type DispatchResult = exec::DispatchResult<Resume>;

/// The same, or the status of an error.
pub(super) type Handled = Result<DispatchResult, NtStatus>;

/// A command that has stopped before what would block its thread: what is left of it.
pub(super) struct Resume(Box<dyn FnOnce(Rc<Request>) -> Steps>);

impl Resume {
    /// Resumes it: what is to be polled.
    pub fn resume(self, request: Rc<Request>) -> Steps {
        self.0(request)
    }
}

/// What is left of a command. It continues where it stopped when the operation on the pool, or in
/// the flush group, that it waits for ([`files::Core`]) has completed, or another client has done
/// what it waits for. It ends in `Done`, `Extent` or an error.
pub(super) type Steps = Pin<Box<dyn Future<Output = Handled>>>;

/// A command, or the rest of one, that consists of several steps.
pub(super) fn steps<S>(rest: impl FnOnce(Rc<Request>) -> S + 'static) -> Handled
where
    S: Future<Output = Handled> + 'static,
{
    let rest = Box::new(move |request| -> Steps { Box::pin(rest(request)) });
    Ok(DispatchResult::WouldBlock(Some(Resume(rest))))
}

/// A request that is genuine. One that waits is shared by its compound and what is left of its
/// command.
pub(super) struct Request {
    /// Its connection.
    pub conn: Rc<Connection>,
    /// Its session.
    pub session: Rc<Session>,
    /// The frame that it is in.
    pub bytes: Arc<Vec<u8>>,
    /// Where it is there, from its header on.
    pub place: Range<usize>,
    /// Bytes that the frame holds.
    pub held: usize,
    /// Its header; if it is related, with what it is related to.
    pub header: Header,
    /// The open of the request that it is related to.
    pub before: Option<FileId>,
    /// It is the only one of its frame.
    pub is_single: bool,
    /// Its answer leaves alone, neither signed nor encrypted: data can follow it from a file.
    pub is_bare: bool,
    /// Whether it was encrypted.
    pub encrypted: bool,
    /// How far it is.
    pub progress: Progress,
}

/// How far a request is.
#[derive(Default)]
pub(super) struct Progress {
    /// What its frame may still look at, once something of it was looked at.
    work: OnceCell<Arc<Work>>,
    /// Ends its waiting.
    cancel: OnceCell<Rc<Cancel>>,
    /// Has its client be answered with STATUS_PENDING at once.
    pends: Notify,
    /// The open that it is about, once it was looked up or made.
    opened: RefCell<Option<Rc<Open>>>,
    /// It is one of those of its open.
    in_progress: RefCell<Option<InProgress>>,
    /// Its reply, once it is written.
    reply: Cell<Option<Reply>>,
}

impl Progress {
    /// Of a request in a frame that may still look at so much, if anything of that was looked at.
    pub fn within(work: Option<&Arc<Work>>) -> Self {
        let begun = Self::default();
        if let Some(work) = work {
            begun.work.get_or_init(|| Arc::clone(work));
        }
        begun
    }
}

/// A request of an open that is carried out, by its ChannelSequence.
struct InProgress(Rc<Open>, u16);

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.sequence.end(self.1);
    }
}

impl Request {
    /// It, from its header on.
    pub fn message(&self) -> &[u8] {
        self.bytes.get(self.place.clone()).unwrap_or_default()
    }

    /// What its frame may still look at.
    pub fn work(&self) -> &Arc<Work> {
        self.progress.work.get_or_init(|| Arc::new(Work::new(SMB_WORK_MAX)))
    }

    /// The same, if anything was looked at.
    pub fn begun_work(&self) -> Option<&Arc<Work>> {
        self.progress.work.get()
    }

    /// What ends its waiting.
    pub fn cancel(&self) -> &Rc<Cancel> {
        self.progress.cancel.get_or_init(Rc::default)
    }

    /// Has its client be answered with STATUS_PENDING at once, for it waits for another client.
    pub fn pend(&self) {
        self.progress.pends.notify_one();
    }

    /// Waits for that.
    pub async fn pends(&self) {
        self.progress.pends.notified().await;
    }

    /// Its reply is written.
    pub fn done(&self, reply: Reply) -> Handled {
        self.progress.reply.set(Some(reply));
        Ok(DispatchResult::Done)
    }

    /// Takes its reply.
    pub fn take_reply(&self) -> Option<Reply> {
        self.progress.reply.take()
    }

    /// That it waits for another client; `None` if too many of its connection do.
    pub fn wait_permit(&self) -> Option<WaitPermit<'_>> {
        self.conn.wait_permit(self.held)
    }

    /// A buffer for its answer.
    pub fn reply(&self) -> ReplyBuf {
        reply::buffer(&self.conn.core)
    }

    /// The user, for ways that lead to files: what they look at is counted.
    pub fn caller(&self) -> Caller {
        self.session.who.counted(self.work())
    }

    /// Whether it is signed or encrypted.
    pub const fn is_protected(&self) -> bool {
        self.encrypted || self.header.has(flags::SIGNED)
    }

    /// Its tree.
    ///
    /// # Errors
    /// STATUS_NETWORK_NAME_DELETED, also if its share is served no more; STATUS_ACCESS_DENIED if
    /// that requires encryption.
    pub fn tree(&self) -> Result<Rc<Tree>, NtStatus> {
        let tree = self.session.tree(self.header.tree_id())?;
        self.may_use(&tree)?;
        if let TreeOf::Share { reached } = &tree.of
            && self.conn.core.files.shares.load().by_id(reached.share.id).is_none()
        {
            return Err(NtStatus::NETWORK_NAME_DELETED);
        }
        Ok(tree)
    }

    /// What another open takes, with `bytes` bytes of its own.
    ///
    /// # Errors
    /// STATUS_TOO_MANY_OPENED_FILES.
    pub fn reserve_open(&self, bytes: usize) -> Result<OpenReservation, NtStatus> {
        let seats = &self.conn.server.seats;
        seats.take(self.conn.peer.0.ip(), bytes).ok_or(NtStatus::TOO_MANY_OPENED_FILES)
    }

    /// The number of an open: its own, or that of the request before.
    pub fn file_id(&self, id: FileId) -> FileId {
        match self.before {
            Some(before) if id == FileId::RELATED => before,
            _ => id,
        }
    }

    /// An open.
    ///
    /// # Errors
    /// STATUS_FILE_CLOSED.
    pub fn open(&self, id: FileId) -> Result<Rc<Open>, NtStatus> {
        self.tree()?;
        let open = self.session.open(self.file_id(id), self.header.tree_id())?;
        self.verify_channel(&open)?;
        open.set_used();
        self.note_open(&open);
        Ok(open)
    }

    /// It is about this open, which it has looked up or made.
    pub fn note_open(&self, open: &Rc<Open>) {
        *self.progress.opened.borrow_mut() = Some(Rc::clone(open));
    }

    /// Refuses what was sent before a request of a later channel (MS-SMB2 §3.3.5.2.10).
    fn verify_channel(&self, open: &Rc<Open>) -> Result<(), NtStatus> {
        if self.progress.in_progress.borrow().is_some()
            || self.conn.agreed()?.dialect < Dialect::SMB300
        {
            return Ok(());
        }
        let changes =
            matches!(self.header.command, Command::WRITE | Command::SET_INFO | Command::IOCTL);
        let channel = self.header.channel();
        let counts = open.sequence.begin(channel, self.header.has(flags::REPLAY), changes);
        let counts = counts.map_err(|_| NtStatus::FILE_NOT_AVAILABLE)?;
        *self.progress.in_progress.borrow_mut() =
            counts.then(|| InProgress(Rc::clone(open), channel));
        Ok(())
    }

    /// Refuses unencrypted requests to a share that requires encryption.
    fn may_use(&self, tree: &Tree) -> Result<(), NtStatus> {
        if self.encrypted || !tree.encrypts() { Ok(()) } else { Err(NtStatus::ACCESS_DENIED) }
    }

    /// An open to copy from, which may be of another share of the session; `None` if there is none.
    ///
    /// # Errors
    /// As of [`Request::tree`], about its share.
    pub fn source(&self, id: FileId) -> Result<Option<Rc<Open>>, NtStatus> {
        let Some(open) = self.session.open_anywhere(id) else { return Ok(None) };
        let tree = self.session.tree(open.tree)?;
        self.may_use(&tree)?;
        Ok(Some(open))
    }

    /// Records the share and the file of a request, however it ends.
    pub fn record(&self, span: &mut Span) {
        if let Some(open) = &*self.progress.opened.borrow() {
            if let OpenOf::File(file) = &open.of {
                span.of(&file.node);
            }
        } else if let Ok(tree) = self.session.tree(self.header.tree_id())
            && let TreeOf::Share { reached } = &tree.of
        {
            span.on(reached);
        }
    }

    /// An answer of nothing but a size.
    pub fn empty(&self) -> Reply {
        reply::echo(&self.conn.core)
    }
}
