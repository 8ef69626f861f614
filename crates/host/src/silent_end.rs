//! The end of a process of which another machine gets the address: its connections vanish without
//! FIN or RST, so that their clients wait for that machine, which resets them
//! (docs/formats/heads.md). Replies that were sent before arrive.
//!
//! Copies of the sockets keep them open while their services end. Closing a socket in the state of
//! `TCP_REPAIR` (tcp(7), root only) sends nothing.
//!
//! Listening sockets stay too, with a filter that drops what comes to them (socket(7)): as long as
//! the address is still here, a client that connects, or continues a connection that has vanished,
//! would be refused or reset by the kernel, and one of Linux tries again 3 s after that. Dropped
//! packets are sent again, and meet the next owner.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::time::Duration;

use base::clock::Deadline;
use socket2::{Socket, Type};

/// linux/tcp.h.
const TCP_REPAIR: libc::c_int = 19;
/// linux/bpf_common.h: `BPF_RET | BPF_K`.
const RET_K: u16 = 0x06;
/// How long clients may take to acknowledge the last replies: those in the next room do it in less
/// than 40 ms, of others the successor resets the connection.
const SENT_MAX: Duration = Duration::from_millis(200);
/// How often that is looked at.
const EVERY: Duration = Duration::from_millis(2);

/// Copies of the sockets of an address.
#[derive(Debug, Default)]
pub struct SilentEnd {
    connections: Vec<Socket>,
    /// Kept open only.
    _listeners: Vec<Socket>,
}

impl SilentEnd {
    /// Of all connections that this process has with this address of its own, and of its ports
    /// there, which take nothing more from now on.
    ///
    /// # Errors
    /// The descriptors of this process cannot be listed. A socket of which there is no copy ends as
    /// usual.
    pub fn of(address: IpAddr) -> io::Result<Self> {
        let names = fs::read_dir("/proc/self/fd")?.flatten().map(|entry| entry.file_name());
        let numbers: Vec<RawFd> =
            names.filter_map(|name| name.to_str().and_then(|name| name.parse().ok())).collect();
        // A number of the list may be that of a copy by now.
        let mut seen = BTreeSet::new();
        let copies = numbers.into_iter().filter_map(copy);
        let copies = copies.filter(|(identity, _)| seen.insert(identity.clone()));
        let sockets = copies.map(|(_, socket)| socket).filter(|one| is_of(one, address));
        let (listeners, others): (Vec<_>, Vec<_>) =
            sockets.partition(|one| one.is_listener().unwrap_or(false));
        let connections = others.into_iter().filter(|one| one.peer_addr().is_ok()).collect();
        // One without a filter refuses clients, as usual.
        let listeners = listeners.into_iter().filter(|one| deafen(one).is_ok()).collect();
        Ok(Self { connections, _listeners: listeners })
    }

    /// How many connections there are.
    pub fn count(&self) -> usize {
        self.connections.len()
    }

    /// Waits until the last replies have arrived, at most for a moment, and ends the connections.
    /// Nothing that clients send is answered before this value is dropped.
    ///
    /// # Errors
    /// The kernel's, the first; connections of which that is true end as usual.
    pub fn end(&mut self) -> io::Result<()> {
        let deadline = Deadline::after(SENT_MAX);
        while self.connections.iter().any(|one| unsent(one) > 0) && !deadline.passed() {
            std::thread::sleep(EVERY);
        }
        let done: Vec<_> = self.connections.drain(..).map(|one| silence(&one)).collect();
        done.into_iter().collect()
    }
}

/// A copy of a descriptor, if it is a socket, with the identity of that. It may have been closed
/// since it was listed.
fn copy(number: RawFd) -> Option<(PathBuf, Socket)> {
    let identity = fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
    identity.to_str().filter(|link| link.starts_with("socket:"))?;
    // SAFETY: only copied, which fails if it is closed; a number that is used again is looked at
    // as what it is then.
    let copied: io::Result<OwnedFd> =
        unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned();
    copied.ok().map(|copied| (identity, Socket::from(copied)))
}

/// Whether it is a socket of TCP with this address.
fn is_of(socket: &Socket, address: IpAddr) -> bool {
    let own = socket.local_addr().ok().and_then(|own| own.as_socket());
    let of_address = own.is_some_and(|own: SocketAddr| own.ip().to_canonical() == address);
    of_address && socket.r#type().is_ok_and(|kind| kind == Type::STREAM)
}

/// Lets the kernel drop whatever comes to a listening socket.
fn deafen(socket: &Socket) -> io::Result<()> {
    // "Accept 0 bytes": the whole program.
    let mut nothing = libc::sock_filter { code: RET_K, jt: 0, jf: 0, k: 0 };
    let program = libc::sock_fprog { len: 1, filter: &raw mut nothing };
    // SAFETY: an open descriptor, and a program of one instruction that the kernel copies.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Bytes that the peer has not acknowledged.
fn unsent(socket: &Socket) -> libc::c_int {
    let mut count: libc::c_int = 0;
    // SAFETY: an open descriptor and a number that the kernel writes.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut count) } {
        0 => count,
        _ => 0,
    }
}

fn silence(socket: &Socket) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: an open descriptor, and a number that the kernel reads.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            TCP_REPAIR,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
