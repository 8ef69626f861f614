//! ACCESS, GETATTR, SETATTR, VERIFY and NVERIFY (RFC 8881 §18.1, §18.7, §18.30, §18.31, §18.15).

use vfs::attr::{FileType, SetAttr};
use vfs::fs::{Abilities, Features, Space, access};
use wire::nfs4::{
    AccessArgs4, AccessResOk4, Bitmap4, GetattrArgs4, Nfsstat4, SetattrArgs4, VerifyArgs4, access4,
    attr4,
};
use wire::xdr::{Encode, Writer};

use super::acl;
use super::fattr::{About, RequestedAttributes, SPACE, check_comparable, check_readable, wanted};
use super::idmap::IdMap;
use super::pseudo::{Pseudo, mounted_on, table_change};
use super::run::{CompoundContext, Fail, Handled};
use super::target::{FileHandleTarget, Target};

/// All rights that version 3 knows, too.
const RIGHTS: u32 = 0x3f;
/// Rights that read-only access does not include.
const CHANGING: u32 = access::MODIFY | access::EXTEND | access::DELETE;
/// Abilities of the pseudo file system.
pub(super) const PSEUDO_ABILITIES: Abilities = Abilities {
    link_max: 2,
    name_max: base::limits::NAME_MAX as u32,
    file_size_max: i64::MAX as u64,
    time_delta_ns: 1,
    chown_restricted: true,
};

pub(super) fn access(run: &mut CompoundContext<'_>, args: &AccessArgs4) -> Handled {
    let known = if run.minor() < 2 {
        RIGHTS
    } else {
        RIGHTS | access4::XAREAD | access4::XAWRITE | access4::XALIST
    };
    if args.access & !known != 0 {
        return Err(Nfsstat4::INVAL.into());
    }
    let want = args.access & RIGHTS;
    let (supported, granted) = match run.current()? {
        FileHandleTarget::Pseudo(_) => {
            let meant = want & !meaningless(FileType::Directory);
            (meant, meant & (access::READ | access::LOOKUP))
        }
        FileHandleTarget::File(_) => {
            let target = run.target(Nfsstat4::SERVERFAULT)?;
            let xattrs = target.share.fs.features().xattrs;
            let want = if xattrs { want | for_xattrs(args.access) } else { want };
            let want = if run.may_change() { want } else { want & !CHANGING };
            let (granted, attr) = target.share.fs.access(run.cx(), &target.handle, want)?;
            let extra = if xattrs { xattr_rights(granted) & args.access } else { 0 };
            let supported = if xattrs { args.access } else { args.access & RIGHTS };
            let meant = !meaningless(attr.kind);
            (supported & meant, (granted & args.access | extra) & meant)
        }
    };
    run.ok(&AccessResOk4 { supported, access: granted })
}

/// Rights that do not apply to a kind of file, and so are neither granted nor denied (RFC 7530
/// §16.1.4).
fn meaningless(kind: FileType) -> u32 {
    match kind {
        FileType::Directory => access::EXECUTE,
        _ => access::LOOKUP | access::DELETE,
    }
}

/// The rights to the file that decide the requested rights to extended attributes.
fn for_xattrs(asked: u32) -> u32 {
    let read = asked & (access4::XAREAD | access4::XALIST) != 0;
    let write = asked & access4::XAWRITE != 0;
    let when = |bit: bool, right: u32| if bit { right } else { 0 };
    when(read, access::READ) | when(write, access::MODIFY)
}

/// Rights to extended attributes that come with those to the data.
fn xattr_rights(granted: u32) -> u32 {
    let read = granted & access::READ != 0;
    let write = granted & access::MODIFY != 0;
    let when = |bit: bool, rights: u32| if bit { rights } else { 0 };
    when(read, access4::XAREAD | access4::XALIST) | when(write, access4::XAWRITE)
}

pub(super) fn getattr(run: &mut CompoundContext<'_>, args: &GetattrArgs4) -> Handled {
    let place = run.current()?.clone();
    check_readable(&args.attr_request)?;
    if let FileHandleTarget::File(_) = &place {
        run.target(Nfsstat4::SERVERFAULT)?;
    }
    with_attrs(run, &place, &args.attr_request, |run, about| {
        let mut w = run.writer();
        Nfsstat4::OK.encode(&mut w);
        about.encode(&args.attr_request, &mut w);
        Ok(())
    })
}

/// Reads the attributes of a file, as far as `want` needs them.
fn with_attrs<T>(
    run: &mut CompoundContext<'_>,
    place: &FileHandleTarget,
    want: &Bitmap4,
    then: impl FnOnce(&mut CompoundContext<'_>, &About<'_>) -> Result<T, Fail>,
) -> Result<T, Fail> {
    let (handle, minor, lease_s) =
        (place.handle(), run.minor(), run.service.lease.as_secs() as u32);
    let idmap = &*run.service.idmap;
    match place {
        FileHandleTarget::Pseudo(pseudo) => {
            let attr = &pseudo_attr(run, *pseudo);
            let about = About {
                minor,
                handle: &handle,
                attr,
                abilities: &PSEUDO_ABILITIES,
                space: &Space::default(),
                features: Features::default(),
                aces: &[],
                mounted_on: attr.fileid,
                lease_s,
                idmap,
            };
            then(run, &about)
        }
        FileHandleTarget::File(target) => {
            let fs = &target.share.fs;
            let attr = &fs.getattr(run.cx(), &target.handle)?;
            let features = fs.features();
            let about = About {
                minor,
                handle: &handle,
                attr,
                abilities: &fs.abilities(),
                space: &space_for(run, target, want)?,
                features,
                aces: &if features.acls && want.has(attr4::ACL) {
                    acl::of(run, target, attr)?
                } else {
                    Vec::new()
                },
                mounted_on: match target.is_root() {
                    true => mounted_on(&target.share),
                    false => fs.mounted_on(&target.handle).unwrap_or(attr.fileid),
                },
                lease_s,
                idmap,
            };
            then(run, &about)
        }
    }
}

/// The state of the file system, if something of it is wanted.
pub(super) fn space_for(
    run: &CompoundContext<'_>,
    target: &Target,
    want: &Bitmap4,
) -> Result<Space, Fail> {
    let none = want.and(&SPACE).is_empty();
    Ok(if none { Space::default() } else { target.share.fs.space(run.cx())? })
}

pub(super) fn pseudo_attr(run: &CompoundContext<'_>, pseudo: Pseudo) -> vfs::attr::Attr {
    pseudo.attr(table_change(&run.service.shares.load()))
}

/// Writes the attributes `want` of a file that was found in a listing.
pub(super) fn put_attrs(
    w: &mut Writer<'_>,
    minor: u32,
    lease_s: u32,
    want: &Bitmap4,
    found: (&vfs::attr::Attr, &vfs::handle::Handle, u64),
    of: (&Abilities, &Space, Features),
    idmap: &IdMap,
) {
    let (attr, handle, mounted_on) = found;
    let (abilities, space, features) = of;
    // A listing does not read each file's list.
    let want = want.without(&Bitmap4::of(&[attr4::ACL]));
    let aces = &[];
    let about =
        About { minor, handle, attr, abilities, space, features, aces, mounted_on, lease_s, idmap };
    about.encode(&want, w);
}

pub(super) fn setattr(run: &mut CompoundContext<'_>, args: &SetattrArgs4<'_>) -> Handled {
    let features = match run.current()? {
        FileHandleTarget::Pseudo(_) => Features::default(),
        FileHandleTarget::File(target) => target.share.fs.features(),
    };
    let RequestedAttributes { set, aces, mask } =
        wanted(&args.obj_attributes, run.minor(), &features, false, &run.service.idmap)?;
    let target: Target = run.target(Nfsstat4::ROFS)?;
    if set.size.is_some() {
        run.check_write(&args.stateid)?;
    }
    if set != SetAttr::default() {
        let changed = target.share.fs.setattr(run.cx(), &target.handle, &set, None)?;
        run.durable(changed.flush);
    }
    if let Some(aces) = aces {
        acl::set(run, &target, &aces)?;
    }
    let mut w = run.writer();
    Nfsstat4::OK.encode(&mut w);
    mask.encode(&mut w);
    Ok(())
}

/// VERIFY (`same`) and NVERIFY: our own attributes, encoded, against the client's.
pub(super) fn verify(run: &mut CompoundContext<'_>, args: &VerifyArgs4<'_>, same: bool) -> Handled {
    let place = run.current()?.clone();
    let theirs = &args.obj_attributes;
    let features = match &place {
        FileHandleTarget::Pseudo(_) => Features::default(),
        FileHandleTarget::File(target) => target.share.fs.features(),
    };
    check_comparable(&theirs.attrmask, run.minor(), &features)?;
    let equal = with_attrs(run, &place, &theirs.attrmask, |_, about| {
        let (mut ours, mut expected) = (Vec::new(), Vec::new());
        about.encode(&theirs.attrmask, &mut Writer::new(&mut ours));
        theirs.encode(&mut Writer::new(&mut expected));
        Ok(ours == expected)
    })?;
    match (equal, same) {
        (true, false) => Err(Nfsstat4::SAME.into()),
        (false, true) => Err(Nfsstat4::NOT_SAME.into()),
        _ => run.ok(&()),
    }
}

/// The change attribute before and after, as far as it is known.
pub(super) fn change_info(wcc: &vfs::attr::Wcc) -> wire::nfs4::ChangeInfo4 {
    let after = wcc.after.as_ref().map_or(0, |after| after.change);
    let before = wcc.before.as_ref().map_or(0, |before| before.change);
    // Others may have changed the directory in between: it is not locked meanwhile.
    wire::nfs4::ChangeInfo4 { atomic: false, before, after }
}
