//! TLS for RPC (RFC 9289), FTP (RFC 4217) and HTTP: own certificate, trusted CAs, and why a
//! session failed.
//!
//! The sessions themselves are in [`session`], which does no I/O; [`resume`] holds what makes one
//! the continuation of another; [`name`] reads the subject of a certificate.

pub mod name;
mod resume;
pub(super) mod session;

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};

/// The protocol that both sides must agree on (RFC 9289 §8.2).
pub const ALPN: &[u8] = b"sunrpc";

const NEWEST: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];
const BOTH: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13, &rustls::version::TLS12];

/// How a service speaks TLS.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    /// Protocols to agree on (RFC 7301), the best first.
    pub alpn: &'static [&'static [u8]],
    /// Whether a client must ask for one of them.
    pub alpn_needed: bool,
    /// Whether TLS 1.2 is offered too, for clients without a newer version.
    pub tls12: bool,
    /// Whether a client may come back without a whole handshake.
    pub resume: bool,
}

impl Offer {
    /// Only TLS 1.3, without resumption: a connection lives for days, and a ticket would outlive
    /// what was verified when it was given out.
    pub const RPC: Self = Self { alpn: &[ALPN], alpn_needed: true, tls12: false, resume: false };
    /// Without resumption, but for [`Tls::for_one_client`].
    pub const FTP: Self = Self { alpn: &[], alpn_needed: false, tls12: true, resume: false };
    /// HTTP/2 and HTTP/1.1 (RFC 9113 §3.2); connections are short.
    pub const HTTP: Self =
        Self { alpn: &[b"h2", b"http/1.1"], alpn_needed: false, tls12: true, resume: true };
}

/// The certificate chain and key of a server and the CAs that it trusts, as PEM.
#[derive(Clone, Default)]
pub struct Credentials {
    /// Its certificate, with those between it and a root behind it.
    pub certificate: String,
    /// Its private key.
    pub key: String,
    /// Roots for clients' certificates; without them no client is asked for one.
    pub client_ca: Option<String>,
}

/// What is wrong with them: the administrator's fault.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// There is none, or it is no PEM.
    #[error("the certificate cannot be read: {0}")]
    Certificate(String),
    /// There is none, or it is no PEM.
    #[error("the private key cannot be read: {0}")]
    Key(String),
    /// They do not belong together, or the key is of a kind that is not known.
    #[error("the certificate does not match the key")]
    Pair(#[source] rustls::Error),
    /// There is none, or it is no PEM.
    #[error("the client CA certificates cannot be read: {0}")]
    Authorities(String),
    /// The library lacks what we ask for: our fault.
    #[error("TLS is not available")]
    Version(#[source] rustls::Error),
}

/// TLS as it is offered. What it shows may be exchanged while it is in use.
#[derive(Debug)]
pub struct Tls {
    config: Mutex<Arc<ServerConfig>>,
    offer: Offer,
    failure: Mutex<Option<(IpAddr, String)>>,
}

impl Tls {
    /// Offers TLS for RPC with these.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn new(credentials: &Credentials) -> Result<Arc<Self>, CredentialsError> {
        Self::offering(credentials, Offer::RPC)
    }

    /// Offers TLS for FTP with these.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn for_ftp(credentials: &Credentials) -> Result<Arc<Self>, CredentialsError> {
        Self::offering(credentials, Offer::FTP)
    }

    /// Offers TLS with these, as `offer` specifies.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn offering(
        credentials: &Credentials,
        offer: Offer,
    ) -> Result<Arc<Self>, CredentialsError> {
        let config = Mutex::new(config(credentials, offer)?);
        Ok(Arc::new(Self { config, offer, failure: Mutex::default() }))
    }

    /// Exchanges them; they hold for connections that begin from now on.
    ///
    /// # Errors
    /// They cannot be used; those before remain in effect.
    pub fn set(&self, credentials: &Credentials) -> Result<(), CredentialsError> {
        let config = config(credentials, self.offer)?;
        *lock(&self.config) = config;
        Ok(())
    }

    /// The latest failure of a session, if there was one since it was last taken.
    pub fn take_failure(&self) -> Option<(IpAddr, String)> {
        lock(&self.failure).take()
    }

    /// Records a failure for administrators.
    pub fn note_failure(&self, peer: IpAddr, why: String) {
        *lock(&self.failure) = Some((peer, why));
    }

    /// Whether a client must ask for a protocol.
    pub(super) fn needs_alpn(&self) -> bool {
        self.offer.alpn_needed
    }

    pub(super) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&lock(&self.config))
    }

    /// As it is offered to one client: its connections may resume sessions of each other, and no
    /// other ones.
    pub fn for_one_client(&self) -> Arc<ServerConfig> {
        let mut config = ServerConfig::clone(&self.config());
        config.session_storage = Arc::new(resume::Sessions::default());
        config.send_tls13_tickets = TICKETS;
        Arc::new(config)
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tickets given out with each session of TLS 1.3, where they are: a client may use one for each
/// of two connections.
const TICKETS: usize = 2;

fn config(from: &Credentials, offer: Offer) -> Result<Arc<ServerConfig>, CredentialsError> {
    let chain = certificates(&from.certificate).map_err(CredentialsError::Certificate)?;
    let key = PrivateKeyDer::from_pem_slice(from.key.as_bytes())
        .map_err(|e| CredentialsError::Key(e.to_string()))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(if offer.tls12 { BOTH } else { NEWEST })
        .map_err(CredentialsError::Version)?;
    let builder = match &from.client_ca {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let wrong = CredentialsError::Authorities;
            let mut roots = RootCertStore::empty();
            for root in certificates(pem).map_err(wrong)? {
                roots.add(root).map_err(|e| wrong(e.to_string()))?;
            }
            // Shares that require a certificate check for it; a client without one may use the
            // others.
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(|e| wrong(e.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_single_cert(chain, key).map_err(CredentialsError::Pair)?;
    config.alpn_protocols = offer.alpn.iter().map(|name| name.to_vec()).collect();
    // The list is ours, the best first; a client of old may have put a worse one before it.
    config.ignore_client_order = true;
    if offer.resume {
        // Keys of its own, changed every few hours; tickets are good on any core.
        config.ticketer =
            rustls::crypto::aws_lc_rs::Ticketer::new().map_err(CredentialsError::Version)?;
    } else {
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(Arc::new(config))
}

/// All certificates in a text; at least one.
fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|e| e.to_string())?;
    if all.is_empty() { Err("the file contains none".to_owned()) } else { Ok(all) }
}

/// Why a session could not be set up, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Bytes came behind the probe before its reply announced TLS (RFC 9289 §4.1).
    #[error("data came between the probe and its reply")]
    Early,
    /// What came is not TLS, or not as we want it: version, certificate, protocol.
    #[error(transparent)]
    Protocol(#[from] rustls::Error),
    /// The client does not say that it wants to speak RPC.
    #[error("the client did not offer the ALPN protocol sunrpc")]
    Alpn,
    /// The handshake takes too long.
    #[error("handshake timeout")]
    TooSlow,
    /// It went away during the handshake.
    #[error("the peer closed the connection during the handshake")]
    Gone,
    /// A message of the handshake does not fit the buffer.
    #[error("a message of the handshake is too long")]
    TooLong,
    /// The session came to a state that it must not: our fault.
    #[error("unexpected state of the session")]
    State,
    /// The socket failed.
    #[error("socket: {0}")]
    Io(#[from] io::Error),
}
