//! From a request to the function that answers it, and what is measured of that.

use files::SpanFacts as _;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use vfs::status::Status;

use super::request::{BodyError, Method, Request, percent_encode};
use super::response::Response;
use super::{Http, Plain, SignIn, auth, dav, get, page, put, status, upload};
use engine::transport::budget::ReservedBytes;
use files::caller::Reached;
use files::transfer::{Direction, Outcome, Scheme, Security};
use files::{Caller, Core, Node, Span, Transfer, VPath};

/// Below this path is what belongs to the page itself.
pub const OWN: &[u8] = b"/.plimsoll/";
/// Methods that are answered.
const ALLOW: &str = "GET, HEAD, OPTIONS, PUT, POST, PATCH, DELETE, MKCOL, MOVE";

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
    protocol: Scheme,
    span: Cell<Span>,
    transfer: RefCell<Transfer>,
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

/// An answer, and by whom it was asked for if he was let in.
pub struct Answer {
    /// The answer.
    pub response: Response,
    /// Who may ask.
    pub exchange: Option<Rc<Exchange>>,
    /// What is known of the request; [`Exchange::span`] if there is one.
    pub span: Span,
}

impl Answer {
    /// What is known of the request now.
    pub fn span(&self) -> Span {
        self.exchange.as_ref().map_or(self.span, |exchange| exchange.span())
    }
}

/// Answers a request that came at `arrived_ns`: with 500 if that panics.
pub async fn answer(peer: &Peer, request: Request<'_>, arrived_ns: u64) -> Answer {
    let span = peer.core.begin_at(peer.client, request.method as u8, arrived_ns);
    let answered = peer.core.engine.attempt_async(pin!(judge(peer, request, span))).await;
    answered.unwrap_or_else(|status| {
        let response = safe(status.into());
        Answer { response, exchange: None, span }
    })
}

async fn judge(peer: &Peer, request: Request<'_>, mut span: Span) -> Answer {
    if is_webdav(request.method) {
        peer.webdav.set(true);
    }
    if let Some(response) = before(peer, &request) {
        return Answer { response: safe(response), exchange: None, span };
    }
    let own = request.target.path.strip_prefix(OWN).map(<[u8]>::to_vec);
    if let Some(own) = &own
        && !own.starts_with(upload::OWN)
    {
        let response = Box::pin(page_itself(peer, request)).await;
        return Answer { response: safe(response), exchange: None, span };
    }
    let mut caller = match auth::caller(peer, &request).await {
        Ok(caller) => caller,
        Err(response) => return Answer { response: safe(response), exchange: None, span },
    };
    span.by(&caller);
    if let Some(response) = rebound(peer, &caller, &request) {
        return Answer { response: safe(response), exchange: None, span };
    }
    caller.lent = peer.http.dav.lent(&caller, &request.headers);
    let exchange = Rc::new(Exchange {
        core: Rc::clone(&peer.core),
        http: Arc::clone(&peer.http),
        settings: Arc::clone(&peer.settings),
        caller,
        protocol: protocol(peer),
        span: Cell::new(span),
        transfer: RefCell::default(),
    });
    let challenge = may_sign_in(peer, &exchange).then(|| auth::challenge(peer, &request));
    let handled = peer.core.engine.attempt_async(pin!(handle(&exchange, request))).await;
    let mut response = handled.unwrap_or_else(|status| exchange.refuse(status));
    if response.status == 403
        && let Some(challenge) = challenge
    {
        response = challenge;
    }
    Answer { response: safe(response), span: exchange.span(), exchange: Some(exchange) }
}

/// 421 for a change by nobody in particular that takes this host for another one (RFC 9110
/// §15.5.20). A page of another site may have its name lead to our address; to the browser it is
/// of one origin with us then, and only the name gives it away. Who signs in has a credential that
/// such a page does not.
fn rebound(peer: &Peer, caller: &Caller, request: &Request<'_>) -> Option<Response> {
    let is_change = caller.person.anonymous && !request.method.is_safe();
    (is_change && !peer.http.is_own_host(&request.host))
        .then(|| status::plain(421, "Unknown host name."))
}

/// Whether only clients of WebDAV ask for this; the other methods are for the page, too.
fn is_webdav(method: Method) -> bool {
    use Method::{Copy, Lock, Propfind, Proppatch, Unlock};
    matches!(method, Propfind | Proppatch | Copy | Lock | Unlock)
}

fn protocol(peer: &Peer) -> Scheme {
    match (peer.webdav.get(), peer.secure) {
        (true, _) => Scheme::Webdav,
        (false, true) => Scheme::Https,
        (false, false) => Scheme::Http,
    }
}

/// Whether somebody who is nobody in particular could be somebody.
fn may_sign_in(peer: &Peer, exchange: &Exchange) -> bool {
    let may_tell = peer.secure || peer.settings.basic_over_plain;
    peer.settings.sign_in == SignIn::Optional && exchange.caller.person.anonymous && may_tell
}

/// What is answered whoever asks.
fn before(peer: &Peer, request: &Request<'_>) -> Option<Response> {
    if !peer.secure && peer.settings.plain == Plain::Redirect && peer.settings.secure_port != 0 {
        return Some(to_secure(peer, request));
    }
    match request.method {
        Method::Trace | Method::Connect => Some(status::plain(405, "").with("allow", ALLOW)),
        Method::Other => Some(status::plain(501, "Method not supported.")),
        _ => None,
    }
}

fn to_secure(peer: &Peer, request: &Request<'_>) -> Response {
    let host = match request.host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => &request.host,
    };
    if host.is_empty() {
        return status::plain(400, "Which host?");
    }
    let port = match peer.settings.secure_port {
        443 => String::new(),
        port => format!(":{port}"),
    };
    let path = percent_encode(&request.target.path);
    let slash = if request.target.slash && path != "/" { "/" } else { "" };
    let mark = if request.target.query.is_empty() { "" } else { "?" };
    let query = &request.target.query;
    let there = format!("https://{host}{port}{path}{slash}{mark}{query}");
    Response::new(308).with("location", there)
}

/// What belongs to the page: how it looks, what it does, and signing in.
async fn page_itself(peer: &Peer, request: Request<'_>) -> Response {
    let path = request.target.path.as_slice();
    match (request.method, path) {
        (Method::Get | Method::Head, auth::SIGN_IN) => auth::form(peer, &request),
        (Method::Post, auth::SIGN_IN) => auth::sign_in(peer, request).await,
        (Method::Post, auth::SIGN_OUT) => auth::sign_out(peer, &request),
        (Method::Get | Method::Head, path) => page::asset(path, &request.headers),
        _ => status::plain(405, ""),
    }
}

/// Answers a request of somebody who may ask.
pub async fn handle(cx: &Rc<Exchange>, request: Request<'_>) -> Response {
    let uploads = [OWN, upload::OWN].concat();
    if request.target.path.starts_with(&uploads) {
        return Box::pin(upload::goes_on(cx, request)).await;
    }
    // What is rare and large has memory of its own: all are parts of the same future.
    match request.method {
        Method::Get | Method::Head => get::get(cx, &request).await,
        Method::Options if cx.settings.webdav => dav::offer(Response::new(200)),
        Method::Options => Response::new(204).with("allow", ALLOW),
        Method::Put => Box::pin(put::put(cx, request)).await,
        Method::Post => Box::pin(upload::begin(cx, &request)).await,
        // These are for the page, too.
        Method::Delete | Method::Mkcol | Method::Move => Box::pin(dav::exchange(cx, request)).await,
        Method::Propfind | Method::Proppatch | Method::Copy | Method::Lock | Method::Unlock
            if cx.settings.webdav =>
        {
            Box::pin(dav::exchange(cx, request)).await
        }
        _ => status::plain(405, "").with("allow", ALLOW),
    }
}

/// What every answer says to browsers.
fn safe(response: Response) -> Response {
    let response = if response.header("content-security-policy").is_none() && response.status != 304
    {
        response.with("content-security-policy", "default-src 'none'; sandbox")
    } else {
        response
    };
    response
        .with("x-content-type-options", "nosniff")
        .with("referrer-policy", "same-origin")
        .with("cross-origin-resource-policy", "same-origin")
}
