//! Memory of this process that a peer may access while it is registered.

use crate::region::Region;
use crate::{ExposedMemory, VerbsError};

/// Registered memory that is never borrowed, since the peer may change it at any time.
pub(crate) struct Exposed {
    region: Region,
}

impl Exposed {
    /// Of a region that was registered for the peer.
    pub(crate) fn new(region: Region) -> Self {
        Self { region }
    }

    /// Where `bytes` bytes from `at` on begin; `None` if they are not all within.
    fn part(&self, at: usize, bytes: usize) -> Option<*mut u8> {
        let end = at.checked_add(bytes)?;
        // SAFETY: `at` is within the region, which is one allocation.
        (end <= self.region.length()).then(|| unsafe { self.region.start().add(at) })
    }
}

impl ExposedMemory for Exposed {
    fn key(&self) -> u32 {
        self.region.remote_key()
    }

    fn address(&self) -> u64 {
        self.region.address()
    }

    fn length(&self) -> usize {
        self.region.length()
    }

    fn read(&self, at: usize, into: &mut [u8]) -> bool {
        let Some(from) = self.part(at, into.len()) else { return false };
        // SAFETY: both are that long, and different memory. A peer that writes meanwhile breaks
        // the protocol and spoils bytes, which are checked like all that it sends.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
        true
    }

    fn write(&mut self, at: usize, from: &[u8]) -> bool {
        let Some(to) = self.part(at, from.len()) else { return false };
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        true
    }
}

/// What is registered, or why it is not.
pub(crate) fn exposed(
    registered: Result<Region, (Vec<u8>, VerbsError)>,
) -> Result<Box<dyn ExposedMemory>, VerbsError> {
    match registered {
        Ok(region) => Ok(Box::new(Exposed::new(region))),
        Err((_, why)) => Err(why),
    }
}
