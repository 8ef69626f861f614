//! A server with a share that FTP, SFTP and HTTP reach alike, and small clients of FTP and HTTP
//! that send what they are told.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::api::Api;
use crate::scene;
use crate::scratch::Scratch;
use crate::server::Server;
use crate::sftp::{Sftp, connect_from};

/// The node of FTP.
pub const FTP: &str = "/configuration/services/ftp";
/// The node of HTTP.
pub const HTTP: &str = "/configuration/services/http";
/// Anna's password.
pub const PASSWORD: &str = "correct-horse";
/// `anna:correct-horse` for HTTP.
const BASIC: &str = "authorization: Basic YW5uYTpjb3JyZWN0LWhvcnNl\r\n";
/// This machine.
pub const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// An address of this machine, by its last number.
pub fn address(n: u8) -> IpAddr {
    IpAddr::from([127, 0, 0, n])
}

/// A server with the share `box` and its user anna.
pub struct Scene {
    /// The server.
    pub server: Server,
    /// Its administration.
    pub api: Api,
    /// The directory in which that of the share is.
    pub dir: PathBuf,
    _scratch: Scratch,
}

impl Scene {
    /// Makes it, with plain HTTP.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn new(name: &str) -> Self {
        // In memory: what is asked here is not how fast the disk is.
        let scratch = Scratch::below(Path::new("/dev/shm"), name);
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        let scene = scene::Scene { scratch, dir, state };
        let plain = json!({"set": HTTP, "property": "plain", "value": "serve"});
        let basic = json!({"set": HTTP, "property": "basic_over_plain", "value": true});
        let (server, api) = scene.start_for_anna(PASSWORD, &[plain, basic]);
        Self { server, api, dir: scene.dir, _scratch: scene.scratch }
    }

    /// Changes the configuration.
    ///
    /// # Panics
    /// When it is refused.
    pub fn change(&self, changes: &Value) {
        let (code, done) = self.api.post("/api/v1/changes", &json!({ "changes": changes }));
        assert_eq!(code, 200, "{done}");
    }

    /// FTP from an address, greeted.
    ///
    /// # Errors
    /// No connection, or another greeting.
    pub fn ftp(&self, from: IpAddr) -> io::Result<Ftp> {
        let stream = connect_from(from, self.server.at(21))?;
        let mut ftp = Ftp { control: BufReader::new(stream) };
        match ftp.reply()? {
            (220, _) => Ok(ftp),
            (code, text) => Err(io::Error::other(format!("{code} {text}"))),
        }
    }

    /// SFTP from an address, for anna with a password.
    ///
    /// # Errors
    /// She is not let in.
    pub fn sftp(&self, from: IpAddr, password: &str) -> io::Result<Sftp> {
        Sftp::sign_in(connect_from(from, self.server.at(218))?, "anna", password)?.begin()
    }

    /// A connection of HTTP from an address.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn http(&self, from: IpAddr) -> io::Result<Http> {
        connect_from(from, self.server.at(80)).map(|stream| Http(BufReader::new(stream)))
    }
}

/// A control connection of FTP.
pub struct Ftp {
    control: BufReader<TcpStream>,
}

impl Ftp {
    /// The last line of a reply.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn reply(&mut self) -> io::Result<(u16, String)> {
        loop {
            let mut line = Vec::new();
            if self.control.read_until(b'\n', &mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let text = String::from_utf8_lossy(&line).into_owned();
            if let (Some(Ok(code)), Some(" ")) = (text.get(..3).map(str::parse), text.get(3..4)) {
                return Ok((code, text));
            }
        }
    }

    /// Sends a command and takes its reply.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn say(&mut self, line: impl AsRef<[u8]>) -> io::Result<(u16, String)> {
        self.control.get_mut().write_all(&[line.as_ref(), b"\r\n"].concat())?;
        self.reply()
    }

    /// Signs in: the code of the last reply.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn sign_in(&mut self, user: &str, password: &str) -> io::Result<u16> {
        self.say(format!("USER {user}"))?;
        Ok(self.say(format!("PASS {password}"))?.0)
    }

    /// Data of a command that has some: sends `up`, or takes what comes. Nothing if it is refused.
    ///
    /// # Errors
    /// A connection has ended.
    pub fn data(&mut self, line: &[u8], up: Option<&[u8]>) -> io::Result<Option<Vec<u8>>> {
        let (_, text) = self.say("EPSV")?;
        let port = text.split('|').nth(3).and_then(|port| port.parse().ok());
        let port: u16 = port.ok_or_else(|| io::Error::other(text))?;
        let host = self.control.get_ref().peer_addr()?.ip();
        let from = self.control.get_ref().local_addr()?.ip();
        let mut data = connect_from(from, (host, port).into())?;
        if self.say(line)?.0 / 100 != 1 {
            return Ok(None);
        }
        let mut came = Vec::new();
        match up {
            Some(up) => data.write_all(up)?,
            None => drop(data.read_to_end(&mut came)?),
        }
        drop(data);
        Ok((self.reply()?.0 / 100 == 2).then_some(came))
    }
}

/// A connection of HTTP/1.1.
pub struct Http(BufReader<TcpStream>);

impl Http {
    /// A request of anna with a target as it is; status, head and body. The connection goes on.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn ask(
        &mut self,
        (method, target): (&str, &[u8]),
        fields: &[u8],
        body: &[u8],
    ) -> io::Result<(u16, String, Vec<u8>)> {
        let fields = [BASIC.as_bytes(), fields].concat();
        self.ask_with((method, target), &fields, body)
    }

    /// As [`Http::ask`], of nobody.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn ask_with(
        &mut self,
        (method, target): (&str, &[u8]),
        fields: &[u8],
        body: &[u8],
    ) -> io::Result<(u16, String, Vec<u8>)> {
        let length = format!("content-length: {}\r\n\r\n", body.len());
        let line = [method.as_bytes(), b" ", target, b" HTTP/1.1\r\nhost: h\r\n"].concat();
        let all = [&line, fields, length.as_bytes(), body].concat();
        self.0.get_mut().write_all(&all)?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if self.0.read_until(b'\n', &mut head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let status = head.get(9..12).and_then(|code| code.parse().ok());
        let status: u16 = status.ok_or_else(|| io::Error::other(head.clone()))?;
        let mut body = Vec::new();
        if method != "HEAD" && head.contains("transfer-encoding: chunked") {
            self.chunks(&mut body)?;
        } else if method != "HEAD" {
            let length = field(&head, "content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
            body.resize(length, 0);
            self.0.read_exact(&mut body)?;
        }
        Ok((status, head, body))
    }

    fn chunks(&mut self, body: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line)?;
            let length = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
            let at = body.len();
            body.resize(at + length + 2, 0);
            self.0.read_exact(&mut body[at..])?;
            body.truncate(at + length);
            if length == 0 {
                return Ok(());
            }
        }
    }
}

/// A field of a head in lower case.
pub fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
}
