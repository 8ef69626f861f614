//! MKCOL and DELETE (RFC 4918 §9.3, §9.6), and the removing of trees.

use std::collections::HashSet;
use std::sync::Arc;

use vfs::attr::{Attr, Wcc};
use vfs::fs::{Changed, Context, FileSystem, Flush};
use vfs::status::Status;
use wire::dav::header::Depth;

use super::multi::Failures;
use super::precondition::that_goes;
use super::state::{Lineage, Touched};
use super::{Dav, Job, Outcome, refuse};
use crate::descent::Descent;
use crate::response::Response;
use files::{Caller, Core, Links, Node, Spot, VPath};

/// Answers MKCOL.
pub(super) async fn mkcol(job: &mut Job<'_, '_>) -> Outcome {
    if !job.body().await?.is_empty() {
        return refuse(415, "MKCOL with a body is not supported");
    }
    let path = job.path.to_bytes();
    let spot = match job.core.spot(&job.who, &job.path, Links::Keep).await {
        Ok(spot) if spot.entry.is_some() => return refuse(405, "it already exists"),
        Err(Status::NotFound | Status::NotDirectory) if job.path.parts().len() > 1 => {
            return refuse(409, "the parent collection does not exist");
        }
        // A share, or the list of them.
        Err(Status::NotOwner) => return refuse(405, "it already exists"),
        Err(Status::NotFound) => return refuse(403, "shares are made by the administrator"),
        spot => spot?,
    };
    let of = job.dav.lineage(job.core, &job.who, &spot).await?;
    job.permit(&[Touched { path: &path, of: &of, name: true, tree: false }]).await?;
    match job.core.make_dir(&job.who, &spot, job.new_dir()).await {
        Err(Status::Exists) => refuse(405, "it already exists"),
        made => made.map(|_| Response::new(201)).map_err(Response::from),
    }
}

/// Answers DELETE.
pub(super) async fn delete(job: &mut Job<'_, '_>) -> Outcome {
    let spot = job.spot(Links::Keep).await?;
    let node = spot.node()?;
    let depth = job.request.headers.text("depth").map(Depth::parse);
    if node.is_dir() && !matches!(depth, None | Some(Some(Depth::Infinity))) {
        return refuse(400, "Depth must be infinity for a collection");
    }
    let (path, of) = (job.path.to_bytes(), job.dav.lineage(job.core, &job.who, &spot).await?);
    job.permit(&[Touched { path: &path, of: &of, name: true, tree: node.is_dir() }]).await?;
    let failures = remove(job, &spot, &job.path).await?;
    if !failures.is_empty() {
        return Err(failures.answer());
    }
    forget(job.dav, job.core, &job.who, (&job.path, Some(&node.attr)), false).await?;
    Ok(Response::new(204))
}

/// The locks of what has gone, as it was found before, end.
pub(super) async fn forget(
    dav: &Arc<Dav>,
    core: &Core,
    who: &Caller,
    (path, before): (&VPath, Option<&Attr>),
    keep_root: bool,
) -> Result<(), Response> {
    if dav.locks.is_empty() {
        return Ok(());
    }
    let (dav, path) = (Arc::clone(dav), path.to_bytes());
    let of = Lineage { file: before.and_then(that_goes), above: Vec::new() };
    let cred = Arc::new(who.person.cred.clone());
    let forget = move |_: Context<'_>| dav.locks.forget(&path, &of, keep_root);
    let done = core.pooled(who, &cred, forget).await?;
    done.or_else(|error| refuse(500, &error.to_string()))
}

/// Removes what is at a place, with all that is in it. Gives what could not be removed; what is
/// around that stays too.
pub(super) async fn remove(
    job: &Job<'_, '_>,
    spot: &Spot,
    path: &VPath,
) -> Result<Failures, Response> {
    let node = spot.node()?;
    if !node.is_dir() {
        job.core.remove(&job.who, spot).await?;
        return Ok(Failures::default());
    }
    let (core, who) = (job.core, &job.who);
    let mut clearing = Clearing { core, who, top: path, failures: Failures::default() };
    if clearing.clear(&node).await
        && let Err(status) = core.remove_dir(who, spot).await
    {
        clearing.failures.note(path, std::iter::empty(), true, status);
    }
    Ok(clearing.failures)
}

/// A directory that is being emptied.
#[derive(Default)]
struct Emptying {
    /// What of it could not be removed.
    stay: HashSet<Vec<u8>>,
    /// How many of its entries were removed since it was last listed from its begin.
    removed: usize,
}

struct Clearing<'a> {
    core: &'a Core,
    who: &'a Caller,
    top: &'a VPath,
    failures: Failures,
}

impl Clearing<'_> {
    /// Notes an entry of the current directory, or with no name that directory itself, which
    /// stays.
    fn fail(&mut self, walk: &Descent<Emptying>, (name, dir): (&[u8], bool), status: Status) {
        let name = Some(name).filter(|name| !name.is_empty());
        self.failures.note(self.top, walk.components().chain(name), dir, status);
    }

    /// Removes all that is in a directory; whether it is empty now.
    async fn clear(&mut self, top: &Node) -> bool {
        let mut walk = Descent::new(top.clone(), Emptying::default());
        while !self.failures.is_full() {
            let more = match walk.fill(self.core, self.who).await {
                Ok(true) => self.remove_files(&mut walk).await,
                ended => ended,
            };
            let outcome = match more {
                Ok(true) => {
                    self.enter(&mut walk);
                    continue;
                }
                Ok(false) => Ok(()),
                Err(status) => Err(status),
            };
            if let Some(empty) = self.leave(&mut walk, outcome).await {
                return empty;
            }
        }
        false
    }

    /// Goes down into the next directory of the current one, if there is one that may go.
    fn enter(&mut self, walk: &mut Descent<Emptying>) {
        let Some(listed) = walk.take() else { return };
        let Some((dir, state)) = walk.current() else { return };
        let Some((handle, attr)) = listed.entry else { return };
        if state.stay.contains(&listed.name) {
            return;
        }
        let (node, name) = (Node { handle, attr, ..dir.clone() }, listed.name.clone());
        if let Err(status) = walk.enter(listed, node, Emptying::default()) {
            self.fail(walk, (&name, true), status);
            if let Some((_, state)) = walk.current() {
                state.stay.insert(name);
            }
        }
    }

    /// Goes up from a directory that was gone through, and removes it if it is empty; at the top,
    /// gives whether that is. Names move while others go: a directory is gone through again until
    /// nothing was removed.
    async fn leave(
        &mut self,
        walk: &mut Descent<Emptying>,
        outcome: vfs::fs::Result<()>,
    ) -> Option<bool> {
        if let Err(status) = outcome {
            self.fail(walk, (b"", true), status);
        } else if let Some((_, state)) = walk.current()
            && state.removed > 0
        {
            state.removed = 0;
            walk.restart();
            return None;
        }
        let left = walk.leave()?;
        let mut empty = outcome.is_ok() && left.state.stay.is_empty();
        let Some((dir, _)) = walk.current() else { return Some(empty) };
        if empty {
            let (reached, dir, name) = (dir.reached.clone(), dir.handle, left.name.clone());
            let spot = Spot { reached, dir, name, entry: None, link: None };
            match self.core.remove_dir(self.who, &spot).await {
                Ok(()) | Err(Status::NotFound) => {}
                Err(status) => {
                    empty = false;
                    self.fail(walk, (&left.name, true), status);
                }
            }
        }
        if let Some((_, state)) = walk.current() {
            if empty {
                state.removed += 1;
            } else {
                state.stay.insert(left.name);
            }
        }
        None
    }

    /// Removes those entries of the current directory that are ready and are no directories.
    ///
    /// # Errors
    /// None of them could be.
    async fn remove_files(&mut self, walk: &mut Descent<Emptying>) -> vfs::fs::Result<bool> {
        let mut names = walk.take_files();
        let Some((dir, state)) = walk.current() else { return Ok(false) };
        names.retain(|name| !state.stay.contains(name));
        let (dir, count) = (dir.clone(), names.len());
        let stay = self.remove_names(&dir, names).await?;
        if let Some((_, state)) = walk.current() {
            state.removed += count - stay.len();
            state.stay.extend(stay.iter().map(|(name, _)| name.clone()));
        }
        for (name, status) in stay {
            self.fail(walk, (&name, false), status);
        }
        Ok(true)
    }

    /// Removes files of a directory in one go, for which one flush is enough. Gives those that
    /// stay.
    async fn remove_names(
        &self,
        dir: &Node,
        names: Vec<Vec<u8>>,
    ) -> vfs::fs::Result<Vec<(Vec<u8>, Status)>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let handle = dir.handle;
        let remove = move |fs: &dyn FileSystem, cx: Context<'_>| {
            let (mut flush, mut failed) = (Flush::NONE, Vec::new());
            for name in &names {
                match fs.remove(cx, &handle, name) {
                    Ok(changed) => {
                        let new = |key| flush.targets.iter().all(|other| other.key() != key);
                        let more: Vec<_> =
                            changed.flush.targets.into_iter().filter(|t| new(t.key())).collect();
                        flush.targets.extend(more);
                    }
                    Err(error) if error.status == Status::NotFound => {}
                    Err(error) => failed.push((name.clone(), error.status)),
                }
            }
            Ok(Changed { value: failed, wcc: Wcc::default(), flush })
        };
        let failed = self.core.alter(self.who, &dir.reached, remove).await?;
        let mut stay = Vec::new();
        for (name, status) in failed {
            // A delegation must be recalled: wait for one after the other.
            let mut outcome = Err(status);
            if status == Status::Busy {
                let (reached, dir) = (dir.reached.clone(), dir.handle);
                let spot = Spot { reached, dir, name: name.clone(), entry: None, link: None };
                outcome = self.core.remove(self.who, &spot).await;
            }
            if let Err(status) = outcome {
                stay.push((name, status));
            }
        }
        Ok(stay)
    }
}
