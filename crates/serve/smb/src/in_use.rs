//! What is open in the way of a rename (MS-FSA §2.1.5.15.11): the file that it would replace, and
//! what is below a directory. Clients that cache handles are asked to close them first; one that
//! keeps one open keeps the name.

use std::collections::HashSet;
use std::sync::Arc;

use base::clock::Deadline;
use base::limits::SMB_WORK_ANCESTOR;
use vfs::fs::Context;
use vfs::handle::Handle;
use vfs::locks::{FileKey, OpenName};
use wire::smb::status::NtStatus;

use super::dispatch::Request;
use super::leases::give_up_names;
use super::state::opens::OpenFile;
use super::status;

/// That no open of SMB keeps a file that would be replaced. The opens of other protocols keep
/// names by what they deny.
///
/// # Errors
/// STATUS_ACCESS_DENIED; as of [`give_up_names`].
pub(super) async fn is_replaceable(
    request: &Request,
    file: &OpenFile,
    replaced: FileKey,
) -> Result<(), NtStatus> {
    let locks = &file.entry.locks;
    let until = Deadline::after(locks.recall_patience());
    give_up_names(request, (file, replaced), until).await?;
    if locks.is_open_by_name(replaced) { Err(NtStatus::ACCESS_DENIED) } else { Ok(()) }
}

/// That nothing in a directory, or below it, is open. What is opened while others close their
/// handles is not waited for.
///
/// # Errors
/// STATUS_ACCESS_DENIED; as of [`give_up_names`].
pub(super) async fn holds_nothing_open(request: &Request, file: &OpenFile) -> Result<(), NtStatus> {
    let locks = &file.entry.locks;
    let open = below(request, file).await?;
    if !open.iter().all(|name| locks.caches_handles(name.key)) {
        return Err(NtStatus::ACCESS_DENIED);
    }
    let until = Deadline::after(locks.recall_patience());
    for name in &open {
        give_up_names(request, (file, name.key), until).await?;
        if locks.is_open_name(name) {
            return Err(NtStatus::ACCESS_DENIED);
        }
    }
    if open.is_empty() || below(request, file).await?.is_empty() {
        return Ok(());
    }
    Err(NtStatus::ACCESS_DENIED)
}

/// What is open in a directory, or below it.
async fn below(request: &Request, file: &OpenFile) -> Result<Vec<OpenName>, NtStatus> {
    let (core, who) = (&request.conn.core, &request.session.who);
    let (key, reached) = (file.entry.key, &file.node.reached);
    let names = file.entry.locks.open_names(key.fsid);
    let dirs: HashSet<Handle> = names.iter().map(|name| name.dir).collect();
    let (fs, work) = (Arc::clone(&reached.share.fs), Arc::clone(request.work()));
    let look = move |cx: Context<'_>| {
        let mut inside = HashSet::new();
        for dir in &dirs {
            // One that is gone, or of another share, is not below it.
            let above = fs.ancestors(cx, dir).unwrap_or_default();
            if above.iter().any(|one| one.is_same_inode(&key)) {
                inside.insert(*dir);
            }
            work.take(SMB_WORK_ANCESTOR * above.len().max(1))?;
        }
        Ok(inside)
    };
    let inside = core.pooled_look(who, &reached.cred, look).await.and_then(|inside| inside);
    let inside = inside.map_err(status::of)?;
    Ok(names.into_iter().filter(|name| inside.contains(&name.dir)).collect())
}
