//! Connections from the addresses of this machine, which the server takes for as many clients.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

/// Longest wait for one answer.
const ANSWER: Duration = crate::patience(60);
/// This machine.
pub const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// An address of this machine, by its last number.
pub fn address(n: u8) -> IpAddr {
    IpAddr::from([127, 0, 0, n])
}

/// A connection from an address of this machine.
///
/// # Errors
/// The error of the system call.
pub fn connect_from(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(from, 0).into())?;
    socket.connect(&to.into())?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER))?;
    Ok(stream)
}

/// A connection from a reserved port, which only root may use. When it is dropped it is reset, so
/// that its port can be used again at once.
///
/// # Errors
/// None is free, or what connecting answers.
pub fn connect_reserved(to: SocketAddr) -> io::Result<TcpStream> {
    const RESERVED: std::ops::Range<u16> = 600..1024;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let length = RESERVED.end - RESERVED.start;
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for _ in 0..length {
        let port = RESERVED.start + NEXT.fetch_add(1, Ordering::Relaxed) % length;
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
        let any: IpAddr = match to {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let connected = socket
            .bind(&SocketAddr::new(any, port).into())
            .and_then(|()| socket.set_linger(Some(Duration::ZERO)))
            .and_then(|()| socket.connect(&to.into()));
        match connected {
            Ok(()) => {
                let stream = TcpStream::from(socket);
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(ANSWER))?;
                return Ok(stream);
            }
            Err(e) => last = e,
        }
    }
    Err(last)
}
