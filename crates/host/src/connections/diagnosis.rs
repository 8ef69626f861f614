//! sock_diag(7) over netlink: all connections of TCP that may carry data, with `struct tcp_info`.

use std::collections::HashMap;
use std::io::{self, Read};
use std::net::Ipv6Addr;
use std::time::Duration;

use base::tcp_info::TcpInfo;
use socket2::{Domain, Protocol, Socket, Type};

/// A request by family of addresses (linux/sock_diag.h).
const BY_FAMILY: u16 = 20;
/// The attribute with `struct tcp_info` (linux/inet_diag.h).
const INFO: u16 = 2;
/// Bytes of `struct nlmsghdr`, of a request, and of `struct inet_diag_msg`.
const HEADER: usize = 16;
const REQUEST: u32 = 72;
const MESSAGE: usize = 72;
/// In that message: the other end's address, the cookie.
const PEER: usize = 24;
const COOKIE: usize = 44;
/// States in which data may go (net/tcp_states.h): established, the two of FIN-WAIT, CLOSE-WAIT,
/// LAST-ACK, CLOSING.
const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;
/// In `struct tcp_info`: round-trip time; retransmits, segments out of order; time with data to
/// send, limited by the receiver's window, by the send buffer.
const RTT: usize = 68;
const EVENTS: [usize; 2] = [100, 224];
const LIMITED: [usize; 3] = [168, 176, 184];
/// Bytes of an answer: the kernel fills what it is given, up to 32 KiB.
pub const ANSWER: usize = 32 << 10;
/// Most connections of one look; those beyond are not seen.
pub const CONNECTIONS_MAX: usize = 1 << 16;
/// The kernel answers at once.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// A connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// The other end.
    pub peer: Ipv6Addr,
    /// Segments retransmitted, segments received out of order.
    pub events: [u32; 2],
    /// Microseconds with data to send; of these limited by the receiver, by the send buffer.
    pub limited_us: [u64; 3],
    /// Smoothed round-trip time.
    pub rtt_us: u32,
}

impl Default for Connection {
    fn default() -> Self {
        Self { peer: Ipv6Addr::UNSPECIFIED, events: [0; 2], limited_us: [0; 3], rtt_us: 0 }
    }
}

/// All connections of the namespace of this thread, by cookie.
///
/// # Errors
/// The kernel has no such sockets, or does not answer.
pub fn connections() -> io::Result<HashMap<u64, Connection>> {
    let mut seen = HashMap::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        look(family, &mut seen)?;
    }
    Ok(seen)
}

/// Of one family.
fn look(family: i32, seen: &mut HashMap<u64, Connection>) -> io::Result<()> {
    let (domain, protocol) = (libc::AF_NETLINK, libc::NETLINK_SOCK_DIAG);
    let protocol = Some(Protocol::from(protocol));
    let socket = Socket::new(Domain::from(domain), Type::from(libc::SOCK_RAW), protocol)?;
    socket.set_read_timeout(Some(ANSWER_MAX))?;
    socket.send(&request(family))?;
    let mut room = vec![0; ANSWER];
    // An answer has at least one connection in it, or is the last.
    for _ in 0..=CONNECTIONS_MAX {
        let n = (&socket).read(&mut room)?;
        let Some(answer) = room.get(..n).filter(|answer| !answer.is_empty()) else { break };
        if collect(answer, seen) || seen.len() >= CONNECTIONS_MAX {
            break;
        }
    }
    Ok(())
}

fn request(family: i32) -> Vec<u8> {
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    let mut out = Vec::new();
    out.extend(REQUEST.to_ne_bytes());
    out.extend(BY_FAMILY.to_ne_bytes());
    out.extend(flags.to_ne_bytes());
    // Sequence and port: one question at a time.
    out.extend([0; 8]);
    out.extend([family as u8, libc::IPPROTO_TCP as u8, 1 << (INFO - 1), 0]);
    out.extend(STATES.to_ne_bytes());
    // Whichever they are.
    out.extend([0; 48]);
    out
}

/// Keeps what one answer has; whether it was the last of them.
pub fn collect(mut answer: &[u8], seen: &mut HashMap<u64, Connection>) -> bool {
    while let Some((length, kind)) = u32_at(answer, 0).zip(u16_at(answer, 4)) {
        let length = length as usize;
        if matches!(i32::from(kind), libc::NLMSG_DONE | libc::NLMSG_ERROR) {
            return true;
        }
        // Without a length there is no next one.
        let Some(message) = answer.get(HEADER..length) else { return true };
        if let Some((cookie, connection)) = connection(message) {
            seen.insert(cookie, connection);
        }
        answer = answer.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    false
}

/// One message.
fn connection(message: &[u8]) -> Option<(u64, Connection)> {
    let address: [u8; 16] = *message.get(PEER..)?.first_chunk()?;
    let peer = match i32::from(*message.first()?) {
        libc::AF_INET => {
            let [a, b, c, d, ..] = address;
            std::net::Ipv4Addr::new(a, b, c, d).to_ipv6_mapped()
        }
        _ => Ipv6Addr::from(address),
    };
    let cookie = u64::from_ne_bytes(*message.get(COOKIE..)?.first_chunk()?);
    let info = TcpInfo::from(attribute(message.get(MESSAGE..)?, INFO)?);
    let events = EVENTS.map(|at| info.u32_at(at).unwrap_or(0));
    let limited_us = LIMITED.map(|at| info.u64_at(at).unwrap_or(0));
    let rtt_us = info.u32_at(RTT).unwrap_or(0);
    Some((cookie, Connection { peer, events, limited_us, rtt_us }))
}

/// The attribute of this kind.
fn attribute(mut all: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let (length, kind) = (usize::from(u16_at(all, 0)?), u16_at(all, 2)?);
        let content = all.get(4..length)?;
        if kind == wanted {
            return Some(content);
        }
        all = all.get(length.next_multiple_of(4)..)?;
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|b| u16::from_ne_bytes(*b))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_ne_bytes(*b))
}

#[cfg(test)]
mod tests;
