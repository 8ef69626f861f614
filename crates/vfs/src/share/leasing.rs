//! Recalls delegations before operations on files, and checks names that opens keep, for all
//! protocols.
//!
//! A change that conflicts with a delegation is refused with [`Status::Busy`] (NFS3ERR_JUKEBOX,
//! NFS4ERR_DELAY) after the recall has been sent to its holder; the caller retries. Leases and
//! oplocks of SMB are broken here, too; [`crate::locks::Trigger`] defines what each operation
//! breaks, and whether it waits. While there is no lease on a file the cost is one atomic addition,
//! and the file system is not queried. A thread states the client for which it acts with
//! [`ByClient`](crate::locks::ByClient) or [`ByOwners`](crate::locks::ByOwners), and how it uses
//! files with [`Using`].
//!
//! While clients may reclaim, the names of files that existed before are not changed
//! ([`crate::locks::grace`]): [`Status::Busy`], too. Renames of names by which files are open are
//! recorded in the table for all protocols ([`crate::locks::links`]).
//!
//! A name that another client's open keeps ([`crate::locks::names`]) is neither removed nor given
//! to another file: [`Status::InUse`]. While there is no such open that costs one atomic load.

use std::sync::Arc;

use probe::op::FileId;

use crate::acl::{Acl, AclKind};
use crate::attr::{Attr, SetAttr, SetTime, Time, Wcc};
use crate::cred::Cred;
use crate::fs::layer::{about_inner, looks_at_inner};
use crate::fs::{
    Abilities, Change, Context, CreateHow, DirEntry, Entry, Extent, Failed, Features, FileName,
    FileSystem, ListDone, ReadDone, Result, Seek, SendfileRange, SetXattr, Space, Special, Stable,
    Watch,
};
use crate::handle::Handle;
use crate::locks::{Changing, FileKey, LockTable, Trigger, Using};
use crate::notice::Changes;
use crate::status::Status;

/// A tree in which changes recall delegations.
pub struct Leasing {
    inner: Arc<dyn FileSystem>,
    locks: Arc<LockTable>,
}

impl Leasing {
    /// Wraps a tree.
    pub fn new(inner: Arc<dyn FileSystem>, locks: Arc<LockTable>) -> Self {
        Self { inner, locks }
    }

    /// Before a change of a file: the announcement, to be held until the change has been made.
    #[inline]
    fn changing(&self, cx: Context<'_>, file: &Handle, what: Trigger) -> Result<Changing<'_>> {
        let slot = self.inner.change_slot(file);
        let changing = self.locks.changing(slot);
        if self.locks.is_leased(slot) && !Using::is_exclusive() {
            self.may(self.inner.file_key(cx, file)?, what)?;
        }
        Ok(changing)
    }

    #[cold]
    fn may(&self, file: FileKey, what: Trigger) -> Result<()> {
        if self.locks.may(file, what) { Ok(()) } else { Err(Status::Busy) }
    }

    /// Before a file is read without an open: others may have data that they have not flushed.
    #[inline]
    fn looking(&self, cx: Context<'_>, file: &Handle, what: Trigger) -> Result<()> {
        if self.meets_writer(file) {
            self.may(self.inner.file_key(cx, file)?, what)
        } else {
            Ok(())
        }
    }

    /// Whether a read without an open may meet unflushed data of other clients.
    #[inline]
    fn meets_writer(&self, file: &Handle) -> bool {
        self.locks.has_write_leases()
            && Using::is_fresh()
            && self.locks.is_written_back(self.inner.change_slot(file))
    }

    /// The attributes of a file that another client may have changed in its cache only (RFC 8881
    /// §10.4.3).
    #[cold]
    fn attributes_of_writer(&self, cx: Context<'_>, file: &Handle) -> Result<Attr> {
        let stored = self.inner.getattr(cx, file)?;
        let looked = self.locks.look(FileKey::from(&stored), cx.may_block);
        let looked = looked.map_err(|_| Status::Busy)?;
        if looked.is_some_and(|theirs| theirs.is_new && !cx.may_block) {
            return Err(Status::WouldBlock);
        }
        let Some(theirs) = looked.filter(|one| one.is_changed(stored.size, stored.change)) else {
            return Ok(stored);
        };
        let mut shown = stored;
        if theirs.is_new {
            // The change attribute must differ each time, and must not be lower after the
            // delegation: so the times of the file are set now.
            let server = Cred::root();
            let cx = Context { cred: &server, may_block: true };
            let now = SetAttr { mtime: SetTime::Now, ..SetAttr::default() };
            let _changing = self.locks.changing(self.inner.change_slot(file));
            self.inner.setattr(cx, file, &now, None).map_err(|failed| failed.status)?;
            shown = self.inner.getattr(cx, file)?;
        }
        Ok(Attr { size: theirs.size, ..shown })
    }

    /// The current entry of a name. If it cannot be read, the operation itself reports the error.
    fn named(&self, cx: Context<'_>, (dir, name): (&Handle, &[u8])) -> Result<Option<Entry>> {
        match self.inner.lookup(cx, dir, name) {
            Ok((entry, _)) => Ok(Some(entry)),
            Err(Failed { status: Status::WouldBlock, .. }) => Err(Status::WouldBlock),
            Err(_) => Ok(None),
        }
    }

    /// Before a change of the file that a name refers to now.
    fn changing_named(&self, cx: Context<'_>, name: (&Handle, &[u8])) -> Result<Changing<'_>> {
        let changing = self.locks.names_changing();
        if self.locks.has_leases()
            && let Some(entry) = self.named(cx, name)?
        {
            self.may(FileKey::from(&entry.attr), Trigger::Write)?;
        }
        Ok(changing)
    }

    /// Before names are removed or replaced: checks the files that they refer to now.
    fn renaming(&self, cx: Context<'_>, names: &[(&Handle, &[u8])]) -> Result<Changing<'_>> {
        let changing = self.locks.names_changing();
        let in_grace = self.locks.in_grace();
        if in_grace || self.locks.has_leases() || self.locks.has_name_keepers() {
            for name in names {
                let Some(Entry { handle, attr }) = self.named(cx, *name)? else { continue };
                if !self.locks.may_rename(FileKey::from(&attr)) {
                    return Err(Status::InUse);
                }
                if in_grace {
                    self.check_grace(cx, &handle)?;
                }
                self.may(FileKey::from(&attr), Trigger::Name)?;
            }
        }
        Ok(changing)
    }

    /// Refuses to change the names of a file that clients may reclaim. Clients of NFS retry; for
    /// the others [`LockTable::when_grace_ends`] has the end of the grace period.
    #[cold]
    fn check_grace(&self, cx: Context<'_>, file: &Handle) -> Result<()> {
        // Only GETATTR gives the time of birth.
        let kept = match self.inner.getattr(cx, file) {
            // NFSv4 has checked this before: it has a separate status for it (NFS4ERR_GRACE).
            Ok(attr) => self.locks.keeps_names_in_grace(&attr),
            Err(Status::WouldBlock) => return Err(Status::WouldBlock),
            Err(_) => false,
        };
        if kept { Err(Status::Busy) } else { Ok(()) }
    }

    /// After changes of names in directories, for clients that wait for them.
    #[inline]
    fn notice_names(&self, cx: Context<'_>, dirs: &[&Handle]) {
        if self.locks.notices().is_wanted() {
            for key in dirs.iter().filter_map(|dir| self.inner.file_key(cx, dir).ok()) {
                self.locks.notices().names_changed(key);
            }
        }
    }

    /// After a file was changed.
    #[inline]
    fn notice(&self, cx: Context<'_>, file: &Handle, kinds: Changes) {
        if self.locks.notices().is_wanted()
            && let Ok(key) = self.inner.file_key(cx, file)
        {
            self.locks.notices().file_changed(key, kinds);
        }
    }

    /// The directories of a rename that concerns open files; `None` if it changes nothing, or no
    /// file is open by a name.
    fn followed(
        &self,
        cx: Context<'_>,
        from: (&Handle, &[u8]),
        to: (&Handle, &[u8]),
    ) -> Result<Option<(FileKey, FileKey)>> {
        if !self.locks.has_links() || self.is_one_file(cx, from, to) {
            return Ok(None);
        }
        match (self.inner.file_key(cx, from.0), self.inner.file_key(cx, to.0)) {
            (Ok(old), Ok(new)) => Ok(Some((old, new))),
            (Err(Status::WouldBlock), _) | (_, Err(Status::WouldBlock)) => Err(Status::WouldBlock),
            // The operation reports the error.
            _ => Ok(None),
        }
    }

    /// Whether two names are of one file: then a rename changes nothing (rename(2)).
    fn is_one_file(&self, cx: Context<'_>, one: (&Handle, &[u8]), two: (&Handle, &[u8])) -> bool {
        let key = |name| self.named(cx, name).ok().flatten().map(|e: Entry| FileKey::from(&e.attr));
        match (key(one), key(two)) {
            (Some(one), Some(two)) => one.is_same_inode(&two),
            _ => false,
        }
    }
}

impl FileSystem for Leasing {
    about_inner!();
    looks_at_inner!();

    fn getattr(&self, cx: Context<'_>, file: &Handle) -> Result<Attr> {
        if self.meets_writer(file) {
            return self.attributes_of_writer(cx, file);
        }
        self.inner.getattr(cx, file)
    }
    fn setattr(
        &self,
        cx: Context<'_>,
        file: &Handle,
        set: &SetAttr,
        guard: Option<Time>,
    ) -> Change<()> {
        let what = if set.size.is_some() { Trigger::Write } else { Trigger::Attributes };
        let _changing = self.changing(cx, file, what)?;
        let done = self.inner.setattr(cx, file, set, guard)?;
        let data = if set.size.is_some() { Changes::DATA } else { Changes::NONE };
        let kinds = Changes::ATTRIBUTES.with(data);
        self.notice(cx, file, kinds);
        Ok(done)
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
        self.looking(cx, file, Trigger::Read)?;
        self.inner.read(cx, file, offset, buf)
    }
    fn extent(&self, cx: Context<'_>, file: &Handle, offset: u64, count: usize) -> Option<Extent> {
        self.looking(cx, file, Trigger::Read).ok()?;
        self.inner.extent(cx, file, offset, count)
    }
    fn stretch(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        n: usize,
    ) -> Result<SendfileRange> {
        self.looking(cx, file, Trigger::Read)?;
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
        let _changing = self.changing(cx, file, Trigger::Write)?;
        let done = self.inner.write(cx, file, offset, data, stable)?;
        self.notice(cx, file, Changes::DATA);
        Ok(done)
    }
    fn commit(&self, cx: Context<'_>, file: &Handle) -> Change<()> {
        self.inner.commit(cx, file)
    }
    fn create(&self, cx: Context<'_>, dir: &Handle, name: &[u8], how: CreateHow) -> Change<Entry> {
        // Only one that accepts an existing file may truncate it.
        let cuts = matches!(how, CreateHow::Unchecked(SetAttr { size: Some(_), .. }));
        let _changing = if cuts { Some(self.changing_named(cx, (dir, name))?) } else { None };
        let done = self.inner.create(cx, dir, name, how)?;
        self.notice_names(cx, &[dir]);
        Ok(done)
    }
    fn mkdir(&self, cx: Context<'_>, dir: &Handle, name: &[u8], set: &SetAttr) -> Change<Entry> {
        let done = self.inner.mkdir(cx, dir, name, set)?;
        self.notice_names(cx, &[dir]);
        Ok(done)
    }
    fn symlink(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
        target: &[u8],
        set: &SetAttr,
    ) -> Change<Entry> {
        let done = self.inner.symlink(cx, dir, name, target, set)?;
        self.notice_names(cx, &[dir]);
        Ok(done)
    }
    fn mknod(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
        special: Special,
        set: &SetAttr,
    ) -> Change<Entry> {
        let done = self.inner.mknod(cx, dir, name, special, set)?;
        self.notice_names(cx, &[dir]);
        Ok(done)
    }
    fn remove(&self, cx: Context<'_>, dir: &Handle, name: &[u8]) -> Change<()> {
        let _changing = self.renaming(cx, &[(dir, name)])?;
        let done = self.inner.remove(cx, dir, name)?;
        self.notice_names(cx, &[dir]);
        Ok(done)
    }
    fn rmdir(&self, cx: Context<'_>, dir: &Handle, name: &[u8]) -> Change<()> {
        // No client has a delegation on a directory.
        if self.locks.has_name_keepers()
            && let Some(entry) = self.named(cx, (dir, name))?
            && !self.locks.may_rename(FileKey::from(&entry.attr))
        {
            return Err(Status::InUse.into());
        }
        let done = self.inner.rmdir(cx, dir, name)?;
        self.notice_names(cx, &[dir]);
        Ok(done)
    }
    fn rename(&self, cx: Context<'_>, from: (&Handle, &[u8]), to: (&Handle, &[u8])) -> Change<Wcc> {
        let _changing = self.renaming(cx, &[from, to])?;
        let followed = self.followed(cx, from, to)?;
        let renamed = self.inner.rename(cx, from, to)?;
        if let Some((old, new)) = followed {
            self.locks.renamed((old, from.1), (to.0, new, to.1));
        }
        self.notice_names(cx, &[from.0, to.0]);
        Ok(renamed)
    }
    fn link(
        &self,
        cx: Context<'_>,
        file: &Handle,
        dir: &Handle,
        name: &[u8],
    ) -> Change<Option<Attr>> {
        let _changing = self.changing(cx, file, Trigger::Attributes)?;
        let done = self.inner.link(cx, file, dir, name)?;
        self.notice_names(cx, &[dir]);
        Ok(done)
    }
    fn allocate(&self, cx: Context<'_>, file: &Handle, offset: u64, len: u64) -> Change<()> {
        let _changing = self.changing(cx, file, Trigger::Write)?;
        let done = self.inner.allocate(cx, file, offset, len)?;
        self.notice(cx, file, Changes::DATA);
        Ok(done)
    }
    fn deallocate(&self, cx: Context<'_>, file: &Handle, offset: u64, len: u64) -> Change<()> {
        let _changing = self.changing(cx, file, Trigger::Write)?;
        let done = self.inner.deallocate(cx, file, offset, len)?;
        self.notice(cx, file, Changes::DATA);
        Ok(done)
    }
    fn seek(&self, cx: Context<'_>, file: &Handle, at: u64, what: Seek) -> Result<Option<u64>> {
        self.looking(cx, file, Trigger::Read)?;
        self.inner.seek(cx, file, at, what)
    }
    fn copy_range(
        &self,
        cx: Context<'_>,
        from: (&Handle, u64),
        to: (&Handle, u64),
        len: u64,
    ) -> Change<u64> {
        self.looking(cx, from.0, Trigger::Read)?;
        let _changing = self.changing(cx, to.0, Trigger::Write)?;
        let done = self.inner.copy_range(cx, from, to, len)?;
        self.notice(cx, to.0, Changes::DATA);
        Ok(done)
    }
    fn clone_range(
        &self,
        cx: Context<'_>,
        from: (&Handle, u64),
        to: (&Handle, u64),
        len: u64,
    ) -> Change<()> {
        self.looking(cx, from.0, Trigger::Read)?;
        let _changing = self.changing(cx, to.0, Trigger::Write)?;
        let done = self.inner.clone_range(cx, from, to, len)?;
        self.notice(cx, to.0, Changes::DATA);
        Ok(done)
    }
    fn set_xattr(
        &self,
        cx: Context<'_>,
        file: &Handle,
        name: &[u8],
        value: &[u8],
        how: SetXattr,
    ) -> Change<()> {
        let _changing = self.changing(cx, file, Trigger::Attributes)?;
        let done = self.inner.set_xattr(cx, file, name, value, how)?;
        self.notice(cx, file, Changes::ATTRIBUTES);
        Ok(done)
    }
    fn remove_xattr(&self, cx: Context<'_>, file: &Handle, name: &[u8]) -> Change<()> {
        let _changing = self.changing(cx, file, Trigger::Attributes)?;
        let done = self.inner.remove_xattr(cx, file, name)?;
        self.notice(cx, file, Changes::ATTRIBUTES);
        Ok(done)
    }
    fn set_acl(
        &self,
        cx: Context<'_>,
        file: &Handle,
        which: AclKind,
        acl: Option<&Acl>,
    ) -> Change<()> {
        let _changing = self.changing(cx, file, Trigger::Attributes)?;
        let done = self.inner.set_acl(cx, file, which, acl)?;
        self.notice(cx, file, Changes::ATTRIBUTES);
        Ok(done)
    }
}

#[cfg(test)]
mod tests;
