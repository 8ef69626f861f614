//! What can be done with a snapshot: rollback, clone, another name, destroy.

use std::collections::BTreeMap;
use std::path::Path as FilePath;

use base::node::{Path, Value};
use control::tree::viewer::Everything;
use control::tree::{Actor, Change, Problem, Request};
use host_pools::keeper::FOLDER;
use host_pools::request::{FileSystem, PoolRequest, PoolStatus};
use serde_json::json;
use vfs::share::node::{DEFAULT_PROJECT, POOL};

use super::room::{PoolRoom, check_name, text};
use super::shown;
use crate::shares::rollback::{Exchange, Exchanged};
use crate::shares::{Shares, Subvolumes};

/// A snapshot: its pool, its share, its name.
struct Snapshot {
    pool: String,
    share: String,
    name: String,
}

fn named(status: &PoolStatus, node: &str) -> Result<Snapshot, String> {
    let (share, name, _) =
        shown::snapshot(status, node).ok_or_else(|| format!("there is no snapshot {node}"))?;
    Ok(Snapshot { pool: status.name.clone(), share: share.clone(), name: name.clone() })
}

impl PoolRoom {
    /// Does an action of a snapshot; `None` if it is none of these.
    pub(super) fn act_on_snapshot(
        &self,
        (pool, node): (&str, &str),
        action: &str,
        parameters: &BTreeMap<String, Value>,
        who: &Actor,
    ) -> Result<serde_json::Value, Problem> {
        let path = Path::of(&["storage", "pools", pool, "snapshots", node]);
        let refused = |why: String| Problem::conflict(&path, &why, "");
        let status = self.pool(pool).ok_or_else(|| refused(format!("there is no pool {pool}")))?;
        let one = named(&status, node).map_err(refused)?;
        match action {
            "destroy_snapshot" => {
                let Snapshot { pool, share, name: snapshot } = one;
                self.done(PoolRequest::DestroySnapshot { pool, share, snapshot }).map_err(refused)
            }
            "rename_snapshot" => {
                let (Snapshot { pool, share, name: snapshot }, name) =
                    (one, text(parameters, "name"));
                check_name(&name).map_err(refused)?;
                let request = PoolRequest::RenameSnapshot { pool, share, snapshot, name };
                self.done(request).map_err(refused)
            }
            "rollback" => {
                if text(parameters, "confirm") != one.share {
                    let sentence = format!("confirm is not the name of the share, {}", one.share);
                    return Err(Problem::new(&path, &sentence, "nothing was changed"));
                }
                let exchange = match status.file_system {
                    FileSystem::Btrfs => Exchange::Subvolume,
                    FileSystem::Zfs => Exchange::InPlace,
                };
                self.rollback(one, exchange).map(|done| json!(done)).map_err(refused)
            }
            "clone" => self.clone_share(&path, one, parameters, who),
            _ => Err(Problem::unknown(&path, &format!("unknown action {action}"), "")),
        }
    }

    fn rollback(&self, one: Snapshot, exchange: Exchange) -> Result<String, String> {
        let Snapshot { pool, share, name: snapshot } = one;
        let directory = FilePath::new(FOLDER).join(&pool).join(&share);
        let shares = self.shares().ok_or("the server ends")?;
        let request = PoolRequest::Rollback { pool: pool.clone(), share: share.clone(), snapshot };
        let work = || self.done(request).map(|done| done.as_str().unwrap_or_default().to_owned());
        let Exchanged { is_done, result } = shares.exchange_directory(&directory, exchange, work);
        if exchange == Exchange::InPlace || !is_done {
            // Settings and snapshots are as before.
            return result;
        }
        let configured = self.configure_again(&shares, &directory, &pool, &share);
        // Calls of before have ended.
        let kept = configured.and_then(|()| self.done(PoolRequest::Protect { pool }));
        result.and_then(|done| kept.map(|_| done))
    }

    /// A subvolume that was a snapshot has no quota, and the compression of its time.
    fn configure_again(
        &self,
        shares: &Shares,
        directory: &FilePath,
        pool: &str,
        share: &str,
    ) -> Result<(), String> {
        let configured = shares.configured();
        let one = configured.iter().find(|one| one.directory == directory);
        let on = one.and_then(|one| one.storage.as_ref());
        on.map_or(Ok(()), |on| self.configure(pool, share, &on.settings))
    }

    /// A new share with the files of a snapshot.
    fn clone_share(
        &self,
        path: &Path,
        one: Snapshot,
        parameters: &BTreeMap<String, Value>,
        who: &Actor,
    ) -> Result<serde_json::Value, Problem> {
        let refused = |why: &str| Problem::conflict(path, why, "");
        let tree = self.tree().ok_or_else(|| refused("the server ends"))?;
        let Snapshot { pool, share, name: snapshot } = one;
        let (name, project) = (text(parameters, "name"), text(parameters, "project"));
        let project = if project.is_empty() { DEFAULT_PROJECT.to_owned() } else { project };
        let above = Path::of(&["shares", &project]);
        if tree.document().exists(&above.join(&name)) {
            return Err(Problem::conflict(path, "there is a share with this name", ""));
        }
        let properties = BTreeMap::from([(POOL.to_owned(), json!(pool))]);
        let change = Change::Create { create: above.to_string(), name: name.clone(), properties };
        let comment = format!("clone of {path}");
        let mut creation =
            Request { changes: vec![change], comment, dry_run: true, ..Request::default() };
        let first = |problems: Vec<Problem>| {
            problems.into_iter().next().map(|one| one.sentence).unwrap_or_default()
        };
        // Before the subvolume is made: it would take the name from the next attempt.
        tree.commit(&creation, who, &Everything).map_err(|problems| {
            let sentence = format!("the share cannot be created: {}", first(problems));
            Problem::conflict(path, &sentence, "nothing was changed")
        })?;
        let request = PoolRequest::Clone { pool, share, snapshot, name: name.clone() };
        let done = self.done(request).map_err(|why| refused(&why))?;
        creation.dry_run = false;
        tree.commit(&creation, who, &Everything).map_err(|problems| {
            let hint = "create a share with this name on the pool to serve it";
            let why = first(problems);
            let sentence = format!("the subvolume {name} was created, the share was not: {why}");
            Problem::conflict(path, &sentence, hint)
        })?;
        Ok(done)
    }
}
