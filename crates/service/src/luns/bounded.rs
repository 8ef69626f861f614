//! Work on the storage of a unit, which may never respond: done on a separate thread, so that
//! requests of administrators wait up to a timeout.

use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// The reason that is shown of storage that does not respond in time.
pub const STUCK: &str = "its storage does not answer";

/// Does `work`; `None` if it is not done within `time`, or no thread is available. A later result
/// is dropped by the thread.
pub fn within<T: Send + 'static>(
    time: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (done, answered) = sync_channel(1);
    let thread = std::thread::Builder::new().name("lun-work".to_owned());
    // The receiver may be gone after the timeout.
    let work = move || drop(done.send(work()));
    thread.spawn(work).ok()?;
    answered.recv_timeout(time).ok()
}

/// Drops a value without waiting, where the drop may wait for its storage.
pub fn let_go<T: Send + 'static>(value: T) {
    let thread = std::thread::Builder::new().name("lun-end".to_owned());
    // Without a thread it is dropped here, which may wait.
    let _ = thread.spawn(move || drop(value));
}
