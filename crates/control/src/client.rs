//! The other side of the API, for the command line: HTTP/1.1 over the local socket or over TLS.
//!
//! Blocking, one request per connection (`Connection: close`), answers bounded. A server is
//! trusted if it presents exactly the pinned certificate, or one that is signed by the CAs in the
//! same file: a server's own certificate is renewed, its CA stays.

mod http;
mod pin;

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::limits::{CLIENT_CONNECT_TIMEOUT, CLIENT_TIMEOUT};
use base::text::decimal;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::listen::local;
use crate::state::starting;

pub use http::Answer;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No server listens there, or not any more.
    #[error("cannot reach the server at {at}")]
    Unreachable {
        /// Socket or address.
        at: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The URL is not the URL of a server.
    #[error("{0}: expected https://HOST[:PORT]")]
    Url(String),
    /// The token or certificate file cannot be read.
    #[error("cannot read {path}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The certificate file holds none, or TLS cannot be set up.
    #[error("TLS: {0}")]
    Tls(String),
    /// The connection failed or what came is not HTTP.
    #[error("invalid reply from the server at {at}")]
    Broken {
        /// Socket or address.
        at: String,
        /// How.
        source: std::io::Error,
    },
    /// The server refuses the request.
    #[error("{failed} ({hint})")]
    Refused {
        /// HTTP status.
        status: u16,
        /// What failed.
        failed: String,
        /// What to do.
        hint: String,
        /// The property that is at fault, if one is.
        property: Option<String>,
    },
}

/// A server for requests.
#[derive(Debug, Clone)]
pub struct Client {
    way: ServerAddress,
}

#[derive(Debug, Clone)]
enum ServerAddress {
    /// With what reports that a server is waited for; without it none is.
    Local(PathBuf, Option<fn()>),
    Remote {
        host: String,
        port: u16,
        token: String,
        tls: Arc<ClientConfig>,
    },
}

impl Client {
    /// The server behind a local socket.
    pub fn local(socket: &Path) -> Self {
        Self { way: ServerAddress::Local(socket.to_owned(), None) }
    }

    /// The same; one that starts is waited for, and `notice` called before that.
    pub fn local_or_starting(socket: &Path, notice: fn()) -> Self {
        Self { way: ServerAddress::Local(socket.to_owned(), Some(notice)) }
    }

    /// The server at `url` (`https://host[:port]`), with the token in `token_file` and trusting
    /// the PEM certificate in `certificate`.
    ///
    /// # Errors
    /// [`ClientError::Url`], [`ClientError::File`], [`ClientError::Tls`].
    pub fn remote(url: &str, token_file: &Path, certificate: &Path) -> Result<Self, ClientError> {
        let read = |path: &Path| {
            std::fs::read_to_string(path)
                .map_err(|source| ClientError::File { path: path.to_owned(), source })
        };
        let (host, port) = host_and_port(url)?;
        let token = read(token_file)?.trim().to_owned();
        let tls = pin::config(&read(certificate)?)?;
        Ok(Self { way: ServerAddress::Remote { host, port, token, tls } })
    }

    /// Where the server is, for messages.
    pub fn at(&self) -> String {
        match &self.way {
            ServerAddress::Local(socket, _) => socket.display().to_string(),
            ServerAddress::Remote { host, port, .. } => format!("{host}:{port}"),
        }
    }

    /// `GET path`; the body of a successful answer.
    ///
    /// # Errors
    /// [`ClientError`]; a refusal carries the server's words.
    pub fn get(&self, path: &str) -> Result<Vec<u8>, ClientError> {
        self.request("GET", path, None)
    }

    /// `PUT path` with a body of another type than JSON.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub fn put(&self, path: &str, kind: &str, body: &str) -> Result<Vec<u8>, ClientError> {
        self.request("PUT", path, Some((kind, body)))
    }

    /// `POST path` with a JSON body.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub fn post(&self, path: &str, json: &str) -> Result<Vec<u8>, ClientError> {
        self.request("POST", path, Some((JSON, json)))
    }

    /// `DELETE path`.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub fn delete(&self, path: &str) -> Result<Vec<u8>, ClientError> {
        self.request("DELETE", path, None)
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<(&str, &str)>,
    ) -> Result<Vec<u8>, ClientError> {
        let broken = |source| self.broken(source);
        let mut stream = BufReader::new(self.send(method, path, body)?);
        let answer = Answer::read_head(&mut stream).map_err(broken)?;
        let status = answer.status;
        let body = answer.read_body(&mut stream).map_err(broken)?;
        if (200..300).contains(&status) { Ok(body) } else { Err(refused(status, &body)) }
    }

    /// Follows server-sent events: `event` is handed the `data` of each, until it returns false
    /// or the stream ends.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub fn follow(
        &self,
        path: &str,
        mut event: impl FnMut(&str) -> bool,
    ) -> Result<(), ClientError> {
        let broken = |source| self.broken(source);
        let mut stream = BufReader::new(self.send("GET", path, None)?);
        let answer = Answer::read_head(&mut stream).map_err(broken)?;
        if answer.status != 200 {
            let status = answer.status;
            let body = answer.read_body(&mut stream).map_err(broken)?;
            return Err(refused(status, &body));
        }
        let mut lines = BufReader::new(answer.body(&mut stream));
        let mut line = String::new();
        loop {
            line.clear();
            let limit = base::limits::CLIENT_ANSWER_MAX as u64;
            if lines.by_ref().take(limit).read_line(&mut line).map_err(broken)? == 0 {
                return Ok(());
            }
            if let Some(data) = line.trim_end().strip_prefix("data: ")
                && !event(data)
            {
                return Ok(());
            }
        }
    }

    fn broken(&self, source: Error) -> ClientError {
        // The system's name of a read timeout is not helpful.
        let late = matches!(source.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        let source = match late {
            true => {
                let why = format!("no data for {} seconds", CLIENT_TIMEOUT.as_secs());
                Error::new(ErrorKind::TimedOut, why)
            }
            false => source,
        };
        ClientError::Broken { at: self.at(), source }
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<(&str, &str)>,
    ) -> Result<Box<dyn Read>, ClientError> {
        let unreachable = |source| ClientError::Unreachable { at: self.at(), source };
        let broken = |source| self.broken(source);
        match &self.way {
            ServerAddress::Local(socket, notice) => {
                let connected = match notice {
                    Some(notice) => starting::connect(socket, *notice),
                    None => local::connect(socket),
                };
                let mut stream: UnixStream = connected.map_err(unreachable)?;
                stream.set_read_timeout(Some(CLIENT_TIMEOUT)).map_err(unreachable)?;
                http::write(&mut stream, method, path, "plimsoll", None, body).map_err(broken)?;
                Ok(Box::new(stream))
            }
            ServerAddress::Remote { host, port, token, tls } => {
                let name = ServerName::try_from(host.clone())
                    .map_err(|_| ClientError::Url(host.clone()))?;
                let tcp = connect(host, *port).map_err(unreachable)?;
                tcp.set_read_timeout(Some(CLIENT_TIMEOUT)).map_err(unreachable)?;
                let session = ClientConnection::new(tls.clone(), name)
                    .map_err(|e| ClientError::Tls(e.to_string()))?;
                let mut stream = StreamOwned::new(session, tcp);
                http::write(&mut stream, method, path, host, Some(token), body)
                    .and_then(|()| stream.flush())
                    .map_err(broken)?;
                Ok(Box::new(stream))
            }
        }
    }
}

/// Connects to the first address of a host that answers in time.
fn connect(host: &str, port: u16) -> std::io::Result<TcpStream> {
    let mut last = Error::new(ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CLIENT_CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The server's own words if there are any.
fn refused(status: u16, body: &[u8]) -> ClientError {
    #[derive(serde::Deserialize)]
    struct Envelope {
        error: Words,
    }
    #[derive(serde::Deserialize)]
    struct Words {
        failed: String,
        hint: String,
        property: Option<String>,
    }
    match serde_json::from_slice::<Envelope>(body) {
        Ok(Envelope { error: Words { failed, hint, property } }) => {
            ClientError::Refused { status, failed, hint, property }
        }
        Err(_) => ClientError::Refused {
            status,
            failed: format!("the server returned status {status}"),
            hint: "check that this is a plimsoll server".to_owned(),
            property: None,
        },
    }
}

/// The type of most bodies.
const JSON: &str = "application/json";

/// The admin port of an appliance with standard ports.
const ADMIN_PORT: u16 = 215;

fn host_and_port(url: &str) -> Result<(String, u16), ClientError> {
    let bad = || ClientError::Url(url.to_owned());
    let rest = url.strip_prefix("https://").ok_or_else(bad)?.trim_end_matches('/');
    if rest.is_empty() || rest.contains('/') {
        return Err(bad());
    }
    // [v6]:port, [v6], host:port, host.
    let (host, port) = match (rest.strip_prefix('['), rest.rsplit_once(':')) {
        (Some(v6), _) => {
            let (host, after) = v6.split_once(']').ok_or_else(bad)?;
            (host, after.strip_prefix(':'))
        }
        (None, Some((host, port))) => (host, Some(port)),
        (None, None) => (rest, None),
    };
    let port = port.map_or(Ok(ADMIN_PORT), |p| decimal(p).ok_or_else(bad))?;
    Ok((host.to_owned(), port))
}

#[cfg(test)]
pub(crate) mod tests;
