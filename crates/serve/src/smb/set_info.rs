//! SET_INFO: times and attributes, sizes, names, and whether a file is removed at its last close.

use std::sync::Arc;

use vfs::attr::{FileType, SetAttr};
use vfs::fs::{Context, FileSystem};
use vfs::status::Status;
use wire::smb::class::{Basic, NewName, attributes, file_class};
use wire::smb::codec::Reader;
use wire::smb::create::access;
use wire::smb::info::{SetRequest, info_type, put_set};
use wire::smb::status::NtStatus;

use super::dispatch::{About, Outcome, Reply, Request};
use super::state::opens::{Open, OpenFile, Place};
use super::{create, facts, names, status};
use crate::files::{Caller, Links, Node, Spot};

/// What it takes to remove a file at its last close.
pub(super) struct Removal {
    /// For whom.
    pub who: Caller,
    /// The file.
    pub node: Node,
    /// Where it was found.
    pub place: Place,
}

/// FileDispositionInformationEx: remove it.
const DISPOSITION_DELETE: u32 = 1;
/// FileRenameInformationEx: what is there is replaced.
const RENAME_REPLACE: u32 = 1;

/// SET_INFO.
pub(super) async fn run(request: &Request<'_>) -> Outcome {
    let asked = SetRequest::decode(request.message).map_err(status::of_wire)?;
    let open = request.open(asked.file)?;
    let file = open.file()?;
    if asked.info_type != info_type::FILE {
        // Permissions are those of Unix: they are seen, and changed elsewhere.
        return Err(NtStatus::NOT_SUPPORTED);
    }
    let mut r = Reader::new(asked.data, "SET_INFO");
    match asked.class {
        file_class::BASIC => {
            open.may(access::WRITE_ATTRIBUTES)?;
            basic(request, file, &r.get().map_err(status::of_wire)?).await?;
        }
        file_class::END_OF_FILE => {
            open.may(access::WRITE_DATA)?;
            resize(request, file, r.get().map_err(status::of_wire)?).await?;
        }
        file_class::ALLOCATION => {
            open.may(access::WRITE_DATA)?;
            allocate(request, file, r.get().map_err(status::of_wire)?).await?;
        }
        file_class::POSITION => file.position.set(r.get().map_err(status::of_wire)?),
        file_class::MODE => {}
        file_class::DISPOSITION => {
            let delete: u8 = r.get().map_err(status::of_wire)?;
            dispose(request, &open, file, delete != 0).await?;
        }
        file_class::DISPOSITION_EX => {
            let flags: u32 = r.get().map_err(status::of_wire)?;
            dispose(request, &open, file, flags & DISPOSITION_DELETE != 0).await?;
        }
        file_class::RENAME => {
            let new = NewName::decode(asked.data).map_err(status::of_wire)?;
            rename(request, &open, file, &new).await?;
        }
        file_class::RENAME_EX => {
            let flags: u32 = r.get().map_err(status::of_wire)?;
            let new = NewName::decode(asked.data).map_err(status::of_wire)?;
            let new = NewName { replace: flags & RENAME_REPLACE != 0, ..new };
            rename(request, &open, file, &new).await?;
        }
        file_class::LINK => {
            let new = NewName::decode(asked.data).map_err(status::of_wire)?;
            link(request, file, &new).await?;
        }
        file_class::FULL_EA => return Err(NtStatus::EAS_NOT_SUPPORTED),
        _ => return Err(NtStatus::INVALID_INFO_CLASS),
    }
    let mut out = request.reply();
    put_set(out.vec());
    let about = About::file(&file.node);
    Ok(Reply { file: Some(request.file_id(asked.file)), ..Reply::new(out).about(about) })
}

async fn basic(request: &Request<'_>, file: &OpenFile, new: &Basic) -> Result<(), NtStatus> {
    let (core, who) = (&request.conn.core, &request.session.who);
    let mut set = SetAttr {
        atime: facts::set_time(new.accessed),
        mtime: facts::set_time(new.written),
        ..SetAttr::default()
    };
    let is_dir = file.node.attr.kind == FileType::Directory;
    if new.attributes != 0 && !is_dir {
        let mode = core.attr(who, &file.node).await.map_err(status::of)?.mode;
        let is_read_only = mode & 0o222 == 0;
        let wanted = new.attributes & attributes::READ_ONLY != 0;
        if wanted != is_read_only {
            set.mode = Some(if wanted { mode & !0o222 } else { mode | 0o200 });
        }
    }
    if set == SetAttr::default() {
        return Ok(());
    }
    core.set_attr(who, &file.node, set).await.map_err(status::of)
}

async fn resize(request: &Request<'_>, file: &OpenFile, size: u64) -> Result<(), NtStatus> {
    if size > i64::MAX as u64 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let set = SetAttr { size: Some(size), ..SetAttr::default() };
    let (core, who) = (&request.conn.core, &request.session.who);
    core.set_attr(who, &file.node, set).await.map_err(status::of)
}

/// A smaller allocation cuts the file; a larger one is taken when it is written to.
async fn allocate(request: &Request<'_>, file: &OpenFile, size: u64) -> Result<(), NtStatus> {
    let (core, who) = (&request.conn.core, &request.session.who);
    let now = core.attr(who, &file.node).await.map_err(status::of)?.size;
    if size < now { resize(request, file, size).await } else { Ok(()) }
}

async fn dispose(
    request: &Request<'_>,
    open: &Open,
    file: &OpenFile,
    delete: bool,
) -> Result<(), NtStatus> {
    open.may(access::DELETE)?;
    let files = &request.conn.server.open_files;
    if !delete {
        files.set_removal(file.entry.key, None);
        file.delete_on_close.set(false);
        return Ok(());
    }
    let (core, who) = (&request.conn.core, &request.session.who);
    let attr = core.attr(who, &file.node).await.map_err(status::of)?;
    if file.node.is_dir() {
        is_empty(request, &file.node).await?;
    } else if attr.mode & 0o222 == 0 {
        // Windows removes nothing that is read-only.
        return Err(NtStatus::CANNOT_DELETE);
    }
    let removal = create::removal(request, file).ok_or(NtStatus::ACCESS_DENIED)?;
    files.set_removal(file.entry.key, Some(removal));
    Ok(())
}

/// That nothing is in a directory.
pub(super) async fn is_empty(request: &Request<'_>, dir: &Node) -> Result<(), NtStatus> {
    let (core, who) = (&request.conn.core, &request.session.who);
    let (fs, handle) = (Arc::clone(&dir.reached.share.fs), dir.handle);
    let look = move |cx: Context<'_>| {
        let mut empty = true;
        fs.list(cx, &handle, 0, [0; 8], false, &mut |entry| {
            empty = matches!(entry.name, b"." | b"..");
            empty
        })?;
        if empty { Ok(()) } else { Err(Status::NotEmpty) }
    };
    core.look(who, &dir.reached.cred, look).await.map_err(status::of)
}

/// Where a new name is, or may be.
async fn spot(
    request: &Request<'_>,
    file: &OpenFile,
    new: &NewName<'_>,
) -> Result<(Spot, crate::files::VPath), NtStatus> {
    let name = new.name.strip_prefix(&[b'\\', 0]).unwrap_or(new.name);
    let path = names::path(&file.node.reached.share, name)?;
    if path.parts().len() < 2 {
        return Err(NtStatus::OBJECT_NAME_INVALID);
    }
    let (core, who) = (&request.conn.core, &request.session.who);
    let spot = core.spot(who, &path, Links::Keep).await.map_err(status::of_path)?;
    Ok((spot, path))
}

/// Who acts, with his own open not in his way.
fn acting(request: &Request<'_>, file: &OpenFile) -> Caller {
    let mut who = request.session.who.clone();
    who.lent.push(file.entry.owner.clone());
    who
}

async fn rename(
    request: &Request<'_>,
    open: &Open,
    file: &OpenFile,
    new: &NewName<'_>,
) -> Result<(), NtStatus> {
    open.may(access::DELETE)?;
    let from = file.place.borrow().clone().ok_or(NtStatus::ACCESS_DENIED)?;
    let (mut to, path) = spot(request, file, new).await?;
    if let Some(there) = to.entry {
        let is_itself = vfs::locks::FileKey::from(&there.attr).is_same_inode(&file.entry.key);
        if is_itself {
            // Only its case changes, or nothing.
            to.name = path.name().unwrap_or_default().to_vec();
        } else if !new.replace {
            return Err(NtStatus::OBJECT_NAME_COLLISION);
        } else if there.attr.kind == FileType::Directory {
            return Err(NtStatus::ACCESS_DENIED);
        }
    }
    let (dir, name) = (to.dir, to.name.clone());
    let source = from.clone();
    let rename = move |fs: &dyn FileSystem, cx: Context<'_>| {
        let renamed = fs.rename(cx, (&source.dir, &source.name), (&dir, &name));
        renamed.map(|done| vfs::fs::Changed { value: (), wcc: done.wcc, flush: done.flush })
    };
    let who = acting(request, file);
    let core = &request.conn.core;
    core.alter(&who, &file.node.reached, rename).await.map_err(status::of)?;
    *file.place.borrow_mut() = Some(Place { dir: to.dir, name: to.name });
    *file.path.borrow_mut() = path;
    Ok(())
}

async fn link(request: &Request<'_>, file: &OpenFile, new: &NewName<'_>) -> Result<(), NtStatus> {
    let (to, _) = spot(request, file, new).await?;
    if to.entry.is_some() {
        return Err(NtStatus::OBJECT_NAME_COLLISION);
    }
    let who = acting(request, file);
    request.conn.core.link(&who, &file.node, &to).await.map_err(status::of)
}
