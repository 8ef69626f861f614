//! As much of HTTP/1.1 (RFC 9112) as a client of our own server needs: one request, one answer
//! with a length, in chunks, or until the end.

use std::io::{BufRead, Error, ErrorKind, Read, Result, Write};

use base::limits::{API_HEAD_MAX, CLIENT_ANSWER_MAX};

/// Writes a request.
pub(super) fn write(
    out: &mut dyn Write,
    method: &str,
    path: &str,
    host: &str,
    token: Option<&str>,
    body: Option<(&str, &str)>,
) -> Result<()> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
    if let Some(token) = token {
        head += &format!("authorization: Bearer {token}\r\n");
    }
    if let Some((kind, body)) = body {
        head += &format!("content-type: {kind}\r\ncontent-length: {}\r\n", body.len());
    }
    head += "\r\n";
    out.write_all(head.as_bytes())?;
    out.write_all(body.map_or("", |(_, text)| text).as_bytes())
}

/// Head of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Its status code.
    pub status: u16,
    length: Length,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Fixed(u64),
    Chunks,
    UntilEnd,
}

impl Answer {
    /// Reads status line and headers.
    ///
    /// # Errors
    /// `InvalidData` if it is not HTTP, or larger than [`API_HEAD_MAX`].
    pub fn read_head(stream: &mut impl BufRead) -> Result<Self> {
        let mut head = stream.take(API_HEAD_MAX as u64);
        let status = line(&mut head)?
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.get(..3)?.parse().ok())
            .ok_or_else(|| bad("no HTTP status line"))?;
        let mut length = Length::UntilEnd;
        loop {
            let line = line(&mut head)?;
            if line.is_empty() {
                return Ok(Self { status, length });
            }
            let (name, value) = line.split_once(':').ok_or_else(|| bad("a broken header"))?;
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                let known = value.parse().map_err(|_| bad("a broken content-length"))?;
                length = Length::Fixed(known);
            } else if name.eq_ignore_ascii_case("transfer-encoding") && value == "chunked" {
                length = Length::Chunks;
            }
        }
    }

    /// Reads the whole body, at most [`CLIENT_ANSWER_MAX`].
    ///
    /// # Errors
    /// `UnexpectedEof` if it is cut off, `InvalidData` if it is too long or broken.
    pub fn read_body(self, stream: &mut impl BufRead) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        let mut reader = self.body(stream).take(CLIENT_ANSWER_MAX as u64 + 1);
        reader.read_to_end(&mut body)?;
        if body.len() > CLIENT_ANSWER_MAX {
            return Err(bad("the reply is too long"));
        }
        match self.length {
            Length::Fixed(n) if (body.len() as u64) < n => {
                Err(Error::new(ErrorKind::UnexpectedEof, "the reply is truncated"))
            }
            _ => Ok(body),
        }
    }

    /// The body as a reader.
    pub fn body<'a>(self, stream: &'a mut dyn BufRead) -> Box<dyn Read + 'a> {
        match self.length {
            Length::Fixed(n) => Box::new(stream.take(n)),
            Length::Chunks => Box::new(Chunks { stream, left: 0, ended: false }),
            Length::UntilEnd => Box::new(stream),
        }
    }
}

/// Takes chunks apart (RFC 9112 §7.1).
struct Chunks<'a> {
    stream: &'a mut dyn BufRead,
    left: u64,
    ended: bool,
}

impl Read for Chunks<'_> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        if self.left == 0 && !self.ended {
            let size = line(&mut (&mut *self.stream).take(1024))?;
            let size = size.split(';').next().unwrap_or("").trim();
            self.left = u64::from_str_radix(size, 16).map_err(|_| bad("a broken chunk size"))?;
            self.ended = self.left == 0;
        }
        if self.ended || out.is_empty() {
            return Ok(0);
        }
        let most = out.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let n = self.stream.read(&mut out[..most])?;
        if n == 0 {
            return Err(Error::new(ErrorKind::UnexpectedEof, "a chunk is truncated"));
        }
        self.left -= n as u64;
        if self.left == 0 {
            let mut end = [0; 2];
            self.stream.read_exact(&mut end)?;
            if end != *b"\r\n" {
                return Err(bad("a chunk is longer than its size"));
            }
        }
        Ok(n)
    }
}

fn line(stream: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    match line.strip_suffix('\n') {
        Some(line) => Ok(line.strip_suffix('\r').unwrap_or(line).to_owned()),
        None => Err(Error::new(ErrorKind::UnexpectedEof, "the reply is truncated")),
    }
}

fn bad(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}
