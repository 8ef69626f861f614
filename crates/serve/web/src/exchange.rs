//! A request of somebody who may ask, and who is at the other end of a connection.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use probe::phases::PhaseClock;
use vfs::status::Status;

use super::request::BodyError;
use super::response::Response;
use super::{Http, status};
use engine::transport::budget::ReservedBytes;
use files::SpanFacts as _;
use files::caller::Reached;
use files::transfer::{Direction, Outcome, Scheme, Security};
use files::{Caller, Core, Node, Span, Transfer, VPath};

/// Who is at the other end of a connection, before he has signed in.
#[derive(Clone)]
pub struct Peer {
    /// The core that the connection is on.
    pub core: Rc<Core>,
    /// The service.
    pub http: Arc<Http>,
    /// What was set when the request came.
    pub settings: Arc<super::Settings>,
    /// From where.
    pub address: SocketAddr,
    /// His number in the statistics.
    pub client: u32,
    /// Whether TLS protects it.
    pub secure: bool,
    /// With what.
    pub security: Option<Security>,
    /// Whether something of WebDAV was asked on the connection.
    pub webdav: Rc<Cell<bool>>,
}

/// A request of somebody who may ask: what its handlers work with.
pub struct Exchange {
    /// The core that it is on.
    pub core: Rc<Core>,
    /// The service.
    pub http: Arc<Http>,
    /// What was set when it came.
    pub settings: Arc<super::Settings>,
    /// Who asks.
    pub caller: Caller,
    /// As what the log knows the protocol.
    pub(super) protocol: Scheme,
    pub(super) span: Cell<Span>,
    pub(super) transfer: RefCell<Transfer>,
}

impl Exchange {
    /// The request is on this share.
    pub fn on(&self, reached: &Reached) {
        let mut span = self.span.get();
        span.on(reached);
        self.span.set(span);
    }

    /// The request is of this file.
    pub fn of(&self, node: &Node) {
        let mut span = self.span.get();
        span.of(node);
        self.span.set(span);
    }

    /// It asks for so many bytes from `offset` on; `inward` if the client sends them.
    pub fn range(&self, offset: u64, size: u64, inward: bool) {
        let mut span = self.span.get();
        span.range(offset, size, inward);
        self.span.set(span);
    }

    /// So many bytes at `offset` have been sent, or been written after they were received.
    pub fn flowed(&self, piece: (u64, usize), inward: bool, since_ns: u64) {
        self.core.flowed(&self.span.get(), piece, inward, since_ns);
        self.moved(piece);
    }

    /// A transfer of the file at this path is asked for.
    pub fn transfers(&self, direction: Direction, path: &VPath) {
        *self.transfer.borrow_mut() = self.begin_transfer(direction, path);
    }

    /// As [`Exchange::transfers`], of one that goes on after this exchange.
    pub fn begin_transfer(&self, direction: Direction, path: &VPath) -> Transfer {
        self.core.transfer(&self.caller, (self.protocol, direction), path)
    }

    /// So many bytes of the transfer, at this offset, have been sent or written.
    pub fn moved(&self, (offset, count): (u64, usize)) {
        self.transfer.borrow().moved(offset, count);
    }

    /// What was to be written did not come to its end.
    pub fn cut(&self, why: &BodyError) {
        let outcome = match why {
            BodyError::Gone | BodyError::TooSlow => Outcome::Cut,
            BodyError::Malformed | BodyError::TooLong => Outcome::Failed,
        };
        self.transfer.borrow().ends(outcome, why.to_string());
    }

    /// The answer has been sent, or could not be: so has the transfer ended.
    pub fn ended(&self, code: u16, sent: Result<(), String>) {
        let transfer = self.transfer.take();
        match (code, sent) {
            // Nothing was wanted.
            (304 | 416, _) => transfer.keep_silent(),
            (400.., _) if transfer.has_moved() => {
                transfer.ends(Outcome::Failed, status::reason(code));
            }
            (400.., _) => transfer.ends(Outcome::Refused, status::reason(code)),
            (_, Ok(())) => transfer.completes(),
            (_, Err(why)) => transfer.ends(Outcome::Cut, why),
        }
    }

    /// What its time went to until its response was ready.
    pub fn set_clock(&self, clock: PhaseClock) {
        self.span.set(Span { clock, ..self.span.get() });
    }

    /// What is known of it now, to be written down when the answer has left.
    pub fn span(&self) -> Span {
        self.span.get()
    }

    /// Counts so many bytes as held for this request, until what it gives is dropped.
    ///
    /// # Errors
    /// [`Status::Busy`] if there is no room for them.
    pub fn hold(&self, bytes: usize) -> Result<ReservedBytes, Status> {
        self.core.budget.try_hold(bytes).ok_or(Status::Busy)
    }

    /// The answer for an error of the file contract. Who has not signed in and may is asked to.
    pub fn refuse(&self, status: Status) -> Response {
        let transfer = self.transfer.borrow();
        let outcome = if transfer.has_moved() { Outcome::Failed } else { Outcome::Refused };
        transfer.ends(outcome, status.to_string());
        status.into()
    }
}
