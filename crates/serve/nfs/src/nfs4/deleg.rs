//! The delegations that OPEN grants in addition to the open, the claims of OPEN that name a
//! delegation, and DELEGRETURN (RFC 8881 §18.16, §10.4, §18.6).

use std::sync::Arc;

use vfs::attr::{Attr, FileType};
use vfs::fs::access;
use vfs::locks::{Caching, FileKey, SHARE_READ, SHARE_WRITE, Share};
use wire::nfs4::{
    DelegreturnArgs4, Nfsace4, Nfsstat4, OpenArgs4, OpenClaim4, OpenDelegation4,
    OpenNoneDelegation4, OpenReadDelegation4, OpenWriteDelegation4, SpaceLimit4, Stateid4, Utf8str,
    acetype4, delegation4, share4, why_no_delegation4,
};

use super::run::{CompoundContext, Fail, Handled};
use super::state::Client;
use super::state::deleg::DelegationRequest;
use super::stateful::Stateful;
use super::target::{FileHandleTarget, Target};

/// What a client is given with an OPEN that was done.
pub(super) fn grant(
    keeper: &Stateful,
    run: &CompoundContext<'_>,
    args: &OpenArgs4<'_>,
    client: &Arc<Client>,
    (target, attr): (&Target, &Attr),
    (share, confirmed): (Share, bool),
) -> OpenDelegation4<'static> {
    let asked = if run.minor() == 0 { 0 } else { args.share_access & share4::WANT_DELEG_MASK };
    let granted = match args.claim {
        _ if attr.kind != FileType::Regular => Err(why_no_delegation4::NOT_SUPP_FTYPE),
        OpenClaim4::Previous(delegation4::READ) => {
            give(keeper, run, client, (target, attr), Caching::READ)
        }
        OpenClaim4::Previous(delegation4::WRITE) => {
            give(keeper, run, client, (target, attr), Caching::READ_WRITE)
        }
        OpenClaim4::Null(_) | OpenClaim4::Fh(()) => kind_for(asked, share, confirmed)
            .and_then(|kind| offered(keeper, run.minor(), kind))
            .and_then(|kind| may_have(keeper, run, client, target, kind))
            .and_then(|kind| give(keeper, run, client, (target, attr), kind)),
        _ => Err(why_no_delegation4::NOT_WANTED),
    };
    // The file may have been changed since the server went away, by a program on its machine or
    // over NFSv3, which knows no grace: what was reclaimed is to be returned.
    let recall = matches!(args.claim, OpenClaim4::Previous(_));
    match granted {
        Ok((stateid, kind)) if kind.has(Caching::WRITE) => {
            OpenDelegation4::Write(OpenWriteDelegation4 {
                stateid,
                recall,
                space_limit: FLUSH_ON_CLOSE,
                permissions: NOBODY,
            })
        }
        Ok((stateid, _)) => {
            OpenDelegation4::Read(OpenReadDelegation4 { stateid, recall, permissions: NOBODY })
        }
        Err(why) if asked != 0 => {
            OpenDelegation4::NoneExt(OpenNoneDelegation4 { why, will_tell: false })
        }
        Err(_) => OpenDelegation4::None(()),
    }
}

/// Nothing is reserved for what a client has not flushed: it flushes what it has written before it
/// closes the file, so that its program sees if there is no room (RFC 8881 §10.4.1), and
/// programs on the server's machine find all of it.
const FLUSH_ON_CLOSE: SpaceLimit4 = SpaceLimit4::Size(0);

/// Gives a delegation, if changes by programs on this machine would be heard of: the attributes
/// that the client goes by are read after this.
fn give(
    keeper: &Stateful,
    run: &CompoundContext<'_>,
    client: &Arc<Client>,
    (target, attr): (&Target, &Attr),
    kind: Caching,
) -> Result<(Stateid4, Caching), u32> {
    let fs = &target.share.fs;
    let watch = fs.watch(run.cx(), &target.handle);
    let watch = watch.map_err(|_| why_no_delegation4::RESOURCE)?;
    // OPEN may have emptied it since: what its client reports of it later is compared with this.
    let now = match kind.has(Caching::WRITE) {
        true => fs.getattr(run.cx(), &target.handle).map_err(|_| why_no_delegation4::RESOURCE)?,
        false => *attr,
    };
    let wanted = DelegationRequest {
        file: fs.file_id(&target.handle),
        slot: fs.change_slot(&target.handle),
        handle: &target.handle,
        attr: &now,
    };
    let stateid = keeper.state.delegate(client, wanted, kind)?;
    if let Ok(deleg) = keeper.state.delegation(client, &stateid) {
        // Its client opens the file without asking us, and uses it under the delegation.
        let retained = fs.retain(run.cx(), &target.handle).ok();
        deleg.keep(watch, retained);
    }
    Ok((stateid, kind))
}

/// The entry for users that may open without ACCESS: it allows nothing, so clients send ACCESS.
const NOBODY: Nfsace4<'static> =
    Nfsace4 { kind: acetype4::ALLOWED, flag: 0, access_mask: 0, who: Utf8str(b"") };

/// Which delegation goes with an OPEN for this share. Without a wish it is for writing only where
/// the file is opened for both: programs that only write, as cp(1), open most files once.
fn kind_for(asked: u32, share: Share, confirmed: bool) -> Result<Caching, u32> {
    let (reads, writes) = (share.access & SHARE_READ != 0, share.access & SHARE_WRITE != 0);
    // An owner that is not confirmed may be a repeated request of one that is long gone.
    if !confirmed {
        return Err(why_no_delegation4::RESOURCE);
    }
    match asked {
        share4::WANT_NO_DELEG => Err(why_no_delegation4::NOT_WANTED),
        share4::WANT_CANCEL => Err(why_no_delegation4::CANCELLED),
        share4::WANT_WRITE_DELEG if writes => Ok(Caching::READ_WRITE),
        // What the open does not permit, the delegation would.
        share4::WANT_WRITE_DELEG => Err(why_no_delegation4::RESOURCE),
        share4::WANT_READ_DELEG if writes => Err(why_no_delegation4::RESOURCE),
        _ if reads && writes => Ok(Caching::READ_WRITE),
        _ if writes => Err(why_no_delegation4::RESOURCE),
        _ => Ok(Caching::READ),
    }
}

/// Refuses delegations for writing unless the server grants them to clients of this minor version.
fn offered(keeper: &Stateful, minor: u32, kind: Caching) -> Result<Caching, u32> {
    match kind.has(Caching::WRITE) && !keeper.state.recalls.for_writing(minor) {
        true => Err(why_no_delegation4::RESOURCE),
        false => Ok(kind),
    }
}

/// Whether that should be granted, as far as it depends on the client and the user: what is
/// delegated for writing is read under the delegation, too.
fn may_have(
    keeper: &Stateful,
    run: &CompoundContext<'_>,
    client: &Client,
    target: &Target,
    kind: Caching,
) -> Result<Caching, u32> {
    let fs = &target.share.fs;
    keeper.state.may_delegate(client, fs.file_id(&target.handle), keeper.now())?;
    if kind.has(Caching::WRITE) {
        let both = access::READ | access::MODIFY;
        let granted = fs.access(run.cx(), &target.handle, both);
        if !granted.is_ok_and(|(granted, _)| granted & both == both) {
            return Err(why_no_delegation4::RESOURCE);
        }
    }
    Ok(kind)
}

/// The delegation that a claim names, which must be on this file.
///
/// # Errors
/// Those of the stateid.
pub(super) fn check_claim(
    keeper: &Stateful,
    client: &Client,
    stateid: &Stateid4,
    attr: &Attr,
) -> Result<(), Fail> {
    let deleg = keeper.state.delegation(client, stateid)?;
    if deleg.key == FileKey::from(attr) { Ok(()) } else { Err(Nfsstat4::BAD_STATEID.into()) }
}

/// The stateid of a claim that names a delegation.
pub(super) fn claimed(claim: &OpenClaim4<'_>) -> Option<Stateid4> {
    match claim {
        OpenClaim4::DelegateCur(cur) => Some(cur.delegate_stateid),
        OpenClaim4::DelegCurFh(stateid) => Some(*stateid),
        _ => None,
    }
}

/// DELEGRETURN. The file itself is not accessed: it may be gone.
pub(super) fn give_back(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &DelegreturnArgs4,
) -> Handled {
    let id = run.stateid(&args.deleg_stateid)?;
    let client = keeper.of_stateid(run, &id)?;
    let deleg = keeper.state.delegation(&client, &id)?;
    let on_it = match run.current()? {
        FileHandleTarget::File(target) => {
            target.handle == deleg.handle || {
                // Another handle of the same file will do.
                let attr = target.share.fs.getattr(run.cx(), &target.handle)?;
                FileKey::from(&attr) == deleg.key
            }
        }
        FileHandleTarget::Pseudo(_) => false,
    };
    if !on_it {
        return Err(Nfsstat4::BAD_STATEID.into());
    }
    keeper.state.delegation_return(&client, &id)?;
    run.ok(&())
}
