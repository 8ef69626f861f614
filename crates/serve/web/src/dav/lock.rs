//! LOCK and UNLOCK (RFC 4918 §9.10, §9.11).

use std::sync::Arc;

use base::clock::Deadline;
use vfs::fs::access;
use vfs::status::Status;
use wire::dav::body::LockInfo;
use wire::dav::header::{Depth, lock_token, timeout};
use wire::dav::if_header::If;
use wire::dav::xml::Writer;

use super::locks::{LockError, LockRequest};
use super::precondition::lineage_of;
use super::props::write_discovery;
use super::state::{Lineage, Lock, Touched};
use super::{Job, Outcome, multi, refuse};
use crate::response::Response;
use files::upload::How;
use files::{Links, Node, PathTarget, recall};

/// Answers LOCK: a new lock, or with no body a refresh of an existing one.
pub(super) async fn lock(job: &mut Job<'_, '_>) -> Outcome {
    let seconds = job.request.headers.text("timeout").and_then(timeout);
    let body = job.body().await?;
    if body.is_empty() {
        return refresh(job, seconds).await;
    }
    let info = LockInfo::parse(&body).or_else(|error| refuse(400, &error.to_string()))?;
    let deep = match job.request.headers.text("depth").map(Depth::parse) {
        None | Some(Some(Depth::Infinity)) => true,
        Some(Some(Depth::Zero)) => false,
        _ => return refuse(400, "the Depth of LOCK must be 0 or infinity"),
    };
    let path = job.path.to_bytes();
    let of = lineage_of(job.core, &job.who, &job.path).await?;
    // Checked before a file is created for it.
    let mut there = job.dav.locks.covering(&path, &of).into_iter();
    if let Some(other) = there.find(|other| info.exclusive || other.exclusive) {
        return Err(lock_conflict(&path, &other));
    }
    let (node, made) = what(job, (&path, &of)).await?;
    let wanted = LockRequest {
        root: path.clone(),
        file: node.key(),
        above: of.numbers(),
        user: job.who.person.name.clone(),
        client: job.who.peer.ip().to_string(),
        exclusive: info.exclusive,
        deep,
        owner: info.owner,
        seconds,
    };
    let until = Deadline::after(job.core.files.locks.recall_patience());
    loop {
        let (dav, wanted) = (Arc::clone(job.dav), wanted.clone());
        let take = move |_: vfs::fs::Context<'_>| dav.locks.take(wanted);
        match job.core.pooled(&job.who, &node.reached.cred, take).await? {
            Ok(lock) => return Ok(given(job, &lock, if made { 201 } else { 200 }, true)),
            Err(LockError::Locked(other)) => return Err(lock_conflict(&path, &other)),
            // The recall of a delegation is pending.
            Err(LockError::Unavailable) if !job.core.files.locks.in_grace() && !until.passed() => {
                recall::released(&job.core.files.locks, Some(node.key()), until).await;
            }
            Err(error) => return refuse(code(&error), &error.to_string()),
        }
    }
}

fn code(error: &LockError) -> u16 {
    match error {
        LockError::Locked(_) | LockError::Open => 423,
        LockError::Unavailable | LockError::Full => 503,
        LockError::Unknown => 412,
        LockError::Journal(_) => 500,
    }
}

/// What is to be locked, and whether it was made for that: an empty file where there is nothing
/// (§7.3).
async fn what(
    job: &mut Job<'_, '_>,
    (path, of): (&[u8], &Lineage),
) -> Result<(Node, bool), Response> {
    match job.core.find(&job.who, &job.path, Links::Follow).await {
        Ok(PathTarget::Root) => refuse(403, "the list of shares cannot be locked"),
        Ok(PathTarget::Node(node)) => {
            (job.site.seen)(&node);
            job.is_named(&node)?;
            job.permit(&[]).await?;
            node.reached.for_change()?;
            let want = access::MODIFY | access::EXTEND;
            if job.core.access(&job.who, &node, want).await? & want == 0 {
                return Err(Status::Access.into());
            }
            Ok((node, false))
        }
        Err(Status::NotFound) => {
            job.permit(&[Touched { path, of, name: true, tree: false }]).await?;
            let spot = match job.spot(Links::Follow).await {
                Err(Status::NotFound) => {
                    return refuse(409, "the parent collection does not exist");
                }
                spot => spot?,
            };
            let how = How::InPlace(job.new_file());
            let upload = job.core.upload(&job.who, &spot, how).await?;
            let node = upload.finish(vfs::attr::SetAttr::default()).await?;
            Ok((node, true))
        }
        Err(status) => Err(status.into()),
    }
}

/// The lock, its token, and all that is to be known of it.
fn given(job: &Job<'_, '_>, lock: &Arc<Lock>, code: u16, new: bool) -> Response {
    let mut out = Writer::DECLARATION.to_owned();
    let mut w = Writer::new(&mut out);
    w.raw("<D:prop xmlns:D=\"DAV:\">");
    write_discovery(&mut w, &job.dav.locks, std::slice::from_ref(lock));
    w.raw("</D:prop>\n");
    let response = Response::new(code).bytes(multi::XML, out.into_bytes());
    // A refresh gives no new token (§9.10.2).
    if new { response.with("lock-token", format!("<{}>", lock.token)) } else { response }
}

/// The answer when conflicts with another lock: below what was to be locked, 207 (§9.10.9).
fn lock_conflict(path: &[u8], other: &Lock) -> Response {
    let href = multi::href(&other.root, false);
    let below = other.root.len() > path.len() && other.root.starts_with(path);
    if below {
        return multi::failures(&[(href, 423), (multi::href(path, false), 424)]);
    }
    multi::error(423, "no-conflicting-lock", &[href])
}

async fn refresh(job: &mut Job<'_, '_>, seconds: Option<u64>) -> Outcome {
    job.permit(&[]).await?;
    let header = job.request.headers.text("if").and_then(|value| If::parse(value).ok());
    let Some(header) = header else {
        return refuse(400, "a lock refresh requires the lock token in If");
    };
    let covering = job.dav.covering(job.core, &job.who, &job.path).await?;
    let mine = |lock: &&Arc<Lock>| {
        lock.user == job.who.person.name && header.tokens().any(|token| token == lock.token)
    };
    let Some(lock) = covering.iter().find(mine) else {
        return Err(multi::error(412, "lock-token-matches-request-uri", &[]));
    };
    let (dav, token, user) = (Arc::clone(job.dav), lock.token.clone(), lock.user.clone());
    let longer = move |_: vfs::fs::Context<'_>| dav.locks.refresh(&token, &user, seconds);
    match job.core.pooled(&job.who, &Arc::new(job.who.person.cred.clone()), longer).await? {
        Ok(lock) => Ok(given(job, &lock, 200, false)),
        Err(error) => refuse(code(&error), &error.to_string()),
    }
}

/// Answers UNLOCK.
pub(super) async fn unlock(job: &mut Job<'_, '_>) -> Outcome {
    let token = job.request.headers.text("lock-token").and_then(lock_token);
    let Some(token) = token.map(str::to_owned) else {
        return refuse(400, "missing Lock-Token");
    };
    job.permit(&[]).await?;
    let covering = job.dav.covering(job.core, &job.who, &job.path).await?;
    let Some(lock) = covering.iter().find(|lock| lock.token == token) else {
        return Err(multi::error(409, "lock-token-matches-request-uri", &[]));
    };
    if lock.user != job.who.person.name {
        return refuse(403, "the lock belongs to another user");
    }
    let dav = Arc::clone(job.dav);
    let end = move |_: vfs::fs::Context<'_>| dav.locks.release(&token);
    match job.core.pooled(&job.who, &Arc::new(job.who.person.cred.clone()), end).await? {
        // That it has ended meanwhile is what was wanted.
        Ok(()) | Err(LockError::Unknown) => Ok(Response::new(204)),
        Err(error) => refuse(code(&error), &error.to_string()),
    }
}
