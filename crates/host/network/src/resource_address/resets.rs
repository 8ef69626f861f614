//! Resets of connections that a former owner of an address had: their clients notice at once that
//! the server is another one, instead of at their next retransmission, which may be seconds away.
//!
//! The client gets an acknowledgement outside of its window. It sends back one that has its own
//! numbers (RFC 9293, section 3.10.7.4), for which this machine has no connection: the kernel
//! resets it with the number that the client expects. A connection that exists here ignores it.

use std::io;
use std::net::{IpAddr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};

/// The bit ACK of the header.
const ACK: u8 = 0x10;
/// The length of the header in words, in its place.
const LENGTH: u8 = 5 << 4;

/// Sends acknowledgements for connections.
#[derive(Debug)]
pub struct Resets {
    socket: Socket,
    own: IpAddr,
}

impl Resets {
    /// From this address, which is set on this machine.
    ///
    /// # Errors
    /// The kernel's: raw sockets need root.
    pub fn open(own: IpAddr) -> io::Result<Self> {
        let domain = if own.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let socket = Socket::new(domain, Type::RAW, Some(Protocol::TCP))?;
        socket.bind(&SocketAddr::new(own, 0).into())?;
        Ok(Self { socket, own })
    }

    /// Makes the other end of a connection show its numbers, so that it is reset.
    ///
    /// # Errors
    /// The kernel's; the other end is of another family.
    pub fn send(&self, port: u16, peer: SocketAddr) -> io::Result<()> {
        let packet = acknowledgement(SocketAddr::new(self.own, port), peer)?;
        // Raw sockets take no port.
        self.socket.send_to(&packet, &SocketAddr::new(peer.ip(), 0).into()).map(drop)
    }
}

/// A header of TCP without data, with both numbers 0.
fn acknowledgement(own: SocketAddr, peer: SocketAddr) -> io::Result<[u8; 20]> {
    let mut packet = [0; 20];
    let [own_port, peer_port] = [own.port().to_be_bytes(), peer.port().to_be_bytes()];
    packet[..2].copy_from_slice(&own_port);
    packet[2..4].copy_from_slice(&peer_port);
    (packet[12], packet[13]) = (LENGTH, ACK);
    let mut sum = 0;
    match (own.ip(), peer.ip()) {
        (IpAddr::V4(own), IpAddr::V4(peer)) => {
            add(&mut sum, &[own.octets(), peer.octets()].concat())
        }
        (IpAddr::V6(own), IpAddr::V6(peer)) => {
            add(&mut sum, &[own.octets(), peer.octets()].concat())
        }
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    }
    // The rest of the pseudo header: the protocol and the length.
    sum += libc::IPPROTO_TCP as u32 + packet.len() as u32;
    add(&mut sum, &packet);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    packet[16..18].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    Ok(packet)
}

/// Adds 16-bit words for the checksum of the Internet (RFC 1071).
fn add(sum: &mut u32, bytes: &[u8]) {
    for word in bytes.as_chunks::<2>().0 {
        *sum += u32::from(u16::from_be_bytes(*word));
    }
}

#[cfg(test)]
mod tests;
