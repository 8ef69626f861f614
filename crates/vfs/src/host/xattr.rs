//! The operations on extended attributes (RFC 8276) and access control lists.
//!
//! Only what users may set for themselves is served (`user.*`, on files and directories); the
//! kernel decides, acting as the caller. Lists are attributes too, of the system's.

use std::ffi::{CStr, CString};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::limits::{ACL_ENTRIES_MAX, NAME_MAX, XATTR_VALUE_MAX};

use crate::acl::{Acl, AclKind};
use crate::attr::{Attr, Before, FileType, Wcc};
use crate::dos;
use crate::flush::FlushSite;
use crate::fs::{Change, Changed, Context, Failed, Features, Flush, Result, SetXattr};
use crate::handle::Handle;
use crate::host::lock::lock;
use crate::host::node::Node;
use crate::host::sys::identity::XFS;
use crate::host::sys::xattr;
use crate::host::{CredGuard, HostFs};
use crate::name::Name;
use crate::status::Status;

/// What is before the names that we serve.
const PREFIX: &[u8] = b"user.";

impl HostFs {
    fn has_xattrs(node: &Node) -> bool {
        matches!(node.kind, FileType::Regular | FileType::Directory)
    }

    pub(super) fn read_xattr(
        &self,
        cx: Context<'_>,
        file: &Handle,
        name: &[u8],
    ) -> Result<Vec<u8>> {
        // Elsewhere than on the file systems we know, others may change attributes unseen. Users
        // may not read those of each file.
        let is_cached = name == dos::NAME && self.inline.attr && cx.cred.uid == 0;
        let node = if is_cached { self.node(cx, file)? } else { self.may_ask(cx, file)? };
        let ctime = if is_cached { Some(self.attr(&node)?.ctime) } else { None };
        if let Some(value) = ctime.and_then(|ctime| node.dos.get(ctime)) {
            return value;
        }
        self.may_wait(cx)?;
        let name = user_name(name)?;
        if !Self::has_xattrs(&node) {
            return Err(Status::NotFound);
        }
        let _caller = self.as_caller(cx)?;
        let now = base::clock::wall_ns();
        let value = xattr::get(node.fd(), &name, XATTR_VALUE_MAX).map_err(status);
        if let Some(ctime) = ctime {
            node.dos.note(ctime, now, &value);
        }
        value
    }

    /// By the name alone: neither a descriptor nor a node is made for the file.
    pub(super) fn read_xattr_at(
        &self,
        cx: Context<'_>,
        (dir, entry): (&Handle, &[u8]),
        name: &[u8],
    ) -> Result<Vec<u8>> {
        let mut read = Err(Status::Fault);
        self.read_xattrs_at(cx, (dir, &[entry]), name, &mut |value| {
            read = value;
            false
        })?;
        read
    }

    /// Of several entries, with one look at the directory and one change of identity for all.
    pub(super) fn read_xattrs_at(
        &self,
        cx: Context<'_>,
        (dir, entries): (&Handle, &[&[u8]]),
        name: &[u8],
        each: &mut dyn FnMut(Result<Vec<u8>>) -> bool,
    ) -> Result<()> {
        let dir = self.may_ask(cx, dir)?;
        if dir.kind != FileType::Directory {
            return Err(Status::NotDirectory);
        }
        let name = user_name(name)?;
        let _caller = self.as_caller(cx)?;
        for &entry in entries {
            // `.` and `..` are no entries that could be asked so.
            let value = match Name::made(entry) {
                Ok(entry) => {
                    let at = (dir.fd(), entry.as_cstr());
                    xattr::get_at(at, &name, XATTR_VALUE_MAX).map_err(status)
                }
                Err(_) => Err(Status::Invalid),
            };
            if !each(value) {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn write_xattr(
        &self,
        cx: Context<'_>,
        file: &Handle,
        name: &[u8],
        value: &[u8],
        how: SetXattr,
    ) -> Change<()> {
        self.change_meta(cx, file, FlushSite::Xattr, |node, _| {
            let name = user_name(name)?;
            if !Self::has_xattrs(node) {
                return Err(Status::NotOwner);
            }
            if value.len() > XATTR_VALUE_MAX {
                return Err(Status::TooLarge);
            }
            let flags = match how {
                SetXattr::Either => 0,
                SetXattr::Create => libc::XATTR_CREATE,
                SetXattr::Replace => libc::XATTR_REPLACE,
            };
            let _caller = self.as_caller(cx)?;
            xattr::set(node.fd(), &name, value, flags).map_err(status)
        })
    }

    pub(super) fn delete_xattr(&self, cx: Context<'_>, file: &Handle, name: &[u8]) -> Change<()> {
        self.change_meta(cx, file, FlushSite::Xattr, |node, _| {
            let name = user_name(name)?;
            if !Self::has_xattrs(node) {
                return Err(Status::NotFound);
            }
            let _caller = self.as_caller(cx)?;
            xattr::remove(node.fd(), &name).map_err(status)
        })
    }

    /// The cookie of a name is how many come before it and itself, in the order of the names: the
    /// kernel's may change when one is set.
    pub(super) fn xattr_names(
        &self,
        cx: Context<'_>,
        file: &Handle,
        cookie: u64,
        each: &mut dyn FnMut(&[u8], u64) -> bool,
    ) -> Result<bool> {
        let node = self.may_ask(cx, file)?;
        if !Self::has_xattrs(&node) {
            return Ok(true);
        }
        let raw = {
            let _caller = self.as_caller(cx)?;
            xattr::list(node.fd()).map_err(status)?
        };
        let names = raw.split(|b| *b == 0).filter_map(|name| name.strip_prefix(PREFIX));
        let mut names: Vec<_> = names.filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        let skip = usize::try_from(cookie).unwrap_or(usize::MAX);
        for (at, name) in names.iter().enumerate().skip(skip) {
            if !each(name, at as u64 + 1) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn read_acl(
        &self,
        cx: Context<'_>,
        file: &Handle,
        which: AclKind,
    ) -> Result<Option<Acl>> {
        let node = self.may_ask(cx, file)?;
        if node.kind == FileType::Symlink
            || (which == AclKind::Default && node.kind != FileType::Directory)
        {
            return Ok(None);
        }
        let _server = self.as_server(cx)?;
        match xattr::get(node.fd(), acl_name(which), 4 + 8 * ACL_ENTRIES_MAX).map_err(status) {
            Ok(bytes) => Acl::from_xattr(&bytes).map(Some),
            Err(Status::NotFound) => Ok(None),
            Err(other) => Err(other),
        }
    }

    pub(super) fn write_acl(
        &self,
        cx: Context<'_>,
        file: &Handle,
        which: AclKind,
        acl: Option<&Acl>,
    ) -> Change<()> {
        self.change_meta(cx, file, FlushSite::Acl, |node, _| {
            let is_dir = node.kind == FileType::Directory;
            if node.kind == FileType::Symlink {
                return Err(Status::NotSupported);
            }
            if which == AclKind::Default && !is_dir {
                return if acl.is_some() { Err(Status::Invalid) } else { Ok(()) };
            }
            let done = {
                let _caller = self.as_caller(cx)?;
                match acl {
                    Some(acl) => xattr::set(node.fd(), acl_name(which), &acl.to_xattr(), 0),
                    None => xattr::remove(node.fd(), acl_name(which)),
                }
            };
            // Decisions by the old list are discarded: the change time may not show the change.
            node.acl.store(0, Ordering::Release);
            lock(&node.files).clear();
            match done.map_err(status) {
                Err(Status::NotFound) if acl.is_none() => Ok(()),
                other => other,
            }
        })
    }

    /// The file of a question that may read the disk.
    fn may_ask(&self, cx: Context<'_>, file: &Handle) -> Result<Arc<Node>> {
        self.may_wait(cx)?;
        let node = self.node(cx, file)?;
        self.attr(&node)?;
        Ok(node)
    }

    /// Whether the disk may be read now.
    const fn may_wait(&self, cx: Context<'_>) -> Result<()> {
        if cx.may_block || self.inline.all { Ok(()) } else { Err(Status::WouldBlock) }
    }

    /// A change of a file that is not of its data.
    fn change_meta(
        &self,
        cx: Context<'_>,
        file: &Handle,
        site: FlushSite,
        change: impl FnOnce(&Arc<Node>, &Attr) -> Result<()>,
    ) -> Change<()> {
        self.may_wait(cx)?;
        let node = self.node(cx, file)?;
        let before = self.attr(&node)?;
        let outcome = change(&node, &before);
        if outcome.is_ok() {
            node.touched();
        }
        let wcc = Wcc { before: Some(Before::from(&before)), after: self.attr(&node).ok() };
        if let Err(status) = outcome {
            return Err(Failed { status, wcc });
        }
        let mut flush = Flush::NONE;
        if matches!(node.kind, FileType::Regular | FileType::Directory) {
            self.flush_file(&mut flush, site, &node, None);
        } else {
            self.flush_all(&mut flush, site);
        }
        Ok(Changed { value: (), wcc, flush })
    }
}

/// What a file system can do beyond the ordinary, found by asking.
pub fn features(root: &impl std::os::fd::AsFd, magic: u64) -> Features {
    const BTRFS: u64 = 0x9123_683e;
    let _server = CredGuard::as_server();
    let knows = |name: &CStr| match xattr::get(root.as_fd(), name, 4 + 8 * ACL_ENTRIES_MAX) {
        Ok(_) => true,
        Err(e) => e.raw_os_error() != Some(libc::EOPNOTSUPP),
    };
    Features {
        xattrs: knows(c"user.plimsoll"),
        acls: knows(acl_name(AclKind::Access)),
        // Of these nothing can be known without a file; what cannot be done is refused then.
        sparse: true,
        allocate: true,
        clone: matches!(magic, XFS | BTRFS),
    }
}

fn acl_name(which: AclKind) -> &'static CStr {
    match which {
        AclKind::Access => c"system.posix_acl_access",
        AclKind::Default => c"system.posix_acl_default",
    }
}

/// The whole name of an attribute of users.
fn user_name(name: &[u8]) -> Result<CString> {
    if name.is_empty() {
        return Err(Status::Invalid);
    }
    if name.len() + PREFIX.len() > NAME_MAX {
        return Err(Status::NameTooLong);
    }
    CString::new([PREFIX, name].concat()).map_err(|_| Status::Invalid)
}

/// Errors mean something else here than elsewhere (xattr(7)).
fn status(e: std::io::Error) -> Status {
    match e.raw_os_error() {
        Some(libc::ENODATA) => Status::NotFound,
        Some(libc::E2BIG | libc::ERANGE) => Status::TooLarge,
        _ => Status::from(e),
    }
}
