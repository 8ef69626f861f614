//! From a request to the function that answers it, and what is measured of that.

use files::SpanFacts as _;
use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use engine::exec::timed;

use super::exchange::{Exchange, Peer};
use super::request::{Method, Request, percent_encode};
use super::response::Response;
use super::{Plain, SignIn, auth, dav, get, page, put, status, upload};
use files::transfer::Scheme;
use files::{Caller, Span};

/// Below this path is what belongs to the page itself.
pub const OWN: &[u8] = b"/.plimsoll/";
/// Methods that are answered.
const ALLOW: &str = "GET, HEAD, OPTIONS, PUT, POST, PATCH, DELETE, MKCOL, MOVE";

/// What is answered to a request with a host name that is not one of this server.
const UNKNOWN_HOST: &str = "Unknown host name: use the address of the server, or add the name to \
                            names in /configuration/certificates.";

/// A response, and the exchange of an authorised request.
pub struct Answer {
    /// The answer.
    pub response: Response,
    /// The authorised request.
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
    let mut clock = span.clock;
    let answered = {
        let judged = pin!(judge(peer, request, span));
        timed::run(&mut clock, pin!(peer.core.engine.attempt_async(judged))).await
    };
    let mut answer = answered.unwrap_or_else(|status| {
        let response = safe(status.into());
        Answer { response, exchange: None, span }
    });
    answer.span.clock = clock;
    if let Some(exchange) = &answer.exchange {
        exchange.set_clock(clock);
    }
    answer
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
    peer.core.budget.keep_connection();
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

/// 421 for a request without a credential that takes this host for another one (RFC 9110
/// §15.5.20). A page of another site may have its name lead to our address; to the browser it is
/// of one origin with us then, so that it reads what it is answered, and only the name gives it
/// away. A signed-in user has a credential that such a page does not.
fn rebound(peer: &Peer, caller: &Caller, request: &Request<'_>) -> Option<Response> {
    (caller.person.anonymous && !peer.http.is_own_host(&request.host))
        .then(|| status::plain(421, UNKNOWN_HOST))
}

/// Whether only WebDAV clients send this method; the other methods are for the page, too.
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

/// Whether an anonymous client could sign in.
fn may_sign_in(peer: &Peer, exchange: &Exchange) -> bool {
    let may_tell = peer.secure || peer.settings.basic_over_plain;
    peer.settings.sign_in == SignIn::Optional && exchange.caller.person.anonymous && may_tell
}

/// Responses that do not depend on the caller.
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

/// Answers an authorised request.
pub async fn handle(cx: &Rc<Exchange>, request: Request<'_>) -> Response {
    let uploads = [OWN, upload::OWN].concat();
    if request.target.path.starts_with(&uploads) {
        return Box::pin(upload::continue_upload(cx, request)).await;
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

/// Header fields for browsers in every response.
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
