//! How requests of a head reach etcd: HTTP/1.1, one request a connection, over TLS for a URL with
//! https. The whole exchange has one deadline; the response is bounded.

use std::io::{BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::clock::Deadline;
use control::client::Answer;
use head::etcd::Transport;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::out::{Failure, OrFailure};

/// The way to etcd.
pub struct Gateway {
    /// For URLs with https.
    tls: Option<Arc<ClientConfig>>,
}

impl Gateway {
    /// With the certificates of etcd's CA, if it has one.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn new(ca: Option<&Path>) -> std::result::Result<Self, Failure> {
        const TRIED: &str = "use the certificates of etcd";
        let Some(ca) = ca else { return Ok(Self { tls: None }) };
        let pem = std::fs::read(ca).or_failure(TRIED)?;
        let mut roots = RootCertStore::empty();
        for one in CertificateDer::pem_slice_iter(&pem) {
            let one =
                one.map_err(|e| Failure::new(TRIED, &e.to_string(), "etcd.ca is a PEM file"))?;
            roots.add(one).or_failure(TRIED)?;
        }
        if roots.is_empty() {
            let why = format!("{} has no certificate", ca.display());
            return Err(Failure::new(TRIED, &why, "etcd.ca is a PEM file"));
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().or_failure(TRIED)?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        Ok(Self { tls: Some(Arc::new(config)) })
    }

    fn exchange(&self, member: &str, request: &str, stream: Timed) -> Result<(u16, Vec<u8>)> {
        if !member.starts_with("https://") {
            return read(stream, request);
        }
        let tls = self.tls.clone().ok_or_else(|| other("etcd.ca is not configured"))?;
        let (host, _) = host_and_port(member)?;
        let name = ServerName::try_from(host.to_owned()).map_err(|_| other("not a host name"))?;
        let session = ClientConnection::new(tls, name).map_err(|e| other(&e.to_string()))?;
        read(StreamOwned::new(session, stream), request)
    }
}

impl Transport for Gateway {
    fn post(&self, member: &str, path: &str, body: &str, time: Duration) -> Result<(u16, Vec<u8>)> {
        let deadline = Deadline::after(time);
        let (host, port) = host_and_port(member)?;
        let address = (host, port).to_socket_addrs()?.next();
        let address = address.ok_or_else(|| other("the name has no address"))?;
        let stream = TcpStream::connect_timeout(&address, left(deadline)?)?;
        stream.set_nodelay(true)?;
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}:{port}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.exchange(member, &request, Timed { stream, deadline })
    }
}

fn read(mut stream: impl Read + Write, request: &str) -> Result<(u16, Vec<u8>)> {
    stream.write_all(request.as_bytes())?;
    stream.flush()?;
    let mut stream = BufReader::new(stream);
    let answer = Answer::read_head(&mut stream)?;
    Ok((answer.status, answer.read_body(&mut stream)?))
}

/// A connection on which no call lasts beyond the deadline.
struct Timed {
    stream: TcpStream,
    deadline: Deadline,
}

impl Read for Timed {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        self.stream.set_read_timeout(Some(left(self.deadline)?))?;
        self.stream.read(out)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.stream.set_write_timeout(Some(left(self.deadline)?))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.stream.flush()
    }
}

fn left(deadline: Deadline) -> Result<Duration> {
    deadline.left().ok_or_else(|| Error::new(ErrorKind::TimedOut, "no response in time"))
}

fn host_and_port(member: &str) -> Result<(&str, u16)> {
    let rest = member.split_once("://").map_or(member, |(_, rest)| rest);
    let (host, port) = rest.rsplit_once(':').ok_or_else(|| other("the URL has no port"))?;
    let port = base::text::decimal(port).ok_or_else(|| other("the URL has no port"))?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    Ok((bare.unwrap_or(host), port))
}

fn other(why: &str) -> Error {
    Error::other(why.to_owned())
}
