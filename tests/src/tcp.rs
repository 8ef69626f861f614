//! Connections from the addresses of this machine, which the server takes for as many clients.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
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
/// What the kernel says.
pub fn connect_from(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(from, 0).into())?;
    socket.connect(&to.into())?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER))?;
    Ok(stream)
}
