//! Connections of an address that are left in the kernel from the last time when it was here: those
//! of a server that was killed while its clients could not be reached retransmit their end for
//! minutes. A client that uses its port again would get no answer from them.

use std::io::{self, Read};
use std::net::IpAddr;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// Messages of sock_diag(7): a dump by family, and the end of a socket (linux/sock_diag.h).
const BY_FAMILY: u16 = 20;
const DESTROY: u16 = 21;
/// Bytes of `struct nlmsghdr`, of a request, and of an answer (linux/inet_diag.h).
const HEADER: usize = 16;
const REQUEST: usize = 56;
const ANSWER: usize = 72;
/// Where the identity of a socket is in a request and in an answer, and its length: ports,
/// addresses, interface, cookie.
const OF_REQUEST: usize = 8;
const OF_ANSWER: usize = 4;
const IDENTITY: usize = 48;
/// Its own address in the identity.
const OWN: usize = 4;
/// All states but that of a socket that listens (net/tcp_states.h).
const STATES: u32 = !(1 << 10);
/// Bytes of an answer: the kernel fills what it is given, up to 32 KiB.
const ROOM: usize = 32 << 10;
/// Most connections that are ended: as many as a head records.
const CONNECTIONS_MAX: usize = 16 << 10;
/// How long the kernel may take for an answer.
const TIME: Duration = Duration::from_secs(1);
/// Flags of a request, and the types of messages that end a list or have an error.
const DUMP: u16 = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
const ACKNOWLEDGED: u16 = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;

/// Ends all connections of TCP of an address in the network namespace of this thread, without a
/// packet as long as the address is not set; how many.
///
/// # Errors
/// The kernel has no such sockets, or the caller is not root.
pub fn end(address: IpAddr) -> io::Result<usize> {
    let protocol = Some(Protocol::from(libc::NETLINK_SOCK_DIAG));
    let kind = Type::from(libc::SOCK_RAW);
    let socket = Socket::new(Domain::from(libc::AF_NETLINK), kind, protocol)?;
    socket.set_read_timeout(Some(TIME))?;
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 } as u8;
    socket.send(&request(BY_FAMILY, DUMP, family, &[0; IDENTITY]))?;
    let mut found = Vec::new();
    let mut enter = |kind, message: &[u8]| {
        let identity = message.get(OF_ANSWER..OF_ANSWER + IDENTITY);
        let wanted = kind == BY_FAMILY && message.len() >= ANSWER;
        let identity = identity.filter(|one| wanted && has_address(one, address));
        if found.len() < CONNECTIONS_MAX {
            found.extend(identity.map(<[u8]>::to_vec));
        }
    };
    while messages(&socket, &mut enter)? {}
    for identity in &found {
        socket.send(&request(DESTROY, ACKNOWLEDGED, family, identity))?;
        // One that has ended meanwhile is answered with an error.
        messages(&socket, |_, _| {})?;
    }
    Ok(found.len())
}

fn has_address(identity: &[u8], address: IpAddr) -> bool {
    let own = identity.get(OWN..).unwrap_or_default();
    match address {
        IpAddr::V4(address) => own.starts_with(&address.octets()),
        IpAddr::V6(address) => own.starts_with(&address.octets()),
    }
}

/// A request about sockets of TCP.
fn request(kind: u16, flags: u16, family: u8, identity: &[u8]) -> Vec<u8> {
    let length = (HEADER + REQUEST) as u32;
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.resize(HEADER, 0);
    bytes.extend([family, libc::IPPROTO_TCP as u8, 0, 0]);
    bytes.extend(STATES.to_ne_bytes());
    debug_assert_eq!(bytes.len(), HEADER + OF_REQUEST);
    bytes.extend(identity);
    bytes
}

/// Gives `each` the type and the content of the messages of one answer; whether more follow.
fn messages(socket: &Socket, mut each: impl FnMut(u16, &[u8])) -> io::Result<bool> {
    let mut room = vec![0; ROOM];
    let length = { socket }.read(&mut room)?;
    let mut rest = room.get(..length).unwrap_or_default();
    while let Some((head, _)) = rest.split_first_chunk::<HEADER>() {
        let [a, b, c, d, e, f, ..] = *head;
        let (size, kind) = (u32::from_ne_bytes([a, b, c, d]), u16::from_ne_bytes([e, f]));
        if matches!(i32::from(kind), libc::NLMSG_DONE | libc::NLMSG_ERROR) {
            return Ok(false);
        }
        let size = usize::try_from(size).unwrap_or(0);
        let Some(content) = rest.get(HEADER..size) else { return Ok(false) };
        each(kind, content);
        rest = rest.get(size.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
