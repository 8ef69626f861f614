//! What every request passes: who is it, may it come from another site, and the headers that tell
//! the browser what our pages may do.

use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::{ApiError, Control, Peer};

/// Name of the session cookie.
pub const COOKIE_NAME: &str = "plimsoll_session";

/// Pages may load from us only; no other page may frame them or receive their forms.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; object-src 'none'; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Who is asking, once that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The signed-in name.
    pub user: String,
}

/// Finds out who is asking, by the local socket, a bearer token or a session cookie.
pub fn identify(control: &Control, peer: Option<Peer>, headers: &HeaderMap) -> Option<Identity> {
    let named = |user: &str| Some(Identity { user: user.to_owned() });
    if let Some(Peer::Local { uid }) = peer {
        return named(&if uid == 0 { "root".to_owned() } else { format!("uid {uid}") });
    }
    if let Some(value) = headers.get(AUTHORIZATION) {
        let token = value.to_str().ok().and_then(|v| v.strip_prefix("Bearer "))?;
        return if same(token.trim(), &control.api_token) { named("api-token") } else { None };
    }
    let token = session_token(headers)?;
    let user = control.sessions().user(token, control.clock.monotonic_ns())?;
    named(&user)
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

/// Compares secrets in a time that depends on their length only.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |diff, (x, y)| diff | (x ^ y)) == 0
}

/// Middleware: 401 unless someone is signed in.
pub async fn require_identity(
    State(control): State<Arc<Control>>,
    peer: Option<Extension<Peer>>,
    mut request: Request,
    next: Next,
) -> Response {
    match identify(&control, peer.map(|p| p.0), request.headers()) {
        Some(identity) => {
            request.extensions_mut().insert(identity);
            next.run(request).await
        }
        None => ApiError::not_signed_in().into_response(),
    }
}

/// Middleware: a change must say that its body is JSON, which another site's page cannot do
/// without asking first, and must not come from another site by the browser's own word. The
/// cookie's SameSite=Strict is the first line; this is the second.
pub async fn forgery(request: Request, next: Next) -> Response {
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let foreign = request
        .headers()
        .get("sec-fetch-site")
        .is_some_and(|site| site != "same-origin" && site != "none");
    if changes && foreign {
        let hint = "open the page of this server itself";
        let failed = "the request comes from another site's page";
        return ApiError::new(StatusCode::FORBIDDEN, "make a change", failed, hint).into_response();
    }
    if request.method() == Method::POST && !is_json(request.headers()) {
        let hint = "send content-type: application/json";
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return ApiError::new(status, "read the body", "it is not declared as JSON", hint)
            .into_response();
    }
    next.run(request).await
}

fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.split(';').next())
        .is_some_and(|v| v.trim().eq_ignore_ascii_case("application/json"))
}

/// Middleware: security headers on everything; nothing below `/api` is kept in a cache.
pub async fn headers(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let keep = !(path.starts_with("/api") || path.starts_with("/login"));
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if !keep {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}
