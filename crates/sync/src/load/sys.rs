//! The system calls that report what was used and waited for.

use std::net::TcpStream;

use base::clock::NS_PER_S;
use base::limits::{DSYNC_QUEUED_PERCENT, DSYNC_QUEUED_US};
use base::tcp_info::TcpInfo;

/// CPU time of this process, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec into a local one; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64
}

/// TCP statistics of a stream's sender, in microseconds; the first three since it was connected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tcp {
    /// It had data in flight.
    pub busy_us: u64,
    /// Of that, the other side's window was full.
    pub rwnd_us: u64,
    /// Of that, this side's buffer held no more.
    pub sndbuf_us: u64,
    /// A round trip, lately.
    pub rtt_us: u64,
    /// The shortest round trip.
    pub least_rtt_us: u64,
    /// Bytes that the other side has acknowledged, and those that came from it.
    pub arrived: u64,
}

impl Tcp {
    /// Whether packets wait somewhere on the way.
    pub fn is_queued(&self) -> bool {
        let more = self.rtt_us.saturating_sub(self.least_rtt_us);
        more > DSYNC_QUEUED_US && more * 100 > self.least_rtt_us * DSYNC_QUEUED_PERCENT
    }
}

/// tcp(7), TCP_INFO; nothing from a kernel that does not know it.
pub fn tcp(socket: &TcpStream) -> Tcp {
    let Some(info) = TcpInfo::of(socket) else { return Tcp::default() };
    let at = |at| info.u64_at(at).unwrap_or(0);
    let half = |at| info.u32_at(at).map_or(0, u64::from);
    Tcp {
        busy_us: at(168),
        rwnd_us: at(176),
        sndbuf_us: at(184),
        rtt_us: half(68),
        least_rtt_us: half(148),
        arrived: at(120).saturating_add(at(128)),
    }
}
