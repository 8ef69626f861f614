//! PROPFIND (RFC 4918 §9.1): properties of a resource, or of it and its members. A long answer is
//! made while it is sent.

use std::rc::Rc;
use std::sync::Arc;
use std::vec::IntoIter;

use base::limits::{DAV_FIND_DEAD_BYTES, HTTP_PIECE};
use vfs::attr::{Attr, FileType};
use vfs::fs::{Context, FileSystem, Space};
use vfs::handle::Handle;
use vfs::locks::FileKey;
use wire::dav::body::Find;
use wire::dav::header::Depth;

use super::dead::{Dead, XATTR};
use super::precondition::{dead_of, lineage_of};
use super::props::{PropertyRequest, Resource, needs_dead, needs_space};
use super::state::Lineage;
use super::{Dav, Job, Outcome, multi, refuse};
use crate::request::{Local, put_percent_encoded};
use crate::response::{Broken, Produce, Response};
use files::list::{Listed, Listing};
use files::{Caller, Core, Links, Node, PathTarget, VPath};

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
        PathTarget::Root => true,
        PathTarget::Node(node) => node.is_dir(),
    };
    // A tree can have millions of members (§9.1: a server may refuse this).
    if collection && depth == Depth::Infinity {
        return Err(multi::error(403, "propfind-finite-depth", &[]));
    }
    let of = match job.dav.locks.is_empty() {
        true => Lineage::default(),
        false => lineage_of(job.core, &job.who, &job.path).await?,
    };
    let mut around = job.path.to_bytes();
    if !around.ends_with(b"/") {
        around.push(b'/');
    }
    let mut answer = Answer {
        of,
        href: multi::href(&around, true),
        around,
        dav: Arc::clone(job.dav),
        core: Rc::clone(job.core),
        who: job.who.clone(),
        path: job.path.clone(),
        find: PropertyRequest::of(find),
        space: None,
        members: collection && depth == Depth::One,
        stage: Stage::Begin(found),
        made: multi::BEGIN.to_owned(),
    };
    // A failure before anything was sent determines the status of the response.
    while answer.made.len() < HTTP_PIECE {
        if !answer.step().await? {
            let all = std::mem::take(&mut answer.made);
            return Ok(Response::new(207).bytes(multi::XML, all.into_bytes()));
        }
    }
    Ok(Response::new(207).stream(multi::XML, answer))
}

/// What a path leads to, or the link that leads nowhere.
async fn shown(job: &Job<'_, '_>) -> Result<PathTarget, Response> {
    let refused = match job.found().await {
        Err(refused) => refused,
        found => return found,
    };
    match job.spot(Links::Keep).await.and_then(|spot| spot.node()) {
        Ok(link) if link.attr.kind == FileType::Symlink => Ok(PathTarget::Node(link)),
        _ => Err(refused),
    }
}

/// What comes next.
enum Stage {
    /// The resource itself.
    Begin(PathTarget),
    /// Shares, those that come last first.
    Shares(Vec<VPath>),
    /// Members of a directory: those with dead properties still to be read, and those that are
    /// ready to be sent.
    Members {
        listing: Listing,
        looked: Vec<Member>,
        ready: IntoIter<Member>,
    },
    End,
}

/// A member of a directory, with its name and its dead properties.
struct Member {
    name: Vec<u8>,
    attr: Attr,
    dead: Dead,
    lookup: PropertyLookup,
}

/// How the dead properties of a member are found.
#[derive(PartialEq)]
enum PropertyLookup {
    /// By its name in the directory.
    Name,
    /// By the handle of what a link leads to.
    Handle(Handle),
    /// Not at all.
    None,
}

/// An answer that is being made.
struct Answer {
    dav: Arc<Dav>,
    core: Rc<Core>,
    who: Caller,
    path: VPath,
    /// The path with a slash at its end, and as a URL: what the members of a directory begin with.
    around: Vec<u8>,
    href: String,
    /// The resource by identity, for its locks.
    of: Lineage,
    find: PropertyRequest,
    space: Option<Space>,
    members: bool,
    stage: Stage,
    made: String,
}

impl Answer {
    /// Makes the next part; false if that was the last one.
    async fn step(&mut self) -> vfs::fs::Result<bool> {
        match std::mem::replace(&mut self.stage, Stage::End) {
            Stage::Begin(PathTarget::Root) => {
                self.add((b"/", "/"), Lineage::UNKNOWN, None, &Dead::default());
                let shares = self.core.shares(&self.who);
                let paths =
                    shares.iter().rev().map(|share| VPath::ROOT.with(share.name.as_bytes()));
                let paths = paths.filter(|_| self.members);
                self.stage = Stage::Shares(paths.collect());
            }
            Stage::Begin(PathTarget::Node(node)) => {
                let (path, of) = (self.path.to_bytes(), self.of.clone());
                self.one((&path, &of), &node).await?;
                if self.members {
                    let (listing, looked) = (Listing::new(node), Vec::new());
                    let ready = Vec::new().into_iter();
                    self.stage = Stage::Members { listing, looked, ready };
                    return Ok(true);
                }
                return Ok(self.end());
            }
            Stage::Shares(mut paths) => {
                let Some(path) = paths.pop() else { return Ok(self.end()) };
                self.stage = Stage::Shares(paths);
                // A share with a root that the caller cannot access is omitted.
                if let Ok(PathTarget::Node(node)) =
                    self.core.find(&self.who, &path, Links::Follow).await
                {
                    let of = Lineage { file: Some(node.key()), above: Vec::new() };
                    self.one((&path.to_bytes(), &of), &node).await?;
                }
            }
            Stage::Members { mut listing, mut looked, mut ready } => {
                if let Some(member) = ready.next() {
                    self.member(&member);
                } else {
                    if looked.is_empty() {
                        let Some(batch) = listing.next(&self.core, &self.who).await? else {
                            return Ok(self.end());
                        };
                        looked = self.look(batch).await?;
                    }
                    let (some, rest) = self.with_dead(listing.dir(), looked).await?;
                    (ready, looked) = (some.into_iter(), rest);
                }
                self.stage = Stage::Members { listing, looked, ready };
            }
            Stage::End => return Ok(false),
        }
        Ok(true)
    }

    fn end(&mut self) -> bool {
        self.made.push_str(multi::END);
        false
    }

    fn add(&mut self, at: (&[u8], &str), of: &Lineage, attr: Option<&Attr>, dead: &Dead) {
        let space = self.space.filter(|_| attr.is_some_and(|a| a.kind == FileType::Directory));
        let ((path, href), locks) = (at, &self.dav.locks);
        Resource { path, href, of, attr, dead, space, locks }.respond(&mut self.made, &self.find);
    }

    async fn one(&mut self, at: (&[u8], &Lineage), node: &Node) -> vfs::fs::Result<()> {
        let mut dead = Dead::default();
        if needs_dead(self.find.find()) {
            dead = dead_of(&self.core, &self.who, node).await?;
        }
        if needs_space(self.find.find()) && node.is_dir() {
            self.space = Some(self.core.space(&self.who, &node.reached).await?);
        }
        let href = multi::href(at.0, node.is_dir());
        self.add((at.0, &href), at.1, Some(&node.attr), &dead);
        Ok(())
    }

    /// Members of a directory. What goes away meanwhile is left out; a link that leads nowhere is
    /// shown itself: a client that empties a directory sees all that is in it.
    async fn look(&self, batch: Vec<Listed>) -> vfs::fs::Result<Vec<Member>> {
        let (mut members, mut links) = (Vec::with_capacity(batch.len()), Vec::new());
        let mut own = Vec::new();
        for listed in batch {
            let Some(attr) = listed.attr() else { continue };
            let lookup = match attr.kind {
                // Of what is mounted no more is known here.
                FileType::Regular | FileType::Directory if listed.mounted.is_some() => {
                    PropertyLookup::None
                }
                FileType::Regular | FileType::Directory => PropertyLookup::Name,
                FileType::Symlink => {
                    links.push(listed.name);
                    own.push(attr);
                    continue;
                }
                _ => PropertyLookup::None,
            };
            members.push(Member { name: listed.name, attr, dead: Dead::default(), lookup });
        }
        if !links.is_empty() {
            let ends = self.core.find_links(&self.who, &self.path, &links).await?;
            let own = own.into_iter().zip(ends);
            members.extend(links.into_iter().zip(own).map(|(name, (own, end))| {
                let (attr, lookup) = match end {
                    Some(Node { attr, handle, .. }) => (attr, PropertyLookup::Handle(handle)),
                    None => (own, PropertyLookup::None),
                };
                Member { name, attr, dead: Dead::default(), lookup }
            }));
        }
        Ok(members)
    }

    /// Adds the dead properties of members of a directory: of as many as are kept at once. Gives
    /// the others too.
    async fn with_dead(
        &self,
        dir: &Node,
        members: Vec<Member>,
    ) -> vfs::fs::Result<(Vec<Member>, Vec<Member>)> {
        let keeps_some = dir.reached.share.fs.features().xattrs;
        if members.is_empty() || !keeps_some || !needs_dead(self.find.find()) {
            return Ok((members, Vec::new()));
        }
        let (fs, at) = (Arc::clone(&dir.reached.share.fs), dir.handle);
        let read = move |cx: Context<'_>| read_dead((&*fs, cx), &at, members);
        self.core.pooled_look(&self.who, &dir.reached.cred, read).await
    }

    fn member(&mut self, Member { name, attr, dead, .. }: &Member) {
        let (mut path, mut href) = (std::mem::take(&mut self.around), String::new());
        std::mem::swap(&mut href, &mut self.href);
        let (path_len, href_len) = (path.len(), href.len());
        path.extend_from_slice(name);
        put_percent_encoded(name, &mut href);
        if attr.kind == FileType::Directory {
            href.push('/');
        }
        let of = match self.dav.locks.is_empty() {
            true => Lineage::default(),
            false => self.of.member(Some(FileKey::from(attr))),
        };
        self.add((&path, &href), &of, Some(attr), dead);
        path.truncate(path_len);
        href.truncate(href_len);
        (self.around, self.href) = (path, href);
    }
}

/// Reads the dead properties of members in their order, those of names in a row together, until
/// [`DAV_FIND_DEAD_BYTES`] are read. Gives those that were read, and the others.
fn read_dead(
    (fs, cx): (&dyn FileSystem, Context<'_>),
    dir: &Handle,
    mut members: Vec<Member>,
) -> (Vec<Member>, Vec<Member>) {
    let (mut done, mut bytes) = (0, 0);
    // Gone, perhaps: it has none then.
    let dead = |value: vfs::fs::Result<Vec<u8>>, bytes: &mut usize| {
        *bytes += value.as_ref().map_or(0, Vec::len);
        Dead::of(value).unwrap_or_default()
    };
    while let Some((first, _)) = members.get_mut(done..).and_then(<[_]>::split_first_mut)
        && bytes < DAV_FIND_DEAD_BYTES
    {
        match &first.lookup {
            PropertyLookup::None => done += 1,
            PropertyLookup::Handle(file) => {
                first.dead = dead(fs.get_xattr(cx, file, XATTR), &mut bytes);
                done += 1;
            }
            PropertyLookup::Name => {
                let rest = members.get(done..).unwrap_or_default();
                let run = rest.iter().take_while(|one| one.lookup == PropertyLookup::Name);
                let names: Vec<&[u8]> = run.map(|one| one.name.as_slice()).collect();
                let (count, mut read) = (names.len(), Vec::with_capacity(names.len()));
                let mut each = |value| {
                    read.push(dead(value, &mut bytes));
                    bytes < DAV_FIND_DEAD_BYTES
                };
                if fs.get_xattrs_at(cx, (dir, &names), XATTR, &mut each).is_err() {
                    read.resize(count, Dead::default());
                }
                // One at least: whatever is wrong with it, the next is looked at.
                let next = done + read.len().max(1);
                for (member, dead) in members.iter_mut().skip(done).zip(read) {
                    member.dead = dead;
                }
                done = next;
            }
        }
    }
    let rest = members.split_off(done);
    (members, rest)
}

impl Produce for Answer {
    fn next<'a>(&'a mut self, into: &'a mut Vec<u8>) -> Local<'a, Result<bool, Broken>> {
        Box::pin(async move {
            let mut more = true;
            while more && self.made.len() < HTTP_PIECE {
                more = self.step().await.map_err(|status| Broken(status.to_string()))?;
                // Nothing to send for a while: the connection looks whether its client is there.
                if self.made.is_empty() {
                    break;
                }
            }
            into.extend_from_slice(self.made.as_bytes());
            self.made.clear();
            Ok(more)
        })
    }
}
