//! Registered memory.
//!
//! While a device may access it, it belongs to the connection that it was posted to, so that a
//! [`Region`] in any other place is ordinary memory. It is stored as pointer, length and capacity
//! and not as a `Vec`, because the compiler may assume that nothing else writes to the memory of a
//! `Vec`, wherever it is moved.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use crate::account::Permit;

/// What a device knows of a region; dropping it deregisters.
pub(crate) trait Registration: Send {
    /// The key by which our own work names it.
    fn local_key(&self) -> u32;

    /// The key by which the peer's work names it.
    fn remote_key(&self) -> u32;
}

/// Registered memory, all of it initialised.
pub struct Region {
    start: *mut u8,
    length: usize,
    capacity: usize,
    /// Dropped before the memory is freed. `None` only while it is taken apart.
    registration: Option<Box<dyn Registration>>,
    _permit: Permit,
}

// SAFETY: it owns its memory, as the `Vec` did that it was made of; a registration is `Send`.
unsafe impl Send for Region {}

impl Region {
    /// Makes one of a buffer that was registered.
    pub(crate) fn new(
        buffer: Vec<u8>,
        registration: Box<dyn Registration>,
        permit: Permit,
    ) -> Self {
        let mut buffer = ManuallyDrop::new(buffer);
        Self {
            start: buffer.as_mut_ptr(),
            length: buffer.len(),
            capacity: buffer.capacity(),
            registration: Some(registration),
            _permit: permit,
        }
    }

    /// The key by which our own work names it.
    pub(crate) fn local_key(&self) -> u32 {
        self.registration.as_ref().map_or(0, |registration| registration.local_key())
    }

    /// The key by which the peer's work names it.
    pub(crate) fn remote_key(&self) -> u32 {
        self.registration.as_ref().map_or(0, |registration| registration.remote_key())
    }

    /// Where it begins.
    pub(crate) fn address(&self) -> u64 {
        self.start as u64
    }

    /// Bytes of it.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Where it begins, without borrowing it.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Deregisters it, and gives the buffer back.
    pub fn release(mut self) -> Vec<u8> {
        self.take()
    }

    fn take(&mut self) -> Vec<u8> {
        self.registration = None;
        let (start, length) = (self.start, self.length);
        let capacity = std::mem::take(&mut self.capacity);
        self.length = 0;
        self.start = std::ptr::dangling_mut();
        // SAFETY: these are the parts of the `Vec` that `new` took apart, or, a second time, those
        // of an empty one; no device knows the memory any more.
        unsafe { Vec::from_raw_parts(start, length, capacity) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        drop(self.take());
    }
}

impl Deref for Region {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the memory is this region's own, initialised over `length`, and no device
        // touches it while it is not posted.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

impl DerefMut for Region {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` is the only way to it.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region").field("length", &self.length).finish_non_exhaustive()
    }
}
