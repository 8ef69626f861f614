//! CLOSE: ends an open, and removes the file if that is wanted and nobody else has it open.

use std::rc::Rc;
use std::sync::Arc;

use vfs::attr::FileType;
use vfs::fold::FoldIndex;
use vfs::fs::{Context, FileSystem};
use vfs::locks::FileKey;
use wire::smb::create::{CloseRequest, CloseResponse, Facts, POSTQUERY};
use wire::smb::status::NtStatus;

use super::dispatch::{About, Outcome, Reply, Request};
use super::set_info::Removal;
use super::state::connection::Connection;
use super::state::opens::{Open, OpenOf};
use super::{facts, status};
use files::{Caller, Core};

/// CLOSE.
pub(super) async fn run(request: &Request<'_>) -> Outcome {
    let asked = CloseRequest::decode(request.message).map_err(status::of_wire)?;
    let id = request.file_id(asked.file);
    request.tree()?;
    let open = request.session.close(id, request.header.tree_id())?;
    let (conn, who) = (request.conn, &request.session.who);
    let mut response = CloseResponse { flags: 0, reserved: 0, facts: Facts::default() };
    let mut about = About::default();
    if let OpenOf::File(file) = &open.of {
        about = About::file(&file.node);
        if file.write_time_until_ns.get() != 0 {
            facts::settle(conn, file);
        }
        if asked.flags & POSTQUERY != 0
            && let Ok((_, facts)) = facts::now(conn, who, file).await
        {
            response = CloseResponse { flags: POSTQUERY, reserved: 0, facts };
        }
    }
    end(conn, who, &open).await;
    let mut out = request.reply();
    response.put_body(out.vec());
    Ok(Reply { file: Some(id), ..Reply::new(out).about(about) })
}

/// Ends an open that its session does not have any more.
pub(super) async fn end(conn: &Connection, who: &Caller, open: &Open) {
    open.closed.notify_waiters();
    let OpenOf::File(file) = &open.of else { return };
    let (files, key) = (&conn.server.open_files, file.entry.key);
    if file.delete_on_close.get()
        && let Some(place) = file.place.borrow().clone()
    {
        let removal = Removal { who: who.clone(), node: file.node.clone(), place };
        files.set_removal(key, Some(removal));
    }
    if let Some(mut removal) = files.close(key) {
        removal.who.lent.push(file.entry.owner.clone());
        let folds = Arc::clone(&conn.server.folds);
        // It goes on if the connection ends before it is done. Nobody is told if it cannot be
        // removed: its name is there still.
        let removed = tokio::task::spawn_local(remove(Rc::clone(&conn.core), removal, folds));
        let _ = removed.await;
    }
}

/// Removes a file, if its name still leads to it.
async fn remove(core: Rc<Core>, removal: Removal, folds: Arc<FoldIndex>) -> Result<(), NtStatus> {
    let Removal { who, node, place } = removal;
    // What has the name: the link, if it led to the file.
    let attr = place.link.as_deref().unwrap_or(&node.attr);
    let (key, is_dir) = (FileKey::from(attr), attr.kind == FileType::Directory);
    let remove = move |fs: &dyn FileSystem, cx: Context<'_>| {
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
