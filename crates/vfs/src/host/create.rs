//! The operations that make a file: CREATE in its three ways, MKDIR, SYMLINK, MKNOD.
//!
//! The kernel decides, acting as the caller; attributes asked for are set by the same caller.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use crate::attr::{Attr, Before, FileType, SetAttr, SetTime, Time, Wcc};
use crate::flush::FlushSite;
use crate::fs::{Change, Changed, Context, CreateHow, Entry, Failed, Flush, Result, Special};
use crate::handle::Handle;
use crate::host::node::Node;
use crate::host::open::{Mode, OpenFile};
use crate::host::{HostFs, attrs, sys};
use crate::name::Name;
use crate::status::Status;

/// Permission bits of a file made exclusively, until its maker sets others.
const EXCLUSIVE_MODE: u32 = 0o600;
/// Permission bits if the caller names none.
const FILE_MODE: u32 = 0o644;
const DIR_MODE: u32 = 0o755;

/// What is made, other than a regular file.
pub enum What<'a> {
    Directory,
    Symlink(&'a [u8]),
    Special(Special),
}

/// A directory in which something changes, as it was before.
pub struct ChangedDirectory {
    pub dir: Arc<Node>,
    pub before: Before,
}

impl HostFs {
    /// The directory of a change. Waits are allowed from here on, or there are none.
    pub(super) fn place(&self, cx: Context<'_>, dir: &Handle) -> Result<ChangedDirectory> {
        if !cx.may_block && !self.inline.all {
            return Err(Status::WouldBlock);
        }
        let dir = self.node(cx, dir)?;
        let attr = self.attr(&dir)?;
        if dir.kind != FileType::Directory {
            return Err(Status::NotDirectory);
        }
        Ok(ChangedDirectory { dir, before: Before::from(&attr) })
    }

    /// The directory before and after.
    pub(super) fn wcc(&self, place: &ChangedDirectory) -> Wcc {
        Wcc { before: Some(place.before), after: self.attr(&place.dir).ok() }
    }

    /// Completes an outcome with the attributes of the directory.
    pub(super) fn finish<T>(
        &self,
        place: &ChangedDirectory,
        outcome: Result<(T, Flush)>,
    ) -> Change<T> {
        let wcc = self.wcc(place);
        match outcome {
            Ok((value, flush)) => Ok(Changed { value, wcc, flush }),
            Err(status) => Err(Failed { status, wcc }),
        }
    }

    pub(super) fn create_file(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
        how: CreateHow,
    ) -> Change<Entry> {
        let place = self.place(cx, dir)?;
        let outcome = Name::made(name).and_then(|name| self.create_in(cx, &place, &name, how));
        self.finish(&place, outcome)
    }

    fn create_in(
        &self,
        cx: Context<'_>,
        place: &ChangedDirectory,
        name: &Name,
        how: CreateHow,
    ) -> Result<(Entry, Flush)> {
        let set = match how {
            CreateHow::Unchecked(set) | CreateHow::Guarded(set) => set,
            CreateHow::Exclusive(verifier) => exclusive(verifier),
        };
        let caller = self.as_caller(cx)?.with_umask(set.umask);
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_NOCTTY;
        let mode = set.mode.unwrap_or(FILE_MODE) & 0o7777;
        let fd = match sys::open_at(place.dir.fd(), name.as_cstr(), flags, mode) {
            Ok(fd) => Arc::new(fd),
            Err(e) if e.raw_os_error() == Some(libc::EEXIST) => {
                return self.existing(cx, place, name, how);
            }
            Err(e) => return Err(e.into()),
        };
        place.dir.touched();
        let applied = self.apply_new(&fd, &set);
        let held = self.hold_new(place, name, &fd);
        drop(caller);
        let (path_fd, attr) = held?;
        let node = self.met(place, name, path_fd, &attr)?;
        self.files.keep(
            &node,
            OpenFile::new(Arc::clone(&fd), Mode::BOTH, self.effective_cred(cx), &attr),
        );
        applied?;
        let flush = self.flush_new(place, &node, Some(fd));
        Ok((Entry { handle: node.handle, attr: node.completed(attr) }, flush))
    }

    /// The O_PATH descriptor and the attributes of a new file. By its name, which is much quicker
    /// than through `/proc`; what is found must be what was made.
    fn hold_new(
        &self,
        place: &ChangedDirectory,
        name: &Name,
        made: &OwnedFd,
    ) -> Result<(OwnedFd, Attr)> {
        let st = sys::stat(made.as_fd())?;
        let attr = attrs::from_stat(&st, self.medium());
        if let Ok(fd) = sys::open_at(place.dir.fd(), name.as_cstr(), libc::O_PATH, 0)
            && let Ok(found) = sys::stat(fd.as_fd())
            && (found.st_ino, found.st_dev) == (st.st_ino, st.st_dev)
        {
            return Ok((fd, attr));
        }
        // Renamed or removed in this very moment.
        Ok((sys::reopen(made.as_fd(), libc::O_PATH)?, attr))
    }

    /// What is set on a new file beyond the mode that it was made with.
    fn apply_new(&self, fd: &OwnedFd, set: &SetAttr) -> Result<()> {
        if let Some(size) = set.size.filter(|size| *size > 0) {
            sys::truncate(fd.as_fd(), size)?;
        }
        let more = (set.uid, set.gid, set.atime, set.mtime);
        if more == (None, None, SetTime::Keep, SetTime::Keep) {
            return Ok(());
        }
        let st = sys::stat(fd.as_fd())?;
        let uid = set.uid.filter(|uid| *uid != st.st_uid);
        let gid = set.gid.filter(|gid| *gid != st.st_gid);
        // Giving a file away clears these bits, so the mode is set again.
        let again = uid.is_some() || gid.is_some();
        let rest = SetAttr { uid, gid, mode: set.mode.filter(|_| again), size: None, ..*set };
        attrs::apply(fd.as_fd(), &rest)
    }

    /// The node of a file that has just been made under `name`.
    fn met(
        &self,
        place: &ChangedDirectory,
        name: &Name,
        fd: OwnedFd,
        attr: &Attr,
    ) -> Result<Arc<Node>> {
        let node = self.adopt(fd, attr, Some((&place.dir, name.as_bytes())))?;
        self.paths.note(node.id, place.dir.id, name.as_bytes());
        Ok(node)
    }

    fn flush_new(
        &self,
        place: &ChangedDirectory,
        node: &Arc<Node>,
        fd: Option<Arc<OwnedFd>>,
    ) -> Flush {
        let mut flush = Flush::NONE;
        self.flush_file(&mut flush, FlushSite::CreateFile, node, fd);
        self.flush_file(&mut flush, FlushSite::CreateDirectory, &place.dir, None);
        flush
    }

    /// CREATE of an existing name.
    fn existing(
        &self,
        cx: Context<'_>,
        place: &ChangedDirectory,
        name: &Name,
        how: CreateHow,
    ) -> Result<(Entry, Flush)> {
        let (node, attr) = self.child(cx, &place.dir, name).map_err(|status| match status {
            Status::NotFound => Status::Exists,
            other => other,
        })?;
        let regular = node.kind == FileType::Regular;
        let entry = Entry { handle: node.handle, attr };
        match how {
            CreateHow::Guarded(_) => Err(Status::Exists),
            CreateHow::Unchecked(_) if !regular => Err(Status::Exists),
            CreateHow::Unchecked(set) => {
                // The flush of its creation may still be pending; the reply that the file exists
                // waits for it.
                let Some(size) = set.size else {
                    return Ok((entry, self.flush_new(place, &node, None)));
                };
                let open = self.open_for(cx, &node, &attr, true)?;
                sys::truncate(open.fd.as_fd(), size)?;
                node.touched();
                let attr = self.attr(&node)?;
                let flush = self.flush_new(place, &node, Some(Arc::clone(&open.fd)));
                Ok((Entry { attr, ..entry }, flush))
            }
            CreateHow::Exclusive(verifier) => {
                let (atime, mtime) = verifier_times(verifier);
                let ours = regular && attr.size == 0 && attr.atime == atime && attr.mtime == mtime;
                if !ours {
                    return Err(Status::Exists);
                }
                // The first call may still be waiting for its flush.
                Ok((entry, self.flush_new(place, &node, None)))
            }
        }
    }

    pub(super) fn make(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
        what: What<'_>,
        set: &SetAttr,
    ) -> Change<Entry> {
        let place = self.place(cx, dir)?;
        let made = Name::made(name).and_then(|name| self.make_in(cx, &place, &name, what, set));
        self.finish(&place, made)
    }

    fn make_in(
        &self,
        cx: Context<'_>,
        place: &ChangedDirectory,
        name: &Name,
        what: What<'_>,
        set: &SetAttr,
    ) -> Result<(Entry, Flush)> {
        let (at, cname) = (place.dir.fd(), name.as_cstr());
        let caller = self.as_caller(cx)?.with_umask(set.umask);
        match &what {
            What::Directory => {
                sys::mkdir_at(at, cname, set.mode.unwrap_or(DIR_MODE) & 0o7777)?;
            }
            What::Symlink(target) => {
                if target.is_empty() {
                    return Err(Status::Invalid);
                }
                let target = CString::new(*target).map_err(|_| Status::Invalid)?;
                sys::symlink_at(&target, at, cname)?;
            }
            What::Special(special) => {
                let format = match special.kind {
                    FileType::Fifo => libc::S_IFIFO,
                    FileType::Socket => libc::S_IFSOCK,
                    FileType::Block => libc::S_IFBLK,
                    FileType::Character => libc::S_IFCHR,
                    _ => return Err(Status::BadType),
                };
                let dev = sys::device(special.rdev.0, special.rdev.1);
                let mode = format | set.mode.unwrap_or(FILE_MODE) & 0o7777;
                sys::mknod_at(at, cname, mode, dev)?;
            }
        }
        place.dir.touched();
        let fd = sys::open_at2(at, cname, libc::O_PATH, sys::NO_XDEV)?;
        let is_link = matches!(what, What::Symlink(_));
        // A directory takes the set-group-id bit from its parent; links have no mode.
        let rest = SetAttr { mode: set.mode.filter(|m| !is_link && m & 0o6000 != 0), ..*set };
        let applied = self.apply_new_other(&fd, &rest);
        drop(caller);
        let attr = attrs::from_stat(&sys::stat(fd.as_fd())?, self.medium());
        let node = self.met(place, name, fd, &attr)?;
        let attr = node.completed(attr);
        let changed = applied?;
        let mut flush = Flush::NONE;
        let site = match what {
            What::Directory => {
                self.flush_file(&mut flush, FlushSite::MkdirNew, &node, None);
                self.flush_file(&mut flush, FlushSite::MkdirParent, &place.dir, None);
                return Ok((Entry { handle: node.handle, attr }, flush));
            }
            What::Symlink(_) => FlushSite::SymlinkDirectory,
            What::Special(_) => FlushSite::MknodDirectory,
        };
        self.flush_file(&mut flush, site, &place.dir, None);
        // A special file cannot be flushed separately. On the known file systems the name and its
        // inode are created in one transaction; later changes, and other file systems, take a flush
        // of everything.
        if changed || !self.inline.attr {
            self.flush_all(&mut flush, site);
        }
        Ok((Entry { handle: node.handle, attr }, flush))
    }

    /// Sets the attributes that a new file that is not regular was not created with; returns
    /// whether there were any.
    fn apply_new_other(&self, fd: &OwnedFd, set: &SetAttr) -> Result<bool> {
        let st = sys::stat(fd.as_fd())?;
        let uid = set.uid.filter(|uid| *uid != st.st_uid);
        let gid = set.gid.filter(|gid| *gid != st.st_gid);
        let rest = SetAttr { uid, gid, size: None, umask: None, ..*set };
        attrs::apply(fd.as_fd(), &rest)?;
        Ok(rest != SetAttr::default())
    }
}

/// A verifier as two times: the usual place, which survives a restart (RFC 1813 §3.3.8). The top
/// bits go, because some file systems keep 31 bits of seconds.
fn verifier_times(verifier: [u8; 8]) -> (Time, Time) {
    let [a, b, c, d, e, f, g, h] = verifier;
    let time = |word| Time { sec: i64::from(u32::from_be_bytes(word) & 0x7fff_ffff), nsec: 0 };
    (time([a, b, c, d]), time([e, f, g, h]))
}

fn exclusive(verifier: [u8; 8]) -> SetAttr {
    let (atime, mtime) = verifier_times(verifier);
    SetAttr {
        mode: Some(EXCLUSIVE_MODE),
        atime: SetTime::At(atime),
        mtime: SetTime::At(mtime),
        ..SetAttr::default()
    }
}
