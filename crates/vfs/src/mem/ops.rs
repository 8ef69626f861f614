//! The operations of the back end in memory.

use probe::op::FileId;

use super::body::{Body, Directory, Pages};
use super::{Guard, MemFs, ROOT, State, abilities, seal};
use crate::attr::{Attr, Before, FileType, SetAttr, SetTime, Time, Wcc};
use crate::cred::Cred;
use crate::fs::{
    Abilities, Change, Context, CreateHow, DirEntry, Entry, Failed, Features, FileName, FileSystem,
    ListDone, ReadDone, Result, Retained, Seek, SetXattr, Space, Special, Stable, Watch,
};
use crate::handle::Handle;
use crate::locks::FileKey;
use crate::name::Name;
use crate::rights::{self, R, W, X};
use crate::status::Status;

impl MemFs {
    fn add_name(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
        make: impl FnOnce(&mut State, u64) -> Result<u64>,
    ) -> Change<Entry> {
        let changed = self.change(dir, |state, ino| {
            let name = Name::made(name)?;
            state.require(ino, cx.cred, W | X)?;
            if state.directory(ino)?.get(name.as_bytes()).is_some() {
                return Err(Status::Exists);
            }
            state.room_for_name()?;
            let new = make(state, ino)?;
            state.add_entry(ino, name.as_bytes(), new)?;
            self.entry(state, new)
        })?;
        self.note(&changed.value, dir, name);
        Ok(changed)
    }

    /// CREATE of an existing name.
    fn existing(&self, state: &mut State, cred: &Cred, ino: u64, how: CreateHow) -> Result<Entry> {
        let attr = state.get(ino)?.attr;
        let regular = attr.kind == FileType::Regular;
        match how {
            CreateHow::Unchecked(set) if regular => {
                if let Some(size) = set.size {
                    if cred.uid != attr.uid {
                        state.require(ino, cred, W)?;
                    }
                    state.resize(ino, size)?;
                }
            }
            CreateHow::Exclusive(verifier)
                if regular && times(verifier) == (attr.atime, attr.mtime) => {}
            _ => return Err(Status::Exists),
        }
        self.entry(state, ino)
    }

    fn remove_name(&self, cx: Context<'_>, dir: &Handle, name: &[u8], is_dir: bool) -> Change<()> {
        self.change(dir, |state, at| {
            let name = Name::removed(name)?;
            state.require(at, cx.cred, X)?;
            let ino = state.directory(at)?.get(name.as_bytes()).ok_or(Status::NotFound)?;
            state.may_remove(at, ino, cx.cred)?;
            check_victim(state, ino, is_dir)?;
            state.drop_entry(at, name.as_bytes())?;
            if is_dir {
                state.get_mut(at)?.attr.nlink -= 1;
            }
            state.drop_link(ino)
        })
    }
}

/// Whether a name may go by REMOVE, RMDIR or under a RENAME.
fn check_victim(state: &State, ino: u64, is_dir: bool) -> Result<()> {
    match (&state.get(ino)?.body, is_dir) {
        (Body::Directory(_), false) => Err(Status::IsDirectory),
        (Body::Directory(dir), true) if !dir.is_empty() => Err(Status::NotEmpty),
        (Body::Directory(_), true) => Ok(()),
        (_, true) => Err(Status::NotDirectory),
        (_, false) => Ok(()),
    }
}

fn times(verifier: [u8; 8]) -> (Time, Time) {
    let [a, b, c, d, e, f, g, h] = verifier;
    let time = |word| Time { sec: i64::from(u32::from_be_bytes(word)), nsec: 0 };
    (time([a, b, c, d]), time([e, f, g, h]))
}

fn rename_in(
    state: &mut State,
    cred: &Cred,
    (from, old): (u64, &Name),
    (to, new): (u64, &Name),
) -> Result<u64> {
    state.require(from, cred, X)?;
    state.require(to, cred, W | X)?;
    let ino = state.directory(from)?.get(old.as_bytes()).ok_or(Status::NotFound)?;
    state.may_remove(from, ino, cred)?;
    let is_dir = state.get(ino)?.attr.kind == FileType::Directory;
    let mut above = to;
    while is_dir && above != ROOT {
        if above == ino {
            return Err(Status::Invalid);
        }
        above = state.get(above)?.parent;
    }
    if let Some(victim) = state.directory(to)?.get(new.as_bytes()) {
        // Two names of one file: nothing happens (RFC 1813 §3.3.14).
        if victim == ino {
            return Ok(ino);
        }
        state.may_remove(to, victim, cred)?;
        check_victim(state, victim, is_dir)?;
        state.drop_entry(to, new.as_bytes())?;
        if is_dir {
            state.get_mut(to)?.attr.nlink -= 1;
        }
        state.drop_link(victim)?;
    }
    state.drop_entry(from, old.as_bytes())?;
    state.add_entry(to, new.as_bytes(), ino)?;
    let now = state.now();
    let inode = state.get_mut(ino)?;
    inode.changed(now);
    inode.parent = to;
    if is_dir {
        state.get_mut(from)?.attr.nlink -= 1;
        state.get_mut(to)?.attr.nlink += 1;
    }
    Ok(ino)
}

/// The mode of a new file.
fn masked(set: &SetAttr, default: u32) -> u32 {
    set.mode.unwrap_or(default) & !(set.umask.unwrap_or(0) & 0o777)
}

fn make_dir(state: &mut State, cred: &Cred, above: u64, set: &SetAttr) -> Result<u64> {
    let body = Body::Directory(Directory::default());
    let mode = masked(set, 0o755);
    let ino = state.add(body, FileType::Directory, mode, cred, above);
    state.get_mut(above)?.attr.nlink += 1;
    state.set(ino, &SetAttr { mode: None, size: None, ..*set }, cred)?;
    Ok(ino)
}

impl FileSystem for MemFs {
    fn root(&self) -> Handle {
        self.root
    }
    fn file_id(&self, handle: &Handle) -> FileId {
        self.id(handle)
    }
    fn getattr(&self, _: Context<'_>, file: &Handle) -> Result<Attr> {
        let ino = self.ino(file)?;
        Ok(self.read_state().get(ino)?.attr)
    }
    fn setattr(
        &self,
        cx: Context<'_>,
        file: &Handle,
        set: &SetAttr,
        guard: Option<Time>,
    ) -> Change<()> {
        self.change(file, |state, ino| {
            if guard.is_some_and(|ctime| state.get(ino).is_ok_and(|i| i.attr.ctime != ctime)) {
                return Err(Status::NotSync);
            }
            state.set(ino, set, cx.cred)
        })
    }
    fn lookup(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
    ) -> std::result::Result<(Entry, Option<Attr>), Failed> {
        let at = self.ino(dir)?;
        let state = self.read_state();
        let attr = state.get(at)?.attr;
        let find = || {
            let name = Name::any(name)?;
            let names = state.directory(at)?;
            state.require(at, cx.cred, X)?;
            let ino = match name.as_bytes() {
                b"." => at,
                b".." => state.get(at)?.parent,
                name => names.get(name).ok_or(Status::NotFound)?,
            };
            self.entry(&state, ino)
        };
        let wcc = Wcc { before: None, after: Some(attr) };
        let entry = find().map_err(|status| Failed { status, wcc })?;
        self.note(&entry, dir, name);
        Ok((entry, Some(attr)))
    }
    fn access(&self, cx: Context<'_>, file: &Handle, want: u32) -> Result<(u32, Attr)> {
        let attr = self.getattr(cx, file)?;
        Ok((rights::to_access(attr.kind, rights::granted(&attr, cx.cred)) & want, attr))
    }
    fn readlink(&self, _: Context<'_>, link: &Handle) -> Result<(Vec<u8>, Attr)> {
        let ino = self.ino(link)?;
        let state = self.read_state();
        let inode = state.get(ino)?;
        match &inode.body {
            Body::Link(target) => Ok((target.clone(), inode.attr)),
            _ => Err(Status::Invalid),
        }
    }
    fn read(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<ReadDone> {
        let ino = self.ino(file)?;
        let state = self.read_state();
        let inode = state.get(ino)?;
        let attr = inode.attr;
        let pages = match &inode.body {
            Body::File(pages) => pages,
            Body::Directory(_) => return Err(Status::IsDirectory),
            _ => return Err(Status::Invalid),
        };
        if cx.cred.uid != attr.uid {
            state.require(ino, cx.cred, R)?;
        }
        let left = usize::try_from(attr.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = buf.len().min(left);
        pages.read(offset, buf.split_at_mut(count).0);
        Ok(ReadDone { count, eof: count == left, attr })
    }
    fn write(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        data: &[u8],
        _: Stable,
    ) -> Change<usize> {
        self.change(file, |state, ino| {
            let end = offset.checked_add(data.len() as u64).ok_or(Status::TooLarge)?;
            if i64::try_from(end).is_err() {
                return Err(Status::TooLarge);
            }
            let attr = state.get(ino)?.attr;
            match attr.kind {
                FileType::Regular => {}
                FileType::Directory => return Err(Status::IsDirectory),
                _ => return Err(Status::Invalid),
            }
            if cx.cred.uid != attr.uid {
                state.require(ino, cx.cred, W)?;
            }
            let (now, free) = (state.now(), state.capacity - state.used);
            let inode = state.get_mut(ino)?;
            let Body::File(pages) = &mut inode.body else { return Err(Status::Fault) };
            if pages.needs(offset, data.len()) > free {
                return Err(Status::NoSpace);
            }
            pages.write(offset, data);
            let (used, was) = (pages.used(), inode.attr.used);
            let set_id = if cx.cred.uid == 0 { 0 } else { 0o6000 };
            let size = inode.attr.size.max(end);
            let mode = inode.attr.mode & !set_id;
            inode.attr = Attr { mode, size, used, mtime: now, ..inode.attr };
            inode.changed(now);
            state.used += used - was;
            Ok(data.len())
        })
    }
    fn commit(&self, _: Context<'_>, file: &Handle) -> Change<()> {
        self.change(file, |state, ino| match state.get(ino)?.attr.kind {
            FileType::Regular => Ok(()),
            FileType::Directory => Err(Status::IsDirectory),
            _ => Err(Status::Invalid),
        })
    }
    fn create(&self, cx: Context<'_>, dir: &Handle, name: &[u8], how: CreateHow) -> Change<Entry> {
        let changed = self.change(dir, |state, at| {
            let name = Name::made(name)?;
            state.require(at, cx.cred, X)?;
            if let Some(ino) = state.directory(at)?.get(name.as_bytes()) {
                return self.existing(state, cx.cred, ino, how);
            }
            state.require(at, cx.cred, W)?;
            state.room_for_name()?;
            let set = match how {
                CreateHow::Unchecked(set) | CreateHow::Guarded(set) => set,
                CreateHow::Exclusive(verifier) => {
                    let (atime, mtime) = times(verifier);
                    let (atime, mtime) = (SetTime::At(atime), SetTime::At(mtime));
                    SetAttr { mode: Some(0o600), atime, mtime, ..SetAttr::default() }
                }
            };
            let mode = masked(&set, 0o644);
            let body = Body::File(Pages::default());
            let ino = state.add(body, FileType::Regular, mode, cx.cred, at);
            state.set(ino, &SetAttr { mode: None, ..set }, cx.cred)?;
            state.add_entry(at, name.as_bytes(), ino)?;
            self.entry(state, ino)
        })?;
        self.note(&changed.value, dir, name);
        Ok(changed)
    }
    fn mkdir(&self, cx: Context<'_>, dir: &Handle, name: &[u8], set: &SetAttr) -> Change<Entry> {
        self.add_name(cx, dir, name, |state, at| make_dir(state, cx.cred, at, set))
    }
    fn symlink(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
        target: &[u8],
        _: &SetAttr,
    ) -> Change<Entry> {
        self.add_name(cx, dir, name, |state, at| {
            if target.is_empty() {
                return Err(Status::Invalid);
            }
            let body = Body::Link(target.to_vec());
            Ok(state.add(body, FileType::Symlink, 0o777, cx.cred, at))
        })
    }
    fn mknod(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
        special: Special,
        set: &SetAttr,
    ) -> Change<Entry> {
        self.add_name(cx, dir, name, |state, at| {
            let device = matches!(special.kind, FileType::Block | FileType::Character);
            if !device && !matches!(special.kind, FileType::Fifo | FileType::Socket) {
                return Err(Status::BadType);
            }
            if device && cx.cred.uid != 0 {
                return Err(Status::NotOwner);
            }
            let mode = masked(set, 0o644);
            let ino = state.add(Body::Special, special.kind, mode, cx.cred, at);
            state.get_mut(ino)?.attr.rdev = if device { special.rdev } else { (0, 0) };
            Ok(ino)
        })
    }
    fn remove(&self, cx: Context<'_>, dir: &Handle, name: &[u8]) -> Change<()> {
        self.remove_name(cx, dir, name, false)
    }
    fn rmdir(&self, cx: Context<'_>, dir: &Handle, name: &[u8]) -> Change<()> {
        self.remove_name(cx, dir, name, true)
    }
    fn rename(&self, cx: Context<'_>, from: (&Handle, &[u8]), to: (&Handle, &[u8])) -> Change<Wcc> {
        let target = self.ino(to.0)?;
        let changed = self.change(from.0, |state, source| {
            let (old, new) = (Name::removed(from.1)?, Name::removed(to.1)?);
            let before = Before::from(&state.get(target)?.attr);
            let ino = rename_in(state, cx.cred, (source, &old), (target, &new))?;
            let after = Some(state.get(target)?.attr);
            let entry = self.entry(state, ino)?;
            Ok((entry, Wcc { before: Some(before), after }))
        })?;
        let (entry, wcc) = changed.value;
        self.note(&entry, to.0, to.1);
        Ok(crate::fs::Changed { value: wcc, wcc: changed.wcc, flush: changed.flush })
    }
    fn link(
        &self,
        cx: Context<'_>,
        file: &Handle,
        dir: &Handle,
        name: &[u8],
    ) -> Change<Option<Attr>> {
        let ino = self.ino(file)?;
        self.change(dir, |state, at| {
            let name = Name::made(name)?;
            state.require(at, cx.cred, W | X)?;
            if state.directory(at)?.get(name.as_bytes()).is_some() {
                return Err(Status::Exists);
            }
            state.room_for_name()?;
            let now = state.now();
            let inode = state.get_mut(ino)?;
            if inode.attr.kind == FileType::Directory {
                return Err(Status::IsDirectory);
            }
            inode.attr.nlink += 1;
            inode.changed(now);
            let attr = inode.attr;
            state.add_entry(at, name.as_bytes(), ino)?;
            Ok(Some(attr))
        })
    }
    fn list(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        cookie: u64,
        _: [u8; 8],
        plus: bool,
        each: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<ListDone> {
        let at = self.ino(dir)?;
        let state = self.read_state();
        let names = state.directory(at)?;
        state.require(at, cx.cred, R)?;
        let inode = state.get(at)?;
        let searchable = plus && state.require(at, cx.cred, X).is_ok();
        let dots = [(1, &b"."[..], at), (2, &b".."[..], inode.parent)];
        let dots = dots.into_iter().filter(|(dot, ..)| *dot > cookie);
        for (cookie, name, ino) in dots.chain(names.after(cookie)) {
            let entry = self.entry(&state, ino).ok().filter(|_| searchable);
            if let Some(entry) = &entry {
                self.note(entry, dir, name);
            }
            if !each(DirEntry { fileid: ino, name, cookie, entry, mounted: None }) {
                return Ok(ListDone { dir: inode.attr, verifier: [0; 8], eof: false });
            }
        }
        Ok(ListDone { dir: inode.attr, verifier: [0; 8], eof: true })
    }
    fn features(&self) -> Features {
        Features { xattrs: true, acls: false, sparse: true, allocate: true, clone: false }
    }
    fn lookup_parent(&self, cx: Context<'_>, dir: &Handle) -> Result<Entry> {
        if self.ino(dir)? == ROOT {
            return Err(Status::NotFound);
        }
        self.lookup(cx, dir, b"..").map(|(entry, _)| entry).map_err(|failed| failed.status)
    }
    fn allocate(&self, cx: Context<'_>, file: &Handle, offset: u64, len: u64) -> Change<()> {
        self.allocate_range(cx, file, offset, len)
    }
    fn deallocate(&self, cx: Context<'_>, file: &Handle, offset: u64, len: u64) -> Change<()> {
        self.deallocate_range(cx, file, offset, len)
    }
    fn seek(&self, cx: Context<'_>, file: &Handle, at: u64, what: Seek) -> Result<Option<u64>> {
        self.seek_file(cx, file, at, what)
    }
    fn copy_range(
        &self,
        cx: Context<'_>,
        from: (&Handle, u64),
        to: (&Handle, u64),
        len: u64,
    ) -> Change<u64> {
        self.copy_file_range(cx, from, to, len)
    }
    fn get_xattr(&self, cx: Context<'_>, file: &Handle, name: &[u8]) -> Result<Vec<u8>> {
        self.read_xattr(cx, file, name)
    }
    fn set_xattr(
        &self,
        cx: Context<'_>,
        file: &Handle,
        name: &[u8],
        value: &[u8],
        how: SetXattr,
    ) -> Change<()> {
        self.write_xattr(cx, file, name, value, how)
    }
    fn list_xattrs(
        &self,
        _: Context<'_>,
        file: &Handle,
        cookie: u64,
        each: &mut dyn FnMut(&[u8], u64) -> bool,
    ) -> Result<bool> {
        self.xattr_names(file, cookie, each)
    }
    fn remove_xattr(&self, cx: Context<'_>, file: &Handle, name: &[u8]) -> Change<()> {
        self.delete_xattr(cx, file, name)
    }
    fn space(&self, _: Context<'_>) -> Result<Space> {
        Ok(self.read_state().space())
    }
    fn abilities(&self) -> Abilities {
        abilities()
    }
    fn path_of(&self, file: FileId) -> Option<Vec<u8>> {
        self.paths.path_of(file, self.id(&self.root))
    }
    fn watch(&self, _cx: Context<'_>, _file: &Handle) -> Result<Watch> {
        Ok(Watch::NEEDLESS)
    }
    fn retain(&self, _cx: Context<'_>, file: &Handle) -> Result<Retained> {
        Ok(Retained::by(Guard::new(self, self.ino(file)?)?))
    }
    fn describe_key(&self, key: FileKey) -> Option<FileName> {
        let attr = self.read_state().get(key.fileid).ok()?.attr;
        let handle = seal(&self.keys, key.fileid, attr.kind);
        let inode = FileName::Inode(key.fileid);
        (attr.fsid == key.fsid).then(|| self.describe(self.id(&handle)).unwrap_or(inode))
    }
}
