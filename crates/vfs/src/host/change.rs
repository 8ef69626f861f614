//! The operations that change what is there: SETATTR, WRITE, COMMIT, REMOVE, RMDIR, RENAME, LINK.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::limits::DIRTY_NODES_MAX;

use crate::attr::{Attr, Before, FileType, SetAttr, Time, Wcc};
use crate::flush::FlushSite;
use crate::fs::{Change, Changed, Context, Failed, Flush, Result, Stable};
use crate::handle::Handle;
use crate::host::acting::CredGuard;
use crate::host::create::ChangedDirectory;
use crate::host::durable::{AllFlush, NodeFlush};
use crate::host::flush_state::Waiter;
use crate::host::ids::Ident;
use crate::host::lock::lock;
use crate::host::node::Node;
use crate::host::open::Stamp;
use crate::host::table::TableFlush;
use crate::host::{HostFs, attrs, sys};
use crate::name::Name;
use crate::status::Status;

/// Bits that a write by anyone but root must clear, which the kernel does only for such a thread.
const SET_ID_BITS: u32 = 0o6000;

/// A file that is about to lose a name.
struct Victim {
    ino: u64,
    /// What the tables know it by, so far as we know.
    ident: Option<Ident>,
    is_dir: bool,
    /// If we hold it.
    node: Option<Arc<Node>>,
    /// Whether it is its last.
    last: bool,
}

impl HostFs {
    /// Asks for a flush of a file or directory that has just been changed. A file system in
    /// memory has nothing to flush to. What cannot be opened without side effects (a device, a
    /// link) is on disk with its directory; a later change of its attributes is not, and takes
    /// a flush of everything.
    pub(super) fn flush_file(
        &self,
        flush: &mut Flush,
        site: FlushSite,
        node: &Arc<Node>,
        fd: Option<Arc<OwnedFd>>,
    ) {
        let waiter = Waiter::Change(node.flush.changed());
        if self.inline.all {
            return;
        }
        if !matches!(node.kind, FileType::Regular | FileType::Directory) {
            if site == FlushSite::Setattr {
                self.flush_all(flush, site);
            }
            return;
        }
        let data_only = site == FlushSite::WriteDataSync;
        let (node, shared) = (Arc::clone(node), Arc::clone(&self.shared));
        flush.and(site, Arc::new(NodeFlush { node, fd, data_only, waiter, shared }));
    }

    /// Adds a flush of the whole file system, for what cannot be flushed separately.
    pub(super) fn flush_all(&self, flush: &mut Flush, site: FlushSite) {
        if !self.inline.all {
            flush.and(site, self.all_flush());
        }
    }

    pub(super) fn set_attributes(
        &self,
        cx: Context<'_>,
        file: &Handle,
        set: &SetAttr,
        guard: Option<Time>,
    ) -> Change<()> {
        if !cx.may_block && !self.inline.all {
            return Err(Status::WouldBlock.into());
        }
        let node = self.node(cx, file)?;
        let before = self.attr(&node)?;
        let outcome = if guard.is_some_and(|ctime| ctime != before.ctime) {
            Err(Status::NotSync)
        } else {
            self.set_checked(cx, &node, &before, set)
        };
        let wcc = Wcc { before: Some(Before::from(&before)), after: self.attr(&node).ok() };
        match outcome {
            Ok(flush) => Ok(Changed { value: (), wcc, flush }),
            Err(status) => Err(Failed { status, wcc }),
        }
    }

    fn set_checked(
        &self,
        cx: Context<'_>,
        node: &Arc<Node>,
        before: &Attr,
        set: &SetAttr,
    ) -> Result<Flush> {
        let mut fd = None;
        if let Some(size) = set.size {
            let open = self.open_for(cx, node, before, true)?;
            let _caller = self.as_caller(cx)?;
            sys::truncate(open.fd.as_fd(), size)?;
            node.touched();
            fd = Some(Arc::clone(&open.fd));
        }
        {
            let _caller = self.as_caller(cx)?;
            // The mode of a symbolic link has no effect; setting it is not an error.
            let mode = set.mode.filter(|_| before.kind != FileType::Symlink);
            let done = attrs::apply(node.fd(), &SetAttr { size: None, mode, ..*set });
            // Some of it may have been done even so.
            node.touched();
            done?;
        }
        let mut flush = Flush::NONE;
        self.flush_file(&mut flush, FlushSite::Setattr, node, fd);
        Ok(flush)
    }

    pub(super) fn write_file(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        data: &[u8],
        stable: Stable,
    ) -> Change<usize> {
        if !cx.may_block && !self.inline.all {
            return Err(Status::WouldBlock.into());
        }
        let node = self.node(cx, file)?;
        let before = self.attr(&node)?;
        let outcome = self.write_checked(cx, &node, &before, offset, data, stable);
        let after = match &outcome {
            Ok((_, _, after)) => Some(*after),
            Err(_) => self.attr(&node).ok(),
        };
        let wcc = Wcc { before: Some(Before::from(&before)), after };
        match outcome {
            Ok((value, flush, _)) => Ok(Changed { value, wcc, flush }),
            Err(status) => Err(Failed { status, wcc }),
        }
    }

    fn write_checked(
        &self,
        cx: Context<'_>,
        node: &Arc<Node>,
        before: &Attr,
        offset: u64,
        data: &[u8],
        stable: Stable,
    ) -> Result<(usize, Flush, Attr)> {
        let end = offset.checked_add(data.len() as u64).ok_or(Status::TooLarge)?;
        if i64::try_from(end).is_err() {
            return Err(Status::TooLarge);
        }
        let open = self.open_for(cx, node, before, true)?;
        // Block allocation depends on the caller: reserved blocks, and those over quota, are not
        // for all.
        let privileged = cx.may_block || before.mode & SET_ID_BITS != 0;
        let _caller = if privileged { self.as_caller(cx)? } else { CredGuard::unchanged() };
        let count = write_all(open.fd.as_fd(), data, offset)?;
        node.touched();
        let after = self.attr(node)?;
        {
            // It was our write that moved the change time.
            let mut stamp = lock(&open.stamp);
            if stamp.same(before) && stamp.same_mode(&after) {
                *stamp = Stamp::of(&after);
            }
        }
        let mut flush = Flush::NONE;
        let full = self.shared.dirty.load(Ordering::Relaxed) >= DIRTY_NODES_MAX as u64;
        let site = match stable {
            Stable::FileSync => Some(FlushSite::WriteFileSync),
            Stable::DataSync => Some(FlushSite::WriteDataSync),
            Stable::Unstable if full && !node.flush.is_dirty() => Some(FlushSite::WriteDataSync),
            Stable::Unstable => None,
        };
        match site {
            Some(site) => self.flush_file(&mut flush, site, node, Some(Arc::clone(&open.fd))),
            None if self.inline.all => {}
            None => node.flush.unstable(&open.fd, &self.shared),
        }
        Ok((count, flush, after))
    }

    pub(super) fn commit_file(&self, cx: Context<'_>, file: &Handle) -> Change<()> {
        if !cx.may_block && !self.inline.attr {
            return Err(Status::WouldBlock.into());
        }
        let node = self.node(cx, file)?;
        let attr = self.attr(&node)?;
        let wcc = Wcc { before: Some(Before::from(&attr)), after: Some(attr) };
        match node.kind {
            FileType::Regular => {}
            FileType::Directory => return Err(Failed { status: Status::IsDirectory, wcc }),
            _ => return Err(Failed { status: Status::Invalid, wcc }),
        }
        let mut flush = Flush::NONE;
        if !self.inline.all && node.flush.needs_commit() {
            let waiter = node.flush.commit(cx.cred.uid);
            let target = NodeFlush {
                node,
                fd: None,
                data_only: false,
                waiter,
                shared: Arc::clone(&self.shared),
            };
            flush.and(FlushSite::Commit, Arc::new(target));
        }
        Ok(Changed { value: (), wcc, flush })
    }

    /// REMOVE and RMDIR.
    pub(super) fn remove_name(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
        is_dir: bool,
    ) -> Change<()> {
        let place = self.place(cx, dir)?;
        let outcome = Name::removed(name).and_then(|name| {
            let caller = self.as_caller(cx)?;
            let gone = self.victim(&place, &name)?;
            self.may_lose_name(gone.ino)?;
            sys::unlink_at(place.dir.fd(), name.as_cstr(), is_dir)?;
            place.dir.touched();
            drop(caller);
            self.let_go(&gone);
            let mut flush = Flush::NONE;
            let site = if is_dir { FlushSite::RmdirDirectory } else { FlushSite::RemoveDirectory };
            self.flush_file(&mut flush, site, &place.dir, None);
            Ok(((), flush))
        });
        self.finish(&place, outcome)
    }

    /// What a name leads to that may be about to lose it; hidden ones are not there.
    fn victim(&self, place: &ChangedDirectory, name: &Name) -> Result<Victim> {
        let (attr, birth) = self.child_attr(place.dir.fd(), name.as_cstr())?;
        let (ino, is_dir) = (attr.fileid, attr.kind == FileType::Directory);
        let node = self.nodes.by_ino(ino);
        let ident = match &node {
            Some(node) => Some(node.ident),
            None => (!self.kernel).then_some(Ident::Inode { ino, birth }),
        };
        Ok(Victim { ino, ident, is_dir, node, last: is_dir || attr.nlink <= 1 })
    }

    /// Lets go of a file that has lost a name, if it was the last.
    fn let_go(&self, gone: &Victim) {
        self.forget(gone);
        match &gone.node {
            // If it was linked again meanwhile, it is found by its handle.
            Some(node) if gone.last => {
                node.touched();
                self.nodes.forget(node);
            }
            // Taking the attributes of a removed file lets it go.
            Some(node) => {
                node.touched();
                let _ = self.attr(node);
            }
            None => {}
        }
    }

    /// Takes it out of the table of handles: its handle leads nowhere any more. A file that we do
    /// not hold may have been linked meanwhile; it stays, until the table needs the room.
    fn forget(&self, gone: &Victim) {
        let Some(ident) = gone.ident.filter(|_| gone.last) else { return };
        if gone.is_dir {
            self.table.forget_dir(&ident);
        } else if self.table.hint(&ident).is_some() {
            let held = gone.node.as_ref().and_then(|node| sys::stat(node.fd()).ok());
            if held.is_some_and(|st| st.st_nlink == 0) {
                self.table.forget_moved(&ident);
            }
        }
    }

    pub(super) fn rename_name(
        &self,
        cx: Context<'_>,
        from: (&Handle, &[u8]),
        to: (&Handle, &[u8]),
    ) -> Change<Wcc> {
        let source = self.place(cx, from.0)?;
        let target = match self.place(cx, to.0) {
            Ok(target) => target,
            Err(status) => return Err(Failed { status, wcc: self.wcc(&source) }),
        };
        let names = Name::removed(from.1).and_then(|a| Ok((a, Name::removed(to.1)?)));
        let outcome = names.and_then(|(a, b)| self.rename_in(cx, (&source, &a), (&target, &b)));
        let wcc = self.wcc(&target);
        self.finish(&source, outcome.map(|flush| (wcc, flush)))
    }

    fn rename_in(
        &self,
        cx: Context<'_>,
        (source, from): (&ChangedDirectory, &Name),
        (target, to): (&ChangedDirectory, &Name),
    ) -> Result<Flush> {
        let caller = self.as_caller(cx)?;
        let moved = self.child(cx, &source.dir, from)?;
        self.may_lose_name(moved.0.ino)?;
        let gone = match self.victim(target, to) {
            Err(Status::NotFound) if self.is_hidden(target, to) => return Err(Status::Access),
            Err(Status::NotFound) => None,
            other => Some(other?),
        };
        gone.as_ref().map_or(Ok(()), |gone| self.may_lose_name(gone.ino))?;
        // Two names of one file: nothing happens (RFC 1813 §3.3.14, rename(2)).
        if gone.as_ref().is_some_and(|gone| gone.ino == moved.0.ino) {
            return Ok(Flush::NONE);
        }
        let across = source.dir.ino != target.dir.ino;
        let mut flush = Flush::NONE;
        if across {
            self.remember(&mut flush, &moved.0, &[source.dir.as_ref(), target.dir.as_ref()]);
        }
        sys::rename_at((source.dir.fd(), from.as_cstr()), (target.dir.fd(), to.as_cstr()))?;
        [&source.dir, &target.dir, &moved.0].into_iter().for_each(|node| node.touched());
        drop(caller);
        if let Some(gone) = gone {
            self.let_go(&gone);
        }
        self.paths.note(moved.0.id, target.dir.id, to.as_bytes());
        if !self.kernel && moved.0.kind == FileType::Directory {
            self.table.note_dir(&moved.0.ident, target.dir.ident, to.as_bytes());
            self.flush_table(&mut flush);
        }
        // Where the name came to goes first: between the two the file has both names or the new
        // one, never none. What the file holds was flushed when that was promised.
        if across {
            self.flush_file(&mut flush, FlushSite::RenameTo, &target.dir, None);
        }
        self.flush_file(&mut flush, FlushSite::RenameFrom, &source.dir, None);
        Ok(flush)
    }

    /// Whether a directory or symbolic link is not what a logical unit is found by.
    ///
    /// # Errors
    /// [`Status::Access`] if it is.
    fn may_lose_name(&self, ino: u64) -> Result<()> {
        match self.exclusive.keeps_name(self.dev, ino) {
            true => Err(Status::Access),
            false => Ok(()),
        }
    }

    /// Whether a name leads to what is hidden.
    fn is_hidden(&self, place: &ChangedDirectory, name: &Name) -> bool {
        (!self.hide.is_empty() || !self.exclusive.is_empty())
            && sys::statx_at(place.dir.fd(), name.as_cstr()).is_ok_and(|sx| self.hidden(sx.stx_ino))
    }

    /// Records that a file is or was in these directories, before it is placed there: a handle
    /// contains only the one in which it was first found.
    fn remember(&self, flush: &mut Flush, node: &Node, places: &[&Node]) {
        let needed = if self.kernel { !self.whole } else { true };
        if !needed || node.kind == FileType::Directory {
            return;
        }
        let hint = self.keys.open(&node.handle).ok().and_then(|parsed| parsed.parent);
        let places: Vec<_> = places.iter().map(|dir| dir.ident).collect();
        let Some(hint) = hint.or(places.first().copied()) else { return };
        self.table.note_moved(&node.ident, hint, &places);
        self.flush_table(flush);
    }

    /// The table first: entries of files that do not exist yet are harmless.
    pub(super) fn flush_whole(&self) -> Flush {
        let table = Arc::new(TableFlush(Arc::clone(&self.table)));
        Flush { targets: vec![table, self.all_flush()] }
    }

    fn all_flush(&self) -> Arc<AllFlush> {
        let nodes = self.syncs.then(|| Arc::clone(&self.nodes));
        Arc::new(AllFlush { shared: Arc::clone(&self.shared), nodes })
    }

    fn flush_table(&self, flush: &mut Flush) {
        flush.and(FlushSite::HandleTable, Arc::new(TableFlush(Arc::clone(&self.table))));
    }

    pub(super) fn link_file(
        &self,
        cx: Context<'_>,
        file: &Handle,
        dir: &Handle,
        name: &[u8],
    ) -> Change<Option<Attr>> {
        let place = self.place(cx, dir)?;
        let outcome = Name::made(name).and_then(|name| {
            let node = self.node(cx, file)?;
            if node.kind == FileType::Directory {
                return Err(Status::IsDirectory);
            }
            self.attr(&node)?;
            let mut flush = Flush::NONE;
            self.remember(&mut flush, &node, &[&place.dir]);
            let caller = self.as_caller(cx)?;
            sys::link_at(node.fd(), place.dir.fd(), name.as_cstr())?;
            [&node, &place.dir].into_iter().for_each(|node| node.touched());
            drop(caller);
            self.flush_file(&mut flush, FlushSite::LinkFile, &node, None);
            self.flush_file(&mut flush, FlushSite::LinkDirectory, &place.dir, None);
            Ok((self.attr(&node).ok(), flush))
        });
        self.finish(&place, outcome)
    }
}

/// Writes all of `data`, or as much of it as there is space for, if any.
fn write_all(fd: BorrowedFd<'_>, data: &[u8], offset: u64) -> Result<usize> {
    let mut done = 0;
    while done < data.len() {
        let rest = data.get(done..).unwrap_or_default();
        match sys::write_at(fd, rest, offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
            Err(e) if done == 0 => return Err(e.into()),
            Err(_) => break,
        }
    }
    Ok(done)
}
