//! The browser interface, embedded: the build output of `ui/`, or a page with instructions to build
//! it.

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use base::text::hex;
use rust_embed::{EmbeddedFile, RustEmbed};

use super::ApiError;

#[derive(RustEmbed)]
#[folder = "../../ui/dist"]
#[allow_missing = true]
struct Dist;

/// A file of the interface. A path without a file is a page of the interface, which its own router
/// handles; a missing file below `assets/` is an error, or a stale page would run on nothing.
pub async fn file(request: Request) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return ApiError::wrong_method().into_response();
    }
    let path = request.uri().path().trim_start_matches('/');
    let header = |name| request.headers().get(name).and_then(|v| v.to_str().ok()).unwrap_or("");
    let packed = header(ACCEPT_ENCODING).contains("gzip");
    let known = header(IF_NONE_MATCH);
    if !path.is_empty()
        && let Some(response) = embedded(path, packed, known)
    {
        return response;
    }
    if path.starts_with("assets/") || path.starts_with("api/") {
        return (StatusCode::NOT_FOUND, "no such file\n").into_response();
    }
    embedded("index.html", packed, known)
        .unwrap_or_else(|| Html(include_str!("not_built.html")).into_response())
}

fn embedded(path: &str, packed: bool, known: &str) -> Option<Response> {
    // The build may leave a compressed copy next to a file.
    let copy = if packed { Dist::get(&format!("{path}.gz")) } else { None };
    let encoding = copy.is_some().then_some("gzip");
    let EmbeddedFile { data, metadata, .. } = copy.or_else(|| Dist::get(path))?;
    let hash = metadata.sha256_hash();
    let tag = format!("\"{}\"", hex(&hash[..12]));
    // Vite puts a hash of the content into the names below assets/.
    let caching = if path.starts_with("assets/") {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let mut response = if known == tag {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let body = match data {
            std::borrow::Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            std::borrow::Cow::Owned(bytes) => Bytes::from(bytes),
        };
        ([(CONTENT_TYPE, media_type(path))], body).into_response()
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if let Some(encoding) = encoding {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    Some(response)
}

/// The types that a build of the interface contains.
pub(super) fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
