//! Messages of DHCP (RFC 2131) with their options (RFC 2132), and the IPv4 and UDP headers around
//! them. A client sends before it has an address, so the kernel cannot make these headers.

mod options;

use std::net::Ipv4Addr;

use options::Options;

pub use options::Reply;

/// Port of servers.
pub const SERVER_PORT: u16 = 67;
/// Port of clients.
pub const CLIENT_PORT: u16 = 68;
/// Longest message that is received: the MTU of Ethernet, which requests name as well (option 57).
pub const MESSAGE_MAX: usize = 1500;
/// Length of a hardware address of Ethernet.
pub const MAC_LENGTH: usize = 6;

/// Length of an IPv4 header without options.
const IP_HEADER: usize = 20;
/// Length of a UDP header.
const UDP_HEADER: usize = 8;
/// The protocol of an IPv4 packet that carries UDP.
const UDP: u8 = 17;
/// Length of the fixed part of a message, before the cookie.
const FIXED: usize = 236;
/// Shortest message that relays of BOOTP pass on (RFC 1542, section 2.1).
const MESSAGE_MIN: usize = 300;
/// What begins the options.
const COOKIE: [u8; 4] = [99, 130, 83, 99];
/// The field `op` of a request and of a reply.
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
/// The hardware type of Ethernet.
const ETHERNET: u8 = 1;

/// A hardware address.
pub type Mac = [u8; MAC_LENGTH];

/// What a client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// DHCPDISCOVER; an address that the client had and would like again.
    Discover(Option<Ipv4Addr>),
    /// DHCPREQUEST for the address that a server has offered.
    Select {
        /// The server.
        server: Ipv4Addr,
        /// The address.
        address: Ipv4Addr,
    },
    /// DHCPREQUEST of a client that has started again with this address (INIT-REBOOT).
    Verify(Ipv4Addr),
    /// DHCPREQUEST to extend the lease of this address (RENEWING, REBINDING).
    Extend(Ipv4Addr),
    /// DHCPRELEASE.
    Release {
        /// The server.
        server: Ipv4Addr,
        /// The address.
        address: Ipv4Addr,
    },
}

/// A message to a server.
pub fn request(ask: Query, mac: Mac, xid: u32) -> Vec<u8> {
    let own = match ask {
        Query::Extend(address) | Query::Release { address, .. } => address,
        _ => Ipv4Addr::UNSPECIFIED,
    };
    let mut out = vec![REQUEST, ETHERNET, MAC_LENGTH as u8, 0];
    out.extend(xid.to_be_bytes());
    // Seconds and flags: answers to the hardware address are received, so that none is broadcast.
    out.extend([0; 4]);
    out.extend(own.octets());
    out.resize(28, 0);
    out.extend(mac);
    out.resize(FIXED, 0);
    out.extend(COOKIE);
    options::write(ask, mac, &mut out);
    out.resize(out.len().max(MESSAGE_MIN), 0);
    out
}

/// A reply of a server to the client of this hardware address and transaction.
pub fn reply(bytes: &[u8], mac: Mac, xid: u32) -> Option<Reply> {
    let fixed = bytes.get(..FIXED)?;
    let is_mine = fixed.starts_with(&[REPLY, ETHERNET, MAC_LENGTH as u8])
        && fixed.get(4..8)? == xid.to_be_bytes()
        && fixed.get(28..28 + MAC_LENGTH)? == mac;
    let rest = bytes.get(FIXED..)?.strip_prefix(&COOKIE)?;
    let address: [u8; 4] = fixed.get(16..20)?.try_into().ok()?;
    let options = Options::read(rest, fixed.get(108..FIXED)?, fixed.get(44..108)?);
    is_mine.then(|| options.reply(address.into())).flatten()
}

/// A message in UDP and IPv4, from a client to servers.
pub fn packet(message: &[u8], from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    let length = (UDP_HEADER + message.len()) as u16;
    let mut out = vec![0x45, 0];
    out.extend((IP_HEADER as u16 + length).to_be_bytes());
    // No identification, no fragments; 64 hops; the checksum follows.
    out.extend([0, 0, 0, 0, 64, UDP, 0, 0]);
    out.extend(from.octets());
    out.extend(to.octets());
    let sum = checksum(&[&out]);
    out.splice(10..12, sum.to_be_bytes());
    let mut udp = Vec::with_capacity(usize::from(length));
    udp.extend(CLIENT_PORT.to_be_bytes());
    udp.extend(SERVER_PORT.to_be_bytes());
    udp.extend(length.to_be_bytes());
    udp.extend([0, 0]);
    udp.extend(message);
    let [high, low] = length.to_be_bytes();
    let sum = checksum(&[&from.octets(), &to.octets(), &[0, UDP, high, low], &udp]);
    // 0 is for no checksum.
    let sum = if sum == 0 { u16::MAX } else { sum };
    udp.splice(6..8, sum.to_be_bytes());
    out.extend(udp);
    out
}

/// The message in an IPv4 packet to a client. The checksum of UDP is not verified: a link between
/// namespaces leaves it out, and a message has to match the client and its transaction.
pub fn payload(packet: &[u8]) -> Option<&[u8]> {
    let first = *packet.first()?;
    let header = usize::from(first & 0xf) * 4;
    let number = |bytes: &[u8], at: usize| -> Option<usize> {
        Some(usize::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
    };
    // What follows the packet is padding of the link.
    let packet = packet.get(..number(packet, 2)?)?;
    let is_fragment = number(packet, 6)? & 0x3fff != 0;
    if first >> 4 != 4 || header < IP_HEADER || is_fragment || *packet.get(9)? != UDP {
        return None;
    }
    let udp = packet.get(header..)?;
    let ports = (number(udp, 0)?, number(udp, 2)?);
    if ports != (SERVER_PORT.into(), CLIENT_PORT.into()) {
        return None;
    }
    udp.get(UDP_HEADER..number(udp, 4)?)
}

/// The checksum of the Internet (RFC 1071) over parts of even length but for the last.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let sum: u32 = words
        .map(|word| {
            u32::from(word.first().copied().unwrap_or(0)) << 8
                | u32::from(word.get(1).copied().unwrap_or(0))
        })
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
pub(crate) mod tests;
