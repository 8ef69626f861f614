//! COPY and MOVE (RFC 4918 §9.8, §9.9). A copy is made by the file system where it can, and
//! replaces a file only when it is whole; a move between shares is a copy that the original
//! follows.

use std::sync::Arc;

use base::limits::TRANSFER_PIECE;
use vfs::attr::{Attr, FileType, SetAttr};
use vfs::fs::{Context, FileSystem};
use vfs::handle::Handle;
use vfs::locks::FileKey;
use vfs::status::Status;
use wire::dav::header::{Depth, overwrite};

use super::multi::Failures;
use super::precondition::{dead_of, give_dead, replaced};
use super::state::Touched;
use super::{Job, Outcome, refuse, tree};
use crate::files::list::Listed;
use crate::files::upload::{How, Upload};
use crate::files::{Links, Node, Spot, VPath};
use crate::http::descent::Descent;
use crate::http::response::Response;

/// Where something goes.
struct Way {
    to: VPath,
    spot: Spot,
}

/// What COPY and MOVE have in common: where to, and whether that may be (§9.8.3, §9.9.3).
async fn way(job: &Job<'_, '_>, node: &Node, whole: bool) -> Result<Way, Response> {
    let to = job.destination()?;
    let may_replace = match job.request.headers.text("overwrite") {
        None => true,
        Some(value) => match overwrite(value) {
            Some(may) => may,
            None => return refuse(400, "Overwrite is T or F"),
        },
    };
    let into_itself = whole && to.starts_with(&job.path);
    if to == job.path || into_itself || job.path.starts_with(&to) {
        return refuse(403, "it cannot be copied or moved onto or into itself");
    }
    let spot = match job.core.spot(&job.who, &to, Links::Keep).await {
        Err(Status::NotFound | Status::NotDirectory) if to.parts().len() > 1 => {
            return refuse(409, "there is no collection around the destination");
        }
        Err(Status::NotFound | Status::NotOwner) => {
            return refuse(403, "shares are made by the administrator");
        }
        spot => spot?,
    };
    spot.reached.for_change()?;
    if whole && node.is_dir() {
        let share = Arc::clone(&spot.reached.share);
        let dir = spot.dir;
        let above = move |cx: Context<'_>| share.fs.ancestors(cx, &dir);
        let above = job.core.look(&job.who, &spot.reached.cred, above).await?;
        if above.contains(&node.key()) {
            return refuse(403, "a collection cannot be copied or moved into itself");
        }
    }
    if spot.entry.is_some() && !may_replace {
        return refuse(412, "there is something at the destination");
    }
    Ok(Way { to, spot })
}

/// Takes away what is at the destination, unless a file replaces a file: then it is there until the
/// new one is.
async fn make_room(job: &Job<'_, '_>, way: &mut Way, from_dir: bool) -> Result<(), Response> {
    let Some(entry) = way.spot.entry else { return Ok(()) };
    if !from_dir && entry.attr.kind == FileType::Regular {
        return Ok(());
    }
    let failures = tree::remove(job, &way.spot, &way.to).await?;
    if !failures.is_empty() {
        return Err(failures.answer());
    }
    way.spot.entry = None;
    tree::forget(job.dav, job.core, &job.who, &way.to, true).await
}

/// Answers COPY.
pub(super) async fn copy(job: &mut Job<'_, '_>) -> Outcome {
    let node = job.found().await?;
    let Ok(node) = node.node() else { return refuse(403, "the list of shares cannot be copied") };
    let deep = match job.request.headers.text("depth").map(Depth::parse) {
        None | Some(Some(Depth::Infinity)) => true,
        Some(Some(Depth::Zero)) => false,
        _ => return refuse(400, "the Depth of a copy is 0 or infinity"),
    };
    let mut way = way(job, &node, deep && node.is_dir()).await?;
    let to = way.to.to_bytes();
    let existed = way.spot.entry.is_some();
    job.permit(&[Touched { path: &to, name: !existed, tree: true }]).await?;
    make_room(job, &mut way, node.is_dir()).await?;
    let failures = copy_all(job, &node, &way, deep).await?;
    finish(job, &way, existed, failures).await
}

/// Answers MOVE.
pub(super) async fn rename(job: &mut Job<'_, '_>) -> Outcome {
    let from = job.spot(Links::Keep).await?;
    let node = from.node()?;
    from.reached.for_change()?;
    let depth = job.request.headers.text("depth").map(Depth::parse);
    if node.is_dir() && !matches!(depth, None | Some(Some(Depth::Infinity))) {
        return refuse(400, "a collection goes with all its members");
    }
    let mut way = way(job, &node, true).await?;
    let (path, to) = (job.path.to_bytes(), way.to.to_bytes());
    let existed = way.spot.entry.is_some();
    let source = Touched { path: &path, name: true, tree: node.is_dir() };
    let target = Touched { path: &to, name: !existed, tree: true };
    job.permit(&[source, target]).await?;
    make_room(job, &mut way, node.is_dir()).await?;
    let mut failures = Failures::default();
    match job.core.rename(&job.who, &from, &way.spot).await {
        Err(Status::CrossDevice) => {
            failures = copy_all(job, &node, &way, true).await?;
            if failures.is_empty() {
                failures = tree::remove(job, &from, &job.path).await?;
            }
        }
        done => done?,
    }
    if failures.is_empty() {
        // Locks do not go with what is moved (§7.6).
        tree::forget(job.dav, job.core, &job.who, &job.path, false).await?;
    }
    finish(job, &way, existed, failures).await
}

async fn finish(job: &Job<'_, '_>, way: &Way, existed: bool, failures: Failures) -> Outcome {
    if !failures.is_empty() {
        return Err(failures.answer());
    }
    // A lock that was at the destination stays there, on what is there now.
    let found = job.core.find(&job.who, &way.to, Links::Keep).await?;
    if let Ok(node) = found.node() {
        replaced(job.dav, job.core, &job.who, &way.to, &node).await?;
    }
    Ok(Response::new(if existed { 204 } else { 201 }))
}

/// Copies a file or a tree; gives what could not be copied. If that is the resource itself, its own
/// status is the answer.
async fn copy_all(
    job: &Job<'_, '_>,
    node: &Node,
    way: &Way,
    deep: bool,
) -> Result<Failures, Response> {
    let mut copying = Copying { job, to: &way.to, failures: Failures::default() };
    match node.is_dir() {
        true => copying.tree(node, &way.spot, deep).await?,
        false => copying.single(node, &way.spot).await?,
    }
    Ok(copying.failures)
}

struct Copying<'a, 'b> {
    job: &'a Job<'a, 'b>,
    to: &'a VPath,
    failures: Failures,
}

impl Copying<'_, '_> {
    /// Copies a file or a link to a place where nothing is, or, a file, a file.
    async fn single(&self, node: &Node, spot: &Spot) -> vfs::fs::Result<()> {
        let (core, who) = (self.job.core, &self.job.who);
        match node.attr.kind {
            FileType::Regular => self.file(node, spot).await,
            FileType::Symlink => {
                let target = core.read_link(who, node).await?;
                core.symlink(who, spot, &target).await
            }
            _ => Err(Status::Access),
        }
    }

    /// Makes a directory like another one, without what is in it.
    async fn directory(&self, node: &Node, spot: &Spot) -> vfs::fs::Result<Node> {
        let mode = SetAttr { mode: Some(node.attr.mode & 0o777), ..self.job.new_dir() };
        let made = self.job.core.make_dir(&self.job.who, spot, mode).await?;
        self.properties(node, &made).await?;
        Ok(made)
    }

    /// Copies a directory, with all that is in it if `deep`.
    async fn tree(&mut self, top: &Node, spot: &Spot, deep: bool) -> vfs::fs::Result<()> {
        let made = self.directory(top, spot).await?;
        if !deep {
            return Ok(());
        }
        let copy = made.key();
        let mut walk = Descent::new(top.clone(), made);
        while !self.failures.is_full() {
            match walk.fill(self.job.core, &self.job.who).await {
                Ok(true) => {}
                Err(status) if walk.depth() == 1 => return Err(status),
                ended => {
                    if let Err(status) = ended {
                        self.failures.note(self.to, walk.way(), true, status);
                    }
                    drop(walk.leave());
                    if walk.depth() == 0 {
                        return Ok(());
                    }
                    continue;
                }
            }
            let Some(listed) = walk.take() else { continue };
            let Some((handle, attr)) = listed.entry else { continue };
            let (name, dir) = (listed.name.clone(), attr.kind == FileType::Directory);
            // One that was moved into the tree since: the copy would have no end.
            let outcome = match FileKey::from(&attr) == copy {
                true => Err(Status::Access),
                false => self.member(&mut walk, listed, (handle, attr)).await,
            };
            if let Err(status) = outcome {
                self.failures.note(self.to, walk.way().chain([name.as_slice()]), dir, status);
            }
        }
        Ok(())
    }

    /// Copies an entry of the current directory; goes down into it if it is one itself.
    async fn member(
        &self,
        walk: &mut Descent<Node>,
        listed: Listed,
        (handle, attr): (Handle, Attr),
    ) -> vfs::fs::Result<()> {
        let Some((dir, made)) = walk.current() else { return Ok(()) };
        let node = Node { handle, attr, ..dir.clone() };
        let (reached, dir, name) = (made.reached.clone(), made.handle, listed.name.clone());
        let spot = Spot { reached, dir, name, entry: None };
        if !node.is_dir() {
            return self.single(&node, &spot).await;
        }
        let made = self.directory(&node, &spot).await?;
        walk.enter(listed, node, made)
    }

    async fn file(&self, node: &Node, spot: &Spot) -> vfs::fs::Result<()> {
        let (core, who) = (self.job.core, &self.job.who);
        // Also asks whether the caller may read it.
        let reader = core.reader(who, node.clone()).await?;
        let set = SetAttr { mode: Some(node.attr.mode & 0o777), ..self.job.new_file() };
        let mut upload = core.upload(who, spot, How::Whole(set)).await?;
        if !upload.is_aside() {
            // It could only be opened where it is: what was in it is gone already.
            core.set_attr(who, upload.node(), SetAttr { size: Some(0), ..SetAttr::default() })
                .await?;
        }
        let same = node.reached.share.id == spot.reached.share.id;
        let done = if same { self.by_file_system(node, &upload).await? } else { 0 };
        self.by_hand(node, &mut upload, done).await?;
        drop(reader);
        let made = upload.finish(SetAttr::default()).await?;
        self.properties(node, &made).await
    }

    /// Lets the file system copy; gives how far it came.
    async fn by_file_system(&self, node: &Node, upload: &Upload) -> vfs::fs::Result<u64> {
        let (from, to, size) = (node.handle, upload.node().handle, node.attr.size);
        let mut at = 0;
        while at < size {
            let copy = move |fs: &dyn FileSystem, cx: Context<'_>| {
                fs.copy_range(cx, (&from, at), (&to, at), size - at)
            };
            match self.job.core.alter(&self.job.who, upload.reached(), copy).await {
                Ok(0) | Err(Status::NotSupported | Status::CrossDevice | Status::Invalid) => break,
                done => at += done?,
            }
        }
        Ok(at)
    }

    /// Copies what is left from `at` on, piece by piece.
    async fn by_hand(&self, node: &Node, upload: &mut Upload, at: u64) -> vfs::fs::Result<()> {
        let (core, who) = (self.job.core, &self.job.who);
        let (mut at, mut buf) = (at, Vec::new());
        loop {
            let (fs, file) = (Arc::clone(&node.reached.share.fs), node.handle);
            let read = move |cx: Context<'_>| {
                buf.resize(TRANSFER_PIECE, 0);
                let done = fs.read(cx, &file, at, &mut buf);
                buf.truncate(done.map_or(0, |done| done.count));
                done.map(|done| (buf, done.eof))
            };
            let (data, eof) = core.pooled(who, &node.reached.cred, read).await??;
            let count = data.len() as u64;
            buf = if count > 0 { upload.write(at, data).await? } else { data };
            at += count;
            if eof || count == 0 {
                return Ok(());
            }
        }
    }

    /// The dead properties go with the copy.
    async fn properties(&self, from: &Node, to: &Node) -> vfs::fs::Result<()> {
        let (core, who) = (self.job.core, &self.job.who);
        let dead = dead_of(core, who, from).await?;
        // A file that was replaced has left its own.
        let before = dead_of(core, who, to).await?;
        if dead == before { Ok(()) } else { give_dead(core, who, to, dead).await }
    }
}
