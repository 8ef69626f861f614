//! Locks of the back end.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks what holds no invariant that a panic could break.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
