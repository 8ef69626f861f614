//! A FUSE file system that passes calls on to a directory of another one, with its inode numbers:
//! the same after each mount. Node numbers, which are what the kernel's handles hold, begin at 1
//! in each mount, as with libfuse. `f_fsid` is 0 on FUSE.

use std::collections::HashMap;
use std::ffi::{CString, OsStr};
use std::fs::{self, File, FileTimes, Metadata, OpenOptions, Permissions};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{
    DirEntryExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown, lchown, symlink,
};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags,
    RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyStatfs, ReplyWrite, Request, SessionACL, TimeOrNow, WriteFlags,
};

/// Nothing is cached: attributes come from below each time, with the inode number there.
const TTL: Duration = Duration::ZERO;
const GENERATION: Generation = Generation(0);
/// The root's node, and its inode number, as on most file systems of FUSE.
const ROOT: u64 = 1;
/// Size that `statfs` shows, in blocks of 4 KiB: 1 TiB.
const BLOCKS: u64 = 1 << 28;

/// A directory that is mounted elsewhere. Dropping it unmounts.
pub struct Through {
    path: PathBuf,
    session: Option<BackgroundSession>,
}

impl Through {
    /// Mounts `below` at `path`, with this mount source.
    ///
    /// # Errors
    /// As [`crate::forget::ForgetFs::mount`].
    pub fn mount(below: &Path, path: &Path, source: &str) -> io::Result<Self> {
        let root = Node { file: File::open(below)?, ino: ROOT, lookups: 1 };
        let nodes =
            Nodes { all: HashMap::from([(ROOT, root)]), numbers: HashMap::new(), last: ROOT };
        let mut config = Config::default();
        config.mount_options =
            vec![MountOption::FSName(source.to_owned()), MountOption::DefaultPermissions];
        config.acl = SessionACL::All;
        config.n_threads = Some(2);
        let session = fuser::spawn_mount(Fuse { nodes: Mutex::new(nodes) }, path, &config)?;
        Ok(Self { path: path.to_owned(), session: Some(session) })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Unmounts in good order.
    ///
    /// # Errors The error of the kernel, for instance that it is busy.
    pub fn unmount(mut self) -> io::Result<()> {
        self.session.take().map_or(Ok(()), BackgroundSession::umount_and_join)
    }

    /// Takes it from its path, whatever is open in it (`umount -l`); that is still answered.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn detach(mut self) -> io::Result<()> {
        detach(&self.path)?;
        // Dropped, it would unmount what is at the path by then.
        let _endless = self.session.take().map(ManuallyDrop::new);
        Ok(())
    }
}

impl Drop for Through {
    fn drop(&mut self) {
        if self.session.is_some() {
            let _gone = detach(&self.path);
        }
    }
}

fn detach(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `path` is a valid string for the length of the call.
    match unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// An inode that the kernel knows.
struct Node {
    /// `O_PATH`, but for the root.
    file: File,
    ino: u64,
    lookups: u64,
}

struct Nodes {
    all: HashMap<u64, Node>,
    /// Inode number → node number.
    numbers: HashMap<u64, u64>,
    last: u64,
}

struct Fuse {
    nodes: Mutex<Nodes>,
}

type Result<T> = std::result::Result<T, Errno>;

impl Fuse {
    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// By what this process reaches a node, whatever its name is by now.
    fn path(&self, node: INodeNo) -> Result<PathBuf> {
        let nodes = self.nodes();
        let node = nodes.all.get(&node.0).ok_or(Errno::ESTALE)?;
        Ok(PathBuf::from(format!("/proc/self/fd/{}", node.file.as_raw_fd())))
    }

    fn child(&self, dir: INodeNo, name: &OsStr) -> Result<PathBuf> {
        Ok(self.path(dir)?.join(name))
    }

    /// Attributes with the inode number of below.
    fn see(&self, node: INodeNo) -> Result<FileAttr> {
        let nodes = self.nodes();
        let node = nodes.all.get(&node.0).ok_or(Errno::ESTALE)?;
        Ok(attr(&node.file.metadata()?, node.ino))
    }

    /// The node of a name, with its number in place of the inode number, as fuser takes it.
    fn meet(&self, path: &Path) -> Result<FileAttr> {
        let flags = libc::O_PATH | libc::O_NOFOLLOW;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let meta = file.metadata()?;
        let mut nodes = self.nodes();
        let Nodes { all, numbers, last } = &mut *nodes;
        let number = *numbers.entry(meta.ino()).or_insert_with(|| {
            *last += 1;
            *last
        });
        let node = all.entry(number).or_insert(Node { file, ino: meta.ino(), lookups: 0 });
        node.lookups += 1;
        Ok(attr(&meta, number))
    }

    /// What was just made belongs to the caller.
    fn made(&self, req: &Request, path: &Path) -> Result<FileAttr> {
        lchown(path, Some(req.uid()), Some(req.gid()))?;
        self.meet(path)
    }

    fn list(&self, dir: INodeNo) -> Result<Vec<(u64, FileType, Vec<u8>)>> {
        let mut names = vec![
            (dir.0, FileType::Directory, b".".to_vec()),
            (ROOT, FileType::Directory, b"..".to_vec()),
        ];
        for entry in fs::read_dir(self.path(dir)?)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let kind = match kind {
                _ if kind.is_dir() => FileType::Directory,
                _ if kind.is_symlink() => FileType::Symlink,
                _ => FileType::RegularFile,
            };
            names.push((entry.ino(), kind, entry.file_name().as_bytes().to_vec()));
        }
        Ok(names)
    }
}

fn attr(meta: &Metadata, ino: u64) -> FileAttr {
    let kind = match meta.mode() & libc::S_IFMT {
        libc::S_IFDIR => FileType::Directory,
        libc::S_IFLNK => FileType::Symlink,
        libc::S_IFIFO => FileType::NamedPipe,
        libc::S_IFSOCK => FileType::Socket,
        _ => FileType::RegularFile,
    };
    let at = |s: i64, ns: i64| {
        SystemTime::UNIX_EPOCH + Duration::new(s.unsigned_abs(), u32::try_from(ns).unwrap_or(0))
    };
    let ctime = at(meta.ctime(), meta.ctime_nsec());
    FileAttr {
        ino: INodeNo(ino),
        size: meta.len(),
        blocks: meta.blocks(),
        atime: at(meta.atime(), meta.atime_nsec()),
        mtime: at(meta.mtime(), meta.mtime_nsec()),
        ctime,
        crtime: ctime,
        kind,
        perm: (meta.mode() & 0o7777) as u16,
        nlink: meta.nlink() as u32,
        uid: meta.uid(),
        gid: meta.gid(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

fn entry(result: Result<FileAttr>, reply: ReplyEntry) {
    match result {
        Ok(attr) => reply.entry(&TTL, &attr, GENERATION),
        Err(errno) => reply.error(errno),
    }
}

fn attributes(result: Result<FileAttr>, reply: ReplyAttr) {
    match result {
        Ok(attr) => reply.attr(&TTL, &attr),
        Err(errno) => reply.error(errno),
    }
}

fn empty(result: Result<()>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

fn time(set: TimeOrNow) -> SystemTime {
    match set {
        TimeOrNow::SpecificTime(at) => at,
        TimeOrNow::Now => SystemTime::UNIX_EPOCH + Duration::from_nanos(base::clock::wall_ns()),
    }
}

impl Filesystem for Fuse {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Handles of nodes that this mount has met can be opened.
        let _unsupported = config.add_capabilities(InitFlags::FUSE_EXPORT_SUPPORT);
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(self.child(parent, name).and_then(|path| self.meet(&path)), reply);
    }

    fn forget(&self, _req: &Request, ino: INodeNo, nlookup: u64) {
        let mut nodes = self.nodes();
        let Some(node) = nodes.all.get_mut(&ino.0) else { return };
        node.lookups = node.lookups.saturating_sub(nlookup);
        if node.lookups == 0 && ino.0 != ROOT {
            let below = node.ino;
            nodes.numbers.remove(&below);
            nodes.all.remove(&ino.0);
        }
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        attributes(self.see(ino), reply);
    }

    fn setattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let set = || {
            let path = self.path(ino)?;
            if uid.is_some() || gid.is_some() {
                chown(&path, uid, gid)?;
            }
            if let Some(mode) = mode {
                fs::set_permissions(&path, Permissions::from_mode(mode & 0o7777))?;
            }
            if let Some(size) = size {
                OpenOptions::new().write(true).open(&path)?.set_len(size)?;
            }
            let times = FileTimes::new();
            let times = atime.map_or(times, |at| times.set_accessed(time(at)));
            let times = mtime.map_or(times, |at| times.set_modified(time(at)));
            if atime.is_some() || mtime.is_some() {
                File::open(&path)?.set_times(times)?;
            }
            self.see(ino)
        };
        attributes(set(), reply);
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        // The magic link leads to the symbolic link itself: an empty name would too.
        let nodes = self.nodes();
        let Some(node) = nodes.all.get(&ino.0) else { return reply.error(Errno::ESTALE) };
        let mut target = vec![0; libc::PATH_MAX as usize];
        let (fd, room) = (node.file.as_raw_fd(), target.len());
        // SAFETY: both strings are valid; the kernel writes at most `room` bytes into `target`.
        let n = unsafe { libc::readlinkat(fd, c"".as_ptr(), target.as_mut_ptr().cast(), room) };
        match usize::try_from(n) {
            Ok(n) => reply.data(&target[..n]),
            Err(_) => reply.error(Errno::EINVAL),
        }
    }

    fn mkdir(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let make = || {
            let path = self.child(parent, name)?;
            fs::create_dir(&path)?;
            fs::set_permissions(&path, Permissions::from_mode(mode & 0o7777))?;
            self.made(req, &path)
        };
        entry(make(), reply);
    }

    fn mknod(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let make = || {
            let path = self.child(parent, name)?;
            let text = CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from)?;
            // SAFETY: a path that ends with zero.
            if unsafe { libc::mknod(text.as_ptr(), mode, libc::dev_t::from(rdev)) } != 0 {
                return Err(io::Error::last_os_error().into());
            }
            self.made(req, &path)
        };
        entry(make(), reply);
    }

    fn unlink(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let remove = || Ok(fs::remove_file(self.child(parent, name)?)?);
        empty(remove(), reply);
    }

    fn rmdir(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let remove = || Ok(fs::remove_dir(self.child(parent, name)?)?);
        empty(remove(), reply);
    }

    fn symlink(
        &self,
        req: &Request,
        parent: INodeNo,
        link_name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let make = || {
            let path = self.child(parent, link_name)?;
            symlink(target, &path)?;
            self.made(req, &path)
        };
        entry(make(), reply);
    }

    fn rename(
        &self,
        _req: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let rename = || {
            let (from, to) = (self.child(parent, name)?, self.child(newparent, newname)?);
            match flags.contains(RenameFlags::RENAME_NOREPLACE) && fs::symlink_metadata(&to).is_ok()
            {
                true => Err(Errno::EEXIST),
                false => Ok(fs::rename(from, to)?),
            }
        };
        empty(rename(), reply);
    }

    fn link(
        &self,
        _req: &Request,
        ino: INodeNo,
        newparent: INodeNo,
        newname: &OsStr,
        reply: ReplyEntry,
    ) {
        let link = || {
            let (from, to) = (self.path(ino)?, self.child(newparent, newname)?);
            let text =
                |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from);
            let (old, new) = (text(&from)?, text(&to)?);
            let (here, flags) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
            // SAFETY: both paths are valid strings for the length of the call.
            match unsafe { libc::linkat(here, old.as_ptr(), here, new.as_ptr(), flags) } {
                0 => self.meet(&to),
                _ => Err(io::Error::last_os_error().into()),
            }
        };
        entry(link(), reply);
    }

    fn open(&self, _req: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = || {
            let mut data = vec![0; size as usize];
            let n = File::open(self.path(ino)?)?.read_at(&mut data, offset)?;
            data.truncate(n);
            Ok(data)
        };
        match read() {
            Ok(data) => reply.data(&data),
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let write = || {
            let file = OpenOptions::new().write(true).open(self.path(ino)?)?;
            Ok(file.write_all_at(data, offset)?)
        };
        match write() {
            Ok(()) => reply.written(data.len() as u32),
            Err(errno) => reply.error(errno),
        }
    }

    fn flush(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn fsync(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        let sync = || Ok(File::open(self.path(ino)?)?.sync_all()?);
        empty(sync(), reply);
    }

    fn fsyncdir(
        &self,
        req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        datasync: bool,
        reply: ReplyEmpty,
    ) {
        self.fsync(req, ino, fh, datasync, reply);
    }

    fn readdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let names = match self.list(ino) {
            Ok(names) => names,
            Err(errno) => return reply.error(errno),
        };
        for (at, (below, kind, name)) in (1u64..).zip(names).skip(offset as usize) {
            if reply.add(INodeNo(below), at, kind, OsStr::from_bytes(&name)) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        reply.statfs(BLOCKS, BLOCKS / 2, BLOCKS / 2, 1 << 20, 1 << 19, 4096, 255, 4096);
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let make = || {
            let path = self.child(parent, name)?;
            OpenOptions::new().write(true).create_new(true).mode(mode & 0o7777).open(&path)?;
            fs::set_permissions(&path, Permissions::from_mode(mode & 0o7777))?;
            self.made(req, &path)
        };
        match make() {
            Ok(attr) => {
                let flags = FopenFlags::FOPEN_DIRECT_IO;
                reply.created(&TTL, &attr, GENERATION, FileHandle(0), flags);
            }
            Err(errno) => reply.error(errno),
        }
    }
}
