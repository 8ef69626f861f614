//! After the crash: every acknowledged byte, name and attribute, reached by old handles (cold:
//! the server has just started) and by name.

use wire::nfs3::Writeverf3;

use super::Trouble;
use super::load::Worker;
use super::model::{Dir, File, Node};
use super::remote::Remote;

/// Compares the server with what `worker` may expect; gives the server's write verifier if a file
/// was there to ask with.
///
/// # Errors
/// What is missing, what came back, or what differs.
pub fn check(
    worker: &Worker,
    client: &mut dyn Remote,
    root: &[u8],
) -> Result<Option<Writeverf3>, Trouble> {
    let Some(own) = worker.dirs.first() else { return Ok(None) };
    let found = client.lookup(root, &worker.name)?;
    same(client, &found, &own.handle)?;
    let mut verifier = None;
    for (f, file) in worker.files.iter().enumerate().filter(|(_, f)| f.names > 0 && !f.doubtful) {
        content(file, client).map_err(|what| what.within(format_args!("file {f}")))?;
        if verifier.is_none() {
            verifier = client.commit(&file.handle).ok();
        }
    }
    for (d, dir) in worker.dirs.iter().enumerate().filter(|(_, d)| !d.gone) {
        names(worker, dir, client).map_err(|what| what.within(format_args!("directory {d}")))?;
    }
    Ok(verifier)
}

fn lost<T>(what: String) -> Result<T, Trouble> {
    Err(Trouble::Lost(what))
}

/// Two handles must lead to the same file.
fn same(client: &mut dyn Remote, new: &[u8], old: &[u8]) -> Result<(), Trouble> {
    let now = client.getattr(new).map_err(|e| Trouble::from(e).within("GETATTR"))?;
    let before = client.getattr(old).map_err(|e| Trouble::from(e).within("by its old handle"))?;
    if now.fileid != before.fileid {
        return lost("name and old handle lead to different files".to_owned());
    }
    Ok(())
}

fn content(file: &File, client: &mut dyn Remote) -> Result<(), Trouble> {
    let attr =
        client.getattr(&file.handle).map_err(|e| Trouble::from(e).within("by its handle"))?;
    let found = attr.mode;
    if let Some(mode) = file.mode.filter(|mode| found != *mode) {
        return lost(format!("mode {found:o}, acknowledged {mode:o}"));
    }
    if attr.ctime < file.ctime {
        return lost(format!("ctime {:?}, acknowledged {:?}", attr.ctime, file.ctime));
    }
    let data = client.read_all(&file.handle).map_err(|e| Trouble::from(e).within("READ"))?;
    file.compare(&data).map_err(Trouble::Lost)
}

fn names(worker: &Worker, dir: &Dir, client: &mut dyn Remote) -> Result<(), Trouble> {
    let attr = client.getattr(&dir.handle).map_err(|e| Trouble::from(e).within("by its handle"))?;
    let found = attr.mode;
    if found != dir.mode {
        return lost(format!("mode {found:o}, acknowledged {:o}", dir.mode));
    }
    let found = client.names(&dir.handle).map_err(|e| Trouble::from(e).within("READDIR"))?;
    let doubtful = |name: &&String| dir.doubtful.contains(*name);
    let mut certain = found.iter().filter(|name| !doubtful(name));
    if let Some(back) = certain.find(|name| !dir.names.contains_key(*name)) {
        return lost(format!("{back} came back"));
    }
    for (name, node) in dir.names.iter().filter(|(name, _)| !doubtful(name)) {
        if !found.contains(name) {
            return lost(format!("{name} is not there"));
        }
        leads_to(worker, dir, name, node, client).map_err(|what| what.within(name))?;
    }
    Ok(())
}

fn leads_to(
    worker: &Worker,
    dir: &Dir,
    name: &str,
    node: &Node,
    client: &mut dyn Remote,
) -> Result<(), Trouble> {
    let found = client.lookup(&dir.handle, name).map_err(|e| Trouble::from(e).within("LOOKUP"))?;
    match node {
        Node::File(f) => same(client, &found, &worker.files[*f].handle),
        Node::Dir(d) => same(client, &found, &worker.dirs[*d].handle),
        Node::Link(target) => {
            let now = client.readlink(&found)?;
            if now == target.as_bytes() { Ok(()) } else { lost("leads elsewhere".to_owned()) }
        }
        Node::Fifo(mode) => {
            let attr = client.getattr(&found)?;
            if attr.is_fifo && attr.mode == *mode {
                return Ok(());
            }
            lost(format!("mode {:o}, or no named pipe", attr.mode))
        }
    }
}
