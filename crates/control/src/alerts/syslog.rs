//! Syslog: a message of RFC 5424 in a datagram (RFC 5426), over TCP (RFC 6587 §3.4.1), or to a
//! socket of this machine.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;

use analytics::alert::Syslog;

use super::connect::{DeliveryError, Wire, resolve};
use super::message::Message;

/// Sends a message. That a datagram arrives is not known.
///
/// # Errors
/// It could not be sent.
pub(super) fn send(to: &Syslog, message: &Message) -> Result<(), DeliveryError> {
    let text = message.syslog();
    match to {
        Syslog::Udp(host, port) => {
            let addresses = resolve(host, *port)?;
            let send = |address: &SocketAddr| {
                let any = match address {
                    SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
                    SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
                };
                UdpSocket::bind(any)?.send_to(text.as_bytes(), address)
            };
            let unreachable =
                |source| DeliveryError::Unreachable { at: format!("{host}:{port}"), source };
            addresses.first().map(send).transpose().map_err(unreachable)?;
            Ok(())
        }
        Syslog::Tcp(host, port) => {
            let mut wire = Wire::open(host, *port)?;
            wire.send(format!("{} {text}", text.len()).as_bytes())
        }
        Syslog::Unix(path) => UnixDatagram::unbound()
            .and_then(|socket| socket.send_to(text.as_bytes(), path))
            .map(drop)
            .map_err(|source| DeliveryError::Unreachable { at: path.clone(), source }),
    }
}
