//! A minimal FTP client: a line and its reply, and data connections. It sends the caller's lines
//! unchanged.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};

use crate::tcp::connect_from;

/// A control connection.
pub struct Ftp {
    control: BufReader<TcpStream>,
}

impl Ftp {
    /// A connection from an address of this machine, greeted.
    ///
    /// # Errors
    /// No connection, or another greeting.
    pub fn connect(from: IpAddr, to: SocketAddr) -> io::Result<Self> {
        let mut ftp = Self { control: BufReader::new(connect_from(from, to)?) };
        match ftp.reply()? {
            (220, _) => Ok(ftp),
            other => Err(unexpected(other)),
        }
    }

    /// The last line of a reply: its code, and what follows that.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn reply(&mut self) -> io::Result<(u16, String)> {
        loop {
            let mut line = Vec::new();
            if self.control.read_until(b'\n', &mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let line = String::from_utf8_lossy(&line);
            let (code, rest) = line.split_at_checked(3).unwrap_or_default();
            if let (Ok(code), Some(text)) = (code.parse(), rest.strip_prefix(' ')) {
                return Ok((code, text.trim_end().to_owned()));
            }
        }
    }

    /// Sends bytes as they are, and waits for no reply.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.control.get_mut().write_all(bytes)
    }

    /// Sends a command and takes its reply.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn say(&mut self, line: impl AsRef<[u8]>) -> io::Result<(u16, String)> {
        self.control.get_mut().write_all(&[line.as_ref(), b"\r\n"].concat())?;
        self.reply()
    }

    /// The code of the reply to a command; 0 when the connection has ended.
    pub fn code(&mut self, line: impl AsRef<[u8]>) -> u16 {
        self.say(line).map_or(0, |reply| reply.0)
    }

    /// Signs in: the code of the last reply.
    ///
    /// # Errors
    /// The connection has ended, or no password is asked for.
    pub fn sign_in(&mut self, user: &str, password: &str) -> io::Result<u16> {
        match self.say(format!("USER {user}"))? {
            (331, _) => Ok(self.say(format!("PASS {password}"))?.0),
            other => Err(unexpected(other)),
        }
    }

    /// A data connection, as EPSV (RFC 2428 §3) gives one.
    ///
    /// # Errors
    /// There is none.
    pub fn passive(&mut self) -> io::Result<TcpStream> {
        let (code, text) = self.say("EPSV")?;
        let port = text.split('|').nth(3).and_then(|port| port.parse().ok());
        let (229, Some(port)) = (code, port) else { return Err(unexpected((code, text))) };
        let control = self.control.get_ref();
        let host = control.peer_addr()?.ip();
        connect_from(control.local_addr()?.ip(), SocketAddr::new(host, port))
    }

    /// Begins a command that has data: its connection, or the code with which it is refused.
    ///
    /// # Errors
    /// A connection has ended.
    pub fn begin(&mut self, line: impl AsRef<[u8]>) -> io::Result<Result<TcpStream, u16>> {
        let stream = self.passive()?;
        Ok(match self.say(line)?.0 {
            125 | 150 => Ok(stream),
            refused => Err(refused),
        })
    }

    /// A command that has data: sends `up`, or takes what comes. The code at its end, and what
    /// came.
    ///
    /// # Errors
    /// A connection has ended.
    pub fn data(
        &mut self,
        line: impl AsRef<[u8]>,
        up: Option<&[u8]>,
    ) -> io::Result<(u16, Vec<u8>)> {
        let mut came = Vec::new();
        let mut stream = match self.begin(line)? {
            Ok(stream) => stream,
            Err(refused) => return Ok((refused, came)),
        };
        match up {
            Some(up) => stream.write_all(up)?,
            None => drop(stream.read_to_end(&mut came)?),
        }
        drop(stream);
        Ok((self.reply()?.0, came))
    }
}

/// An unexpected reply.
fn unexpected((code, text): (u16, String)) -> io::Error {
    io::Error::other(format!("{code} {text}"))
}
