//! PUT: complete files, which appear when all data has come, or a part of an existing file.

use std::rc::Rc;
use std::sync::Arc;

use base::clock::stamp;
use base::limits::{HTTP_SMALL_PUT_MAX, POOL_PATIENCE, TRANSFER_PIECE};
use vfs::attr::{SetAttr, SetTime, Time};
use vfs::fs::{Context, Entry};
use vfs::status::Status;

use super::dav::precondition::{self, ConditionalRequest};
use super::exchange::Exchange;
use super::head::number;
use super::request::{Body, BodyError, Method, Request};
use super::response::Response;
use super::select::{self, Conditions, Validators, Verdict};
use super::{date, status};
use engine::transport::budget::{Need, ReservedBytes};
use files::serial::Condition;
use files::transfer::Direction;
use files::upload::{Finished, How, Upload};
use files::{Links, Node, Spot, VPath};

/// Why a part is refused.
const NOT_THE_RANGE: &str = "The length of the body does not match Content-Range.";

/// Answers PUT.
pub async fn put(cx: &Rc<Exchange>, mut request: Request<'_>) -> Response {
    let spot = match place(cx, &request).await {
        Ok(spot) => spot,
        Err(response) => return response,
    };
    cx.transfers(Direction::Upload, &VPath::parse(&request.target.path).unwrap_or_default());
    let now = spot.entry.map(|entry| Validators::of(&entry.attr));
    if select::judge(&request.headers, Method::Put, now.as_ref()) != Verdict::Go {
        return status::plain(412, "");
    }
    if let Err(response) = begin_write(cx, &request, &spot).await {
        return response;
    }
    if let Some(range) = request.headers.text("content-range") {
        let Some(range) = content_range(range) else {
            return status::plain(400, "Invalid Content-Range.");
        };
        return part(cx, &spot, range, &mut request.body).await;
    }
    if request.headers.get("content-encoding").is_some() {
        return status::plain(415, "Content-Encoding is not supported.");
    }
    let modified = request.headers.text("x-oc-mtime").and_then(|sec| sec.parse().ok());
    let node = match put_atomic(cx, &spot, &mut request, modified).await {
        Ok(node) => node,
        Err(response) => return response,
    };
    if let Err(response) = replaced(cx, (&request.target.path, &spot), &node).await {
        return response;
    }
    cx.of(&node);
    let answer = stored(&node, spot.entry.is_some());
    if modified.is_some() { answer.with("x-oc-mtime", "accepted") } else { answer }
}

/// Judges the preconditions of WebDAV, its locks among them.
pub(super) async fn begin_write(
    cx: &Exchange,
    request: &Request<'_>,
    spot: &Spot,
) -> Result<(), Response> {
    begin_write_at(cx, request, (&request.target.path, spot)).await
}

/// As [`begin_write`], of a request with another target than the file.
pub(super) async fn begin_write_at(
    cx: &Exchange,
    request: &Request<'_>,
    (path, spot): (&[u8], &Spot),
) -> Result<(), Response> {
    let path = VPath::parse(path).map_err(|e| cx.refuse(e.into()))?;
    let asked = ConditionalRequest { headers: &request.headers, host: &request.host, path: &path };
    precondition::begin_write(&cx.http.dav, &cx.core, &cx.caller, asked, spot).await
}

/// Judges all preconditions again, when the body has come: the file, and the locks around it, may
/// be others now.
async fn may_take_name(cx: &Exchange, request: &Request<'_>, spot: &Spot) -> Result<(), Response> {
    let conditions = Conditions::of(&request.headers);
    let is_conditional = conditions.is_some() || request.headers.get("if").is_some();
    if !is_conditional && cx.http.dav.locks.is_empty() {
        return Ok(());
    }
    let entry = look_up(cx, spot).await.map_err(|error| cx.refuse(error))?;
    let now = entry.map(|entry| Validators::of(&entry.attr));
    if conditions.is_some_and(|conditions| !conditions.hold(now.as_ref())) {
        return Err(status::plain(412, ""));
    }
    begin_write(cx, request, &Spot { entry, ..spot.clone() }).await
}

/// What is at a place now.
pub(super) async fn look_up(cx: &Exchange, spot: &Spot) -> vfs::fs::Result<Option<Entry>> {
    let (fs, dir, name) = (Arc::clone(&spot.reached.share.fs), spot.dir, spot.name.clone());
    let look = move |cx: Context<'_>| match fs.lookup(cx, &dir, &name) {
        Ok((entry, _)) => Ok(Some(entry)),
        Err(failed) if failed.status == Status::NotFound => Ok(None),
        Err(failed) => Err(failed.status),
    };
    cx.core.look(&cx.caller, &spot.reached.cred, look).await
}

/// The condition under which a file takes a name: those of the request hold for what has it then.
pub(super) fn condition(conditions: Option<Conditions>, spot: &Spot) -> Condition {
    let Some(conditions) = conditions else { return Arc::new(|| true) };
    spot.now(move |there| conditions.hold(there.map(Validators::of).as_ref()))
}

/// The file that has its name, or that the condition did not hold.
fn named(finished: Finished) -> Result<Node, Response> {
    match finished {
        Finished::Named(node) => Ok(*node),
        Finished::Withheld(_) => Err(status::plain(412, "")),
    }
}

/// Moves the locks of the replaced file to the new one.
pub(super) async fn replaced(
    cx: &Exchange,
    (path, spot): (&[u8], &Spot),
    node: &Node,
) -> Result<(), Response> {
    let path = VPath::parse(path).map_err(|e| cx.refuse(e.into()))?;
    let before = spot.entry.as_ref().map(|entry| &entry.attr);
    precondition::replaced(&cx.http.dav, &cx.core, &cx.caller, (&path, before), node).await
}

/// Where the file is, or will be.
pub(super) async fn place(cx: &Exchange, request: &Request<'_>) -> Result<Spot, Response> {
    let path = VPath::parse(&request.target.path).map_err(|e| cx.refuse(e.into()))?;
    if request.target.slash {
        return Err(status::plain(409, "A file name cannot end with a slash."));
    }
    let spot =
        cx.core.spot(&cx.caller, &path, Links::Follow).await.map_err(|error| match error {
            // RFC 4918 §9.7.1: what is above must be there.
            Status::NotFound | Status::NotDirectory => {
                status::plain(409, "The folder does not exist.")
            }
            Status::NotOwner => status::plain(405, "Not a file."),
            error => cx.refuse(error),
        })?;
    cx.on(&spot.reached);
    match spot.node() {
        Ok(node) if node.is_dir() => Err(status::plain(405, "This is a folder.")),
        _ => Ok(spot),
    }
}

fn stored(node: &Node, before: bool) -> Response {
    let now = Validators::of(&node.attr);
    Response::new(if before { 204 } else { 201 })
        .with("etag", now.etag)
        .with("last-modified", date::write(now.modified))
}

/// Attributes of a new file.
pub(super) fn fresh(cx: &Exchange) -> SetAttr {
    SetAttr { mode: Some(0o666), umask: Some(cx.settings.umask), ..SetAttr::default() }
}

/// What is set at the end.
pub(super) fn at_last(modified: Option<i64>) -> SetAttr {
    let time = modified.map(|sec| SetTime::At(Time { sec, nsec: 0 }));
    SetAttr { mtime: time.unwrap_or_default(), ..SetAttr::default() }
}

async fn put_atomic(
    cx: &Rc<Exchange>,
    spot: &Spot,
    request: &mut Request<'_>,
    modified: Option<i64>,
) -> Result<Node, Response> {
    let refuse = |error| cx.refuse(error);
    let condition = condition(Conditions::of(&request.headers), spot);
    let body = &mut request.body;
    let length = body.length();
    if let Some(length) = length.filter(|n| *n <= HTTP_SMALL_PUT_MAX as u64)
        && modified.is_none()
    {
        let since = stamp();
        let data = body.read_all(HTTP_SMALL_PUT_MAX).await.inspect_err(|why| cx.cut(why))?;
        may_take_name(cx, request, spot).await?;
        let put = cx.core.put_if(&cx.caller, spot, (data, fresh(cx)), &condition).await;
        let node = named(put.map_err(refuse)?)?;
        cx.of(&node);
        cx.range(0, length, true);
        cx.flowed((0, length as usize), true, since);
        return Ok(node);
    }
    let how = How::Atomic(fresh(cx));
    let mut upload = cx.core.upload(&cx.caller, spot, how).await.map_err(refuse)?;
    cx.of(upload.node());
    let end = stream(cx, &mut upload, body, (0, u64::MAX)).await;
    let end = end.map_err(|stopped| stopped.answer(cx))?;
    cx.range(0, end, true);
    if upload.is_aside() {
        may_take_name(cx, request, spot).await?;
    }
    named(upload.finish_if(at_last(modified), &condition).await.map_err(refuse)?)
}

/// Why a body was not stored to its end.
pub(super) enum Stopped {
    /// It did not come.
    Body(BodyError),
    /// It is longer than it may be.
    Surplus,
    /// It could not be written.
    File(Status),
}

impl Stopped {
    pub(super) fn answer(self, cx: &Exchange) -> Response {
        match self {
            Self::Body(error) => {
                cx.cut(&error);
                error.into()
            }
            Self::Surplus => status::plain(400, NOT_THE_RANGE),
            Self::File(error) => cx.refuse(error),
        }
    }
}

/// Room for two buffers: one is filled while the other one is written.
async fn room(cx: &Exchange, size: usize) -> Result<ReservedBytes, Stopped> {
    let budget = &cx.core.budget;
    let take = || budget.has_large(2 * size).then(|| cx.hold(2 * size));
    let taken = budget.room(Some(POOL_PATIENCE), Need::large(2 * size), take).await;
    taken.unwrap_or(Err(Status::Busy)).map_err(Stopped::File)
}

/// Writes a body from an offset on, and nothing at or behind a limit; returns where it ends. A
/// piece is received while the one before it is written.
pub(super) async fn stream(
    cx: &Exchange,
    upload: &mut Upload,
    body: &mut Body<'_>,
    (offset, limit): (u64, u64),
) -> Result<u64, Stopped> {
    let size = TRANSFER_PIECE;
    let _held = room(cx, size).await?;
    let large = &cx.core.engine.large;
    let (mut at, mut since) = (offset, stamp());
    let (mut full, mut spare) = (large.take(size), large.take(size));
    let mut filled = body.fill(&mut full, size).await;
    loop {
        let count = full.len();
        if at.saturating_add(count as u64) > limit {
            return Err(Stopped::Surplus);
        }
        let ended = match filled {
            Ok(ended) => ended,
            Err(error) => {
                // The data received so far is written: the client may continue there later.
                if count > 0 && upload.write(at, full).await.is_ok() {
                    cx.flowed((at, count), true, since);
                }
                return Err(Stopped::Body(error));
            }
        };
        if count == 0 {
            break;
        }
        let next = async { if ended { Ok(true) } else { body.fill(&mut spare, size).await } };
        let (written, next) = tokio::join!(upload.write(at, full), next);
        full = written.map_err(Stopped::File)?;
        cx.flowed((at, count), true, since);
        at += count as u64;
        since = stamp();
        full.clear();
        std::mem::swap(&mut full, &mut spare);
        filled = next;
    }
    large.give(full);
    large.give(spare);
    Ok(at)
}

/// `bytes 0-99/200`: start, end (not included) and, if known, the whole length.
fn content_range(text: &str) -> Option<(u64, u64, Option<u64>)> {
    let (range, whole) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last) = (number(first.as_bytes())?, number(last.as_bytes())?);
    let whole = if whole == "*" { None } else { Some(number(whole.as_bytes())?) };
    let good = first <= last && whole.is_none_or(|whole| last < whole);
    good.then(|| (first, last + 1, whole))
}

/// Writes a part of a file in place. A client that continues an interrupted upload queries the
/// current length with HEAD.
async fn part(
    cx: &Rc<Exchange>,
    spot: &Spot,
    (start, end, whole): (u64, u64, Option<u64>),
    body: &mut Body<'_>,
) -> Response {
    let size = spot.entry.map_or(0, |entry| entry.attr.size);
    if start > size {
        let now = format!("bytes */{size}");
        return status::plain(416, "The part starts after the end of the file.")
            .with("content-range", now);
    }
    if body.length().is_some_and(|length| length != end - start) {
        return status::plain(400, NOT_THE_RANGE);
    }
    let how = How::InPlace(fresh(cx));
    let mut upload = match cx.core.upload(&cx.caller, spot, how).await {
        Ok(upload) => upload,
        Err(error) => return cx.refuse(error),
    };
    cx.of(upload.node());
    cx.range(start, end - start, true);
    match stream(cx, &mut upload, body, (start, end)).await {
        Ok(at) if at == end => {}
        Ok(_) => return status::plain(400, NOT_THE_RANGE),
        Err(stopped) => return stopped.answer(cx),
    }
    // The last part states the complete length.
    let cut = whole.filter(|whole| *whole == end && *whole < size);
    let done = upload.finish(SetAttr { size: cut, ..SetAttr::default() }).await;
    done.map_or_else(|e| cx.refuse(e), |node| stored(&node, spot.entry.is_some()))
}

#[cfg(test)]
mod tests;
