//! How a core hears that something of its budget was given back on another thread.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use tokio::sync::Notify;

/// Rung when something is given back on another thread while something waits.
#[derive(Debug, Default)]
pub(super) struct Bell {
    has_line: AtomicBool,
    rung: Notify,
}

impl Bell {
    /// Something was given back.
    #[inline]
    pub fn ring(&self) {
        if self.has_line.load(SeqCst) {
            self.rung.notify_one();
        }
    }

    /// Whether something waits.
    pub fn set_line(&self, has_line: bool) {
        self.has_line.store(has_line, SeqCst);
    }

    /// Waits until it is rung.
    pub async fn rung(&self) {
        self.rung.notified().await;
    }
}
