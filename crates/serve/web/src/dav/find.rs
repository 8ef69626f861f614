//! PROPFIND (RFC 4918 §9.1): properties of a resource, or of it and its members. A long answer is
//! made while it is sent.

use std::rc::Rc;
use std::sync::Arc;
use std::vec::IntoIter;

use base::limits::{DAV_FIND_MEMBERS, HTTP_PIECE};
use vfs::attr::{Attr, FileType};
use vfs::fs::Space;
use vfs::handle::Handle;
use vfs::locks::FileKey;
use wire::dav::body::Find;
use wire::dav::header::Depth;

use super::dead::Dead;
use super::precondition::{dead_of, lineage_of};
use super::props::{Resource, needs_dead, needs_space};
use super::state::Lineage;
use super::{Dav, Job, Outcome, multi, refuse};
use crate::request::Local;
use crate::response::{Broken, Produce, Response};
use files::list::{Listed, Listing};
use files::{Caller, Core, Found, Links, Node, VPath};

/// Answers PROPFIND.
pub(super) async fn propfind(job: &mut Job<'_, '_>) -> Outcome {
    let depth = match job.request.headers.text("depth") {
        None => Depth::Infinity,
        Some(value) => match Depth::parse(value) {
            Some(depth) => depth,
            None => return refuse(400, "invalid Depth"),
        },
    };
    let find = Find::parse(&job.body().await?);
    let find = find.or_else(|error| refuse(400, &error.to_string()))?;
    job.permit(&[]).await?;
    let found = shown(job).await?;
    let collection = match &found {
        Found::Root => true,
        Found::Node(node) => node.is_dir(),
    };
    // A tree can have millions of members (§9.1: a server may refuse this).
    if collection && depth == Depth::Infinity {
        return Err(multi::error(403, "propfind-finite-depth", &[]));
    }
    let of = match job.dav.locks.is_empty() {
        true => Lineage::default(),
        false => lineage_of(job.core, &job.who, &job.path).await?,
    };
    let mut answer = Answer {
        of,
        dav: Arc::clone(job.dav),
        core: Rc::clone(job.core),
        who: job.who.clone(),
        path: job.path.clone(),
        find,
        space: None,
        members: collection && depth == Depth::One,
        stage: Stage::Begin(found),
        made: multi::BEGIN.to_owned(),
    };
    // What fails before anything was sent is told by its own status.
    while answer.made.len() < HTTP_PIECE {
        if !answer.step().await? {
            let all = std::mem::take(&mut answer.made);
            return Ok(Response::new(207).bytes(multi::XML, all.into_bytes()));
        }
    }
    Ok(Response::new(207).stream(multi::XML, answer))
}

/// What a path leads to, or the link that leads nowhere.
async fn shown(job: &Job<'_, '_>) -> Result<Found, Response> {
    let refused = match job.found().await {
        Err(refused) => refused,
        found => return found,
    };
    match job.spot(Links::Keep).await.and_then(|spot| spot.node()) {
        Ok(link) if link.attr.kind == FileType::Symlink => Ok(Found::Node(link)),
        _ => Err(refused),
    }
}

/// What comes next.
enum Stage {
    /// The resource itself.
    Begin(Found),
    /// Shares, those that come last first.
    Shares(Vec<VPath>),
    /// Members of a directory: those that were listed and not yet looked at, and those that are
    /// ready to be told.
    Members {
        listing: Listing,
        listed: IntoIter<Listed>,
        ready: IntoIter<Member>,
    },
    End,
}

/// A member of a directory, with its name and its dead properties.
struct Member {
    name: Vec<u8>,
    attr: Attr,
    dead: Dead,
}

/// How the dead properties of a member are found.
enum PropertyLookup {
    /// By its name in the directory.
    Name,
    /// By the handle of what a link leads to.
    Handle(Handle),
    /// Not at all.
    None,
}

/// A member while it is looked at.
type Looked = (Vec<u8>, Attr, Dead, PropertyLookup);

/// An answer that is being made.
struct Answer {
    dav: Arc<Dav>,
    core: Rc<Core>,
    who: Caller,
    path: VPath,
    /// The resource by identity, for its locks.
    of: Lineage,
    find: Find,
    space: Option<Space>,
    members: bool,
    stage: Stage,
    made: String,
}

impl Answer {
    /// Makes the next part; false if that was the last one.
    async fn step(&mut self) -> vfs::fs::Result<bool> {
        match std::mem::replace(&mut self.stage, Stage::End) {
            Stage::Begin(Found::Root) => {
                self.add((b"/", Lineage::UNKNOWN), None, &Dead::default(), None);
                let shares = self.core.shares(&self.who);
                let paths =
                    shares.iter().rev().map(|share| VPath::ROOT.with(share.name.as_bytes()));
                let paths = paths.filter(|_| self.members);
                self.stage = Stage::Shares(paths.collect());
            }
            Stage::Begin(Found::Node(node)) => {
                let (path, of) = (self.path.to_bytes(), self.of.clone());
                self.one((&path, &of), &node).await?;
                if self.members {
                    let (listing, listed) = (Listing::new(node), Vec::new().into_iter());
                    let ready = Vec::new().into_iter();
                    self.stage = Stage::Members { listing, listed, ready };
                    return Ok(true);
                }
                return Ok(self.end());
            }
            Stage::Shares(mut paths) => {
                let Some(path) = paths.pop() else { return Ok(self.end()) };
                self.stage = Stage::Shares(paths);
                // One whose directory cannot be looked at is not there for this caller.
                if let Ok(Found::Node(node)) = self.core.find(&self.who, &path, Links::Follow).await
                {
                    let of = Lineage { file: Some(node.key()), above: Vec::new() };
                    self.one((&path.to_bytes(), &of), &node).await?;
                }
            }
            Stage::Members { mut listing, mut listed, mut ready } => {
                if let Some(member) = ready.next() {
                    self.member(&member);
                } else {
                    let mut some: Vec<_> = listed.by_ref().take(DAV_FIND_MEMBERS).collect();
                    if some.is_empty() {
                        let Some(batch) = listing.next(&self.core, &self.who).await? else {
                            return Ok(self.end());
                        };
                        listed = batch.into_iter();
                        some = listed.by_ref().take(DAV_FIND_MEMBERS).collect();
                    }
                    ready = self.look(listing.dir(), some).await?.into_iter();
                }
                self.stage = Stage::Members { listing, listed, ready };
            }
            Stage::End => return Ok(false),
        }
        Ok(true)
    }

    fn end(&mut self) -> bool {
        self.made.push_str(multi::END);
        false
    }

    fn add(
        &mut self,
        (path, of): (&[u8], &Lineage),
        attr: Option<&Attr>,
        dead: &Dead,
        space: Option<Space>,
    ) {
        let locks = &self.dav.locks;
        Resource { path, of, attr, dead, space, locks }.respond(&mut self.made, &self.find);
    }

    async fn one(&mut self, at: (&[u8], &Lineage), node: &Node) -> vfs::fs::Result<()> {
        let mut dead = Dead::default();
        if needs_dead(&self.find) {
            dead = dead_of(&self.core, &self.who, node).await?;
        }
        if needs_space(&self.find) && node.is_dir() {
            self.space = Some(self.core.space(&self.who, &node.reached).await?);
        }
        self.add(at, Some(&node.attr), &dead, self.space.filter(|_| node.is_dir()));
        Ok(())
    }

    /// Members of a directory. What goes away meanwhile is left out; a link that leads nowhere is
    /// shown itself: a client that empties a directory sees all that is in it.
    async fn look(&self, dir: &Node, batch: Vec<Listed>) -> vfs::fs::Result<Vec<Member>> {
        let mut members = Vec::with_capacity(batch.len());
        for listed in batch {
            let Some(attr) = listed.attr() else { continue };
            let (name, mounted) = (listed.name, listed.mounted.is_some());
            match attr.kind {
                // Of what is mounted no more is known here.
                FileType::Regular | FileType::Directory if mounted => {
                    members.push((name, attr, Dead::default(), PropertyLookup::None));
                }
                FileType::Regular | FileType::Directory => {
                    members.push((name, attr, Dead::default(), PropertyLookup::Name));
                }
                FileType::Symlink => {
                    let path = self.path.with(&name);
                    let found = self.core.find(&self.who, &path, Links::Follow).await;
                    let (attr, lookup) = match found {
                        Ok(Found::Node(node)) => (node.attr, PropertyLookup::Handle(node.handle)),
                        _ => (attr, PropertyLookup::None),
                    };
                    members.push((name, attr, Dead::default(), lookup));
                }
                _ => members.push((name, attr, Dead::default(), PropertyLookup::None)),
            }
        }
        if needs_dead(&self.find) && dir.reached.share.fs.features().xattrs {
            members = self.with_dead(dir, members).await?;
        }
        let member = |(name, attr, dead, _)| Member { name, attr, dead };
        Ok(members.into_iter().map(member).collect())
    }

    /// Adds the dead properties of members of a directory.
    async fn with_dead(&self, dir: &Node, members: Vec<Looked>) -> vfs::fs::Result<Vec<Looked>> {
        let (fs, at) = (Arc::clone(&dir.reached.share.fs), dir.handle);
        let read = move |cx: vfs::fs::Context<'_>| {
            let mut members = members;
            for (name, _, dead, way) in &mut members {
                let read = match way {
                    PropertyLookup::Name => Dead::read_at(&*fs, cx, (&at, name)),
                    PropertyLookup::Handle(file) => Dead::read(&*fs, cx, file),
                    PropertyLookup::None => continue,
                };
                // Gone, perhaps: it has none then.
                *dead = read.unwrap_or_default();
            }
            members
        };
        self.core.pooled(&self.who, &dir.reached.cred, read).await
    }

    fn member(&mut self, Member { name, attr, dead }: &Member) {
        let path = self.path.with(name).to_bytes();
        let space = self.space.filter(|_| attr.kind == FileType::Directory);
        let of = match self.dav.locks.is_empty() {
            true => Lineage::default(),
            false => self.of.member(Some(FileKey::from(attr))),
        };
        self.add((&path, &of), Some(attr), dead, space);
    }
}

impl Produce for Answer {
    fn next<'a>(&'a mut self, into: &'a mut Vec<u8>) -> Local<'a, Result<bool, Broken>> {
        Box::pin(async move {
            let mut more = true;
            while more && self.made.len() < HTTP_PIECE {
                more = self.step().await.map_err(|status| Broken(status.to_string()))?;
            }
            into.extend_from_slice(self.made.as_bytes());
            self.made.clear();
            Ok(more)
        })
    }
}
