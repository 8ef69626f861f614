//! TLS of a client: which server is believed, and which cipher is asked for.

use super::at::Terms;
use crate::client::ClientError;
use base::text::hex;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore};
use rustls::{SignatureScheme, SupportedCipherSuite, SupportedProtocolVersion, version};
use std::path::Path;
use std::sync::Arc;

/// The authorities of a Debian or Red Hat system.
const SYSTEM_CA: &[&str] =
    &["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// What is shared by all connections to one server: sessions too, which FTP's data connections
/// take up again.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Tls {
    /// For the server `host`.
    ///
    /// # Errors
    /// The terms name a cipher, version or file that there is not.
    pub fn new(host: &str, terms: &Terms) -> Result<Self, ClientError> {
        let wrong = |what: &str, why| ClientError::Target(what.to_owned(), why);
        let mut provider = aws_lc_rs::default_provider();
        if let Some(cipher) = &terms.cipher {
            provider.cipher_suites.retain(|suite| is_cipher(*suite, cipher));
            if provider.cipher_suites.is_empty() {
                return Err(wrong(cipher, "is not a cipher: use aes128-gcm, aes256-gcm, chacha20"));
            }
        }
        let versions: &[&SupportedProtocolVersion] = match terms.tls.as_deref() {
            None => &[&version::TLS13, &version::TLS12],
            Some("1.3") => &[&version::TLS13],
            Some("1.2") => &[&version::TLS12],
            Some(other) => return Err(wrong(other, "is not a TLS version: use 1.2, 1.3")),
        };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| wrong(host, "is not a valid host name"))?;
        let provider = Arc::new(provider);
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(|_| wrong(host, "has a cipher that this TLS version does not support"))?;
        let config = if terms.insecure || terms.pin.is_some() {
            let pin = terms.pin.as_deref().map(normal);
            let verifier =
                PinnedVerifier { pin, algorithms: provider.signature_verification_algorithms };
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        } else {
            builder.with_root_certificates(authorities(terms.ca.as_deref())?)
        };
        Ok(Self { config: Arc::new(config.with_no_client_auth()), name })
    }

    /// A connection that begins.
    ///
    /// # Errors
    /// When the library refuses the name.
    pub fn begin(&self) -> Result<ClientConnection, ClientError> {
        ClientConnection::new(Arc::clone(&self.config), self.name.clone())
            .map_err(|e| ClientError::Protocol(format!("TLS: {e}")))
    }
}

/// What was agreed on, once hands are shaken.
pub fn agreed(connection: &ClientConnection) -> Option<String> {
    let version = match connection.protocol_version()? {
        rustls::ProtocolVersion::TLSv1_3 => "TLS 1.3",
        rustls::ProtocolVersion::TLSv1_2 => "TLS 1.2",
        _ => "TLS",
    };
    let suite = format!("{:?}", connection.negotiated_cipher_suite()?.suite());
    let suite = suite.trim_start_matches("TLS13_").trim_start_matches("TLS_");
    Some(format!("{version} {suite}"))
}

/// `AES_128_GCM` and `aes128-gcm` are the same.
fn is_cipher(suite: SupportedCipherSuite, wanted: &str) -> bool {
    let letters = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    let wanted = letters(wanted);
    !wanted.is_empty() && letters(&format!("{:?}", suite.suite())).contains(&wanted)
}

fn authorities(file: Option<&Path>) -> Result<RootCertStore, ClientError> {
    let system = || SYSTEM_CA.iter().map(Path::new).find(|path| path.exists());
    let Some(file) = file.or_else(system) else {
        return Err(ClientError::Target(
            "this machine".into(),
            "has no CA: add ca=FILE, pin=SHA256, or insecure",
        ));
    };
    let wrong = |e: rustls::pki_types::pem::Error| {
        let what = format!("read the authorities of {}", file.display());
        ClientError::io(what)(std::io::Error::other(e.to_string()))
    };
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(wrong)? {
        // A bundle may hold some that this library does not take; others still count.
        let _ = store.add(certificate.map_err(wrong)?);
    }
    Ok(store)
}

/// A fingerprint without what people put between its digits.
fn normal(pin: &str) -> String {
    pin.chars().filter(|c| !matches!(c, ':' | ' ')).map(|c| c.to_ascii_lowercase()).collect()
}

/// SHA-256 of a certificate in hexadecimal, as `openssl x509 -fingerprint -sha256` without colons.
pub fn fingerprint(certificate: &[u8]) -> String {
    hex(&aws_lc_rs_digest(certificate))
}

fn aws_lc_rs_digest(bytes: &[u8]) -> Vec<u8> {
    ::aws_lc_rs::digest::digest(&::aws_lc_rs::digest::SHA256, bytes).as_ref().to_vec()
}

/// Believes the one certificate that is known, or every one. That the server holds its key is
/// checked in either case.
#[derive(Debug)]
struct PinnedVerifier {
    pin: Option<String>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for PinnedVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let shown = fingerprint(end_entity);
        match &self.pin {
            Some(pin) if *pin != shown => Err(Error::General(format!(
                "the server's certificate does not match; its pin is {shown}"
            ))),
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
