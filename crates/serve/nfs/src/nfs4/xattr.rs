//! Extended attributes of users (RFC 8276 §8.4). Names are without `user.`, as on the wire.

use base::limits::NFS4_LIST_MAX;
use vfs::attr::Wcc;
use vfs::fs::SetXattr;
use vfs::status::Status;
use wire::nfs4::{
    GetxattrArgs4, GetxattrResOk4, ListxattrsArgs4, Nfsstat4, RemovexattrArgs4, RemovexattrResOk4,
    SetxattrArgs4, SetxattrResOk4, setxattr4,
};
use wire::xdr::{Encode, Writer, padding};

use super::attr::change_info;
use super::run::{CompoundContext, Fail, Handled};
use super::target::Target;

/// Bytes of LISTXATTRS4resok without names: cookie, count, eof.
const LIST_HEAD: u32 = 8 + 4 + 4;

/// What a failure means for an extended attribute.
fn failed(status: Status) -> Fail {
    match status {
        Status::NotFound => Nfsstat4::NOXATTR.into(),
        Status::TooLarge => Nfsstat4::XATTR2BIG.into(),
        other => other.into(),
    }
}

fn name_of<'a>(run: &mut CompoundContext<'_>, name: &'a [u8]) -> Result<(Target, &'a [u8]), Fail> {
    let target = run.target(Nfsstat4::NOTSUPP)?;
    match name {
        b"" => Err(Nfsstat4::INVAL.into()),
        _ if name.contains(&0) => Err(Nfsstat4::BADCHAR.into()),
        _ => Ok((target, name)),
    }
}

pub(super) fn get(run: &mut CompoundContext<'_>, args: &GetxattrArgs4<'_>) -> Handled {
    let (target, name) = name_of(run, args.name.0)?;
    let value = target.share.fs.get_xattr(run.cx(), &target.handle, name).map_err(failed)?;
    run.ok(&GetxattrResOk4 { value: &value })
}

pub(super) fn set(run: &mut CompoundContext<'_>, args: &SetxattrArgs4<'_>) -> Handled {
    let (target, name) = name_of(run, args.key.0)?;
    let how = match args.option {
        setxattr4::EITHER => SetXattr::Either,
        setxattr4::CREATE => SetXattr::Create,
        setxattr4::REPLACE => SetXattr::Replace,
        _ => return Err(Nfsstat4::BADXDR.into()),
    };
    let (fs, at) = (&target.share.fs, &target.handle);
    let done = fs.set_xattr(run.cx(), at, name, args.value, how).map_err(|f| failed(f.status))?;
    let wcc: Wcc = done.wcc;
    run.durable(done.flush);
    run.ok(&SetxattrResOk4 { info: change_info(&wcc) })
}

pub(super) fn remove(run: &mut CompoundContext<'_>, args: &RemovexattrArgs4<'_>) -> Handled {
    let (target, name) = name_of(run, args.name.0)?;
    let (fs, at) = (&target.share.fs, &target.handle);
    let done = fs.remove_xattr(run.cx(), at, name).map_err(|f| failed(f.status))?;
    let wcc: Wcc = done.wcc;
    run.durable(done.flush);
    run.ok(&RemovexattrResOk4 { info: change_info(&wcc) })
}

pub(super) fn list(run: &mut CompoundContext<'_>, args: &ListxattrsArgs4) -> Handled {
    let target = run.target(Nfsstat4::NOTSUPP)?;
    let mut room = args.maxcount.checked_sub(LIST_HEAD).ok_or(Nfsstat4::TOOSMALL)? as usize;
    let (mut names, mut count, mut cookie) = (Vec::new(), 0u32, args.cookie);
    let mut w = Writer::new(&mut names);
    let mut each = |name: &[u8], next: u64| {
        let size = 4 + name.len() + padding(name.len());
        let takes = size <= room && (count as usize) < NFS4_LIST_MAX;
        if takes {
            w.opaque(name);
            (room, count, cookie) = (room - size, count + 1, next);
        }
        takes
    };
    let (fs, at) = (&target.share.fs, &target.handle);
    let eof = fs.list_xattrs(run.cx(), at, args.cookie, &mut each)?;
    if count == 0 && !eof {
        return Err(Nfsstat4::TOOSMALL.into());
    }
    let mut w = run.writer();
    Nfsstat4::OK.encode(&mut w);
    w.u64(cookie);
    w.u32(count);
    w.raw(&names);
    w.bool(eof);
    Ok(())
}
