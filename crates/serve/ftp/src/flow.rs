//! A transfer while its data flows: what is counted of it, and whether its client is still there.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU8};

use base::limits::FTP_END_LOOKS_MAX;

use super::answer::Answer;
use super::conn::data::Sent;
use engine::transport::link::{DisconnectWatch, Link};
use files::serial::Condition;
use files::transfer::Outcome;
use files::{Core, Span, Transfer};

/// What flows in a transfer is counted while it does.
pub(super) struct Flow {
    core: Rc<Core>,
    span: Span,
    transfer: Transfer,
    bytes: Cell<u64>,
    client: Arc<Presence>,
    /// The data connection, once all was sent.
    pub(super) data: Cell<Option<Sent>>,
}

/// Whether the client of an upload is there to hear how it ended. Threads of the pool ask that
/// right before a file takes its name.
struct Presence {
    /// Hears of the end of the control connection.
    disconnect_watch: DisconnectWatch,
    /// Whether the client has sent QUIT, and may end the control connection without giving up the
    /// transfer.
    may_leave: AtomicBool,
    /// One of [`OPEN`], [`NAMING`] and [`GIVEN_UP`].
    stage: AtomicU8,
}

/// Neither of the other two.
const OPEN: u8 = 0;

/// The file is taking its name: it is too late to give the transfer up.
const NAMING: u8 = 1;

/// The transfer was abandoned: the file must not take its name.
const GIVEN_UP: u8 = 2;

impl Presence {
    fn has_gone(&self) -> bool {
        !self.may_leave.load(Relaxed) && self.disconnect_watch.is_disconnected()
    }

    /// Whether a file may take its name now.
    fn may_name(&self) -> bool {
        let open = |stage| (stage != GIVEN_UP).then_some(NAMING);
        !self.has_gone() && self.stage.fetch_update(AcqRel, Acquire, open).is_ok()
    }
}

impl Flow {
    pub(super) fn new(
        core: &Rc<Core>,
        (span, transfer): (Span, Transfer),
        disconnect_watch: DisconnectWatch,
    ) -> Self {
        let (may_leave, stage) = (AtomicBool::new(false), AtomicU8::new(OPEN));
        let client = Arc::new(Presence { disconnect_watch, may_leave, stage });
        let (core, bytes, data) = (Rc::clone(core), Cell::new(0), Cell::new(None));
        Self { core, span, transfer, bytes, client, data }
    }

    /// The client may end the control connection now without giving up the transfer.
    pub(super) fn may_leave(&self) {
        self.client.may_leave.store(true, Relaxed);
    }

    /// The condition under which an upload takes its name: its client is connected, and the upload
    /// was not abandoned. The data connection ends in the same way whether all was sent or the
    /// client was killed; only in the second case the control connection ends before its reply. The
    /// kernel of a killed client may end the data connection first: what counts is the moment
    /// before the name is taken.
    pub(super) fn condition(&self) -> Condition {
        let client = Arc::clone(&self.client);
        Arc::new(move || client.may_name())
    }

    /// That the client is there. If its end has come, what it sent before that, such as QUIT, is
    /// received first.
    ///
    /// # Errors
    /// 426: it has gone.
    pub(super) async fn has_client(&self) -> Result<(), Answer> {
        for _ in 0..FTP_END_LOOKS_MAX {
            if !self.client.has_gone() {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
        Err(Answer::of(426, "The client closed the connection."))
    }

    /// Gives the transfer up; false if it is too late, because a file is taking its name.
    pub(super) fn give_up(&self) -> bool {
        self.client.stage.compare_exchange(OPEN, GIVEN_UP, AcqRel, Acquire).is_ok()
    }

    /// A piece of a file has come or gone.
    pub(super) fn moved(&self, (offset, count): (u64, usize), inward: bool, since_ns: u64) {
        self.count_bytes(count);
        if count > 0 {
            self.transfer.moved(offset, count);
            self.core.flowed(&self.span, (offset, count), inward, since_ns);
        }
    }

    /// The data connection is there.
    pub(super) fn goes_over(&self, link: &Link) {
        self.transfer.secured(link.security());
    }

    /// Ends the transfer with this reply.
    pub(super) fn ends(self, answer: &Answer) {
        end(&self.transfer, answer, true);
    }

    /// Counts bytes that are not file data.
    pub(super) fn count_bytes(&self, count: usize) {
        self.bytes.set(self.bytes.get() + count as u64);
    }

    /// Bytes so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.get()
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        // An operation of an interrupted transfer may still be in progress on the pool.
        self.give_up();
    }
}

/// A reply states how a transfer ended that had begun, or that it does not begin.
pub(super) fn end(transfer: &Transfer, answer: &Answer, begun: bool) {
    let outcome = match answer.code {
        200..300 => return transfer.completes(),
        421 | 425 | 426 | 522 => Outcome::Cut,
        _ if begun => Outcome::Failed,
        _ => Outcome::Refused,
    };
    transfer.ends(outcome, String::from_utf8_lossy(&answer.text).into_owned());
}
