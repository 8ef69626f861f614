//! What is called when a lock or a lease has changed that is waited for, or when a holder is
//! notified: on whatever thread has made the change, with no lock of the table held.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Panics in them, over all tables.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// Those that panicked so far.
pub fn panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}

/// Calls one. If it panics the request that waited has failed, and neither the one that has made
/// the change nor others that waited for it.
pub(super) fn call(continuation: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(continuation)).is_err() {
        PANICS.fetch_add(1, Ordering::Relaxed);
    }
}
