//! What the kernel knows of a TCP connection (tcp(7)).

use std::os::fd::RawFd;
use std::time::Duration;

use base::tcp_info;

/// Parts of `TCP_INFO`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpInfo {
    /// Whether both sides have ended it.
    pub is_closed: bool,
    /// Bytes of data in a segment.
    pub segment: u64,
    /// Bytes that the peer has acknowledged.
    pub acknowledged: u64,
    /// The round trip, smoothed: with what waits in queues of the link.
    pub round_trip: Duration,
    /// The shortest round trip lately: that of the link without queues.
    pub round_trip_min: Duration,
    /// Bytes a second that the peer has acknowledged lately; none if the kernel does not know. Of a
    /// connection that does not always have something to send the largest is retained.
    pub delivery_rate: u64,
}

// Where they are in `struct tcp_info` of linux/tcp.h.
const STATE: usize = 0;
const SND_MSS: usize = 16;
const RTT: usize = 68;
const MIN_RTT: usize = 148;
const DELIVERY_RATE: usize = 160;

/// `TCP_CLOSE` of the kernel's states.
const CLOSED: u8 = 7;

/// That of a socket; `None` if the kernel does not have all of it, or this is no TCP socket.
pub fn of(socket: RawFd) -> Option<TcpInfo> {
    let info = tcp_info::TcpInfo::of_descriptor(socket)?;
    Some(TcpInfo {
        is_closed: info.u8_at(STATE)? == CLOSED,
        segment: info.u32_at(SND_MSS)?.into(),
        acknowledged: info.acknowledged()?,
        round_trip: Duration::from_micros(info.u32_at(RTT)?.into()),
        // All ones where none was measured.
        round_trip_min: match info.u32_at(MIN_RTT)? {
            u32::MAX => Duration::ZERO,
            microseconds => Duration::from_micros(microseconds.into()),
        },
        delivery_rate: info.u64_at(DELIVERY_RATE)?,
    })
}

/// Bytes that were handed to a socket and that the peer has not acknowledged (`SIOCOUTQ`); none if
/// the kernel does not say.
pub fn unacknowledged(socket: RawFd) -> u64 {
    let mut queued: libc::c_int = 0;
    // SAFETY: the request writes one int, to which the pointer leads.
    let done = unsafe { libc::ioctl(socket, libc::TIOCOUTQ, &raw mut queued) };
    if done == 0 { u64::try_from(queued).unwrap_or(0) } else { 0 }
}
