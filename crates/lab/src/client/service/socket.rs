//! A connection to a service, with or without TLS, and how fast it gives up.

use super::tls::Tls;
use crate::client::ClientError;
use crate::client::pipe::link::connected;
use base::limits::{LAB_SILENCE_MAX, LAB_STREAM_BUFFER};
use rustls::{ClientConnection, StreamOwned};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};

/// A connected socket. TLS reads from a buffer, because it reads in small pieces.
pub struct Wire {
    socket: TcpStream,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
}

impl Wire {
    fn new(socket: TcpStream) -> Self {
        Self { socket, buffer: vec![0; LAB_STREAM_BUFFER], at: 0, end: 0 }
    }
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.end {
            (self.at, self.end) = (0, self.socket.read(&mut self.buffer)?);
        }
        let held = self.buffer.get(self.at..self.end).unwrap_or_default();
        let n = held.len().min(into.len());
        into[..n].copy_from_slice(&held[..n]);
        self.at += n;
        Ok(n)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.socket.write(bytes)
    }

    fn write_vectored(&mut self, parts: &[std::io::IoSlice<'_>]) -> std::io::Result<usize> {
        self.socket.write_vectored(parts)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Bytes to and from a server.
pub enum Stream {
    /// As they are.
    Plain(TcpStream),
    /// Under TLS.
    Tls(Box<StreamOwned<ClientConnection, Wire>>),
}

impl Stream {
    /// Connects to `host:port`, from `bind` if given. Its timeout is [`LAB_SILENCE_MAX`].
    ///
    /// # Errors
    /// [`ClientError::Io`] names the address that failed last.
    pub fn connect(host: &str, port: u16, bind: Option<IpAddr>) -> Result<TcpStream, ClientError> {
        let socket = connected(host, port, bind)?;
        let limit = || ClientError::io("set the timeouts of the connection");
        socket.set_read_timeout(Some(LAB_SILENCE_MAX)).map_err(limit())?;
        socket.set_write_timeout(Some(LAB_SILENCE_MAX)).map_err(limit())?;
        Ok(socket)
    }

    /// Shakes hands on a connection.
    ///
    /// # Errors
    /// The two have no protocol in common, or the server is not the one expected.
    pub fn secured(socket: TcpStream, tls: &Tls) -> Result<Self, ClientError> {
        let mut connection = tls.begin()?;
        connection.set_buffer_limit(Some(LAB_STREAM_BUFFER));
        let mut wire = Wire::new(socket);
        while connection.is_handshaking() {
            let done = connection.complete_io(&mut wire);
            done.map_err(ClientError::io("shake hands under TLS"))?;
        }
        Ok(Self::Tls(Box::new(StreamOwned::new(connection, wire))))
    }

    /// The socket.
    pub fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => &stream.sock.socket,
        }
    }

    /// What was agreed on, as `TLS 1.3 AES_128_GCM_SHA256`; nothing without TLS.
    pub fn cipher(&self) -> Option<String> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(stream) => super::tls::agreed(&stream.conn),
        }
    }

    /// Ends the sending side; what is in flight still arrives.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn finish(&mut self) -> std::io::Result<()> {
        if let Self::Tls(stream) = self {
            stream.conn.send_close_notify();
            while stream.conn.wants_write() {
                stream.conn.write_tls(&mut stream.sock)?;
            }
        }
        match self.socket().shutdown(Shutdown::Write) {
            // Gone already, by the other side.
            Err(e) if e.kind() == ErrorKind::NotConnected => Ok(()),
            done => done,
        }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(into),
            Self::Tls(stream) => match stream.read(into) {
                // Servers of FTP end data without close_notify under TLS; sizes show what is
                // missing.
                Err(e) if e.kind() == ErrorKind::UnexpectedEof => Ok(0),
                read => read,
            },
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
