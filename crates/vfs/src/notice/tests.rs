//! Which registrations are notified of which change.

use super::*;

fn dir(fileid: u64) -> FileKey {
    FileKey { fsid: 1, fileid, generation: 0 }
}

struct Listener {
    calls: Arc<AtomicU64>,
    _guard: NoticeGuard,
}

impl Listener {
    fn new(notices: &Arc<DirectoryNotices>, interest: Interest) -> Self {
        let calls = Arc::<AtomicU64>::default();
        let count = Arc::clone(&calls);
        let notify = Box::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        Self { calls, _guard: notices.register(interest, notify) }
    }

    fn take(&self) -> u64 {
        self.calls.swap(0, Ordering::Relaxed)
    }
}

#[test]
fn each_change_is_reported_once_to_those_that_want_it() {
    let notices = Arc::<DirectoryNotices>::default();
    assert!(!notices.is_wanted());
    let interest = |fileid, kinds, below, is_watched| {
        let dir = dir(fileid);
        Listener::new(&notices, Interest { dir, kinds, below, is_watched })
    };
    let watched = interest(7, Changes::NAMES, false, true);
    assert!(!notices.is_wanted(), "its watch reports what this server does, too");
    let unwatched = interest(7, Changes::NAMES.with(Changes::DATA), false, false);
    let tree = interest(1, Changes::NAMES, true, true);
    assert!(notices.is_wanted());
    let calls = || (watched.take(), unwatched.take(), tree.take());

    notices.seen(dir(7), Changes::NAMES);
    assert_eq!(calls(), (1, 0, 0), "by the back end");
    notices.seen(dir(7), Changes::DATA);
    assert_eq!(calls(), (0, 0, 0), "of another kind");
    let swept = || {
        notices.sweep();
        calls()
    };
    notices.names_changed(dir(7));
    assert_eq!(calls(), (0, 1, 0), "by this server");
    assert_eq!(swept(), (0, 0, 1));
    notices.names_changed(dir(8));
    assert_eq!(swept(), (0, 0, 1), "in another directory");
    assert_eq!(swept(), (0, 0, 0), "once");
    notices.file_changed(dir(20), Changes::DATA);
    assert_eq!(swept(), (0, 1, 0), "a file somewhere");
    notices.names_changed(FileKey { fsid: 2, ..dir(7) });
    assert_eq!(swept(), (0, 0, 0), "on another file system");

    drop((unwatched, tree));
    assert!(!notices.is_wanted());
    notices.seen(dir(7), Changes::ALL);
    assert_eq!(watched.take(), 1);
}
