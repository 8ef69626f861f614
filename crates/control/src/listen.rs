//! The listeners of the API: HTTPS and the local socket, on one thread and runtime of their own,
//! so that the request path never shares a scheduler with them.

pub mod https;
pub mod local;
pub mod node;
pub mod places;

use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use base::limits::{
    ADMIN_CONNECTIONS_CLIENT_MAX, ADMIN_CONNECTIONS_MAX, ADMIN_DRAIN_TIMEOUT,
    ADMIN_HANDSHAKE_TIMEOUT, ADMIN_LOCAL_CONNECTIONS_MAX, API_HEAD_MAX,
};
use hyper::rt::{Read, Write};
use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use hyper_util::service::TowerToHyperService;
use tokio::sync::{Semaphore, mpsc, watch};

use self::places::ConnectionLimits;
use crate::api::{Control, router};
use crate::certificates::shown::Shown;

/// Why the API cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The admin address is taken or not ours.
    #[error("cannot listen on {address} for the admin interface")]
    Address {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// The local socket cannot be made.
    #[error("cannot make the local socket {path}")]
    Socket {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The thread or its runtime did not start.
    #[error("cannot start the thread of the admin interface")]
    Thread(#[source] std::io::Error),
}

/// Where to listen.
pub struct ListenConfig {
    /// HTTPS address; port 0 takes a free one.
    pub admin: SocketAddr,
    /// Certificate and key, as they are at each moment.
    pub shown: Arc<Shown>,
    /// Path of the local socket. A left-over of a killed server is replaced: the caller holds the
    /// lock of the state directory.
    pub socket: PathBuf,
}

/// The running listeners. [`Listening::end`] stops them; dropping does the same.
#[derive(Debug)]
pub struct Listening {
    admin: SocketAddr,
    socket: PathBuf,
    places: Arc<ConnectionLimits>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Listening {
    /// The bound HTTPS address.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// The places of connections over the network.
    pub fn places(&self) -> &Arc<ConnectionLimits> {
        &self.places
    }

    /// Stops accepting, gives open requests [`ADMIN_DRAIN_TIMEOUT`], removes the socket.
    pub fn end(mut self) {
        self.stop_and_wait();
    }

    fn stop_and_wait(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by the hook already.
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.socket);
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop_and_wait();
        }
    }
}

/// Binds both listeners and serves `control` on them.
///
/// # Errors
/// As named; nothing is left running then.
pub fn start(control: Arc<Control>, config: ListenConfig) -> Result<Listening, ListenError> {
    let (tcp, admin) = bind_tcp(config.admin)
        .map_err(|source| ListenError::Address { address: config.admin, source })?;
    let unix = local::bind(&config.socket)
        .map_err(|source| ListenError::Socket { path: config.socket.clone(), source })?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_name("control-block")
        .build()
        .map_err(ListenError::Thread)?;
    let (stop, stopped) = watch::channel(false);
    let places =
        Arc::new(ConnectionLimits::new(ADMIN_CONNECTIONS_MAX, ADMIN_CONNECTIONS_CLIENT_MAX));
    let (alive, mut ended) = mpsc::channel(1);
    let shared = Shared {
        router: router(control.clone()),
        places: places.clone(),
        local: Arc::new(Semaphore::new(ADMIN_LOCAL_CONNECTIONS_MAX)),
        ends: Ends { stopped, renewed: control.renewals() },
        _alive: alive,
    };
    let serve = async move {
        serve(tcp, unix, config.shown, &shared).await;
        control.end();
        drop(shared);
        // Nothing is ever sent: this returns when the last connection has dropped its sender.
        // Connections that are open after the timeout are closed.
        let _ = tokio::time::timeout(ADMIN_DRAIN_TIMEOUT, ended.recv()).await;
    };
    let thread = std::thread::Builder::new()
        .name("control".to_owned())
        .spawn(move || {
            runtime.block_on(serve);
            // A query that still runs must not hold up the end.
            runtime.shutdown_timeout(Duration::from_millis(100));
        })
        .map_err(ListenError::Thread)?;
    Ok(Listening { admin, socket: config.socket, places, stop, thread: Some(thread) })
}

fn bind_tcp(address: SocketAddr) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    Ok((listener, bound))
}

/// What every connection needs.
#[derive(Clone)]
struct Shared {
    router: Router,
    places: Arc<ConnectionLimits>,
    local: Arc<Semaphore>,
    ends: Ends,
    /// Dropped with the connection that has it, which is how the end waits for all.
    _alive: mpsc::Sender<()>,
}

/// What ends a connection from this side, after the request that it serves.
#[derive(Clone)]
struct Ends {
    stopped: watch::Receiver<bool>,
    renewed: watch::Receiver<u64>,
}

impl Ends {
    /// Those of a connection that is accepted now.
    fn of_new_connection(&self) -> Self {
        let mut ends = self.clone();
        ends.renewed.mark_unchanged();
        ends
    }

    /// Waits for the first.
    async fn first(mut self) {
        tokio::select! {
            _ = self.stopped.wait_for(|stop| *stop) => {}
            _ = self.renewed.changed() => {}
        }
    }
}

async fn serve(tcp: TcpListener, unix: UnixListener, tls: Arc<Shown>, shared: &Shared) {
    let (Ok(tcp), Ok(unix)) =
        (tokio::net::TcpListener::from_std(tcp), tokio::net::UnixListener::from_std(unix))
    else {
        // Only possible without a runtime or with a blocking socket; both are made above.
        return;
    };
    let mut stopped = shared.ends.stopped.clone();
    tokio::select! {
        () = https::accept(&tcp, tls, shared) => {}
        () = local::accept(&unix, shared) => {}
        _ = stopped.wait_for(|stop| *stop) => {}
    }
    stop_listening(&tcp);
    stop_listening(&unix);
}

/// Ends a listener for all processes that share it. Closing the descriptor is not enough: a child
/// that another thread has just forked has a copy, for which the kernel would continue to accept
/// connections without a server, and the port could not be bound again.
fn stop_listening(listener: &impl AsFd) {
    // SAFETY: the descriptor is open for the length of the call.
    let _ = unsafe { libc::shutdown(listener.as_fd().as_raw_fd(), libc::SHUT_RDWR) };
}

/// Pause after a refused accept: without descriptors, trying at once would only burn a core.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves one connection until it ends, the server does, or connections are renewed.
async fn connection<I>(io: I, router: Router, ends: Ends)
where
    I: Read + Write + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(router);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(ADMIN_HANDSHAKE_TIMEOUT)
        .max_buf_size(API_HEAD_MAX)
        .serve_connection(io, service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        // An error is the peer's: it has disconnected or does not use HTTP.
        _ = connection.as_mut() => return,
        () = ends.first() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Makes a path short enough for a socket address (108 bytes) by way of its open folder, and
/// hands it to `with`.
fn with_short_path<T>(
    path: &Path,
    with: impl FnOnce(&Path) -> std::io::Result<T>,
) -> std::io::Result<T> {
    /// `sun_path` with its closing zero.
    const SOCKET_PATH_MAX: usize = 107;
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return with(path) };
    if path.as_os_str().len() <= SOCKET_PATH_MAX {
        return with(path);
    }
    let dir = std::fs::File::open(dir)?;
    with(&PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name))
}

#[cfg(test)]
mod tests;
