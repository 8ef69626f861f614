//! Parts of files mapped for sending: the kernel copies them from the page cache to the socket, and
//! this process never accesses the mapping.
//!
//! This saves a third of the CPU time of reading into a buffer and sending that
//! (`docs/decisions/large-reads-from-mapped-files.md`). A file may be truncated, or its disk fail,
//! while it is mapped: the kernel's copy then ends with EFAULT, where an access by this process
//! would raise SIGBUS. So there is no function for one.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use base::limits::{MAPPED_MAX, MAPPED_PER_FILE, MAPPED_WINDOW};

/// Mappings there are.
static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// A window of a file, mapped for reading.
#[derive(Debug)]
pub struct Mapped {
    at: NonNull<u8>,
}

// SAFETY: the mapping lives as long as this does, and its bytes are never read or written by us.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// Maps window `window` of a file; also where the file is shorter.
    fn new(fd: BorrowedFd<'_>, window: u64) -> io::Result<Arc<Self>> {
        if MAPPED.fetch_add(1, Ordering::Relaxed) >= MAPPED_MAX {
            MAPPED.fetch_sub(1, Ordering::Relaxed);
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let (read, shared, fd) = (libc::PROT_READ, libc::MAP_SHARED, fd.as_raw_fd());
        let offset = (window * MAPPED_WINDOW as u64) as libc::off_t;
        // SAFETY: a new mapping at an address of the kernel's choice affects no existing memory.
        let at =
            unsafe { libc::mmap(std::ptr::null_mut(), MAPPED_WINDOW, read, shared, fd, offset) };
        match NonNull::new(at.cast()).filter(|_| at != libc::MAP_FAILED) {
            Some(at) => Ok(Arc::new(Self { at })),
            None => {
                MAPPED.fetch_sub(1, Ordering::Relaxed);
                Err(io::Error::last_os_error())
            }
        }
    }

    /// Where byte `at` of the window is: for system calls, which may read up to the window's end.
    fn byte(&self, at: usize) -> *const u8 {
        self.at.as_ptr().wrapping_add(at)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `new`, and there are no references into it.
        unsafe { libc::munmap(self.at.as_ptr().cast(), MAPPED_WINDOW) };
        MAPPED.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Some bytes of a file within one window.
#[derive(Debug, Clone)]
pub struct Slice {
    mapped: Arc<Mapped>,
    at: usize,
    len: usize,
}

impl Slice {
    /// Address and length, for a system call that copies from there. It fails with EFAULT where the
    /// file has become shorter.
    pub fn raw(&self) -> (*const u8, usize) {
        (self.mapped.byte(self.at), self.len)
    }

    /// A part of it; `None` beyond its end.
    pub fn part(&self, part: std::ops::Range<usize>) -> Option<Self> {
        let len = part.end.checked_sub(part.start).filter(|_| part.end <= self.len)?;
        Some(Self { mapped: Arc::clone(&self.mapped), at: self.at + part.start, len })
    }
}

/// Which window was used when, and its mapping once it was used twice.
#[derive(Debug, Default)]
struct WindowSlot {
    window: u64,
    used: u64,
    mapped: Option<Arc<Mapped>>,
}

/// The windows of an open file that were used last.
#[derive(Debug, Default)]
pub struct Windows {
    places: Mutex<(u64, Vec<WindowSlot>)>,
}

impl Windows {
    /// `len` bytes of the file from `offset` on. `None` when they cross windows, or when nothing
    /// near them was asked for lately: a mapping pays from its second use on.
    pub fn slice(&self, fd: BorrowedFd<'_>, offset: u64, len: usize) -> Option<Slice> {
        let window = offset / MAPPED_WINDOW as u64;
        let at = (offset % MAPPED_WINDOW as u64) as usize;
        if len > MAPPED_WINDOW - at {
            return None;
        }
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let (clock, places) = &mut *places;
        *clock += 1;
        if let Some(place) = places.iter_mut().find(|place| place.window == window) {
            place.used = *clock;
            if place.mapped.is_none() {
                place.mapped = Mapped::new(fd, window).ok();
            }
            return Some(Slice { mapped: Arc::clone(place.mapped.as_ref()?), at, len });
        }
        let new = WindowSlot { window, used: *clock, mapped: None };
        if places.len() < MAPPED_PER_FILE {
            places.push(new);
        } else if let Some(oldest) = places.iter_mut().min_by_key(|place| place.used) {
            *oldest = new;
        }
        None
    }

    /// Unmaps all of it. What is being sent from a mapping keeps that until it is sent.
    pub fn clear(&self) -> Sending {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let slots = std::mem::take(&mut places.1);
        drop(places);
        let gone = slots.into_iter().filter_map(|slot| slot.mapped);
        let weak: Vec<_> = gone.map(|mapped| Arc::downgrade(&mapped)).collect();
        Sending(weak)
    }
}

/// Mappings that were let go of and may still be sent from.
#[derive(Debug, Default)]
pub struct Sending(Vec<Weak<Mapped>>);

impl Sending {
    /// Whether one of them is still there.
    pub fn any(&self) -> bool {
        self.0.iter().any(|mapped| mapped.strong_count() > 0)
    }

    /// Adds others.
    pub fn join(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

#[cfg(test)]
mod tests;
