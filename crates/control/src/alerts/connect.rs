//! Connections to servers that receive notifications: TCP, or TLS over it, with a timeout for each
//! step and for the whole, and bounded replies.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;

use base::clock::Deadline;
use base::limits::{ALERT_ANSWER_MAX, ALERT_STEP_TIMEOUT};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A whole delivery takes no longer than this number of steps.
const STEPS: u32 = 6;
/// Where systems store the trusted CAs.
const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Why a message did not arrive.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeliveryError {
    /// The other side, or the network between.
    #[error("cannot reach {at}: {source}")]
    Unreachable { at: String, source: io::Error },
    /// The connection ended, or the data is not of the expected protocol.
    #[error("the connection to {at} failed while we {step}: {source}")]
    Broken { at: String, step: &'static str, source: io::Error },
    /// The other side does not take it.
    #[error("{at} refused it: {said}")]
    Refused {
        at: String,
        said: String,
        /// Whether it may take it later.
        again: bool,
    },
    /// An error on our side: a retry cannot help.
    #[error("{0}")]
    Ours(String),
}

impl DeliveryError {
    /// Whether trying again may help.
    pub fn again(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Broken { .. } => true,
            Self::Refused { again, .. } => *again,
            Self::Ours(_) => false,
        }
    }
}

/// The addresses of a host.
pub(super) fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, DeliveryError> {
    let at = || format!("{host}:{port}");
    let found = (host, port).to_socket_addrs();
    let found = found.map_err(|source| DeliveryError::Unreachable { at: at(), source })?;
    let found: Vec<SocketAddr> = found.collect();
    if found.is_empty() {
        let source = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        return Err(DeliveryError::Unreachable { at: at(), source });
    }
    Ok(found)
}

enum Transport {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// A connection.
pub(super) struct Wire {
    way: Option<Transport>,
    until: Deadline,
    host: String,
    /// For messages.
    pub at: String,
    buffer: Vec<u8>,
    taken: usize,
}

impl Wire {
    /// Connects to the first address that answers.
    pub fn open(host: &str, port: u16) -> Result<Self, DeliveryError> {
        let at = format!("{host}:{port}");
        let mut last = None;
        for address in resolve(host, port)? {
            match TcpStream::connect_timeout(&address, ALERT_STEP_TIMEOUT) {
                Ok(stream) => {
                    let limits = stream
                        .set_read_timeout(Some(ALERT_STEP_TIMEOUT))
                        .and_then(|()| stream.set_write_timeout(Some(ALERT_STEP_TIMEOUT)));
                    limits
                        .map_err(|source| DeliveryError::Unreachable { at: at.clone(), source })?;
                    return Ok(Self {
                        way: Some(Transport::Plain(stream)),
                        until: Deadline::after(ALERT_STEP_TIMEOUT * STEPS),
                        host: host.to_owned(),
                        at,
                        buffer: Vec::new(),
                        taken: 0,
                    });
                }
                Err(e) => last = Some(e),
            }
        }
        let source = last.unwrap_or_else(|| io::Error::from(io::ErrorKind::NotFound));
        Err(DeliveryError::Unreachable { at, source })
    }

    /// Changes to TLS; the name of the server is verified.
    pub fn secure(&mut self, trusted: Option<&Path>) -> Result<(), DeliveryError> {
        // Data that was received unencrypted after the reply that began TLS could be from an
        // attacker (RFC 3207 §4.2 and CVE-2021-38371).
        if !self.buffer.is_empty() {
            let source = io::Error::new(io::ErrorKind::InvalidData, "data before TLS began");
            return Err(self.broken("change to TLS", source));
        }
        let config = tls(trusted)?;
        let name = ServerName::try_from(self.host.clone()).map_err(|_| {
            DeliveryError::Ours(format!("{} is not a valid TLS server name", self.host))
        })?;
        let connection = ClientConnection::new(config, name)
            .map_err(|e| DeliveryError::Ours(format!("TLS: {e}")))?;
        self.way = match self.way.take() {
            Some(Transport::Plain(stream)) => {
                let mut stream = StreamOwned::new(connection, stream);
                while stream.conn.is_handshaking() {
                    let done = stream.conn.complete_io(&mut stream.sock);
                    done.map_err(|source| self.broken("begin TLS", source))?;
                    if self.until.passed() {
                        let source = io::Error::from(io::ErrorKind::TimedOut);
                        return Err(self.broken("begin TLS", source));
                    }
                }
                Some(Transport::Tls(Box::new(stream)))
            }
            other => other,
        };
        Ok(())
    }

    /// Sends all of it.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), DeliveryError> {
        let sent = match &mut self.way {
            Some(Transport::Plain(stream)) => stream.write_all(bytes),
            Some(Transport::Tls(stream)) => stream.write_all(bytes).and_then(|()| stream.flush()),
            None => Err(io::Error::from(io::ErrorKind::NotConnected)),
        };
        sent.map_err(|source| self.broken("send", source))
    }

    /// The next line that the other side sends, without its end.
    pub fn line(&mut self) -> Result<String, DeliveryError> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line);
                return Ok(line.trim_end_matches(['\r', '\n']).to_owned());
            }
            let source = match (self.until.passed(), self.taken > ALERT_ANSWER_MAX) {
                (true, _) => io::Error::from(io::ErrorKind::TimedOut),
                (_, true) => io::Error::new(io::ErrorKind::InvalidData, "the reply is too long"),
                _ => match self.fill() {
                    Ok(0) => io::Error::from(io::ErrorKind::UnexpectedEof),
                    Ok(_) => continue,
                    Err(e) => e,
                },
            };
            return Err(self.broken("wait for a reply", source));
        }
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut piece = [0; 4096];
        let n = match &mut self.way {
            Some(Transport::Plain(stream)) => stream.read(&mut piece)?,
            Some(Transport::Tls(stream)) => stream.read(&mut piece)?,
            None => 0,
        };
        self.taken += n;
        self.buffer.extend_from_slice(piece.get(..n).unwrap_or_default());
        Ok(n)
    }

    fn broken(&self, step: &'static str, source: io::Error) -> DeliveryError {
        DeliveryError::Broken { at: self.at.clone(), step, source }
    }
}

/// TLS that trusts what this machine trusts, and what the administrator adds.
fn tls(trusted: Option<&Path>) -> Result<Arc<ClientConfig>, DeliveryError> {
    let mut roots = RootCertStore::empty();
    let mut add = |path: &Path| -> Result<(), String> {
        let found = CertificateDer::pem_file_iter(path).map_err(|e| e.to_string())?;
        let found: Vec<_> = found.filter_map(Result::ok).collect();
        // Some certificates of a system's bundle are in obsolete forms that are not supported.
        let (added, _) = roots.add_parsable_certificates(found);
        if added == 0 { Err("it contains no certificate".to_owned()) } else { Ok(()) }
    };
    let of_machine = SYSTEM.iter().any(|path| add(Path::new(path)).is_ok());
    if let Some(path) = trusted {
        add(path).map_err(|e| {
            DeliveryError::Ours(format!("trusted_certificates {}: {e}", path.display()))
        })?;
    } else if !of_machine {
        let why = "this machine has no list of trusted certificates; install ca-certificates, or \
                   set trusted_certificates";
        return Err(DeliveryError::Ours(why.to_owned()));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| DeliveryError::Ours(format!("TLS: {e}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
