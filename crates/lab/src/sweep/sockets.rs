//! TCP connections over the link of a point, with windows that are set.

use super::plan::{At, Plan};
use super::transport::{SweepError, tried};
use crate::agent::clock::mono_ns;
use crate::bridge::device::DeviceError;
use crate::bridge::scene::{SECOND, Scene};
use crate::bridge::shape::nanos;
use base::limits::{LAB_SILENCE_MAX, SWEEP_PROBED, SWEEP_PROBES};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Both ends of a connection.
#[derive(Debug)]
pub struct Pair {
    /// At the first end of the link.
    pub sender: TcpStream,
    /// At the second.
    pub receiver: TcpStream,
}

/// Sets an option of a socket.
fn set(socket: &impl AsRawFd, level: i32, option: i32, value: &[u8]) -> io::Result<()> {
    let (at, size) = (value.as_ptr().cast(), value.len() as libc::socklen_t);
    // SAFETY: the value lives as long as the call, which reads `size` bytes of it.
    let code = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, at, size) };
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A number as options have it.
fn number(value: u64) -> [u8; 4] {
    libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX).to_ne_bytes()
}

/// Lets the peer have at most `bytes` unacknowledged. The kernel (6.18 was looked at) changes it
/// when it learns how much room packets take, so that it is set again with each read.
///
/// # Errors
/// What the kernel refuses.
pub fn clamp(receiver: &TcpStream, bytes: u64) -> io::Result<()> {
    set(receiver, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, &number(bytes))
}

/// Lets the peer of an existing connection have at most `bytes` unacknowledged; with [`clamp`]
/// after each read it stays so.
///
/// # Errors
/// What the kernel refuses.
pub fn narrow(receiver: &TcpStream, bytes: u64) -> io::Result<()> {
    set(receiver, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &room(bytes))?;
    clamp(receiver, bytes)
}

/// Room of a socket for `flight` bytes in flight. Packets take more of it than their payload, small
/// ones several times as much.
fn room(flight: u64) -> [u8; 4] {
    number(flight.saturating_mul(4))
}

/// A socket for connections with up to `flight` bytes in flight. Only root may exceed the limit of
/// net.core.rmem_max; a sweep runs as root.
fn socket(flight: u64, congestion: &str) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &room(flight))?;
    set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &number(flight))?;
    set(&socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, congestion.as_bytes())?;
    socket.set_tcp_nodelay(true)?;
    // What is still in flight in the end is discarded.
    socket.set_linger(Some(Duration::ZERO))?;
    socket.set_read_timeout(Some(LAB_SILENCE_MAX))?;
    socket.set_write_timeout(Some(LAB_SILENCE_MAX))?;
    Ok(socket)
}

/// Connections, `n` of them, with what the point wants of them.
///
/// # Errors
/// What the kernel refuses; an unknown congestion control among that.
pub fn open(plan: &Plan, at: &At, link: &Scene, n: u32) -> Result<Vec<Pair>, SweepError> {
    let (flight, congestion) = (plan.flight(at), &at.congestion);
    let failed = |what: String| move |source| DeviceError::Refused { what, source };
    let listen = || -> io::Result<(Socket, SocketAddr)> {
        let socket = socket(flight, congestion)?;
        socket.bind(&SockAddr::from(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))))?;
        socket.listen(libc::SOMAXCONN)?;
        let port = socket.local_addr()?.as_socket().map_or(0, |own| own.port());
        Ok((socket, (SECOND, port).into()))
    };
    let what = || format!("listen beyond the link with {congestion}");
    let (listener, address) = link.second.within(|| listen().map_err(failed(what())))?;
    let connect = || -> io::Result<Socket> {
        let socket = socket(flight, congestion)?;
        socket.connect_timeout(&SockAddr::from(address), LAB_SILENCE_MAX)?;
        Ok(socket)
    };
    let mut pairs = Vec::new();
    for _ in 0..n {
        let what = || "connect over the link".to_owned();
        let sender = link.first.within(|| connect().map_err(failed(what())))?;
        let (receiver, _) = listener.accept().map_err(tried("take a connection"))?;
        receiver.set_read_timeout(Some(LAB_SILENCE_MAX)).map_err(tried("set a timeout"))?;
        pairs.push(Pair { sender: sender.into(), receiver: receiver.into() });
    }
    Ok(pairs)
}

/// A connection that measures the round trip of one byte while nothing else is in flight.
#[derive(Debug)]
pub struct Probe {
    pair: Pair,
    ns: u64,
    times: u64,
}

impl Probe {
    /// Connects, and measures for the first time.
    ///
    /// # Errors
    /// As [`open`].
    pub fn new(plan: &Plan, at: &At, link: &Scene) -> Result<Self, SweepError> {
        let pair = open(plan, at, link, 1)?.pop().ok_or(SweepError::Nothing)?;
        let mut probe = Self { pair, ns: 0, times: 0 };
        probe.measure()?;
        Ok(probe)
    }

    /// Measures for a while.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn measure(&mut self) -> Result<(), SweepError> {
        let begin = mono_ns();
        let mut times = 0;
        while times < SWEEP_PROBES || mono_ns() - begin < nanos(SWEEP_PROBED) {
            self.pair.round_trip().map_err(tried("measure the distance"))?;
            times += 1;
        }
        self.ns += mono_ns() - begin;
        self.times += times;
        Ok(())
    }

    /// A round trip, seconds. The mean: blocks have the slow ones as well.
    pub fn rtt_s(&self) -> f64 {
        self.ns as f64 / 1e9 / self.times.max(1) as f64
    }
}

impl Pair {
    fn round_trip(&mut self) -> io::Result<()> {
        let mut byte = [0];
        self.sender.write_all(&[1])?;
        self.receiver.read_exact(&mut byte)?;
        self.receiver.write_all(&[1])?;
        self.sender.read_exact(&mut byte)
    }
}
