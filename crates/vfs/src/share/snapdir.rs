//! `.snapshot` in the root of a share: the way to its snapshots, for all protocols. A snapshot is a
//! tree of its own with a file system number of its own, since its files have the inode numbers of
//! the live ones; nothing in it can be changed.
//!
//! A handle has the number of its snapshot ([`Snapshots`]), and leads nowhere else: handles of the
//! live files do without it, and cost nothing here but a look at one byte. The live share never
//! shows or changes what else has the name in its root.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use probe::op::FileId;

use crate::acl::{Acl, AclKind};
use crate::attr::{Attr, FileType, SetAttr, Time, Wcc};
use crate::fs::{
    Abilities, Change, Context, CreateHow, DirEntry, Entry, Extent, Failed, Features, FileName,
    FileSystem, ListDone, ReadDone, Result, Retained, Seek, SendfileRange, SetXattr, Space,
    Special, Stable, Watch, access,
};
use crate::handle::Handle;
use crate::host::HostFs;
use crate::host::snapshots::{Snapshots, is_of_snapshot};
use crate::locks::FileKey;
use crate::share::ReadOnly;
use crate::status::Status;

mod list;

/// Its name.
pub const NAME: &[u8] = b".snapshot";
/// Its inode number, and a bit of those that snapshots have in it: file systems give lower ones.
const FILE_ID: u64 = 1 << 63;
/// Rights to change something.
const CHANGES: u32 = access::MODIFY | access::EXTEND | access::DELETE;

/// The inode number of a snapshot in the directory of all.
fn file_id_of(snapshot: u64) -> u64 {
    // It must not be that of the directory itself.
    FILE_ID | snapshot >> 1 | 1
}

/// A share with the way to its snapshots.
pub struct SnapshotDirectory {
    live: Arc<dyn FileSystem>,
    snapshots: Arc<Snapshots>,
    /// Whether the root lists it.
    visible: Arc<AtomicBool>,
}

/// Where a handle leads.
enum Tree {
    Share,
    Directory,
    /// In a snapshot.
    Snapshot(ReadOnly),
}

/// Does something where a handle leads.
macro_rules! at {
    ($self:ident, $cx:expr, $handle:expr, $fs:ident => $there:expr, $directory:expr) => {
        match $self.tree($cx, $handle)? {
            Tree::Share => {
                let $fs = &*$self.live;
                $there
            }
            Tree::Snapshot(snapshot) => {
                let $fs = &snapshot;
                $there
            }
            Tree::Directory => $directory,
        }
    };
}

impl SnapshotDirectory {
    /// The way from `live` to `snapshots`.
    pub fn new(
        live: Arc<dyn FileSystem>,
        snapshots: Arc<Snapshots>,
        visible: Arc<AtomicBool>,
    ) -> Self {
        Self { live, snapshots, visible }
    }

    fn is_visible(&self) -> bool {
        self.visible.load(Ordering::Relaxed)
    }

    #[inline]
    fn tree(&self, cx: Context<'_>, handle: &Handle) -> Result<Tree> {
        match is_of_snapshot(handle) {
            None => Ok(Tree::Share),
            Some(_) if *handle == self.snapshots.handle() => Ok(Tree::Directory),
            Some(0) => Err(Status::BadHandle),
            Some(number) => Ok(Tree::Snapshot(ReadOnly::new(self.snapshots.files(cx, number)?))),
        }
    }

    /// Whether a name is the way to the snapshots.
    #[inline]
    fn is_snapdir(&self, dir: &Handle, name: &[u8]) -> bool {
        name == NAME && *dir == self.live.root()
    }

    /// Its attributes: rights are those of the root of the share.
    fn attr(&self, cx: Context<'_>) -> Result<Attr> {
        let root = self.live.getattr(cx, &self.live.root())?;
        let time = match self.snapshots.changed(cx)? {
            Time { sec: 0, nsec: 0 } => root.birth.unwrap_or_default(),
            time => time,
        };
        Ok(Attr {
            kind: FileType::Directory,
            mode: root.mode & 0o1555,
            nlink: 2,
            size: 0,
            used: 0,
            fileid: FILE_ID,
            generation: 0,
            atime: time,
            mtime: time,
            ctime: time,
            change: time.ns(),
            birth: None,
            ..root
        })
    }

    fn entry(&self, cx: Context<'_>) -> Result<Entry> {
        Ok(Entry { handle: self.snapshots.handle(), attr: self.attr(cx)? })
    }

    fn live_root(&self, cx: Context<'_>) -> Result<Entry> {
        let handle = self.live.root();
        Ok(Entry { handle, attr: self.live.getattr(cx, &handle)? })
    }

    /// Callers without the right to search the root of the share have none here, either.
    fn check(&self, cx: Context<'_>, right: u32) -> Result<()> {
        let (granted, _) = self.live.access(cx, &self.live.root(), right)?;
        if granted & right == right { Ok(()) } else { Err(Status::Access) }
    }

    fn look_up_snapshot(&self, cx: Context<'_>, name: &[u8]) -> Result<Entry> {
        self.check(cx, access::LOOKUP)?;
        match name {
            b"." => self.entry(cx),
            b".." => self.live_root(cx),
            b"" => Err(Status::Invalid),
            name => Ok(self.snapshots.named(cx, name)?.root),
        }
    }

    /// Refuses a change in the directory of the snapshots.
    fn refuse<T>(&self, cx: Context<'_>) -> Change<T> {
        let after = Some(self.attr(cx)?);
        Err(Failed { status: Status::ReadOnly, wcc: Wcc { before: None, after } })
    }

    /// Refuses a change of the way to the snapshots.
    fn refuse_name<T>(&self, cx: Context<'_>, status: Status) -> Change<T> {
        let after = Some(self.live.getattr(cx, &self.live.root())?);
        Err(Failed { status, wcc: Wcc { before: None, after } })
    }

    fn is_live(handle: &Handle) -> bool {
        is_of_snapshot(handle).is_none()
    }

    /// Refuses to take something from one tree to another.
    fn check_same_tree(&self, cx: Context<'_>, from: &Handle) -> Result<()> {
        // A handle that is no good is that first.
        self.tree(cx, from)?;
        if Self::is_live(from) { Ok(()) } else { Err(Status::CrossDevice) }
    }
}

impl FileSystem for SnapshotDirectory {
    fn root(&self) -> Handle {
        self.live.root()
    }
    fn is_machine_root(&self) -> bool {
        self.live.is_machine_root()
    }
    fn file_id(&self, handle: &Handle) -> FileId {
        self.live.file_id(handle)
    }
    fn change_slot(&self, handle: &Handle) -> u64 {
        self.live.change_slot(handle)
    }
    fn file_key(&self, cx: Context<'_>, file: &Handle) -> Result<FileKey> {
        at!(self, cx, file, fs => fs.file_key(cx, file), Ok(FileKey::from(&self.attr(cx)?)))
    }
    fn flush_failures(&self) -> u64 {
        self.live.flush_failures()
    }
    fn whole(&self) -> Option<crate::fs::Flush> {
        self.live.whole()
    }
    fn getattr(&self, cx: Context<'_>, file: &Handle) -> Result<Attr> {
        at!(self, cx, file, fs => fs.getattr(cx, file), self.attr(cx))
    }
    fn setattr(
        &self,
        cx: Context<'_>,
        file: &Handle,
        set: &SetAttr,
        guard: Option<Time>,
    ) -> Change<()> {
        at!(self, cx, file, fs => fs.setattr(cx, file, set, guard), self.refuse(cx))
    }
    fn lookup(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
    ) -> std::result::Result<(Entry, Option<Attr>), Failed> {
        if self.is_snapdir(dir, name) {
            self.check(cx, access::LOOKUP)?;
            return Ok((self.entry(cx)?, None));
        }
        match self.tree(cx, dir)? {
            Tree::Share => self.live.lookup(cx, dir, name),
            Tree::Snapshot(_) if name == b".." && self.snapshots.is_root(dir) => {
                Ok((self.entry(cx)?, None))
            }
            Tree::Snapshot(fs) => fs.lookup(cx, dir, name),
            Tree::Directory => Ok((self.look_up_snapshot(cx, name)?, None)),
        }
    }
    fn mounted_on(&self, dir: &Handle) -> Option<u64> {
        let number = is_of_snapshot(dir)?;
        self.snapshots.is_root(dir).then(|| file_id_of(number))
    }
    fn access(&self, cx: Context<'_>, file: &Handle, want: u32) -> Result<(u32, Attr)> {
        at!(self, cx, file, fs => fs.access(cx, file, want), {
            let (granted, _) = self.live.access(cx, &self.live.root(), want & !CHANGES)?;
            Ok((granted, self.attr(cx)?))
        })
    }
    fn sticky_permits(&self, cx: Context<'_>, dir: &Handle, file: &Attr) -> Result<bool> {
        at!(self, cx, dir, fs => fs.sticky_permits(cx, dir, file), Ok(false))
    }
    fn readlink(&self, cx: Context<'_>, link: &Handle) -> Result<(Vec<u8>, Attr)> {
        at!(self, cx, link, fs => fs.readlink(cx, link), Err(Status::Invalid))
    }
    fn read(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<ReadDone> {
        at!(self, cx, file, fs => fs.read(cx, file, offset, buf), Err(Status::IsDirectory))
    }
    fn extent(&self, cx: Context<'_>, file: &Handle, offset: u64, count: usize) -> Option<Extent> {
        match self.tree(cx, file).ok()? {
            Tree::Share => self.live.extent(cx, file, offset, count),
            Tree::Snapshot(fs) => fs.extent(cx, file, offset, count),
            Tree::Directory => None,
        }
    }
    fn stretch(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        n: usize,
    ) -> Result<SendfileRange> {
        at!(self, cx, file, fs => fs.stretch(cx, file, offset, n), Err(Status::IsDirectory))
    }
    fn write(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        data: &[u8],
        stable: Stable,
    ) -> Change<usize> {
        at!(self, cx, file, fs => fs.write(cx, file, offset, data, stable), self.refuse(cx))
    }
    fn commit(&self, cx: Context<'_>, file: &Handle) -> Change<()> {
        at!(self, cx, file, fs => fs.commit(cx, file), self.refuse(cx))
    }
    fn create(&self, cx: Context<'_>, dir: &Handle, name: &[u8], how: CreateHow) -> Change<Entry> {
        if self.is_snapdir(dir, name) {
            return self.refuse_name(cx, Status::Exists);
        }
        at!(self, cx, dir, fs => fs.create(cx, dir, name, how), self.refuse(cx))
    }
    fn mkdir(&self, cx: Context<'_>, dir: &Handle, name: &[u8], set: &SetAttr) -> Change<Entry> {
        if self.is_snapdir(dir, name) {
            return self.refuse_name(cx, Status::Exists);
        }
        at!(self, cx, dir, fs => fs.mkdir(cx, dir, name, set), self.refuse(cx))
    }
    fn symlink(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
        target: &[u8],
        set: &SetAttr,
    ) -> Change<Entry> {
        if self.is_snapdir(dir, name) {
            return self.refuse_name(cx, Status::Exists);
        }
        at!(self, cx, dir, fs => fs.symlink(cx, dir, name, target, set), self.refuse(cx))
    }
    fn mknod(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
        special: Special,
        set: &SetAttr,
    ) -> Change<Entry> {
        if self.is_snapdir(dir, name) {
            return self.refuse_name(cx, Status::Exists);
        }
        at!(self, cx, dir, fs => fs.mknod(cx, dir, name, special, set), self.refuse(cx))
    }
    fn remove(&self, cx: Context<'_>, dir: &Handle, name: &[u8]) -> Change<()> {
        if self.is_snapdir(dir, name) {
            return self.refuse_name(cx, Status::ReadOnly);
        }
        at!(self, cx, dir, fs => fs.remove(cx, dir, name), self.refuse(cx))
    }
    fn rmdir(&self, cx: Context<'_>, dir: &Handle, name: &[u8]) -> Change<()> {
        if self.is_snapdir(dir, name) {
            return self.refuse_name(cx, Status::ReadOnly);
        }
        at!(self, cx, dir, fs => fs.rmdir(cx, dir, name), self.refuse(cx))
    }
    fn rename(&self, cx: Context<'_>, from: (&Handle, &[u8]), to: (&Handle, &[u8])) -> Change<Wcc> {
        if self.is_snapdir(from.0, from.1) || self.is_snapdir(to.0, to.1) {
            return self.refuse_name(cx, Status::ReadOnly);
        }
        if let Tree::Share = self.tree(cx, from.0)?
            && !Self::is_live(to.0)
        {
            self.tree(cx, to.0)?;
            return Err(Status::ReadOnly.into());
        }
        at!(self, cx, from.0, fs => fs.rename(cx, from, to), self.refuse(cx))
    }
    fn link(
        &self,
        cx: Context<'_>,
        file: &Handle,
        dir: &Handle,
        name: &[u8],
    ) -> Change<Option<Attr>> {
        if self.is_snapdir(dir, name) {
            return self.refuse_name(cx, Status::Exists);
        }
        if Self::is_live(dir) {
            self.check_same_tree(cx, file)?;
        }
        at!(self, cx, dir, fs => fs.link(cx, file, dir, name), self.refuse(cx))
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
        match self.tree(cx, dir)? {
            Tree::Share if *dir == self.live.root() => {
                self.list_root(cx, (cookie, verifier), plus, each)
            }
            Tree::Share => self.live.list(cx, dir, cookie, verifier, plus, each),
            Tree::Snapshot(fs) if self.snapshots.is_root(dir) => {
                self.list_snapshot(cx, (&fs, dir), (cookie, verifier), plus, each)
            }
            Tree::Snapshot(fs) => fs.list(cx, dir, cookie, verifier, plus, each),
            Tree::Directory => self.list_snapshots(cx, cookie, plus, each),
        }
    }
    fn features(&self) -> Features {
        self.live.features()
    }
    fn lookup_parent(&self, cx: Context<'_>, dir: &Handle) -> Result<Entry> {
        match self.tree(cx, dir)? {
            Tree::Share => self.live.lookup_parent(cx, dir),
            Tree::Snapshot(_) if self.snapshots.is_root(dir) => self.entry(cx),
            Tree::Snapshot(fs) => fs.lookup_parent(cx, dir),
            Tree::Directory => self.live_root(cx),
        }
    }
    fn ancestors(&self, cx: Context<'_>, dir: &Handle) -> Result<Vec<FileKey>> {
        let mut keys = match self.tree(cx, dir)? {
            Tree::Share => return self.live.ancestors(cx, dir),
            Tree::Snapshot(fs) => fs.ancestors(cx, dir)?,
            Tree::Directory => Vec::new(),
        };
        keys.push(FileKey::from(&self.attr(cx)?));
        keys.extend(self.live.ancestors(cx, &self.live.root())?);
        Ok(keys)
    }
    fn allocate(&self, cx: Context<'_>, file: &Handle, offset: u64, len: u64) -> Change<()> {
        at!(self, cx, file, fs => fs.allocate(cx, file, offset, len), self.refuse(cx))
    }
    fn deallocate(&self, cx: Context<'_>, file: &Handle, offset: u64, len: u64) -> Change<()> {
        at!(self, cx, file, fs => fs.deallocate(cx, file, offset, len), self.refuse(cx))
    }
    fn seek(&self, cx: Context<'_>, file: &Handle, at: u64, what: Seek) -> Result<Option<u64>> {
        at!(self, cx, file, fs => fs.seek(cx, file, at, what), Err(Status::IsDirectory))
    }
    fn copy_range(
        &self,
        cx: Context<'_>,
        from: (&Handle, u64),
        to: (&Handle, u64),
        len: u64,
    ) -> Change<u64> {
        if Self::is_live(to.0) {
            self.check_same_tree(cx, from.0)?;
        }
        at!(self, cx, to.0, fs => fs.copy_range(cx, from, to, len), self.refuse(cx))
    }
    fn clone_range(
        &self,
        cx: Context<'_>,
        from: (&Handle, u64),
        to: (&Handle, u64),
        len: u64,
    ) -> Change<()> {
        if Self::is_live(to.0) {
            self.check_same_tree(cx, from.0)?;
        }
        at!(self, cx, to.0, fs => fs.clone_range(cx, from, to, len), self.refuse(cx))
    }
    fn get_xattr(&self, cx: Context<'_>, file: &Handle, name: &[u8]) -> Result<Vec<u8>> {
        at!(self, cx, file, fs => fs.get_xattr(cx, file, name), Err(Status::NotFound))
    }
    fn get_xattr_at(
        &self,
        cx: Context<'_>,
        (dir, entry): (&Handle, &[u8]),
        name: &[u8],
    ) -> Result<Vec<u8>> {
        if self.is_snapdir(dir, entry) {
            return Err(Status::NotFound);
        }
        at!(self, cx, dir, fs => fs.get_xattr_at(cx, (dir, entry), name), Err(Status::NotFound))
    }
    fn get_xattrs_at(
        &self,
        cx: Context<'_>,
        (dir, entries): (&Handle, &[&[u8]]),
        name: &[u8],
        each: &mut dyn FnMut(Result<Vec<u8>>) -> bool,
    ) -> Result<()> {
        let of_root = *dir == self.live.root() && entries.contains(&NAME);
        match self.tree(cx, dir)? {
            Tree::Share if !of_root => self.live.get_xattrs_at(cx, (dir, entries), name, each),
            Tree::Snapshot(fs) => fs.get_xattrs_at(cx, (dir, entries), name, each),
            _ => {
                for &entry in entries {
                    if !each(self.get_xattr_at(cx, (dir, entry), name)) {
                        break;
                    }
                }
                Ok(())
            }
        }
    }
    fn set_xattr(
        &self,
        cx: Context<'_>,
        file: &Handle,
        name: &[u8],
        value: &[u8],
        how: SetXattr,
    ) -> Change<()> {
        at!(self, cx, file, fs => fs.set_xattr(cx, file, name, value, how), self.refuse(cx))
    }
    fn list_xattrs(
        &self,
        cx: Context<'_>,
        file: &Handle,
        cookie: u64,
        each: &mut dyn FnMut(&[u8], u64) -> bool,
    ) -> Result<bool> {
        at!(self, cx, file, fs => fs.list_xattrs(cx, file, cookie, each), Ok(true))
    }
    fn remove_xattr(&self, cx: Context<'_>, file: &Handle, name: &[u8]) -> Change<()> {
        at!(self, cx, file, fs => fs.remove_xattr(cx, file, name), self.refuse(cx))
    }
    fn get_acl(&self, cx: Context<'_>, file: &Handle, which: AclKind) -> Result<Option<Acl>> {
        at!(self, cx, file, fs => fs.get_acl(cx, file, which), Ok(None))
    }
    fn set_acl(
        &self,
        cx: Context<'_>,
        file: &Handle,
        which: AclKind,
        acl: Option<&Acl>,
    ) -> Change<()> {
        at!(self, cx, file, fs => fs.set_acl(cx, file, which, acl), self.refuse(cx))
    }
    fn space(&self, cx: Context<'_>) -> Result<Space> {
        self.live.space(cx)
    }
    fn abilities(&self) -> Abilities {
        self.live.abilities()
    }
    fn path_of(&self, file: FileId) -> Option<Vec<u8>> {
        if file == self.live.file_id(&self.snapshots.handle()) {
            return Some(NAME.to_vec());
        }
        let path =
            |(name, files): (Vec<u8>, Arc<HostFs>)| Some(below(&name, &files.path_of(file)?));
        self.live.path_of(file).or_else(|| self.snapshots.all_open().into_iter().find_map(path))
    }
    fn describe(&self, file: FileId) -> Option<FileName> {
        // A name is better than a number.
        self.path_of(file).map(FileName::Path).or_else(|| self.live.describe(file))
    }
    fn watch(&self, cx: Context<'_>, file: &Handle) -> Result<Watch> {
        match self.tree(cx, file)? {
            Tree::Share => self.live.watch(cx, file),
            // It never changes.
            Tree::Snapshot(_) => Ok(Watch::NEEDLESS),
            Tree::Directory => Err(Status::NotSupported),
        }
    }
    fn retain(&self, cx: Context<'_>, file: &Handle) -> Result<Retained> {
        at!(self, cx, file, fs => fs.retain(cx, file), Err(Status::NotSupported))
    }
    fn describe_key(&self, key: FileKey) -> Option<FileName> {
        let named = |(name, files): (Vec<u8>, Arc<HostFs>)| {
            Some(match files.describe_key(key)? {
                FileName::Path(path) => FileName::Path(below(&name, &path)),
                other => other,
            })
        };
        let in_snapshot = || self.snapshots.all_open().into_iter().find_map(named);
        self.live.describe_key(key).or_else(in_snapshot)
    }
}

/// The path of a file of a snapshot.
fn below(snapshot: &[u8], path: &[u8]) -> Vec<u8> {
    [NAME, snapshot, path].join(&b'/')
}
