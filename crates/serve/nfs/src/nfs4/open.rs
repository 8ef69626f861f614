//! OPEN in its claims and ways to create, OPEN_CONFIRM, OPEN_DOWNGRADE, CLOSE (RFC 8881 §18.16,
//! §18.18, §18.2; RFC 7530 §16.18).

use std::sync::Arc;

use vfs::attr::{Attr, Before, FileType, SetAttr, Wcc};
use vfs::fs::{CreateHow, access, retain_if_possible};
use vfs::locks::{FileKey, SHARE_READ, SHARE_WRITE, Share};
use vfs::status::Status;
use wire::nfs4::{
    Bitmap4, ChangeInfo4, CloseArgs4, Createhow4, Nfsstat4, OpenArgs4, OpenClaim4,
    OpenConfirmArgs4, OpenDowngradeArgs4, OpenResOk4, Openflag4, StateidResOk4, attr4, open4,
    share4,
};

use super::acl;
use super::attr::change_info;
use super::deleg;
use super::fattr::{RequestedAttributes, of_new};
use super::names::{check_name_in, directory};
use super::run::{CompoundContext, Fail, Handled};
use super::state::Client;
use super::stateful::{InTurn, Stateful, check_regular, regular};
use super::target::{FileHandleTarget, Target};

/// Times, in which an exclusive create keeps its verifier. A client sets them afterwards if they
/// are in `attrset` (RFC 8881 §18.16.3), and otherwise leaves the verifier there for good.
const VERIFIER_ATTRS: [u32; 2] = [attr4::TIME_ACCESS, attr4::TIME_MODIFY];

/// A file that OPEN has found or made.
struct OpenTarget {
    target: Target,
    attr: Attr,
    cinfo: ChangeInfo4,
    attrset: Bitmap4,
    /// It was made by this call: its mode does not apply to this open.
    made: bool,
    /// What is to be set once it is open.
    then: Option<SetAttr>,
}

pub(super) fn open(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &OpenArgs4<'_>,
) -> Handled {
    if !run.may_block {
        return Err(Fail::WouldBlock);
    }
    let share = share_of(run, args.share_access, args.share_deny)?;
    let client = keeper.of_clientid(run, args.owner.clientid)?;
    // A client that reclaims is known to be in order (RFC 7530 §16.18.5): it need not confirm.
    let reclaims = matches!(args.claim, OpenClaim4::Previous(_));
    let turn = InTurn {
        locks: false,
        owner: args.owner.owner.0,
        seqid: args.seqid,
        may_start: true,
        confirms: reclaims,
        opens: true,
    };
    keeper.in_turn(run, &client, &turn, |run, confirmed| {
        keeper.state.end_grace_if_due(keeper.now());
        match args.claim {
            OpenClaim4::Previous(_) => keeper.state.may_reclaim(&client)?,
            // A client that holds a delegation may open under it, also while others must wait.
            OpenClaim4::DelegateCur(_) | OpenClaim4::DelegCurFh(_) => {}
            _ => keeper.state.may_take(&client)?,
        }
        // Before it holds anything: there is no other way to state than an open. A client that
        // reclaims is on record, and from 4.1 on stays so by RECLAIM_COMPLETE alone.
        let is_recorded = !reclaims || run.minor() == 0;
        // Before a file is made; where none is made, not before it is known to be there.
        let makes = matches!(args.openhow, Openflag4::Create(_));
        let early = (is_recorded && makes).then(|| keeper.state.record(&client)).transpose()?;
        let found = find(run, args)?;
        let late = is_recorded && early.is_none();
        let done = finish(keeper, run, args, (&client, late), share, found, confirmed || reclaims);
        drop(early);
        done
    })
}

/// Opens the file that was found, and writes the result. With `is_recorded` the client is recorded
/// before.
fn finish(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &OpenArgs4<'_>,
    (client, is_recorded): (&Arc<Client>, bool),
    share: Share,
    found: OpenTarget,
    confirmed: bool,
) -> Handled {
    let OpenTarget { target, attr, cinfo, attrset, made, then } = found;
    check_kind(run, attr.kind)?;
    if let Some(stateid) = deleg::claimed(&args.claim) {
        deleg::check_claim(keeper, client, &stateid, &attr)?;
    }
    if !made {
        check_rights(run, &target, share)?;
    }
    let key = FileKey::from(&attr);
    if !made && then.is_some() && share.access & SHARE_WRITE == 0 {
        // It is truncated though it is opened for reading: for deny modes this is a write.
        let denied = keeper.state.check_special(key, SHARE_WRITE, keeper.now());
        denied.map_err(|_| Nfsstat4::SHARE_DENIED)?;
    }
    let owner = client.owner(args.owner.owner.0)?;
    // Usable until its last CLOSE, also when it is removed meanwhile.
    let retained = retain_if_possible(&*target.share.fs, run.cx(), &target.handle)?;
    let _on_record = is_recorded.then(|| keeper.state.record(client)).transpose()?;
    let stateid = keeper.state.open(client, key, &owner, share, keeper.now())?;
    keeper.state.opened_through(client, &stateid, &target.handle, retained);
    if let Some(set) = then {
        match target.share.fs.setattr(run.cx(), &target.handle, &set, None) {
            Ok(changed) => run.durable(changed.flush),
            Err(failed) => {
                // A first open goes again; one that was there before stays as it has become.
                if stateid.seqid == 1 {
                    keeper.state.close(client, &stateid, key)?;
                }
                return Err(failed.into());
            }
        }
    }
    let granted = (share, confirmed);
    let delegation = deleg::grant(keeper, run, args, client, (&target, &attr), granted);
    run.set_current(FileHandleTarget::File(target));
    if run.minor() > 0 {
        run.progress.current_stateid = Some(stateid);
    }
    let confirm = if confirmed { 0 } else { open4::RESULT_CONFIRM };
    run.ok(&OpenResOk4 {
        stateid,
        cinfo,
        rflags: open4::RESULT_LOCKTYPE_POSIX | confirm,
        attrset,
        delegation,
    })
}

fn share_of(
    run: &CompoundContext<'_>,
    share_access: u32,
    share_deny: u32,
) -> Result<Share, Nfsstat4> {
    let wants = share4::WANT_DELEG_MASK
        | share4::WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL
        | share4::WANT_PUSH_DELEG_WHEN_UNCONTENDED;
    let access = if run.minor() > 0 { share_access & !wants } else { share_access };
    let known = (1..=share4::ACCESS_BOTH).contains(&access) && share_deny <= share4::DENY_BOTH;
    if known {
        Ok(Share { access: access as u8, deny: share_deny as u8 })
    } else {
        Err(Nfsstat4::INVAL)
    }
}

/// The status for files that cannot be opened: 4.0 has NFS4ERR_SYMLINK for all that is neither a
/// regular file nor a directory (RFC 7530 §16.16.5).
fn check_kind(run: &CompoundContext<'_>, kind: FileType) -> Result<(), Fail> {
    match kind {
        FileType::Regular | FileType::Directory => check_regular(run, kind),
        _ if run.minor() == 0 => Err(Nfsstat4::SYMLINK.into()),
        _ => check_regular(run, kind),
    }
}

/// Permission to execute a file includes opening it for reading, as a client must to run it (RFC
/// 1813 §4.4).
fn check_rights(run: &CompoundContext<'_>, target: &Target, share: Share) -> Result<(), Fail> {
    let (reads, writes) = (share.access & SHARE_READ != 0, share.access & SHARE_WRITE != 0);
    // The share is read-only, whatever the file's own permissions are.
    if writes && target.share.read_only {
        return Err(Nfsstat4::ROFS.into());
    }
    let asked = access::READ | access::MODIFY | access::EXECUTE;
    let (granted, _) = target.share.fs.access(run.cx(), &target.handle, asked)?;
    let may_read = granted & (access::READ | access::EXECUTE) != 0;
    let may_write = granted & access::MODIFY != 0;
    let may = (may_read || !reads) && (may_write || !writes);
    if may { Ok(()) } else { Err(Nfsstat4::ACCESS.into()) }
}

fn find(run: &mut CompoundContext<'_>, args: &OpenArgs4<'_>) -> Result<OpenTarget, Fail> {
    match args.claim {
        OpenClaim4::Null(name) => by_name(run, name.0, &args.openhow),
        OpenClaim4::DelegateCur(claim) => by_name(run, claim.file.0, &args.openhow),
        OpenClaim4::Previous(_) | OpenClaim4::Fh(()) | OpenClaim4::DelegCurFh(_) => {
            if matches!(args.openhow, Openflag4::Create(_)) {
                return Err(Nfsstat4::INVAL.into());
            }
            let target = run.target(Nfsstat4::ISDIR)?;
            let attr = target.share.fs.getattr(run.cx(), &target.handle)?;
            let (cinfo, attrset) = (ChangeInfo4::default(), Bitmap4::EMPTY);
            Ok(OpenTarget { target, attr, cinfo, attrset, made: false, then: None })
        }
        OpenClaim4::DelegatePrev(_) | OpenClaim4::DelegPrevFh(()) => Err(Nfsstat4::NOTSUPP.into()),
    }
}

fn by_name(
    run: &mut CompoundContext<'_>,
    name: &[u8],
    how: &Openflag4<'_>,
) -> Result<OpenTarget, Fail> {
    let place = run.current()?.clone();
    let dir = run.target(match how {
        Openflag4::Nocreate(()) => Nfsstat4::NOENT,
        Openflag4::Create(_) => Nfsstat4::ROFS,
    })?;
    directory(run, &dir)?;
    check_name_in(&place, name)?;
    match how {
        Openflag4::Nocreate(()) => existing(run, &dir, name, None, Bitmap4::EMPTY),
        Openflag4::Create(Createhow4::Unchecked(attrs)) => {
            let wanted = of_new(run, &dir, attrs, false)?;
            // Of the attributes for an existing file, only size 0 is applied (RFC 7530 §16.16.5).
            let size = wanted.set.size.filter(|size| *size == 0);
            let size = size.map(|size| SetAttr { size: Some(size), ..SetAttr::default() });
            let sized = if size.is_some() { Bitmap4::of(&[4]) } else { Bitmap4::EMPTY };
            match existing(run, &dir, name, size, sized) {
                Err(Fail::Status(Nfsstat4::NOENT)) => {}
                other => return other,
            }
            match made_as(run, &dir, name, wanted) {
                // Another request has created it meanwhile.
                Err(Fail::Status(Nfsstat4::EXIST)) => existing(run, &dir, name, size, sized),
                other => other,
            }
        }
        Openflag4::Create(Createhow4::Guarded(attrs)) => {
            let wanted = of_new(run, &dir, attrs, false)?;
            made_as(run, &dir, name, wanted)
        }
        Openflag4::Create(Createhow4::Exclusive(verifier)) => {
            let attrset = Bitmap4::of(&VERIFIER_ATTRS);
            made(run, &dir, name, CreateHow::Exclusive(*verifier), attrset)
        }
        Openflag4::Create(Createhow4::Exclusive41(how)) => {
            let RequestedAttributes { set, aces, mask: attrset } =
                of_new(run, &dir, &how.attrs, false)?;
            // The list is not in `suppattr_exclcreat`.
            if aces.is_some() {
                return Err(Nfsstat4::INVAL.into());
            }
            let attrset = attrset.or(&Bitmap4::of(&VERIFIER_ATTRS));
            let found = made(run, &dir, name, CreateHow::Exclusive(how.verf), attrset)?;
            let then = (set != SetAttr::default()).then_some(set);
            Ok(OpenTarget { then, ..found })
        }
    }
}

fn existing(
    run: &CompoundContext<'_>,
    dir: &Target,
    name: &[u8],
    then: Option<SetAttr>,
    attrset: Bitmap4,
) -> Result<OpenTarget, Fail> {
    let fs = &dir.share.fs;
    let (entry, _) = fs.lookup(run.cx(), &dir.handle, name)?;
    let after = fs.getattr(run.cx(), &dir.handle)?;
    let cinfo = change_info(&Wcc { before: Some(Before::from(&after)), after: Some(after) });
    let target = Target { share: Arc::clone(&dir.share), handle: entry.handle };
    Ok(OpenTarget { target, attr: entry.attr, cinfo, attrset, made: false, then })
}

/// Makes a file that must not be there, with its attributes and its access control list.
fn made_as(
    run: &mut CompoundContext<'_>,
    dir: &Target,
    name: &[u8],
    wanted: RequestedAttributes,
) -> Result<OpenTarget, Fail> {
    let RequestedAttributes { set, aces, mask } = wanted;
    let found = made(run, dir, name, CreateHow::Guarded(set), mask)?;
    if let Some(aces) = aces {
        acl::set(run, &found.target, &aces)?;
    }
    Ok(found)
}

fn made(
    run: &mut CompoundContext<'_>,
    dir: &Target,
    name: &[u8],
    how: CreateHow,
    attrset: Bitmap4,
) -> Result<OpenTarget, Fail> {
    let fs = &dir.share.fs;
    let created = fs.create(run.cx(), &dir.handle, name, how).map_err(|failed| {
        // Whatever has the name, it is there (RFC 8881 §18.16.4).
        match failed.status {
            Status::IsDirectory => Nfsstat4::EXIST.into(),
            _ => Fail::from(failed),
        }
    })?;
    let cinfo = change_info(&created.wcc);
    run.durable(created.flush);
    let target = Target { share: Arc::clone(&dir.share), handle: created.value.handle };
    Ok(OpenTarget { target, attr: created.value.attr, cinfo, attrset, made: true, then: None })
}

fn turn(owner: &[u8], seqid: u32, confirms: bool) -> InTurn<'_> {
    InTurn { locks: false, owner, seqid, may_start: false, confirms, opens: false }
}

pub(super) fn confirm(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &OpenConfirmArgs4,
) -> Handled {
    let client = keeper.of_stateid(run, &args.open_stateid)?;
    let owner = keeper.state.owner_of(&client, &args.open_stateid)?;
    keeper.in_turn(run, &client, &turn(owner.id(), args.seqid, true), |run, confirmed| {
        let (_, key) = regular(run)?;
        if confirmed {
            return Err(Nfsstat4::BAD_STATEID.into());
        }
        let stateid = keeper.state.open_confirm(&client, &args.open_stateid, key)?;
        run.ok(&StateidResOk4 { stateid })
    })
}

pub(super) fn downgrade(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &OpenDowngradeArgs4,
) -> Handled {
    let id = run.stateid(&args.open_stateid)?;
    let client = keeper.of_stateid(run, &id)?;
    let owner = keeper.state.owner_of(&client, &id)?;
    keeper.in_turn(run, &client, &turn(owner.id(), args.seqid, false), |run, _| {
        let to = share_of(run, args.share_access, args.share_deny)?;
        let (_, key) = regular(run)?;
        let stateid = keeper.state.downgrade(&client, &id, to, key)?;
        if run.minor() > 0 {
            run.progress.current_stateid = Some(stateid);
        }
        run.ok(&StateidResOk4 { stateid })
    })
}

pub(super) fn close(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &CloseArgs4,
) -> Handled {
    let id = run.stateid(&args.open_stateid)?;
    let client = keeper.of_stateid(run, &id)?;
    let owner = keeper.state.owner_of(&client, &id)?;
    keeper.in_turn(run, &client, &turn(owner.id(), args.seqid, false), |run, _| {
        let key = keeper.given_back(run, &client, &id)?;
        keeper.state.close(&client, &id, key)?;
        // Nothing can be done with it any more, and it must not seem so (RFC 8881 §18.2.4).
        let stateid = match run.minor() {
            0 => wire::nfs4::Stateid4 { seqid: id.seqid.wrapping_add(1), ..id },
            _ => wire::nfs4::Stateid4::INVALID,
        };
        if run.minor() > 0 {
            run.progress.current_stateid = Some(stateid);
        }
        run.ok(&StateidResOk4 { stateid })
    })
}
