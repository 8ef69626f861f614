//! The head of an HTTP/1.1 request, pure: from bytes to method, target, fields and framing.
//!
//! What two readers could understand differently is refused, so that no request can hide in
//! another (RFC 9112 §11.2): a length together with chunks, two lengths, folded lines, white space
//! before a colon, a line end without its carriage return.

use base::limits::{HTTP_HEAD_MAX, HTTP_HEADERS_MAX};

use super::fields::{Headers, Method};
use super::target::{Target, TargetError, authority};

/// How the end of a body is found (RFC 9112 §6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// After this many bytes; 0 when there is no body.
    Length(u64),
    /// It comes in chunks.
    Chunked,
}

/// A request but for its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Its method.
    pub method: Method,
    /// What it is about.
    pub target: Target,
    /// Host and port as the client calls us; empty in HTTP/1.0 without them.
    pub host: String,
    /// Its fields.
    pub headers: Headers,
    /// Its body.
    pub framing: Framing,
    /// Whether the client knows HTTP/1.1: chunks, and answers on the way.
    pub modern: bool,
    /// Whether the connection continues after it.
    pub keep_alive: bool,
    /// Whether the client waits for 100 (Continue) before it sends the body (RFC 9110 §10.1.1).
    pub expects: bool,
}

/// What is wrong with a head: the peer's fault. Nothing after it can be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// It is longer than [`HTTP_HEAD_MAX`], or has too many fields.
    #[error("the header is too large")]
    TooLarge,
    /// It is not HTTP.
    #[error("not a request of HTTP/1")]
    Malformed,
    /// Another version.
    #[error("only HTTP/1.0 and HTTP/1.1 are supported")]
    Version,
    /// Its target is invalid.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// It lacks the host, or has it twice.
    #[error("a request needs exactly one Host header")]
    Host,
    /// The end of its body is ambiguous.
    #[error("the length of the body is ambiguous")]
    Framing,
    /// Its body has an unknown transfer coding.
    #[error("the transfer coding is not known")]
    Coding,
    /// It has an unknown expectation.
    #[error("the expectation is not known")]
    Expectation,
}

impl HeadError {
    /// The status of the response.
    pub fn status(self) -> u16 {
        match self {
            Self::TooLarge => 431,
            Self::Target(TargetError::TooLong) => 414,
            Self::Version => 505,
            Self::Coding => 501,
            Self::Expectation => 417,
            _ => 400,
        }
    }
}

/// How many bytes of `bytes` are a head, with the empty line at its end; `None` when it is
/// incomplete. `seen` is how many of them were looked at before.
///
/// # Errors
/// It cannot become one.
pub fn whole(bytes: &[u8], seen: usize) -> Result<Option<usize>, HeadError> {
    let start = leading(bytes);
    let from = seen.saturating_sub(3).max(start);
    for (at, byte) in bytes.iter().enumerate().skip(from) {
        if *byte != b'\n' {
            continue;
        }
        let before = bytes.get(start..at).unwrap_or_default();
        if !before.ends_with(b"\r") {
            return Err(HeadError::Malformed);
        }
        if before.ends_with(b"\r\n\r") {
            return if at < HTTP_HEAD_MAX { Ok(Some(at + 1)) } else { Err(HeadError::TooLarge) };
        }
    }
    if bytes.len() >= HTTP_HEAD_MAX { Err(HeadError::TooLarge) } else { Ok(None) }
}

/// Empty lines before a request: one of a browser of old, none else (RFC 9112 §2.2).
fn leading(bytes: &[u8]) -> usize {
    if bytes.starts_with(b"\r\n") { 2 } else { 0 }
}

impl Head {
    /// Takes a whole head apart.
    ///
    /// # Errors
    /// It is invalid or ambiguous.
    pub fn parse(bytes: &[u8]) -> Result<Self, HeadError> {
        let bytes = bytes.get(leading(bytes)..).unwrap_or_default();
        let mut fields = [httparse::EMPTY_HEADER; HTTP_HEADERS_MAX];
        let mut request = httparse::Request::new(&mut fields);
        match request.parse(bytes) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Err(HeadError::Malformed),
            Err(httparse::Error::TooManyHeaders) => return Err(HeadError::TooLarge),
            Err(httparse::Error::Version) => return Err(HeadError::Version),
            Err(_) => return Err(HeadError::Malformed),
        }
        let modern = request.version == Some(1);
        let mut headers = Headers::default();
        for field in request.headers.iter() {
            if !headers.push(field.name.as_bytes(), field.value) {
                return Err(HeadError::TooLarge);
            }
        }
        let target = request.path.unwrap_or_default().as_bytes();
        let host = host(target, &headers, modern)?;
        let framing = framing(&headers, modern)?;
        let expects = expects(&headers, modern)? && framing != Framing::Length(0);
        let keep_alive = if modern {
            !headers.has("connection", "close")
        } else {
            headers.has("connection", "keep-alive")
        };
        Ok(Self {
            method: Method::parse(request.method.unwrap_or_default().as_bytes()),
            target: Target::parse(target)?,
            host,
            headers,
            framing,
            modern,
            keep_alive,
            expects,
        })
    }
}

fn host(target: &[u8], headers: &Headers, modern: bool) -> Result<String, HeadError> {
    let mut hosts = headers.all("host");
    let said = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host,
        (None, None) if !modern => b"",
        _ => return Err(HeadError::Host),
    };
    let host = authority(target).map_or(said, |(host, _)| host);
    check_host(host).ok_or(HeadError::Host)
}

/// A host with or without a port, if it has the form of one (RFC 3986 §3.2.2).
pub fn check_host(host: &[u8]) -> Option<String> {
    let good = |b: &u8| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:[]%".contains(b);
    host.iter().all(good).then(|| String::from_utf8_lossy(host).into_owned())
}

fn framing(headers: &Headers, modern: bool) -> Result<Framing, HeadError> {
    let mut lengths = headers.all("content-length");
    let length = match (lengths.next(), lengths.next()) {
        (_, Some(_)) => return Err(HeadError::Framing),
        (Some(length), None) => Some(number(length).ok_or(HeadError::Framing)?),
        (None, None) => None,
    };
    let mut codings = headers.all("transfer-encoding");
    match (codings.next(), codings.next(), length) {
        (None, _, length) => Ok(Framing::Length(length.unwrap_or(0))),
        (Some(_), _, Some(_)) => Err(HeadError::Framing),
        (Some(_), _, None) if !modern => Err(HeadError::Framing),
        (Some(coding), None, None) if coding.eq_ignore_ascii_case(b"chunked") => {
            Ok(Framing::Chunked)
        }
        _ => Err(HeadError::Coding),
    }
}

/// Decimal digits and nothing else, within 63 bits.
pub fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (number <= i64::MAX as u64).then_some(number)
}

fn expects(headers: &Headers, modern: bool) -> Result<bool, HeadError> {
    match headers.get("expect") {
        None => Ok(false),
        Some(what) if what.eq_ignore_ascii_case(b"100-continue") => Ok(modern),
        Some(_) => Err(HeadError::Expectation),
    }
}

#[cfg(test)]
mod tests;
