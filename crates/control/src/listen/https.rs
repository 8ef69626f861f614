//! The HTTPS listener: TLS 1.2 and 1.3 by rustls, HTTP/1.1 by hyper.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::Extension;
use base::limits::{ADMIN_HANDSHAKE_TIMEOUT, KEEPALIVE_IDLE, SEND_TIME_MAX};
use hyper_util::rt::TokioIo;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::places::ConnectionPermit;
use super::{ACCEPT_PAUSE, Shared, connection};
use crate::api::Peer;
use crate::certificates::answers::ACME_TLS;
use crate::certificates::shown::Shown;
use crate::tree::Connection;

/// Accepts for ever. A connection that gets no place is closed at once.
pub(super) async fn accept(listener: &TcpListener, tls: Arc<Shown>, shared: &Shared) {
    loop {
        shared.places.can_evict().await;
        let Ok((stream, from)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let from = from.ip();
        let Some(place) = shared.places.take(from) else { continue };
        let (tls, mut shared) = (TlsAcceptor::from(tls.config()), shared.clone());
        shared.ends = shared.ends.of_new_connection();
        tokio::spawn(async move {
            tokio::select! {
                () = handshake(stream, from, tls, &shared, &place) => {}
                // A newcomer has got the place.
                () = place.revoked() => {}
            }
        });
    }
}

fn watch_client(socket: SockRef<'_>) -> std::io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE_IDLE))?;
    socket.set_tcp_user_timeout(Some(SEND_TIME_MAX))
}

async fn handshake(
    stream: TcpStream,
    from: IpAddr,
    tls: TlsAcceptor,
    shared: &Shared,
    place: &ConnectionPermit,
) {
    let accepted = Connection::accepted(None);
    // As those of services: small answers are not held back, and the place of a client that has
    // vanished, which may read a live stream, is free again soon. Failing is harmless.
    let _ = watch_client(SockRef::from(&stream));
    let handshake = tokio::time::timeout(ADMIN_HANDSHAKE_TIMEOUT, tls.accept(stream));
    let Ok(Ok(stream)) = handshake.await else { return };
    // A CA has validated the challenge in the handshake and sends no request (RFC 8737 §3).
    if stream.get_ref().1.alpn_protocol() == Some(ACME_TLS) {
        return;
    }
    let local = stream.get_ref().0.local_addr().ok().map(|at| at.ip().to_canonical());
    let router = shared.router.clone().layer(Extension(Connection { local, ..accepted }));
    let router = router.layer(Extension(Peer::Remote(from))).layer(Extension(place.key()));
    connection(TokioIo::new(stream), router, shared.ends.clone()).await;
}

#[cfg(test)]
mod tests;
