//! WebDAV classes 1, 2 and 3 (RFC 4918), on top of files and directories as HTTP has them.
//!
//! - [`handle`] answers the methods that HTTP does not have, and those that change names;
//!   [`precondition::begin_write`] is for PUT, so that locks bind it too.
//! - [`find`], [`patch`]: PROPFIND and PROPPATCH; [`props`]: live properties; [`dead`]: dead
//!   properties, which clients set.
//! - [`lock`]: LOCK and UNLOCK; [`state`]: the table of locks, pure; [`record`]: a lock as it is
//!   stored on disk; [`locks`]: the table with its file and with the opens of all protocols.
//! - [`tree`]: MKCOL, DELETE; [`copy`]: COPY and MOVE; `replace`: what they replace;
//!   [`precondition`]: `If`, and the check of lock tokens.
//! - [`multi`]: multistatus responses.

pub mod copy;
pub mod dead;
pub mod find;
pub mod lock;
pub mod locks;
pub mod multi;
pub mod patch;
pub mod precondition;
pub mod props;
pub mod record;
mod replace;
pub mod state;
pub mod tree;

use std::rc::Rc;
use std::sync::{Arc, Mutex};

use base::limits::{DAV_BODY_MAX, DAV_SWEEP_EVERY};
use vfs::attr::{FileType, SetAttr};
use vfs::status::Status;

use super::Http;
use super::exchange::Exchange;
use super::request::{Method, Request};
use super::response::Response;
use super::status;
use engine::transport::tasks::Ending;
use files::{Caller, Core, Links, Node, PathTarget, Spot, VPath};
use locks::Locks;

/// What a method comes to: an answer either way.
pub type Outcome = Result<Response, Response>;

/// WebDAV's part of the service: the same over all its starts.
pub struct Dav {
    /// The locks.
    pub locks: Locks,
    /// Held while the properties of a file are read, changed and written.
    patching: Mutex<()>,
}

impl Dav {
    /// With these locks.
    pub fn new(locks: Locks) -> Arc<Self> {
        Arc::new(Self { locks, patching: Mutex::default() })
    }
}

/// Where a request is answered.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// WebDAV's part of the service.
    pub dav: &'a Arc<Dav>,
    /// The core that it is on.
    pub core: &'a Rc<Core>,
    /// Permission bits that new files and directories do not get.
    pub umask: u32,
    /// Receives the file of the request, for the statistics.
    pub seen: &'a dyn Fn(&Node),
}

/// A request in progress: what every method needs.
pub struct Job<'a, 'r> {
    site: Site<'a>,
    /// WebDAV's part of the service.
    pub dav: &'a Arc<Dav>,
    /// The core that it is on.
    pub core: &'a Rc<Core>,
    /// The caller, with the locks of which it has submitted the tokens.
    pub who: Caller,
    /// The request; its body may have been taken.
    pub request: Request<'r>,
    /// The path of its target.
    pub path: VPath,
}

/// Answers an authorised request.
pub(super) async fn exchange(cx: &Rc<Exchange>, request: Request<'_>) -> Response {
    let seen = |node: &Node| cx.of(node);
    let (dav, core, umask) = (&cx.http.dav, &cx.core, cx.settings.umask);
    let site = Site { dav, core, umask, seen: &seen };
    handle(site, &cx.caller, request).await
}

/// Answers one of the methods that WebDAV adds, and DELETE; others get 405.
pub async fn handle(site: Site<'_>, who: &Caller, request: Request<'_>) -> Response {
    let mut job = match Job::new(site, who, request) {
        Ok(job) => job,
        Err(response) => return response,
    };
    let outcome = match job.request.method {
        Method::Propfind => find::propfind(&mut job).await,
        Method::Proppatch => patch::proppatch(&mut job).await,
        Method::Mkcol => tree::mkcol(&mut job).await,
        Method::Delete => tree::delete(&mut job).await,
        Method::Copy => copy::copy(&mut job).await,
        Method::Move => copy::rename(&mut job).await,
        Method::Lock => lock::lock(&mut job).await,
        Method::Unlock => lock::unlock(&mut job).await,
        _ => Err(offer(Response::new(405))),
    };
    outcome.unwrap_or_else(|refused| refused)
}

/// Adds the headers by which clients detect WebDAV (RFC 4918 §10.1): for OPTIONS. The client of
/// Windows needs `MS-Author-Via` as well.
#[must_use]
pub fn offer(response: Response) -> Response {
    let methods = "OPTIONS, GET, HEAD, PUT, POST, PATCH, DELETE, PROPFIND, PROPPATCH, MKCOL, COPY, \
                   MOVE, LOCK, UNLOCK";
    response.with("dav", "1, 2, 3").with("ms-author-via", "DAV").with("allow", methods)
}

/// Takes locks that have ended off the disk, and out of the way of other protocols, until the
/// service ends.
pub(super) async fn sweep(http: &Arc<Http>, mut ending: Ending) {
    let mut tick = tokio::time::interval(DAV_SWEEP_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            _ = ending.wait_for(|end| *end) => return,
        }
        // If the pool has no place now, the next tick will do.
        let dav = Arc::clone(&http.dav);
        // A failed write is retried the next time; no request waits for it.
        http.files.engine.run_behind(0, move || drop(dav.locks.sweep()));
    }
}

impl<'a, 'r> Job<'a, 'r> {
    /// A request of a caller.
    ///
    /// # Errors
    /// Its path is too long.
    pub fn new(site: Site<'a>, who: &Caller, request: Request<'r>) -> Result<Self, Response> {
        let path =
            VPath::parse(&request.target.path).map_err(|e| Response::from(Status::from(e)))?;
        let mut who = who.clone();
        who.lent = site.dav.lent(&who, &request.headers);
        Ok(Self { site, dav: site.dav, core: site.core, who, request, path })
    }

    /// The whole body, which is XML or nothing.
    async fn body(&mut self) -> Result<Vec<u8>, Response> {
        Ok(self.request.body.read_all(DAV_BODY_MAX).await?)
    }

    /// What is at the path now.
    async fn found(&self) -> Result<PathTarget, Response> {
        let found = self.core.find(&self.who, &self.path, Links::Follow).await?;
        if let PathTarget::Node(node) = &found {
            (self.site.seen)(node);
            self.is_named(node)?;
        }
        Ok(found)
    }

    /// The place of the path now.
    async fn spot(&self, links: Links) -> vfs::fs::Result<Spot> {
        let spot = self.core.spot(&self.who, &self.path, links).await?;
        if let Ok(node) = spot.node() {
            (self.site.seen)(&node);
            // A link to a directory is shown as one, with a slash.
            if self.request.target.slash && node.attr.kind == FileType::Symlink {
                let found = self.core.find(&self.who, &self.path, Links::Follow).await?;
                self.is_named(&found.node()?)?;
            } else {
                self.is_named(&node)?;
            }
        }
        Ok(spot)
    }

    /// Checks that a path with a slash at its end leads to a collection.
    fn is_named(&self, node: &Node) -> vfs::fs::Result<()> {
        if self.request.target.slash && !node.is_dir() { Err(Status::NotFound) } else { Ok(()) }
    }

    /// Attributes of a directory that is made.
    fn new_dir(&self) -> SetAttr {
        SetAttr { mode: Some(0o777), umask: Some(self.site.umask), ..SetAttr::default() }
    }

    /// Attributes of a file that is made.
    fn new_file(&self) -> SetAttr {
        SetAttr { mode: Some(0o666), umask: Some(self.site.umask), ..SetAttr::default() }
    }
}

/// Refuses with a status and a text.
fn refuse<T>(code: u16, words: &str) -> Result<T, Response> {
    Err(status::plain(code, words))
}
