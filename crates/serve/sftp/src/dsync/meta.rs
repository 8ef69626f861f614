//! Attributes of a file of a share, read and set.

use std::io;

use base::limits::{DSYNC_XATTRS_BYTES, DSYNC_XATTRS_MAX};
use sync::tree::{Keep, ScannedEntry};
use vfs::acl::{Acl, AclKind};
use vfs::attr::{Attr, FileType, SetAttr, SetTime, Time as Moment};
use vfs::fs::{Change, Context, FileSystem, Result, SetXattr};
use vfs::handle::Handle;
use vfs::status::Status;
use wire::dsync::{Bytes, FileId, Kind, Meta, Time, Xattr};
use wire::xdr::Seq;

/// Attributes of users: the file system knows them without this.
const USER: &[u8] = b"user.";
/// Access control lists, by the names that Linux has for them.
const LISTS: [(&[u8], AclKind); 2] = [
    (b"system.posix_acl_access", AclKind::Access),
    (b"system.posix_acl_default", AclKind::Default),
];

/// An error as programs know it.
pub(super) fn error(status: Status) -> io::Error {
    io::Error::from_raw_os_error(status.errno())
}

pub(super) fn kind_of(kind: FileType) -> Kind {
    match kind {
        FileType::Regular => Kind::FILE,
        FileType::Directory => Kind::DIRECTORY,
        FileType::Symlink => Kind::SYMLINK,
        FileType::Fifo => Kind::FIFO,
        FileType::Socket => Kind::SOCKET,
        FileType::Block => Kind::BLOCK,
        FileType::Character => Kind::CHARACTER,
    }
}

/// The type of a special file.
pub(super) fn special(kind: Kind) -> Result<FileType> {
    match kind {
        Kind::FIFO => Ok(FileType::Fifo),
        Kind::SOCKET => Ok(FileType::Socket),
        Kind::BLOCK => Ok(FileType::Block),
        Kind::CHARACTER => Ok(FileType::Character),
        _ => Err(Status::BadType),
    }
}

/// Whether the file system keeps an attribute of this name.
pub(super) fn keeps(fs: &dyn FileSystem, name: &[u8]) -> bool {
    let features = fs.features();
    let user = name.strip_prefix(USER).is_some_and(|name| !name.is_empty());
    (user && features.xattrs) || (list_of(name).is_some() && features.acls)
}

fn list_of(name: &[u8]) -> Option<AclKind> {
    LISTS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
}

/// Everything of a file but its content.
pub(super) fn seen(
    fs: &dyn FileSystem,
    cx: Context<'_>,
    (file, attr): (&Handle, &Attr),
) -> Result<ScannedEntry> {
    let kind = kind_of(attr.kind);
    let symlink = kind == Kind::SYMLINK;
    let device = matches!(kind, Kind::BLOCK | Kind::CHARACTER);
    let (major, minor) = if device { attr.rdev } else { (0, 0) };
    let target = if symlink { fs.readlink(cx, file)?.0 } else { Vec::new() };
    let xattrs = if symlink { Vec::new() } else { xattrs(fs, cx, file, attr.kind)? };
    let Moment { sec, nsec } = attr.mtime;
    let meta = Meta {
        kind,
        mode: attr.mode,
        uid: attr.uid,
        gid: attr.gid,
        size: if kind == Kind::FILE { attr.size } else { 0 },
        mtime: Time { seconds: sec, nanoseconds: nsec },
        major,
        minor,
        target: Bytes(target),
        link: Some(FileId { device: attr.fsid, inode: attr.fileid }),
        xattrs: Seq(xattrs),
    };
    Ok(ScannedEntry { meta, names: u64::from(attr.nlink), ctime_ns: i128::from(attr.change) })
}

fn xattrs(
    fs: &dyn FileSystem,
    cx: Context<'_>,
    file: &Handle,
    kind: FileType,
) -> Result<Vec<Xattr>> {
    let features = fs.features();
    let mut all: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    if features.acls {
        for (name, which) in LISTS {
            if which == AclKind::Default && kind != FileType::Directory {
                continue;
            }
            if let Some(acl) = unless_unknown(fs.get_acl(cx, file, which))?.flatten() {
                all.push((name.to_vec(), acl.to_xattr()));
            }
        }
    }
    if features.xattrs {
        for name in xattr_names(fs, cx, file)? {
            match fs.get_xattr(cx, file, &name) {
                Ok(value) => all.push(([USER, &name].concat(), value)),
                // Gone meanwhile.
                Err(Status::NotFound) => {}
                Err(status) => return Err(status),
            }
        }
    }
    let bytes: usize = all.iter().map(|(name, value)| name.len() + value.len()).sum();
    if all.len() > DSYNC_XATTRS_MAX || bytes > DSYNC_XATTRS_BYTES {
        return Err(Status::TooLarge);
    }
    all.sort_unstable();
    Ok(all
        .into_iter()
        .map(|(name, value)| Xattr { name: Bytes(name), value: Bytes(value) })
        .collect())
}

fn xattr_names(fs: &dyn FileSystem, cx: Context<'_>, file: &Handle) -> Result<Vec<Vec<u8>>> {
    let (mut names, mut cookie) = (Vec::new(), 0);
    loop {
        let from = cookie;
        let mut each = |name: &[u8], after: u64| {
            cookie = after;
            names.push(name.to_vec());
            names.len() <= DSYNC_XATTRS_MAX
        };
        let listed = fs.list_xattrs(cx, file, from, &mut each);
        let Some(whole) = unless_unknown(listed)? else { return Ok(Vec::new()) };
        if whole || names.len() > DSYNC_XATTRS_MAX {
            return Ok(names);
        }
    }
}

/// `None` where the file system knows of no such thing.
fn unless_unknown<T>(done: Result<T>) -> Result<Option<T>> {
    match done {
        Err(Status::NotSupported) => Ok(None),
        done => done.map(Some),
    }
}

/// One change of a file, out of those that make it what is wanted.
pub(super) enum Step {
    /// Owner and group.
    Own(u32, u32),
    /// Permission bits, and the time; a link has no bits.
    Times(Option<u32>, Moment),
    /// Permission bits for now.
    Mode(u32),
    /// An extended attribute, or that there is none.
    Xattr(Vec<u8>, Option<Vec<u8>>),
    /// An access control list, or that there is none.
    List(AclKind, Option<Acl>),
}

impl Step {
    /// Whether it concerns extended attributes or lists.
    pub(super) fn is_xattr(&self) -> bool {
        matches!(self, Self::Xattr(..) | Self::List(..))
    }

    pub(super) fn take(&self, fs: &dyn FileSystem, cx: Context<'_>, file: &Handle) -> Change<()> {
        let attr = |set: SetAttr| fs.setattr(cx, file, &set, None);
        match self {
            Self::Own(uid, gid) => {
                attr(SetAttr { uid: Some(*uid), gid: Some(*gid), ..SetAttr::default() })
            }
            Self::Times(mode, mtime) => {
                attr(SetAttr { mode: *mode, mtime: SetTime::At(*mtime), ..SetAttr::default() })
            }
            Self::Mode(mode) => attr(SetAttr { mode: Some(*mode), ..SetAttr::default() }),
            Self::Xattr(name, Some(value)) => fs.set_xattr(cx, file, name, value, SetXattr::Either),
            Self::Xattr(name, None) => fs.remove_xattr(cx, file, name),
            Self::List(which, acl) => fs.set_acl(cx, file, *which, acl.as_ref()),
        }
    }
}

/// What is to be done to a file that is `now`, so that it is as `wanted`: owners first, because
/// that takes set-user-id away, then lists, which change the mode, then the mode, and the time
/// last.
///
/// # Errors
/// It has become something else, or a list is none.
pub(super) fn steps(now: &Meta, wanted: &Meta, keep: Keep, root: bool) -> Result<Vec<Step>> {
    if now.kind != wanted.kind {
        return Err(Status::Stale);
    }
    let mut steps = Vec::new();
    if keep.owners && (now.uid, now.gid) != (wanted.uid, wanted.gid) {
        steps.push(Step::Own(wanted.uid, wanted.gid));
    }
    let symlink = wanted.kind == Kind::SYMLINK;
    if !symlink && keep.xattrs && now.xattrs != wanted.xattrs {
        if !root {
            // Extended attributes need write permission, even for the owner of the file.
            steps.push(Step::Mode(now.mode | 0o600));
        }
        for old in &now.xattrs.0 {
            if !wanted.xattrs.0.iter().any(|new| new.name == old.name) {
                steps.push(given(&old.name.0, None)?);
            }
        }
        for new in wanted.xattrs.0.iter().filter(|new| !now.xattrs.0.contains(new)) {
            steps.push(given(&new.name.0, Some(&new.value.0))?);
        }
    }
    let mtime = Moment { sec: wanted.mtime.seconds, nsec: wanted.mtime.nanoseconds };
    steps.push(Step::Times((!symlink).then_some(wanted.mode), mtime));
    Ok(steps)
}

fn given(name: &[u8], value: Option<&[u8]>) -> Result<Step> {
    if let Some(which) = list_of(name) {
        let acl = value.map(Acl::from_xattr).transpose().map_err(|_| Status::Invalid)?;
        return Ok(Step::List(which, acl));
    }
    let name = name.strip_prefix(USER).ok_or(Status::NotSupported)?;
    Ok(Step::Xattr(name.to_vec(), value.map(<[u8]>::to_vec)))
}
