//! The file contract. Handlers are plain synchronous functions over it.
//!
//! Every method takes a [`Context`]. With [`Context::may_block`] false the method is an *inline
//! attempt* on a connection's own thread: it must answer from memory without waiting, or return
//! [`Status::WouldBlock`] having changed nothing. With `may_block` true it runs on a pool thread.
//!
//! A method that changed something returns what must reach the disk before the reply may leave, as
//! a [`Flush`]. The caller hands it to the flush group, which calls [`Durable::flush`] off the path
//! (one flush serves many callers); the methods themselves never flush.

pub(crate) mod layer;

use std::any::Any;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use base::limits::ANCESTORS_MAX;

pub use crate::access;
use crate::acl::{Acl, AclKind};
use crate::attr::{Attr, FileType, SetAttr, Wcc};
use crate::cred::Cred;
use crate::handle::Handle;
use crate::locks::FileKey;
use crate::mapped::Slice;
use crate::rights;
pub use crate::status::Result;
use crate::status::Status;

/// The caller of an operation, and whether the operation may block.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The caller.
    pub cred: &'a Cred,
    /// False on a connection's thread: answer from memory or return `WouldBlock`.
    pub may_block: bool,
}

/// A file is looked after as long as this lives: [`FileSystem::watch`].
pub struct Watch {
    guard: Option<Box<dyn Any + Send + Sync>>,
}

impl Watch {
    /// Only this server can change the file.
    pub const NEEDLESS: Self = Self { guard: None };

    /// Watched until `guard` is dropped.
    pub fn by(guard: impl Any + Send + Sync) -> Self {
        Self { guard: Some(Box::new(guard)) }
    }

    /// Whether changes are seen by whatever looks after the file, those of this server, too.
    pub const fn sees_changes(&self) -> bool {
        self.guard.is_some()
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// A file is retained as long as this lives: [`FileSystem::retain`].
pub struct Retained {
    _guard: Box<dyn Any + Send + Sync>,
}

impl Retained {
    /// Retained until `guard` is dropped.
    pub fn by(guard: impl Any + Send + Sync) -> Self {
        Self { _guard: Box::new(guard) }
    }
}

/// Retains a file that is opened, if that can be done: beyond the budget of descriptors, and where
/// the file system cannot, an open is as good as the file's last name.
///
/// # Errors
/// [`Status::Stale`] if it is gone; [`Status::WouldBlock`].
pub fn retain_if_possible(
    fs: &dyn FileSystem,
    cx: Context<'_>,
    file: &Handle,
) -> Result<Option<Retained>> {
    match fs.retain(cx, file) {
        Ok(retained) => Ok(Some(retained)),
        Err(status @ (Status::Stale | Status::WouldBlock)) => Err(status),
        Err(_) => Ok(None),
    }
}

impl std::fmt::Debug for Retained {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Retained").finish_non_exhaustive()
    }
}

/// A file found or made.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its handle.
    pub handle: Handle,
    /// Its attributes.
    pub attr: Attr,
}

/// How a regular file is made (RFC 1813 §3.3.8).
#[derive(Debug, Clone, Copy)]
pub enum CreateHow {
    /// Take an existing file as it is, but for the size if one is given.
    Unchecked(SetAttr),
    /// Fail if the name exists.
    Guarded(SetAttr),
    /// Make it once: a second call with the same verifier finds the file of the first.
    Exclusive([u8; 8]),
}

/// A special file to make.
#[derive(Debug, Clone, Copy)]
pub struct Special {
    /// Fifo, socket, block or character device.
    pub kind: FileType,
    /// Major and minor, for devices.
    pub rdev: (u32, u32),
}

/// Something that a flush must bring to disk. Back ends define what is behind it; two that concern
/// the same file or directory have the same `key`, so that one flush can serve both.
pub trait Durable: Send + Sync {
    /// Same key, same flush.
    fn key(&self) -> u64;
    /// Brings everything that was done to it before this call to stable storage.
    fn flush(&self) -> Result<()>;
    /// The outcome of a flush for this target, which existed before the flush started: its own
    /// flush or that of another target with the same key. Must be called after every flush: a
    /// target that has lost data in an earlier, failed flush returns an error here.
    fn covered(&self, outcome: Result<()>) -> Result<()> {
        outcome
    }
}

/// What must be on disk before a reply may leave: some files and directories, in this order
/// (file before the directory that names it). Empty when nothing has to be.
#[derive(Clone, Default)]
pub struct Flush {
    /// At most four: a rename touches two directories and two files.
    pub targets: Vec<Arc<dyn Durable>>,
}

impl Flush {
    /// Nothing to wait for.
    pub const NONE: Self = Self { targets: Vec::new() };

    /// Whether the reply may leave at once.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }
}

/// How far a write must have got before its reply (RFC 1813 §3.3.7, `stable_how`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stable {
    /// In memory will do.
    Unstable,
    /// The data, and what is needed to find it.
    DataSync,
    /// Data and all attributes.
    FileSync,
}

/// A changed file or directory.
#[derive(Clone)]
pub struct Changed<T> {
    /// What the operation gives back.
    pub value: T,
    /// The directory (or the file itself, for SETATTR and WRITE) before and after.
    pub wcc: Wcc,
    /// What must be flushed before the reply leaves.
    pub flush: Flush,
}

impl<T: std::fmt::Debug> std::fmt::Debug for Changed<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (value, wcc, flushes) = (&self.value, &self.wcc, self.flush.targets.len());
        write!(f, "Changed({value:?}, {wcc:?}, {flushes} flushes)")
    }
}

/// An error of an operation that carries `wcc_data` or post-operation attributes all the same.
#[derive(Debug, Clone, Copy)]
pub struct Failed {
    /// Why.
    pub status: Status,
    /// Directory or file as far as it is known.
    pub wcc: Wcc,
}

impl From<Status> for Failed {
    fn from(status: Status) -> Self {
        Self { status, wcc: Wcc::default() }
    }
}

/// Outcome of an operation that changes something.
pub type Change<T> = std::result::Result<Changed<T>, Failed>;

/// What a READ brought.
#[derive(Debug, Clone, Copy)]
pub struct ReadDone {
    /// Bytes put into the buffer.
    pub count: usize,
    /// Whether the end of the file was reached.
    pub eof: bool,
    /// The file afterwards.
    pub attr: Attr,
}

/// A part of a file that can be sent from where it is in memory.
#[derive(Debug, Clone)]
pub struct Extent {
    /// Its bytes: all of them were in the file, and in memory, a moment ago.
    pub data: Slice,
    /// How many.
    pub count: usize,
    /// Whether it reaches the end of the file.
    pub eof: bool,
    /// The file.
    pub attr: Attr,
}

/// A part of a file that the kernel can send from where it is in memory (sendfile(2)).
#[derive(Debug, Clone)]
pub struct SendfileRange {
    /// The file, opened for reading by the caller.
    pub file: Arc<OwnedFd>,
    /// Where the part begins.
    pub offset: u64,
    /// How many bytes: all of them were in the file, and in memory, a moment ago.
    pub count: usize,
    /// Whether it reaches the end of the file.
    pub eof: bool,
}

/// One name of a directory, as the listing meets it.
#[derive(Debug)]
pub struct DirEntry<'a> {
    /// Inode number.
    pub fileid: u64,
    /// The name: bytes, not text.
    pub name: &'a [u8],
    /// Where to continue after this entry.
    pub cookie: u64,
    /// Handle and attributes, if requested and available.
    pub entry: Option<Entry>,
    /// Attributes of what another file system has at this name, a mount or a subvolume, if
    /// requested: it is listed, and LOOKUP returns [`Status::Access`].
    pub mounted: Option<Attr>,
}

/// Outcome of a listing.
#[derive(Debug, Clone, Copy)]
pub struct ListDone {
    /// The directory afterwards.
    pub dir: Attr,
    /// Verifier that the cookies belong to; clients hand it back.
    pub verifier: [u8; 8],
    /// Whether the last name was given.
    pub eof: bool,
}

/// Space and files of a file system (RFC 1813 §3.3.18).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Space {
    /// Bytes in all.
    pub total_bytes: u64,
    /// Bytes free.
    pub free_bytes: u64,
    /// Bytes free to the caller.
    pub avail_bytes: u64,
    /// File slots in all.
    pub total_files: u64,
    /// File slots free.
    pub free_files: u64,
    /// File slots free to the caller.
    pub avail_files: u64,
}

/// What SEEK looks for (RFC 7862 §15.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    /// Bytes that were written.
    Data,
    /// Bytes that were not: the end of the file counts as the start of a hole.
    Hole,
}

/// How an extended attribute is set (RFC 8276 §8.4.3, `setxattr_option4`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetXattr {
    /// Made or replaced.
    Either,
    /// [`Status::Exists`] if it is there.
    Create,
    /// [`Status::NotFound`] if it is not.
    Replace,
}

/// What else a file system can do; a protocol offers what is here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features {
    /// Extended attributes of users.
    pub xattrs: bool,
    /// POSIX access control lists.
    pub acls: bool,
    /// Holes: DEALLOCATE makes them, SEEK finds them.
    pub sparse: bool,
    /// Room can be reserved.
    pub allocate: bool,
    /// Parts of files can share their blocks.
    pub clone: bool,
}

/// What the file system can do (RFC 1813 §3.3.19, §3.3.20).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// Most hard links to a file.
    pub link_max: u32,
    /// Longest name in bytes.
    pub name_max: u32,
    /// Largest file in bytes.
    pub file_size_max: u64,
    /// Granularity of its times in nanoseconds.
    pub time_delta_ns: u32,
    /// Whether only root may give files away.
    pub chown_restricted: bool,
}

/// The name of a file for messages and statistics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileName {
    /// Its last known path below the root of the share, without a leading slash.
    Path(Vec<u8>),
    /// Its inode number: it was met by its handle only.
    Inode(u64),
}

/// A tree of files that can be served. Handles are its own; a handle that it did not make is
/// `BadHandle`, the handle of a removed file is `Stale`. No operation reaches outside its root.
///
/// Names must be checked by the back end: empty and over-long names, `/`, NUL, and `.`/`..` where
/// they are not allowed are refused (`Invalid`, `Exists`, `NameTooLong`).
pub trait FileSystem: Send + Sync + 'static {
    /// The root directory.
    fn root(&self) -> Handle;

    /// Whether that is the root of this machine, from which symbolic links may begin.
    fn is_machine_root(&self) -> bool {
        false
    }

    /// The statistics' id of the file behind a handle (0 when the handle is not understood).
    fn file_id(&self, handle: &Handle) -> probe::op::FileId;

    /// The number by which changes of a file are announced ([`crate::locks::leases`]): the same
    /// for all handles of a file, also those of other shares. Others may have it, too.
    fn change_slot(&self, handle: &Handle) -> u64 {
        self.file_id(handle) >> 8
    }

    /// The key by which opens and locks identify the file: equal to that of its attributes, but
    /// obtained at less cost where possible.
    ///
    /// # Errors
    /// As for [`FileSystem::getattr`]; of a file that was removed, perhaps none yet.
    fn file_key(&self, cx: Context<'_>, file: &Handle) -> Result<FileKey> {
        Ok(FileKey::from(&self.getattr(cx, file)?))
    }

    /// How many flushes have failed since the start.
    fn flush_failures(&self) -> u64 {
        0
    }

    /// The write verifier of a service that drew `start` when it started: another one after each
    /// flush that failed, so that every client with unflushed data learns that it must send it
    /// again.
    fn write_verifier(&self, start: [u8; 8]) -> [u8; 8] {
        (u64::from_be_bytes(start) ^ self.flush_failures()).to_be_bytes()
    }

    /// Attributes.
    fn getattr(&self, cx: Context<'_>, file: &Handle) -> Result<Attr>;

    /// Changes attributes; with `guard`, only if ctime still is that.
    fn setattr(
        &self,
        cx: Context<'_>,
        file: &Handle,
        set: &SetAttr,
        guard: Option<crate::attr::Time>,
    ) -> Change<()>;

    /// Finds a name. Also gives the directory's attributes, with an error too where known.
    fn lookup(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
    ) -> std::result::Result<(Entry, Option<Attr>), Failed>;

    /// The inode number that a directory has where another file system is mounted on it; `None` if
    /// it is its own (`mounted_on_fileid`, RFC 8881 §5.8.2.23).
    fn mounted_on(&self, _dir: &Handle) -> Option<u64> {
        None
    }

    /// Which of the rights in `want` ([`access`]) the caller has.
    fn access(&self, cx: Context<'_>, file: &Handle, want: u32) -> Result<(u32, Attr)>;

    /// Whether the sticky bit of a directory lets the caller give the name of `file`, which is in
    /// it, to another file.
    fn sticky_permits(&self, cx: Context<'_>, dir: &Handle, file: &Attr) -> Result<bool> {
        Ok(rights::sticky_permits(&self.getattr(cx, dir)?, file, cx.cred))
    }

    /// Target of a symbolic link, as bytes.
    fn readlink(&self, cx: Context<'_>, link: &Handle) -> Result<(Vec<u8>, Attr)>;

    /// Reads into `buf` at `offset`.
    fn read(&self, cx: Context<'_>, file: &Handle, offset: u64, buf: &mut [u8])
    -> Result<ReadDone>;

    /// As [`FileSystem::read`] of `count` bytes, to be sent from where they are. `None` when
    /// that would wait or cannot be done, for whatever reason: `read` has the answer then.
    fn extent(
        &self,
        _cx: Context<'_>,
        _file: &Handle,
        _offset: u64,
        _count: usize,
    ) -> Option<Extent> {
        None
    }

    /// Up to `count` bytes at `offset`, to be sent by the kernel from the file itself; with
    /// [`Context::may_block`] they are brought into memory first.
    ///
    /// # Errors
    /// [`Status::NotSupported`] where there is no descriptor, or no way to find out what is in
    /// memory: [`FileSystem::read`] is used then. Others as for `read`.
    fn stretch(
        &self,
        _: Context<'_>,
        _file: &Handle,
        _offset: u64,
        _: usize,
    ) -> Result<SendfileRange> {
        Err(Status::NotSupported)
    }

    /// Writes `data` at `offset`. `Changed::value` is the count written; the flush is empty for
    /// `Unstable`.
    fn write(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        data: &[u8],
        stable: Stable,
    ) -> Change<usize>;

    /// Brings unstable writes of a file to disk: all of them, whatever the range.
    fn commit(&self, cx: Context<'_>, file: &Handle) -> Change<()>;

    /// A flush of everything that was done so far to any of its files. `None` where one flush
    /// cannot cover that: each change must be flushed separately then.
    fn whole(&self) -> Option<Flush> {
        None
    }

    /// Makes a regular file.
    fn create(&self, cx: Context<'_>, dir: &Handle, name: &[u8], how: CreateHow) -> Change<Entry>;

    /// Makes a directory.
    fn mkdir(&self, cx: Context<'_>, dir: &Handle, name: &[u8], set: &SetAttr) -> Change<Entry>;

    /// Makes a symbolic link.
    fn symlink(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
        target: &[u8],
        set: &SetAttr,
    ) -> Change<Entry>;

    /// Makes a special file.
    fn mknod(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
        special: Special,
        set: &SetAttr,
    ) -> Change<Entry>;

    /// Removes a name that is not a directory.
    fn remove(&self, cx: Context<'_>, dir: &Handle, name: &[u8]) -> Change<()>;

    /// Removes an empty directory.
    fn rmdir(&self, cx: Context<'_>, dir: &Handle, name: &[u8]) -> Change<()>;

    /// Renames. `Changed::wcc` is the source directory, the value the target directory.
    fn rename(&self, cx: Context<'_>, from: (&Handle, &[u8]), to: (&Handle, &[u8])) -> Change<Wcc>;

    /// Adds a hard link. `Changed::wcc` is the directory, the value the file afterwards.
    fn link(
        &self,
        cx: Context<'_>,
        file: &Handle,
        dir: &Handle,
        name: &[u8],
    ) -> Change<Option<Attr>>;

    /// Lists a directory from `cookie` on (0 is the start), calling `each` until it returns false
    /// (that entry was not taken) or the end. `.` and `..` are included. With `plus`, entries
    /// carry handles and attributes.
    fn list(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        cookie: u64,
        verifier: [u8; 8],
        plus: bool,
        each: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<ListDone>;

    // What follows not every file system can do, nor every protocol ask for.

    /// What of the following it can do.
    fn features(&self) -> Features {
        Features::default()
    }

    /// The directory above; [`Status::NotFound`] for the root: what is above it is not ours
    /// (LOOKUPP, RFC 8881 §18.14).
    fn lookup_parent(&self, cx: Context<'_>, dir: &Handle) -> Result<Entry> {
        if *dir == self.root() {
            return Err(Status::NotFound);
        }
        self.lookup(cx, dir, b"..").map(|(entry, _)| entry).map_err(|failed| failed.status)
    }

    /// A directory and all directories above it, nearest first, beyond the root as far as they are
    /// on the same file system: to find out whether one directory is within another, whatever
    /// symbolic link or share the two were reached through. All of them exist, so that the keys
    /// need no generation: compare with [`FileKey::is_same_inode`].
    ///
    /// # Errors
    /// As for [`FileSystem::lookup_parent`]; [`Status::NameTooLong`] for more than
    /// [`ANCESTORS_MAX`].
    fn ancestors(&self, cx: Context<'_>, dir: &Handle) -> Result<Vec<FileKey>> {
        let mut keys = vec![self.file_key(cx, dir)?];
        let mut at = *dir;
        loop {
            match self.lookup_parent(cx, &at) {
                Err(Status::NotFound) => return Ok(keys),
                Ok(_) if keys.len() >= ANCESTORS_MAX => return Err(Status::NameTooLong),
                Ok(above) => {
                    keys.push(FileKey::from(&above.attr));
                    at = above.handle;
                }
                Err(status) => return Err(status),
            }
        }
    }

    /// Reserves room, so that a later write there cannot find none; the file grows if it must.
    fn allocate(&self, _cx: Context<'_>, _file: &Handle, _offset: u64, _len: u64) -> Change<()> {
        Err(Status::NotSupported.into())
    }

    /// Makes a hole. The size stays.
    fn deallocate(&self, _cx: Context<'_>, _file: &Handle, _offset: u64, _len: u64) -> Change<()> {
        Err(Status::NotSupported.into())
    }

    /// Where data or a hole begins, from `offset` on: `offset` itself if it is in one. `None` if
    /// there is no such thing up to the end; of a hole there is always one, if only at the end.
    ///
    /// # Errors
    /// [`Status::TooLarge`] if `offset` is at or beyond the end (NFS4ERR_NXIO).
    fn seek(&self, _: Context<'_>, _file: &Handle, _offset: u64, _: Seek) -> Result<Option<u64>> {
        Err(Status::NotSupported)
    }

    /// Copies bytes from file to file (or within one, where ranges do not overlap) without their
    /// passing through us; `len` 0 is to the end of the source. The value is how many were: fewer
    /// than asked if that takes long, or the source ends (RFC 7862 §15.2). The copy is stable when
    /// the flush is done.
    fn copy_range(
        &self,
        _cx: Context<'_>,
        _from: (&Handle, u64),
        _to: (&Handle, u64),
        _len: u64,
    ) -> Change<u64> {
        Err(Status::NotSupported.into())
    }

    /// Lets a part of a file share the blocks of another, all or nothing; `len` 0 is to the end of
    /// the source (RFC 7862 §15.13).
    fn clone_range(
        &self,
        _cx: Context<'_>,
        _from: (&Handle, u64),
        _to: (&Handle, u64),
        _len: u64,
    ) -> Change<()> {
        Err(Status::NotSupported.into())
    }

    /// An extended attribute of users; names are without `user.`.
    ///
    /// # Errors
    /// [`Status::NotFound`] if there is none of this name (NFS4ERR_NOXATTR).
    fn get_xattr(&self, _cx: Context<'_>, _file: &Handle, _name: &[u8]) -> Result<Vec<u8>> {
        Err(Status::NotSupported)
    }

    /// As [`FileSystem::get_xattr`], of what a directory has at a name. For the entries of a
    /// listing it is much quicker than by their handles, which the file system need not hold.
    ///
    /// # Errors
    /// The same; as of LOOKUP.
    fn get_xattr_at(
        &self,
        cx: Context<'_>,
        (dir, entry): (&Handle, &[u8]),
        name: &[u8],
    ) -> Result<Vec<u8>> {
        let (entry, _) = self.lookup(cx, dir, entry).map_err(|failed| failed.status)?;
        self.get_xattr(cx, &entry.handle, name)
    }

    /// As [`FileSystem::get_xattr_at`], of several entries of a directory in their order, until
    /// `each` does not want more: what is the same for all of them is done once.
    ///
    /// # Errors
    /// Of the directory; those of an entry are given to `each`.
    fn get_xattrs_at(
        &self,
        cx: Context<'_>,
        (dir, entries): (&Handle, &[&[u8]]),
        name: &[u8],
        each: &mut dyn FnMut(Result<Vec<u8>>) -> bool,
    ) -> Result<()> {
        for &entry in entries {
            if !each(self.get_xattr_at(cx, (dir, entry), name)) {
                break;
            }
        }
        Ok(())
    }

    /// Sets an extended attribute.
    ///
    /// # Errors
    /// By [`SetXattr`]; [`Status::TooLarge`] beyond the available space (NFS4ERR_XATTR2BIG).
    fn set_xattr(
        &self,
        _cx: Context<'_>,
        _file: &Handle,
        _name: &[u8],
        _value: &[u8],
        _how: SetXattr,
    ) -> Change<()> {
        Err(Status::NotSupported.into())
    }

    /// Names of extended attributes from `cookie` on (0 is the start), each with the cookie after
    /// it, until `each` returns false (that one was not taken). True if there are no more.
    fn list_xattrs(
        &self,
        _cx: Context<'_>,
        _file: &Handle,
        _cookie: u64,
        _each: &mut dyn FnMut(&[u8], u64) -> bool,
    ) -> Result<bool> {
        Err(Status::NotSupported)
    }

    /// Removes an extended attribute; [`Status::NotFound`] if there is none of this name.
    fn remove_xattr(&self, _cx: Context<'_>, _file: &Handle, _name: &[u8]) -> Change<()> {
        Err(Status::NotSupported.into())
    }

    /// The access control list of a file or the default one of a directory. `None` if it has none:
    /// then the mode alone decides.
    fn get_acl(&self, _cx: Context<'_>, _file: &Handle, _which: AclKind) -> Result<Option<Acl>> {
        Err(Status::NotSupported)
    }

    /// Sets or, with `None`, removes an access control list. The mode follows.
    fn set_acl(
        &self,
        _cx: Context<'_>,
        _file: &Handle,
        _which: AclKind,
        _acl: Option<&Acl>,
    ) -> Change<()> {
        Err(Status::NotSupported.into())
    }

    /// Space left.
    fn space(&self, cx: Context<'_>) -> Result<Space>;

    /// What it can do.
    fn abilities(&self) -> Abilities;

    /// A file's last known path from the root, for people; `None` when it was never met.
    fn path_of(&self, file: probe::op::FileId) -> Option<Vec<u8>>;

    /// The best name there is for a file, for people: `None` when nothing at all is known of it.
    fn describe(&self, file: probe::op::FileId) -> Option<FileName> {
        self.path_of(file).map(FileName::Path)
    }

    /// Watches a file: while the returned value lives, the listener of the back end is notified
    /// when anything but this server changes the file. Only then may a client rely on data that it
    /// has read. For a directory: whenever it or its content is changed.
    ///
    /// # Errors
    /// [`Status::NotSupported`] where such changes cannot be seen.
    fn watch(&self, _cx: Context<'_>, _file: &Handle) -> Result<Watch> {
        Err(Status::NotSupported)
    }

    /// Retains a file: while the returned value lives, its handles stay valid although its last
    /// name is removed, as a descriptor keeps a removed file accessible to a local program. Its
    /// space is freed soon after the last of these values is dropped.
    ///
    /// # Errors
    /// [`Status::Busy`] if as many are retained as the budget of descriptors allows;
    /// [`Status::NotSupported`] where it cannot be done; otherwise as
    /// [`getattr`](FileSystem::getattr).
    fn retain(&self, _cx: Context<'_>, _file: &Handle) -> Result<Retained> {
        Err(Status::NotSupported)
    }

    /// The best name for the file that locks know as `key`; `None` if it is of another file system.
    fn describe_key(&self, _key: crate::locks::FileKey) -> Option<FileName> {
        None
    }
}
