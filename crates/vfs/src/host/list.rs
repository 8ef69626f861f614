//! Listing a directory: our own getdents64 with the kernel's positions as cookies.
//!
//! A cookie is `d_off`: on ext4, xfs, btrfs and tmpfs it names a place in the directory that stays
//! while entries come and go, and over a restart. So there is no verifier to break (it is zero,
//! and what a client hands back is not looked at). A listing that stops is parked with what it has
//! read ahead; the next call with its cookie goes on there if the directory has not changed, and
//! any other call seeks.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use base::limits::{DIR_BUFFER, DIR_STREAMS_PER_NODE};

use crate::attr::{Attr, FileType, Time};
use crate::fs::{Context, DirEntry, Entry, ListDone, Result};
use crate::handle::Handle;
use crate::host::node::{Counted, Node, lock};
use crate::host::{HostFs, attrs, sys};
use crate::name::Name;
use crate::rights;
use crate::status::Status;

/// One entry as the kernel gives it.
#[derive(Debug, Clone, Copy)]
pub struct Dent<'a> {
    /// Inode number.
    pub ino: u64,
    /// Position after this entry.
    pub next: u64,
    /// Name.
    pub name: &'a [u8],
}

/// A directory being read.
pub struct Stream {
    fd: OwnedFd,
    /// Cookie of the next entry.
    cookie: u64,
    /// What was read ahead: entries in `buf[at..end]`.
    buf: Vec<u8>,
    at: usize,
    end: usize,
    /// Change time of the directory when `buf` was filled.
    filled: Time,
    /// Whether a sweep has met it since it was parked.
    pub idle: bool,
    _counted: Counted,
}

impl Stream {
    /// Reads a directory from its start.
    pub fn new(fd: OwnedFd) -> Self {
        let (buf, filled) = (vec![0; DIR_BUFFER], Time::default());
        let (cookie, at, end) = (0, 0, 0);
        Self { fd, cookie, buf, at, end, filled, idle: false, _counted: Counted::new() }
    }

    /// The descriptor, for calls on the names in it.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Goes to `cookie`, given that the directory last changed at `ctime`.
    fn go(&mut self, cookie: u64, ctime: Time) -> Result<()> {
        if cookie != 0 && self.cookie == cookie && self.filled == ctime {
            return Ok(());
        }
        sys::seek_dir(self.fd(), cookie).map_err(|_| Status::BadCookie)?;
        (self.cookie, self.at, self.end, self.filled) = (cookie, 0, 0, ctime);
        Ok(())
    }

    /// The next entry without going past it; `None` at the end.
    pub fn peek(&mut self) -> Result<Option<Dent<'_>>> {
        if self.at >= self.end {
            self.at = 0;
            self.end =
                sys::dents(self.fd.as_fd(), &mut self.buf).map_err(|e| match e.raw_os_error() {
                    Some(libc::ENOENT) => Status::Stale,
                    Some(libc::EINVAL) => Status::BadCookie,
                    _ => Status::from(e),
                })?;
            if self.end == 0 {
                return Ok(None);
            }
        }
        let entry = self.buf.get(self.at..self.end).and_then(take_dent).ok_or(Status::Fault)?;
        Ok(Some(entry.0))
    }

    /// Goes past the entry that [`Stream::peek`] gave.
    pub fn pass(&mut self) {
        if let Some((dent, len)) = self.buf.get(self.at..self.end).and_then(take_dent) {
            self.cookie = dent.next;
            self.at += len;
        }
    }
}

/// Takes a `linux_dirent64` (getdents64(2)) apart: the entry and its length.
fn take_dent(bytes: &[u8]) -> Option<(Dent<'_>, usize)> {
    let ino = u64::from_ne_bytes(*bytes.first_chunk()?);
    let next = u64::from_ne_bytes(*bytes.get(8..)?.first_chunk()?);
    let len = usize::from(u16::from_ne_bytes(*bytes.get(16..)?.first_chunk()?));
    let name = bytes.get(19..len)?;
    let end = name.iter().position(|b| *b == 0)?;
    Some((Dent { ino, next, name: name.get(..end)? }, len))
}

/// What a listing tells of a name beside its number.
enum Plus {
    /// Handle and attributes.
    Entry(Entry),
    /// Attributes of what another file system has there.
    Mounted(Attr),
}

impl HostFs {
    /// See [`crate::fs::FileSystem::list`].
    pub(super) fn list_dir(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        cookie: u64,
        plus: bool,
        each: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<ListDone> {
        if !cx.may_block && !self.inline.all {
            return Err(Status::WouldBlock);
        }
        let dir = self.node(cx, dir)?;
        let attr = self.attr(&dir)?;
        if dir.kind != FileType::Directory {
            return Err(Status::NotDirectory);
        }
        let granted = self.rights(cx, &dir, &attr)?;
        if granted & rights::R == 0 {
            return Err(Status::Access);
        }
        let _either = self.as_either(cx)?;
        let mut stream = self.stream(&dir, cookie)?;
        stream.go(cookie, attr.ctime)?;
        let plus = plus && granted & rights::X != 0;
        let eof = self.run(cx, &dir, &mut stream, plus, each)?;
        if !eof {
            let mut parked = lock(&dir.streams);
            if parked.len() >= DIR_STREAMS_PER_NODE {
                parked.remove(0);
            }
            stream.idle = false;
            parked.push(stream);
        }
        Ok(ListDone { dir: self.attr(&dir)?, verifier: [0; 8], eof })
    }

    /// The parked stream for `cookie`, or a new one.
    fn stream(&self, dir: &Node, cookie: u64) -> Result<Stream> {
        let mut parked = lock(&dir.streams);
        if let Some(at) = parked.iter().position(|s| cookie != 0 && s.cookie == cookie) {
            return Ok(parked.remove(at));
        }
        drop(parked);
        self.scan(dir)
    }

    /// A new stream over a directory that we hold.
    pub(super) fn scan(&self, dir: &Node) -> Result<Stream> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        let fd = sys::open_at(dir.fd(), c".", flags | libc::O_NOATIME, 0)
            .or_else(|_| sys::open_at(dir.fd(), c".", flags, 0))?;
        Ok(Stream::new(fd))
    }

    /// Gives entries until one is not taken (false) or there are no more (true).
    fn run(
        &self,
        cx: Context<'_>,
        dir: &Arc<Node>,
        stream: &mut Stream,
        plus: bool,
        each: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<bool> {
        let at = dir.fd();
        while let Some(dent) = stream.peek()? {
            let top = dent.name == b".." && dir.ino == self.root.ino;
            let ino = if top { dir.ino } else { dent.ino };
            if !self.hidden(ino) {
                let found = if plus { self.plus(cx, dir, at, dent.name) } else { None };
                let (entry, mounted) = match found {
                    Some(Plus::Entry(entry)) => (Some(entry), None),
                    Some(Plus::Mounted(attr)) => (None, Some(attr)),
                    None => (None, None),
                };
                // What lies under a mount shows the inode that the entry leads to.
                let fileid = entry.as_ref().map_or(ino, |entry| entry.attr.fileid);
                let (name, cookie) = (dent.name, dent.next);
                if !each(DirEntry { fileid, name, cookie, entry, mounted }) {
                    return Ok(false);
                }
            }
            stream.pass();
        }
        Ok(true)
    }

    /// What a listed name leads to, without taking a descriptor for it.
    fn plus(
        &self,
        cx: Context<'_>,
        dir: &Arc<Node>,
        at: BorrowedFd<'_>,
        raw: &[u8],
    ) -> Option<Plus> {
        let entry = |handle, attr| Some(Plus::Entry(Entry { handle, attr }));
        if raw == b"." {
            return entry(dir.handle, self.attr(dir).ok()?);
        }
        if raw == b".." {
            let parent = self.parent(cx, dir).ok()?;
            return entry(parent.handle, self.attr(&parent).ok()?);
        }
        let name = Name::any(raw).ok()?;
        let sx = sys::statx_at(at, name.as_cstr()).ok()?;
        if self.is_mounted(&sx) {
            let medium = attrs::Medium { fsid: attrs::device(&sx), time_delta_ns: 1 };
            return Some(Plus::Mounted(attrs::from_statx(&sx, medium)));
        }
        let (attr, birth) = self.own_attr(&sx).ok()?;
        let (handle, attr) = match self.nodes.by_ino(attr.fileid) {
            Some(node) => (node.handle, node.completed(attr)),
            None => {
                let ident = self.identify(at, name.as_cstr(), attr.fileid, birth).ok()?;
                let attr = Attr { generation: ident.generation(), ..attr };
                (self.seal(ident, attr.kind, Some((dir, raw))).ok()?, attr)
            }
        };
        self.paths.note(super::ids::file_id(&handle), dir.id, raw);
        entry(handle, attr)
    }
}
