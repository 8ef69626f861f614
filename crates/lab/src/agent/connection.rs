//! The connection between a controller and an agent: a socket that the agent inherited from the
//! process that started it, or TLS over TCP.
//!
//! Over TCP the first byte is 22, that of a TLS record (RFC 8446 §5.1). Versions before TLS began
//! with the length of a message, of which the first byte is 0: so they are recognised.

use super::tls::Channel;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

/// A connection between a controller and an agent.
#[derive(Debug, Clone)]
pub enum Connection {
    /// One end of a pair of sockets; no other process has the other end but the one that made it.
    Inherited(Arc<UnixStream>),
    /// TLS, from any host.
    Tls(Arc<Channel>),
}

impl Connection {
    /// The socket that this process has as standard input.
    ///
    /// # Errors
    /// It is no connected Unix domain socket.
    pub fn inherited() -> io::Result<Self> {
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        stream.peer_addr()?;
        Ok(Self::pair(stream))
    }

    /// One end of a pair of sockets.
    pub fn pair(stream: UnixStream) -> Self {
        Self::Inherited(Arc::new(stream))
    }

    /// Over TLS.
    pub fn tls(channel: Channel) -> Self {
        Self::Tls(Arc::new(channel))
    }

    /// Disconnects.
    pub fn shutdown(&self) {
        match self {
            // One that is disconnected already is as good.
            Self::Inherited(stream) => drop(stream.shutdown(Shutdown::Both)),
            Self::Tls(channel) => channel.shutdown(),
        }
    }

    /// How long one read may wait; `None`: without end.
    ///
    /// # Errors
    /// The socket is gone already.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Inherited(stream) => stream.set_read_timeout(timeout),
            Self::Tls(channel) => channel.set_read_timeout(timeout),
        }
    }
}

impl Read for Connection {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Inherited(stream) => (&**stream).read(bytes),
            Self::Tls(channel) => (&**channel).read(bytes),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Inherited(stream) => (&**stream).write(bytes),
            Self::Tls(channel) => (&**channel).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
