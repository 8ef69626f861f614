//! Ends of connections, as sock_diag(7) sends them to a group: what a connection did between the
//! last look and its end is in no look.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd;

use socket2::{Domain, Protocol, Socket, Type};

use super::diagnosis::{Connection, collect};
use crate::socket_diagnosis::ANSWER;

/// `SKNLGRP_INET_TCP_DESTROY` and `SKNLGRP_INET6_TCP_DESTROY` (linux/sock_diag.h), as bits.
const GROUPS: u32 = 1 << 0 | 1 << 2;
/// Bytes that wait in the kernel: it accounts some 1,300 for a message, so that the ends of 3,000
/// connections at once have room.
const BUFFER: i32 = 4 << 20;
/// Messages of one second: some 3 ms of processor time.
const MESSAGES_MAX: usize = 1024;
/// Connections that ended between two looks. More are in no row, but in the totals.
const ENDED_MAX: usize = 4096;

/// Receives the ends of connections.
pub struct Ends(Socket);

impl Ends {
    /// From now on.
    ///
    /// # Errors
    /// The kernel has no such group.
    pub fn open() -> io::Result<Self> {
        let protocol = Some(Protocol::from(libc::NETLINK_SOCK_DIAG));
        let (domain, kind) = (Domain::from(libc::AF_NETLINK), Type::from(libc::SOCK_RAW));
        let socket = Socket::new(domain, kind, protocol)?;
        socket.set_nonblocking(true)?;
        enlarge(&socket);
        join(&socket)?;
        Ok(Self(socket))
    }

    /// Adds those that ended since the last call, by cookie.
    pub fn drain(&self, ended: &mut HashMap<u64, Connection>) {
        let mut room = vec![0; ANSWER];
        for _ in 0..MESSAGES_MAX {
            match (&self.0).read(&mut room) {
                Ok(n) if ended.len() < ENDED_MAX => {
                    collect(room.get(..n).unwrap_or_default(), ended);
                }
                Ok(_) => {}
                // Some found no room; those behind them did.
                Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}

/// A larger buffer than others may have, or what they may have.
fn enlarge(socket: &Socket) {
    let (bytes, length) = (BUFFER, size_of::<i32>() as libc::socklen_t);
    let (level, name) = (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE);
    // SAFETY: the kernel reads one number.
    let failed = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const bytes).cast(), length)
    };
    if failed != 0 {
        // A small buffer loses ends of many at once; the totals have them.
        let _smaller = socket.set_recv_buffer_size(BUFFER as usize);
    }
}

fn join(socket: &Socket) -> io::Result<()> {
    // SAFETY: a structure of numbers, which may all be zero.
    let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
    address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
    address.nl_groups = GROUPS;
    let length = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
    // SAFETY: `address` is as long as stated.
    let failed = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests;
