//! sock_diag(7) over netlink: connections of TCP, also those of other programs, with
//! `struct tcp_info`.

use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::ControlFlow;
use std::time::Duration;

use base::tcp_info::TcpInfo;
use socket2::{Domain, Protocol, Socket, Type};

/// A request by family of addresses (linux/sock_diag.h).
const BY_FAMILY: u16 = 20;
/// A request that ends a socket.
const DESTROY: u16 = 21;
/// The attribute with `struct tcp_info` (linux/inet_diag.h).
const INFO: u16 = 2;
/// Bytes of `struct nlmsghdr`, of a request, and of `struct inet_diag_msg`.
const HEADER: usize = 16;
const REQUEST: u32 = 72;
const MESSAGE: usize = 72;
/// In that message: the ports of both ends, both addresses, the cookie.
const PORTS: [usize; 2] = [4, 6];
const OWN: usize = 8;
const PEER: usize = 24;
const COOKIE: usize = 44;
/// The identity of a socket, as a request has it too: ports, addresses, interface, cookie.
const IDENTITY: usize = 48;
const IDENTITY_AT: usize = 4;
/// All states but that of a socket that listens.
const CONNECTED: u32 = !(1 << 10);
/// Established connections, as a bit of the states that are wanted (net/tcp_states.h).
pub const ESTABLISHED: u32 = 1 << 1;
/// States in which data may go: established, the two of FIN-WAIT, CLOSE-WAIT, LAST-ACK, CLOSING.
pub const TRANSFERRING: u32 = ESTABLISHED | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;
/// Bytes of an answer: the kernel fills what it is given, up to 32 KiB.
pub const ANSWER: usize = 32 << 10;
/// Most connections of one dump; those beyond are not seen.
pub const CONNECTIONS_MAX: usize = 1 << 16;
/// Most connections that are ended at once: as many as a head records.
const ENDED_MAX: usize = 16 << 10;
/// How long the kernel may take for an answer: it answers at once, or not at all.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// Dumps the connections of a network namespace.
#[derive(Debug)]
pub struct SocketDiagnosis {
    socket: Socket,
    room: Vec<u8>,
}

impl SocketDiagnosis {
    /// Of the namespace of this thread.
    ///
    /// # Errors
    /// The kernel has no such sockets.
    pub fn open() -> io::Result<Self> {
        let protocol = Some(Protocol::from(libc::NETLINK_SOCK_DIAG));
        let (domain, kind) = (Domain::from(libc::AF_NETLINK), Type::from(libc::SOCK_RAW));
        let socket = Socket::new(domain, kind, protocol)?;
        socket.set_read_timeout(Some(ANSWER_MAX))?;
        Ok(Self { socket, room: vec![0; ANSWER] })
    }

    /// Gives `each` every connection of a family of addresses that is in one of these states. After
    /// a break this socket has answers that were not read: it is not used again.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn dump(
        &mut self,
        family: i32,
        states: u32,
        each: &mut dyn FnMut(Message<'_>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let dump = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
        self.socket.send(&request(BY_FAMILY, dump, family, states, &[0; IDENTITY]))?;
        // An answer has at least one connection in it, or is the last.
        for _ in 0..=CONNECTIONS_MAX {
            let n = (&self.socket).read(&mut self.room)?;
            let answer = self.room.get(..n).unwrap_or_default();
            if answer.is_empty() || messages(answer, each).is_break() {
                break;
            }
        }
        Ok(())
    }
    /// Ends all connections of an address, in any state, without a packet as long as the address is
    /// not set; how many. Those of a server that was killed while its clients could not be reached
    /// retransmit their end for minutes, and a client that uses its port again gets no answer.
    ///
    /// # Errors
    /// The kernel does not answer, or the caller is not root.
    pub fn end_connections(&mut self, address: IpAddr) -> io::Result<usize> {
        let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let mapped = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        let mut found = Vec::new();
        self.dump(family, CONNECTED, &mut |message| {
            let wanted = message.own() == Some(mapped) && found.len() < ENDED_MAX;
            found.extend(message.identity().filter(|_| wanted));
            ControlFlow::Continue(())
        })?;
        let end = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        for identity in &found {
            self.socket.send(&request(DESTROY, end, family, CONNECTED, identity))?;
            // One that has ended meanwhile is answered with an error.
            let _answer = (&self.socket).read(&mut self.room)?;
        }
        Ok(found.len())
    }
}

fn request(kind: u16, flags: u16, family: i32, states: u32, identity: &[u8; IDENTITY]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(REQUEST.to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend(flags.to_ne_bytes());
    // Sequence and port: one question at a time.
    out.extend([0; 8]);
    out.extend([family as u8, libc::IPPROTO_TCP as u8, 1 << (INFO - 1), 0]);
    out.extend(states.to_ne_bytes());
    // All zero for any addresses and ports.
    out.extend(identity);
    out
}

/// Gives `each` the messages of an answer; a break if it is the last of a dump, or `each` breaks.
pub fn messages(
    mut answer: &[u8],
    each: &mut dyn FnMut(Message<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    while let Some((length, kind)) = u32_at(answer, 0).zip(u16_at(answer, 4)) {
        let length = length as usize;
        if matches!(i32::from(kind), libc::NLMSG_DONE | libc::NLMSG_ERROR) {
            return ControlFlow::Break(());
        }
        // Without a length there is no next one.
        let Some(message) = answer.get(HEADER..length) else { return ControlFlow::Break(()) };
        each(Message(message))?;
        answer = answer.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    ControlFlow::Continue(())
}

/// `struct inet_diag_msg` and its attributes.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a>(&'a [u8]);

impl<'a> Message<'a> {
    /// The ports of the end that is here and of the other.
    pub fn ports(self) -> Option<(u16, u16)> {
        let [own, peer] = PORTS.map(|at| u16_at(self.0, at).map(u16::from_be));
        own.zip(peer)
    }

    /// The address of the end that is here.
    pub fn own(self) -> Option<Ipv6Addr> {
        self.address(OWN)
    }

    /// The address of the other end.
    pub fn peer(self) -> Option<Ipv6Addr> {
        self.address(PEER)
    }

    fn address(self, at: usize) -> Option<Ipv6Addr> {
        let address: [u8; 16] = *self.0.get(at..)?.first_chunk()?;
        let [a, b, c, d, ..] = address;
        match i32::from(*self.0.first()?) {
            libc::AF_INET => Some(Ipv4Addr::new(a, b, c, d).to_ipv6_mapped()),
            _ => Some(Ipv6Addr::from(address)),
        }
    }

    /// What a request names this socket by.
    fn identity(self) -> Option<[u8; IDENTITY]> {
        self.0.get(IDENTITY_AT..)?.first_chunk().copied()
    }

    /// The cookie, which the kernel gives no other socket.
    pub fn cookie(self) -> Option<u64> {
        self.0.get(COOKIE..)?.first_chunk().map(|b| u64::from_ne_bytes(*b))
    }

    /// What TCP knows of it.
    pub fn info(self) -> Option<TcpInfo> {
        self.attribute(INFO).map(TcpInfo::from)
    }

    fn attribute(self, wanted: u16) -> Option<&'a [u8]> {
        let mut all = self.0.get(MESSAGE..)?;
        loop {
            let (length, kind) = (usize::from(u16_at(all, 0)?), u16_at(all, 2)?);
            let content = all.get(4..length)?;
            if kind == wanted {
                return Some(content);
            }
            all = all.get(length.next_multiple_of(4)..)?;
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|b| u16::from_ne_bytes(*b))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_ne_bytes(*b))
}

#[cfg(test)]
pub mod tests;
