//! The sender of a request, its credential, and its permissions.

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE};

use super::route::Needs;
use super::{ApiError, Control, Peer};
use crate::access::{Level, Rights};
use crate::state::files::digest;
use crate::tree::viewer::Viewer;
use crate::tree::{Actor, Connection};

/// Name of the session cookie. With this prefix a browser takes it over TLS only, from this very
/// host, and for all of its paths (RFC 6265bis §4.1.3.2): no other host below the same domain can
/// set one in its place.
pub const COOKIE_NAME: &str = "__Host-plimsoll_session";

/// The authenticated sender of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The signed-in name, `token NAME`, or the user at the local socket.
    pub user: String,
    /// From where: an address, or `local`.
    pub from: String,
    /// The credential.
    pub way: Credential,
    /// Its permissions.
    pub rights: Rights,
    /// The connection of the request.
    pub connection: Connection,
}

/// The credential of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// The uid that the kernel reports for the local socket.
    Local,
    /// A bearer token.
    Token,
    /// A session, by its public name.
    Session(String),
}

/// Whether finding a session counts as its use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionUse {
    /// A request has come.
    Now,
    /// The request came before, and its response continues.
    Before,
}

/// Authenticates a request, by the local socket, a bearer token or a session cookie.
pub fn identify(
    control: &Control,
    peer: Option<Peer>,
    headers: &HeaderMap,
    asked: SessionUse,
) -> Option<Identity> {
    let from = match peer {
        Some(Peer::Local { uid }) => {
            let user = if uid == 0 { "root".to_owned() } else { format!("uid {uid}") };
            let (from, rights) = ("local".to_owned(), Rights::all());
            let connection = Connection::default();
            return Some(Identity { user, from, way: Credential::Local, rights, connection });
        }
        Some(Peer::Remote(ip)) => ip.to_canonical().to_string(),
        None => String::new(),
    };
    if let Some(value) = headers.get(AUTHORIZATION) {
        let secret = value.to_str().ok().and_then(|v| v.strip_prefix("Bearer "))?.trim();
        let (user, rights) = token(control, secret)?;
        let connection = Connection::default();
        return Some(Identity { user, from, way: Credential::Token, rights, connection });
    }
    let (token, now) = (session_token(headers)?, control.clock.monotonic_ns());
    let session = match asked {
        SessionUse::Now => control.sessions().find(token, now),
        SessionUse::Before => control.sessions().look(token, now),
    }?;
    // Read for each request: the loss of a role takes effect at once.
    let rights = control.accounts.rights(&session.user)?;
    let way = Credential::Session(session.id);
    Some(Identity { user: session.user, from, way, rights, connection: Connection::default() })
}

fn token(control: &Control, secret: &str) -> Option<(String, Rights)> {
    // Digests are compared, so the timing reveals nothing about the secret.
    if digest(secret) == control.api_token {
        return Some(("api-token".to_owned(), Rights::all()));
    }
    let (name, rights) = control.accounts.token(secret, control.now_s())?;
    Some((format!("token {name}"), rights))
}

/// The session token in the request's cookies.
pub fn session_token(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, _)| *name == COOKIE_NAME)
        .map(|(_, token)| token)
}

/// The error for a sender without the permission of `needs`.
pub(super) fn refusal(needs: Needs, identity: Option<&Identity>) -> Option<ApiError> {
    match (needs, identity) {
        (Needs::Nothing, _) | (Needs::SignedIn | Needs::Nodes, Some(_)) => None,
        (Needs::May(scope, level), Some(identity)) => identity.refusal(scope, level),
        (Needs::SignedIn | Needs::Nodes | Needs::May(..), None) => Some(ApiError::not_signed_in()),
    }
}

impl Viewer for Identity {
    fn may_read(&self, scope: &str) -> bool {
        self.rights.may(scope, Level::Read)
    }

    fn why_not(&self, scope: &str) -> Option<String> {
        let why = format!("{} has no role with {scope}:change", self.user);
        (!self.rights.may(scope, Level::Change)).then_some(why)
    }

    fn rights(&self) -> Rights {
        self.rights.clone()
    }
}

impl Identity {
    /// Its name and source, for the audit log.
    pub fn actor(&self) -> Actor {
        Actor::new(&self.user, &self.from).over(self.connection)
    }

    /// The error for a sender without `level` in `scope`.
    pub fn refusal(&self, scope: &str, level: Level) -> Option<ApiError> {
        (!self.rights.may(scope, level)).then(|| ApiError::forbidden(&self.user, scope, level))
    }
}
