//! ACCESS, GETATTR, SETATTR, VERIFY and NVERIFY (RFC 8881 §18.1, §18.7, §18.30, §18.31, §18.15).

use vfs::fs::{Abilities, Space, access};
use wire::nfs4::{
    AccessArgs4, AccessResOk4, Bitmap4, GetattrArgs4, Nfsstat4, SetattrArgs4, VerifyArgs4, access4,
    share4,
};
use wire::xdr::{Encode, Writer};

use super::fattr::{self, About, SPACE, check_comparable, check_readable, set_attr};
use super::fh::{Place, Target};
use super::pseudo::{Pseudo, mounted_on, table_change};
use super::run::{Fail, Handled, Run};

/// All rights that version 3 knows, too.
const RIGHTS: u32 = 0x3f;
/// Abilities of the pseudo file system.
pub(super) const PSEUDO_ABILITIES: Abilities = Abilities {
    link_max: 2,
    name_max: base::limits::NAME_MAX as u32,
    file_size_max: i64::MAX as u64,
    time_delta_ns: 1,
    chown_restricted: true,
};

pub(super) fn access(run: &mut Run<'_>, args: &AccessArgs4) -> Handled {
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
        Place::Pseudo(_) => (want, want & (access::READ | access::LOOKUP)),
        Place::File(_) => {
            let target = run.target(Nfsstat4::SERVERFAULT)?;
            let (granted, _) = target.share.fs.access(run.cx(), &target.handle, want)?;
            (want, granted)
        }
    };
    run.ok(&AccessResOk4 { supported, access: granted })
}

pub(super) fn getattr(run: &mut Run<'_>, args: &GetattrArgs4) -> Handled {
    let place = run.current()?.clone();
    check_readable(&args.attr_request)?;
    if let Place::File(_) = &place {
        run.target(Nfsstat4::SERVERFAULT)?;
    }
    with_attrs(run, &place, &args.attr_request, |run, about| {
        let mut w = run.writer();
        Nfsstat4::OK.encode(&mut w);
        about.encode(&args.attr_request, &mut w);
        Ok(())
    })
}

/// Finds what there is to tell about a file, as far as `want` needs it.
fn with_attrs<T>(
    run: &mut Run<'_>,
    place: &Place,
    want: &Bitmap4,
    then: impl FnOnce(&mut Run<'_>, &About<'_>) -> Result<T, Fail>,
) -> Result<T, Fail> {
    let (handle, minor, lease_s) =
        (place.handle(), run.minor(), run.service.lease.as_secs() as u32);
    match place {
        Place::Pseudo(pseudo) => {
            let attr = pseudo_attr(run, *pseudo);
            let (abilities, space) = (&PSEUDO_ABILITIES, &Space::default());
            let (attr, handle, mounted_on) = (&attr, &handle, attr.fileid);
            then(run, &About { minor, handle, attr, abilities, space, mounted_on, lease_s })
        }
        Place::File(target) => {
            let fs = &target.share.fs;
            let attr = &fs.getattr(run.cx(), &target.handle)?;
            let space =
                &if want.and(&SPACE).is_empty() { Space::default() } else { fs.space(run.cx())? };
            let abilities = &fs.abilities();
            let mounted_on = if target.is_root() { mounted_on(&target.share) } else { attr.fileid };
            let handle = &handle;
            then(run, &About { minor, handle, attr, abilities, space, mounted_on, lease_s })
        }
    }
}

pub(super) fn pseudo_attr(run: &Run<'_>, pseudo: Pseudo) -> vfs::attr::Attr {
    pseudo.attr(table_change(&run.service.shares))
}

/// Writes the attributes `want` of a file that was found in a listing.
pub(super) fn put_attrs(
    w: &mut Writer<'_>,
    minor: u32,
    lease_s: u32,
    want: &Bitmap4,
    found: (&vfs::attr::Attr, &vfs::handle::Handle, u64),
    of: (&Abilities, &Space),
) {
    let (attr, handle, mounted_on) = found;
    let (abilities, space) = of;
    About { minor, handle, attr, abilities, space, mounted_on, lease_s }.encode(want, w);
}

pub(super) fn setattr(run: &mut Run<'_>, args: &SetattrArgs4<'_>) -> Handled {
    let (set, mask) = set_attr(&args.obj_attributes, run.minor())?;
    let target: Target = run.target(Nfsstat4::ROFS)?;
    if set.size.is_some() {
        let special = args.stateid.is_special() && run.minor() == 0;
        if special {
            run.check_io(&wire::nfs4::Stateid4::ANONYMOUS, share4::ACCESS_WRITE)?;
        } else {
            run.check_write(&args.stateid)?;
        }
    }
    run.service.state.check_change(run, &Place::File(target.clone()))?;
    let changed = target.share.fs.setattr(run.cx(), &target.handle, &set, None)?;
    run.durable(changed.flush);
    let mut w = run.writer();
    Nfsstat4::OK.encode(&mut w);
    mask.encode(&mut w);
    Ok(())
}

/// VERIFY (`same`) and NVERIFY: our own attributes, encoded, against the client's.
pub(super) fn verify(run: &mut Run<'_>, args: &VerifyArgs4<'_>, same: bool) -> Handled {
    let place = run.current()?.clone();
    let theirs = &args.obj_attributes;
    check_comparable(&theirs.attrmask, run.minor())?;
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
    let after = wcc.after.as_ref().map_or(0, fattr::change);
    let before = wcc.before.as_ref().map_or(0, |before| {
        let (sec, nsec) = (before.ctime.sec, before.ctime.nsec);
        sec.cast_unsigned().wrapping_mul(1_000_000_000).wrapping_add(u64::from(nsec))
    });
    // Others may have changed the directory in between: nobody holds it meanwhile.
    wire::nfs4::ChangeInfo4 { atomic: false, before, after }
}
