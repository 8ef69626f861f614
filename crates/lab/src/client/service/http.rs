//! HTTP/1.1 (RFC 9110, 9112) and the part of WebDAV (RFC 4918) that folders need: one connection
//! that is kept, one request at a time.
//!
//! With `http:`, sizes are requested by HEAD; with `webdav:`, by PROPFIND. Folders are made by
//! MKCOL in either case; on a server without MKCOL they must exist.

mod head;

use super::at::{Scheme, ServiceAt, decoded, encoded};
use super::socket::Stream;
use super::tls::Tls;
use super::{Failure, Session};
use crate::client::ClientError;
use base::limits::{LAB_HTTP_HEAD_MAX, LAB_LIST_MAX, LAB_STREAM_BUFFER};
use head::{Head, Length};
use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};

const PROPFIND: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
    <propfind xmlns=\"DAV:\"><prop><getcontentlength/><resourcetype/></prop></propfind>";
/// Bytes of an unwanted response body are received up to this limit: more is a new connection.
const REST_MAX: u64 = 64 << 10;

/// How much of the body of the answer is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    None,
    Bytes(u64),
    /// Within a chunk: the bytes of it that are left, and the line end behind them.
    Chunk(u64),
    /// The line with the size of the next chunk.
    ChunkLine,
    ToEnd,
}

/// A connection to a server, reconnected when it has ended.
pub struct HttpSession {
    at: ServiceAt,
    bind: Option<IpAddr>,
    tls: Option<Tls>,
    stream: Option<Stream>,
    /// What is the same in every request.
    common: String,
    /// Received and not taken: `held[taken..filled]`.
    held: Vec<u8>,
    taken: usize,
    filled: usize,
    body: Body,
    /// The server ends the connection behind this body.
    closes: bool,
    /// Bytes of the file that is written that must still be sent.
    to_send: u64,
    /// Answers on this connection so far.
    answers: u64,
    cipher: Option<String>,
}

impl HttpSession {
    /// Connects, and looks whether the folder may be seen.
    ///
    /// # Errors
    /// The server cannot be reached, is not the one expected, or does not let the user in.
    pub fn open(at: &ServiceAt, bind: Option<IpAddr>) -> Result<Self, ClientError> {
        let secure = matches!(at.scheme, Scheme::Https | Scheme::Webdavs);
        let tls = if secure { Some(Tls::new(&at.host, &at.terms)?) } else { None };
        let host = if at.host.contains(':') { format!("[{}]", at.host) } else { at.host.clone() };
        let mut common = format!("Host: {host}:{}\r\nUser-Agent: plimsoll-lab\r\n", at.port);
        if let Some(user) = &at.user {
            let words = format!("{user}:{}", at.secret.read()?);
            let words = base::base64::encode(words.as_bytes());
            common += &format!("Authorization: Basic {words}\r\n");
        }
        let mut it = Self {
            at: at.clone(),
            bind,
            tls,
            stream: None,
            common,
            held: vec![0; LAB_STREAM_BUFFER],
            taken: 0,
            filled: 0,
            body: Body::None,
            closes: false,
            to_send: 0,
            answers: 0,
            cipher: None,
        };
        it.connect()?;
        let head = it.ask("OPTIONS", &at.path, "", b"")?;
        it.drain()?;
        match (head.status, &head.location) {
            // Servers that only give files know nothing of OPTIONS.
            (401 | 403, _) => Err(refused("sign in", &head).into()),
            // Followed, it would be another target: one with TLS.
            (300..=399, Some(to)) if !secure && to.starts_with("https://") => {
                let what = format!("use HTTP without TLS ({} to {to})", head.status);
                Err(ClientError::Required { what, needs: "HTTPS" })
            }
            _ => Ok(it),
        }
    }

    fn connect(&mut self) -> Result<(), Failure> {
        let socket = Stream::connect(&self.at.host, self.at.port, self.bind)?;
        let stream = match &self.tls {
            Some(tls) => Stream::secured(socket, tls)?,
            None => Stream::Plain(socket),
        };
        self.cipher = stream.cipher();
        self.stream = Some(stream);
        (self.taken, self.filled, self.body, self.answers) = (0, 0, Body::None, 0);
        Ok(())
    }

    fn stream(&mut self) -> Result<&mut Stream, Failure> {
        self.stream.as_mut().ok_or_else(|| ClientError::Closed.into())
    }

    /// Sends the head of a request, and `body` right behind it.
    fn send(&mut self, method: &str, path: &str, fields: &str, body: &[u8]) -> Result<(), Failure> {
        if self.stream.is_none() {
            self.connect()?;
        }
        let path = if path.is_empty() { "/".to_owned() } else { encoded(path, true) };
        let head = format!("{method} {path} HTTP/1.1\r\n{}{fields}\r\n", self.common);
        let request = [head.as_bytes(), body].concat();
        let stream = self.stream()?;
        let sent = stream.write_all(&request).and_then(|()| stream.flush());
        sent.map_err(Failure::io("send a request"))
    }

    /// Sends a request; the response's body is still to be read. A connection that the server has
    /// ended in the meantime is reconnected, once.
    fn ask(
        &mut self,
        method: &str,
        path: &str,
        fields: &str,
        body: &[u8],
    ) -> Result<Head, Failure> {
        let kept = self.answers > 0;
        let asked =
            self.send(method, path, fields, body).and_then(|()| self.receive(method == "HEAD"));
        match asked {
            Err(Failure::Broken(ClientError::Closed)) if kept => {
                self.stream = None;
                self.send(method, path, fields, body)?;
                self.receive(method == "HEAD")
            }
            asked => asked,
        }
    }

    /// The head of an answer.
    fn receive(&mut self, without_body: bool) -> Result<Head, Failure> {
        loop {
            let held = self.held.get(self.taken..self.filled).unwrap_or_default();
            let read = Head::decode(held);
            let read = read.map_err(|why| ClientError::Protocol(format!("HTTP: {why}")))?;
            let Some((head, consumed)) = read else {
                if held.len() >= LAB_HTTP_HEAD_MAX {
                    return Err(ClientError::Protocol("HTTP: a head without end".into()).into());
                }
                if self.fill()? == 0 {
                    return Err(ClientError::Closed.into());
                }
                continue;
            };
            self.taken += consumed;
            if (100..200).contains(&head.status) {
                continue;
            }
            self.answers += 1;
            self.body = match head.length {
                _ if without_body || matches!(head.status, 204 | 304) => Body::None,
                Length::Bytes(0) => Body::None,
                Length::Bytes(n) => Body::Bytes(n),
                Length::Chunked => Body::ChunkLine,
                Length::ToEnd => Body::ToEnd,
            };
            self.closes = head.closes;
            self.ended();
            return Ok(head);
        }
    }

    /// Lets the connection go that the server ends behind the body.
    fn ended(&mut self) {
        if self.closes && self.body == Body::None {
            self.stream = None;
        }
    }

    /// Receives more behind what is held.
    fn fill(&mut self) -> Result<usize, Failure> {
        self.held.copy_within(self.taken..self.filled, 0);
        (self.filled, self.taken) = (self.filled - self.taken, 0);
        let Self { stream, held, filled, .. } = self;
        let Some(stream) = stream else { return Ok(0) };
        let n = stream.read(&mut held[*filled..]).map_err(Failure::io("wait for a reply"))?;
        *filled += n;
        Ok(n)
    }

    /// Bytes as they come, out of what is held, else from the connection.
    fn take(&mut self, into: &mut [u8]) -> Result<usize, Failure> {
        if self.taken == self.filled {
            let stream = self.stream()?;
            return stream.read(into).map_err(Failure::io("read a file"));
        }
        let held = self.held.get(self.taken..self.filled).unwrap_or_default();
        let n = held.len().min(into.len());
        into[..n].copy_from_slice(&held[..n]);
        self.taken += n;
        Ok(n)
    }

    /// The next bytes of the body; 0 at its end.
    fn read_body(&mut self, into: &mut [u8]) -> Result<usize, Failure> {
        loop {
            let most = match self.body {
                Body::None => return Ok(0),
                Body::ToEnd => into.len(),
                Body::Bytes(n) | Body::Chunk(n) => into.len().min(usize::try_from(n).unwrap_or(0)),
                Body::ChunkLine => {
                    self.next_chunk()?;
                    continue;
                }
            };
            let n = self.take(&mut into[..most])?;
            self.body = match self.body {
                Body::ToEnd if n == 0 => {
                    self.closes = true;
                    Body::None
                }
                _ if n == 0 => return Err(ClientError::Closed.into()),
                Body::Bytes(left) if left == n as u64 => Body::None,
                Body::Bytes(left) => Body::Bytes(left - n as u64),
                Body::Chunk(left) if left == n as u64 => {
                    self.line()?;
                    Body::ChunkLine
                }
                Body::Chunk(left) => Body::Chunk(left - n as u64),
                other => other,
            };
            self.ended();
            return Ok(n);
        }
    }

    /// The size of the next chunk; behind the last one, the trailer (RFC 9112 §7.1).
    fn next_chunk(&mut self) -> Result<(), Failure> {
        let line = self.line()?;
        let digits = line.split(';').next().unwrap_or_default().trim().to_owned();
        let wrong = || ClientError::Protocol("HTTP: a chunk without a size".into());
        let size = u64::from_str_radix(&digits, 16).map_err(|_| wrong())?;
        self.body = Body::Chunk(size);
        if size == 0 {
            while !self.line()?.is_empty() {}
            self.body = Body::None;
            self.ended();
        }
        Ok(())
    }

    fn line(&mut self) -> Result<String, Failure> {
        loop {
            let held = self.held.get(self.taken..self.filled).unwrap_or_default();
            if let Some(at) = held.iter().position(|b| *b == b'\n') {
                let line = String::from_utf8_lossy(held.get(..at).unwrap_or_default());
                let line = line.trim_end_matches('\r').to_owned();
                self.taken += at + 1;
                return Ok(line);
            }
            if held.len() >= LAB_HTTP_HEAD_MAX || self.fill()? == 0 {
                return Err(ClientError::Closed.into());
            }
        }
    }

    /// Reads what is left of a body, or gives the connection up for it.
    fn drain(&mut self) -> Result<(), Failure> {
        let (mut rest, mut seen) = (vec![0; 16 << 10], 0);
        while self.body != Body::None {
            let ahead = match self.body {
                Body::Bytes(n) => n,
                _ => 0,
            };
            if seen + ahead > REST_MAX {
                self.stream = None;
                self.body = Body::None;
                break;
            }
            seen += self.read_body(&mut rest)? as u64;
        }
        Ok(())
    }

    /// Sends a request and discards the body of the response.
    fn plainly(&mut self, method: &str, path: &str) -> Result<Head, Failure> {
        let head = self.ask(method, path, "Content-Length: 0\r\n", b"")?;
        self.drain()?;
        Ok(head)
    }

    /// The answer to PROPFIND; `None` if there is no such thing.
    fn properties(&mut self, path: &str, depth: u8) -> Result<Option<String>, Failure> {
        let fields = format!(
            "Depth: {depth}\r\nContent-Type: application/xml\r\nContent-Length: {}\r\n",
            PROPFIND.len()
        );
        let head = self.ask("PROPFIND", path, &fields, PROPFIND.as_bytes())?;
        if head.status != 207 {
            self.drain()?;
            return match head.status {
                404 => Ok(None),
                _ => Err(refused("ask for properties", &head)),
            };
        }
        let (mut text, mut part) = (Vec::new(), vec![0; 16 << 10]);
        loop {
            match self.read_body(&mut part)? {
                0 => break,
                n => text.extend_from_slice(&part[..n]),
            }
            if text.len() > LAB_LIST_MAX {
                return Err(ClientError::Protocol("HTTP: a list without end".into()).into());
            }
        }
        Ok(Some(String::from_utf8_lossy(&text).into_owned()))
    }
}

fn refused(what: &str, head: &Head) -> Failure {
    Failure::Answer { what: what.to_owned(), code: head.status.into(), text: head.reason.clone() }
}

/// What stands in elements of this name, whatever their prefix.
fn elements<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    text.split('<').filter_map(move |part| {
        let (tag, inside) = part.split_once('>')?;
        let tag = tag.split_whitespace().next()?;
        let local = tag.rsplit(':').next()?;
        (local == name && !tag.starts_with('/')).then_some(inside.trim())
    })
}

impl Session for HttpSession {
    fn null(&mut self) -> Result<(), Failure> {
        let path = self.at.path.clone();
        self.plainly("OPTIONS", &path).map(drop)
    }

    fn size(&mut self, path: &str) -> Result<Option<u64>, Failure> {
        let webdav = matches!(self.at.scheme, Scheme::Webdav | Scheme::Webdavs);
        if webdav {
            let Some(text) = self.properties(path, 0)? else { return Ok(None) };
            let size = elements(&text, "getcontentlength").next().and_then(|n| n.parse().ok());
            let none = || ClientError::Protocol("HTTP: a file without getcontentlength".into());
            return Ok(Some(size.ok_or_else(none)?));
        }
        let head = self.ask("HEAD", path, "", b"")?;
        match (head.status, head.length) {
            (200, Length::Bytes(n)) => Ok(Some(n)),
            (404, _) => Ok(None),
            _ => Err(refused("look at a file", &head)),
        }
    }

    fn make_folder(&mut self, path: &str, new: bool) -> Result<(), Failure> {
        // With the slash of a folder: some servers insist on it.
        let head = self.plainly("MKCOL", &format!("{path}/"))?;
        match head.status {
            200..=299 => Ok(()),
            // Is there, or cannot be made so: then it must be there already.
            405 | 501 if !new => Ok(()),
            _ => Err(refused("make a folder", &head)),
        }
    }

    fn remove(&mut self, path: &str, folder: bool) -> Result<(), Failure> {
        let slash = if folder { "/" } else { "" };
        let head = self.plainly("DELETE", &format!("{path}{slash}"))?;
        match head.status {
            200..=299 | 404 => Ok(()),
            _ => Err(refused("remove", &head)),
        }
    }

    fn names(&mut self, path: &str) -> Result<Option<Vec<String>>, Failure> {
        let Some(text) = self.properties(&format!("{path}/"), 1)? else { return Ok(None) };
        let own = path.trim_end_matches('/');
        let names = elements(&text, "href").filter_map(|href| {
            let path = href.split_once("://").map_or(href, |(_, rest)| {
                rest.find('/').map_or("/", |at| rest.get(at..).unwrap_or_default())
            });
            let path = decoded(&path.replace("&amp;", "&")).ok()?;
            let name = path.trim_end_matches('/').strip_prefix(own)?.trim_start_matches('/');
            (!name.is_empty() && !name.contains('/')).then(|| name.to_owned())
        });
        Ok(Some(names.collect()))
    }

    fn open_read(&mut self, path: &str, offset: u64, len: Option<u64>) -> Result<(), Failure> {
        let fields = match len {
            Some(len) => format!("Range: bytes={offset}-{}\r\n", (offset + len).saturating_sub(1)),
            None if offset > 0 => format!("Range: bytes={offset}-\r\n"),
            None => String::new(),
        };
        let head = self.ask("GET", path, &fields, b"")?;
        match (head.status, fields.is_empty()) {
            (200, true) | (206, false) => Ok(()),
            (200, false) => {
                self.drain()?;
                Err(refused("read a part of a file: the server does not support ranges", &head))
            }
            _ => {
                self.drain()?;
                Err(refused("read a file", &head))
            }
        }
    }

    fn read(&mut self, into: &mut [u8]) -> Result<usize, Failure> {
        self.read_body(into)
    }

    fn close_read(&mut self) -> Result<(), Failure> {
        self.drain()
    }

    fn open_write(&mut self, path: &str, size: u64) -> Result<(), Failure> {
        let kept = self.answers > 0;
        let fields = format!("Content-Length: {size}\r\n");
        let sent = self.send("PUT", path, &fields, b"");
        match sent {
            Err(Failure::Broken(ClientError::Closed)) if kept => {
                self.stream = None;
                self.send("PUT", path, &fields, b"")?;
            }
            sent => sent?,
        }
        self.to_send = size;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let left = self.to_send.checked_sub(bytes.len() as u64);
        self.to_send =
            left.ok_or_else(|| ClientError::Protocol("more than was announced".into()))?;
        let sent = self.stream()?.write_all(bytes);
        if let Err(error) = sent {
            // A server that refuses an upload sends the reason before it closes.
            let refusal = self.receive(false).map(|head| refused("write a file", &head));
            self.stream = None;
            return Err(refusal.unwrap_or_else(|_| Failure::io("write a file")(error)));
        }
        Ok(())
    }

    fn close_write(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.to_send) > 0 {
            // A file that was not sent whole: the server must not keep it.
            self.stream = None;
            return Ok(());
        }
        self.stream()?.flush().map_err(Failure::io("write a file"))?;
        let head = self.receive(false)?;
        self.drain()?;
        match head.status {
            200..=299 => Ok(()),
            _ => Err(refused("write a file", &head)),
        }
    }

    fn socket(&self) -> Option<&TcpStream> {
        self.stream.as_ref().map(Stream::socket)
    }

    fn cipher(&self) -> Option<String> {
        self.cipher.clone()
    }
}
