//! Directory listings: for users (LIST), by name (NLST), as facts (MLSD, MLST).

use std::sync::Arc;

use base::clock::{NS_PER_S, wall_ns};
use base::limits::{FTP_LISTING_PIECE, FTP_STAT_NAMES_MAX};
use vfs::attr::{Attr, FileType};
use vfs::fs::access::{DELETE, EXTEND, LOOKUP, MODIFY, READ};
use vfs::rights;
use vfs::status::Status;
use wire::ftp::facts::{Entry, Facts, Kind};
use wire::ftp::list::{self, Line};

use super::answer::{Answer, Outcome};
use super::flow::Flow;
use super::glob::Glob;
use super::session::Session;
use super::status::{DONE, lost};
use engine::transport::link::Link;
use files::list::{Filter, ListOptions, Listed, Listing, mode_text};
use files::{Caller, Core, Links, Node, PathTarget, VPath};

/// What a line looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// LIST: as of `ls -l`.
    People,
    /// NLST: the name.
    Names,
    /// MLSD.
    Facts(Facts),
}

/// What is listed.
enum Source {
    /// The shares.
    Shares,
    /// A directory; with a pattern only what fits it, with what comes before its name.
    Dir(Node, Option<(Vec<u8>, Vec<u8>)>),
    /// One file, under the name in the command.
    One(Node, Vec<u8>),
}

/// A listing.
pub(super) struct Job {
    source: Source,
    /// Where the directory is, for its links.
    at: VPath,
    form: Form,
}

/// What LIST, NLST or MLSD requests, if it may be listed.
pub(super) async fn job(s: &mut Session, form: Form, path: Option<&[u8]>) -> Result<Job, Answer> {
    let path = path.unwrap_or(b".");
    let at = s.state.resolve(path)?;
    let of = |source, at| Job { source, at, form };
    match s.found(path).await {
        Ok(PathTarget::Root) => Ok(of(Source::Shares, at)),
        Ok(PathTarget::Node(node)) if node.is_dir() => {
            may_list(s, &node).await?;
            Ok(of(Source::Dir(node, None), at))
        }
        Ok(_) if matches!(form, Form::Facts(_)) => Err(Answer::of(501, "Not a directory.")),
        Ok(PathTarget::Node(node)) => Ok(of(Source::One(node, path.to_vec()), at.parent())),
        Err(_) if is_pattern(path) && !matches!(form, Form::Facts(_)) => {
            let cut = path.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1);
            let (before, pattern) = path.split_at(cut);
            let parent = at.parent();
            let node = s.found(if before.is_empty() { b"." } else { before }).await?.node()?;
            if !node.is_dir() {
                return Err(Status::NotDirectory.into());
            }
            may_list(s, &node).await?;
            let fits = Some((pattern.to_vec(), before.to_vec()));
            Ok(of(Source::Dir(node, fits), parent))
        }
        Err(error) => Err(error),
    }
}

async fn may_list(s: &Session, node: &Node) -> Result<(), Answer> {
    match s.core.access(s.caller()?, node, READ).await? & READ {
        0 => Err(Status::Access.into()),
        _ => Ok(()),
    }
}

impl Job {
    /// Sends it.
    pub(super) async fn send(
        self,
        (core, who): (&Core, &Caller),
        link: &mut Link,
        flow: &Flow,
    ) -> Outcome {
        let Self { source, at, form } = self;
        let writer = Writer { core, who, at: &at, form };
        let mut out = Vec::new();
        let mut batches = Batches::of(source, form);
        while let Some(batch) = batches.next(&writer).await? {
            for (name, about) in &batch {
                writer.line((name, about), batches.dir(), &mut out).await;
                if out.len() >= FTP_LISTING_PIECE {
                    flush(core, link, &mut out, flow, true).await?;
                }
            }
            tokio::task::yield_now().await;
        }
        flush(core, link, &mut out, flow, false).await?;
        Ok(DONE)
    }
}

async fn flush(
    core: &Core,
    link: &mut Link,
    out: &mut Vec<u8>,
    flow: &Flow,
    more: bool,
) -> Result<(), Answer> {
    let sent = link.send(out, more, &core.buffers).await;
    flow.count_bytes(out.len());
    out.clear();
    sent.map_err(|error| lost(core, &error))
}

/// STAT of a path: the listing comes over the control connection.
pub(super) async fn stat(s: &mut Session, path: &[u8]) -> Outcome {
    let Job { source, at, form } = job(s, Form::People, Some(path)).await?;
    let writer = Writer { core: &s.core, who: s.caller()?, at: &at, form };
    let (mut lines, mut batches) = (Vec::new(), Batches::of(source, form));
    'all: while let Some(batch) = batches.next(&writer).await? {
        s.may_continue()?;
        for (name, about) in &batch {
            if lines.len() >= FTP_STAT_NAMES_MAX {
                lines.push(b"and more: use LIST.".to_vec());
                break 'all;
            }
            let mut line = Vec::new();
            writer.line((name, about), batches.dir(), &mut line).await;
            line.truncate(line.len().saturating_sub(b"\r\n".len()));
            lines.push(line);
        }
    }
    Ok(Answer::lines(213, "Status:", lines))
}

/// MLST.
pub(super) async fn mlst(s: &mut Session, path: Option<&[u8]>) -> Outcome {
    let path = path.unwrap_or(b".");
    let found = s.found(path).await?;
    let shown = s.state.shown(path)?.to_bytes();
    let about = match found {
        PathTarget::Root => About::Nothing,
        PathTarget::Node(node) => About::Node(node),
    };
    let mut line = Vec::new();
    facts((&shown, &about, None), s.state.facts, &mut line);
    Ok(Answer::lines(250, "Listing:", vec![line]))
}

type Named = (Vec<u8>, About);

/// What is known of something that is listed.
enum About {
    /// A file, a directory or a link.
    Node(Node),
    /// What another file system has there: it is shown and cannot be entered.
    Mounted(Attr),
    /// Only its name.
    Nothing,
}

impl About {
    fn node(&self) -> Option<&Node> {
        match self {
            Self::Node(node) => Some(node),
            Self::Mounted(_) | Self::Nothing => None,
        }
    }

    fn attr(&self) -> Option<&Attr> {
        match self {
            Self::Node(node) => Some(&node.attr),
            Self::Mounted(attr) => Some(attr),
            Self::Nothing => None,
        }
    }
}

/// What is listed, some at a time.
enum Batches {
    Shares,
    /// A directory, what comes before each name, and whether nothing of it was listed.
    Dir(Box<Listing>, Vec<u8>, bool),
    One(Option<Box<Named>>),
    Over,
}

impl Batches {
    fn of(source: Source, form: Form) -> Self {
        match source {
            Source::Shares => Self::Shares,
            Source::Dir(node, fits) => {
                let (pattern, before) = fits.unzip();
                let filter = pattern.map(|pattern| {
                    let glob = Glob::new(&pattern);
                    Arc::new(move |name: &[u8]| glob.fits(name)) as Filter
                });
                let wanted = ListOptions { filter, names_only: form == Form::Names };
                let listing = Box::new(Listing::of(node, wanted));
                Self::Dir(listing, before.unwrap_or_default(), true)
            }
            Source::One(node, name) => Self::One(Some(Box::new((name, About::Node(node))))),
        }
    }

    fn dir(&self) -> Option<&Node> {
        match self {
            Self::Dir(listing, ..) => Some(listing.dir()),
            _ => None,
        }
    }

    async fn next(&mut self, writer: &Writer<'_>) -> Result<Option<Vec<Named>>, Answer> {
        let (core, who) = (writer.core, writer.who);
        match self {
            Self::Over => Ok(None),
            Self::One(one) => Ok(one.take().map(|one| vec![*one])),
            Self::Shares => {
                let mut all = Vec::new();
                for share in core.shares(who) {
                    let name = share.name.clone().into_bytes();
                    let path = VPath::ROOT.with(&name);
                    let found = core.find(who, &path, Links::Follow).await;
                    let node = found.and_then(PathTarget::node);
                    all.push((name, node.map_or(About::Nothing, About::Node)));
                }
                *self = Self::Over;
                Ok(Some(all))
            }
            Self::Dir(listing, before, first) => {
                let Some(mut batch) = listing.next(core, who).await? else { return Ok(None) };
                if std::mem::take(first) {
                    // All of a small directory.
                    batch.sort_by(|a, b| a.name.cmp(&b.name));
                }
                let reached = &listing.dir().reached;
                let named = |Listed { name, entry, mounted, .. }: Listed| {
                    let about = match entry {
                        Some((handle, attr)) => {
                            About::Node(Node { reached: reached.clone(), handle, attr })
                        }
                        None if writer.form == Form::Names => About::Nothing,
                        None => About::Mounted(mounted?),
                    };
                    let name = if before.is_empty() { name } else { [&before[..], &name].concat() };
                    Some((name, about))
                };
                let mut batch: Vec<_> = batch.into_iter().filter_map(named).collect();
                if matches!(writer.form, Form::Facts(_)) {
                    writer.follow(&mut batch).await;
                }
                Ok(Some(batch))
            }
        }
    }
}

/// Writes the lines of one listing.
struct Writer<'a> {
    core: &'a Core,
    who: &'a Caller,
    at: &'a VPath,
    form: Form,
}

impl Writer<'_> {
    async fn line(&self, (name, about): (&[u8], &About), dir: Option<&Node>, out: &mut Vec<u8>) {
        match self.form {
            Form::Names => {
                list::name(name, out);
                out.extend_from_slice(b"\r\n");
            }
            Form::People => self.for_people(name, about, out).await,
            Form::Facts(selected) => {
                facts((name, about, dir), selected, out);
                out.extend_from_slice(b"\r\n");
            }
        }
    }

    async fn for_people(&self, name: &[u8], about: &About, out: &mut Vec<u8>) {
        let now = (wall_ns() / NS_PER_S) as i64;
        let Some(attr) = about.attr() else {
            let mode = mode_text(FileType::Directory, 0o755);
            let (links, owner, group, size) = (1, 0, 0, 0);
            let line = Line { mode, links, owner, group, size, modify: now, name, target: None };
            return line.encode(now, out);
        };
        let target = match about {
            About::Node(node) if attr.kind == FileType::Symlink => {
                self.core.read_link(self.who, node).await.ok()
            }
            _ => None,
        };
        let line = Line {
            mode: mode_text(attr.kind, attr.mode),
            links: attr.nlink,
            owner: attr.uid,
            group: attr.gid,
            size: attr.size,
            modify: attr.mtime.sec,
            name,
            target: target.as_deref(),
        };
        line.encode(now, out);
    }

    /// Puts the regular files that links lead to in their places: each can be had under the link's
    /// name. A directory behind a link is shown as a link, or a copy of the tree would have no end.
    async fn follow(&self, batch: &mut [Named]) {
        let is_link =
            |about: &About| about.attr().is_some_and(|attr| attr.kind == FileType::Symlink);
        let links = batch.iter_mut().filter(|(_, about)| is_link(about));
        let (names, abouts): (Vec<_>, Vec<_>) =
            links.map(|(name, about)| (name.clone(), about)).unzip();
        if names.is_empty() {
            return;
        }
        // A directory that has gone meanwhile has no links that lead anywhere.
        let Ok(ends) = self.core.find_links(self.who, self.at, &names).await else { return };
        for (about, end) in abouts.into_iter().zip(ends) {
            if let Some(file) = end.filter(Node::is_file) {
                *about = About::Node(file);
            }
        }
    }
}

/// The facts of a file, or of something of which there is only a name: the list of shares.
fn facts((name, about, dir): (&[u8], &About, Option<&Node>), selected: Facts, out: &mut Vec<u8>) {
    let Some(attr) = about.attr() else {
        let (kind, perm) = (Some(Kind::Dir), Some("el"));
        return Entry { kind, perm, name, ..Entry::default() }.encode(selected, out);
    };
    let kind = match attr.kind {
        FileType::Regular => Kind::File,
        FileType::Directory => Kind::Dir,
        FileType::Symlink => Kind::Link,
        _ => Kind::Special,
    };
    // Nothing may be done with what is mounted.
    let perm = about.node().map(|node| perm(node, dir)).unwrap_or_default();
    let entry = Entry {
        kind: Some(kind),
        size: (kind == Kind::File).then_some(attr.size),
        modify: Some(attr.mtime.sec),
        perm: Some(&perm),
        unique: Some((attr.fsid, attr.fileid)),
        mode: Some(attr.mode),
        owner: Some(attr.uid),
        group: Some(attr.gid),
        name,
    };
    entry.encode(selected, out);
}

/// What may be done with it (RFC 3659 §7.5.5), as far as its mode and its directory's say.
fn perm(node: &Node, dir: Option<&Node>) -> String {
    let has = |node: &Node| {
        let changes = if node.reached.writable { u32::MAX } else { !(MODIFY | EXTEND | DELETE) };
        let granted = rights::granted(&node.attr, &node.reached.cred);
        rights::to_access(node.attr.kind, granted) & changes
    };
    let (own, parent) = (has(node), dir.map_or(0, has));
    let letters: &[(bool, char)] = match node.attr.kind {
        FileType::Directory => &[
            (own & EXTEND != 0, 'c'),
            (parent & DELETE != 0, 'd'),
            (own & LOOKUP != 0, 'e'),
            (parent & DELETE != 0, 'f'),
            (own & READ != 0, 'l'),
            (own & EXTEND != 0, 'm'),
            (own & DELETE != 0, 'p'),
        ],
        _ => &[
            (own & EXTEND != 0, 'a'),
            (parent & DELETE != 0, 'd'),
            (parent & DELETE != 0, 'f'),
            (own & READ != 0, 'r'),
            (own & MODIFY != 0, 'w'),
        ],
    };
    letters.iter().filter(|(has, _)| *has).map(|(_, letter)| *letter).collect()
}

/// Whether a last name may be a pattern.
fn is_pattern(path: &[u8]) -> bool {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or_default();
    name.iter().any(|b| matches!(b, b'*' | b'?'))
}

#[cfg(test)]
mod tests;
