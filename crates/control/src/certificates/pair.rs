//! A certificate chain and its key, checked: that they are some, belong together, and are in order.

use base::limits::CERTIFICATE_CHAIN_LENGTH_MAX;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::x509::Facts;
use crate::state::keys::Identity;

/// What is wrong with a chain or a key: one sentence, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct Wrong {
    /// Whether it is the key that is wrong.
    pub key: bool,
    /// What is wrong.
    pub sentence: String,
    /// What to do.
    pub hint: &'static str,
}

/// A chain: the host's certificate, then each that has signed the one before.
pub struct Chain {
    certificates: Vec<CertificateDer<'static>>,
    /// What is in the first, which is the host's.
    pub facts: Facts,
}

/// A chain with the key of its first certificate.
pub struct Pair {
    /// As it was given.
    pub identity: Identity,
    /// What is in the certificate.
    pub facts: Facts,
    /// For TLS.
    pub certified: CertifiedKey,
}

const ORDER: &str = "put the host's certificate first, followed by each issuer";

impl Chain {
    /// Reads PEM.
    ///
    /// # Errors
    /// It holds no certificate, one that cannot be read, or they are not in order.
    pub fn read(pem: &str) -> Result<Self, Wrong> {
        let wrong = |sentence: &str, hint| Wrong { key: false, sentence: sentence.into(), hint };
        let damaged = |_| wrong("a certificate cannot be read", "supply PEM, as sent by the CA");
        let certificates = CertificateDer::pem_slice_iter(pem.as_bytes())
            .take(CERTIFICATE_CHAIN_LENGTH_MAX + 1)
            .collect::<Result<Vec<_>, _>>()
            .map_err(damaged)?;
        if certificates.len() > CERTIFICATE_CHAIN_LENGTH_MAX {
            let sentence = format!("the maximum is {CERTIFICATE_CHAIN_LENGTH_MAX} certificates");
            return Err(wrong(&sentence, "remove certificates that do not belong to the chain"));
        }
        let facts: Option<Vec<Facts>> = certificates.iter().map(|der| Facts::read(der)).collect();
        let facts = facts.ok_or_else(|| wrong("a certificate is damaged", "request it again"))?;
        for pair in facts.windows(2) {
            if !pair[0].is_from(&pair[1]) {
                let sentence = format!(
                    "the certificates are not in order: that of {:?} is not signed by {:?}",
                    pair[0].subject, pair[1].subject
                );
                return Err(wrong(&sentence, ORDER));
            }
        }
        let none = || {
            wrong("it contains no certificate", "supply PEM starting with -----BEGIN CERTIFICATE")
        };
        let facts = facts.into_iter().next().ok_or_else(none)?;
        if facts.names.is_empty() {
            let sentence = "it has no subject alternative names";
            return Err(wrong(sentence, "request one with the names of this host"));
        }
        Ok(Self { certificates, facts })
    }
}

impl Pair {
    /// Reads PEM of both.
    ///
    /// # Errors
    /// One cannot be read, or they do not belong together.
    pub fn read(chain: &str, key: &str) -> Result<Self, Wrong> {
        let Chain { certificates, facts } = Chain::read(chain)?;
        let wrong = |sentence: String, hint| Wrong { key: true, sentence, hint };
        let der = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| {
            let sentence = "the private key cannot be read".to_owned();
            wrong(sentence, "supply unencrypted PEM: PRIVATE KEY, EC or RSA PRIVATE KEY")
        })?;
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let certified =
            CertifiedKey::from_der(certificates, der, &provider).map_err(|e| match e {
                rustls::Error::InconsistentKeys(_) => wrong(
                    "the key does not match the certificate".to_owned(),
                    "supply the key that was used to request the certificate",
                ),
                other => wrong(
                    format!("the key cannot be used: {other}"),
                    "supported: ECDSA with P-256 or P-384, Ed25519, RSA with 2048 bits or more",
                ),
            })?;
        let identity = Identity { certificate_pem: chain.to_owned(), key_pem: key.to_owned() };
        Ok(Self { identity, facts, certified })
    }
}

#[cfg(test)]
pub(crate) mod tests;
