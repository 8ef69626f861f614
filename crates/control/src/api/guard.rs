//! The checks of every request: the permission of its sender, requests from other sites, and the
//! headers that restrict our pages in the browser.

use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, ORIGIN,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base::limits::API_BODY_TIMEOUT;
use base::permits::PermitKey;

use super::arrival::in_time;
use super::identity::{SessionUse, identify, refusal};
use super::reader::Reader;
use super::route::Needs;
use super::{ApiError, Control, Peer};
use crate::tree::Connection;

/// Pages may load from us only; no other page may frame them or receive their forms.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; object-src 'none'; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The requirements of a route.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The required permission.
    pub needs: Needs,
    /// The permitted query parameters.
    pub query: &'static [&'static str],
}

/// Middleware: 401 without a sign-in, 403 without the permission for this route, 400 for an unknown
/// parameter. A stream ends when its reader loses the permission.
pub async fn permit(
    State((control, rules)): State<(Arc<Control>, Rules)>,
    peer: Option<Extension<Peer>>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = peer.map(|peer| peer.0);
    let identity = identify(&control, peer, request.headers(), SessionUse::Now);
    let refused = refusal(rules.needs, identity.as_ref())
        .or_else(|| wrong_parameter(rules.query, request.uri().query().unwrap_or("")))
        .or_else(|| signed_number(request.uri().query().unwrap_or("")));
    if let Some(refused) = refused {
        return refused.into_response();
    }
    if let Some(mut identity) = identity {
        if let Some(connection) = request.extensions().get::<Connection>() {
            identity.connection = *connection;
        }
        if let Some(permit) = request.extensions().get::<PermitKey>() {
            permit.keep();
        }
        request.extensions_mut().insert(identity);
    }
    let reader = Reader::new(&control, rules.needs, peer, request.headers());
    reader.guard(next.run(in_time(request, API_BODY_TIMEOUT)).await)
}

/// The error for the first parameter that is none of `known`: a wrong name must not read as if it
/// had been heeded.
fn wrong_parameter(known: &[&str], query: &str) -> Option<ApiError> {
    let names = query.split('&').filter_map(|pair| pair.split('=').next());
    let wrong = names.filter(|name| !name.is_empty()).find(|name| !known.contains(name))?;
    let failed = format!("unknown parameter {wrong:?}");
    let hint = match known {
        [] => "this path has no parameters".to_owned(),
        known => format!("parameters of this path: {}", known.join(", ")),
    };
    Some(ApiError::wrong("read the address", &failed, &hint))
}

/// Parameters that are numbers, on every path that has them.
const NUMBERS: [&str; 9] =
    ["from", "to", "since", "until", "limit", "top", "step", "depth", "revision"];

/// The error for the first number with a plus sign, which `parse` alone would take. A sign that is
/// not encoded is a space.
fn signed_number(query: &str) -> Option<ApiError> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let mut numbers = pairs.filter(|(name, _)| NUMBERS.contains(name));
    let (name, value) = numbers.find(|(_, value)| value.to_ascii_lowercase().contains("%2b"))?;
    let value = value.replace("%2b", "+").replace("%2B", "+");
    let failed = format!("{name} is {value:?}: a number has no plus sign");
    Some(ApiError::wrong("read the address", &failed, "leave out the sign"))
}

/// Middleware: 421 for a request that takes this host for another one (RFC 9110 §15.5.20). A page
/// of another site may have its name lead to our address, and is then of one origin with us in the
/// eyes of the browser. Programs with a token, and the local socket, are no browsers.
pub async fn own_host(
    State(control): State<Arc<Control>>,
    request: Request,
    next: Next,
) -> Response {
    let is_remote = matches!(request.extensions().get::<Peer>(), Some(Peer::Remote(_)));
    let headers = request.headers();
    let host = headers.get(HOST).map_or(Ok(""), HeaderValue::to_str).unwrap_or("?");
    if is_remote && headers.get(AUTHORIZATION).is_none() && !control.appliance.is_own_host(host) {
        let failed = format!("{host} is not a name of this server");
        let hint = "use the address, or add the name to names in /configuration/certificates";
        let status = StatusCode::MISDIRECTED_REQUEST;
        return ApiError::new(status, "answer", &failed, hint).into_response();
    }
    next.run(request).await
}

/// Middleware: a change must declare its body as JSON, which a page of another site cannot do
/// without a preflight request, and must not come from another site according to the browser. The
/// cookie's SameSite=Strict is the first line; this is the second.
pub async fn forgery(request: Request, next: Next) -> Response {
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if changes && is_foreign(request.headers()) {
        let hint = "open a page of this server";
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

/// Whether the browser reports that a page of another site has sent this. Browsers without
/// `Sec-Fetch-Site` send `Origin`, which must then name the host of the request.
fn is_foreign(headers: &HeaderMap) -> bool {
    if let Some(site) = headers.get("sec-fetch-site") {
        return site != "same-origin" && site != "none";
    }
    let Some(origin) = headers.get(ORIGIN) else { return false };
    let named = origin.to_str().ok().and_then(|o| o.split_once("://")).map(|(_, host)| host);
    let asked = headers.get(HOST).and_then(|host| host.to_str().ok());
    !matches!((named, asked), (Some(named), Some(asked)) if named.eq_ignore_ascii_case(asked))
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
    // A page that is not part of the interface has its own, stricter policy.
    headers.entry(CONTENT_SECURITY_POLICY).or_insert_with(|| HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    // No window of another site keeps a grip on ours, and none may read what we send.
    for name in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
        headers.insert(name, HeaderValue::from_static("same-origin"));
    }
    if !keep {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}
