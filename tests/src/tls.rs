//! RPC with TLS (RFC 9289) for clients that do not speak it: a tunnel that probes, shakes hands and
//! then hands the bytes on; and certificates for both ends.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use wire::nfs3::{NFS_PROGRAM, NFS_V3};
use wire::rpc::{AUTH_TLS, Auth, CallHeader, STARTTLS, begin_record, end_record};
use wire::xdr::{Encode, Writer};

/// Longest wait for the probe's answer and the handshake.
const PATIENCE: Duration = crate::patience(20);
/// Bytes of the reply to a probe: marker, xid, REPLY, accepted, verifier, SUCCESS.
const PROBED: usize = 4 + 12 + 16 + 4;

/// A CA that signs certificates, for as long as the test runs.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// Certificate and key, PEM.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

impl Authority {
    /// A new one.
    ///
    /// # Panics
    /// Without randomness.
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        Self { issuer: CertifiedIssuer::self_signed(params, key).expect("an authority") }
    }

    /// Its own certificate, PEM.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate for both sides, for `localhost`.
    ///
    /// # Panics
    /// Without randomness.
    pub fn sign(&self) -> Pair {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        params.distinguished_name.push(DnType::CommonName, "plimsoll test");
        let made = params.signed_by(&key, &self.issuer).expect("a certificate");
        Pair { certificate: made.pem(), key: key.serialize_pem() }
    }
}

impl Pair {
    /// Writes both below `dir`; returns their paths.
    ///
    /// # Panics
    /// When they cannot be written.
    pub fn write(&self, dir: &Path, name: &str) -> (PathBuf, PathBuf) {
        let at = |what| dir.join(format!("{name}-{what}.pem"));
        let (certificate, key) = (at("certificate"), at("key"));
        std::fs::write(&certificate, &self.certificate).expect("written");
        std::fs::write(&key, &self.key).expect("written");
        (certificate, key)
    }
}

/// The certificate that a server with this state directory has made for itself, PEM.
///
/// # Panics
/// When there is none.
pub fn own_certificate(state: &Path) -> String {
    std::fs::read_to_string(state.join("certificate.pem")).expect("a certificate")
}

/// What a client believes (PEM) and shows; it speaks RPC over TLS (RFC 9289), unless it is given
/// another protocol.
///
/// # Panics
/// When that is no certificate.
pub fn client(roots: &str, shown: Option<&Pair>) -> ClientConfig {
    let mut store = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(roots.as_bytes()) {
        store.add(root.expect("a certificate")).expect("a root");
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(store);
    let mut config = match shown {
        None => builder.with_no_client_auth(),
        Some(Pair { certificate, key }) => {
            let chain = CertificateDer::pem_slice_iter(certificate.as_bytes());
            let chain = chain.collect::<Result<_, _>>().expect("certificates");
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
            builder.with_client_auth_cert(chain, key).expect("a pair")
        }
    };
    config.alpn_protocols = vec![b"sunrpc".to_vec()];
    config
}

/// A client that accepts every certificate, for a peer that does not care which server it reaches.
///
/// # Panics
/// When that is no certificate.
pub fn careless(shown: &Pair) -> ClientConfig {
    let mut config = client("", Some(shown));
    config.alpn_protocols.clear();
    config.dangerous().set_certificate_verifier(Arc::new(Careless));
    config
}

#[derive(Debug)]
struct Careless;

impl ServerCertVerifier for Careless {
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
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        aws_lc_rs::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

/// Probes and shakes hands, as RFC 9289 §4.1 and §5 have it.
///
/// # Errors
/// The server does not offer TLS, or one side does not like the other.
pub fn secure(server: SocketAddr, config: &ClientConfig) -> io::Result<Stream> {
    let mut sock = TcpStream::connect(server)?;
    sock.set_nodelay(true)?;
    sock.set_read_timeout(Some(PATIENCE))?;
    let mut probe = Vec::new();
    let mut w = Writer::new(&mut probe);
    let mark = begin_record(&mut w);
    let cred = Auth::Raw { flavor: AUTH_TLS, body: &[] };
    CallHeader { xid: 1, prog: NFS_PROGRAM, vers: NFS_V3, proc: 0, cred, verf: Auth::None }
        .encode(&mut w);
    end_record(&mut w, mark);
    sock.write_all(&probe)?;
    let mut reply = [0; PROBED];
    sock.read_exact(&mut reply)?;
    if !reply.windows(STARTTLS.len()).any(|part| part == STARTTLS) {
        return Err(io::Error::other("the server does not offer TLS"));
    }
    let name = "localhost".try_into().map_err(io::Error::other)?;
    let mut tls =
        ClientConnection::new(Arc::new(config.clone()), name).map_err(io::Error::other)?;
    while tls.is_handshaking() {
        tls.complete_io(&mut sock)?;
    }
    Ok(Stream { tls, sock })
}

/// A session and its socket.
#[derive(Debug)]
pub struct Stream {
    tls: ClientConnection,
    sock: TcpStream,
}

impl Stream {
    /// Whether the server ends the session without a word.
    pub fn is_over(mut self) -> bool {
        let mut rest = Vec::new();
        !rustls::Stream::new(&mut self.tls, &mut self.sock)
            .read_to_end(&mut rest)
            .is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock)
    }
}

/// Takes plain connections and carries each to the server over TLS. Ends with the test.
#[derive(Debug)]
pub struct Tunnel {
    /// Where clients connect to.
    pub addr: SocketAddr,
}

impl Tunnel {
    /// A tunnel to `server`.
    ///
    /// # Panics
    /// Without a port to listen on.
    pub fn start(server: SocketAddr, config: ClientConfig) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let addr = listener.local_addr().expect("its address");
        std::thread::spawn(move || {
            for plain in listener.incoming().map_while(Result::ok) {
                // If its session fails, a client finds its connection closed.
                if let Ok(stream) = secure(server, &config) {
                    carry(plain, stream);
                }
            }
        });
        Self { addr }
    }
}

fn carry(plain: TcpStream, Stream { tls, sock }: Stream) {
    let _set = (plain.set_nodelay(true), sock.set_read_timeout(None));
    let tls = Arc::new(Mutex::new(tls));
    let (up_tls, down_tls) = (tls.clone(), tls);
    let (Ok(up_plain), Ok(up_sock)) = (plain.try_clone(), sock.try_clone()) else { return };
    std::thread::spawn(move || {
        let _ended = up(&up_plain, &up_sock, &up_tls);
        let _gone = up_sock.shutdown(Shutdown::Both);
    });
    std::thread::spawn(move || {
        let _ended = down(&plain, &sock, &down_tls);
        let _gone = plain.shutdown(Shutdown::Both);
    });
}

fn lock(tls: &Mutex<ClientConnection>) -> MutexGuard<'_, ClientConnection> {
    tls.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From the client to the server.
fn up(
    mut plain: &TcpStream,
    mut sock: &TcpStream,
    tls: &Mutex<ClientConnection>,
) -> io::Result<()> {
    let mut bytes = vec![0; 48 << 10];
    let mut wire = Vec::new();
    loop {
        let n = plain.read(&mut bytes)?;
        if n == 0 {
            return Ok(());
        }
        {
            let mut tls = lock(tls);
            tls.writer().write_all(&bytes[..n])?;
            while tls.wants_write() {
                tls.write_tls(&mut wire)?;
            }
        }
        sock.write_all(&wire)?;
        wire.clear();
    }
}

/// From the server to the client.
fn down(
    mut plain: &TcpStream,
    mut sock: &TcpStream,
    tls: &Mutex<ClientConnection>,
) -> io::Result<()> {
    let mut wire = vec![0; 64 << 10];
    let mut bytes = Vec::new();
    loop {
        let n = sock.read(&mut wire)?;
        let mut rest = &wire[..n];
        while !rest.is_empty() {
            let mut tls = lock(tls);
            tls.read_tls(&mut rest)?;
            let state = tls.process_new_packets().map_err(io::Error::other)?;
            let start = bytes.len();
            bytes.resize(start + state.plaintext_bytes_to_read(), 0);
            tls.reader().read_exact(&mut bytes[start..])?;
        }
        if n == 0 {
            return Ok(());
        }
        plain.write_all(&bytes)?;
        bytes.clear();
    }
}
