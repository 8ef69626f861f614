//! The HTTPS listener: TLS 1.2 and 1.3 by rustls, HTTP/1.1 by hyper.

use std::sync::Arc;

use base::limits::ADMIN_HANDSHAKE_TIMEOUT;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio_rustls::TlsAcceptor;

use super::{ACCEPT_PAUSE, ListenError, Shared, connection};
use crate::api::Peer;
use crate::state::keys::Identity;

/// Prepares TLS with our certificate.
///
/// # Errors
/// [`ListenError::Certificate`] if it and its key are not usable together.
pub fn acceptor(identity: &Identity) -> Result<TlsAcceptor, ListenError> {
    let bad = |e: &dyn std::fmt::Display| ListenError::Certificate(e.to_string());
    let chain = CertificateDer::pem_slice_iter(identity.certificate_pem.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| bad(&e))?;
    let key = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes()).map_err(|e| bad(&e))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| bad(&e))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|e| bad(&e))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Ours puts the strongest first; all of them encrypt and authenticate in one.
    config.ignore_client_order = true;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Accepts for ever. A connection beyond the limit is closed at once.
pub(super) async fn accept(listener: TcpListener, tls: TlsAcceptor, shared: &Shared) {
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(place) = shared.places.clone().try_acquire_owned() else { continue };
        let peer = Peer::Remote(from.ip());
        tokio::spawn(handshake(stream, peer, tls.clone(), shared.clone(), place));
    }
}

async fn handshake(
    stream: TcpStream,
    peer: Peer,
    tls: TlsAcceptor,
    shared: Shared,
    place: OwnedSemaphorePermit,
) {
    // Small answers, each waited for: no reason to hold one back. Failing is harmless.
    let _ = stream.set_nodelay(true);
    let handshake = tokio::time::timeout(ADMIN_HANDSHAKE_TIMEOUT, tls.accept(stream));
    if let Ok(Ok(stream)) = handshake.await {
        connection(TokioIo::new(stream), peer, shared).await;
    }
    drop(place);
}
