//! Processor time of the server: that of all threads of this process but the calling one, which is
//! the client's.

use std::time::{Duration, Instant};

/// How long a server may take to have nothing to do.
const PATIENCE: Duration = Duration::from_secs(60);

fn read(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives as long as the call.
    let done = unsafe { libc::clock_gettime(clock, &raw mut time) };
    assert_eq!(done, 0, "the clock {clock}");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Processor time of all threads so far.
pub fn process() -> Duration {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Processor time of the other threads so far.
pub fn server() -> Duration {
    process().saturating_sub(read(libc::CLOCK_THREAD_CPUTIME_ID))
}

/// What the other threads have computed while `act` ran, and what it returned.
pub fn of<T>(act: impl FnOnce() -> T) -> (Duration, T) {
    let before = server();
    let value = act();
    (server().saturating_sub(before), value)
}

/// Waits until `ask` has a result.
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = ask() {
            return value;
        }
        assert!(Instant::now() < until, "waited for: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
