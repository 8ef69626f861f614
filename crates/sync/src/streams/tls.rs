//! A stream for data: TLS 1.3 on a TCP connection, through which one side sends and the other
//! reads.

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use base::clock::monotonic_ns;
use base::limits::{DSYNC_NOTSENT, DSYNC_SEND_BYTES, DSYNC_TOKEN_TIMEOUT};
use base::random::{Random, SystemRandom};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, ServerConfig, ServerConnection,
    SignatureScheme, StreamOwned, version,
};
use socket2::SockRef;

use crate::error::SyncError;

/// The name in the certificate; it is not checked.
const NAME: &str = "dsync";
/// What the kernel is asked for: it does not take each lost packet for a full link.
const CONGESTION: &[u8] = b"bbr";
/// Bytes of the name of a congestion control: TCP_CA_NAME_MAX of Linux.
const CONGESTION_BYTES: usize = 16;

/// What a run's streams begin with.
pub type Token = [u8; 32];

/// A stream that has come up.
pub struct Stream {
    tls: Box<dyn Both + Send>,
    /// What it lies on.
    pub socket: Arc<TcpStream>,
    /// What both sides know it by.
    pub number: u32,
    /// The congestion control of this side and of the other.
    pub congestion: [String; 2],
}

trait Both: Read + Write {}
impl<S: Read + Write> Both for S {}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.tls.read(into)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.tls.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.tls.flush()
    }
}

/// A socket. TLS reads from a buffer, because it reads in small pieces.
struct Wire {
    read: BufReader<Timed>,
    write: Arc<TcpStream>,
}

/// A socket that may have to answer until a moment.
struct Timed {
    socket: Arc<TcpStream>,
    until_ns: Option<u64>,
}

impl Read for Timed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(until) = self.until_ns {
            let left = until.saturating_sub(monotonic_ns());
            if left == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.socket.set_read_timeout(Some(Duration::from_nanos(left)))?;
        }
        (&*self.socket).read(into)
    }
}

impl Wire {
    /// Prepares a connected socket; the name of its congestion control.
    fn new(socket: &Arc<TcpStream>) -> io::Result<(Self, String)> {
        let reference = SockRef::from(&**socket);
        // Full records leave at once, and what is not sent waits where any stream can take it. The
        // buffers stay as they are: setting their size would end their automatic growth.
        socket.set_nodelay(true)?;
        let until_ns = Some(monotonic_ns() + DSYNC_TOKEN_TIMEOUT.as_nanos() as u64);
        // Both only help.
        let _best_effort = reference.set_tcp_notsent_lowat(DSYNC_NOTSENT);
        let _best_effort = reference.set_tcp_congestion(CONGESTION);
        let name = reference.tcp_congestion().unwrap_or_default();
        let timed = Timed { socket: Arc::clone(socket), until_ns };
        let read = BufReader::with_capacity(DSYNC_SEND_BYTES, timed);
        Ok((Self { read, write: Arc::clone(socket) }, text(&name)))
    }

    /// From now on it may take its time.
    fn settle(&mut self) -> io::Result<()> {
        self.read.get_mut().until_ns = None;
        self.write.set_read_timeout(None)
    }
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read.read(into)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.write).write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The name of a congestion control, up to its first NUL.
fn text(name: &[u8]) -> String {
    let name = name.split(|b| *b == 0).next().unwrap_or_default();
    name.iter().filter(|b| b.is_ascii_alphanumeric()).map(|b| char::from(*b)).collect()
}

/// What the answering side shows and wants to see.
#[derive(Clone)]
pub struct Shown {
    config: Arc<ServerConfig>,
    /// BLAKE3 of its certificate.
    pub fingerprint: [u8; 32],
    /// What each stream begins with.
    pub token: Token,
}

impl Shown {
    /// A new certificate and a new token.
    ///
    /// # Errors
    /// [`SyncError::Machine`].
    pub fn new() -> Result<Self, SyncError> {
        let failed = |e: &dyn std::fmt::Display| {
            SyncError::Machine(io::Error::other(format!("a certificate: {e}")))
        };
        let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]);
        let made = made.map_err(|e| failed(&e))?;
        let certificate = made.cert.der().clone();
        let fingerprint = *blake3::hash(&certificate).as_bytes();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der());
        let mut config =
            ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
                .with_protocol_versions(&[&version::TLS13])
                .map_err(|e| failed(&e))?
                .with_no_client_auth()
                .with_single_cert(vec![certificate], key.map_err(|e| failed(&e))?)
                .map_err(|e| failed(&e))?;
        // Each stream is new.
        config.send_tls13_tickets = 0;
        let mut token = [0; 32];
        SystemRandom.fill(&mut token);
        Ok(Self { config: Arc::new(config), fingerprint, token })
    }

    /// Takes a stream from a client that knows the token.
    ///
    /// # Errors
    /// It is not shown in time, or another one is; no TLS.
    pub fn take(&self, socket: &Arc<TcpStream>) -> io::Result<Stream> {
        let (wire, ours) = Wire::new(socket)?;
        let connection =
            ServerConnection::new(Arc::clone(&self.config)).map_err(io::Error::other)?;
        let mut tls = StreamOwned::new(connection, wire);
        let (mut token, mut number): (Token, _) = ([0; 32], [0; 4]);
        tls.read_exact(&mut token)?;
        tls.read_exact(&mut number)?;
        // Hashes are compared in constant time.
        if blake3::hash(&token) != blake3::hash(&self.token) {
            return Err(io::Error::other("a stream without the token"));
        }
        let mut name = [0; CONGESTION_BYTES];
        name.iter_mut().zip(ours.bytes()).for_each(|(out, byte)| *out = byte);
        tls.write_all(&name)?;
        tls.flush()?;
        tls.sock.settle()?;
        let (socket, number) = (Arc::clone(socket), u32::from_be_bytes(number));
        Ok(Stream { tls: Box::new(tls), socket, number, congestion: [ours, String::new()] })
    }
}

/// What the side that connects knows of the other.
#[derive(Clone)]
pub struct PeerIdentity {
    config: Arc<ClientConfig>,
    token: Token,
}

impl PeerIdentity {
    /// The one with this certificate, which wants this token.
    ///
    /// # Errors
    /// [`SyncError::Machine`].
    pub fn new(fingerprint: [u8; 32], token: Token) -> Result<Self, SyncError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let pinned = Pinned { fingerprint, provider: Arc::clone(&provider) };
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])
            .map_err(|e| SyncError::Machine(io::Error::other(e)))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(pinned))
            .with_no_client_auth();
        Ok(Self { config: Arc::new(config), token })
    }

    /// Has a stream come up on a connected socket, by a number that no other has had.
    ///
    /// # Errors
    /// The other side is another, or does not want it.
    pub fn open(&self, socket: &Arc<TcpStream>, number: u32) -> io::Result<Stream> {
        let (wire, ours) = Wire::new(socket)?;
        let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
        let connection =
            ClientConnection::new(Arc::clone(&self.config), name).map_err(io::Error::other)?;
        let mut tls = StreamOwned::new(connection, wire);
        tls.write_all(&self.token)?;
        tls.write_all(&number.to_be_bytes())?;
        tls.flush()?;
        let mut theirs = [0; CONGESTION_BYTES];
        tls.read_exact(&mut theirs)?;
        tls.sock.settle()?;
        let socket = Arc::clone(socket);
        Ok(Stream { tls: Box::new(tls), socket, number, congestion: [ours, text(&theirs)] })
    }
}

/// Believes one certificate. That the other side holds its key is checked as ever.
#[derive(Debug)]
struct Pinned {
    fingerprint: [u8; 32],
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match blake3::hash(end_entity) == self.fingerprint {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(rustls::Error::General("another program answers at the port".to_owned())),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is not supported".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
