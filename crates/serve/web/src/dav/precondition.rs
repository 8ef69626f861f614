//! The preconditions of a change: `If` (RFC 4918 §10.4), and the lock token: the user that has
//! created a lock must submit its token to change the locked resource (§6.4, §7.5).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use base::limits::DAV_FAILURES_MAX;
use vfs::attr::{Attr, FileType};
use vfs::fs::{Context, FileSystem};
use vfs::handle::Handle;
use vfs::locks::{FileKey, Owner};
use vfs::status::Status;
use wire::dav::header::{same_authority, target};
use wire::dav::if_header::{If, State};

use super::dead::Dead;
use super::state::{Lineage, Lock, Touched};
use super::{Dav, Job, multi, refuse};
use crate::request::{Headers, decode_path};
use crate::response::Response;
use crate::select::{Conditions, Validators};
use files::caller::Reached;
use files::{Caller, Core, Links, Node, PathTarget, Spot, VPath};

/// The parts of a request that preconditions are in.
#[derive(Clone, Copy)]
pub struct ConditionalRequest<'a> {
    /// Its header fields.
    pub headers: &'a Headers,
    /// How the client calls us.
    pub host: &'a str,
    /// The path that it is about.
    pub path: &'a VPath,
}

impl ConditionalRequest<'_> {
    /// Whether this authority is us: as the client calls us, or the proxy before us.
    pub fn is_this_server(&self, authority: &str) -> bool {
        let proxies = self.headers.members("x-forwarded-host");
        let mut proxies = proxies.filter_map(|host| std::str::from_utf8(host).ok());
        same_authority(authority, self.host) || proxies.any(|host| same_authority(authority, host))
    }

    /// The path of a URL of this server; `None` for other servers.
    fn local(&self, url: &str) -> Option<VPath> {
        let target = target(url)?;
        if target.authority.is_some_and(|authority| !self.is_this_server(authority)) {
            return None;
        }
        VPath::parse(&decode_path(target.path.as_bytes()).ok()?.0).ok()
    }
}

/// A directory and those above it, by identity.
async fn above(
    core: &Core,
    who: &Caller,
    (reached, dir): (&Reached, Handle),
) -> vfs::fs::Result<Vec<FileKey>> {
    let fs = Arc::clone(&reached.share.fs);
    core.look(who, &reached.cred, move |cx: Context<'_>| fs.ancestors(cx, &dir)).await
}

/// What is at a place, by identity, for a lock that is to be found there.
///
/// # Errors
/// As of [`FileSystem::ancestors`].
pub(super) async fn lineage_at(core: &Core, who: &Caller, spot: &Spot) -> vfs::fs::Result<Lineage> {
    let above = above(core, who, (&spot.reached, spot.dir)).await?;
    Ok(Lineage { file: spot.entry.map(|entry| FileKey::from(&entry.attr)), above })
}

/// The same of a path; of one that leads nowhere, nothing is known.
///
/// # Errors
/// As of [`FileSystem::ancestors`].
pub(super) async fn lineage_of(
    core: &Core,
    who: &Caller,
    path: &VPath,
) -> vfs::fs::Result<Lineage> {
    match core.spot_for_dir(who, path, Links::Follow).await {
        Ok(spot) => lineage_at(core, who, &spot).await,
        // A share itself, or a caller's root: it has no parent directory that the caller can reach.
        Err(Status::NotOwner) => match core.find(who, path, Links::Follow).await {
            Ok(PathTarget::Node(node)) => {
                let mut above = above(core, who, (&node.reached, node.handle)).await?;
                above.drain(..above.len().min(1));
                Ok(Lineage { file: Some(node.key()), above })
            }
            _ => Ok(Lineage::default()),
        },
        Err(_) => Ok(Lineage::default()),
    }
}

impl Dav {
    /// What is at a place, by identity; nothing while there are no locks to be found by it.
    ///
    /// # Errors
    /// As of [`FileSystem::ancestors`].
    pub(super) async fn lineage(
        &self,
        core: &Core,
        who: &Caller,
        spot: &Spot,
    ) -> vfs::fs::Result<Lineage> {
        if self.locks.is_empty() {
            return Ok(Lineage::default());
        }
        lineage_at(core, who, spot).await
    }

    /// The locks that cover what a path leads to.
    ///
    /// # Errors
    /// As of [`FileSystem::ancestors`].
    pub(super) async fn covering(
        &self,
        core: &Core,
        who: &Caller,
        path: &VPath,
    ) -> vfs::fs::Result<Vec<Arc<Lock>>> {
        if self.locks.is_empty() {
            return Ok(Vec::new());
        }
        let of = lineage_of(core, who, path).await?;
        Ok(self.locks.covering(&path.to_bytes(), &of))
    }
}

/// What leaves its name to something else, or goes; `None` if it stays under another name.
pub(super) fn that_goes(attr: &Attr) -> Option<FileKey> {
    let is_last = attr.nlink <= 1 || attr.kind == FileType::Directory;
    is_last.then(|| FileKey::from(attr))
}

/// A resource in `If`.
struct ResourceState {
    etag: Option<String>,
    locks: Vec<Arc<Lock>>,
}

async fn resource_state(
    dav: &Dav,
    core: &Core,
    who: &Caller,
    path: &VPath,
    tagged: bool,
) -> ResourceState {
    let mut etag = None;
    if tagged && let Ok(found) = core.find(who, path, Links::Follow).await {
        let node = found.node().ok().filter(Node::is_file);
        etag = node.map(|node| Validators::of(&node.attr).etag);
    }
    // Of what cannot be found out, no condition holds.
    ResourceState { etag, locks: dav.covering(core, who, path).await.unwrap_or_default() }
}

/// Judges `If`; true if it holds.
async fn holds(
    dav: &Dav,
    core: &Core,
    who: &Caller,
    asked: ConditionalRequest<'_>,
    header: &If<'_>,
) -> bool {
    let is_etag = |state: &State<'_>| matches!(state, State::ETag(_));
    let mut known: HashMap<Option<&str>, Option<ResourceState>> = HashMap::new();
    for list in &header.lists {
        if known.contains_key(&list.resource) {
            continue;
        }
        let same = header.lists.iter().filter(|other| other.resource == list.resource);
        let tagged = same.flat_map(|list| &list.conditions).any(|one| is_etag(&one.state));
        let path = match list.resource {
            Some(url) => asked.local(url),
            None => Some(asked.path.clone()),
        };
        let resource_state = match path {
            Some(path) => Some(resource_state(dav, core, who, &path, tagged).await),
            None => None,
        };
        known.insert(list.resource, resource_state);
    }
    header.holds(|resource, state| {
        let Some(Some(resource_state)) = known.get(&resource) else { return false };
        match state {
            State::Token(token) => resource_state.locks.iter().any(|lock| lock.token == *token),
            State::ETag(etag) => resource_state.etag.as_deref() == Some(*etag),
        }
    })
}

impl Dav {
    /// The locks of the caller of which the request submits the tokens, as owners in the table of
    /// opens ([`Caller::lent`]).
    pub fn lent(&self, who: &Caller, headers: &Headers) -> Vec<Owner> {
        if self.locks.is_empty() {
            return Vec::new();
        }
        let header = headers.text("if").and_then(|value| If::parse(value).ok());
        let tokens = header.iter().flat_map(If::tokens);
        let locks = tokens.filter_map(|token| self.locks.get(token));
        let own = locks.filter(|lock| lock.user == who.person.name);
        own.filter_map(|lock| lock.holder()).collect()
    }
}

/// Checks the preconditions of a change.
///
/// # Errors
/// 400 for an invalid `If`, 412 for one that does not hold; 423 for a locked resource, or 207 if
/// only members below it are locked.
pub async fn permit(
    dav: &Dav,
    core: &Core,
    who: &Caller,
    asked: ConditionalRequest<'_>,
    touched: &[Touched<'_>],
) -> Result<(), Response> {
    let mut tokens = HashSet::new();
    if asked.headers.get("if").is_some() {
        let header = asked.headers.text("if").and_then(|value| If::parse(value).ok());
        let Some(header) = header else { return refuse(400, "invalid If header") };
        if !holds(dav, core, who, asked, &header).await {
            return refuse(412, "the If condition is not met");
        }
        tokens = header.tokens().collect();
    }
    let held = |lock: &Lock| lock.user == who.person.name && tokens.contains(lock.token.as_str());
    for one in touched {
        let missing = dav.locks.missing(*one, held);
        if !missing.is_empty() {
            return Err(locked(*one, &missing));
        }
    }
    Ok(())
}

/// The answer for what is locked: a multistatus if it is only below what is changed (§9.6.1).
fn locked(touched: Touched<'_>, missing: &[Arc<Lock>]) -> Response {
    let mut below = touched.path.to_vec();
    below.push(b'/');
    let mut hrefs: Vec<String> =
        missing.iter().map(|lock| multi::href(&lock.root, false)).collect();
    hrefs.dedup();
    hrefs.truncate(DAV_FAILURES_MAX);
    if missing.iter().all(|lock| lock.root.starts_with(&below)) {
        let all: Vec<_> = hrefs.into_iter().map(|href| (href, 423)).collect();
        return multi::failures(&all);
    }
    multi::error(423, "lock-token-submitted", &hrefs)
}

impl Job<'_, '_> {
    fn asked(&self) -> ConditionalRequest<'_> {
        ConditionalRequest {
            headers: &self.request.headers,
            host: &self.request.host,
            path: &self.path,
        }
    }

    /// Judges `If-Match`, `If-None-Match` and `If-Unmodified-Since` (RFC 9110 §13.2.1) for what the
    /// target of the request leads to now: for COPY and MOVE that is the source.
    async fn judge(&self) -> Result<(), Response> {
        if self.request.method.is_safe() {
            return Ok(());
        }
        let Some(conditions) = Conditions::of(&self.request.headers) else { return Ok(()) };
        let now = match self.core.find(&self.who, &self.path, Links::Follow).await {
            Ok(PathTarget::Node(node)) => Some(Validators::of(&node.attr)),
            // The list of shares is there as a collection is.
            Ok(PathTarget::Root) => Some(Validators::of_collection()),
            Err(Status::NotFound | Status::NotDirectory) => None,
            Err(status) => return Err(status.into()),
        };
        if conditions.hold(now.as_ref()) { Ok(()) } else { refuse(412, "") }
    }

    /// As [`permit`], for what the request is about.
    ///
    /// # Errors
    /// The same; 412 if another condition of the request does not hold.
    pub async fn permit(&self, touched: &[Touched<'_>]) -> Result<(), Response> {
        self.judge().await?;
        permit(self.dav, self.core, &self.who, self.asked(), touched).await
    }

    /// Where COPY and MOVE lead (§10.3).
    ///
    /// # Errors
    /// 400 if there is no such header or it is invalid, 502 if it leads to another server.
    pub fn destination(&self) -> Result<VPath, Response> {
        let asked = self.asked();
        let header = asked.headers.text("destination").and_then(target);
        let Some(url) = header else { return refuse(400, "missing Destination") };
        if url.authority.is_some_and(|authority| !asked.is_this_server(authority)) {
            return refuse(502, "the Destination is on another server");
        }
        let path = decode_path(url.path.as_bytes()).ok();
        match path.and_then(|(path, _)| VPath::parse(&path).ok()) {
            Some(path) => Ok(path),
            None => refuse(400, "invalid Destination"),
        }
    }
}

/// Judges the preconditions of a PUT to a place.
///
/// # Errors
/// As of [`permit`].
pub async fn begin_write(
    dav: &Dav,
    core: &Core,
    who: &Caller,
    asked: ConditionalRequest<'_>,
    spot: &Spot,
) -> Result<(), Response> {
    let (path, of) = (asked.path.to_bytes(), dav.lineage(core, who, spot).await?);
    let touched = Touched { path: &path, of: &of, name: spot.entry.is_none(), tree: false };
    permit(dav, core, who, asked, &[touched]).await
}

/// The dead properties of a file.
pub(super) async fn dead_of(core: &Core, who: &Caller, node: &Node) -> vfs::fs::Result<Dead> {
    let (fs, file) = (Arc::clone(&node.reached.share.fs), node.handle);
    core.look(who, &node.reached.cred, move |cx| Dead::read(&*fs, cx, &file)).await
}

/// Gives a file these dead properties; where the file system keeps none, they are lost.
pub(super) async fn give_dead(
    core: &Core,
    who: &Caller,
    node: &Node,
    dead: Dead,
) -> vfs::fs::Result<()> {
    let file = node.handle;
    let write = move |fs: &dyn FileSystem, cx: vfs::fs::Context<'_>| dead.write(fs, cx, &file);
    match core.alter(who, &node.reached, write).await {
        Err(vfs::status::Status::NotSupported) => Ok(()),
        done => done,
    }
}

/// Another file is at a path now, after a PUT for example: locks on what was there, as it was found
/// before, are on it.
///
/// # Errors
/// It cannot be written.
pub async fn replaced(
    dav: &Arc<Dav>,
    core: &Core,
    who: &Caller,
    (path, before): (&VPath, Option<&Attr>),
    node: &Node,
) -> Result<(), Response> {
    if dav.locks.is_empty() {
        return Ok(());
    }
    let (dav, path, file) = (Arc::clone(dav), path.to_bytes(), node.key());
    let old = before.and_then(that_goes);
    let note = move |_: vfs::fs::Context<'_>| dav.locks.replaced(&path, old, file);
    let done = core.pooled(who, &node.reached.cred, note).await?;
    done.or_else(|error| refuse(500, &error.to_string()))
}
