//! Operations on file handles: PUTFH, PUTROOTFH, PUTPUBFH, GETFH, SAVEFH and
//! RESTOREFH (RFC 8881 §18.19 to §18.21, §18.8, §18.28, §18.27).

use std::sync::Arc;

use vfs::handle::Handle;
use vfs::share::has_form;
use wire::nfs4::{Fh4, GetfhResOk4, Nfsstat4, PutfhArgs4};

use super::pseudo::Pseudo;
use super::run::{CompoundContext, Handled};
use super::target::{FileHandleTarget, Target};

pub(super) fn putfh(run: &mut CompoundContext<'_>, args: &PutfhArgs4<'_>) -> Handled {
    let handle = Handle::new(args.object.0).ok_or(Nfsstat4::BADHANDLE)?;
    let place = match Pseudo::from_handle(&handle) {
        Some(pseudo) => FileHandleTarget::Pseudo(pseudo),
        None => {
            let shares = run.service.shares.load();
            let Some(share) = shares.by_handle(&handle) else {
                // Clients may have handles of a share that was removed.
                let of_ours = has_form(&handle);
                return Err(if of_ours { Nfsstat4::STALE } else { Nfsstat4::BADHANDLE }.into());
            };
            // A handle that is not understood has no file.
            if share.fs.file_id(&handle) == 0 {
                return Err(Nfsstat4::BADHANDLE.into());
            }
            FileHandleTarget::File(Target { share: Arc::clone(share), handle })
        }
    };
    run.set_current(place);
    run.ok(&())
}

pub(super) fn putrootfh(run: &mut CompoundContext<'_>) -> Handled {
    run.set_current(FileHandleTarget::Pseudo(Pseudo::Root));
    run.ok(&())
}

pub(super) fn getfh(run: &mut CompoundContext<'_>) -> Handled {
    let handle = run.current()?.handle();
    run.ok(&GetfhResOk4 { object: Fh4(handle.as_bytes()) })
}

pub(super) fn savefh(run: &mut CompoundContext<'_>) -> Handled {
    let current = run.current()?.clone();
    run.progress.saved = Some(current);
    run.progress.saved_stateid = run.progress.current_stateid;
    run.ok(&())
}

pub(super) fn restorefh(run: &mut CompoundContext<'_>) -> Handled {
    let missing = if run.minor() == 0 { Nfsstat4::RESTOREFH } else { Nfsstat4::NOFILEHANDLE };
    let saved = run.progress.saved.clone().ok_or(missing)?;
    run.progress.current = Some(saved);
    run.progress.current_stateid = run.progress.saved_stateid;
    run.ok(&())
}
