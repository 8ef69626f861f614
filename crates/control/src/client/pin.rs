//! Trust in exactly one certificate, or in what it has signed.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::ClientError;

/// TLS that trusts the first certificate of `pem` as it is, and whatever one of them has signed.
pub(super) fn config(pem: &str) -> Result<Arc<ClientConfig>, ClientError> {
    let bad = |e: &dyn std::fmt::Display| ClientError::Tls(e.to_string());
    let all = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|e| bad(&e))?;
    let pinned = all.first().ok_or_else(|| bad(&"the file contains no certificate"))?.clone();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    // The certificate may be followed by its CA, which will sign the next one.
    for one in all {
        roots.add(one).map_err(|e| bad(&e))?;
    }
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

/// The pinned certificate itself is accepted under any name: the file identifies the server.
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
