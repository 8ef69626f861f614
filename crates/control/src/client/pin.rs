//! Trust in exactly one certificate, or in what it has signed.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::ClientError;

/// TLS that trusts the first certificate of `pem`.
pub(super) fn config(pem: &str) -> Result<Arc<ClientConfig>, ClientError> {
    let bad = |e: &dyn std::fmt::Display| ClientError::Tls(e.to_string());
    let pinned = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|e| bad(&e))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(pinned.clone()).map_err(|e| bad(&e))?;
    let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|e| bad(&e))?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| bad(&e))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pin { pinned, chain }))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// The pinned certificate itself is good under any name: the file says which server is meant.
#[derive(Debug)]
struct Pin {
    pinned: CertificateDer<'static>,
    chain: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for Pin {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if *shown == self.pinned {
            return Ok(ServerCertVerified::assertion());
        }
        self.chain.verify_server_cert(shown, between, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}
