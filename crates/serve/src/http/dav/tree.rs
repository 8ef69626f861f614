//! MKCOL and DELETE (RFC 4918 §9.3, §9.6), and the removing of trees.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use base::limits::{DAV_FAILURES_MAX, DAV_TREE_DEPTH_MAX};
use vfs::attr::{FileType, Wcc};
use vfs::fs::{Changed, Context, FileSystem, Flush};
use vfs::status::Status;
use wire::dav::header::Depth;

use super::state::Touched;
use super::{Dav, Job, Outcome, multi, refuse};
use crate::files::list::Listing;
use crate::files::{Caller, Core, Links, Node, Spot, VPath};
use crate::http::response::Response;
use crate::http::select::{self, Validators, Verdict};
use crate::http::status;

/// Answers MKCOL.
pub(super) async fn mkcol(job: &mut Job<'_, '_>) -> Outcome {
    if !job.body().await?.is_empty() {
        return refuse(415, "MKCOL takes no body");
    }
    let path = job.path.to_bytes();
    let spot = match job.spot(Links::Keep).await {
        Ok(spot) if spot.entry.is_some() => return refuse(405, "it is there already"),
        Err(Status::NotFound | Status::NotDirectory) if job.path.parts().len() > 1 => {
            return refuse(409, "there is no collection around it");
        }
        // A share, or the list of them.
        Err(Status::NotOwner) => return refuse(405, "it is there already"),
        Err(Status::NotFound) => return refuse(403, "shares are made by the administrator"),
        spot => spot?,
    };
    job.permit(&[Touched { path: &path, name: true, tree: false }]).await?;
    match job.core.make_dir(&job.who, &spot, job.new_dir()).await {
        Err(Status::Exists) => refuse(405, "it is there already"),
        made => made.map(|_| Response::new(201)).map_err(Response::from),
    }
}

/// Answers DELETE.
pub(super) async fn delete(job: &mut Job<'_, '_>) -> Outcome {
    let spot = job.spot(Links::Keep).await?;
    let node = spot.node()?;
    let depth = job.request.headers.text("depth").map(Depth::parse);
    if node.is_dir() && !matches!(depth, None | Some(Some(Depth::Infinity))) {
        return refuse(400, "a collection goes with all its members");
    }
    let now = node.is_file().then(|| Validators::of(&node.attr));
    let has = now.as_ref();
    if now.is_some()
        && select::judge(&job.request.headers, job.request.method, has) == Verdict::Failed
    {
        return refuse(412, "");
    }
    let path = job.path.to_bytes();
    job.permit(&[Touched { path: &path, name: true, tree: node.is_dir() }]).await?;
    let failures = remove(job, &spot, &job.path).await?;
    if !failures.is_empty() {
        return Err(multi::failures(&failures));
    }
    forget(job.dav, job.core, &job.who, &job.path, false).await?;
    Ok(Response::new(204))
}

/// The locks of what has gone end.
pub(super) async fn forget(
    dav: &Arc<Dav>,
    core: &Core,
    who: &Caller,
    path: &VPath,
    keep_root: bool,
) -> Result<(), Response> {
    if dav.locks.is_empty() {
        return Ok(());
    }
    let (dav, path) = (Arc::clone(dav), path.to_bytes());
    let cred = Arc::new(who.person.cred.clone());
    let forget = move |_: Context<'_>| dav.locks.forget(&path, keep_root);
    let done = core.pooled(who, &cred, forget).await?;
    done.or_else(|error| refuse(500, &error.to_string()))
}

/// Removes what is at a place, with all that is in it. Gives what could not be removed, with its
/// status; what is around that stays too.
pub(super) async fn remove(
    job: &Job<'_, '_>,
    spot: &Spot,
    path: &VPath,
) -> Result<Vec<(String, u16)>, Response> {
    let node = spot.node()?;
    if !node.is_dir() {
        job.core.remove(&job.who, spot).await?;
        return Ok(Vec::new());
    }
    let mut clearing = Clearing { core: job.core, who: &job.who, failures: Vec::new() };
    if clearing.clear(&node, path, 0).await
        && let Err(status) = job.core.remove_dir(&job.who, spot).await
    {
        clearing.fail(path, true, status);
    }
    Ok(clearing.failures)
}

struct Clearing<'a> {
    core: &'a Core,
    who: &'a Caller,
    failures: Vec<(String, u16)>,
}

impl Clearing<'_> {
    fn fail(&mut self, path: &VPath, dir: bool, status: Status) {
        if self.failures.len() < DAV_FAILURES_MAX {
            self.failures.push((multi::href(&path.to_bytes(), dir), status::of(status)));
        }
    }

    /// Removes all that is in a directory; whether it is empty now.
    fn clear<'b>(
        &'b mut self,
        dir: &'b Node,
        path: &'b VPath,
        depth: usize,
    ) -> Pin<Box<dyn Future<Output = bool> + 'b>> {
        Box::pin(async move {
            if depth >= DAV_TREE_DEPTH_MAX {
                self.fail(path, true, Status::NameTooLong);
                return false;
            }
            let mut stay = HashSet::new();
            // Names move while others go: looked through again until nothing was removed.
            loop {
                match self.pass(dir, path, depth, &mut stay).await {
                    Ok(0) => return stay.is_empty(),
                    Ok(_) if self.failures.len() >= DAV_FAILURES_MAX => return false,
                    Ok(_) => {}
                    Err(status) => {
                        self.fail(path, true, status);
                        return false;
                    }
                }
            }
        })
    }

    /// Goes through a directory once; how many entries were removed.
    async fn pass(
        &mut self,
        dir: &Node,
        path: &VPath,
        depth: usize,
        stay: &mut HashSet<Vec<u8>>,
    ) -> vfs::fs::Result<usize> {
        let (mut listing, mut removed) = (Listing::new(dir.clone()), 0);
        while let Some(batch) = listing.next(self.core, self.who).await? {
            let (mut files, mut dirs) = (Vec::new(), Vec::new());
            for listed in batch.into_iter().filter(|listed| !stay.contains(&listed.name)) {
                match listed.entry {
                    Some((handle, attr)) if attr.kind == FileType::Directory => {
                        dirs.push((listed.name, Node { handle, attr, ..dir.clone() }));
                    }
                    _ => files.push(listed.name),
                }
            }
            for (name, status) in self.remove_files(dir, files, &mut removed).await? {
                self.fail(&path.with(&name), false, status);
                stay.insert(name);
            }
            for (name, inner) in dirs {
                let below = path.with(&name);
                if self.clear(&inner, &below, depth + 1).await {
                    let (reached, dir) = (dir.reached.clone(), dir.handle);
                    let spot = Spot { reached, dir, name: name.clone(), entry: None };
                    match self.core.remove_dir(self.who, &spot).await {
                        Ok(()) | Err(Status::NotFound) => {
                            removed += 1;
                            continue;
                        }
                        Err(status) => self.fail(&below, true, status),
                    }
                }
                stay.insert(name);
            }
        }
        Ok(removed)
    }

    /// Removes files of a directory in one go, for which one flush is enough. Gives those that
    /// stay.
    async fn remove_files(
        &self,
        dir: &Node,
        names: Vec<Vec<u8>>,
        removed: &mut usize,
    ) -> vfs::fs::Result<Vec<(Vec<u8>, Status)>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let (handle, count) = (dir.handle, names.len());
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
            // Somebody must give back a delegation: waited for one by one.
            let mut outcome = Err(status);
            if status == Status::Busy {
                let (reached, dir) = (dir.reached.clone(), dir.handle);
                let spot = Spot { reached, dir, name: name.clone(), entry: None };
                outcome = self.core.remove(self.who, &spot).await;
            }
            if let Err(status) = outcome {
                stay.push((name, status));
            }
        }
        *removed += count - stay.len();
        Ok(stay)
    }
}
