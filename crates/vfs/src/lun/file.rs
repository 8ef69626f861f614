//! A medium in a file of its own, or on a block device.
//!
//! Reads and writes go through the page cache, which initiators see as a volatile write cache.
//! Holes of the file are blocks without space.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Extent, Ledger, Medium, MediumStatus, device};
use crate::cache_drop::{CacheDrop, CachedFile};
use crate::flush::FlushSite;
use crate::fs::Result;
use crate::host::sys::{self, extents};
use crate::mapped::{Slice, Windows};
use crate::status::Status;

/// `TMPFS_MAGIC` of linux/magic.h: nothing on it ever waits for a disk.
const TMPFS: u64 = 0x0102_1994;
/// Zeros that are written where the file system cannot make them otherwise.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// How a new file gets its space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// When it is written.
    Sparse,
    /// At once, so that it cannot run out.
    Reserved,
}

/// An open file or block device.
pub struct FileMedium {
    file: File,
    read_only: bool,
    /// A block device; its size cannot be changed here.
    is_device: bool,
    size: AtomicU64,
    ledger: Ledger,
    /// Nothing ever blocks.
    is_memory: bool,
    /// What the file system can do without waiting, found by trying.
    reads_at_once: AtomicBool,
    writes_at_once: AtomicBool,
    /// Parts that are sent from where they are in memory.
    windows: Windows,
}

impl FileMedium {
    /// Makes a file of `size` bytes, which must not be there. It is on disk when this returns, but
    /// for the name.
    ///
    /// # Errors
    /// The error of the system call; then there is no file.
    pub fn create(path: &Path, size: u64, space: Space) -> io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        let made = sys::truncate(file.as_fd(), size).and_then(|()| match space {
            Space::Sparse => Ok(()),
            Space::Reserved => extents::allocate(file.as_fd(), 0, size),
        });
        match made.and_then(|()| file.sync_all()).and_then(|()| Self::of(file, false)) {
            Ok(medium) => Ok(medium),
            Err(error) => {
                // The first error is the cause.
                let _ = std::fs::remove_file(path);
                Err(error)
            }
        }
    }

    /// Opens a file or a block device. A device that is mounted or otherwise in use is refused by
    /// the kernel.
    ///
    /// # Errors
    /// The error of the system call; `InvalidInput` for any other type of file.
    pub fn open(path: &Path, read_only: bool) -> io::Result<Self> {
        let kind = std::fs::metadata(path)?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let exclusive = if kind.is_block_device() { libc::O_EXCL } else { 0 };
        let file =
            OpenOptions::new().read(true).write(!read_only).custom_flags(exclusive).open(path)?;
        Self::of(file, read_only)
    }

    fn of(file: File, read_only: bool) -> io::Result<Self> {
        let meta = file.metadata()?;
        let is_device = meta.file_type().is_block_device();
        let size = if is_device { device::size(&file)? } else { meta.len() };
        let is_memory = sys::statfs(file.as_fd())?.f_type as u64 == TMPFS && !is_device;
        Ok(Self {
            file,
            read_only,
            is_device,
            size: AtomicU64::new(size),
            ledger: Ledger::default(),
            is_memory,
            reads_at_once: AtomicBool::new(true),
            writes_at_once: AtomicBool::new(true),
            windows: Windows::default(),
        })
    }

    /// Reserves space up to this many bytes, for a unit that is about to grow.
    ///
    /// # Errors
    /// The error of the system call, usually `ENOSPC`.
    pub fn reserve(&self, size: u64) -> io::Result<()> {
        let now = self.size.load(Ordering::Acquire);
        match size.checked_sub(now).filter(|more| *more > 0 && !self.is_device) {
            Some(more) => extents::allocate(self.file.as_fd(), now, more),
            None => Ok(()),
        }
    }

    /// Device and inode of the file: what no file protocol may reach while it is exported.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn identity(&self) -> io::Result<(u64, u64)> {
        let meta = self.file.metadata()?;
        Ok((meta.dev(), meta.ino()))
    }

    /// Copies all of it into a new file of the same file system without copying its blocks. What is
    /// written meanwhile may be in it or not: the caller holds writes back.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] where the file system cannot.
    pub fn snapshot(&self, path: &Path) -> io::Result<()> {
        let copy =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        let done = self.sync_whole().and_then(|()| {
            extents::clone((self.file.as_fd(), 0), (copy.as_fd(), 0), 0)?;
            copy.sync_all()
        });
        done.map_err(|error| {
            // The first error is the cause.
            let _ = std::fs::remove_file(path);
            match error.raw_os_error() {
                Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::EXDEV | libc::EINVAL) => {
                    io::ErrorKind::Unsupported.into()
                }
                _ => error,
            }
        })
    }

    /// Takes it out of the page cache: written back, unmapped, dropped.
    pub fn drop_cache(&self) -> CacheDrop {
        let mut found = CacheDrop::default();
        found.take(&CachedFile {
            fd: self.file.as_fd(),
            size: self.size(),
            unwritten: self.ledger.is_dirty(),
            write_back: &|| self.sync(),
            unmap: &|| self.windows.clear(),
            name: &|| "its file".to_owned(),
        });
        found
    }

    /// Brings all of it to disk. The ledger records the outcome: the kernel reports a failure once,
    /// and it has still to be reported to initiators.
    fn sync_whole(&self) -> io::Result<()> {
        let mut outcome = Ok(());
        // `outcome` has the full error.
        let _ = self.ledger.flush(|| {
            outcome = sys::sync(self.file.as_fd(), false);
            if outcome.is_ok() { Ok(()) } else { Err(Status::Io) }
        });
        outcome
    }

    fn write_all(&self, mut offset: u64, mut data: &[u8]) -> Result<()> {
        while !data.is_empty() {
            let count = match sys::write_at(self.file.as_fd(), data, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                done => done?,
            };
            if count == 0 {
                return Err(Status::Io);
            }
            data = data.get(count..).unwrap_or_default();
            offset += count as u64;
        }
        Ok(())
    }

    /// Writes as much as can be without waiting: how many bytes.
    fn write_at_once(&self, offset: u64, data: &[u8]) -> Result<usize> {
        if !self.writes_at_once.load(Ordering::Relaxed) {
            return Err(Status::WouldBlock);
        }
        match sys::write_flags(self.file.as_fd(), data, offset, libc::RWF_NOWAIT) {
            Ok(count) => Ok(count),
            Err(error) => {
                if error.raw_os_error() == Some(libc::EOPNOTSUPP) {
                    self.writes_at_once.store(false, Ordering::Relaxed);
                }
                // Whatever it is, the write that may wait finds it out.
                Err(Status::WouldBlock)
            }
        }
    }

    fn changeable(&self) -> Result<()> {
        if self.read_only { Err(Status::ReadOnly) } else { Ok(()) }
    }

    fn write_zeros(&self, mut offset: u64, mut length: u64) -> Result<()> {
        while length > 0 {
            let count = length.min(ZEROS.len() as u64);
            self.write_all(offset, ZEROS.get(..count as usize).unwrap_or_default())?;
            offset += count;
            length -= count;
        }
        Ok(())
    }

    /// Whether the kernel has no such way to do it.
    fn is_unsupported(error: &io::Error) -> bool {
        matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL))
    }
}

impl Medium for FileMedium {
    fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn read(&self, offset: u64, into: &mut [u8], may_block: bool) -> Result<()> {
        let wait = may_block || self.is_memory;
        if !wait && !self.reads_at_once.load(Ordering::Relaxed) {
            return Err(Status::WouldBlock);
        }
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match sys::read_at(self.file.as_fd(), rest, offset + done as u64, !wait) {
                // The file was cut short under us.
                Ok(0) => return Err(Status::Io),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if !wait => {
                    if error.raw_os_error() == Some(libc::EOPNOTSUPP) {
                        self.reads_at_once.store(false, Ordering::Relaxed);
                    }
                    return Err(Status::WouldBlock);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn slice(&self, offset: u64, length: usize) -> Option<Slice> {
        if !self.reads_at_once.load(Ordering::Relaxed) || length == 0 {
            return None;
        }
        let fd = self.file.as_fd();
        let slice = self.windows.slice(fd, offset, length)?;
        // In memory too: to look at a hole through a mapping would fill it.
        if sys::in_cache(fd, offset, length) != Some(true) {
            return None;
        }
        // What is being read ahead is in the cache and not there yet; it comes in order.
        let last = offset + length as u64 - 1;
        let is_there = || sys::read_at(fd, &mut [0], last, true).is_ok_and(|count| count == 1);
        (self.is_memory || is_there()).then_some(slice)
    }

    fn write(&self, offset: u64, data: &[u8], may_block: bool) -> Result<()> {
        self.changeable()?;
        if may_block || self.is_memory {
            return self.write_all(offset, data);
        }
        let count = self.write_at_once(offset, data)?;
        if count == data.len() {
            return Ok(());
        }
        // A part is written: writing it once more does no harm, unless the command has compared
        // what was there before. One that has must not get here with more than a page.
        Err(Status::WouldBlock)
    }

    fn write_durable(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.changeable()?;
        let flags = if FlushSite::LunFua.enabled() { libc::RWF_DSYNC } else { 0 };
        let (mut done, fd) = (0, self.file.as_fd());
        while let Some(rest) = data.get(done..).filter(|rest| !rest.is_empty()) {
            match sys::write_flags(fd, rest, offset + done as u64, flags) {
                Ok(0) => return Err(Status::Io),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                    self.write_all(offset, data)?;
                    return self.ledger.flush(|| Ok(sys::sync(fd, true)?));
                }
                Err(error) => {
                    let status = Status::from(error);
                    if !matches!(status, Status::NoSpace | Status::Quota) {
                        self.ledger.fail();
                    }
                    return Err(status);
                }
            }
        }
        Ok(())
    }

    fn discard(&self, offset: u64, length: u64) -> Result<()> {
        self.changeable()?;
        match extents::punch(self.file.as_fd(), offset, length) {
            Err(error) if Self::is_unsupported(&error) => self.write_zeros(offset, length),
            done => Ok(done?),
        }
    }

    fn zero(&self, offset: u64, length: u64) -> Result<()> {
        self.changeable()?;
        match extents::zero(self.file.as_fd(), offset, length) {
            Err(error) if Self::is_unsupported(&error) => self.write_zeros(offset, length),
            done => Ok(done?),
        }
    }

    fn extent(&self, offset: u64) -> Result<Extent> {
        let (fd, size) = (self.file.as_fd(), self.size());
        let all = Extent { is_mapped: true, end: size };
        match extents::seek(fd, offset, false) {
            // No data from here on.
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {
                Ok(Extent { is_mapped: false, end: size })
            }
            // It does not know; then all of it has space.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(all),
            Err(error) => Err(error.into()),
            Ok(data) if data > offset => Ok(Extent { is_mapped: false, end: data.min(size) }),
            Ok(_) => match extents::seek(fd, offset, true) {
                Ok(hole) => Ok(Extent { is_mapped: true, end: hole.clamp(offset + 1, size) }),
                Err(_) => Ok(all),
            },
        }
    }

    fn resize(&self, size: u64) -> Result<()> {
        self.changeable()?;
        if self.is_device {
            return Err(Status::NotSupported);
        }
        sys::truncate(self.file.as_fd(), size)?;
        self.size.store(size, Ordering::Release);
        Ok(())
    }

    fn status(&self) -> MediumStatus {
        let allocated = match self.is_device {
            true => self.size(),
            false => self.file.metadata().map_or(0, |meta| meta.blocks() * 512),
        };
        let (flush_failures, is_dirty) = (self.ledger.failures(), self.ledger.is_dirty());
        MediumStatus { allocated, flush_failures, is_dirty }
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn sync(&self) -> Result<()> {
        self.ledger.flush(|| match sys::sync(self.file.as_fd(), true) {
            Ok(()) => Ok(()),
            Err(error) => Err(match Status::from(error) {
                full @ (Status::NoSpace | Status::Quota) => full,
                _ => Status::Io,
            }),
        })
    }
}

/// Flushes the folder that names a file.
///
/// # Errors
/// The error of the system call.
pub fn sync_name(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let folder = CString::new(folder.unwrap_or(Path::new(".")).as_os_str().as_bytes())?;
    let fd = sys::open_path(&folder, libc::O_RDONLY | libc::O_DIRECTORY)?;
    sys::sync(fd.as_fd(), false)
}

#[cfg(test)]
mod tests;
