//! CREATE, REMOVE, RENAME and LINK (RFC 8881 §18.4, §18.25, §18.26, §18.9).

use std::sync::Arc;

use vfs::attr::FileType;
use vfs::fs::{Changed, Entry, Special};
use vfs::status::Status;
use wire::nfs4::{
    CreateArgs4, CreateResOk4, Createtype4, Ftype4, LinkArgs4, LinkResOk4, Nfsstat4, RemoveArgs4,
    RemoveResOk4, RenameArgs4, RenameResOk4, Specdata4,
};

use super::acl;
use super::attr::change_info;
use super::fattr::{RequestedAttributes, of_new};
use super::names::{check_name_in, directory};
use super::run::{CompoundContext, Fail, Handled};
use super::target::{FileHandleTarget, Target};

/// The current file, which must be a directory of a share; the name is checked.
fn in_directory(run: &mut CompoundContext<'_>, name: &[u8]) -> Result<Target, Fail> {
    let place = run.current()?.clone();
    let dir = run.target(Nfsstat4::ROFS)?;
    directory(run, &dir).map_err(not_dir)?;
    check_name_in(&place, name)?;
    Ok(dir)
}

/// These operations know no NFS4ERR_SYMLINK (RFC 8881 §15.2).
fn not_dir(fail: Fail) -> Fail {
    if fail == Fail::Status(Nfsstat4::SYMLINK) { Nfsstat4::NOTDIR.into() } else { fail }
}

pub(super) fn create(run: &mut CompoundContext<'_>, args: &CreateArgs4<'_>) -> Handled {
    let name = args.objname.0;
    let dir = in_directory(run, name)?;
    let is_dir = matches!(args.objtype, Createtype4::Other(Ftype4::DIR));
    let RequestedAttributes { set, aces, mask } = of_new(run, &dir, &args.createattrs, is_dir)?;
    if set.size.is_some() {
        return Err(Nfsstat4::INVAL.into());
    }
    if aces.is_some() && matches!(args.objtype, Createtype4::Link(_)) {
        // A symbolic link has no access control list.
        return Err(Nfsstat4::ATTRNOTSUPP.into());
    }
    let (cx, fs, at) = (run.cx(), &dir.share.fs, &dir.handle);
    let special = |kind, device: Specdata4| {
        fs.mknod(cx, at, name, Special { kind, rdev: (device.specdata1, device.specdata2) }, &set)
    };
    let made: Changed<Entry> = match args.objtype {
        Createtype4::Link(text) if text.0.is_empty() => return Err(Nfsstat4::INVAL.into()),
        Createtype4::Link(text) => fs.symlink(cx, at, name, text.0, &set),
        Createtype4::Block(device) => special(FileType::Block, device),
        Createtype4::Character(device) => special(FileType::Character, device),
        Createtype4::Other(Ftype4::DIR) => fs.mkdir(cx, at, name, &set),
        Createtype4::Other(Ftype4::SOCK) => special(FileType::Socket, Specdata4::default()),
        Createtype4::Other(Ftype4::FIFO) => special(FileType::Fifo, Specdata4::default()),
        Createtype4::Other(_) => return Err(Nfsstat4::BADTYPE.into()),
    }?;
    let cinfo = change_info(&made.wcc);
    run.durable(made.flush);
    let made = Target { share: Arc::clone(&dir.share), handle: made.value.handle };
    if let Some(aces) = aces {
        acl::set(run, &made, &aces)?;
    }
    run.set_current(FileHandleTarget::File(made));
    run.ok(&CreateResOk4 { cinfo, attrset: mask })
}

pub(super) fn remove(run: &mut CompoundContext<'_>, args: &RemoveArgs4<'_>) -> Handled {
    let name = args.target.0;
    let dir = in_directory(run, name)?;
    check_name(run, &dir, name)?;
    let (cx, fs) = (run.cx(), &dir.share.fs);
    let removed = match fs.remove(cx, &dir.handle, name) {
        Err(failed) if failed.status == Status::IsDirectory => fs.rmdir(cx, &dir.handle, name),
        other => other,
    }?;
    let cinfo = change_info(&removed.wcc);
    run.durable(removed.flush);
    run.ok(&RemoveResOk4 { cinfo })
}

/// Whether what has a name may lose it now, if it is there. Directories are never open, and their
/// handles outlive their names.
fn check_name(run: &CompoundContext<'_>, dir: &Target, name: &[u8]) -> Handled {
    // Nothing is looked up unless it matters.
    let Err(status) = run.service.state.check_names() else { return Ok(()) };
    match dir.share.fs.lookup(run.cx(), &dir.handle, name) {
        Ok((entry, _)) if entry.attr.kind != FileType::Directory => Err(status.into()),
        Err(failed) if failed.status == Status::WouldBlock => Err(Fail::WouldBlock),
        // The operation itself checks the rest.
        _ => Ok(()),
    }
}

/// The saved and the current file: both in one share, or in different ones.
fn both(run: &mut CompoundContext<'_>) -> Result<(Target, Target), Fail> {
    let saved = run.saved()?.clone();
    let current = run.current()?.clone();
    match (saved.target(), current.target()) {
        (Some(saved), Some(_)) => {
            let current = run.target(Nfsstat4::SERVERFAULT)?;
            if saved.share.id == current.share.id {
                Ok((saved, current))
            } else {
                Err(Nfsstat4::XDEV.into())
            }
        }
        (None, None) => Err(Nfsstat4::ROFS.into()),
        _ => Err(Nfsstat4::XDEV.into()),
    }
}

pub(super) fn rename(run: &mut CompoundContext<'_>, args: &RenameArgs4<'_>) -> Handled {
    let (oldname, newname) = (args.oldname.0, args.newname.0);
    let (from, to) = both(run)?;
    directory(run, &from).map_err(not_dir)?;
    directory(run, &to).map_err(not_dir)?;
    let place = FileHandleTarget::File(to.clone());
    check_name_in(&place, oldname)?;
    check_name_in(&place, newname)?;
    check_name(run, &from, oldname)?;
    check_name(run, &to, newname)?;
    let fs = &from.share.fs;
    let renamed = fs
        .rename(run.cx(), (&from.handle, oldname), (&to.handle, newname))
        // What stands in the way is in the way, of whatever kind it is (RFC 8881 §18.26.3).
        .map_err(|failed| match failed.status {
            Status::IsDirectory | Status::NotDirectory | Status::NotEmpty => Nfsstat4::EXIST.into(),
            _ => Fail::from(failed),
        })?;
    let source_cinfo = change_info(&renamed.wcc);
    let target_cinfo = change_info(&renamed.value);
    run.durable(renamed.flush);
    run.ok(&RenameResOk4 { source_cinfo, target_cinfo })
}

pub(super) fn link(run: &mut CompoundContext<'_>, args: &LinkArgs4<'_>) -> Handled {
    let name = args.newname.0;
    let (file, dir) = both(run)?;
    directory(run, &dir).map_err(not_dir)?;
    if file.share.fs.getattr(run.cx(), &file.handle)?.kind == FileType::Directory {
        return Err(Nfsstat4::ISDIR.into());
    }
    check_name_in(&FileHandleTarget::File(dir.clone()), name)?;
    // A file with two names is one that no delegation stands for.
    run.service.state.check_names()?;
    let linked = dir.share.fs.link(run.cx(), &file.handle, &dir.handle, name)?;
    let cinfo = change_info(&linked.wcc);
    run.durable(linked.flush);
    run.ok(&LinkResOk4 { cinfo })
}
