//! The file system of this machine as a tree. Everything goes by descriptors: a directory is opened
//! beneath the top by a way without symbolic links (openat2(2)), an entry by its name in it.

use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use base::limits::{DSYNC_RUN_BYTES, DSYNC_TIMED_EACH, DSYNC_XATTRS_BYTES, DSYNC_XATTRS_MAX};
use wire::dsync::{Bytes, FileId, Kind, Meta, Time, Xattr};
use wire::xdr::Seq;

use super::{Keep, Names, ScannedEntry, Stamp, Tree};
use crate::error::SyncError;
use crate::guard::{Access, Guard, GuardedOpen, in_use};
use crate::index;
use crate::lends::How;
use crate::load::waits;
use crate::memory::{Reserved, RunMemory};
use crate::stop::lock;

mod names;
mod sys;

/// Mode of a file that is not complete yet: no other user may read it.
const PRIVATE: u32 = 0o600;
/// Mode of a directory that is not whole yet.
const PRIVATE_DIR: u32 = 0o700;

/// A directory of this machine with all that is below it.
pub struct HostTree {
    /// Nothing where it is not there.
    top: Option<OwnedFd>,
    is_new: bool,
    /// Whether files can be given away, and attributes of the system set.
    root: bool,
    /// How long its disk was waited for, in nanoseconds.
    waited_ns: AtomicU64,
    /// Operations, of which some are timed.
    worked: AtomicU64,
    /// Whether its file system was seen not to have files share what they have in common.
    no_sharing: AtomicBool,
    index: Option<index::Side>,
    /// See [`Tree::memory`].
    memory: Arc<RunMemory>,
    /// See [`Tree::time_step_ns`], by device; there are as many as file systems are mounted in it.
    time_steps: Mutex<HashMap<u64, u64>>,
    /// The server that shares it, if that has started the run.
    guard: Option<Arc<Guard>>,
}

/// An open file.
pub struct HostFile {
    fd: OwnedFd,
    /// Its place in the table of opens of the server that shares it.
    _held: Option<GuardedOpen>,
}

impl Deref for HostFile {
    type Target = OwnedFd;

    fn deref(&self) -> &OwnedFd {
        &self.fd
    }
}

impl From<OwnedFd> for HostFile {
    fn from(fd: OwnedFd) -> Self {
        Self { fd, _held: None }
    }
}

impl HostTree {
    /// A tree that is read.
    ///
    /// # Errors
    /// [`SyncError::Place`]: it is not there, no directory, or may not be read.
    pub fn open(place: &Path) -> Result<Self, SyncError> {
        let opened = sys::c(place.as_os_str().as_bytes())
            .and_then(|path| sys::open_path(&path, libc::O_RDONLY | libc::O_DIRECTORY));
        let top = opened.map_err(|source| SyncError::Place { place: shown(place), source })?;
        Ok(Self::new(Some(top), false))
    }

    /// A tree that would be written; nothing is made of it.
    ///
    /// # Errors
    /// As [`HostTree::open`], but it need not be there.
    pub fn open_for_dry_run(place: &Path) -> Result<Self, SyncError> {
        match Self::open(place) {
            Err(SyncError::Place { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(Self::new(None, true))
            }
            other => other,
        }
    }

    fn new(top: Option<OwnedFd>, is_new: bool) -> Self {
        let root = sys::effective_user() == 0;
        let (waited_ns, worked) = Default::default();
        let no_sharing = AtomicBool::new(false);
        let (index, guard) = (None, None);
        let (memory, time_steps) = (RunMemory::new(DSYNC_RUN_BYTES), Mutex::default());
        Self { top, is_new, root, waited_ns, worked, no_sharing, index, memory, time_steps, guard }
    }

    /// The same tree, which a server shares.
    #[must_use]
    pub fn with_guard(mut self, guard: Option<Arc<Guard>>) -> Self {
        self.guard = guard;
        self
    }

    /// Opens an existing file, unless others have it to themselves.
    fn claim(&self, entry: BorrowedFd<'_>, flags: i32, access: Access) -> io::Result<HostFile> {
        let held = self.guard.as_ref().map(|guard| guard.open(entry, access)).transpose()?;
        let fd = sys::reopen(entry, flags)?;
        // Without a server's table there is the mark of one.
        if held.is_none() && base::claim::is_marked(&fd) {
            return Err(in_use());
        }
        Ok(HostFile { fd, _held: held })
    }

    /// Has an entry lose its name for as long as the result lives, unless others rely on that.
    fn unname(&self, dir: &OwnedFd, name: &[u8]) -> io::Result<Option<HostFile>> {
        let entry = match self.entry(dir, name) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            entry => entry?,
        };
        let stat = sys::stat(entry.as_fd())?;
        let (kind, id) = (kind_of(stat.st_mode), (stat.st_dev, stat.st_ino));
        match (kind, &self.guard) {
            (Kind::FILE, Some(guard)) => {
                let held = guard.open(entry.as_fd(), Access::Remove)?;
                Ok(Some(HostFile { fd: entry, _held: Some(held) }))
            }
            (_, Some(guard)) if guard.hid(id) || guard.keeps_name(id)? => Err(in_use()),
            (Kind::FILE, None) => match sys::reopen(entry.as_fd(), libc::O_RDONLY) {
                Ok(fd) if base::claim::is_marked(&fd) => Err(in_use()),
                // What may not be read may all the same be removed.
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// The same tree, with this memory ([`Tree::memory`]).
    #[must_use]
    pub fn with_memory(mut self, memory: Arc<RunMemory>) -> Self {
        self.memory = memory;
        self
    }

    /// The same tree, of which something is kept from one run to the next.
    #[must_use]
    pub fn with_index(mut self, index: Option<index::Side>) -> Self {
        self.index = index;
        self
    }

    /// Does what may have to wait for a disk, as each file takes some of it.
    fn waits<R>(&self, work: impl FnOnce() -> R) -> R {
        if !self.worked.fetch_add(1, Ordering::Relaxed).is_multiple_of(DSYNC_TIMED_EACH) {
            return work();
        }
        let waited_ns = AtomicU64::new(0);
        let result = waits(&waited_ns, work);
        self.waited_ns.fetch_add(waited_ns.into_inner() * DSYNC_TIMED_EACH, Ordering::Relaxed);
        result
    }

    fn top(&self) -> io::Result<BorrowedFd<'_>> {
        Ok(self.top.as_ref().ok_or(io::ErrorKind::NotFound)?.as_fd())
    }

    /// A tree that is written, made if it is missing and its parent is there, and locked against
    /// another run.
    ///
    /// # Errors
    /// As [`HostTree::open`]; [`SyncError::Busy`].
    pub fn open_for_change(place: &Path) -> Result<Self, SyncError> {
        let made = std::fs::create_dir(place);
        if let Err(source) = &made
            && source.kind() != io::ErrorKind::AlreadyExists
        {
            let source = io::Error::from(source.kind());
            return Err(SyncError::Place { place: shown(place), source });
        }
        let mut tree = Self::open(place)?;
        tree.is_new = made.is_ok();
        let locked = tree.top().and_then(sys::lock);
        match locked {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Err(SyncError::Busy(shown(place))),
            // A file system without locks has no other run that would see one.
            _ => Ok(tree),
        }
    }

    fn seen(&self, fd: BorrowedFd<'_>) -> io::Result<ScannedEntry> {
        let stat = sys::stat(fd)?;
        let kind = kind_of(stat.st_mode);
        let (major, minor) = match kind {
            Kind::BLOCK | Kind::CHARACTER => sys::device_parts(stat.st_rdev),
            _ => (0, 0),
        };
        let symlink = kind == Kind::SYMLINK;
        let target = if symlink { sys::readlink(fd)? } else { Vec::new() };
        // Links have none that an ordinary program could set.
        let xattrs = if symlink { Vec::new() } else { self.xattrs(fd)? };
        let meta = Meta {
            kind,
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            size: if kind == Kind::FILE { stat.st_size as u64 } else { 0 },
            mtime: mtime(&stat),
            major,
            minor,
            target: Bytes(target),
            link: Some(FileId { device: stat.st_dev, inode: stat.st_ino }),
            xattrs: Seq(xattrs),
        };
        Ok(ScannedEntry { meta, names: stat.st_nlink, ctime_ns: ctime_ns(&stat) })
    }

    fn xattrs(&self, fd: BorrowedFd<'_>) -> io::Result<Vec<Xattr>> {
        let mut names = match sys::xattr_names(fd) {
            // A file system without them.
            Err(e) if e.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(Vec::new()),
            other => other?,
        };
        names.retain(|name| self.keeps(name));
        names.sort_unstable();
        let (mut xattrs, mut bytes) = (Vec::new(), 0);
        for name in names {
            let value = match sys::xattr(fd, &sys::c(&name)?) {
                // Gone meanwhile.
                Err(e) if e.raw_os_error() == Some(libc::ENODATA) => continue,
                other => other?,
            };
            bytes += name.len() + value.len();
            xattrs.push(Xattr { name: Bytes(name), value: Bytes(value) });
        }
        match xattrs.len() > DSYNC_XATTRS_MAX || bytes > DSYNC_XATTRS_BYTES {
            true => Err(io::Error::other("it has too many extended attributes")),
            false => Ok(xattrs),
        }
    }

    /// Whether an attribute of this name can be kept here.
    fn keeps(&self, name: &[u8]) -> bool {
        let acl = name == b"system.posix_acl_access" || name == b"system.posix_acl_default";
        // What an overlay has written for itself would break another.
        let trusted = name.starts_with(b"trusted.") && !name.starts_with(b"trusted.overlay.");
        let privileged = trusted || name == b"security.capability";
        name.starts_with(b"user.") || acl || (privileged && self.root)
    }

    fn give(&self, fd: BorrowedFd<'_>, wanted: &Meta, keep: Keep) -> io::Result<()> {
        let mut now = self.seen(fd)?.meta;
        if now.kind != wanted.kind {
            return Err(io::Error::other("its type has changed"));
        }
        // The order matters: a change of owner takes capabilities and set-user-id away, an access
        // control list changes the mode, and everything but times changes the time. What can be
        // given is given, also when something cannot.
        let mut done = Ok(());
        let mut mode = wanted.mode;
        if keep.owners && (now.uid, now.gid) != (wanted.uid, wanted.gid) {
            done = sys::chown(fd, wanted.uid, wanted.gid);
            if done.is_err() {
                // Meant for another owner.
                mode &= !0o6000;
            } else if keep.xattrs && wanted.kind != Kind::SYMLINK {
                // Without the capabilities that were there until now.
                now.xattrs = Seq(self.xattrs(fd)?);
            }
        }
        if wanted.kind != Kind::SYMLINK {
            if keep.xattrs && now.xattrs != wanted.xattrs {
                done = done.and(self.give_xattrs(fd, &now, wanted));
            }
            done = done.and(sys::chmod(fd, mode));
        }
        done.and(sys::set_mtime(fd, wanted.mtime.seconds, wanted.mtime.nanoseconds))
    }

    fn give_xattrs(&self, fd: BorrowedFd<'_>, now: &Meta, wanted: &Meta) -> io::Result<()> {
        if !self.root {
            // A process without write permission may not set attributes either, not even as the
            // owner.
            sys::chmod(fd, now.mode | PRIVATE)?;
        }
        for old in &now.xattrs.0 {
            if !wanted.xattrs.0.iter().any(|new| new.name == old.name) {
                sys::remove_xattr(fd, &sys::c(&old.name.0)?)?;
            }
        }
        for new in &wanted.xattrs.0 {
            if !now.xattrs.0.contains(new) {
                sys::set_xattr(fd, &sys::c(&new.name.0)?, &new.value.0)?;
            }
        }
        Ok(())
    }

    fn shares(&self, from: (BorrowedFd<'_>, u64), to: (BorrowedFd<'_>, u64), length: u64) -> bool {
        if self.no_sharing.load(Ordering::Relaxed) {
            return false;
        }
        match self.waits(|| sys::share_range(from, to, length)) {
            Ok(()) => true,
            // Not at these places; elsewhere it may be possible.
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => false,
            Err(_) => {
                self.no_sharing.store(true, Ordering::Relaxed);
                false
            }
        }
    }

    /// An entry, or the directory itself, without opening it for anything.
    fn entry(&self, dir: &OwnedFd, name: &[u8]) -> io::Result<OwnedFd> {
        let name = if name.is_empty() { b"." } else { name };
        sys::open_at(dir.as_fd(), &sys::c(name)?, libc::O_PATH, 0)
    }
}

/// Whether an error means that an operation is not supported here, and not that it failed.
fn cannot(error: &io::Error) -> bool {
    let known = [libc::EXDEV, libc::EOPNOTSUPP, libc::ENOSYS, libc::EINVAL, libc::ETXTBSY];
    error.raw_os_error().is_some_and(|code| known.contains(&code))
}

fn shown(place: &Path) -> String {
    place.display().to_string()
}

fn mtime(stat: &libc::stat) -> Time {
    Time { seconds: stat.st_mtime, nanoseconds: stat.st_mtime_nsec as u32 }
}

fn ctime_ns(stat: &libc::stat) -> i128 {
    i128::from(stat.st_ctime) * 1_000_000_000 + i128::from(stat.st_ctime_nsec)
}

fn kind_of(mode: u32) -> Kind {
    match mode & libc::S_IFMT {
        libc::S_IFREG => Kind::FILE,
        libc::S_IFDIR => Kind::DIRECTORY,
        libc::S_IFLNK => Kind::SYMLINK,
        libc::S_IFIFO => Kind::FIFO,
        libc::S_IFSOCK => Kind::SOCKET,
        libc::S_IFBLK => Kind::BLOCK,
        _ => Kind::CHARACTER,
    }
}

fn node_type(kind: Kind) -> io::Result<u32> {
    match kind {
        Kind::FIFO => Ok(libc::S_IFIFO),
        Kind::SOCKET => Ok(libc::S_IFSOCK),
        Kind::BLOCK => Ok(libc::S_IFBLK),
        Kind::CHARACTER => Ok(libc::S_IFCHR),
        _ => Err(io::Error::other("unknown file type")),
    }
}

impl Drop for HostTree {
    fn drop(&mut self) {
        // Closing it would leave the lock to the copy of the descriptor that a child has which
        // another thread has forked a moment ago.
        self.end();
    }
}

impl Tree for HostTree {
    type Dir = OwnedFd;
    type File = HostFile;

    fn end(&self) {
        // What is not locked is free, too.
        let _free = self.top().and_then(sys::unlock);
    }

    fn waited_ns(&self) -> u64 {
        self.waited_ns.load(Ordering::Relaxed)
    }

    fn index(&self) -> Option<&index::Side> {
        self.index.as_ref()
    }

    fn memory(&self) -> &Arc<RunMemory> {
        &self.memory
    }

    fn time_step_ns(&self, dir: &OwnedFd) -> u64 {
        let Ok(stat) = sys::stat(dir.as_fd()) else { return 1 };
        let mut known = lock(&self.time_steps);
        *known.entry(stat.st_dev).or_insert_with(|| sys::time_step_ns(dir.as_fd()))
    }

    fn dir(&self, path: &[u8]) -> io::Result<OwnedFd> {
        let path = if path.is_empty() { b"." } else { path };
        sys::open_beneath(self.top()?, &sys::c(path)?, libc::O_PATH | libc::O_DIRECTORY)
    }

    fn names(&self, dir: &OwnedFd) -> io::Result<(Vec<Vec<u8>>, Reserved)> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        let mut names = Names::new(&self.memory);
        let hidden = self.guard.as_ref().map(|guard| guard.hidden()).transpose()?;
        let hidden = hidden.unwrap_or_default();
        self.waits(|| {
            let dir = sys::open_at(dir.as_fd(), c".", flags, 0)?;
            let device = sys::stat(dir.as_fd())?.st_dev;
            if self.guard.is_none() && base::claim::is_marked(&dir) {
                return Err(in_use());
            }
            sys::names(dir, &mut |name, inode| match hidden.contains(&(device, inode)) {
                true => Ok(()),
                false => names.push(name),
            })
        })?;
        Ok(names.sorted())
    }

    fn look(&self, dir: &OwnedFd, name: &[u8]) -> io::Result<ScannedEntry> {
        let entry = self.entry(dir, name)?;
        if let Some(guard) = &self.guard {
            let stat = sys::stat(entry.as_fd())?;
            if guard.hid((stat.st_dev, stat.st_ino)) {
                return Err(io::ErrorKind::NotFound.into());
            }
        }
        self.seen(entry.as_fd())
    }

    fn open(&self, dir: &OwnedFd, name: &[u8]) -> io::Result<HostFile> {
        // Opening a FIFO or a device would do something: what it is comes first.
        let entry = self.entry(dir, name)?;
        if kind_of(sys::stat(entry.as_fd())?.st_mode) != Kind::FILE {
            return Err(io::Error::other("it is not a regular file any more"));
        }
        self.claim(entry.as_fd(), libc::O_RDONLY, Access::Read)
    }

    fn look_open(&self, file: &HostFile) -> io::Result<ScannedEntry> {
        self.seen(file.as_fd())
    }

    fn stamp(&self, file: &HostFile) -> io::Result<Stamp> {
        // Without the list of its attributes.
        let stat = sys::stat(file.as_fd())?;
        let (size, mtime) = (stat.st_size as u64, mtime(&stat));
        Ok(Stamp { ctime_ns: ctime_ns(&stat), size, mtime })
    }

    fn next_data(&self, file: &HostFile, offset: u64) -> io::Result<Option<(u64, u64)>> {
        let data = |start| Ok((start, sys::seek(file.as_fd(), start, true)?));
        match sys::seek(file.as_fd(), offset, false).and_then(data) {
            Ok(data) => Ok(Some(data)),
            // Behind the last, or it has become shorter meanwhile.
            Err(e) if e.raw_os_error() == Some(libc::ENXIO) => Ok(None),
            // A file system that does not know holes: all is data.
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
                let size = sys::stat(file.as_fd())?.st_size as u64;
                Ok((offset < size).then_some((offset, size)))
            }
            Err(e) => Err(e),
        }
    }

    fn read(&self, file: &HostFile, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.waits(|| sys::read(file.as_fd(), bytes, offset))
    }

    fn create(&self, dir: &OwnedFd, name: &[u8]) -> io::Result<HostFile> {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
        let name = sys::c(name)?;
        self.waits(|| sys::open_at(dir.as_fd(), &name, flags, PRIVATE)).map(HostFile::from)
    }

    fn take_up(&self, dir: &OwnedFd, name: &[u8]) -> io::Result<HostFile> {
        let entry = self.entry(dir, name)?;
        let stat = sys::stat(entry.as_fd())?;
        let private = stat.st_mode & 0o7777 == PRIVATE && stat.st_uid == sys::effective_user();
        if kind_of(stat.st_mode) != Kind::FILE || !private || stat.st_nlink != 1 {
            return Err(io::Error::other("it is not a leftover of a run"));
        }
        self.claim(entry.as_fd(), libc::O_RDWR, Access::Write)
    }

    fn open_in_place(&self, dir: &OwnedFd, name: &[u8], file: &FileId) -> io::Result<HostFile> {
        let entry = self.entry(dir, name)?;
        let stat = sys::stat(entry.as_fd())?;
        let same = (stat.st_dev, stat.st_ino) == (file.device, file.inode);
        if kind_of(stat.st_mode) != Kind::FILE || !same || stat.st_nlink != 1 {
            return Err(io::Error::other("the file was replaced"));
        }
        self.claim(entry.as_fd(), libc::O_RDWR, Access::Write)
    }

    fn restrict(&self, file: &HostFile, mode: u32) -> io::Result<()> {
        let now = sys::stat(file.as_fd())?.st_mode & 0o7777;
        let less = now & mode & 0o777;
        if now == less { Ok(()) } else { sys::chmod(file.as_fd(), less) }
    }

    fn cut(&self, file: &HostFile, kept: u64, size: u64) -> io::Result<()> {
        sys::truncate(file.as_fd(), kept.min(size))?;
        sys::truncate(file.as_fd(), size)
    }

    fn write(&self, file: &HostFile, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let done = self.waits(|| sys::write(file.as_fd(), bytes, offset))?;
            bytes = bytes.get(done..).filter(|_| done > 0).ok_or(io::ErrorKind::WriteZero)?;
            offset += done as u64;
        }
        Ok(())
    }

    fn room(&self, dir: &OwnedFd) -> io::Result<u64> {
        self.waits(|| sys::room(dir.as_fd()))
    }

    fn punch(&self, file: &HostFile, offset: u64, length: u64) -> io::Result<()> {
        self.waits(|| sys::punch(file.as_fd(), offset, length))
    }

    fn lend(&self, file: &HostFile) -> io::Result<Option<OwnedFd>> {
        file.try_clone().map(Some)
    }

    fn borrow(
        &self,
        from: &OwnedFd,
        to: &HostFile,
        offset: u64,
        length: u64,
    ) -> io::Result<Option<How>> {
        if self.shares((from.as_fd(), offset), (to.as_fd(), offset), length) {
            return Ok(Some(How::Cloned));
        }
        let mut done = 0;
        while done < length {
            let (from, to, at) = (from.as_fd(), to.as_fd(), offset + done);
            match self.waits(|| sys::copy_range(from, to, at, length - done)) {
                // It has become shorter, which is seen when its bytes are read.
                Ok(0) => return Ok(None),
                Ok(n) => done += n as u64,
                // Between file systems, or not on this one.
                Err(e) if cannot(&e) => return Ok(None),
                Err(e) => return Err(e),
            }
        }
        Ok(Some(How::Copied))
    }

    fn share(&self, from: (&HostFile, u64), to: (&HostFile, u64), length: u64) -> bool {
        self.shares((from.0.as_fd(), from.1), (to.0.as_fd(), to.1), length)
    }

    fn set_open(&self, file: &HostFile, wanted: &Meta, keep: Keep) -> io::Result<()> {
        self.waits(|| self.give(file.as_fd(), wanted, keep))
    }

    fn set(&self, dir: &OwnedFd, name: &[u8], wanted: &Meta, keep: Keep) -> io::Result<()> {
        self.give(self.entry(dir, name)?.as_fd(), wanted, keep)
    }

    fn enable(&self, dir: &OwnedFd, name: &[u8]) -> io::Result<bool> {
        let entry = self.entry(dir, name)?;
        let stat = sys::stat(entry.as_fd())?;
        let lacks = stat.st_mode & PRIVATE_DIR != PRIVATE_DIR;
        let directory = kind_of(stat.st_mode) == Kind::DIRECTORY;
        let needed = lacks && directory && !self.root && stat.st_uid == sys::effective_user();
        if needed {
            sys::chmod(entry.as_fd(), stat.st_mode & 0o7777 | PRIVATE_DIR)?;
        }
        Ok(needed)
    }

    fn make_dir(&self, dir: &OwnedFd, name: &[u8]) -> io::Result<()> {
        sys::mkdir(dir.as_fd(), &sys::c(name)?, PRIVATE_DIR)
    }

    fn make_node(&self, dir: &OwnedFd, name: &[u8], meta: &Meta) -> io::Result<()> {
        let name: CString = sys::c(name)?;
        if meta.kind == Kind::SYMLINK {
            return sys::symlink(&sys::c(&meta.target.0)?, dir.as_fd(), &name);
        }
        let mode = node_type(meta.kind)? | PRIVATE;
        sys::mknod(dir.as_fd(), &name, mode, (meta.major, meta.minor))
    }

    fn link(&self, file: (&OwnedFd, &[u8]), to: (&OwnedFd, &[u8])) -> io::Result<()> {
        let (from, new) = (sys::c(file.1)?, sys::c(to.1)?);
        sys::link((file.0.as_fd(), &from), (to.0.as_fd(), &new))
    }

    fn rename(&self, dir: &OwnedFd, from: &[u8], to: &[u8]) -> io::Result<()> {
        let _held = self.unname(dir, to)?;
        let (from, to) = (sys::c(from)?, sys::c(to)?);
        self.waits(|| sys::rename(dir.as_fd(), &from, &to))
    }

    fn remove(&self, dir: &OwnedFd, name: &[u8], kind: Kind) -> io::Result<()> {
        let _held = self.unname(dir, name)?;
        sys::unlink(dir.as_fd(), &sys::c(name)?, kind == Kind::DIRECTORY)
    }

    fn flush(&self) -> io::Result<()> {
        let top = self.top()?;
        waits(&self.waited_ns, || sys::sync_all(top))
    }

    fn is_new(&self) -> bool {
        self.is_new
    }

    fn may_own(&self) -> bool {
        self.root
    }

    fn owner_name(&self, group: bool, number: u32) -> Option<Vec<u8>> {
        names::of(group, number)
    }

    fn owner_number(&self, group: bool, name: &[u8]) -> Option<u32> {
        names::number(group, name).ok().flatten()
    }

    fn prune(&self, meta: &mut Meta) {
        meta.xattrs.0.retain(|x| self.keeps(&x.name.0));
    }
}

#[cfg(test)]
mod tests;
