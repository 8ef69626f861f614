//! Accepts connections and deals them to the cores in turn, within the budget.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use base::limits::{ACCEPT_PAUSE, KEEPALIVE_IDLE, LISTEN_BACKLOG, SEND_TIME_MAX};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::sync::{mpsc, watch};

use super::budget::{Budgets, ServicePermit};
use super::send;

/// A connection taken from the listener; gives its permit back when dropped.
pub struct Accepted {
    /// The socket, non-blocking.
    pub stream: TcpStream,
    /// The address of the peer.
    pub peer: SocketAddr,
    /// Its permit.
    pub permit: ServicePermit,
}

/// Opens a listening socket at `addr`.
///
/// # Errors
/// What the kernel says: the address is not ours, is in use, or needs a right that we lack.
pub fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(LISTEN_BACKLOG)?;
    Ok(socket.into())
}

/// Accepts until `ending` turns true, dealing to `cores` in turn, with the tag of the listener. A
/// connection without a permit, or that its core does not take, is closed and counted.
///
/// # Errors
/// When the socket cannot be registered with this runtime.
pub async fn accept<Tag: Copy>(
    (listener, tag): (TcpListener, Tag),
    cores: Vec<mpsc::Sender<(Accepted, Tag)>>,
    budgets: Arc<Budgets>,
    mut ending: watch::Receiver<bool>,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let mut turn = 0;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = ending.wait_for(|end| *end) => {
                // Closing it would leave it to the copy that a child has which another thread has
                // forked a moment ago: it would continue to accept connections, and keep the port.
                let _ = SockRef::from(&listener).shutdown(std::net::Shutdown::Both);
                return Ok(());
            }
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(_) => {
                // Out of descriptors, or the peer has gone: the socket itself is still good.
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let from = peer.ip().to_canonical();
        let Some(permit) = budgets.connect(from) else { continue };
        let Ok(stream) = prepare(stream) else { continue };
        turn = (turn + 1) % cores.len().max(1);
        let Some(core) = cores.get(turn) else { return Ok(()) };
        if core.try_send((Accepted { stream, peer, permit }, tag)).is_err() {
            budgets.refuse();
        }
    }
}

/// No delay for small replies, and few bytes of large ones that wait in the kernel; a vanished peer
/// is noticed by probes when idle and by unacknowledged data when not.
fn prepare(stream: tokio::net::TcpStream) -> io::Result<TcpStream> {
    let stream = stream.into_std()?;
    let socket = SockRef::from(&stream);
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE_IDLE))?;
    socket.set_tcp_user_timeout(Some(SEND_TIME_MAX))?;
    send::limit_unsent(SockRef::from(&stream));
    Ok(stream)
}

#[cfg(test)]
mod tests;
