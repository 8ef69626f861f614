//! The HTTPS listener: TLS 1.2 and 1.3 by rustls, HTTP/1.1 by hyper.

use std::sync::Arc;

use base::limits::ADMIN_HANDSHAKE_TIMEOUT;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio_rustls::TlsAcceptor;

use super::{ACCEPT_PAUSE, Shared, connection};
use crate::api::Peer;
use crate::certificates::answers::ACME_TLS;
use crate::certificates::shown::Shown;

/// Accepts for ever. A connection beyond the limit is closed at once.
pub(super) async fn accept(listener: &TcpListener, tls: Arc<Shown>, shared: &Shared) {
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(place) = shared.places.clone().try_acquire_owned() else { continue };
        let peer = Peer::Remote(from.ip());
        tokio::spawn(handshake(
            stream,
            peer,
            TlsAcceptor::from(tls.config()),
            shared.clone(),
            place,
        ));
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
        // An authority has seen its proof in the handshake and wants no more (RFC 8737 §3).
        if stream.get_ref().1.alpn_protocol() != Some(ACME_TLS) {
            connection(TokioIo::new(stream), peer, shared).await;
        }
    }
    drop(place);
}
