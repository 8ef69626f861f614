//! Descriptors that all back ends of this process hold together, and files that they retain.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::limits::RETAINED_PART;

use crate::host::sys;

/// One descriptor in the count of all that the back ends of this process hold: several shares
/// have one limit between them.
pub struct Counted(());

static HELD: AtomicUsize = AtomicUsize::new(0);

impl Counted {
    /// One more.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        HELD.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    /// Whether there are more than there should be.
    pub fn too_many() -> bool {
        static MOST: OnceLock<usize> = OnceLock::new();
        HELD.load(Ordering::Relaxed) > *MOST.get_or_init(|| sys::descriptor_limit() / 2)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One file in the count of those that all back ends of this process retain.
pub struct CountedRetained(());

static RETAINED: AtomicUsize = AtomicUsize::new(0);

impl CountedRetained {
    /// One more; `None` if there are as many as there may be.
    pub fn new() -> Option<Self> {
        static MOST: OnceLock<usize> = OnceLock::new();
        let most = *MOST.get_or_init(|| sys::descriptor_limit() / RETAINED_PART);
        let more = |count: usize| (count < most).then_some(count + 1);
        RETAINED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Self(()))
    }
}

impl Drop for CountedRetained {
    fn drop(&mut self) {
        RETAINED.fetch_sub(1, Ordering::Relaxed);
    }
}
