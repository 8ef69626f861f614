//! A request as its command has it: genuine, of a session of its connection.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

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
use engine::exec::Span;
use engine::transport::buffers::ReplyBuf;
use files::{Caller, SpanFacts as _};

/// A request that is genuine.
pub(super) struct Request<'a> {
    /// Its connection.
    pub conn: &'a Rc<Connection>,
    /// Its session.
    pub session: &'a Rc<Session>,
    /// It, from its header on.
    pub message: &'a [u8],
    /// The frame that it is in.
    pub bytes: &'a Arc<Vec<u8>>,
    /// What that may still look at.
    pub work: &'a Arc<Work>,
    /// Bytes that it holds.
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
    /// Ends its waiting.
    pub cancel: Rc<Cancel>,
    /// Has its client be answered with STATUS_PENDING at once.
    pub pends: Notify,
    /// The open that it is about, once it was looked up.
    pub opened: RefCell<Option<Rc<Open>>>,
    /// It is one of those of its open.
    pub in_progress: RefCell<Option<InProgress>>,
}

/// A request of an open that is carried out, by its ChannelSequence.
pub(super) struct InProgress(Rc<Open>, u16);

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.sequence.end(self.1);
    }
}

impl Request<'_> {
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
        self.session.who.counted(self.work)
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
    pub fn seat(&self, bytes: usize) -> Result<OpenReservation, NtStatus> {
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
        *self.opened.borrow_mut() = Some(Rc::clone(&open));
        Ok(open)
    }

    /// Refuses what was sent before a request of a later channel (MS-SMB2 §3.3.5.2.10).
    fn verify_channel(&self, open: &Rc<Open>) -> Result<(), NtStatus> {
        if self.in_progress.borrow().is_some() || self.conn.agreed()?.dialect < Dialect::SMB300 {
            return Ok(());
        }
        let changes =
            matches!(self.header.command, Command::WRITE | Command::SET_INFO | Command::IOCTL);
        let channel = self.header.channel();
        let counts = open.sequence.begin(channel, self.header.has(flags::REPLAY), changes);
        let counts = counts.map_err(|_| NtStatus::FILE_NOT_AVAILABLE)?;
        *self.in_progress.borrow_mut() = counts.then(|| InProgress(Rc::clone(open), channel));
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
        if let Some(open) = &*self.opened.borrow() {
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
