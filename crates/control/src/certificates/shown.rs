//! The certificate that the administration presents to clients: the current TLS configuration,
//! exchanged while it is in use. Open connections retain the one they began with.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::answers::{ACME_TLS, Answers};
use super::pair::{Pair, Wrong};
use crate::state::keys::Identity;

/// What is shown.
pub struct Shown {
    answers: Arc<Answers>,
    now: RwLock<(Identity, Arc<ServerConfig>)>,
}

impl Shown {
    /// Shows this certificate.
    ///
    /// # Errors
    /// It and its key are not usable together.
    pub fn new(identity: &Identity) -> Result<Arc<Self>, Wrong> {
        let answers = Arc::new(Answers::default());
        let now = RwLock::new((identity.clone(), config(identity, &answers)?));
        Ok(Arc::new(Self { answers, now }))
    }

    /// Sets another certificate, for connections that begin from now on. The same one is no change:
    /// sessions stay resumable.
    ///
    /// # Errors
    /// The certificate and its key do not match; the current one stays in use.
    pub fn set(&self, identity: &Identity) -> Result<(), Wrong> {
        if self.identity() == *identity {
            return Ok(());
        }
        let config = config(identity, &self.answers)?;
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = (identity.clone(), config);
        Ok(())
    }

    /// The certificate and its key.
    pub fn identity(&self) -> Identity {
        self.now.read().unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// For a connection that begins now.
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner).1)
    }

    /// The challenge responses for a CA.
    pub fn answers(&self) -> &Arc<Answers> {
        &self.answers
    }
}

fn config(identity: &Identity, answers: &Arc<Answers>) -> Result<Arc<ServerConfig>, Wrong> {
    let own = Pair::read(&identity.certificate_pem, &identity.key_pem)?.certified;
    let resolver = Resolver { own: Arc::new(own), answers: Arc::clone(answers) };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let old = |e: rustls::Error| Wrong {
        key: false,
        sentence: format!("TLS is not available: {e}"),
        hint: "this is a server defect",
    };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(old)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = vec![b"http/1.1".to_vec(), ACME_TLS.to_vec()];
    // Ours puts the strongest first; all of them encrypt and authenticate in one.
    config.ignore_client_order = true;
    Ok(Arc::new(config))
}

/// Our certificate for all clients except a CA that validates a challenge.
#[derive(Debug)]
struct Resolver {
    own: Arc<CertifiedKey>,
    answers: Arc<Answers>,
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // RFC 8737 §3: such a client offers this protocol and no other.
        let mut offered = hello.alpn().into_iter().flatten();
        if offered.next() == Some(ACME_TLS) && offered.next().is_none() {
            return self.answers.certificate(hello.server_name()?);
        }
        Some(Arc::clone(&self.own))
    }
}

#[cfg(test)]
mod tests;
