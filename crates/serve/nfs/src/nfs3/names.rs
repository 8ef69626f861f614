//! Operations on names: LOOKUP, CREATE, MKDIR, SYMLINK, MKNOD, REMOVE, RMDIR, RENAME, LINK
//! (RFC 1813 §3.3.3, §3.3.8 to §3.3.15).

use vfs::attr::FileType;
use vfs::fs::{Change, CreateHow, Entry, Flush, Special};
use vfs::status::Status;
use wire::nfs3::{
    CreateArgs, DiropArgs, Fh3, LinkArgs, LinkWcc, LookupArgs, LookupResOk, MkdirArgs, MknodArgs,
    MknodData, NewResOk, RemoveArgs, RenameArgs, RenameWcc, SymlinkArgs, WccData,
};

use super::call::{Call, Handled, Target};
use super::convert::{fattr, set_attr, wcc};

pub(super) fn lookup(call: &mut Call<'_>) -> Handled {
    let args: LookupArgs<'_> = call.decode()?;
    let found = match call.target(args.what.dir) {
        Ok(t) => {
            t.fs.lookup(call.cx(), &t.handle, args.what.name.0)
                .map_err(|failed| (failed.status, failed.wcc.after.as_ref().map(fattr)))
        }
        Err(status) => Err((status, None)),
    };
    match found {
        Ok((entry, dir)) => {
            let ok = LookupResOk {
                object: Fh3(entry.handle.as_bytes()),
                obj_attributes: Some(fattr(&entry.attr)),
                dir_attributes: dir.as_ref().map(fattr),
            };
            call.finish(Ok(ok), |_| ())
        }
        Err((status, dir)) => call.finish(Err::<(), _>(status), |_| dir),
    }
}

/// Makes something named `args` in a directory and replies as CREATE and its siblings do.
fn make(
    call: &mut Call<'_>,
    args: DiropArgs<'_>,
    how: impl FnOnce(&Call<'_>, &Target<'_>, &[u8]) -> Change<Entry>,
) -> Handled {
    let made = match call.target(args.dir) {
        Ok(t) => how(call, &t, args.name.0),
        Err(status) => Err(status.into()),
    };
    match made {
        Ok(changed) => {
            let ok = NewResOk {
                obj: Some(Fh3(changed.value.handle.as_bytes())),
                obj_attributes: Some(fattr(&changed.value.attr)),
                dir_wcc: wcc(&changed.wcc),
            };
            call.finish_change(Ok::<_, (Status, WccData)>((ok, changed.flush)))
        }
        Err(failed) => call.finish_change(Err::<((), Flush), _>((failed.status, wcc(&failed.wcc)))),
    }
}

pub(super) fn create(call: &mut Call<'_>) -> Handled {
    let args: CreateArgs<'_> = call.decode()?;
    let how = match &args.how {
        wire::nfs3::CreateHow::Unchecked(set) => set_attr(set).map(CreateHow::Unchecked),
        wire::nfs3::CreateHow::Guarded(set) => set_attr(set).map(CreateHow::Guarded),
        wire::nfs3::CreateHow::Exclusive(verifier) => Ok(CreateHow::Exclusive(*verifier)),
    };
    make(call, args.where_, |call, t, name| t.fs.create(call.cx(), &t.handle, name, how?))
}

pub(super) fn mkdir(call: &mut Call<'_>) -> Handled {
    let args: MkdirArgs<'_> = call.decode()?;
    let set = set_attr(&args.attributes);
    make(call, args.where_, |call, t, name| t.fs.mkdir(call.cx(), &t.handle, name, &set?))
}

pub(super) fn symlink(call: &mut Call<'_>) -> Handled {
    let args: SymlinkArgs<'_> = call.decode()?;
    let set = set_attr(&args.symlink_attributes);
    let path = args.symlink_data.0;
    make(call, args.where_, |call, t, name| t.fs.symlink(call.cx(), &t.handle, name, path, &set?))
}

pub(super) fn mknod(call: &mut Call<'_>) -> Handled {
    let args: MknodArgs<'_> = call.decode()?;
    let special = |kind, set, numbers| Ok((Special { kind, rdev: numbers }, set));
    let what = match args.what {
        MknodData::Chr(set, dev) => {
            special(FileType::Character, set, (dev.specdata1, dev.specdata2))
        }
        MknodData::Blk(set, dev) => special(FileType::Block, set, (dev.specdata1, dev.specdata2)),
        MknodData::Sock(set) => special(FileType::Socket, set, (0, 0)),
        MknodData::Fifo(set) => special(FileType::Fifo, set, (0, 0)),
        MknodData::Other(_) => Err(Status::BadType),
    };
    make(call, args.where_, |call, t, name| {
        let (special, set) = what?;
        t.fs.mknod(call.cx(), &t.handle, name, special, &set_attr(&set)?)
    })
}

/// Removes a name and replies as REMOVE and RMDIR do.
fn unmake(
    call: &mut Call<'_>,
    how: impl FnOnce(&Call<'_>, &Target<'_>, &[u8]) -> Change<()>,
) -> Handled {
    let args: RemoveArgs<'_> = call.decode()?;
    let result = match call.target(args.object.dir) {
        Ok(t) => match how(call, &t, args.object.name.0) {
            Ok(changed) => Ok((wcc(&changed.wcc), changed.flush)),
            Err(failed) => Err((failed.status, wcc(&failed.wcc))),
        },
        Err(status) => Err((status, WccData::default())),
    };
    call.finish_change(result)
}

pub(super) fn remove(call: &mut Call<'_>) -> Handled {
    unmake(call, |call, t, name| t.fs.remove(call.cx(), &t.handle, name))
}

pub(super) fn rmdir(call: &mut Call<'_>) -> Handled {
    unmake(call, |call, t, name| t.fs.rmdir(call.cx(), &t.handle, name))
}

pub(super) fn rename(call: &mut Call<'_>) -> Handled {
    let args: RenameArgs<'_> = call.decode()?;
    let both = call.target(args.from.dir).and_then(|from| Ok((from, call.second(args.to.dir)?)));
    let result = match both {
        Ok((from, to)) if !same_share(&from, &to) => {
            Err((Status::CrossDevice, RenameWcc::default()))
        }
        Ok((from, to)) => {
            let (from_name, to_name) = (args.from.name.0, args.to.name.0);
            match from.fs.rename(call.cx(), (&from.handle, from_name), (&to.handle, to_name)) {
                Ok(changed) => {
                    let (fromdir_wcc, todir_wcc) = (wcc(&changed.wcc), wcc(&changed.value));
                    Ok((RenameWcc { fromdir_wcc, todir_wcc }, changed.flush))
                }
                Err(failed) => {
                    let fromdir_wcc = wcc(&failed.wcc);
                    let todir_wcc = WccData { before: None, after: call.attr_of(Ok(to)) };
                    Err((failed.status, RenameWcc { fromdir_wcc, todir_wcc }))
                }
            }
        }
        Err(status) => Err((status, RenameWcc::default())),
    };
    call.finish_change(result)
}

pub(super) fn link(call: &mut Call<'_>) -> Handled {
    let args: LinkArgs<'_> = call.decode()?;
    let both = call.target(args.file).and_then(|file| Ok((file, call.second(args.link.dir)?)));
    let result = match both {
        Ok((file, dir)) if !same_share(&file, &dir) => {
            Err((Status::CrossDevice, LinkWcc::default()))
        }
        Ok((file, dir)) => {
            match file.fs.link(call.cx(), &file.handle, &dir.handle, args.link.name.0) {
                Ok(changed) => {
                    let file_attributes = changed.value.as_ref().map(fattr);
                    let linkdir_wcc = wcc(&changed.wcc);
                    Ok((LinkWcc { file_attributes, linkdir_wcc }, changed.flush))
                }
                Err(failed) => {
                    let file_attributes = call.attr_of(Ok(file));
                    let linkdir_wcc = wcc(&failed.wcc);
                    Err((failed.status, LinkWcc { file_attributes, linkdir_wcc }))
                }
            }
        }
        Err(status) => Err((status, LinkWcc::default())),
    };
    call.finish_change(result)
}

/// A handle of another share is invalid in this one's file system.
fn same_share(a: &Target<'_>, b: &Target<'_>) -> bool {
    a.share == b.share
}
