//! A minimal HTTP/1.1 client: requests on one connection, or one on a connection of its own. It
//! sends the caller's requests unchanged.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};

use base::base64;

use crate::tcp::{HERE, connect_from};

/// A connection of a user.
pub struct Http {
    stream: BufReader<TcpStream>,
    /// Fields that every request has.
    own: String,
}

impl Http {
    /// A connection from an address of this machine, for requests with a name and a password.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn connect(from: IpAddr, to: SocketAddr, who: (&str, &str)) -> io::Result<Self> {
        let basic = base64::encode(format!("{}:{}", who.0, who.1).as_bytes());
        let own = format!("host: {to}\r\nauthorization: Basic {basic}\r\n");
        Ok(Self { stream: BufReader::new(connect_from(from, to)?), own })
    }

    /// Sends a request with a target as it is, and with more fields, each of which ends its line;
    /// the status, head and body of the response. The connection stays open.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn ask(
        &mut self,
        (method, target): (&str, &[u8]),
        fields: &[u8],
        body: &[u8],
    ) -> io::Result<(u16, String, Vec<u8>)> {
        self.begin((method, target), fields, body.len(), body)?;
        self.answer(method)
    }

    /// More of the body of a request that was begun.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn send(&mut self, data: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(data)
    }

    /// The answer to a request that was begun: status, head and body.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn answer(&mut self, method: &str) -> io::Result<(u16, String, Vec<u8>)> {
        let (status, head) = self.head()?;
        let mut body = Vec::new();
        if method != "HEAD" && field(&head, "transfer-encoding") == Some("chunked") {
            self.chunks(&mut body)?;
        } else if method != "HEAD" {
            let length = field(&head, "content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
            body.resize(length, 0);
            self.stream.read_exact(&mut body)?;
        }
        Ok((status, head, body))
    }

    /// The head of an answer, with its status; its body comes from [`Http::read`].
    ///
    /// # Errors
    /// The connection has ended.
    pub fn head(&mut self) -> io::Result<(u16, String)> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if self.stream.read_until(b'\n', &mut head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let status = head.get(9..12).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(head.clone()))?;
        Ok((status, head))
    }

    /// The connection itself.
    pub fn stream(&self) -> &TcpStream {
        self.stream.get_ref()
    }

    /// Exactly `count` bytes of the body of a response.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn read(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut data = vec![0; count];
        self.stream.read_exact(&mut data)?;
        Ok(data)
    }

    /// Begins a request: a head that announces `length` bytes, and the first of them.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn begin(
        &mut self,
        (method, target): (&str, &[u8]),
        fields: &[u8],
        length: usize,
        data: &[u8],
    ) -> io::Result<()> {
        let line = [method.as_bytes(), b" ", target, b" HTTP/1.1\r\n"].concat();
        let length = format!("content-length: {length}\r\n\r\n");
        let all = [&line, self.own.as_bytes(), fields, length.as_bytes(), data].concat();
        self.stream.get_mut().write_all(&all)
    }

    fn chunks(&mut self, body: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let length = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
            let at = body.len();
            body.resize(at + length + 2, 0);
            self.stream.read_exact(&mut body[at..])?;
            body.truncate(at + length);
            if length == 0 {
                return Ok(());
            }
        }
    }
}

/// Asks once, on a connection of its own: the status, and head and body as text. `line` is method
/// and target.
///
/// # Panics
/// When there is no answer.
pub fn ask(
    at: SocketAddr,
    who: (&str, &str),
    line: &str,
    fields: &[&str],
    body: &[u8],
) -> (u16, String) {
    let (method, target) = line.split_once(' ').expect("a method and a target");
    let fields = [fields, &["connection: close", ""]].concat().join("\r\n");
    let mut http = Http::connect(HERE, at, who).expect("HTTP");
    let answer = http.ask((method, target.as_bytes()), fields.as_bytes(), body);
    let (status, head, body) = answer.unwrap_or_else(|e| panic!("{line}: {e}"));
    (status, head + &String::from_utf8_lossy(&body))
}

/// A field of a head, by its name in any case.
pub fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let mut found = fields.filter(|(one, _)| one.eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value.trim())
}
