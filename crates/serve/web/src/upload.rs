//! Uploads in parts, which survive a broken connection: for the page and for other clients
//! (docs/protocols/http.md has the exchange).
//!
//! POST to the file's address with `Upload-Length` begins one and names it in `Location`; PATCH
//! there with `Upload-Offset` sends a part, HEAD returns the current length, DELETE abandons it.
//! With the last byte the complete file appears under its name.

use std::rc::Rc;

use base::clock::monotonic_ns;
use vfs::attr::SetAttr;
use vfs::status::Status;

use super::exchange::Exchange;
use super::head::number;
use super::put::{self, Stopped, at_last, fresh, place, stream};
use super::request::{Method, Request};
use super::response::Response;
use super::select::{Conditions, Validators};
use super::state::{Pending, UploadError};
use super::status;
use files::transfer::{Direction, Outcome};
use files::upload::{How, Temporary};
use files::{Node, Spot, VPath};

/// Below `/.plimsoll/`.
pub const OWN: &[u8] = b"upload/";

/// Begins an upload (`POST /SHARE/file?upload`).
pub async fn begin(cx: &Rc<Exchange>, request: &Request<'_>) -> Response {
    if request.target.parameter("upload").is_none() || !cx.settings.uploads {
        return status::plain(405, "");
    }
    clear(cx).await;
    let field = |name| request.headers.get(name);
    let Some(length) = field("upload-length").and_then(number) else {
        return status::plain(400, "Upload-Length is required.");
    };
    let modified =
        field("upload-modified").and_then(number).and_then(|sec| i64::try_from(sec).ok());
    let spot = match place(cx, request).await {
        Ok(spot) => spot,
        Err(response) => return response,
    };
    let now = spot.entry.map(|entry| Validators::of(&entry.attr));
    let conditions = Conditions::of(&request.headers);
    if conditions.as_ref().is_some_and(|conditions| !conditions.hold(now.as_ref())) {
        return status::plain(412, "");
    }
    if let Err(response) = put::begin_write(cx, request, &spot).await {
        return response;
    }
    let temporary = Temporary::new();
    let part = Spot { name: temporary.name.clone(), entry: None, ..spot.clone() };
    let made = cx.core.upload(&cx.caller, &part, How::InPlace(fresh(cx))).await;
    // It stays as it is: empty, and under a name that no listing shows.
    match made {
        Ok(made) => cx.of(made.node()),
        Err(error) => return cx.refuse(error),
    }
    let path = VPath::parse(&request.target.path).unwrap_or_default();
    let transfer = cx.begin_transfer(Direction::Upload, &path);
    let place = (spot, request.target.path.clone(), conditions);
    let now = (transfer, monotonic_ns());
    let by = (&*cx.caller.person, cx.caller.peer.ip());
    let begun = cx.http.uploads.begin((by, place, temporary), (length, modified), now);
    match begun {
        Ok(id) => Response::new(201)
            .with("location", format!("/.plimsoll/upload/{id}"))
            .with("upload-offset", "0"),
        Err(_) => {
            discard(cx, &part).await;
            status::plain(429, "Too many uploads in progress.").with("retry-after", "60")
        }
    }
}

/// Requests that continue an upload: `/.plimsoll/upload/ID`.
pub async fn continue_upload(cx: &Rc<Exchange>, request: Request<'_>) -> Response {
    let id = request.target.path.rsplit(|b| *b == b'/').next().unwrap_or_default();
    let id = String::from_utf8_lossy(id).into_owned();
    let user = &cx.caller.person.name;
    let uploads = &cx.http.uploads;
    let answer = match request.method {
        Method::Head | Method::Get => uploads.get(&id, user).map(|one| {
            Response::new(204)
                .with("upload-offset", one.offset.to_string())
                .with("upload-length", one.length.to_string())
        }),
        Method::Patch | Method::Delete => match uploads.take(&id, user, monotonic_ns()) {
            Ok(one) if request.method == Method::Delete => {
                one.ends(Outcome::Cut, "aborted by the client", one.offset);
                uploads.end(&id);
                discard(cx, &part_of(&one)).await;
                Some(Response::new(204))
            }
            Ok(one) => Some(append(cx, request, (id, one)).await),
            Err(UploadError::Unknown) => None,
            Err(_) => Some(status::plain(423, "Another part is being uploaded.")),
        },
        _ => Some(status::plain(405, "")),
    };
    let answer = answer.unwrap_or_else(|| status::plain(404, ""));
    answer.with("cache-control", "no-store")
}

/// The file as it is until it is whole.
fn part_of(one: &Pending) -> Spot {
    Spot { name: one.part.name.clone(), entry: None, ..one.spot.clone() }
}

/// Gives an upload back, whatever ends its part: the connection may end, and this with it.
struct UploadGuard<'a> {
    cx: &'a Exchange,
    id: String,
    offset: u64,
}

impl Drop for UploadGuard<'_> {
    fn drop(&mut self) {
        self.cx.http.uploads.give(&self.id, self.offset, monotonic_ns());
    }
}

async fn append(
    cx: &Rc<Exchange>,
    mut request: Request<'_>,
    (id, one): (String, Pending),
) -> Response {
    let mut taken = UploadGuard { cx, id, offset: one.offset };
    let here = |answer: Response, offset: u64| answer.with("upload-offset", offset.to_string());
    let offset = request.headers.get("upload-offset").and_then(number);
    if offset != Some(one.offset) {
        return here(status::plain(409, "The offset does not match the upload."), one.offset);
    }
    let left = one.length - one.offset;
    if request.body.length().is_none_or(|length| length > left) {
        return here(
            status::plain(
                413,
                "Content-Length is required and must not exceed the remaining size.",
            ),
            one.offset,
        );
    }
    let mut upload = match reopen(cx, &part_of(&one)).await {
        Ok(upload) => upload,
        Err(error) => return cx.refuse(error),
    };
    cx.of(upload.node());
    cx.range(one.offset, request.body.length().unwrap_or(0), true);
    match stream(cx, &mut upload, &mut request.body, (one.offset, one.length)).await {
        Ok(end) => taken.offset = end,
        Err(stopped) => {
            // Not a word of what is here counts until it is on disk; how much that is, the file
            // itself knows.
            if let Ok(node) = upload.finish(at_last(None)).await
                && matches!(stopped, Stopped::Body(_))
            {
                taken.offset = node.attr.size.clamp(one.offset, one.length);
            }
            return stopped.answer(cx);
        }
    }
    let whole = taken.offset == one.length;
    let node = match upload.finish(at_last(one.modified.filter(|_| whole))).await {
        Ok(node) => node,
        Err(error) => {
            taken.offset = one.offset;
            return cx.refuse(error);
        }
    };
    if !whole {
        return here(Response::new(204), taken.offset);
    }
    let (node, one) = match take_name(cx, &request, &one, node).await {
        Ok(named) => named,
        Err(refused) => {
            taken.offset = one.offset;
            return refused;
        }
    };
    one.ends(Outcome::Complete, "", one.length);
    cx.http.uploads.end(&taken.id);
    if let Err(response) = put::replaced(cx, (&one.path, &one.spot), &node).await {
        return response;
    }
    here(Response::new(201).with("etag", Validators::of(&node.attr).etag), taken.offset)
}

/// Judges the preconditions again, of what is at the place of the complete file now: other users
/// may have changed that, or locked it, since the upload began. Gives the upload as it is for that.
async fn judge_again(
    cx: &Exchange,
    request: &Request<'_>,
    one: &Pending,
) -> Result<Pending, Response> {
    let entry = put::look_up(cx, &one.spot).await.map_err(|error| cx.refuse(error))?;
    let now = entry.map(|entry| Validators::of(&entry.attr));
    if one.conditions.as_ref().is_some_and(|conditions| !conditions.hold(now.as_ref())) {
        return Err(status::plain(412, "It was changed by others."));
    }
    let one = one.at(Spot { entry, ..one.spot.clone() });
    put::begin_write_at(cx, request, (&one.path, &one.spot)).await?;
    Ok(one)
}

/// The complete file replaces the one that has its name, and inherits its metadata. Where the
/// client may only write that one, the data is written into it.
async fn take_name(
    cx: &Rc<Exchange>,
    request: &Request<'_>,
    one: &Pending,
    node: Node,
) -> Result<(Node, Pending), Response> {
    let refuse = |error| cx.refuse(error);
    let one = judge_again(cx, request, one).await?;
    if !cx.core.may_replace(&cx.caller, &one.spot).await.map_err(refuse)? {
        let node = write_in_place(cx, &one, &node).await?;
        return Ok((node, one));
    }
    // A file that was locked meanwhile is not replaced.
    let there = one.spot.entry.map(|entry| vfs::locks::FileKey::from(&entry.attr));
    let _opened = match there {
        Some(key) => {
            let opened = cx.core.open(&cx.caller, key, true).await;
            Some(opened.map_err(|error| not_opened(cx, error))?)
        }
        None => None,
    };
    cx.core.inherit(&cx.caller, &node, &one.spot).await.map_err(refuse)?;
    let condition = put::condition(one.conditions.clone(), &one.spot);
    let renamed = cx.core.rename_if(&cx.caller, (&part_of(&one), &one.spot), &condition).await;
    match renamed.map_err(refuse)? {
        true => Ok((now(cx, node).await, one)),
        false => Err(status::plain(412, "It was changed by others.")),
    }
}

/// The part stays: a client that submits the token of the conflicting lock may continue.
fn not_opened(cx: &Exchange, error: Status) -> Response {
    match error {
        Status::Busy | Status::InUse => status::plain(423, "It is locked, or open elsewhere."),
        error => cx.refuse(error),
    }
}

/// Writes the whole file into the one that has its name.
async fn write_in_place(cx: &Rc<Exchange>, one: &Pending, node: &Node) -> Result<Node, Response> {
    let refuse = |error| cx.refuse(error);
    let how = How::InPlace(SetAttr { size: Some(0), ..fresh(cx) });
    let opened = cx.core.upload(&cx.caller, &one.spot, how).await;
    let mut upload = opened.map_err(|error| not_opened(cx, error))?;
    upload.copy_from(&cx.core, &cx.caller, node).await.map_err(refuse)?;
    let written = upload.finish(at_last(one.modified)).await.map_err(refuse)?;
    discard(cx, &part_of(one)).await;
    Ok(written)
}

async fn reopen(cx: &Rc<Exchange>, part: &Spot) -> Result<files::upload::Upload, Status> {
    cx.core.upload(&cx.caller, part, How::InPlace(fresh(cx))).await
}

/// A file with its attributes after it got its name.
async fn now(cx: &Exchange, node: Node) -> Node {
    match cx.core.attr(&cx.caller, &node).await {
        Ok(attr) => Node { attr, ..node },
        Err(_) => node,
    }
}

/// Removes a part. If it cannot be now, a listing in a later life of the server does it.
async fn discard(cx: &Exchange, part: &Spot) {
    let _ = cx.core.remove(&cx.caller, part).await;
}

/// Removes abandoned uploads.
async fn clear(cx: &Exchange) {
    for one in cx.http.uploads.expire(monotonic_ns()) {
        one.ends(Outcome::Cut, "idle timeout", one.offset);
        discard(cx, &part_of(&one)).await;
    }
}
