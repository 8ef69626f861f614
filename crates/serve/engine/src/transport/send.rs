//! Sending on a plain socket: bytes, and parts of files from the page cache.

use std::io::{self, IoSlice};
use std::os::fd::AsRawFd;
use std::time::Duration;

use base::clock::monotonic_ns;
use base::limits::{
    SEND_LOOK, SEND_TIME_MAX, SOCKET_UNSENT_MAX, SOCKET_UNSENT_MIN, SOCKET_UNSENT_TIME,
};
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;
use vfs::fs::SendfileRange;
use vfs::mapped::Slice;

use super::acks::OpenAcks;
use super::arrivals::Arrivals;
use super::pace::SlowPeerBudget;
use super::tcp_info;
use super::tls::TlsError;

/// Why sending ended before everything was sent. The connection is of no use any more.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The peer takes nothing more.
    #[error("closed by the peer")]
    Closed,
    /// The peer has taken nothing for [`SEND_TIME_MAX`], or too little for too long
    /// ([`SlowPeerBudget`]).
    #[error("the peer is too slow")]
    TooSlow,
    /// The file became shorter after the length in the reply was sent.
    #[error("the file was cut short while it was being sent")]
    Shrunk,
    /// The session has ended.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    /// The socket or the file failed.
    #[error("sending: {0}")]
    Io(#[from] io::Error),
}

/// The peer of a socket, as far as sending has to do with it.
#[derive(Default)]
pub struct Peer {
    /// How slow it may be to take what is sent.
    pub pace: SlowPeerBudget,
    /// When its requests came.
    pub arrivals: Arrivals,
    /// What it has of what was sent.
    pub acks: OpenAcks,
}

impl Peer {
    /// One of which nothing has come over this socket, which is open as long as this lives.
    pub fn new(stream: &TcpStream, pace: SlowPeerBudget) -> Self {
        Self { pace, arrivals: Arrivals::default(), acks: OpenAcks::new(stream) }
    }
}

/// Sends everything; a peer may take its time, but not stand still. With `more` the kernel may wait
/// for what follows before it fills a packet.
///
/// # Errors
/// When it cannot be sent to the end.
pub async fn bytes(
    stream: &TcpStream,
    bytes: &[u8],
    more: bool,
    peer: &mut Peer,
) -> Result<(), SendError> {
    let mut sent = 0;
    while let Some(rest) = bytes.get(sent..).filter(|rest| !rest.is_empty()) {
        // SAFETY: pointer and length describe `rest`.
        let result = stream.try_io(Interest::WRITABLE, || unsafe {
            send(stream, rest.as_ptr(), rest.len(), more)
        });
        sent += progress(stream, result, peer).await?;
    }
    Ok(())
}

/// Sends all of several pieces, one behind the other.
///
/// # Errors
/// When they cannot be sent to the end.
pub async fn parts(
    stream: &TcpStream,
    mut parts: &mut [IoSlice<'_>],
    peer: &mut Peer,
) -> Result<(), SendError> {
    while !parts.is_empty() {
        let sent = progress(stream, stream.try_write_vectored(parts), peer).await?;
        IoSlice::advance_slices(&mut parts, sent);
    }
    Ok(())
}

/// Sends a part of a file from the page cache; `more` as above.
///
/// # Errors
/// When it cannot be sent to the end.
pub async fn slice(
    stream: &TcpStream,
    slice: &Slice,
    more: bool,
    peer: &mut Peer,
) -> Result<(), SendError> {
    let mut sent = 0;
    while sent < slice.raw().1 {
        let result = stream.try_io(Interest::WRITABLE, || {
            let (at, len) = slice.raw();
            // SAFETY: `slice` keeps the mapping, and `sent` is less than its length.
            unsafe { send(stream, at.wrapping_add(sent), len - sent, more) }
        });
        sent += match result {
            Err(e) if e.raw_os_error() == Some(libc::EFAULT) => return Err(SendError::Shrunk),
            result => progress(stream, result, peer).await?,
        };
    }
    Ok(())
}

/// Waits for the end of the peer: it sends nothing more, or the connection has failed. What has
/// come until then is not taken.
pub async fn peer_ended(stream: &TcpStream) {
    // The end makes this ready, too, as all that is read; what has come does not.
    const END: Interest = Interest::PRIORITY;
    loop {
        match stream.ready(END).await {
            Ok(ready) if !ready.is_read_closed() => {
                // Urgent data: it is looked at by what receives.
                let _ = stream.try_io(END, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
            }
            _ => return,
        }
    }
}

/// Waits until the socket takes something.
///
/// # Errors
/// The peer takes nothing more, or too little.
pub async fn has_room(stream: &TcpStream, peer: &mut Peer) -> Result<(), SendError> {
    match stream.try_io(Interest::WRITABLE, || Ok(())) {
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => room(stream, peer).await,
        known => Ok(known?),
    }
}

/// Sends what the socket takes now of a part of a file. Nothing is copied: the socket is given the
/// pages of the page cache, and what is written to the file before they have left, leaves.
///
/// # Errors
/// [`SendError::Shrunk`] if the file has become shorter; when nothing can be sent any more.
pub fn file(stream: &TcpStream, part: &SendfileRange) -> Result<usize, SendError> {
    let mut sent = 0;
    while sent < part.count {
        match stream.try_io(Interest::WRITABLE, || send_file(stream, part, sent)) {
            Ok(0) if sent == 0 => return Err(SendError::Shrunk),
            Ok(0) => break,
            Ok(n) => sent += n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(sent)
}

/// sendfile(2) of what is left of a part behind its first `done` bytes. A peer that has gone is
/// EPIPE: the signal that comes with it is ignored, as in every Rust program.
fn send_file(stream: &TcpStream, part: &SendfileRange, done: usize) -> io::Result<usize> {
    let offset = libc::off_t::try_from(part.offset + done as u64);
    let mut offset = offset.map_err(|_| io::ErrorKind::InvalidInput)?;
    let (to, from) = (stream.as_raw_fd(), part.file.as_raw_fd());
    // SAFETY: the kernel reads and writes the one offset, to which the pointer leads.
    let n = unsafe { libc::sendfile(to, from, &raw mut offset, part.count - done) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// send(2).
///
/// # Safety
/// `len` bytes from `at` on must be mapped for the call.
unsafe fn send(stream: &TcpStream, at: *const u8, len: usize, more: bool) -> io::Result<usize> {
    let flags = libc::MSG_NOSIGNAL | if more { libc::MSG_MORE } else { 0 };
    // SAFETY: the caller's.
    let n = unsafe { libc::send(stream.as_raw_fd(), at.cast(), len, flags) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// Bytes sent; none after waiting for room, if that is what was missing.
async fn progress(
    stream: &TcpStream,
    sent: io::Result<usize>,
    peer: &mut Peer,
) -> Result<usize, SendError> {
    match sent {
        Ok(0) => Err(SendError::Closed),
        Ok(n) => {
            peer.acks.get().count(n);
            Ok(n)
        }
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => room(stream, peer).await.map(|()| 0),
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(e) => Err(e.into()),
    }
}

/// Waits until there is room. The kernel makes some known only when a good part of its buffer is
/// free, for which a slow peer needs longer than one that stands still is waited for: what the peer
/// has taken is asked for.
async fn room(stream: &TcpStream, peer: &mut Peer) -> Result<(), SendError> {
    let (mut queued, mut still) = (in_kernel(stream), Duration::ZERO);
    loop {
        let left = peer.pace.left().ok_or(SendError::TooSlow)?;
        let since = monotonic_ns();
        let look = left.min(SEND_LOOK).min(SEND_TIME_MAX.saturating_sub(still));
        let writable = tokio::time::timeout(look, stream.writable()).await;
        let now = in_kernel(stream);
        let waited = Duration::from_nanos(monotonic_ns().saturating_sub(since));
        let taken = queued.saturating_sub(now);
        peer.pace.waited(waited, taken);
        peer.arrivals.look(stream);
        if let Ok(writable) = writable {
            adapt_unsent(stream);
            return Ok(writable?);
        }
        queued = now;
        still = if taken > 0 { Duration::ZERO } else { still + waited };
        if still >= SEND_TIME_MAX {
            return Err(SendError::TooSlow);
        }
    }
}

/// Bytes that were sent and that the peer has not acknowledged.
pub fn in_kernel(stream: &TcpStream) -> u64 {
    tcp_info::unacknowledged(stream.as_raw_fd())
}

/// Limits what the kernel holds of a new connection without having sent it.
pub fn limit_unsent(stream: SockRef<'_>) {
    // Without the limit only latencies are less exact.
    let _best_effort = stream.set_tcp_notsent_lowat(SOCKET_UNSENT_MIN as u32);
}

/// The socket was full and has room again: its limit becomes what fits the rate at which the peer
/// takes data, as a power of two, so that it seldom changes.
pub fn adapt_unsent(stream: &TcpStream) {
    let socket = SockRef::from(stream);
    let most = unsent_at(delivery_rate(stream));
    if socket.tcp_notsent_lowat().is_ok_and(|now| now != most) {
        let _best_effort = socket.set_tcp_notsent_lowat(most);
    }
}

/// The limit at a rate in bytes per second.
fn unsent_at(rate: u64) -> u32 {
    let bytes = u128::from(rate) * SOCKET_UNSENT_TIME.as_nanos() / 1_000_000_000;
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(SOCKET_UNSENT_MAX);
    bytes.next_power_of_two().clamp(SOCKET_UNSENT_MIN, SOCKET_UNSENT_MAX) as u32
}

/// Bytes a second that the peer has acknowledged lately; none if the kernel does not know.
fn delivery_rate(stream: &TcpStream) -> u64 {
    tcp_info::of(stream.as_raw_fd()).map_or(0, |info| info.delivery_rate)
}

#[cfg(test)]
mod tests;
