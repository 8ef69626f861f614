//! The operations that change nothing: attributes, rights, names, data, links, space.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::limits::READ_AHEAD;

use crate::attr::{Attr, FileType, Wcc};
use crate::fs::{Context, Entry, Extent, Failed, ReadDone, Result, SendfileRange};
use crate::handle::Handle;
use crate::host::acting::CredGuard;
use crate::host::lock::lock;
use crate::host::node::Node;
use crate::host::open::{Mode, OpenFile, Stamp};
use crate::host::{HostFs, attrs, sys};
use crate::name::Name;
use crate::rights;
use crate::status::Status;
use crate::turn::{self, CachedRead};

/// Symbolic links up to this length lie in the inode on ext4, which a held file keeps in memory.
const FAST_LINK_MAX: u64 = 59;

impl HostFs {
    /// Attributes of a file with a node; a removed file that is not retained is released and stale.
    #[inline]
    pub(super) fn attr(&self, node: &Arc<Node>) -> Result<Attr> {
        let attr = attrs::from_stat(&sys::stat(node.fd())?, self.medium());
        if attr.nlink == 0 {
            self.nodes.forget(node);
            if !node.is_retained() {
                return Err(Status::Stale);
            }
        }
        Ok(node.completed(attr))
    }

    pub(super) fn get_attributes(&self, cx: Context<'_>, file: &Handle) -> Result<Attr> {
        if !cx.may_block && !self.inline.attr {
            return Err(Status::WouldBlock);
        }
        let node = self.node(cx, file)?;
        node.birth.get_or_init(|| attrs::birth_time(&sys::statx_at(node.fd(), c"").ok()?));
        self.attr(&node)
    }

    /// Which of read, write and execute the caller has: by the mode bits, or by asking the
    /// kernel where there is more to it.
    pub(super) fn rights(&self, cx: Context<'_>, node: &Node, attr: &Attr) -> Result<u32> {
        let who = self.effective_cred(cx);
        if self.rules && !(rights::list_matters(attr, who) && self.has_list(cx, node, attr)?) {
            return Ok(rights::granted(attr, who));
        }
        if !cx.may_block {
            return Err(Status::WouldBlock);
        }
        let _caller = self.as_caller(cx)?;
        let may = |bit| if sys::may(node.fd(), bit).is_ok() { bit } else { 0 };
        Ok(may(rights::R) | may(rights::W) | may(rights::X))
    }

    /// Whether a file has an access control list, remembered by its change time.
    fn has_list(&self, cx: Context<'_>, node: &Node, attr: &Attr) -> Result<bool> {
        let ctime = (attr.ctime.sec as u64).wrapping_mul(base::clock::NS_PER_S)
            ^ u64::from(attr.ctime.nsec);
        let known = node.acl.load(Ordering::Acquire);
        if known != 0 && node.acl_ctime.load(Ordering::Relaxed) == ctime {
            return Ok(known == 2);
        }
        // The first question may read the disk; after it the kernel keeps the list with the
        // inode, which we hold.
        if !cx.may_block && known == 0 && !self.inline.all {
            return Err(Status::WouldBlock);
        }
        let has = sys::has_acl(node.fd())?;
        node.acl_ctime.store(ctime, Ordering::Relaxed);
        node.acl.store(if has { 2 } else { 1 }, Ordering::Release);
        Ok(has)
    }

    pub(super) fn check_access(
        &self,
        cx: Context<'_>,
        file: &Handle,
        want: u32,
    ) -> Result<(u32, Attr)> {
        if !cx.may_block && !self.inline.attr {
            return Err(Status::WouldBlock);
        }
        let node = self.node(cx, file)?;
        let attr = self.attr(&node)?;
        let rwx = self.rights(cx, &node, &attr)?;
        Ok((rights::to_access(attr.kind, rwx) & want, attr))
    }

    pub(super) fn look_up(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        raw: &[u8],
    ) -> std::result::Result<(Entry, Option<Attr>), Failed> {
        if !cx.may_block && !self.inline.attr {
            return Err(Status::WouldBlock.into());
        }
        let dir = self.node(cx, dir)?;
        let now = base::clock::wall_ns();
        let dir_attr = self.attr(&dir)?;
        let wcc = Wcc { before: None, after: Some(dir_attr) };
        self.find(cx, &dir, (&dir_attr, now), raw)
            .map(|(node, attr)| (Entry { handle: node.handle, attr }, Some(dir_attr)))
            .map_err(|status| Failed { status, wcc })
    }

    pub(super) fn look_up_parent(&self, cx: Context<'_>, dir: &Handle) -> Result<Entry> {
        let dir = self.node(cx, dir)?;
        if dir.kind != FileType::Directory {
            return Err(Status::NotDirectory);
        }
        if dir.ino == self.root.ino {
            return Err(Status::NotFound);
        }
        let attr = self.attr(&dir)?;
        if self.rights(cx, &dir, &attr)? & rights::X == 0 {
            return Err(Status::Access);
        }
        let above = self.parent(cx, &dir)?;
        Ok(Entry { handle: above.handle, attr: self.attr(&above)? })
    }

    fn find(
        &self,
        cx: Context<'_>,
        dir: &Arc<Node>,
        (dir_attr, now): (&Attr, u64),
        raw: &[u8],
    ) -> Result<(Arc<Node>, Attr)> {
        let name = Name::any(raw)?;
        if dir.kind != FileType::Directory {
            return Err(Status::NotDirectory);
        }
        if self.rights(cx, dir, dir_attr)? & rights::X == 0 {
            return Err(Status::Access);
        }
        match raw {
            b"." => return Ok((Arc::clone(dir), *dir_attr)),
            b".." => {
                let parent = self.parent(cx, dir)?;
                let attr = self.attr(&parent)?;
                return Ok((parent, attr));
            }
            _ => {}
        }
        if let Some(node) = self.recent.get(dir, dir_attr.ctime, raw)
            && !self.hidden(node.ino)
            && let Ok(attr) = self.attr(&node)
        {
            self.paths.note(node.id, dir.id, raw);
            return Ok((node, attr));
        }
        let _either = self.as_either(cx)?;
        let found = self.child(cx, dir, &name)?;
        self.paths.note(found.0.id, dir.id, raw);
        // Elsewhere than on the file systems we know, others may change names unseen.
        if self.inline.attr {
            self.recent.note(dir, dir_attr.ctime, now, raw, &found.0);
        }
        Ok(found)
    }

    /// Attributes and birth ([`super::births`]) of a name that lies on our file system and is not
    /// hidden.
    pub(super) fn child_attr(&self, dir: BorrowedFd<'_>, name: &CStr) -> Result<(Attr, u64)> {
        self.own_attr((dir, name), &sys::statx_at(dir, name)?)
    }

    /// Whether another file system has something at a name: a mount, or a subvolume of btrfs.
    pub(super) fn is_mounted(&self, sx: &libc::statx) -> bool {
        let mounted = sx.stx_attributes & libc::STATX_ATTR_MOUNT_ROOT as u64 != 0;
        mounted || attrs::device(sx) != self.dev
    }

    /// Attributes and birth of what is at a name, if it lies on our file system and is not hidden.
    pub(super) fn own_attr(
        &self,
        (at, name): (BorrowedFd<'_>, &CStr),
        sx: &libc::statx,
    ) -> Result<(Attr, u64)> {
        if self.is_mounted(sx) {
            return Err(Status::Access);
        }
        if self.hidden(sx.stx_ino) {
            return Err(Status::NotFound);
        }
        let birth = if self.kernel { 0 } else { self.births.get(at, name, sx) };
        Ok((attrs::from_statx(sx, self.medium()), birth))
    }

    /// The file of a name, which is neither `.` nor `..`. Acts as the server.
    pub(super) fn child(
        &self,
        cx: Context<'_>,
        dir: &Arc<Node>,
        name: &Name,
    ) -> Result<(Arc<Node>, Attr)> {
        let quick = cx.may_block || self.inline.all;
        if quick {
            let (attr, _) = self.child_attr(dir.fd(), name.as_cstr())?;
            if let Some(node) = self.nodes.by_ino(attr.fileid) {
                let attr = node.completed(attr);
                return Ok((node, attr));
            }
        } else if !self.inline.lookup.load(Ordering::Relaxed) {
            return Err(Status::WouldBlock);
        }
        let resolve = sys::NO_XDEV | if quick { 0 } else { sys::CACHED };
        let fd = sys::open_at2(dir.fd(), name.as_cstr(), libc::O_PATH, resolve);
        let fd = fd.map_err(|e| match e.raw_os_error() {
            Some(libc::EXDEV) => Status::Access,
            Some(libc::EINVAL | libc::ENOSYS) if !quick => {
                self.inline.lookup.store(false, Ordering::Relaxed);
                Status::WouldBlock
            }
            _ => Status::from(e),
        })?;
        let st = sys::stat(fd.as_fd())?;
        // A subvolume is no mount, and its numbers are its own.
        if st.st_dev != self.dev {
            return Err(Status::Access);
        }
        let attr = attrs::from_stat(&st, self.medium());
        if self.hidden(attr.fileid) {
            return Err(Status::NotFound);
        }
        let node = self.adopt(fd, &attr, Some((dir, name.as_bytes())))?;
        let attr = node.completed(attr);
        Ok((node, attr))
    }

    /// The node of an O_PATH descriptor: the one we hold already, or a new one.
    pub(super) fn adopt(
        &self,
        fd: OwnedFd,
        attr: &Attr,
        met: Option<(&Node, &[u8])>,
    ) -> Result<Arc<Node>> {
        if let Some(node) = self.nodes.by_ino(attr.fileid) {
            return Ok(node);
        }
        let birth = if self.kernel { 0 } else { self.birth(fd.as_fd())? };
        let ident = self.identify(fd.as_fd(), c"", attr.fileid, birth)?;
        let handle = self.seal(ident, attr.kind, met)?;
        Ok(self.nodes.insert(Node::new(fd, attr.fileid, attr.kind, handle, ident)))
    }

    /// A descriptor for the caller to read or write by. The owner may always (RFC 1813 §4.4: a
    /// client checks at open, and we never see that).
    pub(super) fn open_for(
        &self,
        cx: Context<'_>,
        node: &Arc<Node>,
        attr: &Attr,
        write: bool,
    ) -> Result<Arc<OpenFile>> {
        match node.kind {
            FileType::Regular => {}
            FileType::Directory => return Err(Status::IsDirectory),
            _ => return Err(Status::Invalid),
        }
        let who = self.effective_cred(cx);
        let mode = if write { Mode::WRITE } else { Mode::READ };
        if let Some(file) = self.files.get(node, who, mode) {
            if self.still_valid(cx, node, &file, attr)? {
                return Ok(file);
            }
            self.files.give_up(node, &file);
        }
        if !cx.may_block && !self.inline.all {
            return Err(Status::WouldBlock);
        }
        let owner = who.uid == attr.uid;
        let fd = if cx.may_block {
            let caller = self.as_caller(cx)?;
            let fd = match reopen(node, write, owner || who.uid == 0) {
                Err(Status::Access | Status::NotOwner) if owner && self.switches => {
                    drop(caller);
                    let _server = CredGuard::as_server()?;
                    reopen(node, write, true)?
                }
                other => other?,
            };
            if self.switches && !owner {
                // Only the owner and the server may leave the access time alone.
                let _server = CredGuard::as_server()?;
                // Where that is refused all the same, reads cost a little more.
                let _ = sys::leave_atime(fd.as_fd());
            }
            fd
        } else {
            let bit = if write { rights::W } else { rights::R };
            if !owner && self.rights(cx, node, attr)? & bit == 0 {
                return Err(Status::Access);
            }
            reopen(node, write, self.switches || owner)?
        };
        let file = OpenFile::new(Arc::new(fd), mode, who, attr);
        self.files.keep(node, Arc::clone(&file));
        Ok(file)
    }

    /// Whether rights that were checked at open still hold, going by attributes taken since.
    pub(super) fn still_valid(
        &self,
        cx: Context<'_>,
        node: &Node,
        file: &OpenFile,
        attr: &Attr,
    ) -> Result<bool> {
        let mut stamp = lock(&file.stamp);
        if stamp.same(attr) {
            return Ok(true);
        }
        let who = &file.cred;
        // The owner and root never lose the right; for others only a list could have come.
        let holds = (who.uid == 0 && self.switches)
            || who.uid == attr.uid
            || (stamp.same_mode(attr) && !self.has_list(cx, node, attr)?);
        if holds {
            *stamp = Stamp::of(attr);
        }
        Ok(holds)
    }

    pub(super) fn read_file(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<ReadDone> {
        if !cx.may_block && !self.inline.read.load(Ordering::Relaxed) {
            return Err(Status::WouldBlock);
        }
        if i64::try_from(offset).is_err() {
            return Err(Status::Invalid);
        }
        if let Some(done) = self.read_again(cx, file, offset, buf) {
            return Ok(done);
        }
        let node = self.node(cx, file)?;
        let made = node.changes.made();
        let kept = self.files.get(&node, self.effective_cred(cx), Mode::READ);
        if let Some(open) = kept {
            let (count, attr) = self.read_by(cx, &node, &open, offset, buf)?;
            // What was read is given out only if the right to it is still there.
            if self.still_valid(cx, &node, &open, &attr)? {
                turn::see(CachedRead { node, open, attr, made });
                return self.read_done(cx, offset, buf.len(), count, attr);
            }
            self.files.give_up(&node, &open);
        }
        let attr = self.attr(&node)?;
        let open = self.open_for(cx, &node, &attr, false)?;
        let (count, attr) = self.read_by(cx, &node, &open, offset, buf)?;
        self.read_done(cx, offset, buf.len(), count, attr)
    }

    /// Reads more of the file that was read last in this [turn](crate::turn), by what was seen of
    /// it then. `None` if that will not do: the ordinary way finds out why.
    fn read_again(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        buf: &mut [u8],
    ) -> Option<ReadDone> {
        turn::seen(|seen| {
            let CachedRead { node, open, attr, made } = seen;
            let same =
                node.handle == *file && open.cred == *self.effective_cred(cx) && !cx.may_block;
            // The end of the file at that time does not determine its end now.
            let within = offset.checked_add(buf.len() as u64)? < attr.size;
            if !same || !within || node.changes.made() != *made {
                return None;
            }
            let count = sys::read_at(open.fd.as_fd(), buf, offset, !self.inline.all).ok()?;
            (count == buf.len()).then_some(ReadDone { count, eof: false, attr: *attr })
        })
    }

    /// Never waits, and never opens: that is left to the READ that comes before.
    pub(super) fn file_extent(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        count: usize,
    ) -> Option<Extent> {
        if !self.inline.read.load(Ordering::Relaxed) || i64::try_from(offset).is_err() {
            return None;
        }
        let node = self.node(cx, file).ok()?;
        let open = self.files.get(&node, self.effective_cred(cx), Mode::READ)?;
        let attr = self.attr(&node).ok()?;
        if !self.still_valid(cx, &node, &open, &attr).ok()? {
            return None;
        }
        let left = attr.size.saturating_sub(offset);
        let count = usize::try_from(left).map_or(count, |left| left.min(count));
        let data = open.windows.slice(open.fd.as_fd(), offset, count)?;
        // Asked on tmpfs too: to look at a hole there through a mapping would fill it.
        let end = offset.saturating_add(count as u64);
        if sys::in_cache(open.fd.as_fd(), offset, count) != Some(true) {
            return None;
        }
        if !self.inline.all && !is_there(open.fd.as_fd(), end - 1) {
            return None;
        }
        let eof = end >= attr.size;
        Some(Extent { data, count, eof, attr })
    }

    /// On a connection's thread it waits for nothing; on the pool it brings the requested range
    /// into memory and starts read-ahead of as much again, which then arrives while this range is
    /// sent.
    pub(super) fn file_stretch(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        count: usize,
    ) -> Result<SendfileRange> {
        if !self.inline.read.load(Ordering::Relaxed) {
            return Err(Status::NotSupported);
        }
        if i64::try_from(offset).is_err() {
            return Err(Status::Invalid);
        }
        let node = self.node(cx, file)?;
        let attr = self.attr(&node)?;
        let open = self.open_for(cx, &node, &attr, false)?;
        let left = attr.size.saturating_sub(offset);
        let count = usize::try_from(left).map_or(count, |left| left.min(count));
        let stretch =
            SendfileRange { file: Arc::clone(&open.fd), offset, count, eof: count as u64 == left };
        // What lives in memory, and its holes, are sent as they are.
        if count == 0 || self.inline.all {
            return Ok(stretch);
        }
        let (fd, last) = (open.fd.as_fd(), offset + count as u64 - 1);
        let here = sys::in_cache(fd, offset, count).ok_or(Status::NotSupported)?;
        if here && is_there(fd, last) {
            return Ok(stretch);
        }
        if !cx.may_block {
            return Err(Status::WouldBlock);
        }
        for at in (0..2 * count).step_by(READ_AHEAD) {
            sys::will_need(fd, offset.saturating_add(at as u64), READ_AHEAD);
        }
        sys::read_at(fd, &mut [0], last, false)?;
        // A disk that takes no advice, or too little memory: a read gets on in any case.
        let here = sys::in_cache(fd, offset, count) == Some(true);
        if here { Ok(stretch) } else { Err(Status::NotSupported) }
    }

    fn read_by(
        &self,
        cx: Context<'_>,
        node: &Arc<Node>,
        open: &OpenFile,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<(usize, Attr)> {
        let nowait = !cx.may_block && !self.inline.all;
        let count = sys::read_at(open.fd.as_fd(), buf, offset, nowait).map_err(|e| {
            if nowait && e.raw_os_error() == Some(libc::EOPNOTSUPP) {
                self.inline.read.store(false, Ordering::Relaxed);
                return Status::WouldBlock;
            }
            Status::from(e)
        })?;
        Ok((count, self.attr(node)?))
    }

    fn read_done(
        &self,
        cx: Context<'_>,
        offset: u64,
        wanted: usize,
        count: usize,
        attr: Attr,
    ) -> Result<ReadDone> {
        let eof = offset.saturating_add(count as u64) >= attr.size;
        // Only a part was in memory: the pool reads the rest.
        if count < wanted && !eof && !cx.may_block {
            return Err(Status::WouldBlock);
        }
        Ok(ReadDone { count, eof, attr })
    }

    pub(super) fn read_link(&self, cx: Context<'_>, link: &Handle) -> Result<(Vec<u8>, Attr)> {
        let node = self.node(cx, link)?;
        let attr = self.attr(&node)?;
        if node.kind != FileType::Symlink {
            return Err(Status::Invalid);
        }
        let quick = self.inline.all || (self.inline.attr && attr.size <= FAST_LINK_MAX);
        if !cx.may_block && !quick {
            return Err(Status::WouldBlock);
        }
        Ok((sys::readlink(node.fd())?, attr))
    }
}

/// Whether a byte of a file can be had at once. What is being read ahead is in the cache and not
/// there yet; it comes in order, so that its last byte speaks for it.
fn is_there(fd: BorrowedFd<'_>, at: u64) -> bool {
    sys::read_at(fd, &mut [0], at, true).is_ok_and(|n| n == 1)
}

/// Opens a regular file by its O_PATH descriptor, leaving its access time alone where allowed.
fn reopen(node: &Node, write: bool, noatime: bool) -> Result<OwnedFd> {
    let flags = libc::O_NOCTTY | if write { libc::O_WRONLY } else { libc::O_RDONLY };
    if noatime {
        match sys::reopen(node.fd(), flags | libc::O_NOATIME) {
            Err(e) if e.raw_os_error() == Some(libc::EPERM) => {}
            other => return Ok(other?),
        }
    }
    Ok(sys::reopen(node.fd(), flags)?)
}
