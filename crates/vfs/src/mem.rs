//! A back end in memory: the same contract without a disk, for tests and for measuring what the
//! layers above cost. It never waits and has nothing to flush; it ends with the process.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use base::limits::MEM_NAMES_MAX;
use probe::op::FileId;

use crate::attr::{Attr, Before, FileType, SetAttr, SetTime, Time, Wcc};
use crate::cred::Cred;
use crate::fs::{Abilities, Change, Changed, Entry, Failed, Flush, Result, Space};
use crate::handle::Handle;
use crate::host::ids::{self, Ident, Keys, Parsed};
use crate::paths::Paths;
use crate::rights;
use crate::status::Status;

mod body;
mod extras;
mod ops;

use body::{Body, Directory};

/// Inode number of the root.
const ROOT: u64 = 1;

struct Inode {
    attr: Attr,
    body: Body,
    /// Directories that it is in, for the way up; meaningful for directories.
    parent: u64,
    /// By how many it is retained: it stays while it is, also without a name.
    retained: usize,
    /// Extended attributes of users.
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Inode {
    /// It was changed at this time, which nothing else was.
    fn changed(&mut self, now: Time) {
        self.attr.ctime = now;
        self.attr.change = now.ns();
    }
}

struct State {
    /// Of all its files: another one for each tree, so that files of two are never taken for one.
    fsid: u64,
    inodes: HashMap<u64, Inode>,
    next: u64,
    /// The last time given out: each is later than the one before.
    last: Time,
    used: u64,
    capacity: u64,
    /// Names in all directories.
    names: u64,
    names_max: u64,
}

/// A tree of files in memory.
pub struct MemFs {
    keys: Keys,
    state: Arc<RwLock<State>>,
    paths: Paths,
    root: Handle,
}

impl MemFs {
    /// An empty tree of at most `capacity` bytes with a world-writable root. `tag` is the share's
    /// ([`crate::share::tag`]).
    pub fn new(tag: u32, capacity: u64) -> Arc<Self> {
        Self::bounded(tag, capacity, MEM_NAMES_MAX)
    }

    /// The same with at most `names_max` names.
    pub fn bounded(tag: u32, capacity: u64, names_max: u64) -> Arc<Self> {
        let keys = Keys::new(&[0; 32], tag, 0);
        let root = seal(&keys, ROOT, FileType::Directory);
        let mut state = State {
            fsid: 1 << 32 | u64::from(tag),
            inodes: HashMap::new(),
            next: ROOT,
            last: Time::default(),
            used: 0,
            capacity,
            names: 0,
            names_max,
        };
        let body = Body::Directory(Directory::default());
        state.add(body, FileType::Directory, 0o777, &Cred::root(), ROOT);
        Arc::new(Self { keys, state: Arc::new(RwLock::new(state)), paths: Paths::default(), root })
    }

    fn read_state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_state(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn ino(&self, handle: &Handle) -> Result<u64> {
        match self.keys.open(handle)?.ident {
            Ident::Inode { ino, .. } => Ok(ino),
            Ident::Kernel(_) => Err(Status::BadHandle),
        }
    }

    fn entry(&self, state: &State, ino: u64) -> Result<Entry> {
        let attr = state.get(ino)?.attr;
        Ok(Entry { handle: seal(&self.keys, ino, attr.kind), attr })
    }

    fn note(&self, entry: &Entry, dir: &Handle, name: &[u8]) {
        self.paths.note(ids::file_id(&entry.handle), ids::file_id(dir), name);
    }

    /// Runs a change under the lock, with the attributes of `ino` before and after.
    fn change<T>(
        &self,
        handle: &Handle,
        change: impl FnOnce(&mut State, u64) -> Result<T>,
    ) -> Change<T> {
        let ino = self.ino(handle)?;
        let mut state = self.write_state();
        let before = Before::from(&state.get(ino)?.attr);
        let outcome = change(&mut state, ino);
        let after = state.get(ino).ok().map(|inode| inode.attr);
        let wcc = Wcc { before: Some(before), after };
        match outcome {
            Ok(value) => Ok(Changed { value, wcc, flush: Flush::NONE }),
            Err(status) => Err(Failed { status, wcc }),
        }
    }

    fn id(&self, handle: &Handle) -> FileId {
        if ids::tag_of(handle) == ids::tag_of(&self.root) { ids::file_id(handle) } else { 0 }
    }
}

/// Retains a file as long as it lives.
struct Guard {
    state: Arc<RwLock<State>>,
    ino: u64,
}

impl Guard {
    fn new(fs: &MemFs, ino: u64) -> Result<Self> {
        fs.write_state().get_mut(ino)?.retained += 1;
        Ok(Self { state: Arc::clone(&fs.state), ino })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let Ok(inode) = state.get_mut(self.ino) else { return };
        inode.retained -= 1;
        if inode.retained == 0 && inode.attr.nlink == 0 {
            state.remove_inode(self.ino);
        }
    }
}

fn seal(keys: &Keys, ino: u64, kind: FileType) -> Handle {
    let ident = Ident::Inode { ino, birth: 0 };
    let is_dir = kind == FileType::Directory;
    // 34 bytes always fit; the fallback is a handle that nothing accepts.
    let sealed = keys.seal(&Parsed { ident, is_dir, parent: None });
    sealed.or_else(|| Handle::new(&[0])).unwrap_or_else(|| unreachable!("one byte fits"))
}

impl State {
    fn get(&self, ino: u64) -> Result<&Inode> {
        self.inodes.get(&ino).ok_or(Status::Stale)
    }

    fn get_mut(&mut self, ino: u64) -> Result<&mut Inode> {
        self.inodes.get_mut(&ino).ok_or(Status::Stale)
    }

    fn now(&mut self) -> Time {
        let ns = base::clock::wall_ns();
        let now = Time {
            sec: (ns / base::clock::NS_PER_S) as i64,
            nsec: (ns % base::clock::NS_PER_S) as u32,
        };
        let next = match self.last.nsec + 1 {
            1_000_000_000 => Time { sec: self.last.sec + 1, nsec: 0 },
            nsec => Time { sec: self.last.sec, nsec },
        };
        self.last = now.max(next);
        self.last
    }

    fn add(&mut self, body: Body, kind: FileType, mode: u32, cred: &Cred, parent: u64) -> u64 {
        let (ino, now) = (self.next, self.now());
        self.next += 1;
        let size = if let Body::Link(target) = &body { target.len() as u64 } else { 0 };
        let attr = Attr {
            kind,
            mode: mode & 0o7777,
            nlink: if kind == FileType::Directory { 2 } else { 1 },
            uid: cred.uid,
            gid: cred.gid,
            size,
            used: 0,
            rdev: (0, 0),
            fsid: self.fsid,
            fileid: ino,
            // Numbers are not used again.
            generation: 0,
            atime: now,
            mtime: now,
            ctime: now,
            // The times that are given out never repeat.
            change: now.ns(),
            birth: Some(now),
        };
        let xattrs = BTreeMap::new();
        self.inodes.insert(ino, Inode { attr, body, parent, retained: 0, xattrs });
        ino
    }

    /// Whether there is room for one more name, and a file with it.
    fn room_for_name(&self) -> Result<()> {
        if self.names < self.names_max { Ok(()) } else { Err(Status::NoSpace) }
    }

    /// Puts a name into a directory.
    fn add_entry(&mut self, dir: u64, name: &[u8], ino: u64) -> Result<()> {
        self.room_for_name()?;
        self.directory_mut(dir)?.insert(name, ino);
        self.names += 1;
        Ok(())
    }

    /// Takes a name out of a directory.
    fn drop_entry(&mut self, dir: u64, name: &[u8]) -> Result<()> {
        let gone = self.directory_mut(dir)?.remove(name);
        self.names -= u64::from(gone.is_some());
        Ok(())
    }

    fn directory(&self, ino: u64) -> Result<&Directory> {
        match &self.get(ino)?.body {
            Body::Directory(dir) => Ok(dir),
            _ => Err(Status::NotDirectory),
        }
    }

    /// The directory for a change of its names, with the new times set.
    fn directory_mut(&mut self, ino: u64) -> Result<&mut Directory> {
        let now = self.now();
        let inode = self.get_mut(ino)?;
        inode.attr.mtime = now;
        inode.changed(now);
        match &mut inode.body {
            Body::Directory(dir) => Ok(dir),
            _ => Err(Status::NotDirectory),
        }
    }

    fn require(&self, ino: u64, cred: &Cred, rwx: u32) -> Result<()> {
        let granted = rights::granted(&self.get(ino)?.attr, cred);
        if granted & rwx == rwx { Ok(()) } else { Err(Status::Access) }
    }

    /// Whether the caller may take this name out of a directory: write and search, and the
    /// sticky bit's rule.
    fn may_remove(&self, dir: u64, ino: u64, cred: &Cred) -> Result<()> {
        self.require(dir, cred, rights::W | rights::X)?;
        let (dir, file) = (&self.get(dir)?.attr, &self.get(ino)?.attr);
        if rights::sticky_permits(dir, file, cred) { Ok(()) } else { Err(Status::NotOwner) }
    }

    /// One name fewer; the last takes the file away.
    fn drop_link(&mut self, ino: u64) -> Result<()> {
        let now = self.now();
        let inode = self.get_mut(ino)?;
        inode.changed(now);
        inode.attr.nlink -= 1;
        let gone = inode.attr.nlink == 0 || inode.attr.kind == FileType::Directory;
        if gone && inode.retained == 0 {
            self.remove_inode(ino);
        }
        Ok(())
    }

    fn remove_inode(&mut self, ino: u64) {
        self.used -= self.inodes.remove(&ino).map_or(0, |inode| inode.attr.used);
    }

    fn set(&mut self, ino: u64, set: &SetAttr, cred: &Cred) -> Result<()> {
        let now = self.now();
        let attr = self.get(ino)?.attr;
        let owns = cred.uid == 0 || cred.uid == attr.uid;
        let gives = set.uid.is_some_and(|uid| uid != attr.uid)
            || set.gid.is_some_and(|gid| gid != attr.gid && !cred.in_group(gid));
        let explicit = |time| matches!(time, SetTime::At(_));
        let touches = set.atime != SetTime::Keep || set.mtime != SetTime::Keep;
        if (gives && cred.uid != 0)
            || ((set.mode.is_some() || set.uid.is_some() || set.gid.is_some()) && !owns)
            || ((explicit(set.atime) || explicit(set.mtime)) && !owns)
        {
            return Err(Status::NotOwner);
        }
        if (touches || set.size.is_some()) && !owns {
            self.require(ino, cred, rights::W)?;
        }
        if let Some(size) = set.size {
            self.resize(ino, size)?;
        }
        let inode = self.get_mut(ino)?;
        inode.changed(now);
        let attr = &mut inode.attr;
        attr.uid = set.uid.unwrap_or(attr.uid);
        attr.gid = set.gid.unwrap_or(attr.gid);
        attr.mode = set.mode.map_or(attr.mode, |mode| mode & 0o7777);
        let time = |set, old| match set {
            SetTime::Keep => old,
            SetTime::Now => now,
            SetTime::At(time) => time,
        };
        attr.atime = time(set.atime, attr.atime);
        attr.mtime = time(set.mtime, attr.mtime);
        Ok(())
    }

    fn resize(&mut self, ino: u64, size: u64) -> Result<()> {
        let now = self.now();
        let inode = self.get_mut(ino)?;
        let Body::File(file) = &mut inode.body else {
            let is_dir = inode.attr.kind == FileType::Directory;
            return Err(if is_dir { Status::IsDirectory } else { Status::Invalid });
        };
        if i64::try_from(size).is_err() {
            return Err(Status::TooLarge);
        }
        file.cut(size);
        let used = file.used();
        let freed = inode.attr.used - used;
        inode.attr = Attr { size, used, mtime: now, ..inode.attr };
        inode.changed(now);
        self.used -= freed;
        Ok(())
    }

    fn space(&self) -> Space {
        let free = self.capacity.saturating_sub(self.used);
        // Each file has a name, so no more of them fit than names do.
        let (files, free_files) = (self.names_max, self.names_max - self.names);
        Space {
            total_bytes: self.capacity,
            free_bytes: free,
            avail_bytes: free,
            total_files: files,
            free_files,
            avail_files: free_files,
        }
    }
}

fn abilities() -> Abilities {
    Abilities {
        link_max: u32::MAX,
        name_max: base::limits::NAME_MAX as u32,
        file_size_max: i64::MAX as u64,
        time_delta_ns: 1,
        chown_restricted: true,
    }
}
