//! COPY and MOVE (RFC 4918 §9.8, §9.9). A copy is made by the file system where it can, and
//! replaces a file only when it is whole; a move between shares is a copy that the original
//! follows.

use std::sync::Arc;

use vfs::attr::{Attr, FileType, SetAttr};
use vfs::fs::{Context, Entry};
use vfs::handle::Handle;
use vfs::locks::FileKey;
use vfs::status::Status;
use wire::dav::header::{Depth, overwrite};

use super::multi::Failures;
use super::precondition::{dead_of, give_dead, replaced};
use super::state::Touched;
use super::{Job, Outcome, refuse, replace, tree};
use crate::descent::Descent;
use crate::response::Response;
use files::caller::Reached;
use files::list::Listed;
use files::serial::Condition;
use files::set_aside::SetAside;
use files::upload::{Finished, How};
use files::{Links, Node, Spot, VPath};

/// Where something goes.
struct CopyTarget {
    to: VPath,
    spot: Spot,
    /// Whether what is there may be replaced (`Overwrite`).
    may_replace: bool,
}

/// Whether something may take the name of a place: without `Overwrite`, if nothing has it then.
fn condition(spot: &Spot, may_replace: bool) -> Condition {
    match may_replace {
        true => Arc::new(|| true),
        false => spot.now(|there| there.is_none()),
    }
}

/// What is copied or moved.
struct Source {
    node: Node,
    /// The directory that it is in; if it is one itself, that will do.
    around: (Reached, Handle),
    /// The name that is moved; `None` for a copy.
    name: Option<Spot>,
}

impl Source {
    async fn copied(job: &Job<'_, '_>) -> Result<Self, Response> {
        let Ok(node) = job.found().await?.node() else {
            return refuse(403, "the list of shares cannot be copied");
        };
        let mut around = (node.reached.clone(), node.handle);
        if !node.is_dir() {
            let spot = job.core.spot(&job.who, &job.path, Links::Follow).await?;
            around = (spot.reached, spot.dir);
        }
        Ok(Self { node, around, name: None })
    }

    async fn moved(job: &Job<'_, '_>) -> Result<Self, Response> {
        let name = job.spot(Links::Keep).await?;
        let node = name.node()?;
        name.reached.for_change()?;
        Ok(Self { node, around: (name.reached.clone(), name.dir), name: Some(name) })
    }
}

/// Whether a directory is, or is within, the one that opens and locks know as `key`.
async fn is_within(
    job: &Job<'_, '_>,
    (reached, dir): (&Reached, Handle),
    key: FileKey,
) -> Result<bool, Response> {
    let fs = Arc::clone(&reached.share.fs);
    let above = move |cx: Context<'_>| fs.ancestors(cx, &dir);
    let above = job.core.look(&job.who, &reached.cred, above).await?;
    Ok(above.iter().any(|dir| dir.is_same_inode(&key)))
}

/// What COPY and MOVE have in common: the destination, and whether it is permitted (§9.8.3,
/// §9.9.3). Whether two directories are the same, or one contains the other, is determined by file
/// system and inode number: symbolic links and overlapping shares give one directory many paths.
async fn find_target(
    job: &Job<'_, '_>,
    source: &Source,
    whole: bool,
) -> Result<CopyTarget, Response> {
    const ITSELF: &str = "it cannot be copied or moved onto or into itself";
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
        return refuse(403, ITSELF);
    }
    let spot = match job.core.spot(&job.who, &to, Links::Keep).await {
        Err(Status::NotFound | Status::NotDirectory) if to.parts().len() > 1 => {
            return refuse(409, "the parent collection of the destination does not exist");
        }
        Err(Status::NotFound | Status::NotOwner) => {
            return refuse(403, "shares are made by the administrator");
        }
        spot => spot?,
    };
    spot.reached.for_change()?;
    let node = &source.node;
    let into = whole && node.is_dir();
    if into && is_within(job, (&spot.reached, spot.dir), node.key()).await? {
        return refuse(403, ITSELF);
    }
    if let Some(entry) = spot.entry {
        let key = FileKey::from(&entry.attr);
        let (reached, dir) = (&source.around.0, source.around.1);
        let holds = entry.attr.kind == FileType::Directory;
        if key.is_same_inode(&node.key()) || (holds && is_within(job, (reached, dir), key).await?) {
            return refuse(403, ITSELF);
        }
        if !may_replace {
            return refuse(412, "the destination exists");
        }
    }
    Ok(CopyTarget { to, spot, may_replace })
}

/// Copies to the destination. What is there is replaced when all has been copied, and stays if
/// something cannot be.
async fn copy_to(
    job: &Job<'_, '_>,
    node: &Node,
    way: &CopyTarget,
    deep: bool,
) -> Result<Failures, Response> {
    let file = |kind| kind == FileType::Regular;
    let entry = way.spot.entry;
    if entry.is_none_or(|entry| file(entry.attr.kind) && file(node.attr.kind)) {
        return copy_all(job, node, (&way.spot, way), deep).await;
    }
    let hidden = SetAside::new();
    let new = Spot { name: hidden.name.clone(), entry: None, ..way.spot.clone() };
    let mut done = copy_all(job, node, (&new, way), deep).await;
    if matches!(&done, Ok(failures) if failures.is_empty()) {
        done = replace::replace(job, &new, (&way.spot, &way.to)).await?;
        if matches!(&done, Ok(failures) if failures.is_empty()) {
            return done;
        }
    }
    // What cannot be removed now is where listings show it.
    if let Ok(entry) = look_up(job, &new).await {
        let left = Spot { entry: Some(entry), ..new };
        drop(tree::remove(job, &left, &way.to).await);
    }
    done
}

/// What is at a place now.
async fn look_up(job: &Job<'_, '_>, spot: &Spot) -> vfs::fs::Result<Entry> {
    let (fs, dir, name) = (Arc::clone(&spot.reached.share.fs), spot.dir, spot.name.clone());
    let look = move |cx: Context<'_>| match fs.lookup(cx, &dir, &name) {
        Ok((entry, _)) => Ok(entry),
        Err(failed) => Err(failed.status),
    };
    job.core.look(&job.who, &spot.reached.cred, look).await
}

/// Answers COPY.
pub(super) async fn copy(job: &mut Job<'_, '_>) -> Outcome {
    let source = Source::copied(job).await?;
    let deep = match job.request.headers.text("depth").map(Depth::parse) {
        None | Some(Some(Depth::Infinity)) => true,
        Some(Some(Depth::Zero)) => false,
        _ => return refuse(400, "the Depth of COPY must be 0 or infinity"),
    };
    let way = find_target(job, &source, deep && source.node.is_dir()).await?;
    let to = way.to.to_bytes();
    let existed = way.spot.entry.is_some();
    let of = job.dav.lineage(job.core, &job.who, &way.spot).await?;
    job.permit(&[Touched { path: &to, of: &of, name: !existed, tree: true }]).await?;
    let failures = copy_to(job, &source.node, &way, deep).await?;
    finish(job, &way, existed, failures).await
}

/// Renames to the destination, or copies and removes if they are on different file systems.
async fn move_to(
    job: &Job<'_, '_>,
    (node, from): (&Node, &Spot),
    way: &CopyTarget,
) -> Result<Failures, Response> {
    let is_dir = |entry: Entry| entry.attr.kind == FileType::Directory;
    let (to, entry) = (&way.spot, way.spot.entry);
    let renamed = if from.reached.share.id != to.reached.share.id {
        Err(Status::CrossDevice)
    } else if entry.is_some_and(|entry| is_dir(entry) || node.is_dir()) {
        replace::replace(job, from, (to, &way.to)).await
    } else {
        let condition = condition(to, way.may_replace);
        match job.core.rename_if(&job.who, (from, to), &condition).await {
            Ok(false) => Ok(refuse(412, "the destination exists")),
            renamed => renamed.map(|_| Ok(Failures::default())),
        }
    };
    match renamed {
        Err(Status::CrossDevice) => {}
        renamed => return renamed?,
    }
    let failures = copy_to(job, node, way, true).await?;
    if failures.is_empty() { tree::remove(job, from, &job.path).await } else { Ok(failures) }
}

/// Answers MOVE.
pub(super) async fn rename(job: &mut Job<'_, '_>) -> Outcome {
    let source = Source::moved(job).await?;
    let (node, Some(from)) = (&source.node, &source.name) else {
        return Err(Status::NotFound.into());
    };
    let depth = job.request.headers.text("depth").map(Depth::parse);
    if node.is_dir() && !matches!(depth, None | Some(Some(Depth::Infinity))) {
        return refuse(400, "Depth must be infinity for a collection");
    }
    let way = find_target(job, &source, true).await?;
    let (path, to) = (job.path.to_bytes(), way.to.to_bytes());
    let existed = way.spot.entry.is_some();
    let of = job.dav.lineage(job.core, &job.who, from).await?;
    let of_target = job.dav.lineage(job.core, &job.who, &way.spot).await?;
    let origin = Touched { path: &path, of: &of, name: true, tree: node.is_dir() };
    let target = Touched { path: &to, of: &of_target, name: !existed, tree: true };
    job.permit(&[origin, target]).await?;
    let failures = move_to(job, (node, from), &way).await?;
    if failures.is_empty() {
        // Locks do not go with what is moved (§7.6).
        tree::forget(job.dav, job.core, &job.who, (&job.path, Some(&node.attr)), false).await?;
    }
    finish(job, &way, existed, failures).await
}

async fn finish(job: &Job<'_, '_>, way: &CopyTarget, existed: bool, failures: Failures) -> Outcome {
    if !failures.is_empty() {
        return Err(failures.answer());
    }
    let before = way.spot.entry.as_ref().map(|entry| &entry.attr);
    if existed {
        tree::forget(job.dav, job.core, &job.who, (&way.to, before), true).await?;
    }
    // A lock that was at the destination stays there, on what is there now. Not by its path: that
    // may have led through what was replaced.
    match look_up(job, &way.spot).await {
        Ok(Entry { handle, attr }) => {
            let node = Node { reached: way.spot.reached.clone(), handle, attr };
            replaced(job.dav, job.core, &job.who, (&way.to, before), &node).await?;
        }
        // It was removed meanwhile.
        Err(Status::NotFound) => {}
        Err(status) => return Err(status.into()),
    }
    Ok(Response::new(if existed { 204 } else { 201 }))
}

/// Copies a file or a tree; gives what could not be copied. If that is the resource itself, its own
/// status is the answer.
async fn copy_all(
    job: &Job<'_, '_>,
    node: &Node,
    (spot, way): (&Spot, &CopyTarget),
    deep: bool,
) -> Result<Failures, Response> {
    let (to, may_replace) = (&way.to, way.may_replace);
    let mut copying = Copying { job, to, may_replace, failures: Failures::default() };
    let copied = match node.is_dir() {
        true => copying.tree(node, spot, deep).await,
        false => copying.single(node, spot).await,
    };
    match copied {
        Err(Status::Exists) if !may_replace => refuse(412, "the destination exists"),
        copied => copied.map(|()| copying.failures).map_err(Response::from),
    }
}

struct Copying<'a, 'b> {
    job: &'a Job<'a, 'b>,
    to: &'a VPath,
    may_replace: bool,
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
                        self.failures.note(self.to, walk.components(), true, status);
                    }
                    drop(walk.leave());
                    if walk.depth() == 0 {
                        return Ok(());
                    }
                    continue;
                }
            }
            let Some(listed) = walk.take() else { continue };
            let Some((handle, attr)) = listed.entry else {
                if let Some(attr) = listed.mounted {
                    let (way, dir) = (walk.components().chain([listed.name.as_slice()]), attr.kind);
                    let dir = dir == FileType::Directory;
                    self.failures.note(self.to, way, dir, Status::Access);
                }
                continue;
            };
            let (name, dir) = (listed.name.clone(), attr.kind == FileType::Directory);
            // One that was moved into the tree since: the copy would have no end.
            let outcome = match FileKey::from(&attr) == copy {
                true => Err(Status::Access),
                false => self.member(&mut walk, listed, (handle, attr)).await,
            };
            if let Err(status) = outcome {
                self.failures.note(
                    self.to,
                    walk.components().chain([name.as_slice()]),
                    dir,
                    status,
                );
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
        let spot = Spot { reached, dir, name, entry: None, link: None };
        if !node.is_dir() {
            return self.single(&node, &spot).await;
        }
        // Not made where nothing can follow: DELETE goes down no further either.
        walk.check_depth()?;
        let made = self.directory(&node, &spot).await?;
        walk.enter(listed, node, made)
    }

    async fn file(&self, node: &Node, spot: &Spot) -> vfs::fs::Result<()> {
        let (core, who) = (self.job.core, &self.job.who);
        // Also checks that the caller may read it.
        let reader = core.reader(who, node.clone()).await?;
        let set = SetAttr { mode: Some(node.attr.mode & 0o777), ..self.job.new_file() };
        let mut upload = core.upload(who, spot, How::Atomic(set)).await?;
        if !upload.is_aside() {
            // It could only be opened where it is: what was in it is gone already.
            core.set_attr(who, upload.node(), SetAttr { size: Some(0), ..SetAttr::default() })
                .await?;
        }
        upload.copy_from(core, who, node).await?;
        drop(reader);
        let condition = condition(spot, self.may_replace);
        match upload.finish_if(SetAttr::default(), &condition).await? {
            Finished::Named(made) => self.properties(node, &made).await,
            // The temporary file goes.
            Finished::Withheld(_) => Err(Status::Exists),
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
