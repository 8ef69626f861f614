//! The least of an FTP client: a line and its answer, and a data connection.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A control connection.
pub struct Ftp {
    control: BufReader<TcpStream>,
}

impl Ftp {
    /// A connection that has been greeted.
    ///
    /// # Errors
    /// What the kernel says.
    ///
    /// # Panics
    /// When the greeting is another one.
    pub fn connect(at: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(at)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut ftp = Self { control: BufReader::new(stream) };
        assert_eq!(ftp.reply().0, 220);
        Ok(ftp)
    }

    /// The last line of a reply; 0 when the connection has ended.
    ///
    /// # Panics
    /// When it is no reply.
    pub fn reply(&mut self) -> (u16, String) {
        loop {
            let mut line = String::new();
            if self.control.read_line(&mut line).unwrap_or(0) == 0 {
                return (0, String::new());
            }
            match line.as_bytes() {
                [code @ .., _] if code.len() > 3 && code[3] == b' ' => {
                    return (line[..3].parse().expect("a code"), line[4..].to_owned());
                }
                _ => {}
            }
        }
    }

    /// Says a line; the reply.
    pub fn say(&mut self, line: &str) -> (u16, String) {
        // A closed connection is told by the reply.
        let _gone = self.control.get_mut().write_all(format!("{line}\r\n").as_bytes());
        self.reply()
    }

    /// The code at the end of a sign-in.
    ///
    /// # Panics
    /// When no password is asked for.
    pub fn sign_in(&mut self, user: &str, password: &str) -> u16 {
        assert_eq!(self.say(&format!("USER {user}")).0, 331);
        self.say(&format!("PASS {password}")).0
    }

    /// A data connection.
    ///
    /// # Panics
    /// When there is none.
    pub fn data(&mut self) -> TcpStream {
        let (code, text) = self.say("EPSV");
        assert_eq!(code, 229, "{text}");
        let port = text.split('|').nth(3).and_then(|port| port.parse().ok()).expect("a port");
        let host = self.control.get_ref().peer_addr().expect("a peer").ip();
        TcpStream::connect((host, port)).expect("a data connection")
    }

    /// Begins an upload by a line like `STOR NAME`.
    ///
    /// # Errors
    /// The code with which it is refused.
    pub fn begin(&mut self, line: &str) -> Result<TcpStream, u16> {
        let stream = self.data();
        match self.say(line).0 {
            150 | 125 => Ok(stream),
            refused => Err(refused),
        }
    }

    /// An upload by a line like `STOR NAME`; the code at the end.
    ///
    /// # Panics
    /// When the data cannot be sent.
    pub fn upload(&mut self, line: &str, data: &[u8]) -> u16 {
        match self.begin(line) {
            Ok(mut stream) => {
                stream.write_all(data).expect("sent");
                drop(stream);
                self.reply().0
            }
            Err(refused) => refused,
        }
    }

    /// STOR; the code at the end.
    pub fn store(&mut self, path: &str, data: &[u8]) -> u16 {
        self.upload(&format!("STOR {path}"), data)
    }
}
