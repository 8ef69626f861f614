//! What of a file is to be answered, pure: validators, conditions (RFC 9110 §13) and ranges (§14).

use std::fmt::Write as _;

use vfs::attr::{Attr, FileType};
pub use wire::http::select::Selection;
use wire::http::select::{self, Tag};

use super::date;
use super::request::{Headers, Method};

/// Distinguishes the states of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validators {
    /// The entity tag, with its quotes; strong: another one after each change.
    pub etag: String,
    /// Last change of the data, in seconds since the epoch.
    pub modified: i64,
}

impl Validators {
    /// Those of what is no file: it is there, for `*`, but no entity tag names it, and no time is
    /// known of it.
    pub fn of_collection() -> Self {
        Self { etag: String::new(), modified: i64::MIN }
    }

    /// Those of what is there.
    pub fn of(attr: &Attr) -> Self {
        if attr.kind != FileType::Regular {
            return Self::of_collection();
        }
        let mut etag = String::new();
        put_etag(attr, "\"", &mut etag);
        Self { etag, modified: attr.mtime.sec }
    }
}

/// Adds the entity tag of a file, within quotes that are written so.
pub fn put_etag(attr: &Attr, quote: &str, out: &mut String) {
    let Attr { fileid, size, change, .. } = attr;
    let _ = write!(out, "{quote}{fileid:x}-{size:x}-{change:x}{quote}");
}

/// The result of the conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Perform the method.
    Go,
    /// 304: the client has it.
    NotModified,
    /// 412: it is not as the client thinks.
    Failed,
}

/// Judges the conditions of a request, in the order of RFC 9110 §13.2.2, on what is there now.
pub fn judge(headers: &Headers, method: Method, now: Option<&Validators>) -> Verdict {
    let reads = matches!(method, Method::Get | Method::Head);
    if headers.get("if-match").is_some() {
        let matches = |tag: Tag<'_>| match (tag, now) {
            (Tag::Any, now) => now.is_some(),
            (Tag::Entity { tag, weak }, Some(now)) => !weak && tag == now.etag.as_bytes(),
            (Tag::Entity { .. }, None) => false,
        };
        if !tags(headers, "if-match").any(matches) {
            return Verdict::Failed;
        }
    } else if let Some(then) = headers.text("if-unmodified-since").and_then(date::parse)
        && now.is_some_and(|now| now.modified > then)
    {
        return Verdict::Failed;
    }
    if headers.get("if-none-match").is_some() {
        let matches = |tag: Tag<'_>| match (tag, now) {
            (Tag::Any, now) => now.is_some(),
            (Tag::Entity { tag, .. }, Some(now)) => tag == now.etag.as_bytes(),
            (Tag::Entity { .. }, None) => false,
        };
        if tags(headers, "if-none-match").any(matches) {
            return if reads { Verdict::NotModified } else { Verdict::Failed };
        }
    } else if reads
        && let Some(then) = headers.text("if-modified-since").and_then(date::parse)
        && now.is_some_and(|now| now.modified <= then)
    {
        return Verdict::NotModified;
    }
    Verdict::Go
}

/// The conditions of a request that changes something, to be judged again when it does: its body
/// may take long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conditions(Headers);

impl Conditions {
    /// Those of a request; `None` if it has none.
    pub fn of(headers: &Headers) -> Option<Self> {
        let mut own = Headers::default();
        for name in ["if-match", "if-none-match", "if-unmodified-since"] {
            for value in headers.all(name) {
                own.push(name.as_bytes(), value);
            }
        }
        (own != Headers::default()).then_some(Self(own))
    }

    /// Whether they hold for what is there now.
    pub fn hold(&self, now: Option<&Validators>) -> bool {
        judge(&self.0, Method::Put, now) == Verdict::Go
    }
}

/// The tags of all fields of this name.
fn tags<'a>(headers: &'a Headers, name: &'a str) -> impl Iterator<Item = Tag<'a>> {
    headers.all(name).flat_map(select::tags)
}

/// The result of `Range` and `If-Range`.
pub fn wanted(headers: &Headers, size: u64, now: &Validators) -> Selection {
    let mut ranges = headers.all("range");
    let (Some(range), None) = (ranges.next(), ranges.next()) else { return Selection::All };
    if still_holds(headers, now) { select::ranges(range, size) } else { Selection::All }
}

/// Whether the parts that the client has are of the file as it is now (`If-Range`).
fn still_holds(headers: &Headers, now: &Validators) -> bool {
    match headers.text("if-range") {
        None => true,
        Some(tag) if tag.starts_with('"') => tag == now.etag,
        Some(other) => date::parse(other) == Some(now.modified),
    }
}

#[cfg(test)]
mod tests;
