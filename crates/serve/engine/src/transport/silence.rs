//! Whether connections end without a word to their peers: for a process of which another machine
//! takes over the address. A client that sees the end of its connection connects again at once,
//! meets no address, and its next attempt is a second later; one that sees nothing waits for the
//! new owner, which resets the connection.
//!
//! It is the process that ends, so there is one answer for all services of it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static SILENT: AtomicBool = AtomicBool::new(false);

/// From now on no service lets its peers notice the end of a connection.
pub fn begin() {
    SILENT.store(true, Relaxed);
}

/// Whether that has begun.
pub fn is_on() -> bool {
    SILENT.load(Relaxed)
}
