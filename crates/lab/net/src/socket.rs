//! What std does not know of sockets: options before a connection is made, TCP's own account,
//! files that are sent.

use crate::count::TcpAccount;
use crate::limits::{BACKLOG, SLICE};
use crate::profile::{Endpoint, Protocol};
use base::tcp_info::TcpInfo;
use socket2::{Domain, SockAddr, Socket, Type};
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd};
use std::time::Duration;

/// Sets the options of a profile, and the slices of time after which a call looks whether it is to
/// end.
///
/// # Errors
/// What the kernel refuses, for example an algorithm that it does not have.
pub fn set(socket: &Socket, endpoint: &Endpoint) -> io::Result<()> {
    slice(socket)?;
    if let Some(bytes) = endpoint.window {
        socket.set_send_buffer_size(bytes as usize)?;
        socket.set_recv_buffer_size(bytes as usize)?;
    }
    if endpoint.protocol == Protocol::Udp {
        return Ok(());
    }
    if endpoint.nodelay {
        socket.set_tcp_nodelay(true)?;
    }
    if let Some(name) = &endpoint.congestion {
        let named = |e: io::Error| io::Error::new(e.kind(), format!("cc={name}: {e}"));
        congestion(socket, name).map_err(named)?;
    }
    Ok(())
}

fn congestion(socket: &Socket, name: &str) -> io::Result<()> {
    let (at, size) = (name.as_ptr().cast(), name.len() as libc::socklen_t);
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_CONGESTION);
    // SAFETY: the name lives as long as the call, which reads `size` bytes of it.
    let code = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, at, size) };
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Calls wait for [`SLICE`] at most.
///
/// # Errors
/// The socket is gone.
pub fn slice(socket: &Socket) -> io::Result<()> {
    socket.set_read_timeout(Some(SLICE))?;
    socket.set_write_timeout(Some(SLICE))
}

/// A socket for a connection to this address, with the options of a profile.
///
/// # Errors
/// What the kernel refuses.
pub fn outgoing(to: SocketAddr, endpoint: &Endpoint) -> io::Result<Socket> {
    let kind = match endpoint.protocol {
        Protocol::Tcp => Type::STREAM,
        Protocol::Udp => Type::DGRAM,
    };
    let socket = Socket::new(Domain::for_address(to), kind, None)?;
    set(&socket, endpoint)?;
    if let Some(local) = &endpoint.local {
        let none = || io::Error::other(format!("localhost={local} has no address"));
        let mut found = (local.as_str(), 0).to_socket_addrs()?;
        let fits = found.find(|at| at.is_ipv4() == to.is_ipv4()).ok_or_else(none)?;
        socket.bind(&fits.into())?;
    }
    Ok(socket)
}

/// Connects within this time.
///
/// # Errors
/// It is refused or takes longer.
pub fn connect(socket: &Socket, to: SocketAddr, within: Duration) -> io::Result<()> {
    socket.connect_timeout(&SockAddr::from(to), within)
}

/// A listener for both protocols: at one address, or at all.
///
/// # Errors
/// There is no port.
pub fn listen(at: Option<IpAddr>) -> io::Result<(TcpListener, UdpSocket)> {
    let at = match at {
        Some(at) => at,
        // Where there is no IPv6 there is no socket for it.
        None if Socket::new(Domain::IPV6, Type::STREAM, None).is_ok() => {
            Ipv6Addr::UNSPECIFIED.into()
        }
        None => Ipv4Addr::UNSPECIFIED.into(),
    };
    let open = |kind| -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(SocketAddr::new(at, 0)), kind, None)?;
        if at.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        socket.bind(&SocketAddr::new(at, 0).into())?;
        Ok(socket)
    };
    let tcp = open(Type::STREAM)?;
    tcp.listen(BACKLOG)?;
    Ok((tcp.into(), open(Type::DGRAM)?.into()))
}

/// TCP's account of a connection (include/uapi/linux/tcp.h); what an older kernel does not have
/// is 0.
pub fn account(socket: &impl AsRawFd) -> Option<TcpAccount> {
    let info = TcpInfo::of(socket)?;
    let u32_at = |at| info.u32_at(at).unwrap_or(0);
    let u64_at = |at| info.u64_at(at).unwrap_or(0);
    Some(TcpAccount {
        connections: 1,
        rtt_us: u32_at(68),
        retransmits: u32_at(100).into(),
        segments_out: u32_at(136).into(),
        segments_in: u32_at(140).into(),
        min_rtt_us: info.u32_at(148).filter(|rtt| *rtt != u32::MAX).unwrap_or(0),
        busy_us: u64_at(168),
        rwnd_limited_us: u64_at(176),
        sndbuf_limited_us: u64_at(184),
    })
}

/// A file in memory with these bytes, for `sendfile`.
///
/// # Errors
/// There is no memory or descriptor for it.
pub fn memory_file(bytes: &[u8]) -> io::Result<File> {
    use std::io::Write;
    // SAFETY: the name ends with a zero.
    let fd = unsafe { libc::memfd_create(c"plimsoll-net".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given this descriptor to us alone.
    let mut file = unsafe { File::from_raw_fd(fd) };
    file.write_all(bytes)?;
    Ok(file)
}

/// Sends bytes of a file from an offset on; returns how many.
///
/// # Errors
/// The connection is gone, or nothing was sent within the slice of time.
pub fn send_file(to: &impl AsRawFd, file: &File, offset: u64, bytes: usize) -> io::Result<usize> {
    let mut at = offset as libc::off_t;
    // SAFETY: both descriptors are open, and the offset is a valid variable.
    let sent = unsafe { libc::sendfile(to.as_raw_fd(), file.as_raw_fd(), &raw mut at, bytes) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Raises the soft limit on descriptors to the hard one, and returns it. With too few the error of
/// a connection or of a file reports it.
pub fn raise_descriptor_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit, which the kernel fills and then only reads.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
            if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) == 0 {
                return raised.rlim_cur;
            }
        }
    }
    limit.rlim_cur
}
