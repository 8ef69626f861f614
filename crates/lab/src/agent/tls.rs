//! TLS 1.3 between a controller and an agent. Each side makes a certificate for the time that it
//! runs; what it is worth is decided by the join code ([`super::join`]), not by an authority.
//!
//! Reading and writing share the state of the connection but not their system calls: a thread that
//! waits for bytes does not stop one that writes.

use super::binding::{Binding, Fingerprint};
use base::clock::Deadline;
use base::limits::LAB_AGENT_GONE_AFTER;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, aws_lc_rs as crypto};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    ClientConfig, ClientConnection, Connection, DigitallySignedStruct, DistinguishedName, Error,
    ServerConfig, ServerConnection, SignatureScheme, version,
};
use socket2::{SockRef, TcpKeepalive};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The name in the certificates; no client compares it.
const NAME: &str = "plimsoll-lab";
/// Label of the exported keying material.
const EXPORTER: &[u8] = b"EXPORTER-plimsoll-lab-agent-1";
/// Bytes of one receive call: a TLS record.
const RECEIVE: usize = 16 << 10;
/// How often a connection without traffic is probed.
const PROBE: Duration = Duration::from_secs(10);

/// The certificate of this process, for one run of the program.
#[derive(Clone)]
pub struct Identity {
    listens: Arc<ServerConfig>,
    calls: Arc<ClientConfig>,
    fingerprint: Fingerprint,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity(…)")
    }
}

impl Identity {
    /// Makes a key and a certificate.
    ///
    /// # Errors
    /// The error of the certificate or TLS library.
    pub fn new() -> io::Result<Self> {
        let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]);
        let made = made.map_err(|e| io::Error::other(format!("a certificate: {e}")))?;
        let certificate = made.cert.der().clone();
        let fingerprint = Fingerprint::of(&certificate);
        let key = || PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let provider = Arc::new(crypto::default_provider());
        let any = Arc::new(AnyCertificate(provider.signature_verification_algorithms));
        let mut listens = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&version::TLS13])
            .map_err(io::Error::other)?
            .with_client_cert_verifier(Arc::clone(&any) as Arc<dyn ClientCertVerifier>)
            .with_single_cert(vec![certificate.clone()], key())
            .map_err(io::Error::other)?;
        // A connection that was resumed would have no proof that the peer still holds its key.
        listens.send_tls13_tickets = 0;
        let calls = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(any)
            .with_client_auth_cert(vec![certificate], key())
            .map_err(io::Error::other)?;
        Ok(Self { listens: Arc::new(listens), calls: Arc::new(calls), fingerprint })
    }
}

/// Accepts every certificate of which the peer holds the key: the join code decides.
#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

impl AnyCertificate {
    fn signed(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.0)
    }
}

fn no_tls12() -> Error {
    Error::General("TLS 1.3 is required".into())
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

impl ClientCertVerifier for AnyCertificate {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// A deadline and a number of bytes, for a peer that has not proved itself.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    /// When all must have come.
    pub deadline: Deadline,
    /// Bytes that may still come.
    pub left: usize,
}

/// The state of TLS, and what was decrypted and not read yet.
struct State {
    tls: Connection,
    plain: VecDeque<u8>,
}

/// A connection with TLS that two threads use, one that reads and others that write.
pub struct Channel {
    socket: TcpStream,
    state: Mutex<State>,
    /// Records leave in the order in which they were encrypted.
    order: Mutex<()>,
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Channel({:?})", self.socket)
    }
}

impl Channel {
    /// Completes the handshake of a connection that this side has accepted (`listens`) or made.
    ///
    /// # Errors
    /// The peer is silent, too long, or does not speak TLS 1.3 with a certificate.
    pub fn open(
        socket: TcpStream,
        identity: &Identity,
        listens: bool,
        bound: &mut Bound,
    ) -> io::Result<(Self, Binding, Fingerprint)> {
        prepare(&socket)?;
        let mut state: Connection = if listens {
            ServerConnection::new(Arc::clone(&identity.listens)).map_err(io::Error::other)?.into()
        } else {
            let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
            let calls = Arc::clone(&identity.calls);
            ClientConnection::new(calls, name).map_err(io::Error::other)?.into()
        };
        let mut plain = VecDeque::new();
        while state.is_handshaking() {
            send_all(&mut state, &socket)?;
            if !state.is_handshaking() {
                break;
            }
            let received = receive(&socket, bound)?;
            if received.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            // A peer may send its first message behind its handshake.
            let read = feed(&mut state, &received, &mut plain);
            if read.is_err() {
                // Sends the alert with the reason.
                let _gone = send_all(&mut state, &socket);
            }
            read?;
        }
        send_all(&mut state, &socket)?;
        let (binding, theirs) = bind(&state, identity, listens)?;
        let (state, order) = (Mutex::new(State { tls: state, plain }), Mutex::new(()));
        Ok((Self { socket, state, order }, binding, theirs))
    }

    /// The socket, the state of TLS and what was decrypted already, for one that waits for many.
    pub fn into_parts(self) -> (TcpStream, Connection, Vec<u8>) {
        let State { tls, plain } = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        (self.socket, tls, plain.into())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Disconnects.
    pub fn shutdown(&self) {
        // One that is disconnected already is as good.
        let _gone = self.socket.shutdown(Shutdown::Both);
    }

    /// How long one read may wait; `None`: without end.
    ///
    /// # Errors
    /// The socket is gone already.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket.set_read_timeout(timeout)
    }

    /// Reads within a bound.
    pub fn within<'a>(&'a self, bound: &'a mut Bound) -> Within<'a> {
        Within { channel: self, bound }
    }

    fn read_with(
        &self,
        bytes: &mut [u8],
        mut next: impl FnMut() -> io::Result<Vec<u8>>,
    ) -> io::Result<usize> {
        loop {
            let read = self.state().plain.read(bytes)?;
            if read > 0 || bytes.is_empty() {
                return Ok(read);
            }
            let received = next()?;
            if received.is_empty() {
                return Ok(0);
            }
            let State { tls, plain } = &mut *self.state();
            if !feed(tls, &received, plain)? && plain.is_empty() {
                return Ok(0);
            }
        }
    }
}

impl Read for &Channel {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.read_with(bytes, || {
            let mut buffer = vec![0; RECEIVE];
            let read = (&self.socket).read(&mut buffer)?;
            buffer.truncate(read);
            Ok(buffer)
        })
    }
}

impl Write for &Channel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let (taken, records) = {
            let mut state = self.state();
            let taken = state.tls.writer().write(bytes)?;
            (taken, records(&mut state.tls)?)
        };
        (&self.socket).write_all(&records)?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection that is read within a bound.
pub struct Within<'a> {
    channel: &'a Channel,
    bound: &'a mut Bound,
}

impl Read for Within<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let Self { channel, bound } = self;
        channel.read_with(bytes, || receive(&channel.socket, bound))
    }
}

/// Each message leaves at once, and a peer on a host that has vanished is noticed.
fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let options = SockRef::from(socket);
    options.set_tcp_user_timeout(Some(LAB_AGENT_GONE_AFTER))?;
    options.set_tcp_keepalive(&TcpKeepalive::new().with_time(PROBE).with_interval(PROBE))?;
    socket.set_write_timeout(Some(LAB_AGENT_GONE_AFTER))
}

fn receive(socket: &TcpStream, bound: &mut Bound) -> io::Result<Vec<u8>> {
    let wait = bound.deadline.left().ok_or(io::ErrorKind::TimedOut)?;
    if bound.left == 0 {
        return Err(io::Error::other("the first message is too long"));
    }
    socket.set_read_timeout(Some(wait))?;
    let mut buffer = vec![0; RECEIVE.min(bound.left)];
    let mut from = socket;
    let read = from.read(&mut buffer).map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => e,
    })?;
    bound.left -= read;
    buffer.truncate(read);
    Ok(buffer)
}

/// Hands bytes of the peer to TLS and takes what they decrypt to; whether more may follow.
///
/// # Errors
/// They are no records of this connection.
pub fn feed(
    state: &mut Connection,
    mut bytes: &[u8],
    plain: &mut impl Extend<u8>,
) -> io::Result<bool> {
    let wrong = |e: Error| io::Error::new(io::ErrorKind::InvalidData, format!("TLS: {e}"));
    while !bytes.is_empty() {
        // Nothing is taken after the peer has ended its side.
        if state.read_tls(&mut bytes)? == 0 {
            return Ok(false);
        }
        let done = state.process_new_packets().map_err(wrong)?;
        let mut decrypted = vec![0; done.plaintext_bytes_to_read()];
        if !decrypted.is_empty() {
            state.reader().read_exact(&mut decrypted)?;
            plain.extend(decrypted);
        }
        if done.peer_has_closed() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Takes the records that TLS has to send.
///
/// # Errors
/// None in practice: they go to memory.
pub fn records(state: &mut Connection) -> io::Result<Vec<u8>> {
    let mut records = Vec::new();
    while state.wants_write() {
        state.write_tls(&mut records)?;
    }
    Ok(records)
}

fn send_all(state: &mut Connection, mut socket: &TcpStream) -> io::Result<()> {
    socket.write_all(&records(state)?)
}

fn bind(
    state: &Connection,
    identity: &Identity,
    listens: bool,
) -> io::Result<(Binding, Fingerprint)> {
    let theirs = state.peer_certificates().and_then(|chain| chain.first());
    let theirs = theirs.ok_or_else(|| io::Error::other("the peer has no certificate"))?;
    let (ours, theirs) = (identity.fingerprint, Fingerprint::of(theirs));
    let exporter = state.export_keying_material([0; 32], EXPORTER, None);
    let exporter = exporter.map_err(io::Error::other)?;
    let (listener, caller) = if listens { (ours, theirs) } else { (theirs, ours) };
    Ok((Binding { exporter, listener, caller }, theirs))
}

#[cfg(test)]
mod tests;
