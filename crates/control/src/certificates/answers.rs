//! Challenge responses that prove control of a name, while a CA validates them: over TLS on the
//! port of the administration (RFC 8737), or over HTTP on a port of their own (RFC 8555 §8.3).

mod http;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

pub use http::serve;

/// The protocol by which a CA validates a challenge.
pub const ACME_TLS: &[u8] = b"acme-tls/1";

/// The proofs that there are now.
#[derive(Debug, Default)]
pub struct Answers(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// By the name in the request of the CA.
    certificates: BTreeMap<String, Arc<CertifiedKey>>,
    /// By token.
    texts: BTreeMap<String, String>,
}

/// A proof; it goes with this value.
#[derive(Debug)]
pub struct Answer {
    answers: Arc<Answers>,
    name: String,
}

impl Answers {
    /// Responds for `name` (a host's name or an address) with `digest` over TLS, until the returned
    /// value is dropped.
    ///
    /// # Errors
    /// No certificate can be made for such a name.
    pub fn over_tls(self: &Arc<Self>, name: &str, digest: &[u8]) -> Result<Answer, String> {
        let made = proof(name, digest)?;
        let name = asked_as(name);
        self.lock().certificates.insert(name.clone(), Arc::new(made));
        Ok(Answer { answers: Arc::clone(self), name })
    }

    /// Responds for `token` with `text` over HTTP, until the returned value is dropped.
    pub fn over_http(self: &Arc<Self>, token: &str, text: &str) -> Answer {
        self.lock().texts.insert(token.to_owned(), text.to_owned());
        Answer { answers: Arc::clone(self), name: token.to_owned() }
    }

    /// The certificate for a client that requests `name`.
    pub(super) fn certificate(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        self.lock().certificates.get(&name.to_ascii_lowercase()).cloned()
    }

    fn text(&self, token: &str) -> Option<String> {
        self.lock().texts.get(token).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let mut inner = self.answers.lock();
        inner.certificates.remove(&self.name);
        inner.texts.remove(&self.name);
    }
}

/// RFC 8737 §3: a certificate for the name alone, with the digest in it.
fn proof(name: &str, digest: &[u8]) -> Result<CertifiedKey, String> {
    let failed = |e: &dyn std::fmt::Display| {
        format!("cannot create the challenge certificate for {name}: {e}")
    };
    if digest.len() != 32 {
        return Err(failed(&"a digest has 32 bytes"));
    }
    let key = KeyPair::generate().map_err(|e| failed(&e))?;
    let mut params = CertificateParams::new(vec![name.to_owned()]).map_err(|e| failed(&e))?;
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let made = params.self_signed(&key).map_err(|e| failed(&e))?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let key = provider.key_provider.load_private_key(key).map_err(|e| failed(&e))?;
    // Without checking the key against the certificate: the check would refuse the critical
    // extension, which only a CA understands.
    Ok(CertifiedKey::new(vec![made.der().clone()], key))
}

/// The name in the request of a CA: an address by its name in the reverse tree (RFC 8738 §6).
fn asked_as(name: &str) -> String {
    match name.parse::<IpAddr>() {
        Err(_) => name.trim_end_matches('.').to_ascii_lowercase(),
        Ok(IpAddr::V4(address)) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        Ok(IpAddr::V6(address)) => {
            let nibbles =
                address.octets().into_iter().rev().flat_map(|byte| [byte & 15, byte >> 4]);
            let name: String = nibbles.map(|nibble| format!("{nibble:x}.")).collect();
            format!("{name}ip6.arpa")
        }
    }
}

#[cfg(test)]
mod tests;
