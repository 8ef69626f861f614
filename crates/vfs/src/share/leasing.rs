//! The one place where what is done to files recalls delegations and meets opens that keep names,
//! whichever protocol does it.
//!
//! A change that a delegation is in the way of is refused with [`Status::Busy`] (NFS3ERR_JUKEBOX,
//! NFS4ERR_DELAY) after its holder was told; the caller comes again. While no delegation is out the
//! cost is one atomic addition, and nothing is asked of the file system. For whom a thread acts it
//! says with [`ByClient`](crate::locks::ByClient); a client's own delegations are not in its way.
//!
//! A name that somebody else's open keeps ([`crate::locks::names`]) is neither removed nor given to
//! another file: [`Status::InUse`]. While there is no such open that costs one atomic load.

use std::sync::Arc;

use probe::op::FileId;

use crate::acl::{Acl, AclKind};
use crate::attr::{Attr, SetAttr, Time, Wcc};
use crate::fs::layer::{about_inner, looks_at_inner};
use crate::fs::{
    Abilities, Change, Context, CreateHow, DirEntry, Entry, Extent, Failed, Features, FileName,
    FileSystem, ListDone, ReadDone, Result, Seek, SendfileRange, SetXattr, Space, Special, Stable,
    Watch,
};
use crate::handle::Handle;
use crate::locks::{ByClient, Changing, FileKey, LockTable};
use crate::status::Status;

/// A tree whose changes recall delegations.
pub struct Leasing {
    inner: Arc<dyn FileSystem>,
    locks: Arc<LockTable>,
}

impl Leasing {
    /// Wraps a tree.
    pub fn new(inner: Arc<dyn FileSystem>, locks: Arc<LockTable>) -> Self {
        Self { inner, locks }
    }

    /// Before a change of a file: the announcement, to be held until the change was made.
    #[inline]
    fn changing(&self, cx: Context<'_>, file: &Handle) -> Result<Changing<'_>> {
        let changing = self.locks.changing(self.inner.file_id(file));
        if self.locks.has_leases() {
            self.may_change(&self.inner.getattr(cx, file)?)?;
        }
        Ok(changing)
    }

    #[cold]
    fn may_change(&self, attr: &Attr) -> Result<()> {
        let free = self.locks.may_change(FileKey::from(attr), ByClient::now());
        if free { Ok(()) } else { Err(Status::Busy) }
    }

    /// Before a look at a file: others may keep back what they have written.
    #[inline]
    fn looking(&self, cx: Context<'_>, file: &Handle) -> Result<()> {
        if !self.locks.has_write_leases() {
            return Ok(());
        }
        let attr = self.inner.getattr(cx, file)?;
        let free = self.locks.may_read(FileKey::from(&attr), ByClient::now());
        if free { Ok(()) } else { Err(Status::Busy) }
    }

    /// What a name leads to now. If that cannot be told, the operation itself says what is wrong.
    fn named(&self, cx: Context<'_>, (dir, name): (&Handle, &[u8])) -> Result<Option<Attr>> {
        match self.inner.lookup(cx, dir, name) {
            Ok((entry, _)) => Ok(Some(entry.attr)),
            Err(Failed { status: Status::WouldBlock, .. }) => Err(Status::WouldBlock),
            Err(_) => Ok(None),
        }
    }

    /// Before a change of what a name leads to now.
    fn changing_named(&self, cx: Context<'_>, name: (&Handle, &[u8])) -> Result<Changing<'_>> {
        let changing = self.locks.names_changing();
        if self.locks.has_leases()
            && let Some(attr) = self.named(cx, name)?
        {
            self.may_change(&attr)?;
        }
        Ok(changing)
    }

    /// Before names go, or lead to something else: of what they lead to now.
    fn renaming(&self, cx: Context<'_>, names: &[(&Handle, &[u8])]) -> Result<Changing<'_>> {
        let changing = self.locks.names_changing();
        if self.locks.has_leases() || self.locks.has_name_keepers() {
            for name in names {
                let Some(attr) = self.named(cx, *name)? else { continue };
                if !self.locks.may_rename(FileKey::from(&attr)) {
                    return Err(Status::InUse);
                }
                self.may_change(&attr)?;
            }
        }
        Ok(changing)
    }
}

impl FileSystem for Leasing {
    about_inner!();
    looks_at_inner!();

    fn getattr(&self, cx: Context<'_>, file: &Handle) -> Result<Attr> {
        self.looking(cx, file)?;
        self.inner.getattr(cx, file)
    }
    fn setattr(
        &self,
        cx: Context<'_>,
        file: &Handle,
        set: &SetAttr,
        guard: Option<Time>,
    ) -> Change<()> {
        let _changing = self.changing(cx, file)?;
        self.inner.setattr(cx, file, set, guard)
    }
    fn access(&self, cx: Context<'_>, file: &Handle, want: u32) -> Result<(u32, Attr)> {
        self.inner.access(cx, file, want)
    }
    fn read(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<ReadDone> {
        self.looking(cx, file)?;
        self.inner.read(cx, file, offset, buf)
    }
    fn extent(&self, cx: Context<'_>, file: &Handle, offset: u64, count: usize) -> Option<Extent> {
        self.looking(cx, file).ok()?;
        self.inner.extent(cx, file, offset, count)
    }
    fn stretch(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        n: usize,
    ) -> Result<SendfileRange> {
        self.looking(cx, file)?;
        self.inner.stretch(cx, file, offset, n)
    }
    fn write(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        data: &[u8],
        stable: Stable,
    ) -> Change<usize> {
        let _changing = self.changing(cx, file)?;
        self.inner.write(cx, file, offset, data, stable)
    }
    fn commit(&self, cx: Context<'_>, file: &Handle) -> Change<()> {
        self.inner.commit(cx, file)
    }
    fn create(&self, cx: Context<'_>, dir: &Handle, name: &[u8], how: CreateHow) -> Change<Entry> {
        // Only one that takes a file as it is may cut it short.
        let cuts = matches!(how, CreateHow::Unchecked(SetAttr { size: Some(_), .. }));
        let _changing = if cuts { Some(self.changing_named(cx, (dir, name))?) } else { None };
        self.inner.create(cx, dir, name, how)
    }
    fn mkdir(&self, cx: Context<'_>, dir: &Handle, name: &[u8], set: &SetAttr) -> Change<Entry> {
        self.inner.mkdir(cx, dir, name, set)
    }
    fn symlink(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
        target: &[u8],
        set: &SetAttr,
    ) -> Change<Entry> {
        self.inner.symlink(cx, dir, name, target, set)
    }
    fn mknod(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
        special: Special,
        set: &SetAttr,
    ) -> Change<Entry> {
        self.inner.mknod(cx, dir, name, special, set)
    }
    fn remove(&self, cx: Context<'_>, dir: &Handle, name: &[u8]) -> Change<()> {
        let _changing = self.renaming(cx, &[(dir, name)])?;
        self.inner.remove(cx, dir, name)
    }
    fn rmdir(&self, cx: Context<'_>, dir: &Handle, name: &[u8]) -> Change<()> {
        // Nobody has a delegation on a directory.
        if self.locks.has_name_keepers()
            && let Some(attr) = self.named(cx, (dir, name))?
            && !self.locks.may_rename(FileKey::from(&attr))
        {
            return Err(Status::InUse.into());
        }
        self.inner.rmdir(cx, dir, name)
    }
    fn rename(&self, cx: Context<'_>, from: (&Handle, &[u8]), to: (&Handle, &[u8])) -> Change<Wcc> {
        let _changing = self.renaming(cx, &[from, to])?;
        self.inner.rename(cx, from, to)
    }
    fn link(
        &self,
        cx: Context<'_>,
        file: &Handle,
        dir: &Handle,
        name: &[u8],
    ) -> Change<Option<Attr>> {
        let _changing = self.changing(cx, file)?;
        self.inner.link(cx, file, dir, name)
    }
    fn allocate(&self, cx: Context<'_>, file: &Handle, offset: u64, len: u64) -> Change<()> {
        let _changing = self.changing(cx, file)?;
        self.inner.allocate(cx, file, offset, len)
    }
    fn deallocate(&self, cx: Context<'_>, file: &Handle, offset: u64, len: u64) -> Change<()> {
        let _changing = self.changing(cx, file)?;
        self.inner.deallocate(cx, file, offset, len)
    }
    fn seek(&self, cx: Context<'_>, file: &Handle, at: u64, what: Seek) -> Result<Option<u64>> {
        self.looking(cx, file)?;
        self.inner.seek(cx, file, at, what)
    }
    fn copy_range(
        &self,
        cx: Context<'_>,
        from: (&Handle, u64),
        to: (&Handle, u64),
        len: u64,
    ) -> Change<u64> {
        self.looking(cx, from.0)?;
        let _changing = self.changing(cx, to.0)?;
        self.inner.copy_range(cx, from, to, len)
    }
    fn clone_range(
        &self,
        cx: Context<'_>,
        from: (&Handle, u64),
        to: (&Handle, u64),
        len: u64,
    ) -> Change<()> {
        self.looking(cx, from.0)?;
        let _changing = self.changing(cx, to.0)?;
        self.inner.clone_range(cx, from, to, len)
    }
    fn set_xattr(
        &self,
        cx: Context<'_>,
        file: &Handle,
        name: &[u8],
        value: &[u8],
        how: SetXattr,
    ) -> Change<()> {
        let _changing = self.changing(cx, file)?;
        self.inner.set_xattr(cx, file, name, value, how)
    }
    fn remove_xattr(&self, cx: Context<'_>, file: &Handle, name: &[u8]) -> Change<()> {
        let _changing = self.changing(cx, file)?;
        self.inner.remove_xattr(cx, file, name)
    }
    fn set_acl(
        &self,
        cx: Context<'_>,
        file: &Handle,
        which: AclKind,
        acl: Option<&Acl>,
    ) -> Change<()> {
        let _changing = self.changing(cx, file)?;
        self.inner.set_acl(cx, file, which, acl)
    }
}

#[cfg(test)]
mod tests;
