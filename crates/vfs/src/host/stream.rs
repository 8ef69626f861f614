//! A directory that is being read: getdents64 with what was read ahead.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use base::limits::DIR_BUFFER;

use crate::attr::Time;
use crate::host::descriptors::Counted;
use crate::host::sys;
use crate::status::{Result, Status};

/// One entry as the kernel gives it.
#[derive(Debug, Clone, Copy)]
pub struct DirEntry<'a> {
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
    pub cookie: u64,
    /// What was read ahead: entries in `buf[at..end]`.
    buf: Vec<u8>,
    at: usize,
    end: usize,
    /// Change time of the directory when `buf` was filled.
    filled: Time,
    /// Whether a sweep has met it since it was parked.
    pub idle: bool,
    /// Its number among those that are parked.
    pub parked: u64,
    _counted: Counted,
}

impl Stream {
    /// Reads a directory from its start.
    pub fn new(fd: OwnedFd) -> Self {
        let (buf, filled) = (vec![0; DIR_BUFFER], Time::default());
        let (cookie, at, end) = (0, 0, 0);
        let (idle, parked) = (false, 0);
        Self { fd, cookie, buf, at, end, filled, idle, parked, _counted: Counted::new() }
    }

    /// The descriptor, for calls on the names in it.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Goes to `cookie`, given that the directory last changed at `ctime`.
    pub fn go(&mut self, cookie: u64, ctime: Time) -> Result<()> {
        if cookie != 0 && self.cookie == cookie && self.filled == ctime {
            return Ok(());
        }
        sys::seek_dir(self.fd(), cookie).map_err(|_| Status::BadCookie)?;
        (self.cookie, self.at, self.end, self.filled) = (cookie, 0, 0, ctime);
        Ok(())
    }

    /// The next entry without going past it; `None` at the end.
    pub fn peek(&mut self) -> Result<Option<DirEntry<'_>>> {
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
fn take_dent(bytes: &[u8]) -> Option<(DirEntry<'_>, usize)> {
    let ino = u64::from_ne_bytes(*bytes.first_chunk()?);
    let next = u64::from_ne_bytes(*bytes.get(8..)?.first_chunk()?);
    let len = usize::from(u16::from_ne_bytes(*bytes.get(16..)?.first_chunk()?));
    let name = bytes.get(19..len)?;
    let end = name.iter().position(|b| *b == 0)?;
    Some((DirEntry { ino, next, name: name.get(..end)? }, len))
}
