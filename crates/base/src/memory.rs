//! Pages of the page cache; what the allocator of this process has handed out, and giving back what
//! it keeps of freed memory.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Bytes of a page.
pub fn page_size() -> u64 {
    // SAFETY: reads a constant of the system.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Pages of a part of a file that are in the page cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CachedPages {
    /// In memory.
    pub resident: u64,
    /// Of these changed and not written back yet.
    pub dirty: u64,
    /// Of these on their way to the disk.
    pub writeback: u64,
}

/// Pages in the page cache by cachestat(2), since Linux 6.5; a `length` of 0 is up to the end.
///
/// # Errors
/// `ENOSYS` before, `EPERM` of a file that this process may not write and does not own.
pub fn cached_pages(fd: BorrowedFd<'_>, offset: u64, length: u64) -> io::Result<CachedPages> {
    /// Its number, the same on all architectures.
    const CACHESTAT: libc::c_long = 451;
    let range = [offset, length];
    // Cached, dirty, in writeback, evicted, recently evicted.
    let mut counts = [0_u64; 5];
    let (ask, answer) = (range.as_ptr(), counts.as_mut_ptr());
    // SAFETY: the call reads two and writes five 64-bit numbers, which live as long as it lasts.
    match unsafe { libc::syscall(CACHESTAT, fd.as_raw_fd(), ask, answer, 0_u32) } {
        0 => Ok(CachedPages { resident: counts[0], dirty: counts[1], writeback: counts[2] }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Removes a file's clean pages from the page cache (posix_fadvise(2)); mapped ones stay.
///
/// # Errors
/// Those of the call.
pub fn dont_need(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no memory is involved.
    match unsafe { libc::posix_fadvise(fd.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Gives back what the allocator keeps of freed memory. Worth it after work that is rare and takes
/// much: the GNU allocator keeps up to 64 MiB at the end of each of its heaps, and all that lies
/// below something that is still in use. Takes a millisecond for some hundred MiB; elsewhere it
/// does nothing.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes a number and touches only free memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Bytes that are allocated now and not freed, over all threads; `None` where the allocator does
/// not count them. Takes the lock of each of its heaps for a moment.
#[must_use]
pub fn allocated() -> Option<u64> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: takes nothing, and returns a structure of numbers.
        let heap = unsafe { libc::mallinfo2() };
        Some((heap.uordblks + heap.hblkhd) as u64)
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    None
}

/// Freed bytes after which memory is given back: below it, keeping it costs less than asking for it
/// again.
const FREED_MIN: u64 = 32 << 20;

/// Decides when to give memory back: when this much less is allocated than at the most since the
/// last time.
#[derive(Debug, Default)]
pub struct Trim {
    most: u64,
}

impl Trim {
    /// Gives memory back if `allocated` has fallen far enough; whether it did.
    pub fn observe(&mut self, allocated: u64) -> bool {
        let fallen = self.most.saturating_sub(allocated) >= FREED_MIN;
        if fallen {
            give_back();
        }
        self.most = if fallen { allocated } else { self.most.max(allocated) };
        fallen
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests;
