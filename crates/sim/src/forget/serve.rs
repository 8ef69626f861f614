//! The model behind FUSE: one method per call of the kernel, no logic of its own.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request,
    TimeOrNow, WriteFlags,
};

use super::Shared;
use super::model::{Change, InodeView, New, Result};

/// The kernel may trust nothing: every call has to arrive here.
const TTL: Duration = Duration::ZERO;
/// Inode numbers are never used twice, so one generation does.
const GENERATION: Generation = Generation(1);
/// Size that `statfs` shows, in blocks of 4 KiB: 1 TiB.
const STATFS_BLOCKS: u64 = 1 << 28;

/// The file system in the form that fuser requires.
pub struct Fuse {
    shared: Arc<Shared>,
}

impl Fuse {
    /// Serves the model in `shared`.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Counts a call and waits for the configured delay.
    fn arrive(&self) {
        self.shared.wait_while_stuck();
        self.shared.arrive(false);
        sleep(&self.shared.op_delay_ns);
    }

    /// A flush: delayed and failing as configured, and without effect if a crash came first.
    fn flushed(&self, counter: &AtomicU64, ino: INodeNo, how: Flushing) -> Result<()> {
        self.shared.wait_while_stuck();
        let epoch = self.shared.epoch.load(Relaxed);
        self.shared.arrive(true);
        sleep(&self.shared.op_delay_ns);
        counter.fetch_add(1, Relaxed);
        sleep(&self.shared.flush_delay_ns);
        let mut model = self.shared.model();
        if let Some(errno) = self.shared.refusal(true) {
            return Err(errno);
        }
        if self.shared.epoch.load(Relaxed) != epoch {
            return Err(libc::EIO);
        }
        match how {
            Flushing::Dir => model.flush_dir(ino.0),
            Flushing::File { attributes } => model.flush_file(ino.0, attributes),
            Flushing::Range { offset, length } => model.flush_range(ino.0, offset, length),
        }
    }
}

enum Flushing {
    Dir,
    File { attributes: bool },
    Range { offset: u64, length: usize },
}

fn sleep(delay_ns: &AtomicU64) {
    let ns = delay_ns.load(Relaxed);
    if ns > 0 {
        std::thread::sleep(Duration::from_nanos(ns));
    }
}

fn kind(mode: u32) -> FileType {
    match mode & libc::S_IFMT {
        libc::S_IFDIR => FileType::Directory,
        libc::S_IFLNK => FileType::Symlink,
        libc::S_IFIFO => FileType::NamedPipe,
        libc::S_IFSOCK => FileType::Socket,
        libc::S_IFBLK => FileType::BlockDevice,
        libc::S_IFCHR => FileType::CharDevice,
        _ => FileType::RegularFile,
    }
}

fn attr(seen: &InodeView) -> FileAttr {
    FileAttr {
        ino: INodeNo(seen.ino),
        size: seen.size,
        blocks: seen.blocks,
        atime: seen.attr.atime,
        mtime: seen.attr.mtime,
        ctime: seen.attr.ctime,
        crtime: seen.attr.ctime,
        kind: kind(seen.attr.mode),
        perm: (seen.attr.mode & 0o7777) as u16,
        nlink: seen.nlink,
        uid: seen.attr.uid,
        gid: seen.attr.gid,
        rdev: seen.attr.rdev,
        blksize: 4096,
        flags: 0,
    }
}

fn time(set: TimeOrNow) -> SystemTime {
    match set {
        TimeOrNow::SpecificTime(at) => at,
        TimeOrNow::Now => SystemTime::UNIX_EPOCH + Duration::from_nanos(base::clock::wall_ns()),
    }
}

fn entry(result: Result<InodeView>, reply: ReplyEntry) {
    match result {
        Ok(seen) => reply.entry(&TTL, &attr(&seen), GENERATION),
        Err(errno) => reply.error(Errno::from_i32(errno)),
    }
}

fn empty(result: Result<()>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(Errno::from_i32(errno)),
    }
}

fn new<'a>(req: &Request, mode: u32, rdev: u32, target: &'a [u8]) -> New<'a> {
    New { mode, uid: req.uid(), gid: req.gid(), rdev, target }
}

impl Filesystem for Fuse {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Handles (name_to_handle_at) that survive the kernel's forgetting an inode. A kernel
        // without it still works, with handles of the server's own kind.
        let _unsupported = config.add_capabilities(InitFlags::FUSE_EXPORT_SUPPORT);
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.arrive();
        entry(self.shared.model().lookup(parent.0, name.as_bytes()), reply);
    }

    fn forget(&self, _req: &Request, ino: INodeNo, nlookup: u64) {
        self.shared.model().forget(ino.0, nlookup);
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        self.arrive();
        match self.shared.model().see(ino.0) {
            Ok(seen) => reply.attr(&TTL, &attr(&seen)),
            Err(errno) => reply.error(Errno::from_i32(errno)),
        }
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
        self.arrive();
        let (atime, mtime) = (atime.map(time), mtime.map(time));
        let change = Change { mode, uid, gid, size, atime, mtime };
        match self.shared.model().setattr(ino.0, &change) {
            Ok(seen) => reply.attr(&TTL, &attr(&seen)),
            Err(errno) => reply.error(Errno::from_i32(errno)),
        }
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        self.arrive();
        match self.shared.model().readlink(ino.0) {
            Ok(target) => reply.data(&target),
            Err(errno) => reply.error(Errno::from_i32(errno)),
        }
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
        self.arrive();
        let new = new(req, mode, rdev, b"");
        entry(self.shared.model().make(parent.0, name.as_bytes(), &new), reply);
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
        self.arrive();
        let new = new(req, libc::S_IFDIR | (mode & 0o7777), 0, b"");
        entry(self.shared.model().make(parent.0, name.as_bytes(), &new), reply);
    }

    fn unlink(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.arrive();
        empty(self.shared.model().remove(parent.0, name.as_bytes(), false), reply);
    }

    fn rmdir(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.arrive();
        empty(self.shared.model().remove(parent.0, name.as_bytes(), true), reply);
    }

    fn symlink(
        &self,
        req: &Request,
        parent: INodeNo,
        link_name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        self.arrive();
        let new = new(req, libc::S_IFLNK | 0o777, 0, target.as_os_str().as_bytes());
        entry(self.shared.model().make(parent.0, link_name.as_bytes(), &new), reply);
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
        self.arrive();
        if !(flags - RenameFlags::RENAME_NOREPLACE).is_empty() {
            return reply.error(Errno::EINVAL);
        }
        let keep = flags.contains(RenameFlags::RENAME_NOREPLACE);
        let (from, to) = ((parent.0, name.as_bytes()), (newparent.0, newname.as_bytes()));
        empty(self.shared.model().rename(from, to, keep), reply);
    }

    fn link(
        &self,
        _req: &Request,
        ino: INodeNo,
        newparent: INodeNo,
        newname: &OsStr,
        reply: ReplyEntry,
    ) {
        self.arrive();
        entry(self.shared.model().link(ino.0, newparent.0, newname.as_bytes()), reply);
    }

    fn open(&self, _req: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        self.arrive();
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
        self.arrive();
        let result = self.shared.model().read(ino.0, offset, size as usize);
        match result {
            Ok(data) => reply.data(&data),
            Err(errno) => reply.error(Errno::from_i32(errno)),
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
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.arrive();
        self.shared.counters.writes.fetch_add(1, Relaxed);
        if let Some(errno) = self.shared.refusal(false) {
            return reply.error(Errno::from_i32(errno));
        }
        let result = self.shared.model().write(ino.0, offset, data);
        // A file opened with O_DSYNC, or a write with RWF_DSYNC.
        let result = match flags.0 & libc::O_DSYNC {
            0 => result,
            _ => result.and_then(|()| {
                let how = Flushing::Range { offset, length: data.len() };
                self.flushed(&self.shared.counters.file_flushes, ino, how)
            }),
        };
        match result {
            Ok(()) => reply.written(data.len() as u32),
            Err(errno) => reply.error(Errno::from_i32(errno)),
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
        // close(2), which makes nothing durable.
        reply.ok();
    }

    fn fsync(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        datasync: bool,
        reply: ReplyEmpty,
    ) {
        let how = Flushing::File { attributes: !datasync };
        empty(self.flushed(&self.shared.counters.file_flushes, ino, how), reply);
    }

    fn readdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        self.arrive();
        let names = match self.shared.model().list(ino.0, offset) {
            Ok(names) => names,
            Err(errno) => return reply.error(Errno::from_i32(errno)),
        };
        for (name, seen, cookie) in names {
            let ino = INodeNo(seen.ino);
            if reply.add(ino, cookie, kind(seen.attr.mode), OsStr::from_bytes(&name)) {
                break;
            }
        }
        reply.ok();
    }

    fn fsyncdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        let how = Flushing::Dir;
        empty(self.flushed(&self.shared.counters.dir_flushes, ino, how), reply);
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        self.arrive();
        let half = STATFS_BLOCKS / 2;
        reply.statfs(STATFS_BLOCKS, half, half, 1 << 20, 1 << 19, 4096, 255, 4096);
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
        self.arrive();
        let new = new(req, libc::S_IFREG | (mode & 0o7777), 0, b"");
        let made = self.shared.model().make(parent.0, name.as_bytes(), &new);
        match made {
            Ok(seen) => {
                let flags = FopenFlags::FOPEN_DIRECT_IO;
                reply.created(&TTL, &attr(&seen), GENERATION, FileHandle(0), flags);
            }
            Err(errno) => reply.error(Errno::from_i32(errno)),
        }
    }
}
