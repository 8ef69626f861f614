//! Access control lists between the file contract and the wire: there the subject of an entry is a
//! name (RFC 8881 §6.2.1.5).

use vfs::acl::nfs4::{Ace, IDENTIFIER_GROUP, Who, from_aces, to_aces};
use vfs::acl::{Acl, AclKind};
use vfs::attr::{Attr, FileType};
use wire::nfs4::{Acl4, Nfsstat4, acetype4};
use wire::xdr::Writer;

use super::idmap::{IdMap, OwnerKind};
use super::run::{CompoundContext, Fail, Handled};
use super::target::Target;

/// A file's list as entries, made of its mode if it has none.
pub(super) fn of(
    run: &CompoundContext<'_>,
    target: &Target,
    attr: &Attr,
) -> Result<Vec<Ace>, Fail> {
    let (fs, at, is_dir) = (&target.share.fs, &target.handle, attr.kind == FileType::Directory);
    let own = fs.get_acl(run.cx(), at, AclKind::Access)?;
    let own = own.unwrap_or_else(|| Acl::from_mode(attr.mode));
    let default = if is_dir { fs.get_acl(run.cx(), at, AclKind::Default)? } else { None };
    Ok(to_aces(&own, default.as_ref(), is_dir))
}

/// Writes entries.
pub(super) fn put(w: &mut Writer<'_>, aces: &[Ace], idmap: &IdMap) {
    w.u32(aces.len() as u32);
    for ace in aces {
        w.u32(if ace.allow { acetype4::ALLOWED } else { acetype4::DENIED });
        // Without it a client takes a group's number for a user's.
        let group = if matches!(ace.who, Who::GroupId(_)) { IDENTIFIER_GROUP } else { 0 };
        w.u32(ace.flags | group);
        w.u32(ace.mask);
        match ace.who {
            Who::Owner => w.opaque(b"OWNER@"),
            Who::Group => w.opaque(b"GROUP@"),
            Who::Everyone => w.opaque(b"EVERYONE@"),
            Who::User(id) => idmap.put(w, OwnerKind::User, id),
            Who::GroupId(id) => idmap.put(w, OwnerKind::Group, id),
        }
    }
}

/// Entries from the wire.
///
/// # Errors
/// NFS4ERR_ATTRNOTSUPP for AUDIT and ALARM, NFS4ERR_BADOWNER for unknown names.
pub(super) fn take(acl: &Acl4<'_>, idmap: &IdMap) -> Result<Vec<Ace>, Nfsstat4> {
    let one = |ace: &wire::nfs4::Nfsace4<'_>| {
        let allow = match ace.kind {
            acetype4::ALLOWED => true,
            acetype4::DENIED => false,
            _ => return Err(Nfsstat4::ATTRNOTSUPP),
        };
        let who = match ace.who.0 {
            b"OWNER@" => Who::Owner,
            b"GROUP@" => Who::Group,
            b"EVERYONE@" => Who::Everyone,
            name if ace.flag & IDENTIFIER_GROUP == 0 => {
                Who::User(idmap.take(OwnerKind::User, name)?)
            }
            name => Who::GroupId(idmap.take(OwnerKind::Group, name)?),
        };
        Ok(Ace { allow, flags: ace.flag, mask: ace.access_mask, who })
    };
    acl.0.iter().map(one).collect()
}

/// The lists that a file system keeps for these entries: the file's own, and a directory's default.
///
/// # Errors
/// NFS4ERR_ATTRNOTSUPP for entries that it cannot store.
pub(super) fn lists(aces: &[Ace], is_dir: bool) -> Result<(Acl, Option<Acl>), Fail> {
    from_aces(aces, is_dir).map_err(|status| match status {
        vfs::status::Status::NotSupported => Nfsstat4::ATTRNOTSUPP.into(),
        other => Fail::from(other),
    })
}

/// Sets a file's list, and a directory's default one.
pub(super) fn set(run: &mut CompoundContext<'_>, target: &Target, aces: &[Ace]) -> Handled {
    let (fs, at) = (&target.share.fs, &target.handle);
    let is_dir = fs.getattr(run.cx(), at)?.kind == FileType::Directory;
    let (own, default) = lists(aces, is_dir)?;
    let done = fs.set_acl(run.cx(), at, AclKind::Access, Some(&own))?;
    run.durable(done.flush);
    if is_dir {
        let done = fs.set_acl(run.cx(), at, AclKind::Default, default.as_ref())?;
        run.durable(done.flush);
    }
    Ok(())
}
