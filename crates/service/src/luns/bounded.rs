//! Work on the storage of a unit that may never answer: done on a thread of its own, so that
//! whoever administers the server waits for a while and no longer.

use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// What is told of storage that does not answer in time.
pub const STUCK: &str = "its storage does not answer";

/// Does `work`; `None` if it is not done within `time`, or there is no thread to be had. What comes
/// later is dropped where it was made.
pub fn within<T: Send + 'static>(
    time: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (done, answered) = sync_channel(1);
    let thread = std::thread::Builder::new().name("lun-work".to_owned());
    // Nobody may wait any more.
    let work = move || drop(done.send(work()));
    thread.spawn(work).ok()?;
    answered.recv_timeout(time).ok()
}

/// Drops something whose end may wait for its storage, without waiting.
pub fn let_go<T: Send + 'static>(value: T) {
    let thread = std::thread::Builder::new().name("lun-end".to_owned());
    // Without a thread it is dropped, and waited for, here.
    let _ = thread.spawn(move || drop(value));
}
