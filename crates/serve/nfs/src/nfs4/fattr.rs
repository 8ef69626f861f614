//! Attributes of a file as `fattr4`: which are supported, and how each is encoded (RFC 8881 §5.8).

use vfs::acl::nfs4::Ace;
use vfs::attr::{Attr, FileType, SetAttr, SetTime, Time};
use vfs::fs::{Abilities, Features, Space};
use vfs::handle::Handle;
use wire::nfs4::aclsupport4;
use wire::nfs4::attr4 as a;
use wire::nfs4::{
    Attrs4, Bitmap4, Fattr4, FattrError, Fh4, Fsid4, Ftype4, Nfsstat4, Nfstime4, Settime4,
    Specdata4,
};
use wire::xdr::{Encode, Writer};

use super::acl;
use super::idmap::{IdMap, OwnerKind};
use super::run::{CompoundContext, Fail};
use super::target::Target;

/// Attributes that can be read.
const READABLE: Bitmap4 = Bitmap4::of(&[
    a::SUPPORTED_ATTRS,
    a::TYPE,
    a::FH_EXPIRE_TYPE,
    a::CHANGE,
    a::SIZE,
    a::LINK_SUPPORT,
    a::SYMLINK_SUPPORT,
    a::NAMED_ATTR,
    a::FSID,
    a::UNIQUE_HANDLES,
    a::LEASE_TIME,
    a::RDATTR_ERROR,
    a::FILEHANDLE,
    a::CANSETTIME,
    a::CASE_INSENSITIVE,
    a::CASE_PRESERVING,
    a::CHOWN_RESTRICTED,
    a::FILEID,
    a::FILES_AVAIL,
    a::FILES_FREE,
    a::FILES_TOTAL,
    a::HOMOGENEOUS,
    a::MAXFILESIZE,
    a::MAXLINK,
    a::MAXNAME,
    a::MAXREAD,
    a::MAXWRITE,
    a::MODE,
    a::NO_TRUNC,
    a::NUMLINKS,
    a::OWNER,
    a::OWNER_GROUP,
    a::RAWDEV,
    a::SPACE_AVAIL,
    a::SPACE_FREE,
    a::SPACE_TOTAL,
    a::SPACE_USED,
    a::TIME_ACCESS,
    a::TIME_DELTA,
    a::TIME_METADATA,
    a::TIME_MODIFY,
    a::MOUNTED_ON_FILEID,
]);
/// What 4.1 adds.
const READABLE_41: Bitmap4 = Bitmap4::of(&[a::SUPPATTR_EXCLCREAT, a::FS_CHARSET_CAP]);
/// What 4.2 adds.
const READABLE_42: Bitmap4 = Bitmap4::of(&[a::CHANGE_ATTR_TYPE, a::XATTR_SUPPORT]);
/// Attributes that can be set but not read.
const WRITE_ONLY: Bitmap4 = Bitmap4::of(&[a::TIME_ACCESS_SET, a::TIME_MODIFY_SET]);
/// Attributes that can be set on a new file but not read.
const NOT_TOLD: Bitmap4 = WRITE_ONLY.with(a::MODE_UMASK);
/// All that can be set.
const WRITABLE: Bitmap4 =
    WRITE_ONLY.or(&Bitmap4::of(&[a::SIZE, a::MODE, a::OWNER, a::OWNER_GROUP, a::ACL]));
/// Those that need the state of the whole file system.
pub(super) const SPACE: Bitmap4 = Bitmap4::of(&[
    a::FILES_AVAIL,
    a::FILES_FREE,
    a::FILES_TOTAL,
    a::SPACE_AVAIL,
    a::SPACE_FREE,
    a::SPACE_TOTAL,
]);
/// Names and other bytes that are not UTF-8 may be met (`FSCHARSET_CAP4_CONTAINS_NON_UTF8`).
const CONTAINS_NON_UTF8: u32 = 1;
/// `NFS4_CHANGE_TYPE_IS_MONOTONIC_INCR`: never lower, but not by one each time.
const CHANGE_IS_MONOTONIC: u32 = 0;

/// Where there are access control lists.
const WITH_ACLS: Bitmap4 = Bitmap4::of(&[a::ACL, a::ACLSUPPORT]);

/// What a file system with these features supports in a minor version.
pub(super) fn supported(minor: u32, features: &Features) -> Bitmap4 {
    let mut set = READABLE.or(&WRITE_ONLY);
    if features.acls {
        set = set.or(&WITH_ACLS);
    }
    match minor {
        0 => set,
        1 => set.or(&READABLE_41),
        _ => set.or(&READABLE_41).or(&READABLE_42).with(a::MODE_UMASK),
    }
}

/// What an exclusive create may set (`suppattr_exclcreat`): the verifier is kept in the times.
pub(super) const EXCLUSIVE_CREATE: Bitmap4 =
    Bitmap4::of(&[a::SIZE, a::MODE, a::OWNER, a::OWNER_GROUP]);

/// The sources of all attributes of one file.
pub(super) struct About<'a> {
    pub(super) minor: u32,
    pub(super) handle: &'a Handle,
    pub(super) attr: &'a Attr,
    pub(super) abilities: &'a Abilities,
    pub(super) space: &'a Space,
    pub(super) features: Features,
    /// Its access control list, if that is wanted.
    pub(super) aces: &'a [Ace],
    /// Its inode number in the directory where it is mounted; its own for all but roots.
    pub(super) mounted_on: u64,
    pub(super) lease_s: u32,
    /// Names of owners.
    pub(super) idmap: &'a IdMap,
}

fn time(time: Time) -> Nfstime4 {
    Nfstime4 { seconds: time.sec, nseconds: time.nsec }
}

fn ftype(kind: FileType) -> Ftype4 {
    match kind {
        FileType::Regular => Ftype4::REG,
        FileType::Directory => Ftype4::DIR,
        FileType::Symlink => Ftype4::LNK,
        FileType::Block => Ftype4::BLK,
        FileType::Character => Ftype4::CHR,
        FileType::Fifo => Ftype4::FIFO,
        FileType::Socket => Ftype4::SOCK,
    }
}

impl About<'_> {
    /// Writes those of `want` that are supported, as `fattr4`.
    pub(super) fn encode(&self, want: &Bitmap4, w: &mut Writer<'_>) {
        let mask = want.and(&supported(self.minor, &self.features)).without(&NOT_TOLD);
        mask.encode(w);
        let length = w.len();
        w.u32(0);
        mask.iter().for_each(|number| self.value(number, w));
        let written = w.len() - length - 4;
        w.patch_u32(length, written as u32);
    }

    fn value(&self, number: u32, w: &mut Writer<'_>) {
        let attr = self.attr;
        match number {
            a::SUPPORTED_ATTRS => supported(self.minor, &self.features).encode(w),
            a::TYPE => ftype(attr.kind).encode(w),
            // Handles are persistent; no error belongs to this file.
            a::FH_EXPIRE_TYPE | a::RDATTR_ERROR => w.u32(0),
            a::CHANGE => w.u64(attr.change),
            a::SIZE => w.u64(attr.size),
            a::FSID => Fsid4 { major: attr.fsid, minor: 0 }.encode(w),
            a::LINK_SUPPORT | a::SYMLINK_SUPPORT | a::UNIQUE_HANDLES | a::CANSETTIME => {
                w.bool(true);
            }
            a::CASE_PRESERVING | a::HOMOGENEOUS | a::NO_TRUNC => w.bool(true),
            a::NAMED_ATTR | a::CASE_INSENSITIVE => w.bool(false),
            a::CHOWN_RESTRICTED => w.bool(self.abilities.chown_restricted),
            a::LEASE_TIME => w.u32(self.lease_s),
            a::FILEHANDLE => Fh4(self.handle.as_bytes()).encode(w),
            a::FILEID => w.u64(attr.fileid),
            a::MODE => w.u32(attr.mode),
            // A removed file that is open has none, which Linux (6.1) takes for a stale handle:
            // fstat(2) of a program that has it open would fail.
            a::NUMLINKS => w.u32(attr.nlink.max(1)),
            a::OWNER => self.idmap.put(w, OwnerKind::User, attr.uid),
            a::OWNER_GROUP => self.idmap.put(w, OwnerKind::Group, attr.gid),
            a::RAWDEV => {
                Specdata4 { specdata1: attr.rdev.0, specdata2: attr.rdev.1 }.encode(w);
            }
            a::SPACE_USED => w.u64(attr.used),
            a::TIME_ACCESS => time(attr.atime).encode(w),
            a::TIME_METADATA => time(attr.ctime).encode(w),
            a::TIME_MODIFY => time(attr.mtime).encode(w),
            a::MOUNTED_ON_FILEID => w.u64(self.mounted_on),
            _ => self.of_file_system(number, w),
        }
    }

    /// Those that are the same for all files.
    fn of_file_system(&self, number: u32, w: &mut Writer<'_>) {
        let (space, abilities) = (self.space, self.abilities);
        match number {
            a::FILES_AVAIL => w.u64(space.avail_files),
            a::FILES_FREE => w.u64(space.free_files),
            a::FILES_TOTAL => w.u64(space.total_files),
            a::SPACE_AVAIL => w.u64(space.avail_bytes),
            a::SPACE_FREE => w.u64(space.free_bytes),
            a::SPACE_TOTAL => w.u64(space.total_bytes),
            a::MAXFILESIZE => w.u64(abilities.file_size_max),
            a::MAXLINK => w.u32(abilities.link_max),
            a::MAXNAME => w.u32(abilities.name_max),
            a::MAXREAD | a::MAXWRITE => w.u64(u64::from(base::limits::IO_SIZE_MAX)),
            a::TIME_DELTA => {
                let (seconds, nseconds) = (
                    abilities.time_delta_ns / 1_000_000_000,
                    abilities.time_delta_ns % 1_000_000_000,
                );
                Nfstime4 { seconds: i64::from(seconds), nseconds }.encode(w);
            }
            a::SUPPATTR_EXCLCREAT => EXCLUSIVE_CREATE.encode(w),
            a::FS_CHARSET_CAP => w.u32(CONTAINS_NON_UTF8),
            a::ACL => acl::put(w, self.aces, self.idmap),
            a::ACLSUPPORT => w.u32(aclsupport4::ALLOW | aclsupport4::DENY),
            a::XATTR_SUPPORT => w.bool(self.features.xattrs),
            a::CHANGE_ATTR_TYPE => w.u32(CHANGE_IS_MONOTONIC),
            _ => debug_assert!(false, "attribute {number} is supported but not returned"),
        }
    }
}

/// Whether these attributes can be read at all.
///
/// # Errors
/// NFS4ERR_INVAL for those that can only be set.
pub(super) fn check_readable(want: &Bitmap4) -> Result<(), Nfsstat4> {
    if want.and(&NOT_TOLD).is_empty() { Ok(()) } else { Err(Nfsstat4::INVAL) }
}

/// What a client compares with (VERIFY, NVERIFY): only what can be compared.
///
/// # Errors
/// NFS4ERR_ATTRNOTSUPP, or NFS4ERR_INVAL for `rdattr_error` and those that can only be set.
pub(super) fn check_comparable(
    mask: &Bitmap4,
    minor: u32,
    features: &Features,
) -> Result<(), Nfsstat4> {
    check_readable(mask)?;
    if mask.has(a::RDATTR_ERROR) {
        return Err(Nfsstat4::INVAL);
    }
    if !mask.without(&supported(minor, features)).is_empty() {
        return Err(Nfsstat4::ATTRNOTSUPP);
    }
    Ok(())
}

fn set_time(how: Option<Settime4>) -> Result<SetTime, Nfsstat4> {
    match how {
        None => Ok(SetTime::Keep),
        Some(Settime4::Server(())) => Ok(SetTime::Now),
        Some(Settime4::Client(at)) if at.nseconds < 1_000_000_000 => {
            Ok(SetTime::At(Time { sec: at.seconds, nsec: at.nseconds }))
        }
        Some(Settime4::Client(_)) => Err(Nfsstat4::INVAL),
    }
}

/// What a client wants to set.
pub(super) struct RequestedAttributes {
    pub(super) set: SetAttr,
    pub(super) aces: Option<Vec<Ace>>,
    pub(super) mask: Bitmap4,
}

/// What a client wants to set in a new file of a directory: for OPEN and CREATE.
///
/// # Errors
/// NFS4ERR_ATTRNOTSUPP, NFS4ERR_INVAL (not to be set, or no such value), NFS4ERR_BADOWNER,
/// NFS4ERR_BADXDR.
pub(super) fn of_new(
    run: &CompoundContext<'_>,
    dir: &Target,
    fattr: &Fattr4<'_>,
    is_dir: bool,
) -> Result<RequestedAttributes, Fail> {
    let features = dir.share.fs.features();
    let wanted = wanted(fattr, run.minor(), &features, true, &run.service.idmap)?;
    // What would be refused after the file was made is refused before.
    if let Some(aces) = &wanted.aces {
        acl::lists(aces, is_dir)?;
    }
    Ok(wanted)
}

/// What a client wants to set; `new` where only a new file can be given it.
pub(super) fn wanted(
    fattr: &Fattr4<'_>,
    minor: u32,
    features: &Features,
    new: bool,
    idmap: &IdMap,
) -> Result<RequestedAttributes, Nfsstat4> {
    let mask = fattr.attrmask;
    if !mask.without(&supported(minor, features)).is_empty() {
        return Err(Nfsstat4::ATTRNOTSUPP);
    }
    let writable = if new { WRITABLE.with(a::MODE_UMASK) } else { WRITABLE };
    // The mode comes once, with or without a mask (RFC 8275 §3).
    let both = mask.has(a::MODE) && mask.has(a::MODE_UMASK);
    if both || !mask.without(&writable).is_empty() {
        return Err(Nfsstat4::INVAL);
    }
    let values: Attrs4<'_> = fattr.values().map_err(|error| match error {
        FattrError::Unknown(_) => Nfsstat4::ATTRNOTSUPP,
        FattrError::Value(_) => Nfsstat4::BADXDR,
    })?;
    let mode = values.mode.or(values.mode_umask.map(|masked| masked.mode));
    let umask = values.mode_umask.map(|masked| masked.umask);
    if mode.is_some_and(|mode| mode > 0o7777) || umask.is_some_and(|umask| umask > 0o777) {
        return Err(Nfsstat4::INVAL);
    }
    let set = SetAttr {
        mode,
        uid: values.owner.map(|text| idmap.take(OwnerKind::User, text.0)).transpose()?,
        gid: values.owner_group.map(|text| idmap.take(OwnerKind::Group, text.0)).transpose()?,
        size: values.size,
        atime: set_time(values.time_access_set)?,
        mtime: set_time(values.time_modify_set)?,
        umask,
    };
    let aces = values.acl.as_ref().map(|acl| acl::take(acl, idmap)).transpose()?;
    Ok(RequestedAttributes { set, aces, mask })
}
