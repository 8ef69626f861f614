//! TCP's accounting of connections whose sockets are another program's: by the kernel's own
//! diagnosis, sock_diag(7), asked in the network namespace where they are.

use super::transport::SweepError;
use crate::bridge::device::{DeviceError, NetworkNamespace};
use base::limits::{LAB_DIAGNOSIS_BUFFER, LAB_DIAGNOSIS_MAX};
use base::tcp_info::TcpInfo;
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::{Mutex, PoisonError};

/// A request by family of addresses (linux/sock_diag.h).
const BY_FAMILY: u16 = 20;
/// Established connections, as a bit of the states that are wanted.
const ESTABLISHED: u32 = 1 << 1;
/// The attribute with `struct tcp_info` (linux/inet_diag.h).
const INFO: u16 = 2;
/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Bytes of `struct inet_diag_msg`, behind which attributes begin.
const MESSAGE: usize = 72;
/// In that message, the ports of this end and of the other.
const PORTS: [usize; 2] = [4, 6];

/// Connections, by the port of the end that is looked at and that of the other.
pub type TcpInfoByPorts = BTreeMap<(u16, u16), TcpInfo>;

/// What looks at the connections of a namespace.
#[derive(Debug)]
pub struct Diagnosis(Mutex<Socket>);

impl Diagnosis {
    /// Of the namespace of a place.
    ///
    /// # Errors
    /// No such namespace, or the kernel has no such sockets.
    pub fn open(place: &NetworkNamespace) -> Result<Self, SweepError> {
        let open = || -> io::Result<Socket> {
            let (domain, protocol) = (libc::AF_NETLINK, libc::NETLINK_SOCK_DIAG);
            let (domain, protocol) = (Domain::from(domain), Some(Protocol::from(protocol)));
            let socket = Socket::new(domain, Type::from(libc::SOCK_RAW), protocol)?;
            socket.set_read_timeout(Some(LAB_DIAGNOSIS_MAX))?;
            Ok(socket)
        };
        let what = || "ask the kernel about connections".to_owned();
        let refused = |source| DeviceError::Refused { what: what(), source };
        Ok(Self(Mutex::new(place.within(|| open().map_err(refused))?)))
    }

    /// All established connections, by the port of the end that is here and that of the other;
    /// `None` if they are not seen.
    pub fn all(&self) -> Option<TcpInfoByPorts> {
        let socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        socket.send(&request()).ok()?;
        let (mut seen, mut room) = (TcpInfoByPorts::new(), vec![0; LAB_DIAGNOSIS_BUFFER]);
        loop {
            let n = (&*socket).read(&mut room).ok()?;
            if look(room.get(..n)?, &mut seen) {
                return Some(seen);
            }
        }
    }

    /// The end here of the connection whose other end has the port `peer`; `None` if it is not
    /// seen.
    pub fn of(&self, peer: u16) -> Option<TcpInfo> {
        self.all()?.into_iter().find(|((_, port), _)| *port == peer).map(|(_, info)| info)
    }
}

/// All established connections of TCP over IPv4, with what TCP says of each.
fn request() -> Vec<u8> {
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    let mut out = Vec::new();
    out.extend(72u32.to_ne_bytes());
    out.extend(BY_FAMILY.to_ne_bytes());
    out.extend(flags.to_ne_bytes());
    // Sequence and port: one question at a time.
    out.extend([0; 8]);
    out.extend([libc::AF_INET as u8, libc::IPPROTO_TCP as u8, 1 << (INFO - 1), 0]);
    out.extend(ESTABLISHED.to_ne_bytes());
    // Whichever they are.
    out.extend([0; 48]);
    out
}

/// Keeps what one answer tells; whether it was the last of them.
fn look(mut answer: &[u8], seen: &mut TcpInfoByPorts) -> bool {
    while let Some((length, kind)) = u32_at(answer, 0).zip(u16_at(answer, 4)) {
        let length = length as usize;
        if matches!(i32::from(kind), libc::NLMSG_DONE | libc::NLMSG_ERROR) {
            return true;
        }
        // Without a length there is no next one.
        let Some(message) = answer.get(HEADER..length) else { return true };
        let [own, peer] = PORTS.map(|at| u16_at(message, at).map(u16::from_be));
        let info = attribute(message.get(MESSAGE..).unwrap_or_default(), INFO);
        if let (Some(own), Some(peer), Some(info)) = (own, peer, info) {
            seen.insert((own, peer), TcpInfo::from(info));
        }
        answer = answer.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    false
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
    bytes.get(at..at + 2).map(|b| u16::from_ne_bytes([b[0], b[1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]))
}

#[cfg(test)]
mod tests;
