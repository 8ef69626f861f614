//! The one place where a read-only share refuses changes.

use std::sync::Arc;

use probe::op::FileId;

use crate::acl::{Acl, AclKind};
use crate::attr::{Attr, SetAttr, Time, Wcc};
use crate::fs::layer::{about_inner, looks_at_inner};
use crate::fs::{
    Abilities, Change, Context, CreateHow, DirEntry, Entry, Extent, Failed, Features, FileName,
    FileSystem, ListDone, ReadDone, Result, Seek, SendfileRange, SetXattr, Space, Special, Stable,
    Watch, access,
};
use crate::handle::Handle;
use crate::locks::FileKey;
use crate::status::Status;

/// Rights that no client has on a read-only share.
const CHANGES: u32 = access::MODIFY | access::EXTEND | access::DELETE;

/// A tree that cannot be changed through this server.
pub struct ReadOnly {
    inner: Arc<dyn FileSystem>,
}

impl ReadOnly {
    /// Wraps a tree.
    pub fn new(inner: Arc<dyn FileSystem>) -> Self {
        Self { inner }
    }

    /// Refuses, with the attributes that the reply may carry.
    fn refuse<T>(&self, cx: Context<'_>, file: &Handle) -> Change<T> {
        let after = match self.inner.getattr(cx, file) {
            // A handle that is no good is no good here either.
            Err(status @ (Status::WouldBlock | Status::Stale | Status::BadHandle)) => {
                return Err(status.into());
            }
            other => other.ok(),
        };
        Err(Failed { status: Status::ReadOnly, wcc: Wcc { before: None, after } })
    }
}

impl FileSystem for ReadOnly {
    about_inner!();
    looks_at_inner!();

    fn getattr(&self, cx: Context<'_>, file: &Handle) -> Result<Attr> {
        self.inner.getattr(cx, file)
    }
    fn setattr(&self, cx: Context<'_>, file: &Handle, _: &SetAttr, _: Option<Time>) -> Change<()> {
        self.refuse(cx, file)
    }
    fn access(&self, cx: Context<'_>, file: &Handle, want: u32) -> Result<(u32, Attr)> {
        self.inner.access(cx, file, want & !CHANGES)
    }
    fn read(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<ReadDone> {
        self.inner.read(cx, file, offset, buf)
    }
    fn extent(&self, cx: Context<'_>, file: &Handle, offset: u64, count: usize) -> Option<Extent> {
        self.inner.extent(cx, file, offset, count)
    }
    fn stretch(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        n: usize,
    ) -> Result<SendfileRange> {
        self.inner.stretch(cx, file, offset, n)
    }
    fn write(&self, cx: Context<'_>, file: &Handle, _: u64, _: &[u8], _: Stable) -> Change<usize> {
        self.refuse(cx, file)
    }
    fn commit(&self, cx: Context<'_>, file: &Handle) -> Change<()> {
        self.refuse(cx, file)
    }
    fn create(&self, cx: Context<'_>, dir: &Handle, _: &[u8], _: CreateHow) -> Change<Entry> {
        self.refuse(cx, dir)
    }
    fn mkdir(&self, cx: Context<'_>, dir: &Handle, _: &[u8], _: &SetAttr) -> Change<Entry> {
        self.refuse(cx, dir)
    }
    fn symlink(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        _: &[u8],
        _: &[u8],
        _: &SetAttr,
    ) -> Change<Entry> {
        self.refuse(cx, dir)
    }
    fn mknod(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        _: &[u8],
        _: Special,
        _: &SetAttr,
    ) -> Change<Entry> {
        self.refuse(cx, dir)
    }
    fn remove(&self, cx: Context<'_>, dir: &Handle, _: &[u8]) -> Change<()> {
        self.refuse(cx, dir)
    }
    fn rmdir(&self, cx: Context<'_>, dir: &Handle, _: &[u8]) -> Change<()> {
        self.refuse(cx, dir)
    }
    fn rename(&self, cx: Context<'_>, from: (&Handle, &[u8]), _: (&Handle, &[u8])) -> Change<Wcc> {
        self.refuse(cx, from.0)
    }
    fn link(&self, cx: Context<'_>, _: &Handle, dir: &Handle, _: &[u8]) -> Change<Option<Attr>> {
        self.refuse(cx, dir)
    }
    fn allocate(&self, cx: Context<'_>, file: &Handle, _: u64, _: u64) -> Change<()> {
        self.refuse(cx, file)
    }
    fn deallocate(&self, cx: Context<'_>, file: &Handle, _: u64, _: u64) -> Change<()> {
        self.refuse(cx, file)
    }
    fn seek(&self, cx: Context<'_>, file: &Handle, at: u64, what: Seek) -> Result<Option<u64>> {
        self.inner.seek(cx, file, at, what)
    }
    fn copy_range(
        &self,
        cx: Context<'_>,
        _: (&Handle, u64),
        to: (&Handle, u64),
        _: u64,
    ) -> Change<u64> {
        self.refuse(cx, to.0)
    }
    fn clone_range(
        &self,
        cx: Context<'_>,
        _: (&Handle, u64),
        to: (&Handle, u64),
        _: u64,
    ) -> Change<()> {
        self.refuse(cx, to.0)
    }
    fn set_xattr(
        &self,
        cx: Context<'_>,
        file: &Handle,
        _: &[u8],
        _: &[u8],
        _: SetXattr,
    ) -> Change<()> {
        self.refuse(cx, file)
    }
    fn remove_xattr(&self, cx: Context<'_>, file: &Handle, _: &[u8]) -> Change<()> {
        self.refuse(cx, file)
    }
    fn set_acl(&self, cx: Context<'_>, file: &Handle, _: AclKind, _: Option<&Acl>) -> Change<()> {
        self.refuse(cx, file)
    }
}
