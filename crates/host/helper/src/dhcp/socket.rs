//! The sockets of a DHCP client: one for packets of a link that has no address yet, and one of UDP
//! for the server of a lease, which may be behind a router.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use host_network::dhcp::client::Outgoing;
use host_network::dhcp::message::{CLIENT_PORT, MESSAGE_MAX, SERVER_PORT, packet, payload};

/// Messages that are taken without looking at the time in between.
const AT_ONCE: usize = 32;

/// The sockets that an exchange has needed so far.
pub(super) struct Sockets {
    link: String,
    index: u32,
    packets: Option<OwnedFd>,
    udp: Option<UdpSocket>,
}

impl Sockets {
    pub(super) fn of(link: &str, index: u32) -> Self {
        Self { link: link.to_owned(), index, packets: None, udp: None }
    }

    /// Closes them: no packet wakes the client any more.
    pub(super) fn close(&mut self) {
        (self.packets, self.udp) = (None, None);
    }

    /// What may have something to read.
    pub(super) fn files(&self) -> [Option<BorrowedFd<'_>>; 2] {
        [self.packets.as_ref().map(AsFd::as_fd), self.udp.as_ref().map(AsFd::as_fd)]
    }

    /// Sends a message: to all by a packet, to one by UDP.
    pub(super) fn send(&mut self, outgoing: &Outgoing) -> io::Result<()> {
        if outgoing.to == Ipv4Addr::BROADCAST {
            return self.send_packet(outgoing);
        }
        if self.udp.is_none() {
            let udp = UdpSocket::bind((outgoing.from, CLIENT_PORT))?;
            udp.set_nonblocking(true)?;
            bind_to_link(&udp, &self.link)?;
            self.udp = Some(udp);
        }
        // The answer to an earlier packet does not matter any more.
        self.packets = None;
        let Some(udp) = &self.udp else { return Ok(()) };
        udp.send_to(&outgoing.message, (outgoing.to, SERVER_PORT)).map(drop)
    }

    /// Sends a packet to all stations of the link, also if it is for one address: so a lease is
    /// released after the link has lost its address.
    pub(super) fn send_packet(&mut self, outgoing: &Outgoing) -> io::Result<()> {
        if self.packets.is_none() {
            self.packets = Some(packets_of(self.index)?);
        }
        let Some(socket) = &self.packets else { return Ok(()) };
        let bytes = packet(&outgoing.message, outgoing.from, outgoing.to);
        let to = link_address(self.index, [0xff; 6]);
        // SAFETY: the pointers lead to bytes and an address of the lengths that are given.
        let sent = unsafe {
            libc::sendto(
                socket.as_raw_fd(),
                bytes.as_ptr().cast(),
                bytes.len(),
                0,
                (&raw const to).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The messages that have come.
    pub(super) fn receive(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut messages = Vec::new();
        let mut buffer = [0; MESSAGE_MAX];
        while messages.len() < AT_ONCE
            && let Some(socket) = &self.packets
            && let Some(bytes) = read(socket.as_fd(), &mut buffer)?
        {
            messages.extend(payload(bytes).map(<[u8]>::to_vec));
        }
        while messages.len() < AT_ONCE
            && let Some(socket) = &self.udp
            && let Some(bytes) = read(socket.as_fd(), &mut buffer)?
        {
            messages.push(bytes.to_vec());
        }
        Ok(messages)
    }
}

/// What has come, or `None` if nothing has.
fn read<'a>(socket: BorrowedFd<'_>, buffer: &'a mut [u8]) -> io::Result<Option<&'a [u8]>> {
    // SAFETY: the kernel fills a buffer of this length.
    let n = unsafe {
        libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT)
    };
    if n >= 0 {
        return Ok(buffer.get(..n as usize));
    }
    let e = io::Error::last_os_error();
    match e.kind() {
        // A server without a process on its port is one that does not answer.
        io::ErrorKind::WouldBlock
        | io::ErrorKind::Interrupted
        | io::ErrorKind::ConnectionRefused => Ok(None),
        _ => Err(e),
    }
}

/// A socket for packets of IPv4 on a link, of which only those to the port of clients come.
fn packets_of(index: u32) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // Without a protocol nothing comes before the filter is there.
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that is this function's alone.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut filter = to_clients();
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    set(socket.as_fd(), libc::SO_ATTACH_FILTER, &program)?;
    let address = link_address(index, [0; 6]);
    // SAFETY: the pointer leads to an address of the length that is given.
    let bound = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if bound < 0 { Err(io::Error::last_os_error()) } else { Ok(socket) }
}

fn link_address(index: u32, [a, b, c, d, e, f]: [u8; 6]) -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_IP as u16).to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 6,
        sll_addr: [a, b, c, d, e, f, 0, 0],
    }
}

/// Passes packets of UDP to [`CLIENT_PORT`] that are no fragments; they begin with the IP header.
fn to_clients() -> [libc::sock_filter; 9] {
    let load = libc::BPF_LD | libc::BPF_ABS;
    let jump = libc::BPF_JMP | libc::BPF_K;
    let line = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    [
        // The protocol.
        line(load | libc::BPF_B, 0, 0, 9),
        line(jump | libc::BPF_JEQ, 0, 5, libc::IPPROTO_UDP as u32),
        // The offset of a fragment.
        line(load | libc::BPF_H, 0, 0, 6),
        line(jump | libc::BPF_JSET, 3, 0, 0x1fff),
        // The port behind a header of the length in its first byte.
        line(libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH, 0, 0, 0),
        line(libc::BPF_LD | libc::BPF_H | libc::BPF_IND, 0, 0, 2),
        line(jump | libc::BPF_JEQ, 1, 0, u32::from(CLIENT_PORT)),
        line(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
        line(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
    ]
}

fn set<T>(socket: BorrowedFd<'_>, option: i32, value: &T) -> io::Result<()> {
    // SAFETY: the pointer leads to a value of the length that is given.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn bind_to_link(socket: &UdpSocket, link: &str) -> io::Result<()> {
    let mut name = [0_u8; libc::IFNAMSIZ];
    for (to, from) in name.iter_mut().take(libc::IFNAMSIZ - 1).zip(link.bytes()) {
        *to = from;
    }
    set(socket.as_fd(), libc::SO_BINDTODEVICE, &name)
}
