//! GET and HEAD of files: conditions, ranges, and headers that keep what is served from acting on
//! our origin.

use std::rc::Rc;

use base::random::{Random, SystemRandom};

use super::attachment::attachment;
use super::exchange::Exchange;
use super::request::{Method, Request, percent_encode};
use super::response::{FileParts, Payload, Response};
use super::select::{self, Selection, Validators, Verdict};
use super::{archive, date, kind, listing, status};
use files::transfer::Direction;
use files::{Links, Node, PathTarget, VPath};

/// Answers GET and HEAD.
pub async fn get(cx: &Rc<Exchange>, request: &Request<'_>) -> Response {
    let path = match VPath::parse(&request.target.path) {
        Ok(path) => path,
        Err(_) => return status::plain(404, ""),
    };
    let node = match cx.core.find(&cx.caller, &path, Links::Follow).await {
        Ok(PathTarget::Root) => return listing::shares(cx, request),
        Ok(PathTarget::Node(node)) => node,
        Err(error) => return cx.refuse(error),
    };
    cx.of(&node);
    if !node.is_dir() {
        // `/file/` is not the name of a file.
        if request.target.slash {
            return status::plain(404, "");
        }
        return file(cx, request, (&path, node)).await;
    }
    if request.target.parameter("archive").is_some() {
        if request.method == Method::Get {
            cx.transfers(Direction::Download, &path);
        }
        return archive::zip(cx, (&path, node));
    }
    if !request.target.slash {
        let query = &request.target.query;
        let mark = if query.is_empty() { "" } else { "?" };
        let there = format!("{}/{mark}{query}", percent_encode(&request.target.path));
        return Response::new(308).with("location", there);
    }
    Box::pin(listing::directory(cx, request, (&path, node))).await
}

async fn file(cx: &Rc<Exchange>, request: &Request<'_>, (path, node): (&VPath, Node)) -> Response {
    if request.method == Method::Get {
        cx.transfers(Direction::Download, path);
    }
    let reader = match cx.core.reader_at(&cx.caller, path, node).await {
        Ok(reader) => reader,
        // A device or a socket has no data to send.
        Err(vfs::status::Status::Invalid) => return status::plain(403, "Not a file."),
        Err(error) => return cx.refuse(error),
    };
    let attr = &reader.node().attr;
    let (size, now) = (attr.size, Validators::of(attr));
    let verdict = select::judge(&request.headers, request.method, Some(&now));
    let validated = |response: Response| {
        response
            .with("etag", now.etag.clone())
            .with("last-modified", date::write(now.modified))
            .with("cache-control", "private, no-cache")
            .with("vary", "authorization, cookie")
    };
    match verdict {
        Verdict::NotModified => return validated(Response::new(304)),
        Verdict::Failed => return status::plain(412, ""),
        Verdict::Go => {}
    }
    let kind = kind::of(path.name().unwrap_or_default());
    // A range is defined for GET only (RFC 9110 §14.2); HEAD returns the header
    // section of the same GET.
    let response = match select::wanted(&request.headers, size, &now) {
        Selection::Nothing => {
            return status::plain(416, "").with("content-range", format!("bytes */{size}"));
        }
        Selection::All => {
            let parts = vec![(Vec::new(), 0, size)];
            let mut response = Response::new(200).with("content-type", kind);
            response.payload =
                Payload::File(Box::new(FileParts { reader, parts, after: Vec::new() }));
            response
        }
        Selection::Ranges(parts) => {
            partial(FileParts { reader, parts: bare(parts), after: Vec::new() }, size, kind)
        }
    };
    if let Payload::File(file) = &response.payload {
        let start = file.parts.first().map_or(0, |part| part.1);
        cx.range(start, file.parts.iter().map(|(_, from, to)| to - from).sum(), false);
    }
    let download = request.target.parameter("download").is_some();
    validated(shown(response, path, kind, download)).with("accept-ranges", "bytes")
}

fn bare(parts: Vec<(u64, u64)>) -> Vec<(Vec<u8>, u64, u64)> {
    parts.into_iter().map(|(start, end)| (Vec::new(), start, end)).collect()
}

/// 206 with one part, or several in a multipart (RFC 9110 §14.6).
fn partial(mut file: FileParts, size: u64, kind: &'static str) -> Response {
    if let [(_, start, end)] = file.parts.as_slice() {
        let range = format!("bytes {start}-{}/{size}", end - 1);
        let mut response =
            Response::new(206).with("content-type", kind).with("content-range", range);
        response.payload = Payload::File(Box::new(file));
        return response;
    }
    let boundary = format!("plimsoll-{:016x}", SystemRandom.next_u64());
    for (before, start, end) in &mut file.parts {
        let last = *end - 1;
        let text = format!(
            "\r\n--{boundary}\r\nContent-Type: {kind}\r\n\
             Content-Range: bytes {start}-{last}/{size}\r\n\r\n"
        );
        *before = text.into_bytes();
    }
    file.after = format!("\r\n--{boundary}--\r\n").into_bytes();
    let multipart = format!("multipart/byteranges; boundary={boundary}");
    let mut response = Response::new(206).with("content-type", multipart);
    response.payload = Payload::File(Box::new(file));
    response
}

/// What a file may do in a browser: be looked at, if it is of a kind that only can be; otherwise it
/// is saved. Scripts and styles within it never run on our origin.
fn shown(response: Response, path: &VPath, kind: &str, download: bool) -> Response {
    let policy = match kind {
        // The browser's own viewer does not start in a sandbox.
        "application/pdf" => "default-src 'none'; style-src 'unsafe-inline'; object-src 'self'",
        _ => {
            "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; media-src 'self'; \
             sandbox"
        }
    };
    let response = response.with("content-security-policy", policy);
    if kind::is_passive(kind) && !download {
        return response;
    }
    response.with("content-disposition", attachment(path.name().unwrap_or_default()))
}
