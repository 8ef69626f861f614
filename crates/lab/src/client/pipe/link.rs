//! The socket of a client: bound to the client's own address, sending what fits without waiting,
//! receiving with a timeout.

use crate::client::{ClientError, Transport};
use base::limits::LAB_SILENCE_MAX;
use base::tcp_info::TcpInfo;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// A connected socket.
pub struct Link {
    socket: TcpStream,
    timeout: Duration,
    /// A timeout that is shorter than what the socket's own can be.
    short: Option<Duration>,
}

/// Timeouts of a socket are whole ticks of the kernel, up to 10 ms; shorter ones are polled for.
const TICK: Duration = Duration::from_millis(10);

impl Link {
    /// Connects to `host:port`, from `bind` if given.
    ///
    /// # Errors
    /// As [`connected`].
    pub fn open(host: &str, port: u16, bind: Option<IpAddr>) -> Result<Self, ClientError> {
        Ok(Self { socket: connected(host, port, bind)?, timeout: Duration::ZERO, short: None })
    }

    /// The socket's descriptor, to be polled together with others.
    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Sends as much as the socket takes now; 0 when it is full.
    pub fn send_some(&self, bytes: &[u8]) -> Result<usize, ClientError> {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: the pointer and length describe `bytes`, which outlives the call.
        let n = unsafe {
            libc::send(self.socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags)
        };
        if n >= 0 {
            return Ok(n as usize);
        }
        let error = std::io::Error::last_os_error();
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(0),
            _ => Err(ClientError::io("send to the server")(error)),
        }
    }

    /// Receives into `space`; 0 when nothing came within the timeout.
    pub fn receive(&self, space: &mut [u8]) -> Result<usize, ClientError> {
        use std::io::Read;
        if self.short.is_some_and(|timeout| !self.is_readable(timeout)) {
            return Ok(0);
        }
        match (&self.socket).read(space) {
            Ok(0) => Err(ClientError::Closed),
            Ok(n) => Ok(n),
            Err(e) => match e.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(0),
                ErrorKind::ConnectionReset => Err(ClientError::Closed),
                _ => Err(ClientError::io("receive from the server")(e)),
            },
        }
    }

    /// How long [`Link::receive`] waits.
    pub fn set_timeout(&mut self, timeout: Duration) -> Result<(), ClientError> {
        self.short = (timeout < TICK).then_some(timeout);
        if self.short.is_some() {
            return Ok(());
        }
        if self.timeout != timeout {
            let set = self.socket.set_read_timeout(Some(timeout));
            set.map_err(ClientError::io("set the timeout of the connection"))?;
            self.timeout = timeout;
        }
        Ok(())
    }

    /// Whether there is something to read within this time.
    fn is_readable(&self, timeout: Duration) -> bool {
        let events = libc::POLLIN;
        let mut poll = libc::pollfd { fd: self.socket.as_raw_fd(), events, revents: 0 };
        let wait = libc::timespec {
            tv_sec: timeout.as_secs() as libc::time_t,
            tv_nsec: timeout.subsec_nanos().into(),
        };
        // SAFETY: one valid pollfd, a valid time, and no signals to mask.
        unsafe { libc::ppoll(&mut poll, 1, &wait, std::ptr::null()) > 0 }
    }

    /// Waits until the socket can be written or read; true when there is something to read.
    pub fn wait_both(&self) -> Result<bool, ClientError> {
        let events = libc::POLLIN | libc::POLLOUT;
        let mut poll = libc::pollfd { fd: self.socket.as_raw_fd(), events, revents: 0 };
        // SAFETY: one valid pollfd.
        match unsafe { libc::poll(&mut poll, 1, LAB_SILENCE_MAX.as_millis() as i32) } {
            0 => Err(ClientError::Silent("a send", LAB_SILENCE_MAX)),
            _ => Ok(poll.revents & libc::POLLIN != 0),
        }
    }

    /// TCP statistics of the connection.
    pub fn transport(&self) -> Option<Transport> {
        let info = TcpInfo::of(&self.socket)?;
        let (u32_at, u64_at) = (|at| info.u32_at(at), |at| info.u64_at(at));
        Some(Transport {
            rtt_us: u32_at(68)?,
            min_rtt_us: u32_at(148).unwrap_or(0),
            busy_us: u64_at(168).unwrap_or(0),
            rwnd_limited_us: u64_at(176).unwrap_or(0),
            sndbuf_limited_us: u64_at(184).unwrap_or(0),
            retransmits: u32_at(100)?,
            segments_out: u32_at(136).unwrap_or(0),
            segments_in: u32_at(140).unwrap_or(0),
            bytes_out: u64_at(200).unwrap_or(0),
            bytes_in: u64_at(128).unwrap_or(0),
            unread_bytes: queue(&self.socket, libc::FIONREAD),
            unsent_bytes: queue(&self.socket, libc::TIOCOUTQ),
        })
    }
}

/// A socket connected to `host:port`, from `bind` if given.
///
/// # Errors
/// [`ClientError::Io`] names the address that failed last.
pub fn connected(host: &str, port: u16, bind: Option<IpAddr>) -> Result<TcpStream, ClientError> {
    let resolve = format!("find the address of {host}");
    let mut last = ClientError::Target(host.to_owned(), "has no address of the right family");
    for address in (host, port).to_socket_addrs().map_err(ClientError::io(resolve))? {
        if bind.is_some_and(|b| b.is_ipv4() != address.is_ipv4()) {
            continue;
        }
        match connect(address, bind) {
            Ok(socket) => return Ok(socket),
            Err(e) => last = ClientError::io(format!("connect to {address}"))(e),
        }
    }
    Err(last)
}

fn connect(address: SocketAddr, bind: Option<IpAddr>) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if let Some(from) = bind {
        socket.bind(&SockAddr::from(SocketAddr::new(from, 0)))?;
    }
    socket.connect_timeout(&SockAddr::from(address), LAB_SILENCE_MAX)?;
    // Calls leave when we say so, and we say so once per batch.
    socket.set_tcp_nodelay(true)?;
    Ok(socket.into())
}

fn queue(socket: &TcpStream, which: libc::c_ulong) -> u32 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: both requests write one int.
    unsafe { libc::ioctl(socket.as_raw_fd(), which as _, &mut bytes) };
    u32::try_from(bytes).unwrap_or(0)
}
