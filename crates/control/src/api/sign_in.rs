//! Signing in and out: passwords, one-time URLs, the session cookie.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Extension, Query, Request, State};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use base::refusals::Limit;
use serde::{Deserialize, Serialize};

use super::identity::{COOKIE_NAME, session_token};
use super::queue::{self, QueuePermit};
use super::{ApiError, Control, Credential, Identity, Peer, ui};
use crate::access::Rights;
use crate::accounts::Verdict;
use crate::listen::node::ADMINISTRATION;
use crate::state::files::random_hex;
use crate::tree::Actor;

/// Body of `POST /api/v1/session`.
#[derive(Deserialize)]
pub struct SignIn {
    user: String,
    password: String,
}

/// Answer about a session.
#[derive(Serialize)]
struct SignedIn {
    user: String,
    /// `session`, `token` or `local`.
    via: &'static str,
    permissions: Vec<String>,
}

/// `POST /api/v1/session`.
pub async fn sign_in(
    State(control): State<Arc<Control>>,
    peer: Option<Extension<Peer>>,
    body: Result<Json<SignIn>, JsonRejection>,
) -> Result<Response, ApiError> {
    let Json(ask) = body.map_err(|e| bad_body(&e, r#"send {"user": "…", "password": "…"}"#))?;
    let peer = address(peer.map(|p| p.0));
    let turn = turn(&control).await?;
    // Looked at after the turn came: requests sent at once do not all get their free try.
    let wait = control.throttle().must_wait(peer, &ask.user, control.clock.monotonic_ns());
    if let Some(wait) = wait {
        return Err(ApiError::throttled(wait));
    }
    let checker = control.clone();
    let (user, rights) = tokio::task::spawn_blocking(move || {
        let rights = judge(&checker, &ask, peer);
        // Held until the password is checked and counted, also when the client has gone.
        drop(turn);
        (ask.user, rights)
    })
    .await
    .map_err(|e| ApiError::failed("check the password", &e))?;
    let (rights, version) = rights?;
    note(&control, &user, peer, "sign-in", "password").await;
    let Some(cookie) = open_session(&control, (&user, version), peer) else {
        note(&control, &user, peer, "sign-in refused", "changed meanwhile").await;
        return Err(wrong_password());
    };
    let who = SignedIn { user, via: "session", permissions: rights.names() };
    Ok(([(SET_COOKIE, cookie)], Json(who)).into_response())
}

/// Checks a password, counts it for the throttle, and records a refusal. The rights of the user,
/// and its version before. For a thread that may block.
fn judge(control: &Control, ask: &SignIn, peer: IpAddr) -> Result<(Rights, Option<u64>), ApiError> {
    let user = &*ask.user;
    let version = control.accounts.version(user);
    let verdict = control.accounts.judge(user, &ask.password);
    let now = control.clock.monotonic_ns();
    match verdict {
        Verdict::Right => control.throttle().succeeded(peer, user, now),
        // A user of file services could fill the audit log with refusals.
        Verdict::DataOnly | Verdict::Wrong => control.throttle().failed(peer, user, now),
    }
    if verdict == Verdict::Wrong {
        // Users sometimes type passwords into the name field: only names that exist are logged.
        let known = control.accounts.source(user).is_some();
        let name = if known { user } else { "(unknown name)" };
        record(control, name, peer, "sign-in refused", "");
        return Err(wrong_password());
    }
    match (verdict, control.accounts.rights(user)) {
        (Verdict::Right, Some(rights)) => Ok((rights, version)),
        _ => {
            record(control, user, peer, "sign-in refused", "file services only");
            Err(data_only(user))
        }
    }
}

/// As [`record`], for a thread that must not block.
async fn note(
    control: &Arc<Control>,
    user: &str,
    from: IpAddr,
    action: &'static str,
    how: &'static str,
) {
    let (control, user) = (control.clone(), user.to_owned());
    let write = move || record(&control, &user, from, action, how);
    // Its panic was reported by the hook.
    let _ = tokio::task::spawn_blocking(write).await;
}

/// Records it in the audit log. A full disk does not prevent the sign-in: the administrator may
/// need it to free space.
fn record(control: &Control, user: &str, from: IpAddr, action: &str, how: &str) {
    match (action, how) {
        ("sign-in refused", _) => base::warning!(ADMINISTRATION, "{action}: {user} from {from}"),
        (_, "") => base::info!(ADMINISTRATION, "{action}: {user} from {from}"),
        _ => base::info!(ADMINISTRATION, "{action}: {user} from {from} by {how}"),
    }
    let who = Actor::new(user, &from.to_string());
    if let Err(e) = control.tree.audit().note(&who, action, how) {
        base::error!(ADMINISTRATION, "a {action} could not be recorded in the audit log: {e}");
    }
}

fn wrong_password() -> ApiError {
    let hint = "check both; the first start printed them, and serve --user sets them";
    let failed = "the user name or the password is wrong";
    ApiError::new(StatusCode::UNAUTHORIZED, "sign in", failed, hint)
}

fn data_only(user: &str) -> ApiError {
    let failed = format!("{user} has file services only, no administration");
    let hint = "an administrator can change the user's kind";
    ApiError::new(StatusCode::FORBIDDEN, "sign in", &failed, hint)
}

/// `GET /api/v1/session`.
pub async fn current(Extension(identity): Extension<Identity>) -> Response {
    let via = match identity.way {
        Credential::Local => "local",
        Credential::Token => "token",
        Credential::Session(_) => "session",
    };
    Json(SignedIn { user: identity.user, via, permissions: identity.rights.names() })
        .into_response()
}

/// `DELETE /api/v1/session`.
pub async fn sign_out(
    State(control): State<Arc<Control>>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
) -> Response {
    if let Some(token) = session_token(&headers) {
        let session = control.sessions().find(token, control.clock.monotonic_ns());
        control.sessions().close(token);
        if let Some(session) = session {
            note(&control, &session.user, address(peer.map(|p| p.0)), "sign-out", "").await;
        }
    }
    let gone = format!("{COOKIE_NAME}=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Strict");
    (StatusCode::NO_CONTENT, [(SET_COOKIE, gone)]).into_response()
}

/// Query of `GET /login`.
#[derive(Deserialize)]
pub struct Login {
    once: Option<String>,
}

/// `GET /login`: with `once`, the one-time sign-in; without, the interface's own page.
pub async fn login(
    State(control): State<Arc<Control>>,
    peer: Option<Extension<Peer>>,
    Query(login): Query<Login>,
    request: Request,
) -> Response {
    let Some(token) = login.once else { return ui::file(request).await };
    let used = || (StatusCode::FORBIDDEN, Html(include_str!("used.html"))).into_response();
    let taken = control.accounts.take_once(&token, control.clock.monotonic_ns());
    let Some((user, version)) = taken else { return used() };
    let from = address(peer.map(|p| p.0));
    note(&control, &user, from, "sign-in", "one-time URL").await;
    let Some(cookie) = open_session(&control, (&user, version), from) else {
        note(&control, &user, from, "sign-in refused", "changed meanwhile").await;
        return used();
    };
    let to = [(SET_COOKIE, cookie), (LOCATION, "/".to_owned())];
    (StatusCode::SEE_OTHER, to).into_response()
}

/// Opens a session of a user with the version that has signed in; `None`: it has changed since.
fn open_session(control: &Control, who: (&str, Option<u64>), from: IpAddr) -> Option<String> {
    let token = random_hex::<32>();
    if !control.accounts.open_session(&token, who, from, control.clock.monotonic_ns()) {
        return None;
    }
    let age = control.sessions().lifetime().age.as_secs();
    Some(format!("{COOKIE_NAME}={token}; Path=/; Max-Age={age}; HttpOnly; Secure; SameSite=Strict"))
}

/// Waits for the permission to compute a password hash, in a bounded queue.
async fn turn(control: &Control) -> Result<QueuePermit, ApiError> {
    let permit = control.hashing.wait(queue::client()).await;
    permit.ok_or_else(|| {
        Limit::AdministratorSignIns.count();
        ApiError::busy("sign in", "too many sign-ins are queued")
    })
}

/// The address that wrong passwords are held against.
fn address(peer: Option<Peer>) -> IpAddr {
    match peer {
        Some(Peer::Remote(ip)) => ip.to_canonical(),
        _ => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    }
}

/// 400 for a body that is not what the path takes.
pub fn bad_body(error: &JsonRejection, hint: &str) -> ApiError {
    ApiError::new(error.status(), "read the body", &error.body_text(), hint)
}
