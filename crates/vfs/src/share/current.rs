//! The current table of shares. It is exchanged while calls are served: a call works with the table
//! that it found, and neither waits for the other.
//!
//! Each thread has a weak reference to the last table that it used: a removed share is released
//! when the last call on it has ended, not when an idle thread runs again.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::ShareTable;

/// Numbers of tables, each given once in this process.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// The table that this thread saw last, and its number.
    static SEEN: RefCell<(u64, Weak<ShareTable>)> = const { RefCell::new((0, Weak::new())) };
}

/// The shares, exchangeable.
pub struct Shares {
    /// Of the table that stands.
    number: AtomicU64,
    /// Taken only where a table is exchanged, and once after that by each thread.
    table: Mutex<Arc<ShareTable>>,
}

impl Shares {
    /// Begins with this table.
    pub fn new(table: ShareTable) -> Arc<Self> {
        let number = AtomicU64::new(NUMBERS.fetch_add(1, Ordering::Relaxed));
        Arc::new(Self { number, table: Mutex::new(Arc::new(table)) })
    }

    /// The table as it stands.
    #[inline]
    pub fn load(&self) -> Arc<ShareTable> {
        let number = self.number.load(Ordering::Acquire);
        SEEN.with_borrow(|(seen, table)| if *seen == number { table.upgrade() } else { None })
            .unwrap_or_else(|| self.look())
    }

    #[cold]
    fn look(&self) -> Arc<ShareTable> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock the two belong together.
        let number = self.number.load(Ordering::Relaxed);
        SEEN.set((number, Arc::downgrade(&table)));
        Arc::clone(&table)
    }

    /// Exchanges the table: later calls use `table`. Returns the previous one, which calls in
    /// progress may still use.
    pub fn replace(&self, table: ShareTable) -> Arc<ShareTable> {
        let mut stands = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *stands, Arc::new(table));
        self.number.store(NUMBERS.fetch_add(1, Ordering::Relaxed), Ordering::Release);
        before
    }
}

impl Default for Shares {
    /// None at all.
    fn default() -> Self {
        let number = AtomicU64::new(NUMBERS.fetch_add(1, Ordering::Relaxed));
        Self { number, table: Mutex::default() }
    }
}

#[cfg(test)]
mod tests;
