//! The local socket: plain HTTP, with the peer's uid from the kernel.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use axum::extract::Extension;
use hyper_util::rt::TokioIo;

use super::{ACCEPT_PAUSE, Shared, connection, with_short_path};
use crate::api::Peer;
use crate::state::effective_uid;
use crate::tree::Connection;

/// Binds the socket, mode 0600, in place of a left-over.
///
/// # Errors
/// The error of the operating system.
pub fn bind(path: &Path) -> std::io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let listener = with_short_path(path, |short| UnixListener::bind(short))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Connects to a server's socket.
///
/// # Errors The error of the operating system; refused or not found means that no server runs
/// there.
pub fn connect(path: &Path) -> std::io::Result<UnixStream> {
    with_short_path(path, |short| UnixStream::connect(short))
}

/// Accepts for ever. Only root and the serving user are let in (`SO_PEERCRED`).
pub(super) async fn accept(listener: &tokio::net::UnixListener, shared: &Shared) {
    let us = effective_uid();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(uid) = stream.peer_cred().map(|cred| cred.uid()) else { continue };
        if uid != 0 && uid != us {
            continue;
        }
        let Ok(place) = shared.local.clone().try_acquire_owned() else { continue };
        let (shared, ends) = (shared.clone(), shared.ends.of_new_connection());
        tokio::spawn(async move {
            let router = shared.router.clone().layer(Extension(Peer::Local { uid }));
            let router = router.layer(Extension(Connection::accepted(None)));
            connection(TokioIo::new(stream), router, ends).await;
            drop(place);
        });
    }
}
