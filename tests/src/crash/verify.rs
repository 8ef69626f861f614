//! After the crash: every acknowledged byte, name and attribute, reached by old handles (cold:
//! the server has just started) and by name.

use wire::nfs3::{Ftype3, Writeverf3};

use super::load::Worker;
use super::model::{Dir, Node};
use crate::nfs3::{Client, Failure};

/// Compares the server with what `worker` may expect; gives the server's write verifier if a file
/// was there to ask with.
///
/// # Errors
/// What is missing, what came back, or what differs.
pub fn check(
    worker: &Worker,
    client: &mut Client,
    root: &[u8],
) -> Result<Option<Writeverf3>, String> {
    let Some(own) = worker.dirs.first() else { return Ok(None) };
    let found = client.lookup(root, &worker.name).map_err(|e| lost(&worker.name, "LOOKUP", &e))?;
    let by_name = client.getattr(&found.handle).map_err(|e| lost(&worker.name, "GETATTR", &e))?;
    let by_handle = client.getattr(&own.handle).map_err(|e| lost(&worker.name, "handle", &e))?;
    if by_name.fileid != by_handle.fileid {
        return Err(format!("{}: the old handle leads elsewhere", worker.name));
    }
    let mut verifier = None;
    for (f, file) in worker.files.iter().enumerate().filter(|(_, f)| f.names > 0 && !f.doubtful) {
        let what = format!("{}: file {f}", worker.name);
        let attr = client.getattr(&file.handle).map_err(|e| lost(&what, "handle", &e))?;
        if let Some(mode) = file.mode.filter(|mode| attr.mode & 0o7777 != *mode) {
            return Err(format!("{what}: mode {:o}, acknowledged {mode:o}", attr.mode & 0o7777));
        }
        if attr.ctime < file.ctime {
            return Err(format!("{what}: ctime {:?}, acknowledged {:?}", attr.ctime, file.ctime));
        }
        let data = client.read_all(&file.handle).map_err(|e| lost(&what, "READ", &e))?;
        file.compare(&data).map_err(|e| format!("{what}: {e}"))?;
        if verifier.is_none() {
            verifier = client.commit(&file.handle).ok();
        }
    }
    for (d, dir) in worker.dirs.iter().enumerate().filter(|(_, d)| !d.gone) {
        let what = format!("{}: directory {d}", worker.name);
        names(worker, dir, client).map_err(|e| format!("{what}: {e}"))?;
    }
    Ok(verifier)
}

fn lost(what: &str, how: &str, why: &Failure) -> String {
    match why {
        Failure::Status(status) => format!("{what}: {how}: {status}"),
        Failure::Broken(text) => format!("{what}: {how}: {text}"),
    }
}

fn names(worker: &Worker, dir: &Dir, client: &mut Client) -> Result<(), String> {
    let attr = client.getattr(&dir.handle).map_err(|e| lost("itself", "handle", &e))?;
    if attr.mode & 0o7777 != dir.mode {
        return Err(format!("mode {:o}, acknowledged {:o}", attr.mode & 0o7777, dir.mode));
    }
    let found = client.names(&dir.handle).map_err(|e| lost("itself", "READDIR", &e))?;
    let doubtful = |name: &&String| dir.doubtful.contains(*name);
    if let Some(back) =
        found.iter().filter(|n| !doubtful(n)).find(|name| !dir.names.contains_key(*name))
    {
        return Err(format!("{back} came back"));
    }
    for (name, node) in dir.names.iter().filter(|(name, _)| !doubtful(name)) {
        if !found.contains(name) {
            return Err(format!("{name} is lost"));
        }
        leads_to(worker, dir, name, node, client).map_err(|e| format!("{name}: {e}"))?;
    }
    Ok(())
}

fn leads_to(
    worker: &Worker,
    dir: &Dir,
    name: &str,
    node: &Node,
    client: &mut Client,
) -> Result<(), String> {
    let found = client.lookup(&dir.handle, name).map_err(|e| lost("it", "LOOKUP", &e))?;
    let attr = client.getattr(&found.handle).map_err(|e| lost("it", "GETATTR", &e))?;
    let old = match node {
        Node::File(f) => Some(&worker.files[*f].handle),
        Node::Dir(d) => Some(&worker.dirs[*d].handle),
        Node::Link(target) => {
            let now = client.readlink(&found.handle).map_err(|e| lost("it", "READLINK", &e))?;
            if now != target.as_bytes() {
                return Err("leads elsewhere".to_owned());
            }
            None
        }
        Node::Fifo(mode) => {
            if attr.ftype != Ftype3::FIFO || attr.mode & 0o7777 != *mode {
                return Err(format!("{} with mode {:o}", attr.ftype, attr.mode));
            }
            None
        }
    };
    if let Some(old) = old {
        let other = client.getattr(old).map_err(|e| lost("it", "old handle", &e))?;
        if other.fileid != attr.fileid {
            return Err("name and old handle lead to different files".to_owned());
        }
    }
    Ok(())
}
