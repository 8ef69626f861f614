//! Notifies a core that something of its budget was given back on another thread.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use tokio::sync::Notify;

/// Notified when something is given back on another thread while something waits.
#[derive(Debug, Default)]
pub(super) struct ReturnNotify {
    has_line: AtomicBool,
    notify: Notify,
}

impl ReturnNotify {
    /// Something was given back.
    #[inline]
    pub fn notify(&self) {
        if self.has_line.load(SeqCst) {
            self.notify.notify_one();
        }
    }

    /// Whether something waits.
    pub fn set_line(&self, has_line: bool) {
        self.has_line.store(has_line, SeqCst);
    }

    /// Waits for a notification.
    pub async fn notified(&self) {
        self.notify.notified().await;
    }
}
