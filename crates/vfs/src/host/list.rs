//! Listing a directory: our own getdents64 with the kernel's positions as cookies.
//!
//! A cookie is `d_off`: on ext4, xfs, btrfs and tmpfs it names a position in the directory that
//! stays while entries come and go, and over a restart. So there is no verifier to break (it is
//! zero, and the one that a client returns is not checked). A listing that stops is parked with
//! what it has read ahead; the next call with its cookie continues there if the directory has not
//! changed, and any other call seeks.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::attr::{Attr, FileType};
use crate::fs::{Context, DirEntry, Entry, ListDone, Result};
use crate::handle::Handle;
use crate::host::lock::lock;
use crate::host::node::Node;
use crate::host::stream::Stream;
use crate::host::{HostFs, attrs, parked, sys};
use crate::name::Name;
use crate::rights;
use crate::status::Status;

/// What a listing returns for a name in addition to its number.
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
            parked::park(&dir, stream);
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
        let (attr, birth) = self.own_attr((at, name.as_cstr()), &sx).ok()?;
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
