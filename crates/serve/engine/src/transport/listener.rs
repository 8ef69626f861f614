//! Accepts connections and deals them to the cores in turn, within the budget. A connection that is
//! not in use yet is evicted for new ones ([`base::permits`]): its socket is shut down, so that it
//! ends as one does that the peer has closed.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use base::limits::{ACCEPT_PAUSE, KEEPALIVE_IDLE, LISTEN_BACKLOG, SEND_TIME_MAX};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::sync::{mpsc, watch};

use super::budget::{Budgets, CoreBudget, Scoped, ServicePermit};
use super::{send, silence};

/// A connection taken from the listener; gives its permit back when dropped.
pub struct Accepted {
    /// The socket, non-blocking.
    pub stream: TcpStream,
    /// The address of the peer.
    pub peer: SocketAddr,
    /// Its permit.
    pub permit: ServicePermit,
}

impl Accepted {
    /// Runs the connection, made from this, within the part of its client, until it ends. Its
    /// socket is shut down if it loses its permit.
    pub fn run<T: Future<Output = ()> + 'static>(
        self,
        budget: &Rc<CoreBudget>,
        connection: impl FnOnce(Self) -> T,
    ) -> Scoped<()> {
        let (from, permit) = (self.peer.ip().to_canonical(), Arc::clone(self.permit.shared()));
        let (signal, socket) = (Arc::clone(permit.signal()), SocketId::of(&self.stream));
        let (mut connection, of_core) = (Box::pin(connection(self)), Rc::clone(budget));
        let mut is_watching = true;
        let watched = std::future::poll_fn(move |context| {
            if connection.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            if is_watching
                && !of_core.is_connection_kept()
                && signal.poll_revoked(context).is_ready()
            {
                is_watching = false;
                socket.shut_down();
            }
            Poll::Pending
        });
        budget.scoped(from, Some(permit), watched)
    }
}

/// A socket, by its descriptor and its number in the kernel: the descriptor may be in use for
/// another socket when its connection has closed it.
#[derive(Debug, Clone, Copy)]
struct SocketId {
    descriptor: RawFd,
    cookie: Option<u64>,
}

impl SocketId {
    fn of(stream: &TcpStream) -> Self {
        let descriptor = stream.as_raw_fd();
        Self { descriptor, cookie: cookie(descriptor) }
    }

    /// Ends both directions. To be called on the thread of the connection, the only one that
    /// closes the descriptor.
    fn shut_down(self) {
        if self.cookie.is_some() && cookie(self.descriptor) == self.cookie {
            // SAFETY: takes two numbers; the descriptor is that of the socket still.
            let _ = unsafe { libc::shutdown(self.descriptor, libc::SHUT_RDWR) };
        }
    }
}

/// The number of a socket in the kernel, which is never used again (`SO_COOKIE`).
fn cookie(descriptor: RawFd) -> Option<u64> {
    let mut cookie = 0_u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    let option = (libc::SOL_SOCKET, libc::SO_COOKIE);
    // SAFETY: `cookie` has the `length` bytes that the kernel may fill; a descriptor that is not a
    // socket is refused.
    let done = unsafe {
        libc::getsockopt(descriptor, option.0, option.1, (&raw mut cookie).cast(), &raw mut length)
    };
    (done == 0).then_some(cookie)
}

/// Opens a listening socket at `addr`.
///
/// # Errors
/// The error of the system call: the address is not local, is in use, or needs a missing privilege.
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
        let next = async {
            budgets.can_evict().await;
            listener.accept().await
        };
        let accepted = tokio::select! {
            accepted = next => accepted,
            _ = ending.wait_for(|end| *end) => {
                // Closing it would leave it to the copy that a child has which another thread has
                // forked a moment ago: it would continue to accept connections, and keep the port.
                // A port of which the address goes to another machine must refuse no client before.
                if !silence::is_on() {
                    let _ = SockRef::from(&listener).shutdown(std::net::Shutdown::Both);
                }
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
        let Some(permit) = budgets.admit(from) else { continue };
        let Ok(stream) = stream.into_std() else { continue };
        if prepare(SockRef::from(&stream)).is_err() {
            continue;
        }
        turn = (turn + 1) % cores.len().max(1);
        let Some(core) = cores.get(turn) else { return Ok(()) };
        if core.try_send((Accepted { stream, peer, permit }, tag)).is_err() {
            budgets.refuse();
        }
    }
}

/// Prepares the socket of a new connection: no delay for small replies, and few bytes of large ones
/// that wait in the kernel; a vanished peer is noticed by probes when idle and by unacknowledged
/// data when not.
///
/// # Errors
/// The peer has gone already.
pub fn prepare(socket: SockRef<'_>) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE_IDLE))?;
    socket.set_tcp_user_timeout(Some(SEND_TIME_MAX))?;
    send::limit_unsent(socket);
    Ok(())
}

#[cfg(test)]
mod tests;
