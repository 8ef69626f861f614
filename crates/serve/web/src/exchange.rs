//! An authorised request, and the peer of a connection.

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

/// The peer of a connection, before sign-in.
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
    /// The client's number in the statistics.
    pub client: u32,
    /// Whether TLS protects the connection.
    pub secure: bool,
    /// How it is protected.
    pub security: Option<Security>,
    /// Whether the connection has carried a WebDAV request.
    pub webdav: Rc<Cell<bool>>,
}

/// An authorised request: what its handlers work with.
pub struct Exchange {
    /// The core that it is on.
    pub core: Rc<Core>,
    /// The service.
    pub http: Arc<Http>,
    /// What was set when it came.
    pub settings: Arc<super::Settings>,
    /// The caller.
    pub caller: Caller,
    /// The name of the protocol in the transfer log.
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

    /// The request concerns this many bytes from `offset` on; `inward` if the client sends them.
    pub fn range(&self, offset: u64, size: u64, inward: bool) {
        let mut span = self.span.get();
        span.range(offset, size, inward);
        self.span.set(span);
    }

    /// This many bytes at `offset` have been sent, or been written after they were received.
    pub fn flowed(&self, piece: (u64, usize), inward: bool, since_ns: u64) {
        self.core.flowed(&self.span.get(), piece, inward, since_ns);
        self.moved(piece);
    }

    /// Begins a transfer of the file at this path.
    pub fn transfers(&self, direction: Direction, path: &VPath) {
        *self.transfer.borrow_mut() = self.begin_transfer(direction, path);
    }

    /// As [`Exchange::transfers`], of one that continues after this exchange.
    pub fn begin_transfer(&self, direction: Direction, path: &VPath) -> Transfer {
        self.core.transfer(&self.caller, (self.protocol, direction), path)
    }

    /// This many bytes of the transfer, at this offset, have been sent or written.
    pub fn moved(&self, (offset, count): (u64, usize)) {
        self.transfer.borrow().moved(offset, count);
    }

    /// The body was not received completely.
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

    /// The current span, to be recorded when the response has left.
    pub fn span(&self) -> Span {
        self.span.get()
    }

    /// Counts this many bytes as held for this request, until the returned value is dropped.
    ///
    /// # Errors
    /// [`Status::Busy`] if there is no room for them.
    pub fn hold(&self, bytes: usize) -> Result<ReservedBytes, Status> {
        self.core.budget.try_hold(bytes).ok_or(Status::Busy)
    }

    /// The response for an error of the file contract. A client that has not signed in, and could,
    /// is challenged.
    pub fn refuse(&self, status: Status) -> Response {
        let transfer = self.transfer.borrow();
        let outcome = if transfer.has_moved() { Outcome::Failed } else { Outcome::Refused };
        transfer.ends(outcome, status.to_string());
        status.into()
    }
}
