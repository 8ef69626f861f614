//! The pure part: inodes with a state in memory and a state on disk, and the calls on them.
//!
//! Errors are `errno` values. Rights are the kernel's business (`default_permissions`).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use libc::{EEXIST, EINVAL, EISDIR, ENAMETOOLONG, ENOENT, ENOTDIR, ENOTEMPTY, ESTALE};

/// Outcome of a call: an `errno` when it fails.
pub type Result<T> = std::result::Result<T, i32>;

/// The root directory's inode number.
pub const ROOT: u64 = 1;
/// Bytes of a block, the unit in which data becomes durable.
const BLOCK: usize = 4096;
/// Longest name.
const NAME_MAX: usize = 255;
/// First cookie of a directory; those below stand for `.` and `..`.
const COOKIE_FIRST: u64 = 3;
/// Mode of a file with attributes that were never flushed.
const MODE_LOST: u32 = 0o600;

type Block = Arc<[u8; BLOCK]>;

/// Attributes that a flush brings to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attr {
    /// Type and permission bits, as `st_mode`.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number.
    pub rdev: u32,
    /// Last access.
    pub atime: SystemTime,
    /// Last change of data.
    pub mtime: SystemTime,
    /// Last change of attributes.
    pub ctime: SystemTime,
}

/// Changes to attributes; what is `None` stays.
#[derive(Debug, Default, Clone, Copy)]
pub struct Change {
    /// Permission bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Size of a file.
    pub size: Option<u64>,
    /// Last access.
    pub atime: Option<SystemTime>,
    /// Last change of data.
    pub mtime: Option<SystemTime>,
}

/// What a caller sees of an inode.
#[derive(Debug, Clone, Copy)]
pub struct InodeView {
    /// Inode number.
    pub ino: u64,
    /// Attributes.
    pub attr: Attr,
    /// Bytes.
    pub size: u64,
    /// Blocks of 512 bytes.
    pub blocks: u64,
    /// Names.
    pub nlink: u32,
}

/// A new inode: its attributes, its owner, and the target of a symbolic link.
#[derive(Debug, Clone)]
pub struct New<'a> {
    /// Type and permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number.
    pub rdev: u32,
    /// Target, for a symbolic link.
    pub target: &'a [u8],
}

#[derive(Debug, Clone, Default)]
struct Data {
    size: u64,
    blocks: BTreeMap<u64, Block>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    ino: u64,
    cookie: u64,
}

#[derive(Debug, Clone, Default)]
struct Names {
    by_name: BTreeMap<Vec<u8>, Slot>,
    by_cookie: BTreeMap<u64, Vec<u8>>,
}

impl Names {
    fn set(&mut self, name: &[u8], slot: Option<Slot>) {
        if let Some(old) = self.by_name.remove(name) {
            self.by_cookie.remove(&old.cookie);
        }
        if let Some(slot) = slot {
            self.by_name.insert(name.to_vec(), slot);
            self.by_cookie.insert(slot.cookie, name.to_vec());
        }
    }
}

#[derive(Debug, Clone)]
enum Body {
    File(Data),
    Dir(Names),
    Link(Vec<u8>),
    Special,
}

#[derive(Debug, Clone)]
struct State {
    attr: Attr,
    body: Body,
}

#[derive(Debug, Clone)]
struct Inode {
    now: State,
    /// Attributes as it was made with: the inode as a whole is written when it is first flushed.
    born: Attr,
    disk: Option<State>,
    dirty_blocks: BTreeSet<u64>,
    dirty_names: BTreeSet<Vec<u8>>,
    parent: u64,
    next_cookie: u64,
    nlink: u32,
    /// Names on disk that lead here.
    disk_links: u32,
    /// References that the kernel holds.
    lookups: u64,
}

/// The whole file system.
#[derive(Debug, Clone)]
pub struct Model {
    inodes: HashMap<u64, Inode>,
    next_ino: u64,
}

impl Default for Model {
    fn default() -> Self {
        let new = New { mode: libc::S_IFDIR | 0o755, uid: 0, gid: 0, rdev: 0, target: b"" };
        let mut root = Inode::new(&new, ROOT);
        root.disk = Some(root.now.clone());
        root.nlink = 2;
        Self { inodes: HashMap::from([(ROOT, root)]), next_ino: ROOT + 1 }
    }
}

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(base::clock::wall_ns())
}

impl Inode {
    fn new(new: &New<'_>, parent: u64) -> Self {
        let at = now();
        let body = match new.mode & libc::S_IFMT {
            libc::S_IFREG => Body::File(Data::default()),
            libc::S_IFDIR => Body::Dir(Names::default()),
            libc::S_IFLNK => Body::Link(new.target.to_vec()),
            _ => Body::Special,
        };
        let (mode, uid, gid, rdev) = (new.mode, new.uid, new.gid, new.rdev);
        let attr = Attr { mode, uid, gid, rdev, atime: at, mtime: at, ctime: at };
        Self {
            now: State { attr, body },
            born: attr,
            disk: None,
            dirty_blocks: BTreeSet::new(),
            dirty_names: BTreeSet::new(),
            parent,
            next_cookie: COOKIE_FIRST,
            nlink: 0,
            disk_links: 0,
            lookups: 0,
        }
    }

    fn is_dir(&self) -> bool {
        matches!(self.now.body, Body::Dir(_))
    }

    fn names(&self) -> Result<&Names> {
        if let Body::Dir(names) = &self.now.body { Ok(names) } else { Err(ENOTDIR) }
    }

    fn data(&self) -> Result<&Data> {
        match &self.now.body {
            Body::File(data) => Ok(data),
            Body::Dir(_) => Err(EISDIR),
            _ => Err(EINVAL),
        }
    }

    fn touch(&mut self) {
        self.now.attr.ctime = now();
        self.now.attr.mtime = self.now.attr.ctime;
    }

    /// State after a crash of an inode that never reached the disk.
    fn lost(&self) -> State {
        let mut attr = self.now.attr;
        attr.mode = (attr.mode & libc::S_IFMT) | MODE_LOST;
        (attr.uid, attr.gid) = (0, 0);
        (attr.atime, attr.mtime) = (SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH);
        let body = match &self.now.body {
            Body::File(_) => Body::File(Data::default()),
            Body::Dir(_) => Body::Dir(Names::default()),
            other => other.clone(),
        };
        State { attr, body }
    }
}

impl Model {
    fn get(&self, ino: u64) -> Result<&Inode> {
        self.inodes.get(&ino).ok_or(ESTALE)
    }

    fn get_mut(&mut self, ino: u64) -> Result<&mut Inode> {
        self.inodes.get_mut(&ino).ok_or(ESTALE)
    }

    fn child(&self, dir: u64, name: &[u8]) -> Result<Option<u64>> {
        Ok(self.get(dir)?.names()?.by_name.get(name).map(|slot| slot.ino))
    }

    /// Attributes.
    pub fn see(&self, ino: u64) -> Result<InodeView> {
        let inode = self.get(ino)?;
        let (size, blocks) = match &inode.now.body {
            Body::File(data) => (data.size, data.blocks.len() as u64 * 8),
            Body::Dir(names) => (names.by_name.len() as u64 * 32, 8),
            Body::Link(target) => (target.len() as u64, 0),
            Body::Special => (0, 0),
        };
        Ok(InodeView { ino, attr: inode.now.attr, size, blocks, nlink: inode.nlink })
    }

    /// Finds a name. `.` and `..` work too: the kernel looks them up when a handle is opened.
    pub fn lookup(&mut self, dir: u64, name: &[u8]) -> Result<InodeView> {
        let ino = match name {
            b"." => dir,
            b".." => self.get(dir)?.parent,
            _ => self.child(dir, name)?.ok_or(ENOENT)?,
        };
        if self.get(ino)?.nlink == 0 {
            return Err(ESTALE);
        }
        self.hold(ino)
    }

    fn hold(&mut self, ino: u64) -> Result<InodeView> {
        self.get_mut(ino)?.lookups += 1;
        self.see(ino)
    }

    /// The kernel dropped `count` references.
    pub fn forget(&mut self, ino: u64, count: u64) {
        if let Ok(inode) = self.get_mut(ino) {
            inode.lookups = inode.lookups.saturating_sub(count);
        }
        self.reap(ino);
    }

    /// Lets go of an inode that nothing leads to: no name, no name on disk, no user.
    fn reap(&mut self, ino: u64) {
        let gone = self
            .inodes
            .get(&ino)
            .is_some_and(|i| i.nlink == 0 && i.disk_links == 0 && i.lookups == 0);
        if gone && ino != ROOT {
            self.inodes.remove(&ino);
        }
    }

    /// Target of a symbolic link.
    pub fn readlink(&self, ino: u64) -> Result<Vec<u8>> {
        if let Body::Link(target) = &self.get(ino)?.now.body {
            Ok(target.clone())
        } else {
            Err(EINVAL)
        }
    }

    /// Makes an inode of any type under `name`.
    pub fn make(&mut self, dir: u64, name: &[u8], new: &New<'_>) -> Result<InodeView> {
        check_name(name)?;
        if self.child(dir, name)?.is_some() {
            return Err(EEXIST);
        }
        let (mut new, above) = (new.clone(), self.get(dir)?.now.attr);
        if above.mode & libc::S_ISGID != 0 {
            new.gid = above.gid;
            if new.mode & libc::S_IFMT == libc::S_IFDIR {
                new.mode |= libc::S_ISGID;
            }
        }
        let ino = self.next_ino;
        self.next_ino += 1;
        self.inodes.insert(ino, Inode::new(&new, dir));
        self.put(dir, name, Some(ino))?;
        self.hold(ino)
    }

    /// Sets or removes a name and keeps the link counts.
    fn put(&mut self, dir: u64, name: &[u8], ino: Option<u64>) -> Result<()> {
        let old = self.child(dir, name)?;
        let inode = self.get_mut(dir)?;
        let slot = ino.map(|ino| Slot { ino, cookie: inode.next_cookie });
        inode.next_cookie += 1;
        inode.touch();
        inode.dirty_names.insert(name.to_vec());
        if let Body::Dir(names) = &mut inode.now.body {
            names.set(name, slot);
        }
        if let Some(old) = old {
            self.count(old, dir, -1)?;
            self.reap(old);
        }
        if let Some(ino) = ino {
            self.count(ino, dir, 1)?;
            self.get_mut(ino)?.parent = dir;
        }
        Ok(())
    }

    /// A directory counts its name and its own `.`, and its `..` counts for the directory above.
    fn count(&mut self, ino: u64, dir: u64, by: i32) -> Result<()> {
        let inode = self.get_mut(ino)?;
        inode.now.attr.ctime = now();
        let add = |n: &mut u32, by: i32| *n = n.saturating_add_signed(by);
        if inode.is_dir() {
            add(&mut inode.nlink, 2 * by);
            add(&mut self.get_mut(dir)?.nlink, by);
        } else {
            add(&mut inode.nlink, by);
        }
        Ok(())
    }

    /// Removes a name: a directory's, if it is empty, or another's.
    pub fn remove(&mut self, dir: u64, name: &[u8], directory: bool) -> Result<()> {
        let ino = self.child(dir, name)?.ok_or(ENOENT)?;
        let inode = self.get(ino)?;
        match (directory, inode.names()) {
            (true, Err(_)) => Err(ENOTDIR),
            (false, Ok(_)) => Err(EISDIR),
            (true, Ok(names)) if !names.by_name.is_empty() => Err(ENOTEMPTY),
            _ => self.put(dir, name, None),
        }
    }

    /// Gives a file another name.
    pub fn link(&mut self, ino: u64, dir: u64, name: &[u8]) -> Result<InodeView> {
        check_name(name)?;
        if self.child(dir, name)?.is_some() {
            return Err(EEXIST);
        }
        let parent = self.get(ino)?.parent;
        self.put(dir, name, Some(ino))?;
        self.get_mut(ino)?.parent = parent;
        self.hold(ino)
    }

    /// Renames, replacing what is there unless `keep`.
    pub fn rename(&mut self, from: (u64, &[u8]), to: (u64, &[u8]), keep: bool) -> Result<()> {
        check_name(to.1)?;
        let ino = self.child(from.0, from.1)?.ok_or(ENOENT)?;
        if let Some(old) = self.child(to.0, to.1)? {
            if keep {
                return Err(EEXIST);
            }
            if old == ino {
                return Ok(());
            }
            match (self.get(ino)?.is_dir(), self.get(old)?.names()) {
                (true, Err(_)) => return Err(ENOTDIR),
                (false, Ok(_)) => return Err(EISDIR),
                (true, Ok(names)) if !names.by_name.is_empty() => return Err(ENOTEMPTY),
                _ => {}
            }
        }
        self.put(to.0, to.1, Some(ino))?;
        self.put(from.0, from.1, None)?;
        self.get_mut(ino)?.parent = to.0;
        Ok(())
    }

    /// Changes attributes.
    pub fn setattr(&mut self, ino: u64, change: &Change) -> Result<InodeView> {
        if let Some(size) = change.size {
            self.truncate(ino, size)?;
        }
        let attr = &mut self.get_mut(ino)?.now.attr;
        if let Some(mode) = change.mode {
            attr.mode = (attr.mode & libc::S_IFMT) | (mode & !libc::S_IFMT);
        }
        attr.uid = change.uid.unwrap_or(attr.uid);
        attr.gid = change.gid.unwrap_or(attr.gid);
        attr.atime = change.atime.unwrap_or(attr.atime);
        attr.mtime = change.mtime.unwrap_or(attr.mtime);
        attr.ctime = now();
        self.see(ino)
    }

    fn truncate(&mut self, ino: u64, size: u64) -> Result<()> {
        let inode = self.get_mut(ino)?;
        inode.data()?;
        inode.touch();
        let Inode { now, dirty_blocks, .. } = inode;
        let Body::File(data) = &mut now.body else { return Err(EINVAL) };
        let first_gone = size.div_ceil(BLOCK as u64);
        dirty_blocks.extend(data.blocks.split_off(&first_gone).into_keys());
        let (last, cut) = (size / BLOCK as u64, (size % BLOCK as u64) as usize);
        if cut > 0
            && let Some(block) = data.blocks.get_mut(&last)
        {
            Arc::make_mut(block)[cut..].fill(0);
            dirty_blocks.insert(last);
        }
        data.size = size;
        Ok(())
    }

    /// Reads up to `size` bytes at `offset`; fewer at the end of the file.
    pub fn read(&self, ino: u64, offset: u64, size: usize) -> Result<Vec<u8>> {
        let data = self.get(ino)?.data()?;
        let end = data.size.min(offset.saturating_add(size as u64));
        let mut out = vec![0; end.saturating_sub(offset) as usize];
        for (index, at, start, length) in pieces(offset, out.len()) {
            if let Some(block) = data.blocks.get(&index) {
                out[at..at + length].copy_from_slice(&block[start..start + length]);
            }
        }
        Ok(out)
    }

    /// Writes `bytes` at `offset`.
    pub fn write(&mut self, ino: u64, offset: u64, bytes: &[u8]) -> Result<()> {
        let inode = self.get_mut(ino)?;
        inode.data()?;
        inode.touch();
        let Inode { now, dirty_blocks, .. } = inode;
        let Body::File(data) = &mut now.body else { return Err(EINVAL) };
        for (index, at, start, length) in pieces(offset, bytes.len()) {
            let block = data.blocks.entry(index).or_insert_with(|| Arc::new([0; BLOCK]));
            Arc::make_mut(block)[start..start + length].copy_from_slice(&bytes[at..at + length]);
            dirty_blocks.insert(index);
        }
        data.size = data.size.max(offset + bytes.len() as u64);
        Ok(())
    }

    /// Names of a directory after `cookie`: name, inode, type bits and the name's own cookie.
    pub fn list(&self, dir: u64, cookie: u64) -> Result<Vec<(Vec<u8>, InodeView, u64)>> {
        let inode = self.get(dir)?;
        let mut out = Vec::new();
        for (name, ino, at) in [(&b"."[..], dir, 1), (&b".."[..], inode.parent, 2)] {
            if cookie < at {
                out.push((name.to_vec(), self.see(ino)?, at));
            }
        }
        for (at, name) in inode.names()?.by_cookie.range(cookie.max(2) + 1..).take(LIST_MAX) {
            let ino = inode.names()?.by_name.get(name).ok_or(ENOENT)?.ino;
            out.push((name.clone(), self.see(ino)?, *at));
        }
        Ok(out)
    }

    /// Brings a file to disk: data and size, and with `attributes` those too.
    pub fn flush_file(&mut self, ino: u64, attributes: bool) -> Result<()> {
        let inode = self.get_mut(ino)?;
        let first = State { attr: inode.born, ..inode.lost() };
        let disk = inode.disk.get_or_insert(first);
        if let (Body::File(now), Body::File(disk)) = (&inode.now.body, &mut disk.body) {
            for index in std::mem::take(&mut inode.dirty_blocks) {
                match now.blocks.get(&index) {
                    Some(block) => disk.blocks.insert(index, block.clone()),
                    None => disk.blocks.remove(&index),
                };
            }
            disk.size = now.size;
        }
        if attributes {
            disk.attr = inode.now.attr;
        }
        Ok(())
    }

    /// Brings a part of a file's data to disk, and the size that the file has at least with it.
    pub fn flush_range(&mut self, ino: u64, offset: u64, length: usize) -> Result<()> {
        let inode = self.get_mut(ino)?;
        let first = State { attr: inode.born, ..inode.lost() };
        let disk = inode.disk.get_or_insert(first);
        if let (Body::File(now), Body::File(disk)) = (&inode.now.body, &mut disk.body) {
            for (index, ..) in pieces(offset, length) {
                inode.dirty_blocks.remove(&index);
                match now.blocks.get(&index) {
                    Some(block) => disk.blocks.insert(index, block.clone()),
                    None => disk.blocks.remove(&index),
                };
            }
            disk.size = disk.size.max(now.size.min(offset + length as u64));
        }
        Ok(())
    }

    /// Brings a directory to disk: its names and attributes, and the links and special files in
    /// it, which nothing else could flush.
    pub fn flush_dir(&mut self, dir: u64) -> Result<()> {
        let inode = self.get_mut(dir)?;
        let lost = inode.lost();
        let disk = inode.disk.get_or_insert(lost);
        disk.attr = inode.now.attr;
        let (Body::Dir(now), Body::Dir(disk)) = (&inode.now.body, &mut disk.body) else {
            return Err(ENOTDIR);
        };
        let mut counts = Vec::new();
        for name in std::mem::take(&mut inode.dirty_names) {
            let (old, new) = (disk.by_name.get(&name).copied(), now.by_name.get(&name).copied());
            counts.extend(old.map(|slot| (slot.ino, -1)));
            counts.extend(new.map(|slot| (slot.ino, 1)));
            disk.set(&name, new);
        }
        let children: Vec<u64> = now.by_name.values().map(|slot| slot.ino).collect();
        for (ino, by) in counts {
            if let Some(inode) = self.inodes.get_mut(&ino) {
                inode.disk_links = inode.disk_links.saturating_add_signed(by);
            }
            self.reap(ino);
        }
        for ino in children {
            if let Some(child) = self.inodes.get_mut(&ino)
                && matches!(child.now.body, Body::Link(_) | Body::Special)
            {
                child.disk = Some(child.now.clone());
            }
        }
        Ok(())
    }

    /// All names as they are in memory: directory and name.
    pub fn names(&self) -> Vec<(u64, Vec<u8>)> {
        let dirs = self.inodes.iter().filter_map(|(ino, inode)| Some((*ino, inode.names().ok()?)));
        dirs.flat_map(|(ino, names)| names.by_name.keys().map(move |name| (ino, name.clone())))
            .collect()
    }

    /// Everything falls back to what is on disk; what no name on disk leads to is gone.
    pub fn crash(&mut self) {
        for inode in self.inodes.values_mut() {
            inode.now = inode.disk.clone().unwrap_or_else(|| inode.lost());
            // What is there after the crash is there for good.
            inode.disk = Some(inode.now.clone());
            inode.dirty_blocks.clear();
            inode.dirty_names.clear();
            (inode.nlink, inode.disk_links) = (0, 0);
        }
        let mut seen = HashSet::from([ROOT]);
        let mut todo = vec![ROOT];
        self.inodes.get_mut(&ROOT).into_iter().for_each(|root| root.nlink = 2);
        while let Some(dir) = todo.pop() {
            let names = self.get(dir).and_then(Inode::names);
            let children: Vec<u64> =
                names.map(|n| n.by_name.values().map(|s| s.ino).collect()).unwrap_or_default();
            for ino in children {
                let is_dir = self.get(ino).is_ok_and(Inode::is_dir);
                let _counted = self.count(ino, dir, 1);
                if let Some(inode) = self.inodes.get_mut(&ino) {
                    inode.disk_links += 1;
                    inode.parent = dir;
                    // The count above was no change that a user made.
                    inode.now.attr.ctime = inode.disk.as_ref().map_or(now(), |d| d.attr.ctime);
                }
                if seen.insert(ino) && is_dir {
                    todo.push(ino);
                }
            }
        }
        self.inodes.retain(|ino, _| seen.contains(ino));
    }
}

/// Most names of one listing call; the kernel's buffer holds fewer.
const LIST_MAX: usize = 4096;

fn check_name(name: &[u8]) -> Result<()> {
    match name {
        b"" | b"." | b".." => Err(EINVAL),
        _ if name.len() > NAME_MAX => Err(ENAMETOOLONG),
        _ => Ok(()),
    }
}

/// Splits a range into blocks: block, place in the buffer, place in the block, length.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= length {
            return None;
        }
        let position = offset + at as u64;
        let start = (position % BLOCK as u64) as usize;
        let piece = (BLOCK - start).min(length - at);
        let this = (position / BLOCK as u64, at, start, piece);
        at += piece;
        Some(this)
    })
}
