//! Whether clients can reach an address at this machine: by the carrier of its link, and by hosts
//! beyond it that answer an echo request (RFC 792, RFC 4443 section 4).

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use base::clock::monotonic_ns;
use socket2::{Domain, Protocol, Socket, Type};

use crate::netlink::Netlink;

/// Types of messages: request and reply of each family.
const ECHO_4: (u8, u8) = (8, 0);
const ECHO_6: (u8, u8) = (128, 129);
/// The largest header of IPv4, and that of an echo message.
const ROOM: usize = 60 + 8;

/// Looks at links and hosts.
#[derive(Debug)]
pub struct Reach {
    netlink: Netlink,
    /// Identifies the requests of this one among those of the machine.
    id: u16,
    sequence: u16,
}

impl Reach {
    /// Opens the network of the calling thread's namespace.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open() -> io::Result<Self> {
        static COUNT: AtomicU16 = AtomicU16::new(0);
        let id = (std::process::id() as u16).wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed));
        Ok(Self { netlink: Netlink::open()?, id, sequence: 0 })
    }

    /// Whether a link is up and has a carrier.
    ///
    /// # Errors
    /// The kernel's reason, for example that there is no such link.
    pub fn has_carrier(&mut self, link: &str) -> Result<bool, String> {
        self.netlink.has_carrier(link)
    }

    /// Whether a host answers an echo request that leaves by this link, within this time.
    ///
    /// # Errors
    /// The kernel's: there is no route, or the caller is not root.
    pub fn answers(&mut self, link: &str, host: IpAddr, time: Duration) -> io::Result<bool> {
        let until = monotonic_ns().saturating_add(time.as_nanos() as u64);
        self.sequence = self.sequence.wrapping_add(1);
        let (domain, protocol) = match host {
            IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
            IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
        };
        let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
        socket.bind_device(Some(link.as_bytes()))?;
        // Packets of other hosts are not received.
        socket.connect(&SocketAddr::new(host, 0).into())?;
        socket.send(&request(host.is_ipv4(), self.id, self.sequence))?;
        loop {
            let left = Duration::from_nanos(until.saturating_sub(monotonic_ns()));
            if left.is_zero() {
                return Ok(false);
            }
            socket.set_read_timeout(Some(left))?;
            let mut room = [0; ROOM];
            match (&socket).read(&mut room) {
                Ok(length) => {
                    let packet = room.get(..length).unwrap_or_default();
                    if is_reply(host.is_ipv4(), packet, self.id, self.sequence) {
                        return Ok(true);
                    }
                }
                Err(e)
                    if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
                {
                    return Ok(false);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

/// An echo request; of IPv6 the kernel writes the checksum.
fn request(is_v4: bool, id: u16, sequence: u16) -> [u8; 8] {
    let ([id0, id1], [s0, s1]) = (id.to_be_bytes(), sequence.to_be_bytes());
    let kind = if is_v4 { ECHO_4.0 } else { ECHO_6.0 };
    let sum = u32::from(kind) * 256 + u32::from(id) + u32::from(sequence);
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    let [c0, c1] = if is_v4 { (!(folded as u16)).to_be_bytes() } else { [0, 0] };
    [kind, 0, c0, c1, id0, id1, s0, s1]
}

/// Whether a packet is the reply to this request. IPv4 comes with its header.
fn is_reply(is_v4: bool, packet: &[u8], id: u16, sequence: u16) -> bool {
    let header = match packet.first() {
        Some(first) if is_v4 => usize::from(first & 0x0f) * 4,
        _ => 0,
    };
    let kind = if is_v4 { ECHO_4.1 } else { ECHO_6.1 };
    let [id, sequence] = [id.to_be_bytes(), sequence.to_be_bytes()];
    let expected = [&[kind, 0][..], &id, &sequence].concat();
    let Some(message) = packet.get(header..) else { return false };
    let found: Vec<u8> = match message {
        [kind, code, _, _, rest @ ..] => {
            [&[*kind, *code], rest.get(..4).unwrap_or_default()].concat()
        }
        _ => return false,
    };
    found == expected
}

#[cfg(test)]
mod tests;
