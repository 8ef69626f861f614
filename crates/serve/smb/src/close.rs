//! CLOSE: ends an open, and removes the file if that is pending and no other open has it.

use std::rc::Rc;
use std::sync::Arc;

use tokio::task::JoinHandle;
use vfs::attr::FileType;
use vfs::fold::FoldIndex;
use vfs::fs::{Context, FileSystem};
use vfs::locks::{FileKey, Location};
use wire::smb::create::{CloseRequest, CloseResponse, Facts, POSTQUERY};
use wire::smb::status::NtStatus;

use super::connection::Connection;
use super::dispatch::{Handled, Reply, Request};
use super::handles::PersistentHandle;
use super::state::open_files::OpenFiles;
use super::state::opens::{Open, OpenFile, OpenOf};
use super::state::removals::Removal;
use super::{facts, status};
use files::{Caller, Core};

/// CLOSE.
pub(super) async fn run(request: Rc<Request>) -> Handled {
    let asked = CloseRequest::decode(request.message()).map_err(status::of_wire)?;
    let id = request.file_id(asked.file);
    let open = request.open(asked.file)?;
    let (conn, who) = (&*request.conn, &request.session.who);
    let mut response = CloseResponse { flags: 0, reserved: 0, facts: Facts::default() };
    if let OpenOf::File(file) = &open.of {
        if file.write_time_until_ns.get() != 0 {
            facts::settle(conn, file);
        }
        if asked.flags & POSTQUERY != 0
            && let Ok((_, facts)) = facts::now(conn, who, file).await
        {
            response = CloseResponse { flags: POSTQUERY, reserved: 0, facts };
        }
    }
    // Only now, for a request that is dropped with its connection would leave it open. Another
    // CLOSE may have come before.
    request.session.close(id, request.header.tree_id())?;
    end(conn, who, vec![open]).await;
    let mut out = request.reply();
    response.put_body(out.vec());
    request.done(Reply { file: Some(id), ..Reply::new(out) })
}

/// Ends opens that their session does not have any more, and waits until what goes with them is
/// removed.
pub(super) async fn end(conn: &Connection, who: &Caller, opens: Vec<Rc<Open>>) {
    let forgotten: Vec<_> = opens.iter().filter_map(|open| forget(open)).collect();
    if let Some(removals) = release(conn, who, opens) {
        let _ = removals.await;
    }
    for one in forgotten {
        one.await;
    }
}

/// Takes the record of a persistent handle off the disk, unless the service ends.
fn forget(open: &Open) -> Option<impl Future<Output = ()> + use<>> {
    let OpenOf::File(file) = &open.of else { return None };
    if file.stays_recorded() {
        return None;
    }
    file.persistent.take().map(PersistentHandle::forget)
}

/// Ends opens that their session does not have any more, at once: the caller may be dropped
/// afterwards. What goes with them is removed by a task that ends even if the connection does.
pub(super) fn release(
    conn: &Connection,
    who: &Caller,
    opens: Vec<Rc<Open>>,
) -> Option<JoinHandle<()>> {
    let removals: Vec<_> = opens.iter().filter_map(|open| release_one(conn, who, open)).collect();
    // None of them is in the way of what is removed.
    drop(opens);
    if removals.is_empty() {
        return None;
    }
    let (core, folds) = (Rc::clone(&conn.core), Arc::clone(&conn.server.folds));
    Some(tokio::task::spawn_local(async move {
        for removal in removals {
            // A failure is not reported: its name is there still.
            let _ = remove(&core, removal, Arc::clone(&folds)).await;
        }
    }))
}

/// Ends one; what is to be removed then, and where.
fn release_one(conn: &Connection, who: &Caller, open: &Open) -> Option<(Removal, Location)> {
    open.closed.notify_waiters();
    let OpenOf::File(file) = &open.of else { return None };
    release_file(&conn.server.open_files, who, file)
}

/// Ends the open of a file or directory; what is to be removed then, and where.
pub(super) fn release_file(
    files: &OpenFiles<Removal>,
    who: &Caller,
    file: &OpenFile,
) -> Option<(Removal, Location)> {
    let key = file.entry.key;
    let stays = file.stays_recorded();
    if file.delete_on_close.get()
        && !stays
        && let Some(link) = file.entry.link.get()
    {
        let removal = Removal { who: who.clone(), node: file.node.clone() };
        files.set_removal(key, link, Some(removal));
    }
    let removed = file.entry.close();
    let removal = files.close(key, removed.as_ref().map(|(link, _)| *link));
    let (mut removal, (_, place)) = removal.zip(removed).filter(|_| !stays)?;
    removal.who.lent.push(file.entry.owner.clone());
    removal.who.lent.extend(file.lease.as_ref().map(|lease| lease.owner.clone()));
    Some((removal, place))
}

/// Removes a file, if its name still leads to it.
pub(super) async fn remove(
    core: &Core,
    (removal, place): (Removal, Location),
    folds: Arc<FoldIndex>,
) -> Result<(), NtStatus> {
    let Removal { who, node } = removal;
    let attr = place.attr(&node.attr);
    let (key, is_dir) = (FileKey::from(attr), attr.kind == FileType::Directory);
    // It may have been renamed through another share, with handles of its own.
    let shares = core.files.shares.load();
    let share = shares.by_handle(&place.dir).ok_or(NtStatus::NETWORK_NAME_DELETED)?;
    let fs = Arc::clone(&share.fs);
    let remove = move |_: &dyn FileSystem, cx: Context<'_>| {
        let (there, _) = fs.lookup(cx, &place.dir, &place.name)?;
        if !FileKey::from(&there.attr).is_same_file(&key) {
            return Err(vfs::status::Status::NotFound.into());
        }
        let removed = match is_dir {
            true => fs.rmdir(cx, &place.dir, &place.name),
            false => fs.remove(cx, &place.dir, &place.name),
        }?;
        folds.changed(&removed.wcc, Some(&place.name), None);
        Ok(removed)
    };
    core.alter(&who, &node.reached, remove).await.map_err(status::of)
}
