//! Answers in XML: multistatus (RFC 4918 §13) and the preconditions of `error` (§16).

use base::limits::{DAV_FAILURES_BYTES_MAX, DAV_FAILURES_MAX, TRANSFER_PATH_MAX};
use vfs::status::Status;
use wire::dav::xml::Writer;

use crate::request::percent_encode;
use crate::response::Response;
use crate::status;
use files::VPath;

/// The type of all bodies of WebDAV.
pub const XML: &str = "application/xml; charset=utf-8";
/// How a multistatus begins.
pub const BEGIN: &str =
    "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">\n";
/// How it ends.
pub const END: &str = "</D:multistatus>\n";

/// A path as a URL: that of a collection ends with a slash (§5.2).
pub fn href(path: &[u8], collection: bool) -> String {
    let mut href = percent_encode(path);
    if collection && !href.ends_with('/') {
        href.push('/');
    }
    href
}

/// Adds `status` (§14.28).
pub fn write_status(w: &mut Writer<'_>, code: u16) {
    match code {
        // That of almost all of a long answer.
        200 => w.raw("<D:status>HTTP/1.1 200 OK</D:status>"),
        code => w.dav("status", &format!("HTTP/1.1 {code} {}", status::reason(code))),
    };
}

/// Adds `response` for a resource that has a status as a whole; `condition` is the name of a
/// precondition that was not met.
pub fn write_failure(out: &mut String, href: &str, code: u16, condition: Option<&str>) {
    let mut w = Writer::new(out);
    w.raw("<D:response>").dav("href", href);
    write_status(&mut w, code);
    if let Some(condition) = condition {
        w.raw("<D:error><D:").raw(condition).raw("/></D:error>");
    }
    w.raw("</D:response>\n");
}

/// A multistatus of failures (§9.6.1, §9.8.5): resources and what became of them.
pub fn failures(all: &[(String, u16)]) -> Response {
    let mut out = BEGIN.to_owned();
    for (href, code) in all {
        let condition = (*code == 423).then_some("lock-token-submitted");
        write_failure(&mut out, href, *code, condition);
    }
    out.push_str(END);
    Response::new(207).bytes(XML, out.into_bytes())
}

/// What could not be done to members of a tree, as far as one answer names it.
#[derive(Default)]
pub struct Failures {
    all: Vec<(String, u16)>,
    bytes: usize,
}

impl Failures {
    /// Notes a member of the tree at `top` by the names that lead to it from there. What is too
    /// deep for any client to name is reported for the collection around it that is not.
    pub fn note<'n>(
        &mut self,
        top: &VPath,
        way: impl Iterator<Item = &'n [u8]>,
        collection: bool,
        status: Status,
    ) {
        let (mut path, mut collection) = (top.to_bytes(), collection);
        for name in way {
            if path.len() + 1 + name.len() > TRANSFER_PATH_MAX {
                collection = true;
                break;
            }
            path.push(b'/');
            path.extend_from_slice(name);
        }
        let href = href(&path, collection);
        let again = self.all.last().is_some_and(|(last, _)| *last == href);
        if !self.is_full() && !again {
            self.bytes += href.len();
            self.all.push((href, status::of(status)));
        }
    }

    /// Whether there is room for no more: there is no sense in going on.
    pub fn is_full(&self) -> bool {
        self.all.len() >= DAV_FAILURES_MAX || self.bytes >= DAV_FAILURES_BYTES_MAX
    }

    /// Whether everything could be done.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The multistatus that names them.
    pub fn answer(&self) -> Response {
        failures(&self.all)
    }
}

/// A refusal that names the precondition which was not met, and the resources that it is about.
pub fn error(code: u16, condition: &str, hrefs: &[String]) -> Response {
    let mut out = Writer::DECLARATION.to_owned();
    let mut w = Writer::new(&mut out);
    w.raw("<D:error xmlns:D=\"DAV:\"><D:").raw(condition);
    if hrefs.is_empty() {
        w.raw("/>");
    } else {
        w.raw(">");
        for href in hrefs {
            w.dav("href", href);
        }
        w.raw("</D:").raw(condition).raw(">");
    }
    w.raw("</D:error>\n");
    Response::new(code).bytes(XML, out.into_bytes())
}
