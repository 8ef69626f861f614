//! Changes of a directory that are noted for CHANGE_NOTIFY: from its first request on, also between
//! two requests.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::clock::stamp;
use base::limits::SMB_NOTIFY_PAUSE;
use tokio::sync::Notify;
use vfs::fs::Watch;
use vfs::notice::{DirectoryNotices, Interest, NoticeGuard};

use super::seats::OpenReservation;

/// What was noted, on whatever thread.
#[derive(Default)]
struct Noted {
    has_changed: AtomicBool,
    wakes: Notify,
}

/// A directory of which a client wants to know when it changes.
pub(crate) struct NoticedDir {
    noted: Arc<Noted>,
    /// When it was answered last.
    answered_ns: Cell<Option<u64>>,
    _registered: NoticeGuard,
    _watch: Watch,
    /// It counts as another open of the client.
    _seat: OpenReservation,
}

impl NoticedDir {
    /// Notes what is of interest from now on.
    pub fn new(
        notices: &Arc<DirectoryNotices>,
        interest: Interest,
        (watch, seat): (Watch, OpenReservation),
    ) -> Self {
        let noted = Arc::<Noted>::default();
        let notes = Arc::clone(&noted);
        let notify = Box::new(move || {
            notes.has_changed.store(true, Ordering::Release);
            notes.wakes.notify_waiters();
        });
        let registered = notices.register(interest, notify);
        let answered_ns = Cell::new(None);
        Self { noted, answered_ns, _registered: registered, _watch: watch, _seat: seat }
    }

    /// Waits for a change, and until another answer may be sent.
    pub async fn changed(&self) {
        loop {
            let woken = self.noted.wakes.notified();
            if !self.noted.has_changed.load(Ordering::Acquire) {
                woken.await;
                continue;
            }
            if let Some(before) = self.answered_ns.get() {
                let passed = Duration::from_nanos(stamp().saturating_sub(before));
                tokio::time::sleep(SMB_NOTIFY_PAUSE.saturating_sub(passed)).await;
            }
            // Another request of the open may have been first; one that was cancelled has taken
            // nothing away.
            if self.noted.has_changed.swap(false, Ordering::AcqRel) {
                break;
            }
        }
        self.answered_ns.set(Some(stamp()));
    }
}
