//! Times: this process's monotonic clock, and how far another's is from it.
//!
//! The offset is found as NTP does: the exchange with the least round trip is the one least
//! disturbed, the other clock was read somewhere within it, and half the round trip bounds the
//! error (RFC 5905 §8 and §10, with one server and the conductor's four timestamps reduced to
//! three because the answer is sent at once).

use serde::{Deserialize, Serialize};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// For tests only: names a file with the number of milliseconds by which an agent's clocks are to
/// be wrong. The file is read repeatedly, so that a clock can be made to jump.
pub const TEST_SKEW_FILE: &str = "PLIMSOLL_TEST_CLOCK_SKEW_FILE";

/// How far this process's clocks are wrong on purpose, ns; 0 but in an agent under test.
static TEST_SKEW_NS: AtomicI64 = AtomicI64::new(0);

/// `CLOCK_MONOTONIC` in nanoseconds; on one machine the same in every process.
#[inline]
pub fn mono_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC).saturating_add_signed(TEST_SKEW_NS.load(Ordering::Relaxed))
}

/// The wall clock, nanoseconds since the Unix epoch, wrong by as much as [`mono_ns`] is.
pub fn wall_ns() -> u64 {
    base::clock::wall_ns().saturating_add_signed(TEST_SKEW_NS.load(Ordering::Relaxed))
}

/// The wall clock's time at a moment of [`mono_ns`], seconds since the Unix epoch. Two readings one
/// after the other are not of one moment on a busy machine.
pub fn wall_at(mono: u64) -> f64 {
    base::clock::wall_ns_at(mono_ns, mono) as f64 / 1e9
}

/// Skews this process's clocks by the offset in the file that [`TEST_SKEW_FILE`] names, if it is
/// set.
pub fn skew_for_test() {
    let Some(file) = std::env::var_os(TEST_SKEW_FILE) else { return };
    set_skew(file.as_ref());
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(10));
            set_skew(file.as_ref());
        }
    });
}

fn set_skew(file: &Path) {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    // A file that is just being written keeps the skew as it was.
    if let Ok(ms) = text.trim().parse::<i64>() {
        TEST_SKEW_NS.store(ms.saturating_mul(1_000_000), Ordering::Relaxed);
    }
}

/// CPU time of this process, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `at` is a valid timespec; the clocks used exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut at) };
    at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64
}

/// The last part of a wait is spun: a sleeping thread wakes 50 µs late or more.
const SPIN_NS: u64 = 200_000;

/// Returns at `at_ns` of [`mono_ns`], within microseconds when a core is free.
pub fn sleep_until(at_ns: u64) {
    loop {
        let now = mono_ns();
        match at_ns.saturating_sub(now) {
            0 => return,
            left if left > SPIN_NS => {
                std::thread::sleep(Duration::from_nanos(left - SPIN_NS));
            }
            _ => std::hint::spin_loop(),
        }
    }
}

/// Whether something comes in on `socket` within `timeout`.
pub fn readable_within(socket: &impl AsRawFd, timeout: Duration) -> bool {
    let mut poll = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: one valid pollfd.
    unsafe { libc::poll(&mut poll, 1, ms) > 0 }
}

/// One exchange: sent and received by our clock, answered by theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Our clock when the question left, ns.
    pub sent_ns: u64,
    /// Their clock when they answered, ns.
    pub theirs_ns: u64,
    /// Our clock when the answer came, ns.
    pub received_ns: u64,
}

/// How far another clock is from ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Offset {
    /// Theirs minus ours, ns.
    pub offset_ns: i64,
    /// The offset is right to within this, ns: half the least round trip.
    pub error_ns: u64,
    /// Least round trip, ns.
    pub rtt_ns: u64,
}

impl Offset {
    /// A time of this machine on their clock.
    pub fn to_theirs(&self, ours_ns: u64) -> u64 {
        ours_ns.saturating_add_signed(self.offset_ns)
    }
    /// A time of theirs on our clock.
    pub fn to_ours(&self, theirs_ns: u64) -> u64 {
        theirs_ns.saturating_add_signed(-self.offset_ns)
    }
}

/// The offset from several exchanges; `None` of none.
pub fn offset(exchanges: &[Exchange]) -> Option<Offset> {
    let best = exchanges.iter().min_by_key(|e| e.received_ns.saturating_sub(e.sent_ns))?;
    let rtt_ns = best.received_ns.saturating_sub(best.sent_ns);
    let middle = best.sent_ns + rtt_ns / 2;
    Some(Offset {
        offset_ns: best.theirs_ns.wrapping_sub(middle) as i64,
        error_ns: rtt_ns.div_ceil(2),
        rtt_ns,
    })
}

#[cfg(test)]
mod tests;
