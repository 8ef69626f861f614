//! Signing in: Basic (RFC 7617) with each request, or a form and a cookie for browsers.
//!
//! A password costs 20 ms of a core to judge, so one that was right is believed for a while, as a
//! keyed digest. Without TLS none is taken unless it is set so. A browser sends what it knows about
//! us with requests that other sites have made it send; those may read nothing, and are refused
//! before they change anything.

use std::sync::Arc;

use base::base64;
use base::clock::monotonic_ns;
use base::limits::HTTP_FORM_MAX;
use vfs::identity::{Person, Refused};
use vfs::share::Service;
use vfs::share::rules::Transport;

use super::exchange::Peer;
use super::request::{Method, Request, form_value, percent_encode};
use super::response::Response;
use super::{SignIn, page, state, status};
use files::Caller;

/// Where the form is.
pub const SIGN_IN: &[u8] = b"/.plimsoll/sign-in";
/// Where one signs out.
pub const SIGN_OUT: &[u8] = b"/.plimsoll/sign-out";
/// The cookie over TLS: it cannot be set from elsewhere (RFC 6265bis §4.1.3.2).
const COOKIE_SECURE: &str = "__Host-plimsoll-files";
/// The cookie without TLS.
const COOKIE_PLAIN: &str = "plimsoll-files";

/// Authenticates the caller of a request.
///
/// # Errors
/// The response to a refused request.
pub async fn caller(peer: &Peer, request: &Request<'_>) -> Result<Caller, Response> {
    let person = person(peer, request).await?;
    let transport = if peer.secure { Transport::Tls } else { Transport::Plain };
    let caller = Caller::new(person, (peer.address, peer.client), transport, Service::Http);
    Ok(caller.secured(peer.security))
}

async fn person(peer: &Peer, request: &Request<'_>) -> Result<Arc<Person>, Response> {
    let identity = &peer.http.files.identity;
    if peer.settings.sign_in == SignIn::None {
        from_here(request, false)?;
        return Ok(identity.anonymous());
    }
    let may_tell = peer.secure || peer.settings.basic_over_plain;
    if let Some(basic) = request.headers.text("authorization").and_then(basic)
        && may_tell
    {
        from_here(request, false)?;
        return by_password(peer, &basic).await;
    }
    if let Some(cookie) = cookie(peer, request)
        && let Some(person) = by_session(peer, cookie)
    {
        from_here(request, true)?;
        return Ok(person);
    }
    if peer.settings.sign_in == SignIn::Optional {
        from_here(request, false)?;
        return Ok(identity.anonymous());
    }
    Err(challenge(peer, request))
}

/// Asks for a name and a password: browsers by a form, programs by the status.
pub fn challenge(peer: &Peer, request: &Request<'_>) -> Response {
    if !peer.secure && !peer.settings.basic_over_plain {
        return status::plain(403, "Passwords are accepted over HTTPS only.");
    }
    let browses = request.method == Method::Get
        && request.headers.members("accept").any(|kind| kind.starts_with(b"text/html"));
    if browses {
        let to = percent_encode(&request.target.path);
        let slash = if request.target.slash && to != "/" { "/" } else { "" };
        let form = format!("/.plimsoll/sign-in?to={to}{slash}");
        return Response::new(303).with("location", form).with("cache-control", "no-store");
    }
    unauthorized(peer, "Sign in, please.")
}

/// 401 with the challenge, which is the same whatever was wrong: the realm names the protection
/// space, and that is all of this origin (RFC 9110 §11.5).
fn unauthorized(peer: &Peer, words: &str) -> Response {
    let realm: String = peer
        .settings
        .name
        .chars()
        .filter(|c| !matches!(c, '"' | '\\') && !c.is_control())
        .collect();
    let challenge = format!("Basic realm=\"{realm}\", charset=\"UTF-8\"");
    status::plain(401, words).with("www-authenticate", challenge)
}

/// That a request which changes something comes from our own pages, or from no page at all.
fn from_here(request: &Request<'_>, cookie: bool) -> Result<(), Response> {
    if request.method.is_safe() {
        return Ok(());
    }
    let headers = &request.headers;
    let scheme = if request.secure { "https://" } else { "http://" };
    let own = |origin: &str| origin.strip_prefix(scheme) == Some(request.host.as_str());
    let good = match (headers.text("origin"), headers.text("sec-fetch-site")) {
        (_, Some(site)) if !matches!(site, "same-origin" | "none") => false,
        (Some(origin), _) => own(origin),
        (None, Some(_)) => true,
        (None, None) => !cookie,
    };
    if good { Ok(()) } else { Err(status::plain(403, "Cross-site request refused.")) }
}

fn cookie<'a>(peer: &Peer, request: &'a Request<'_>) -> Option<&'a str> {
    let name = if peer.secure { COOKIE_SECURE } else { COOKIE_PLAIN };
    let cookies = request.headers.all("cookie").filter_map(|value| std::str::from_utf8(value).ok());
    let mut pairs =
        cookies.flat_map(|value| value.split(';')).filter_map(|c| c.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

fn by_session(peer: &Peer, secret: &str) -> Option<Arc<Person>> {
    let (sessions, identity) = (&peer.http.sessions, &peer.http.files.identity);
    let known = sessions.find(secret.as_bytes(), peer.settings.session_idle, monotonic_ns())?;
    let generation = identity.generation();
    if known.generation == generation {
        return Some(known.person);
    }
    // After a change of the password or the rights the user has to sign in again.
    let person = identity.stands(&known.person).then_some(known.person);
    sessions.renew(secret.as_bytes(), person.clone(), generation);
    person
}

async fn by_password(peer: &Peer, basic: &(String, String)) -> Result<Arc<Person>, Response> {
    let (sessions, identity) = (&peer.http.sessions, &peer.http.files.identity);
    let (name, password) = basic;
    let secret = [b"basic\0", name.as_bytes(), b"\0", password.as_bytes()].concat();
    let generation = identity.generation();
    let known = sessions.find(&secret, peer.settings.session_idle, monotonic_ns());
    if let Some(known) = known.filter(|known| known.generation == generation) {
        return Ok(known.person);
    }
    let person = judge(peer, name, password).await?;
    sessions.keep(&secret, true, (Arc::clone(&person), generation), monotonic_ns());
    Ok(person)
}

async fn judge(peer: &Peer, name: &str, password: &str) -> Result<Arc<Person>, Response> {
    let files = &peer.http.files;
    let from = peer.address.ip().to_canonical();
    let judged = files.sign_ins.password(&files.identity, from, name, password).await;
    judged.map_err(|refused| match refused {
        Refused::Wrong => unauthorized(peer, "Wrong name or password."),
        Refused::Wait(wait) => {
            let seconds = (wait.as_secs() + 1).to_string();
            status::plain(429, &refused.to_string()).with("retry-after", seconds)
        }
    })
}

/// Name and password of a Basic credential.
fn basic(field: &str) -> Option<(String, String)> {
    let (scheme, token) = field.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(decoded(token.trim())?).ok()?;
    let (name, password) = text.split_once(':')?;
    Some((name.to_owned(), password.to_owned()))
}

/// Base 64 with or without padding.
fn decoded(token: &str) -> Option<Vec<u8>> {
    let letters = token.trim_end_matches('=');
    let bytes = base64::decode(letters.as_bytes())?;
    (token.len() - letters.len() <= 2).then_some(bytes)
}

/// Shows the form.
pub fn form(peer: &Peer, request: &Request<'_>) -> Response {
    let to = request.target.parameter("to").unwrap_or_default();
    page::sign_in(&peer.settings.name, home(&to), "")
}

/// Verifies the credentials from the form, and creates a session.
pub async fn sign_in(peer: &Peer, mut request: Request<'_>) -> Response {
    if let Err(refused) = from_here(&request, true) {
        return refused;
    }
    if !peer.secure && !peer.settings.basic_over_plain {
        return status::plain(403, "Passwords are accepted over HTTPS only.");
    }
    let form = match request.body.read_all(HTTP_FORM_MAX).await {
        Ok(form) => String::from_utf8_lossy(&form).into_owned(),
        Err(error) => return error.into(),
    };
    let value = |name| form_value(&form, name).unwrap_or_default();
    let to = value("to");
    match judge(peer, &value("name"), &value("password")).await {
        Err(refused) if refused.status == 401 => {
            let mut again =
                page::sign_in(&peer.settings.name, home(&to), "Wrong name or password.");
            // No challenge: the browser is to show the form, not a window of its own.
            again.status = 403;
            again
        }
        Err(refused) => refused,
        Ok(person) => {
            let secret = state::token(32);
            let generation = peer.http.files.identity.generation();
            let who = (person, generation);
            peer.http.sessions.keep(secret.as_bytes(), false, who, monotonic_ns());
            Response::new(303)
                .with("location", percent_encode(home(&to).as_bytes()))
                .with("set-cookie", set_cookie(peer, &secret))
                .with("cache-control", "no-store")
        }
    }
}

/// Signs out.
pub fn sign_out(peer: &Peer, request: &Request<'_>) -> Response {
    if let Err(refused) = from_here(request, true) {
        return refused;
    }
    if let Some(secret) = cookie(peer, request) {
        peer.http.sessions.forget(secret.as_bytes());
    }
    let gone = format!("{}; Max-Age=0", set_cookie(peer, ""));
    Response::new(303).with("location", "/").with("set-cookie", gone)
}

fn set_cookie(peer: &Peer, secret: &str) -> String {
    let (name, secure) = if peer.secure { (COOKIE_SECURE, "; Secure") } else { (COOKIE_PLAIN, "") };
    format!("{name}={secret}; Path=/; HttpOnly; SameSite=Lax{secure}")
}

/// The page after sign-in: a local path, never another site.
fn home(to: &str) -> &str {
    let own = to.starts_with('/') && !to.starts_with("//") && !to.contains(['\\', '\r', '\n']);
    if own { to } else { "/" }
}

#[cfg(test)]
mod tests;
