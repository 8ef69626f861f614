//! TCP connections over the link of a point, with windows that are set.

use super::plan::{At, Plan};
use super::transport::{SweepError, tried};
use crate::agent::clock::mono_ns;
use crate::bridge::device::DeviceError;
use crate::bridge::scene::{SECOND, Scene};
use base::limits::{LAB_SILENCE_MAX, SWEEP_PROBES};
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

/// Lets the peer have at most `bytes` unacknowledged. Kernels from 6.8 on forget it when they learn
/// how much room packets take, so that it is set anew with each read.
///
/// # Errors
/// What the kernel refuses.
pub fn clamp(receiver: &TcpStream, bytes: u64) -> io::Result<()> {
    set(receiver, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, &number(bytes))
}

/// A socket for connections with up to `flight` bytes under way. Beyond what everybody may have
/// (net.core.rmem_max) only root may go, who this is.
fn socket(flight: u64, congestion: &str) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    // Packets take more room than their payload, small ones several times as much.
    let room = number(flight.saturating_mul(4));
    set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &room)?;
    set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &number(flight))?;
    set(&socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, congestion.as_bytes())?;
    socket.set_tcp_nodelay(true)?;
    // What is still under way in the end is of no use to anybody.
    socket.set_linger(Some(Duration::ZERO))?;
    socket.set_read_timeout(Some(LAB_SILENCE_MAX))?;
    socket.set_write_timeout(Some(LAB_SILENCE_MAX))?;
    Ok(socket)
}

/// As many connections as the point has.
///
/// # Errors
/// What the kernel refuses; an unknown congestion control among that.
pub fn open(plan: &Plan, at: &At, link: &Scene) -> Result<Vec<Pair>, SweepError> {
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
    for _ in 0..at.instances {
        let what = || "connect over the link".to_owned();
        let sender = link.first.within(|| connect().map_err(failed(what())))?;
        let (receiver, _) = listener.accept().map_err(tried("take a connection"))?;
        receiver.set_read_timeout(Some(LAB_SILENCE_MAX)).map_err(tried("set a timeout"))?;
        pairs.push(Pair { sender: sender.into(), receiver: receiver.into() });
    }
    Ok(pairs)
}

/// A round trip of one byte with nothing else under way, seconds: the median of some.
///
/// # Errors
/// The connection is gone.
pub fn probe(pair: &mut Pair) -> Result<f64, SweepError> {
    let mut times = Vec::new();
    let mut byte = [0];
    for _ in 0..SWEEP_PROBES {
        let begin = mono_ns();
        let mut there_and_back = || {
            pair.sender.write_all(&[1])?;
            pair.receiver.read_exact(&mut byte)?;
            pair.receiver.write_all(&[1])?;
            pair.sender.read_exact(&mut byte)
        };
        there_and_back().map_err(tried("measure the distance"))?;
        times.push(mono_ns() - begin);
    }
    times.sort_unstable();
    Ok(times.get(times.len() / 2).map_or(0.0, |ns| *ns as f64 / 1e9))
}
