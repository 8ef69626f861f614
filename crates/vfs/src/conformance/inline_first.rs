//! A back end as the server uses it: every operation is tried inline first, and repeated on the
//! pool when that would block; which must then have changed nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use probe::op::FileId;

use crate::acl::{Acl, AclKind};
use crate::attr::{Attr, SetAttr, Time, Wcc};
use crate::cred::Cred;
use crate::fs::layer::about_inner;
use crate::fs::{
    Abilities, Change, Context, CreateHow, DirEntry, Entry, Failed, Features, FileName, FileSystem,
    ListDone, ReadDone, Result, Seek, SetXattr, Space, Special, Stable, Watch,
};
use crate::handle::Handle;
use crate::locks::FileKey;
use crate::status::Status;

/// Tries inline, then on the pool.
pub struct InlineFirst {
    inner: Arc<dyn FileSystem>,
    inline: AtomicU64,
    pooled: AtomicU64,
}

impl InlineFirst {
    /// Over `inner`.
    pub fn new(inner: Arc<dyn FileSystem>) -> Arc<Self> {
        Arc::new(Self { inner, inline: AtomicU64::new(0), pooled: AtomicU64::new(0) })
    }

    /// Operations answered inline and on the pool so far.
    pub fn counts(&self) -> (u64, u64) {
        (self.inline.load(Ordering::Relaxed), self.pooled.load(Ordering::Relaxed))
    }

    fn both<T, E>(
        &self,
        cx: Context<'_>,
        touched: &[&Handle],
        mut call: impl FnMut(Context<'_>) -> std::result::Result<T, E>,
        status: impl Fn(&E) -> Status,
    ) -> std::result::Result<T, E> {
        let root = Cred::root();
        let state = || -> Vec<_> {
            let cx = Context { cred: &root, may_block: true };
            touched.iter().map(|handle| self.inner.getattr(cx, handle).map(without_atime)).collect()
        };
        let before = state();
        let first = call(Context { may_block: false, ..cx });
        match first {
            Err(e) if status(&e) == Status::WouldBlock => {
                assert_eq!(before, state(), "an inline attempt that would block changes nothing");
                self.pooled.fetch_add(1, Ordering::Relaxed);
                let second = call(Context { may_block: true, ..cx });
                let blocked = second.as_ref().err().map(&status) == Some(Status::WouldBlock);
                assert!(!blocked, "the pool may block");
                second
            }
            answer => {
                self.inline.fetch_add(1, Ordering::Relaxed);
                answer
            }
        }
    }

    fn get<T>(&self, cx: Context<'_>, call: impl FnMut(Context<'_>) -> Result<T>) -> Result<T> {
        self.both(cx, &[], call, |status| *status)
    }

    fn change<T>(
        &self,
        cx: Context<'_>,
        touched: &[&Handle],
        call: impl FnMut(Context<'_>) -> Change<T>,
    ) -> Change<T> {
        self.both(cx, touched, call, |failed| failed.status)
    }
}

fn without_atime(attr: Attr) -> Attr {
    Attr { atime: Time::default(), ..attr }
}

impl FileSystem for InlineFirst {
    about_inner!();

    fn getattr(&self, cx: Context<'_>, file: &Handle) -> Result<Attr> {
        self.get(cx, |cx| self.inner.getattr(cx, file))
    }
    fn setattr(
        &self,
        cx: Context<'_>,
        file: &Handle,
        set: &SetAttr,
        guard: Option<Time>,
    ) -> Change<()> {
        self.change(cx, &[file], |cx| self.inner.setattr(cx, file, set, guard))
    }
    fn lookup(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
    ) -> std::result::Result<(Entry, Option<Attr>), Failed> {
        self.both(cx, &[dir], |cx| self.inner.lookup(cx, dir, name), |failed| failed.status)
    }
    fn access(&self, cx: Context<'_>, file: &Handle, want: u32) -> Result<(u32, Attr)> {
        self.get(cx, |cx| self.inner.access(cx, file, want))
    }
    fn readlink(&self, cx: Context<'_>, link: &Handle) -> Result<(Vec<u8>, Attr)> {
        self.get(cx, |cx| self.inner.readlink(cx, link))
    }
    fn read(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<ReadDone> {
        self.get(cx, |cx| self.inner.read(cx, file, offset, buf))
    }
    fn write(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        data: &[u8],
        stable: Stable,
    ) -> Change<usize> {
        self.change(cx, &[file], |cx| self.inner.write(cx, file, offset, data, stable))
    }
    fn commit(&self, cx: Context<'_>, file: &Handle) -> Change<()> {
        self.change(cx, &[file], |cx| self.inner.commit(cx, file))
    }
    fn create(&self, cx: Context<'_>, dir: &Handle, name: &[u8], how: CreateHow) -> Change<Entry> {
        self.change(cx, &[dir], |cx| self.inner.create(cx, dir, name, how))
    }
    fn mkdir(&self, cx: Context<'_>, dir: &Handle, name: &[u8], set: &SetAttr) -> Change<Entry> {
        self.change(cx, &[dir], |cx| self.inner.mkdir(cx, dir, name, set))
    }
    fn symlink(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
        target: &[u8],
        set: &SetAttr,
    ) -> Change<Entry> {
        self.change(cx, &[dir], |cx| self.inner.symlink(cx, dir, name, target, set))
    }
    fn mknod(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
        special: Special,
        set: &SetAttr,
    ) -> Change<Entry> {
        self.change(cx, &[dir], |cx| self.inner.mknod(cx, dir, name, special, set))
    }
    fn remove(&self, cx: Context<'_>, dir: &Handle, name: &[u8]) -> Change<()> {
        self.change(cx, &[dir], |cx| self.inner.remove(cx, dir, name))
    }
    fn rmdir(&self, cx: Context<'_>, dir: &Handle, name: &[u8]) -> Change<()> {
        self.change(cx, &[dir], |cx| self.inner.rmdir(cx, dir, name))
    }
    fn rename(&self, cx: Context<'_>, from: (&Handle, &[u8]), to: (&Handle, &[u8])) -> Change<Wcc> {
        self.change(cx, &[from.0, to.0], |cx| self.inner.rename(cx, from, to))
    }
    fn link(
        &self,
        cx: Context<'_>,
        file: &Handle,
        dir: &Handle,
        name: &[u8],
    ) -> Change<Option<Attr>> {
        self.change(cx, &[file, dir], |cx| self.inner.link(cx, file, dir, name))
    }
    fn list(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        cookie: u64,
        verifier: [u8; 8],
        plus: bool,
        each: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<ListDone> {
        self.get(cx, |cx| {
            let mut taken = 0;
            let listed = self.inner.list(cx, dir, cookie, verifier, plus, &mut |entry| {
                taken += 1;
                each(entry)
            });
            let blocked = matches!(listed, Err(Status::WouldBlock));
            assert!(!blocked || taken == 0, "nothing was given before it would have blocked");
            listed
        })
    }
    fn lookup_parent(&self, cx: Context<'_>, dir: &Handle) -> Result<Entry> {
        self.get(cx, |cx| self.inner.lookup_parent(cx, dir))
    }
    fn allocate(&self, cx: Context<'_>, file: &Handle, offset: u64, len: u64) -> Change<()> {
        self.change(cx, &[file], |cx| self.inner.allocate(cx, file, offset, len))
    }
    fn deallocate(&self, cx: Context<'_>, file: &Handle, offset: u64, len: u64) -> Change<()> {
        self.change(cx, &[file], |cx| self.inner.deallocate(cx, file, offset, len))
    }
    fn seek(&self, cx: Context<'_>, file: &Handle, at: u64, what: Seek) -> Result<Option<u64>> {
        self.get(cx, |cx| self.inner.seek(cx, file, at, what))
    }
    fn copy_range(
        &self,
        cx: Context<'_>,
        from: (&Handle, u64),
        to: (&Handle, u64),
        len: u64,
    ) -> Change<u64> {
        self.change(cx, &[from.0, to.0], |cx| self.inner.copy_range(cx, from, to, len))
    }
    fn clone_range(
        &self,
        cx: Context<'_>,
        from: (&Handle, u64),
        to: (&Handle, u64),
        len: u64,
    ) -> Change<()> {
        self.change(cx, &[from.0, to.0], |cx| self.inner.clone_range(cx, from, to, len))
    }
    fn get_xattr(&self, cx: Context<'_>, file: &Handle, name: &[u8]) -> Result<Vec<u8>> {
        self.get(cx, |cx| self.inner.get_xattr(cx, file, name))
    }
    fn set_xattr(
        &self,
        cx: Context<'_>,
        file: &Handle,
        name: &[u8],
        value: &[u8],
        how: SetXattr,
    ) -> Change<()> {
        self.change(cx, &[file], |cx| self.inner.set_xattr(cx, file, name, value, how))
    }
    fn list_xattrs(
        &self,
        cx: Context<'_>,
        file: &Handle,
        cookie: u64,
        each: &mut dyn FnMut(&[u8], u64) -> bool,
    ) -> Result<bool> {
        self.get(cx, |cx| self.inner.list_xattrs(cx, file, cookie, each))
    }
    fn remove_xattr(&self, cx: Context<'_>, file: &Handle, name: &[u8]) -> Change<()> {
        self.change(cx, &[file], |cx| self.inner.remove_xattr(cx, file, name))
    }
    fn get_acl(&self, cx: Context<'_>, file: &Handle, which: AclKind) -> Result<Option<Acl>> {
        self.get(cx, |cx| self.inner.get_acl(cx, file, which))
    }
    fn set_acl(
        &self,
        cx: Context<'_>,
        file: &Handle,
        which: AclKind,
        acl: Option<&Acl>,
    ) -> Change<()> {
        self.change(cx, &[file], |cx| self.inner.set_acl(cx, file, which, acl))
    }
    fn space(&self, cx: Context<'_>) -> Result<Space> {
        self.get(cx, |cx| self.inner.space(cx))
    }
}
