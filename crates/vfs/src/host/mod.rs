//! The back end over a Linux directory.
//!
//! - [`sys`]: the system calls, and most of the unsafe code.
//! - [`acting`]: acting as the caller, one thread at a time.
//! - [`ids`]: the bytes of a handle; [`kept_id`], [`mounts`]: by what its file system is known;
//!   [`table`]: the durable memory that keeps handles valid; [`cold`]: finding the file of a handle
//!   that we hold no descriptor on.
//! - [`node`], [`nodes`]: files we hold a descriptor on; [`open`], [`open_files`]: descriptors for
//!   reading and writing; [`stream`]: directories that are being read; [`descriptors`]: the count.
//! - [`drop_cache`]: its files out of the page cache. [`snapshots`]: snapshots of a share.
//! - [`recent`]: recent lookups; [`xattr_cache`]: an attribute that SMB reads often; [`sweep`]:
//!   closes what is unused; [`retain`]: removed open files.
//! - [`read`], [`list`], [`create`], [`change`], [`extents`], [`xattr`], [`space`]: the operations;
//!   [`durable`], [`flush_state`]: their flushes.
//!
//! What it can do is found by trying. With privilege the caller's identity decides; without it
//! all access uses the identity of the server ([`HostFs::acting_as`]). Mount points inside the
//! share are shown, but not entered ([`Status::Access`]): another file system is another share.

pub mod acting;
mod attrs;
mod births;
mod change;
mod cold;
mod create;
mod descriptors;
mod directory;
mod drop_cache;
mod durable;
mod extents;
mod flush_state;
pub(crate) mod ids;
mod inline;
mod kept_id;
mod keys;
mod list;
mod lock;
mod mounts;
pub(crate) mod node;
mod nodes;
pub(crate) mod open;
mod open_files;
mod parked;
mod read;
mod recent;
mod retain;
pub mod snapshots;
pub mod space;
mod stream;
mod sweep;
pub mod sys;
mod table;
pub mod watch;
mod xattr;
mod xattr_cache;

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use base::limits::{NODE_SHARDS, NODES_MAX, NODES_MIN, OPEN_FILES_MAX};
use probe::op::FileId;
use thiserror::Error;

use acting::CredGuard;
pub use acting::dedicate_thread;
pub use directory::{DirectoryIdentity, key_of};
pub use kept_id::{FileSystemIdentity, RootEntry};
pub use table::inspect as handle_table;

use crate::acl::{Acl, AclKind};
use crate::attr::{Attr, FileType, SetAttr, Time, Wcc};
use crate::cred::Cred;
use crate::fs::{
    Abilities, Change, Context, CreateHow, DirEntry, Entry, Extent, Failed, Features, FileName,
    FileSystem, ListDone, ReadDone, Result, Retained, Seek, SendfileRange, SetXattr, Space,
    Special, Stable, Watch,
};
use crate::handle::Handle;
use crate::host::births::Births;
use crate::host::cold::Searched;
use crate::host::directory::Top;
use crate::host::flush_state::FlushShared;
use crate::host::ids::{Ident, Keys, Parsed};
use crate::host::inline::Inline;
use crate::host::kept_id::IdentityFile;
use crate::host::mounts::Number;
use crate::host::node::Node;
use crate::host::nodes::Nodes;
use crate::host::open_files::OpenFiles;
use crate::host::recent::Recent;
use crate::host::sweep::Sweeper;
use crate::host::table::Table;
use crate::host::watch::Watcher;
use crate::locks::{ExclusiveFiles, FileKey};
use crate::paths::Paths;
use crate::status::Status;

/// How a directory is served.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// Share tag in the handles ([`crate::share::tag`] of its name).
    pub tag: u32,
    /// Key of the handles' MAC. Must stay the same as long as handles shall stay valid.
    pub secret: [u8; 32],
    /// Where the table that keeps handles valid lives; without it, only what needs no table
    /// survives a restart.
    pub state_dir: Option<PathBuf>,
    /// Files and directories that are invisible and refused, by device and inode.
    pub hide: Vec<(u64, u64)>,
    /// Files that are invisible and refused now, which change while the share is served.
    pub exclusive: Arc<ExclusiveFiles>,
    /// Descriptors that may be held; by default half of the process's limit.
    pub descriptors: Option<usize>,
    /// Use the kernel's handles where available. Off only in tests.
    pub kernel_handles: bool,
    /// Impersonate the caller where possible. Off only in tests.
    pub credentials: bool,
    /// The directory is a snapshot: handles have its number. The device number of its share, of
    /// which it hides the same files.
    pub snapshot: Option<u64>,
    /// Whether another subvolume of a btrfs may take its place with the same handles (rollback).
    pub exchangeable: bool,
}

impl HostOptions {
    /// The usual options for a share with this tag and key.
    pub fn new(tag: u32, secret: [u8; 32]) -> Self {
        Self {
            tag,
            secret,
            state_dir: None,
            hide: Vec::new(),
            exclusive: Arc::default(),
            descriptors: None,
            kernel_handles: true,
            credentials: true,
            snapshot: None,
            exchangeable: false,
        }
    }
}

/// Why a directory cannot be served: the administrator's fault or the machine's.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The directory cannot be opened.
    #[error("cannot open {path}: {source}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The identity of the file system cannot be kept.
    #[error("cannot use the identity of the file system in {path}: {source}")]
    Identity {
        /// The file in the state directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The table of handles cannot be opened: damaged, or in use by another server.
    #[error("cannot open the table of handles {path}: {source}")]
    Table {
        /// The table's file.
        path: PathBuf,
        /// Why.
        source: Box<redb::Error>,
    },
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// Counts of a share for statistics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostCounts {
    /// Files held.
    pub nodes: u64,
    /// Files of these that are retained because they are open.
    pub retained: u64,
    /// Nodes evicted.
    pub nodes_forgotten: u64,
    /// Descriptors kept for reading and writing.
    pub open_files: u64,
    /// Handles without a node for which the file was found.
    pub cold_found: u64,
    /// Handles for which the file was not found, or had left the share.
    pub cold_stale: u64,
    /// Searches through the whole tree for such a handle.
    pub searches: u64,
    /// Files with unstable writes not yet on disk.
    pub dirty: u64,
    /// Flushes that failed.
    pub flush_failures: u64,
    /// Most descriptors kept for reading and writing.
    pub open_files_max: u64,
    /// Files with a name in the table for statistics.
    pub names: u64,
    /// Entries of the durable table of handles.
    pub handles: u64,
}

impl HostCounts {
    /// Of two shares together.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        Self {
            nodes: self.nodes + other.nodes,
            retained: self.retained + other.retained,
            nodes_forgotten: self.nodes_forgotten + other.nodes_forgotten,
            open_files: self.open_files + other.open_files,
            cold_found: self.cold_found + other.cold_found,
            cold_stale: self.cold_stale + other.cold_stale,
            searches: self.searches + other.searches,
            dirty: self.dirty + other.dirty,
            flush_failures: self.flush_failures + other.flush_failures,
            open_files_max: self.open_files_max + other.open_files_max,
            names: self.names + other.names,
            handles: self.handles + other.handles,
        }
    }
}

/// A directory of this machine, served.
pub struct HostFs {
    root: Arc<Node>,
    /// A descriptor that is not O_PATH, as `open_by_handle_at` wants it.
    mount: OwnedFd,
    dev: u64,
    /// The device number of hidden files.
    live_dev: u64,
    /// By what locks and clients distinguish its file system.
    fsid: u64,
    /// Keeps that number, as long as the file system is open here.
    _number: Option<Arc<Number>>,
    /// What its handles are bound to, if the file system has no identity.
    kept: Option<IdentityFile>,
    /// Whether handles hold the kernel's.
    kernel: bool,
    /// What distinguishes files otherwise.
    births: Births,
    /// Whether operations act as their caller.
    switches: bool,
    /// Whether mode bits predict the kernel's decision (not for a root without its capabilities).
    rules: bool,
    /// Whether the share is a whole file system, so that no file of it can be outside.
    whole: bool,
    /// Whether it is the root of this machine.
    machine_root: bool,
    /// See [`sys::syncs_all`].
    syncs: bool,
    inline: Inline,
    /// See [`Abilities::time_delta_ns`].
    time_delta_ns: u32,
    features: Features,
    hide: Vec<u64>,
    exclusive: Arc<ExclusiveFiles>,
    keys: Keys,
    nodes: Arc<Nodes>,
    recent: Recent,
    _sweeper: Sweeper,
    files: OpenFiles,
    table: Arc<Table>,
    paths: Paths,
    shared: Arc<FlushShared>,
    /// Looks for changes by others.
    watcher: Arc<Watcher>,
    limit: space::ShareLimit,
    /// What the last search through the tree found.
    searched: Mutex<Option<Searched>>,
    searches: AtomicU64,
    cold_found: AtomicU64,
    cold_stale: AtomicU64,
}

impl HostFs {
    /// Opens a directory for serving and finds out what can be done with it.
    pub fn open(dir: &Path, options: HostOptions) -> std::result::Result<Arc<Self>, OpenError> {
        let failed = |source| OpenError::Directory { path: dir.to_path_buf(), source };
        let top = Top::open(dir, options.kernel_handles).map_err(failed)?;
        let kept = IdentityFile::open(&options, &top);
        let kept = kept.map_err(|(path, source)| OpenError::Identity { path, source })?;
        let keys = keys::keys(&top, &options, kept.as_ref());
        let (whole, machine_root) = (top.is_whole(&options), top.is_machine_root());
        let kernel = top.kernel.is_some();
        let Top { mount, fd, sx, stats, dev, fsid, number, births, ident, .. } = top;
        let handle = keys
            .seal(&Parsed { ident, is_dir: true, parent: None })
            .ok_or_else(|| failed(io::Error::from_raw_os_error(libc::EOVERFLOW)))?;
        // Nothing need be kept of files that the kernel finds: two may be open at a time.
        let table = open_table(&options, kernel, !(kernel && whole && options.exchangeable))?;
        let switches = options.credentials && acting::can_switch();
        let budget = options.descriptors.unwrap_or_else(|| sys::descriptor_limit() / 2);
        let nodes = Arc::new(Nodes::new((budget / 4 * 3).clamp(NODES_MIN, NODES_MAX)));
        let sweeper = Sweeper::start(Arc::clone(&nodes), switches).map_err(OpenError::Thread)?;
        let node = Node::new(fd, sx.stx_ino, FileType::Directory, handle, ident).pinned();
        Ok(Arc::new(Self {
            root: nodes.insert(node),
            whole,
            machine_root,
            dev,
            live_dev: options.snapshot.unwrap_or(dev),
            fsid,
            _number: number,
            kept,
            kernel,
            births,
            switches,
            rules: switches || acting::own().uid != 0,
            inline: Inline::of(stats.f_type as u64),
            time_delta_ns: sys::time_delta_ns(mount.as_fd(), &stats),
            syncs: sys::syncs_all(&stats),
            features: xattr::features(&mount, stats.f_type as u64),
            hide: options.hidden(dev),
            exclusive: options.exclusive,
            keys,
            nodes,
            recent: Recent::default(),
            _sweeper: sweeper,
            watcher: Arc::default(),
            limit: space::ShareLimit::default(),
            files: OpenFiles::new((budget / 4).clamp(NODES_MIN, OPEN_FILES_MAX)),
            table,
            paths: Paths::default(),
            shared: Arc::new(FlushShared {
                mount: sys::same(&mount).map_err(failed)?,
                failures: AtomicU64::new(0),
                dirty: AtomicU64::new(0),
            }),
            searched: Mutex::default(),
            searches: AtomicU64::new(0),
            cold_found: AtomicU64::new(0),
            cold_stale: AtomicU64::new(0),
            mount,
        }))
    }

    /// Notes how the root is known again when its file system has been mounted again. For now and
    /// then: it may wait for that file system.
    pub fn note_root(&self) {
        if let Some(kept) = &self.kept {
            kept.refresh(self.mount.as_fd());
        }
    }

    /// What its files' attributes need to know of it.
    pub(super) fn medium(&self) -> attrs::Medium {
        attrs::Medium { fsid: self.fsid, time_delta_ns: self.time_delta_ns }
    }

    /// Whether the caller's uid, gid and groups decide.
    pub fn privileged(&self) -> bool {
        self.switches
    }

    /// Files that are invisible and refused now.
    pub fn exclusive(&self) -> &Arc<ExclusiveFiles> {
        &self.exclusive
    }

    /// Whether handles hold the kernel's handle (otherwise they are found through our table).
    pub fn has_kernel_handles(&self) -> bool {
        self.kernel
    }

    /// The identity with which files are accessed, as a sentence for display.
    pub fn acting_as(&self) -> String {
        if self.switches {
            "access is checked with each caller's uid, gid and groups".to_owned()
        } else {
            let own = acting::own();
            format!("all access uses the identity of the server, uid {} gid {}", own.uid, own.gid)
        }
    }

    /// Counts for statistics.
    pub fn counts(&self) -> HostCounts {
        HostCounts {
            nodes: self.nodes.len() as u64,
            retained: self.nodes.retained() as u64,
            nodes_forgotten: self.nodes.forgotten(),
            open_files: self.files.len() as u64,
            cold_found: self.cold_found.load(Ordering::Relaxed),
            cold_stale: self.cold_stale.load(Ordering::Relaxed),
            searches: self.searches.load(Ordering::Relaxed),
            dirty: self.shared.dirty.load(Ordering::Relaxed),
            flush_failures: self.shared.failures.load(Ordering::Relaxed),
            open_files_max: self.files.capacity() as u64,
            names: self.paths.len() as u64,
            handles: self.table.len() as u64,
        }
    }

    /// Releases files that were removed outside the server, and descriptors that were not used
    /// since the last call. A thread does it anyway, a part at a time; this is for callers that
    /// cannot wait. Returns the number of files.
    pub fn sweep(&self) -> usize {
        drop(self.nodes.released.take());
        (0..NODE_SHARDS).map(|shard| sweep::sweep(&self.nodes, shard, self.switches)).sum()
    }

    /// The identity with which rights are checked.
    fn effective_cred<'a>(&'a self, cx: Context<'a>) -> &'a Cred {
        if self.switches { cx.cred } else { acting::own() }
    }

    /// Impersonates the caller on a pool thread. On a connection's thread, which never changes its
    /// identity, only where that is the caller's anyway.
    fn as_caller(&self, cx: Context<'_>) -> Result<CredGuard> {
        if !self.switches {
            // The thread may serve another share as well, and still impersonate a caller there.
            return if cx.may_block { CredGuard::as_server() } else { Ok(CredGuard::unchanged()) };
        }
        if cx.may_block {
            return CredGuard::as_caller(cx.cred);
        }
        if acting::is_own(cx.cred) { Ok(CredGuard::unchanged()) } else { Err(Status::WouldBlock) }
    }

    /// Acts as the server; a connection's thread always does.
    fn as_server(&self, cx: Context<'_>) -> Result<CredGuard> {
        if self.switches && cx.may_block {
            CredGuard::as_server()
        } else {
            Ok(CredGuard::unchanged())
        }
    }

    /// Takes the identity of the server or leaves that of the caller, for what is allowed to both.
    fn as_either(&self, cx: Context<'_>) -> Result<CredGuard> {
        let switch = self.switches && cx.may_block;
        if switch { CredGuard::as_server_or(cx.cred) } else { Ok(CredGuard::unchanged()) }
    }

    /// By what opens and locks know a file.
    fn key_of(&self, node: &Node) -> FileKey {
        FileKey { fsid: self.fsid, fileid: node.ino, generation: node.generation }
    }

    fn hidden(&self, ino: u64) -> bool {
        self.hide.contains(&ino) || self.exclusive.contains(self.live_dev, ino)
    }

    /// What identifies a name in a directory (or the descriptor itself, for the empty name).
    fn identify(&self, at: BorrowedFd<'_>, name: &CStr, ino: u64, birth: u64) -> Result<Ident> {
        if self.kernel {
            return Ok(Ident::Kernel(sys::handle_of(at, name)?));
        }
        Ok(Ident::Inode { ino, birth })
    }

    /// The handle of a file that was met as a name in a directory; `None` for one that was found
    /// without its name.
    fn seal(&self, ident: Ident, kind: FileType, met: Option<(&Node, &[u8])>) -> Result<Handle> {
        let is_dir = kind == FileType::Directory;
        if let (Some(kept), Some((dir, name))) = (&self.kept, met)
            && dir.ino == self.root.ino
        {
            kept.met(name, ident);
        }
        let parent = match met {
            // The way up from a directory can be walked, so its handle needs no help.
            _ if self.kernel && (is_dir || self.whole) => None,
            Some((dir, name)) if is_dir => Some(self.table.note_dir(&ident, dir.ident, name)),
            Some((dir, _)) => Some(self.table.hint(&ident).unwrap_or(dir.ident)),
            None => self.table.hint(&ident),
        };
        self.keys.seal(&Parsed { ident, is_dir, parent }).ok_or(Status::NotSupported)
    }
}

impl Drop for HostFs {
    fn drop(&mut self) {
        self.table.close();
    }
}

/// The root's kernel handle, if such handles can be opened here and are short enough.
fn usable_kernel_handle(mount: &OwnedFd, root: &OwnedFd) -> io::Result<Option<Ident>> {
    let Ok(handle) = sys::handle_of(root.as_fd(), c"") else { return Ok(None) };
    // Two of them, the file's and its directory's, must fit next to head and MAC.
    if handle.bytes().len() > 20 {
        return Ok(None);
    }
    match sys::open_by_handle(mount.as_fd(), &handle, libc::O_PATH) {
        Ok(_) => Ok(Some(Ident::Kernel(handle))),
        // The file system has them: without them the directory would be another one.
        Err(e) if is_shortage(&e) => Err(e),
        Err(_) => Ok(None),
    }
}

/// Whether the machine, or this process, has no more of what is needed: it is no property of what
/// was opened.
pub fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM))
}

fn open_table(
    options: &HostOptions,
    kernel: bool,
    is_needed: bool,
) -> std::result::Result<Arc<Table>, OpenError> {
    let form = if kernel { "kernel" } else { "table" };
    let path = options
        .state_dir
        .as_ref()
        .filter(|_| is_needed)
        .map(|dir| dir.join(format!("handles-{:08x}-{form}.redb", options.tag)));
    Table::open(path.as_deref(), kernel).map_err(|source| OpenError::Table {
        path: path.unwrap_or_default(),
        source: Box::new(source),
    })
}

/// FUSE in statfs(2) (`linux/magic.h`).
const FUSE_SUPER_MAGIC: u64 = 0x6573_5546;

impl FileSystem for HostFs {
    fn root(&self) -> Handle {
        self.root.handle
    }
    fn is_machine_root(&self) -> bool {
        self.machine_root
    }
    fn file_id(&self, handle: &Handle) -> FileId {
        if ids::tag_of(handle) == ids::tag_of(&self.root.handle) { ids::file_id(handle) } else { 0 }
    }
    fn change_slot(&self, handle: &Handle) -> u64 {
        self.keys.change_slot(handle)
    }
    fn file_key(&self, cx: Context<'_>, file: &Handle) -> Result<FileKey> {
        Ok(self.key_of(&*self.node(cx, file)?))
    }
    fn flush_failures(&self) -> u64 {
        self.shared.failures.load(Ordering::Relaxed)
    }
    fn whole(&self) -> Option<crate::fs::Flush> {
        self.syncs.then(|| self.flush_whole())
    }
    fn getattr(&self, cx: Context<'_>, file: &Handle) -> Result<Attr> {
        self.get_attributes(cx, file)
    }
    fn setattr(
        &self,
        cx: Context<'_>,
        file: &Handle,
        set: &SetAttr,
        guard: Option<Time>,
    ) -> Change<()> {
        self.set_attributes(cx, file, set, guard)
    }
    fn lookup(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
    ) -> std::result::Result<(Entry, Option<Attr>), Failed> {
        self.look_up(cx, dir, name)
    }
    fn access(&self, cx: Context<'_>, file: &Handle, want: u32) -> Result<(u32, Attr)> {
        self.check_access(cx, file, want)
    }
    fn readlink(&self, cx: Context<'_>, link: &Handle) -> Result<(Vec<u8>, Attr)> {
        self.read_link(cx, link)
    }
    fn read(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<ReadDone> {
        self.read_file(cx, file, offset, buf)
    }
    fn extent(&self, cx: Context<'_>, file: &Handle, offset: u64, count: usize) -> Option<Extent> {
        self.file_extent(cx, file, offset, count)
    }
    fn stretch(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        n: usize,
    ) -> Result<SendfileRange> {
        self.file_stretch(cx, file, offset, n)
    }
    fn write(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        data: &[u8],
        stable: Stable,
    ) -> Change<usize> {
        self.write_file(cx, file, offset, data, stable)
    }
    fn commit(&self, cx: Context<'_>, file: &Handle) -> Change<()> {
        self.commit_file(cx, file)
    }
    fn create(&self, cx: Context<'_>, dir: &Handle, name: &[u8], how: CreateHow) -> Change<Entry> {
        self.create_file(cx, dir, name, how)
    }
    fn mkdir(&self, cx: Context<'_>, dir: &Handle, name: &[u8], set: &SetAttr) -> Change<Entry> {
        self.make(cx, dir, name, create::What::Directory, set)
    }
    fn symlink(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
        target: &[u8],
        set: &SetAttr,
    ) -> Change<Entry> {
        self.make(cx, dir, name, create::What::Symlink(target), set)
    }
    fn mknod(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
        special: Special,
        set: &SetAttr,
    ) -> Change<Entry> {
        self.make(cx, dir, name, create::What::Special(special), set)
    }
    fn remove(&self, cx: Context<'_>, dir: &Handle, name: &[u8]) -> Change<()> {
        self.remove_name(cx, dir, name, false)
    }
    fn rmdir(&self, cx: Context<'_>, dir: &Handle, name: &[u8]) -> Change<()> {
        self.remove_name(cx, dir, name, true)
    }
    fn rename(&self, cx: Context<'_>, from: (&Handle, &[u8]), to: (&Handle, &[u8])) -> Change<Wcc> {
        self.rename_name(cx, from, to)
    }
    fn link(
        &self,
        cx: Context<'_>,
        file: &Handle,
        dir: &Handle,
        name: &[u8],
    ) -> Change<Option<Attr>> {
        self.link_file(cx, file, dir, name)
    }
    fn list(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        cookie: u64,
        _verifier: [u8; 8],
        plus: bool,
        each: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<ListDone> {
        self.list_dir(cx, dir, cookie, plus, each)
    }
    fn features(&self) -> Features {
        self.features
    }
    fn lookup_parent(&self, cx: Context<'_>, dir: &Handle) -> Result<Entry> {
        self.look_up_parent(cx, dir)
    }
    fn ancestors(&self, cx: Context<'_>, dir: &Handle) -> Result<Vec<FileKey>> {
        self.ancestor_keys(cx, dir)
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
    fn clone_range(
        &self,
        cx: Context<'_>,
        from: (&Handle, u64),
        to: (&Handle, u64),
        len: u64,
    ) -> Change<()> {
        self.clone_file_range(cx, from, to, len)
    }
    fn get_xattr(&self, cx: Context<'_>, file: &Handle, name: &[u8]) -> Result<Vec<u8>> {
        self.read_xattr(cx, file, name)
    }
    fn get_xattr_at(
        &self,
        cx: Context<'_>,
        entry: (&Handle, &[u8]),
        name: &[u8],
    ) -> Result<Vec<u8>> {
        self.read_xattr_at(cx, entry, name)
    }
    fn get_xattrs_at(
        &self,
        cx: Context<'_>,
        entries: (&Handle, &[&[u8]]),
        name: &[u8],
        each: &mut dyn FnMut(Result<Vec<u8>>) -> bool,
    ) -> Result<()> {
        self.read_xattrs_at(cx, entries, name, each)
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
        cx: Context<'_>,
        file: &Handle,
        cookie: u64,
        each: &mut dyn FnMut(&[u8], u64) -> bool,
    ) -> Result<bool> {
        self.xattr_names(cx, file, cookie, each)
    }
    fn remove_xattr(&self, cx: Context<'_>, file: &Handle, name: &[u8]) -> Change<()> {
        self.delete_xattr(cx, file, name)
    }
    fn get_acl(&self, cx: Context<'_>, file: &Handle, which: AclKind) -> Result<Option<Acl>> {
        self.read_acl(cx, file, which)
    }
    fn set_acl(
        &self,
        cx: Context<'_>,
        file: &Handle,
        which: AclKind,
        acl: Option<&Acl>,
    ) -> Change<()> {
        self.write_acl(cx, file, which, acl)
    }
    fn space(&self, cx: Context<'_>) -> Result<Space> {
        self.space_left(cx)
    }
    fn abilities(&self) -> Abilities {
        Abilities {
            // The smallest of the usual file systems (ext4); the kernel enforces the real one.
            link_max: 65_000,
            name_max: base::limits::NAME_MAX as u32,
            file_size_max: i64::MAX as u64,
            time_delta_ns: self.time_delta_ns,
            chown_restricted: true,
        }
    }
    fn path_of(&self, file: FileId) -> Option<Vec<u8>> {
        self.paths.path_of(file, self.root.id).or_else(|| {
            // The name was forgotten, or never met; of a file that we hold the kernel knows one.
            self.kernel_path(self.nodes.by_id(file)?.fd())
        })
    }
    fn describe(&self, file: FileId) -> Option<FileName> {
        let inode = || self.nodes.by_id(file).map(|node| node.ino).or(self.paths.inode(file));
        self.path_of(file).map(FileName::Path).or_else(|| inode().map(FileName::Inode))
    }
    fn sticky_permits(&self, cx: Context<'_>, dir: &Handle, file: &Attr) -> Result<bool> {
        let dir = self.get_attributes(cx, dir)?;
        Ok(crate::rights::sticky_permits(&dir, file, self.effective_cred(cx)))
    }
    fn watch(&self, cx: Context<'_>, file: &Handle) -> Result<Watch> {
        self.watch_file(cx, file)
    }
    fn retain(&self, cx: Context<'_>, file: &Handle) -> Result<Retained> {
        self.retain_file(cx, file)
    }
    fn describe_key(&self, key: FileKey) -> Option<FileName> {
        let same = |node: &Arc<Node>| node.generation == key.generation;
        let node = || self.nodes.by_ino(key.fileid).filter(same);
        let path = || self.path_of(node()?.id).map(FileName::Path);
        (key.fsid == self.fsid).then(|| path().unwrap_or(FileName::Inode(key.fileid)))
    }
}
