//! LOOKUP, LOOKUPP, SECINFO and SECINFO_NO_NAME (RFC 8881 §18.13, §18.14, §18.29, §18.45).

use std::sync::Arc;

use vfs::attr::FileType;
use vfs::share::Share;
use wire::nfs4::{
    LookupArgs4, Nfsstat4, Secinfo4, SecinfoArgs4, SecinfoNoNameArgs4, SecinfoResOk4,
};
use wire::xdr::Seq;

use super::pseudo::{Below, Pseudo};
use super::run::{CompoundContext, Fail, Handled};
use super::target::{FileHandleTarget, Target};

/// Checks a name that a client sends; see the module for what is refused.
pub fn check_name(name: &[u8], name_max: u32) -> Result<(), Nfsstat4> {
    match name {
        b"" => Err(Nfsstat4::INVAL),
        b"." | b".." => Err(Nfsstat4::BADNAME),
        _ if name.iter().any(|b| matches!(b, 0 | b'/')) => Err(Nfsstat4::BADCHAR),
        _ if name.len() > name_max as usize => Err(Nfsstat4::NAMETOOLONG),
        _ => Ok(()),
    }
}

/// As [`check_name`], with the limit of the file system that the name is for.
pub fn check_name_in(place: &FileHandleTarget, name: &[u8]) -> Result<(), Nfsstat4> {
    let name_max = match place {
        FileHandleTarget::Pseudo(_) => base::limits::NAME_MAX as u32,
        FileHandleTarget::File(target) => target.share.fs.abilities().name_max,
    };
    check_name(name, name_max)
}

fn root_of(share: &Arc<Share>) -> FileHandleTarget {
    FileHandleTarget::File(Target { share: Arc::clone(share), handle: share.fs.root() })
}

/// Finds a name in a directory.
fn find(
    run: &mut CompoundContext<'_>,
    place: &FileHandleTarget,
    name: &[u8],
) -> Result<FileHandleTarget, Fail> {
    match place {
        FileHandleTarget::Pseudo(pseudo) => {
            check_name_in(place, name)?;
            let shares = run.service.shares.load();
            match pseudo.lookup(&shares, name) {
                Some(Below::Pseudo(below)) => Ok(FileHandleTarget::Pseudo(below)),
                Some(Below::Share(share)) if run.may_see(share) => Ok(root_of(share)),
                Some(Below::Share(share)) if run.grant(share).too_weak => {
                    Err(Nfsstat4::WRONGSEC.into())
                }
                _ => Err(Nfsstat4::NOENT.into()),
            }
        }
        FileHandleTarget::File(target) => {
            run.target(Nfsstat4::SERVERFAULT)?;
            if let Err(status) = check_name_in(place, name) {
                directory(run, target)?;
                return Err(status.into());
            }
            let fs = &target.share.fs;
            match fs.lookup(run.cx(), &target.handle, name) {
                Ok((entry, _)) => Ok(target.in_same_share(entry.handle)),
                Err(failed) if failed.status == vfs::status::Status::NotDirectory => {
                    directory(run, target)?;
                    Err(failed.into())
                }
                Err(failed) => Err(failed.into()),
            }
        }
    }
}

/// Whether a file is a directory.
///
/// # Errors
/// NFS4ERR_SYMLINK for a symbolic link, NFS4ERR_NOTDIR for the rest.
pub fn directory(run: &CompoundContext<'_>, target: &Target) -> Result<(), Fail> {
    match target.share.fs.getattr(run.cx(), &target.handle)?.kind {
        FileType::Directory => Ok(()),
        FileType::Symlink => Err(Nfsstat4::SYMLINK.into()),
        _ => Err(Nfsstat4::NOTDIR.into()),
    }
}

pub(super) fn lookup(run: &mut CompoundContext<'_>, args: &LookupArgs4<'_>) -> Handled {
    let place = run.current()?.clone();
    let found = find(run, &place, args.objname.0)?;
    run.set_current(found);
    run.ok(&())
}

/// The directory above.
fn parent(
    run: &mut CompoundContext<'_>,
    place: &FileHandleTarget,
) -> Result<FileHandleTarget, Fail> {
    match place {
        FileHandleTarget::Pseudo(pseudo) => {
            Ok(FileHandleTarget::Pseudo(pseudo.parent().ok_or(Nfsstat4::NOENT)?))
        }
        FileHandleTarget::File(target) if target.is_root() => {
            Ok(FileHandleTarget::Pseudo(Pseudo::Export))
        }
        FileHandleTarget::File(target) => {
            run.target(Nfsstat4::SERVERFAULT)?;
            directory(run, target)?;
            let entry = target.share.fs.lookup_parent(run.cx(), &target.handle)?;
            Ok(target.in_same_share(entry.handle))
        }
    }
}

pub(super) fn lookupp(run: &mut CompoundContext<'_>) -> Handled {
    let place = run.current()?.clone();
    let above = parent(run, &place)?;
    run.set_current(above);
    run.ok(&())
}

pub(super) fn secinfo(run: &mut CompoundContext<'_>, args: &SecinfoArgs4<'_>) -> Handled {
    let place = run.current()?.clone();
    let named = match find(run, &place, args.name.0) {
        // The operation returns the accepted flavors (RFC 8881 §2.6.3.1.1.8).
        Err(Fail::Status(Nfsstat4::WRONGSEC)) => share_below(run, &place, args.name.0)?,
        found => found?,
    };
    flavors(run, &named)
}

/// The root of a share that the caller is not let into as it comes.
fn share_below(
    run: &CompoundContext<'_>,
    place: &FileHandleTarget,
    name: &[u8],
) -> Result<FileHandleTarget, Fail> {
    let FileHandleTarget::Pseudo(pseudo) = place else { return Err(Nfsstat4::WRONGSEC.into()) };
    let shares = run.service.shares.load();
    match pseudo.lookup(&shares, name) {
        Some(Below::Share(share)) => Ok(root_of(share)),
        _ => Err(Nfsstat4::NOENT.into()),
    }
}

pub(super) fn secinfo_no_name(run: &mut CompoundContext<'_>, args: &SecinfoNoNameArgs4) -> Handled {
    let place = run.current()?.clone();
    let named = match args.style {
        0 => place,
        1 => parent(run, &place)?,
        _ => return Err(Nfsstat4::BADXDR.into()),
    };
    flavors(run, &named)
}

fn flavors(run: &mut CompoundContext<'_>, place: &FileHandleTarget) -> Handled {
    let flavors = run.flavors(place)?;
    // From 4.1 on the current file handle is consumed (RFC 8881 §2.6.3.1.1.8).
    if run.minor() > 0 {
        run.progress.current = None;
        run.progress.current_stateid = None;
    }
    run.ok(&SecinfoResOk4 { flavors: Seq(flavors.numbers().map(Secinfo4::Flavor).collect()) })
}
