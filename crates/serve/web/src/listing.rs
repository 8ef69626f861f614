//! Directories as pages and as JSON: sorted, streamed, readable without a script.
//!
//! What a page costs is bounded: a directory of more than [`HTTP_LISTING_PAGE`] entries is shown in
//! pages with links to each other ([`pages`]), one of more than [`HTTP_LISTING_SORTED_MAX`] in the
//! order of the file system, each page from the cookie of the last one on. JSON has all entries.

mod pages;

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;

use base::limits::{
    HTTP_LISTING_INLINE_MAX, HTTP_LISTING_PAGE, HTTP_LISTING_SORTED_MAX, HTTP_PIECE,
    TRANSFER_LIST_BATCH,
};
use vfs::attr::{Attr, FileType};
use vfs::fs::{Context, DirEntry, access};

use self::pages::{PageRequest, Pages};
use super::exchange::Exchange;
use super::page::{self, escape};
use super::request::{Local, Request, percent_encode};
use super::response::{Broken, Produce, Response};
use super::{date, status};
use engine::transport::budget::ReservedBytes;
use files::list::{Listed, Listing};
use files::{Node, VPath};

/// By what a listing is sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Name, whatever the case; digits count as numbers.
    Name,
    /// Size.
    Size,
    /// Time of last change.
    Time,
}

/// In which order a listing is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// By what.
    pub by: By,
    /// Whether the largest comes first.
    pub down: bool,
}

impl Order {
    fn of(request: &Request<'_>) -> Self {
        let by = match request.target.parameter("sort").as_deref() {
            Some("size") => By::Size,
            Some("time") => By::Time,
            _ => By::Name,
        };
        Self { by, down: request.target.parameter("order").as_deref() == Some("down") }
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The name.
    pub name: Vec<u8>,
    /// What it is.
    pub kind: FileType,
    /// Bytes.
    pub size: u64,
    /// Time of last change, in seconds since the epoch.
    pub modified: i64,
}

impl Row {
    fn new(name: Vec<u8>, attr: Option<&Attr>) -> Self {
        let kind = attr.map_or(FileType::Regular, |a| a.kind);
        let (size, modified) = attr.map_or((0, 0), |a| (a.size, a.mtime.sec));
        Self { name, kind, size, modified }
    }

    /// Bytes that it takes in memory.
    fn weight(&self) -> usize {
        size_of::<Self>() + self.name.capacity()
    }

    fn is_dir(&self) -> bool {
        self.kind == FileType::Directory
    }

    fn kind(&self) -> &'static str {
        match self.kind {
            FileType::Directory => "directory",
            FileType::Regular => "file",
            FileType::Symlink => "link",
            _ => "other",
        }
    }

    fn href(&self) -> String {
        // A colon in the first part of a relative reference would make it a scheme.
        let slash = if self.is_dir() { "/" } else { "" };
        format!("./{}{slash}", percent_encode(&self.name))
    }
}

/// Orders names naturally: `file 9` before `File 10`.
pub fn by_name(a: &[u8], b: &[u8]) -> Ordering {
    let (mut x, mut y) = (a, b);
    loop {
        let ordering = match (x.split_first(), y.split_first()) {
            (None, None) => return a.cmp(b),
            (None, _) => return Ordering::Less,
            (_, None) => return Ordering::Greater,
            (Some((p, _)), Some((q, _))) if p.is_ascii_digit() && q.is_ascii_digit() => {
                let (m, n) = (digits(&mut x), digits(&mut y));
                m.len().cmp(&n.len()).then_with(|| m.cmp(n))
            }
            (Some((p, rest)), Some((q, other))) => {
                (x, y) = (rest, other);
                p.to_ascii_lowercase().cmp(&q.to_ascii_lowercase())
            }
        };
        if ordering != Ordering::Equal {
            return ordering;
        }
    }
}

/// Takes the digits in front, without leading zeros.
fn digits<'a>(from: &mut &'a [u8]) -> &'a [u8] {
    let end = from.iter().position(|b| !b.is_ascii_digit()).unwrap_or(from.len());
    let (digits, rest) = from.split_at_checked(end).unwrap_or_default();
    *from = rest;
    let zeros = digits.iter().take_while(|b| **b == b'0').count();
    digits.get(zeros..).unwrap_or_default()
}

/// Puts rows in order: directories first.
pub fn sort(rows: &mut [Row], order: Order) {
    rows.sort_by(|a, b| {
        let key = match order.by {
            By::Name => Ordering::Equal,
            By::Size => a.size.cmp(&b.size),
            By::Time => a.modified.cmp(&b.modified),
        };
        let key = key.then_with(|| by_name(&a.name, &b.name));
        let key = if order.down { key.reverse() } else { key };
        b.is_dir().cmp(&a.is_dir()).then(key)
    });
}

/// The shares that the caller may use.
pub fn shares(cx: &Rc<Exchange>, request: &Request<'_>) -> Response {
    if !cx.settings.listing {
        return status::plain(403, "Directory listing is disabled.");
    }
    let shares = cx.core.shares(&cx.caller);
    let row = |name: &str| Row {
        name: name.as_bytes().to_vec(),
        kind: FileType::Directory,
        size: 0,
        modified: 0,
    };
    let order = Order::of(request);
    let mut rows: Vec<Row> = shares.iter().map(|share| row(&share.name)).collect();
    sort(&mut rows, order);
    let json = wants_json(request);
    let pages = if json { Pages::One } else { cut(&mut rows, &PageRequest::of(request)) };
    let what = What { path: VPath::ROOT, order, pages, writable: false };
    Made::new(cx, (what, rows, None), None).answer(json)
}

/// Reduces the rows to those of the requested page.
fn cut(rows: &mut Vec<Row>, asked: &PageRequest) -> Pages {
    let (pages, first) = Pages::sorted(asked, rows.len());
    rows.drain(..first);
    rows.truncate(HTTP_LISTING_PAGE);
    pages
}

fn wants_json(request: &Request<'_>) -> bool {
    let mut kinds = request.headers.members("accept");
    kinds.any(|kind| kind.split(|b| *b == b';').next() == Some(b"application/json"))
}

/// What is in a directory.
pub async fn directory(
    cx: &Rc<Exchange>,
    request: &Request<'_>,
    (path, node): (&VPath, Node),
) -> Response {
    if !cx.settings.listing {
        return status::plain(403, "Directory listing is disabled.");
    }
    let want = access::READ | access::EXTEND;
    let granted = match cx.core.access(&cx.caller, &node, want).await {
        Ok(granted) if granted & access::READ != 0 => granted,
        Ok(_) => return cx.refuse(vfs::status::Status::Access),
        Err(error) => return cx.refuse(error),
    };
    let (json, asked, order) = (wants_json(request), PageRequest::of(request), Order::of(request));
    let dir = node.clone();
    let Read { rows, mut pages, more } = match read(cx, node, (json, &asked)).await {
        Ok(read) => read,
        Err(error) => return cx.refuse(error),
    };
    let mut rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
    let held = match cx.hold(rows.iter().map(Row::weight).sum()) {
        Ok(held) => held,
        Err(error) => return cx.refuse(error),
    };
    if pages.are_sorted() {
        rows = match sorted(cx, rows, (order, &dir)).await {
            Ok(rows) => rows,
            Err(error) => return cx.refuse(error),
        };
        if !json {
            pages = cut(&mut rows, &asked);
        }
    }
    let what = What { path: path.clone(), order, pages, writable: granted & access::EXTEND != 0 };
    Made::new(cx, (what, rows, more), Some(held)).answer(json)
}

/// What was read of a directory: all of it, to be sorted, or a part of one that is too large.
struct Read {
    /// Rows, each with the cookie behind it.
    rows: Vec<(u64, Row)>,
    pages: Pages,
    /// What is still to be read, if all is shown.
    more: Option<Listing>,
}

async fn read(
    cx: &Rc<Exchange>,
    node: Node,
    (json, asked): (bool, &PageRequest),
) -> vfs::fs::Result<Read> {
    let (behind, mut rows) = (asked.behind.filter(|_| !json), Vec::new());
    let mut listing = Listing::new(node.clone()).behind(behind.unwrap_or(0));
    // Most directories are small, and of a large one no more is read than is shown.
    fill(cx, (&mut listing, &mut rows), TRANSFER_LIST_BATCH).await?;
    let large = behind.is_some() || !listing.is_over() && is_large(cx, &node).await?;
    if !large {
        fill(cx, (&mut listing, &mut rows), HTTP_LISTING_SORTED_MAX + 1).await?;
        if listing.is_over() {
            return Ok(Read { rows, pages: Pages::One, more: None });
        }
    }
    if json {
        let pages = Pages::Unsorted { first: true, next: None };
        return Ok(Read { rows, pages, more: Some(listing) });
    }
    fill(cx, (&mut listing, &mut rows), HTTP_LISTING_PAGE).await?;
    let is_all = listing.is_over() && rows.len() <= HTTP_LISTING_PAGE;
    rows.truncate(HTTP_LISTING_PAGE);
    let next = rows.last().map(|(cookie, _)| *cookie).filter(|_| !is_all);
    Ok(Read { rows, pages: Pages::Unsorted { first: behind.is_none(), next }, more: None })
}

/// Reads on until there are `rows` rows, or all.
async fn fill(
    cx: &Rc<Exchange>,
    (listing, rows): (&mut Listing, &mut Vec<(u64, Row)>),
    count: usize,
) -> vfs::fs::Result<()> {
    while rows.len() < count && !listing.is_over() {
        let batch = listing.next(&cx.core, &cx.caller).await?.unwrap_or_default();
        rows.extend(batch.into_iter().map(|listed| (listed.cookie(), row(listed))));
    }
    Ok(())
}

/// Whether a directory has more entries than are sorted: their names alone are read quickly.
async fn is_large(cx: &Rc<Exchange>, dir: &Node) -> vfs::fs::Result<bool> {
    let (fs, handle) = (Arc::clone(&dir.reached.share.fs), dir.handle);
    let count = move |cx: Context<'_>| {
        let mut count = 0;
        let mut each = |_: DirEntry<'_>| {
            count += 1;
            count <= HTTP_LISTING_SORTED_MAX
        };
        fs.list(cx, &handle, 0, [0; 8], false, &mut each)?;
        Ok(count > HTTP_LISTING_SORTED_MAX)
    };
    cx.core.pooled_look(&cx.caller, &dir.reached.cred, count).await?
}

/// Puts rows in order; many of them on the pool: that takes as long as a hundred small requests.
async fn sorted(
    cx: &Rc<Exchange>,
    mut rows: Vec<Row>,
    (order, dir): (Order, &Node),
) -> vfs::fs::Result<Vec<Row>> {
    if rows.len() <= HTTP_LISTING_INLINE_MAX {
        sort(&mut rows, order);
        return Ok(rows);
    }
    let sorted = move |_: Context<'_>| {
        sort(&mut rows, order);
        rows
    };
    cx.core.pooled_look(&cx.caller, &dir.reached.cred, sorted).await
}

fn row(listed: Listed) -> Row {
    let attr = listed.attr();
    Row::new(listed.name, attr.as_ref())
}

/// What is listed, and how.
struct What {
    path: VPath,
    order: Order,
    pages: Pages,
    writable: bool,
}

/// A listing that is made while it is sent.
struct Made {
    cx: Rc<Exchange>,
    what: What,
    rows: std::vec::IntoIter<Row>,
    /// What is not in order, because there is too much of it.
    more: Option<Listing>,
    json: bool,
    nonce: String,
    begun: bool,
    first: bool,
    /// The rows' part of the budget.
    _held: Option<ReservedBytes>,
}

impl Made {
    fn new(
        cx: &Rc<Exchange>,
        (what, rows, more): (What, Vec<Row>, Option<Listing>),
        held: Option<ReservedBytes>,
    ) -> Self {
        let (cx, rows) = (Rc::clone(cx), rows.into_iter());
        let nonce = super::state::token(12);
        let (json, begun, first) = (false, false, true);
        Self { cx, what, rows, more, json, nonce, begun, first, _held: held }
    }

    fn answer(mut self, json: bool) -> Response {
        self.json = json;
        let policy = page::policy(&self.nonce);
        let kind = if json { "application/json" } else { "text/html; charset=utf-8" };
        let answer = Response::new(200)
            .with("cache-control", "private, no-store")
            .with("vary", "accept, authorization, cookie");
        let answer = if json { answer } else { answer.with("content-security-policy", policy) };
        answer.stream(kind, self)
    }

    fn begin(&mut self, out: &mut String) {
        let path = self.what.path.to_bytes();
        if self.json {
            let (path, writable) = (json_text(&path), self.what.writable);
            let _ = write!(out, "{{\"path\":{path},\"writable\":{writable},\"entries\":[");
            return;
        }
        let person = &self.cx.caller.person;
        let who = if person.anonymous { "" } else { &person.name };
        page::head(
            out,
            &page::Frame {
                appliance: &self.cx.settings.name,
                nonce: &self.nonce,
                path: &self.what.path,
                who,
                writable: self.what.writable,
                uploads: self.cx.settings.uploads,
            },
        );
        self.what.pages.links(self.what.order, out);
        self.columns(out);
    }

    fn columns(&self, out: &mut String) {
        let Order { by, down } = self.what.order;
        out.push_str("<table id=\"list\"><thead><tr>");
        for (column, key, title) in
            [(By::Name, "name", "Name"), (By::Size, "size", "Size"), (By::Time, "time", "Changed")]
        {
            if !self.what.pages.are_sorted() {
                let _ = write!(out, "<th class=\"{key}\">{title}</th>");
                continue;
            }
            let here = by == column;
            let sorted = match (here, down) {
                (true, true) => " aria-sort=\"descending\"",
                (true, false) => " aria-sort=\"ascending\"",
                _ => "",
            };
            let next = if here && !down { "&amp;order=down" } else { "" };
            let _ = write!(
                out,
                "<th class=\"{key}\"{sorted}><a href=\"?sort={key}{next}\">{title}</a></th>"
            );
        }
        out.push_str("<th class=\"act\"></th></tr></thead><tbody>\n");
        if !self.what.path.is_root() && self.what.pages.is_first() {
            out.push_str("<tr class=\"up\"><td class=\"name\"><a href=\"../\">..</a></td>");
            out.push_str("<td></td><td></td><td></td></tr>\n");
        }
    }

    fn row(&mut self, out: &mut String, row: &Row) {
        if self.json {
            let comma = if std::mem::take(&mut self.first) { "" } else { "," };
            let (name, href) = (json_text(&row.name), row.href());
            let (kind, size, time) = (row.kind(), row.size, date::write_iso(row.modified));
            let _ = write!(
                out,
                "{comma}\n{{\"name\":{name},\"href\":\"{href}\",\"kind\":\"{kind}\",\
                 \"size\":{size},\"modified\":\"{time}\"}}"
            );
            return;
        }
        self.first = false;
        let (kind, href) = (row.kind(), row.href());
        let name = escape(&String::from_utf8_lossy(&row.name));
        let slash = if row.is_dir() { "/" } else { "" };
        let _ = write!(
            out,
            "<tr class=\"{kind}\"><td class=\"name\"><a href=\"{href}\">{name}{slash}</a></td>"
        );
        if row.is_dir() {
            out.push_str("<td class=\"size\"></td>");
        } else {
            let _ = write!(
                out,
                "<td class=\"size\" title=\"{} bytes\">{}</td>",
                row.size,
                page::size(row.size)
            );
        }
        if row.modified == 0 {
            out.push_str("<td class=\"time\"></td>");
        } else {
            let time = date::write_iso(row.modified);
            let shown = time.get(..16).unwrap_or_default().replace('T', " ");
            let _ = write!(out, "<td class=\"time\"><time datetime=\"{time}\">{shown}</time></td>");
        }
        out.push_str("<td class=\"act\"></td></tr>\n");
    }

    async fn part(&mut self, into: &mut Vec<u8>) -> Result<bool, Broken> {
        let mut out = String::new();
        if !std::mem::replace(&mut self.begun, true) {
            self.begin(&mut out);
        }
        while out.len() < HTTP_PIECE {
            if let Some(row) = self.rows.next() {
                self.row(&mut out, &row);
                continue;
            }
            let batch = match &mut self.more {
                None => None,
                Some(more) => more
                    .next(&self.cx.core, &self.cx.caller)
                    .await
                    .map_err(|e| Broken(e.to_string()))?,
            };
            let Some(batch) = batch else {
                self.end(&mut out);
                into.extend_from_slice(out.as_bytes());
                return Ok(false);
            };
            self.rows = batch.into_iter().map(row).collect::<Vec<_>>().into_iter();
            // Nothing to send for a while: the connection looks whether its client is there.
            if out.is_empty() && self.rows.len() == 0 {
                break;
            }
        }
        into.extend_from_slice(out.as_bytes());
        Ok(true)
    }

    fn end(&self, out: &mut String) {
        if self.json {
            out.push_str("\n]}\n");
        } else {
            let empty = match self.what.pages.is_first() {
                true => "This folder is empty.",
                false => "There are no more entries.",
            };
            let mut links = String::new();
            self.what.pages.links(self.what.order, &mut links);
            page::foot(out, &links, self.first.then_some(empty));
        }
    }
}

impl Produce for Made {
    fn next<'a>(&'a mut self, into: &'a mut Vec<u8>) -> Local<'a, Result<bool, Broken>> {
        Box::pin(self.part(into))
    }
}

/// A string of JSON. What is not text is shown by the replacement character; `href` has the bytes.
fn json_text(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for c in String::from_utf8_lossy(bytes).chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests;
