//! The API of a Plimsoll server (docs/protocols/api.md): over its local socket, or from another
//! machine over TLS with a token.
//!
//! The token is in a file, and in the requests; what is printed or recorded has the address alone.

use crate::client::ClientError;
use crate::client::service::at::Terms;
use crate::client::service::socket::Stream;
use crate::client::service::tls::{self, Tls};
use base::protocol::ports;
use base::text::decimal;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;
use std::fmt;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Longest answer that is taken.
const ANSWER_MAX: u64 = 8 << 20;
/// How long the server may take over one question.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// Certificate that is trusted unless another is given: next to the token, as the server has it.
const CERTIFICATE: &str = "certificate.pem";

/// Where a server is asked.
#[derive(Clone)]
pub enum ServerApi {
    /// Its local socket.
    Local(PathBuf),
    /// Its address on another machine.
    Remote(Arc<RemoteApi>),
}

/// The API of a server at an address.
pub struct RemoteApi {
    url: String,
    host: String,
    port: u16,
    token: String,
    tls: Tls,
}

/// Why a server cannot be asked at its address.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The URL is not one of an API.
    #[error("{0}: expected https://HOST[:PORT]")]
    Url(String),
    /// The token or the certificate cannot be read.
    #[error("cannot read {0}")]
    File(PathBuf, #[source] std::io::Error),
    /// The file has no certificate.
    #[error("{0} contains no certificate")]
    Certificate(PathBuf),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] ClientError),
}

impl RemoteApi {
    /// The server at `url`, with the token of a file. The first certificate of `certificate`, by
    /// default that next to the token, is trusted under any name.
    ///
    /// # Errors
    /// The URL is not one, or a file cannot be used.
    pub fn new(url: &str, token: &Path, certificate: Option<&Path>) -> Result<Self, ApiError> {
        let (host, port) = host_and_port(url).ok_or_else(|| ApiError::Url(url.to_owned()))?;
        let read = |path: &Path| {
            std::fs::read_to_string(path).map_err(|e| ApiError::File(path.to_owned(), e))
        };
        let certificate =
            certificate.map_or_else(|| token.with_file_name(CERTIFICATE), Path::to_owned);
        let token = read(token)?.trim().to_owned();
        let pem = read(&certificate)?;
        let first = CertificateDer::pem_slice_iter(pem.as_bytes()).next().and_then(Result::ok);
        let first = first.ok_or_else(|| ApiError::Certificate(certificate.clone()))?;
        let terms = Terms { pin: Some(tls::fingerprint(&first)), ..Terms::default() };
        let tls = Tls::new(&host, &terms)?;
        Ok(Self { url: url.to_owned(), host, port, token, tls })
    }
}

/// Host and port of `https://HOST[:PORT]`.
fn host_and_port(url: &str) -> Option<(String, u16)> {
    let rest = url.strip_prefix("https://")?.trim_end_matches('/');
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, decimal(port)?),
        _ => (rest, ports::ADMIN.number),
    };
    let host = host.trim_matches(['[', ']']);
    let plain = !host.is_empty() && !host.contains(['/', '@', '?']);
    plain.then(|| (host.to_owned(), port))
}

/// Without the token.
impl fmt::Debug for RemoteApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemoteApi").field(&self.url).finish()
    }
}

impl fmt::Debug for ServerApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServerApi").field(&self.to_string()).finish()
    }
}

impl fmt::Display for ServerApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(socket) => write!(f, "{}", socket.display()),
            Self::Remote(api) => f.write_str(&api.url),
        }
    }
}

impl PartialEq for ServerApi {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl ServerApi {
    /// Whether the server is on this machine.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Local(_))
    }

    /// The body of a successful answer to GET.
    pub fn get(&self, path: &str) -> Option<Value> {
        body(&self.exchange(&self.head("GET", path, "\r\n"), ANSWER_WITHIN).ok()?)
    }

    /// The same.
    ///
    /// # Errors
    /// Why not, as the server reports it.
    pub fn read(&self, path: &str) -> Result<Value, String> {
        self.judged(&self.head("GET", path, "\r\n"), ANSWER_WITHIN)
    }

    /// The body of a successful answer to POST of JSON.
    ///
    /// # Errors
    /// Why not, as the server reports it.
    pub fn post(&self, path: &str, body: &Value, within: Duration) -> Result<Value, String> {
        let body = body.to_string();
        let length = body.len();
        let rest =
            format!("Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
        self.judged(&self.head("POST", path, &rest), within)
    }

    fn judged(&self, request: &str, within: Duration) -> Result<Value, String> {
        let none = "the server sent no usable reply";
        let failed = |e| format!("the server could not be asked: {e}");
        let reply = self.exchange(request, within).map_err(failed)?;
        let (status, found) = reply_of(&reply).ok_or(none)?;
        if status == "200" {
            return Ok(found);
        }
        let why = found["error"]["failed"].as_str().unwrap_or(none);
        Err(format!("the server refused: {why}"))
    }

    /// The head of a request, HTTP/1.0 semantics: the answer ends with the connection.
    fn head(&self, method: &str, path: &str, rest: &str) -> String {
        let (host, token) = match self {
            Self::Local(_) => ("plimsoll".to_owned(), String::new()),
            Self::Remote(api) => {
                (api.host.clone(), format!("Authorization: Bearer {}\r\n", api.token))
            }
        };
        format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{token}{rest}")
    }

    /// Sends a request and reads the reply to its end.
    fn exchange(&self, request: &str, within: Duration) -> std::io::Result<Vec<u8>> {
        let mut answer = Vec::new();
        match self {
            Self::Local(socket) => {
                let mut stream = UnixStream::connect(socket)?;
                stream.set_read_timeout(Some(within))?;
                stream.set_write_timeout(Some(within))?;
                stream.write_all(request.as_bytes())?;
                stream.take(ANSWER_MAX).read_to_end(&mut answer)?;
            }
            Self::Remote(api) => {
                let other = |e: ClientError| std::io::Error::other(crate::agent::with_sources(&e));
                let socket = Stream::connect(&api.host, api.port, None).map_err(other)?;
                socket.set_read_timeout(Some(within))?;
                let mut stream = Stream::secured(socket, &api.tls).map_err(other)?;
                stream.write_all(request.as_bytes())?;
                stream.flush()?;
                stream.take(ANSWER_MAX).read_to_end(&mut answer)?;
            }
        }
        Ok(answer)
    }
}

/// The JSON body of a successful answer.
fn body(answer: &[u8]) -> Option<Value> {
    reply_of(answer).filter(|(status, _)| status == "200").map(|(_, body)| body)
}

/// Status and JSON body of an answer, chunked or not (RFC 9112 §6 and §7.1).
fn reply_of(answer: &[u8]) -> Option<(String, Value)> {
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n")?;
    let head = std::str::from_utf8(answer.get(..end)?).ok()?.to_ascii_lowercase();
    let rest = answer.get(end + 4..)?;
    let status = head.split_whitespace().nth(1)?.to_owned();
    if !head.contains("transfer-encoding: chunked") {
        return Some((status, serde_json::from_slice(rest).ok()?));
    }
    let (mut rest, mut whole) = (rest, Vec::new());
    loop {
        let line = rest.windows(2).position(|w| w == b"\r\n")?;
        let size =
            std::str::from_utf8(rest.get(..line)?).ok()?.split(';').next()?.trim().to_owned();
        let size = usize::from_str_radix(&size, 16).ok()?;
        if size == 0 {
            return Some((status, serde_json::from_slice(&whole).ok()?));
        }
        whole.extend_from_slice(rest.get(line + 2..line.checked_add(2)?.checked_add(size)?)?);
        rest = rest.get(line + 2 + size + 2..)?;
    }
}

#[cfg(test)]
mod tests;
