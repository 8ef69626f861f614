//! The connection between a controller and an agent: a socket that the agent inherited from the
//! process that started it, or TCP.
//!
//! A frame begins with a length below [`LAB_MESSAGE_MAX`], so its first byte is 0. A TLS record
//! begins with 22 (RFC 8446 §5.1): a later version can distinguish the two by the first byte.
//!
//! [`LAB_MESSAGE_MAX`]: base::limits::LAB_MESSAGE_MAX

use base::clock::Deadline;
use base::limits::LAB_AGENT_GONE_AFTER;
use socket2::SockRef;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A connection between a controller and an agent.
#[derive(Debug)]
pub enum Connection {
    /// One end of a pair of sockets; no other process has the other end but the one that made it.
    Inherited(UnixStream),
    /// TCP, from any host.
    Tcp(TcpStream),
}

impl Connection {
    /// The socket that this process has as standard input.
    ///
    /// # Errors
    /// It is no connected Unix domain socket.
    pub fn inherited() -> io::Result<Self> {
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        stream.peer_addr()?;
        Ok(Self::Inherited(stream))
    }

    /// A connection over TCP: each message leaves at once, and a peer on a host that has vanished
    /// is noticed.
    ///
    /// # Errors
    /// The socket is gone already.
    pub fn tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        SockRef::from(&stream).set_tcp_user_timeout(Some(LAB_AGENT_GONE_AFTER))?;
        stream.set_write_timeout(Some(LAB_AGENT_GONE_AFTER))?;
        Ok(Self::Tcp(stream))
    }

    /// The same connection once more.
    ///
    /// # Errors
    /// There is no descriptor for it.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Inherited(stream) => Self::Inherited(stream.try_clone()?),
            Self::Tcp(stream) => Self::Tcp(stream.try_clone()?),
        })
    }

    /// Disconnects.
    pub fn shutdown(&self) {
        // One that is disconnected already is as good.
        let _gone = match self {
            Self::Inherited(stream) => stream.shutdown(Shutdown::Both),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    /// How long one read may wait; `None`: without end.
    ///
    /// # Errors
    /// The socket is gone already.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Inherited(stream) => stream.set_read_timeout(timeout),
            Self::Tcp(stream) => stream.set_read_timeout(timeout),
        }
    }

    /// Reads with a deadline for all bytes together, and takes at most `most` of them.
    pub fn until(&mut self, deadline: Deadline, most: usize) -> Until<'_> {
        Until { from: self, deadline, left: most }
    }
}

impl Read for Connection {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Inherited(stream) => stream.read(bytes),
            Self::Tcp(stream) => stream.read(bytes),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Inherited(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection that is read with a deadline.
pub struct Until<'a> {
    from: &'a mut Connection,
    deadline: Deadline,
    left: usize,
}

impl Read for Until<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let wait = self.deadline.left().ok_or(io::ErrorKind::TimedOut)?;
        let room = bytes.len().min(self.left);
        if room == 0 && !bytes.is_empty() {
            return Err(io::Error::other("the first message is too long"));
        }
        self.from.set_read_timeout(Some(wait))?;
        let read = self.from.read(&mut bytes[..room]).map_err(|e| match e.kind() {
            io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
            _ => e,
        })?;
        self.left -= read;
        Ok(read)
    }
}
