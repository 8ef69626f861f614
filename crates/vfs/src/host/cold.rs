//! Finding the file of a handle without a node: after a restart, or when its node was evicted.
//! `docs/formats/handles.md` explains why this finds what it must.
//!
//! With kernel handles the file itself is opened at once, and what remains is to show that it is
//! still inside the share. Without them the file is searched for where it was last found, at the
//! locations in the table, and then, bounded, in the whole tree.

use std::collections::{HashMap, VecDeque};
use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::limits::{ANCESTORS_MAX, COLD_SEARCH_ENTRIES_MAX, COLD_SEARCH_FRESH, DEPTH_MAX};

use crate::attr::{Attr, FileType};
use crate::flush::FlushSite;
use crate::fs::{Context, Result};
use crate::handle::Handle;
use crate::host::ids::{self, Ident, Parsed};
use crate::host::lock::lock;
use crate::host::node::Node;
use crate::host::stream::Stream;
use crate::host::sys::KernelHandle;
use crate::host::{HostFs, attrs, sys};
use crate::locks::FileKey;
use crate::name::Name;
use crate::status::Status;

/// [`COLD_SEARCH_FRESH`] in nanoseconds.
const FRESH_NS: u64 = COLD_SEARCH_FRESH.as_nanos() as u64;

/// What a search through the tree has found.
pub struct Searched {
    /// When it ended (monotonic, nanoseconds).
    at: u64,
    /// Inode number → the directory in which it was met.
    places: HashMap<u64, Ident>,
}

impl HostFs {
    /// The node of a handle, held or found.
    #[inline]
    pub(super) fn node(&self, cx: Context<'_>, handle: &Handle) -> Result<Arc<Node>> {
        match self.nodes.get(handle) {
            // It may have become a logical unit's since it was opened.
            Some(node) if self.exclusive.contains(self.live_dev, node.ino) => Err(Status::Stale),
            Some(node) => Ok(node),
            None => self.cold(cx, handle),
        }
    }

    #[cold]
    fn cold(&self, cx: Context<'_>, handle: &Handle) -> Result<Arc<Node>> {
        let parsed = self.keys.open(handle)?;
        if !cx.may_block {
            return Err(Status::WouldBlock);
        }
        let _server = self.as_server(cx)?;
        let found = match parsed.ident {
            Ident::Kernel(kernel) if self.kernel => self.by_kernel_handle(&kernel, &parsed, handle),
            Ident::Inode { ino, birth } if !self.kernel => {
                self.by_inode(ino, birth, &parsed, handle)
            }
            // Made under another form: with privilege that is gone, or before it came.
            _ => Err(Status::Stale),
        };
        // One that is removed and has nothing but its inode left is found by that.
        let found = match found {
            Ok((_, attr)) if attr.nlink == 0 => Err(Status::Stale),
            other => other,
        };
        if found.is_err()
            && let Some(node) = self.retained(&parsed.ident)
            && !self.hidden(node.ino)
        {
            return Ok(node);
        }
        let counter = if found.is_ok() { &self.cold_found } else { &self.cold_stale };
        counter.fetch_add(1, Ordering::Relaxed);
        let (fd, attr) = found?;
        if self.hidden(attr.fileid) {
            return Err(Status::Stale);
        }
        let kind = attr.kind;
        self.paths.note_inode(ids::file_id(handle), attr.fileid);
        Ok(self.nodes.insert(Node::new(fd, attr.fileid, kind, *handle, parsed.ident)))
    }

    /// The directory above, never above the root, and only if it is inside the share.
    pub(super) fn parent(&self, cx: Context<'_>, dir: &Arc<Node>) -> Result<Arc<Node>> {
        if dir.ino == self.root.ino {
            return Ok(Arc::clone(&self.root));
        }
        if !cx.may_block && !self.inline.all {
            return Err(Status::WouldBlock);
        }
        let _server = self.as_server(cx)?;
        let fd = self.up(dir.fd())?;
        let st = sys::stat(fd.as_fd())?;
        // One that we hold was inside when it was met, and is served as such: the walk to the root
        // from each directory of a deep tree would take more than all else.
        if st.st_dev == self.dev
            && let Some(node) = self.nodes.by_ino(st.st_ino)
        {
            return Ok(node);
        }
        if !self.reaches_root(fd.as_fd())? {
            return Err(Status::Stale);
        }
        self.adopt(fd, &attrs::from_stat(&st, self.medium()), None)
    }

    /// A directory and those above it, beyond the root of the share up to that of the file system:
    /// one walk up, where asking for one parent after the other would look from each of them
    /// whether it is inside the share.
    pub(super) fn ancestor_keys(&self, cx: Context<'_>, dir: &Handle) -> Result<Vec<FileKey>> {
        let dir = self.node(cx, dir)?;
        if dir.kind != FileType::Directory {
            return Err(Status::NotDirectory);
        }
        if !cx.may_block && !self.inline.all {
            return Err(Status::WouldBlock);
        }
        let _server = self.as_server(cx)?;
        let key = |fileid| FileKey { fsid: self.fsid, fileid, generation: 0 };
        let (mut keys, mut at) = (vec![key(dir.ino)], dir.fd().try_clone_to_owned()?);
        // Ends at a mount point, or at what an unprivileged server may not search.
        while let Ok(above) = self.up(at.as_fd()) {
            let st = sys::stat(above.as_fd())?;
            if st.st_dev != self.dev || keys.last() == Some(&key(st.st_ino)) {
                break;
            }
            if keys.len() >= ANCESTORS_MAX {
                return Err(Status::NameTooLong);
            }
            keys.push(key(st.st_ino));
            at = above;
        }
        let inside = keys.contains(&key(self.root.ino));
        if inside { Ok(keys) } else { Err(Status::Stale) }
    }

    fn up(&self, dir: BorrowedFd<'_>) -> Result<OwnedFd> {
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        sys::open_at2(dir, c"..", flags, sys::NO_XDEV).map_err(|_| Status::Stale)
    }

    /// Whether the way up from a directory comes to the root of the share.
    fn reaches_root(&self, dir: BorrowedFd<'_>) -> Result<bool> {
        let mut at = dir.try_clone_to_owned()?;
        for _ in 0..DEPTH_MAX {
            let st = sys::stat(at.as_fd())?;
            if st.st_dev != self.dev || self.hidden(st.st_ino) {
                return Ok(false);
            }
            if st.st_ino == self.root.ino {
                return Ok(true);
            }
            let Ok(above) = self.up(at.as_fd()) else { return Ok(false) };
            if sys::stat(above.as_fd())?.st_ino == st.st_ino {
                return Ok(false);
            }
            at = above;
        }
        Ok(false)
    }

    fn by_kernel_handle(
        &self,
        kernel: &KernelHandle,
        parsed: &Parsed,
        handle: &Handle,
    ) -> Result<(OwnedFd, Attr)> {
        let fd = sys::open_by_handle(self.mount.as_fd(), kernel, libc::O_PATH)
            .map_err(|_| Status::Stale)?;
        let attr = attrs::from_stat(&sys::stat(fd.as_fd())?, self.medium());
        let inside = if attr.kind == FileType::Directory {
            self.whole || self.reaches_root(fd.as_fd())?
        } else {
            self.whole
                || self.path_is_inside(fd.as_fd(), &attr)
                || self.is_in_known_parent(parsed, handle, &attr)
        };
        if inside { Ok((fd, attr)) } else { Err(Status::Stale) }
    }

    /// The path below the root by which the kernel knows a file: it knows none, or an old one,
    /// when its caches are cold.
    pub(super) fn kernel_path(&self, fd: BorrowedFd<'_>) -> Option<Vec<u8>> {
        let root = sys::path_of(self.root.fd()).ok()?;
        let path = sys::path_of(fd).ok()?;
        let below = path.strip_prefix(&root[..])?;
        let below = if root == b"/" { below } else { below.strip_prefix(b"/")? };
        (!below.is_empty()).then(|| below.to_vec())
    }

    /// Whether the path by which the kernel knows the file lies below the root and leads to it.
    fn path_is_inside(&self, fd: BorrowedFd<'_>, attr: &Attr) -> bool {
        let inside = || {
            let below = self.kernel_path(fd)?;
            let (dir, name) = match below.iter().rposition(|b| *b == b'/') {
                Some(at) => (below.get(..at)?, below.get(at + 1..)?),
                None => (&b"."[..], &below[..]),
            };
            let dir = CString::new(dir).ok()?;
            let resolve = sys::BENEATH | sys::NO_SYMLINKS | sys::NO_XDEV;
            let dir = sys::open_at2(self.root.fd(), &dir, libc::O_PATH, resolve).ok()?;
            // The way up is walked all the same: something on it may be hidden.
            let inside = self.reaches_root(dir.as_fd()).unwrap_or(false);
            self.named(dir.as_fd(), name, attr.fileid).filter(|_| inside)
        };
        inside().is_some()
    }

    /// Whether the file is in the directory that its handle contains, or in one that the table has,
    /// and that directory is inside the share.
    fn is_in_known_parent(&self, parsed: &Parsed, handle: &Handle, attr: &Attr) -> bool {
        let further = self.table.parents(&parsed.ident);
        parsed.parent.into_iter().chain(further).any(|parent| {
            let Ident::Kernel(kernel) = parent else { return false };
            let flags = libc::O_RDONLY | libc::O_DIRECTORY;
            let Ok(dir) = sys::open_by_handle(self.mount.as_fd(), &kernel, flags) else {
                return false;
            };
            self.reaches_root(dir.as_fd()).unwrap_or(false)
                && self.entry_of(dir, Some(handle), attr.fileid).is_some()
        })
    }

    /// The file with this inode number in a directory: by the name we remember, else by reading
    /// the directory.
    fn entry_of(&self, dir: OwnedFd, handle: Option<&Handle>, ino: u64) -> Option<(OwnedFd, Attr)> {
        let remembered = handle.and_then(|handle| self.paths.last(ids::file_id(handle)));
        if let Some((_, name)) = remembered
            && let Some(found) = self.named(dir.as_fd(), &name, ino)
        {
            return Some(found);
        }
        let mut stream = Stream::new(dir);
        loop {
            let dent = stream.peek().ok()??;
            if dent.ino == ino && !matches!(dent.name, b"." | b"..") {
                let name = dent.name.to_vec();
                if let Some(found) = self.named(stream.fd(), &name, ino) {
                    return Some(found);
                }
            }
            stream.pass();
        }
    }

    /// The file of this name, if it is that inode.
    fn named(&self, dir: BorrowedFd<'_>, name: &[u8], ino: u64) -> Option<(OwnedFd, Attr)> {
        let name = Name::any(name).ok()?;
        let fd = sys::open_at2(dir, name.as_cstr(), libc::O_PATH, sys::NO_XDEV).ok()?;
        let st = sys::stat(fd.as_fd()).ok()?;
        let same = st.st_ino == ino && st.st_dev == self.dev;
        same.then(|| (fd, attrs::from_stat(&st, self.medium())))
    }

    // --- without kernel handles ---------------------------------------------------------------

    fn by_inode(
        &self,
        ino: u64,
        birth: u64,
        parsed: &Parsed,
        handle: &Handle,
    ) -> Result<(OwnedFd, Attr)> {
        let ours = |found: &(OwnedFd, Attr)| {
            // One of a version that did not know it has none.
            birth == 0 || self.birth(found.0.as_fd()).is_ok_and(|now| now == birth)
        };
        let mut places = Vec::new();
        if parsed.is_dir {
            if let Some(found) = self.known_dir(ino).filter(ours) {
                return Ok(found);
            }
            places.extend(self.table.dir(ino).map(|record| record.parent));
        }
        places.extend(parsed.parent);
        places.extend(self.table.parents(&parsed.ident));
        for place in places {
            let Ident::Inode { ino: parent, birth: parent_birth } = place else { continue };
            let Some((dir, _)) = self.known_dir(parent) else { continue };
            // A new directory may have got the number of the old one.
            if self.birth(dir.as_fd())? != parent_birth {
                continue;
            }
            let Ok(dir) = sys::open_at(dir.as_fd(), c".", libc::O_RDONLY, 0) else { continue };
            if let Some(found) = self.entry_of(dir, Some(handle), ino).filter(ours) {
                return Ok(found);
            }
        }
        self.search(ino, parsed).filter(ours).ok_or(Status::Stale)
    }

    /// A file somewhere in the tree, by the outcome of the last search or of a new one.
    fn search(&self, ino: u64, parsed: &Parsed) -> Option<(OwnedFd, Attr)> {
        // Other threads wait for this search instead of making one more.
        let mut searched = lock(&self.searched);
        let now = base::clock::monotonic_ns();
        let fresh = searched.as_ref().is_some_and(|last| now.saturating_sub(last.at) < FRESH_NS);
        if !fresh {
            let places = self.search_tree();
            self.searches.fetch_add(1, Ordering::Relaxed);
            *searched = Some(Searched { at: base::clock::monotonic_ns(), places });
        }
        let here = *searched.as_ref()?.places.get(&ino)?;
        drop(searched);
        let Ident::Inode { ino: parent, .. } = here else { return None };
        let (dir, _) = self.known_dir(parent)?;
        let dir = sys::open_at(dir.as_fd(), c".", libc::O_RDONLY, 0).ok()?;
        let found = self.entry_of(dir, None, ino)?;
        if !parsed.is_dir {
            let hint = parsed.parent.unwrap_or(here);
            self.table.note_moved(&parsed.ident, hint, &[here]);
        }
        Some(found)
    }

    /// A directory by its inode number: from the root down along the names of the table, each
    /// step checked.
    fn known_dir(&self, ino: u64) -> Option<(OwnedFd, Attr)> {
        let mut way = Vec::new();
        let mut at = ino;
        while at != self.root.ino {
            if way.len() >= DEPTH_MAX || self.hidden(at) {
                return None;
            }
            let record = self.table.dir(at)?;
            let Ident::Inode { ino: above, .. } = record.parent else { return None };
            way.push((at, record));
            at = above;
        }
        let mut fd = self.root.fd().try_clone_to_owned().ok()?;
        while let Some((ino, record)) = way.pop() {
            let found = self.named(fd.as_fd(), &record.name, ino).or_else(|| {
                // Renamed within its directory behind our back, or before the table was written.
                let dir = sys::open_at(fd.as_fd(), c".", libc::O_RDONLY, 0).ok()?;
                self.entry_of(dir, None, ino)
            })?;
            let birth = self.birth(found.0.as_fd()).ok()?;
            if birth != record.birth || found.1.kind != FileType::Directory {
                return None;
            }
            fd = found.0;
        }
        let attr = attrs::from_stat(&sys::stat(fd.as_fd()).ok()?, self.medium());
        Some((fd, attr))
    }

    /// Looks through the tree, level by level, bounded: for every inode number the directory that
    /// it was met in. The directories themselves go into the table.
    fn search_tree(&self) -> HashMap<u64, Ident> {
        let mut places = HashMap::new();
        if !FlushSite::HandleTable.enabled() {
            // A test that leaves out the flush of the table: a small tree would replace the table.
            return places;
        }
        let mut left = COLD_SEARCH_ENTRIES_MAX;
        let mut queue = VecDeque::from([(Vec::<Vec<u8>>::new(), self.root.ident)]);
        while let Some((path, here)) = queue.pop_front() {
            let Some(dir) = self.descend(&path) else { continue };
            let mut stream = Stream::new(dir);
            while let Ok(Some(dent)) = stream.peek() {
                let Some(less) = left.checked_sub(1) else { return places };
                left = less;
                let (name, ino) = (dent.name.to_vec(), dent.ino);
                stream.pass();
                if matches!(&name[..], b"." | b"..") || self.hidden(ino) {
                    continue;
                }
                places.insert(ino, here);
                if let Some(ident) = self.dir_below(stream.fd(), &name) {
                    self.table.note_dir(&ident, here, &name);
                    let below = path.iter().cloned().chain([name.clone()]).collect();
                    queue.push_back((below, ident));
                }
            }
        }
        places
    }

    /// Opens a directory by names from the root; `None` if it is not there any more.
    fn descend(&self, path: &[Vec<u8>]) -> Option<OwnedFd> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        let mut fd = sys::open_at(self.root.fd(), c".", flags, 0).ok()?;
        for name in path {
            let name = Name::any(name).ok()?;
            fd = sys::open_at2(fd.as_fd(), name.as_cstr(), flags, sys::NO_XDEV).ok()?;
        }
        Some(fd)
    }

    /// What identifies a name that is a directory on our file system.
    fn dir_below(&self, dir: BorrowedFd<'_>, name: &[u8]) -> Option<Ident> {
        let name = Name::any(name).ok()?;
        let (attr, birth) = self.child_attr(dir, name.as_cstr()).ok()?;
        let is_dir = attr.kind == FileType::Directory;
        is_dir.then_some(Ident::Inode { ino: attr.fileid, birth })
    }
}
