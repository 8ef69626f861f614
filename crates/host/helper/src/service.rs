//! The socket of the helper: users that may connect, one thread for each connection, the log.

use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::limits::ACCEPT_PAUSE;
use host_hardware::smart;
use host_pools::keeper::Keeper as Pools;
use host_pools::request::{PoolReply, PoolRequest};

use crate::appear;
use crate::keeper::{Keeper, Refusal};
use crate::request::{REQUEST_MAX, Reply, Request, receive, send};
use crate::sys;

/// Connections at the same time: the server has one, commands have one for a moment.
pub const HELPER_CONNECTIONS_MAX: usize = 16;

/// The helper.
#[derive(Clone)]
pub struct Helper {
    /// That of the network; a child that is for pools has none.
    keeper: Option<Arc<Mutex<Keeper>>>,
    /// That of the pools; a child that is for the network has none.
    pools: Option<Arc<Pools>>,
    /// The user of the service; root may connect, too.
    user: u32,
    connections: Arc<AtomicUsize>,
}

impl Helper {
    /// One that root and `user` may connect to.
    pub fn new(keeper: Keeper, user: u32) -> Self {
        let connections = Arc::new(AtomicUsize::new(0));
        Self { keeper: Some(Arc::new(Mutex::new(keeper))), pools: None, user, connections }
    }

    /// One that has pools only, for the parent.
    pub fn of_pools(pools: Arc<Pools>) -> Self {
        Self { keeper: None, pools: Some(pools), user: 0, connections: Arc::default() }
    }

    /// With pools.
    pub fn with_pools(self, pools: Arc<Pools>) -> Self {
        Self { pools: Some(pools), ..self }
    }

    /// Configures devices of the network as they appear, from now on.
    ///
    /// # Errors
    /// The operating system's.
    pub fn follow(&self) -> io::Result<()> {
        self.keeper.iter().try_for_each(|keeper| appear::follow(keeper.clone()))
    }

    /// Binds the socket, in place of a left-over, for root and the user.
    ///
    /// # Errors
    /// The operating system's.
    pub fn bind(&self, path: &Path) -> io::Result<UnixListener> {
        match std::fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        if self.user != sys::effective_uid() {
            chown(path, Some(self.user), None)?;
        }
        Ok(listener)
    }

    /// Accepts connections for ever. What goes wrong with one connection, or passes with time (no
    /// descriptors left, no memory), does not end it.
    ///
    /// # Errors
    /// The listener is none.
    pub fn listen(&self, listener: &UnixListener) -> io::Result<()> {
        self.accept_from(|| listener.accept().map(|(stream, _)| stream))
    }

    fn accept_from(&self, mut accept: impl FnMut() -> io::Result<UnixStream>) -> io::Result<()> {
        let mut failed = false;
        loop {
            let done = accept().and_then(|stream| self.begin(stream));
            match &done {
                Ok(()) => failed = false,
                Err(e) if is_the_listener(e) => return done,
                Err(e) if is_the_peer(e) => {}
                Err(e) => {
                    // Once, not at each attempt.
                    if !std::mem::replace(&mut failed, true) {
                        base::error!("host", "no connection is accepted: {e}");
                    }
                    std::thread::sleep(ACCEPT_PAUSE);
                }
            }
        }
    }

    /// Serves a connection in a thread of its own, if its user may connect.
    fn begin(&self, stream: UnixStream) -> io::Result<()> {
        match sys::peer(&stream) {
            Ok(uid) if uid == 0 || uid == self.user => {}
            Ok(uid) => {
                base::warning!("host", "a connection of the user {uid} is refused");
                return Ok(());
            }
            Err(_) => return Ok(()),
        }
        let Some(place) = self.place() else {
            base::warning!(
                "host",
                "more than {HELPER_CONNECTIONS_MAX} connections: one is refused"
            );
            return Ok(());
        };
        let helper = self.clone();
        let serve = move || {
            let _place = place;
            helper.serve(stream);
        };
        std::thread::Builder::new().name("connection".to_owned()).spawn(serve).map(drop)
    }

    fn place(&self) -> Option<Connection> {
        let place = Connection(Arc::clone(&self.connections));
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        (before < HELPER_CONNECTIONS_MAX).then_some(place)
    }

    /// Serves one connection to its end. A change that was made over it and still waits is taken
    /// back then.
    pub fn serve(&self, mut stream: UnixStream) {
        let mut made = None;
        loop {
            let bytes = match receive(&mut stream, REQUEST_MAX) {
                Ok(Some(bytes)) => bytes,
                Ok(None) => break,
                Err(e) => {
                    base::warning!("host", "a connection is closed: {e}");
                    break;
                }
            };
            let reply = self.answer(&bytes);
            if let Reply::Applied { change: Some(change), .. } = reply {
                made = Some(change);
            }
            if send(&mut stream, &reply).is_err() {
                break;
            }
        }
        if let (Some(change), Ok(mut keeper)) = (made, self.keeper()) {
            keeper.leave(change);
        }
    }

    /// Does what a message requests.
    pub fn answer(&self, bytes: &[u8]) -> Reply {
        let request = match Request::parse(bytes) {
            Ok(request) => request,
            Err(why) => {
                base::warning!("host", "a message of {} bytes is refused: {why}", bytes.len());
                return Reply::Failed { why };
            }
        };
        let name = request.name();
        let reply = self.act(request);
        match &reply {
            Reply::Failed { why } => base::warning!("host", "{name}: {why}"),
            Reply::Wrong(list) => {
                base::info!("host", "{name}: {} properties are wrong", list.len())
            }
            Reply::NetworkStatus(_) | Reply::DiskHealth(_) => base::debug!("host", "{name}"),
            Reply::Pools(reply) => match reply.as_ref() {
                PoolReply::Done(sentence) => base::info!("host", "{name}: {sentence}"),
                _ => base::debug!("host", "{name}"),
            },
            _ => base::info!("host", "{name}: done"),
        }
        reply
    }

    fn act(&self, request: Request) -> Reply {
        let done = match request {
            // A disk may take a minute, for which the network does not wait.
            Request::DiskHealth { disk } => smart::run(&disk)
                .map(Reply::DiskHealth)
                .map_err(|e| Refusal::Conflict(e.to_string())),
            Request::Pools(request) => self.act_on_pools(request),
            other => self.act_on_network(other),
        };
        done.unwrap_or_else(Reply::from)
    }

    fn act_on_pools(&self, request: PoolRequest) -> Result<Reply, Refusal> {
        let elsewhere = || Refusal::Conflict("this helper is not for pools".to_owned());
        let pools = self.pools.as_ref().ok_or_else(elsewhere)?;
        let reply = pools.answer(request).map_err(|e| Refusal::Conflict(e.to_string()))?;
        Ok(Reply::Pools(Box::new(reply)))
    }

    fn act_on_network(&self, request: Request) -> Result<Reply, Refusal> {
        let mut keeper = self.keeper()?;
        Ok(match request {
            Request::NetworkStatus {} => Reply::NetworkStatus(Box::new(keeper.status()?)),
            Request::NetworkPlan(wanted) => Reply::Planned { steps: keeper.plan(&wanted)? },
            Request::NetworkApply { wanted, seconds } => {
                let (change, steps) = keeper.apply(&wanted, seconds)?;
                Reply::Applied { change, steps }
            }
            Request::NetworkConfirm { change } => {
                keeper.confirm(change)?;
                Reply::Done
            }
            Request::NetworkTakeBack { change } => {
                keeper.take_back(change)?;
                Reply::Done
            }
            Request::DiskHealth { .. } | Request::Pools(_) => {
                return Err(Refusal::Conflict("it is not a request on the network".to_owned()));
            }
        })
    }

    fn keeper(&self) -> Result<MutexGuard<'_, Keeper>, Refusal> {
        let elsewhere = || Refusal::Conflict("this helper is not for the network".to_owned());
        let keeper = self.keeper.as_ref().ok_or_else(elsewhere)?;
        Ok(keeper.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A connection that is counted; also when it gets no thread.
struct Connection(Arc<AtomicUsize>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether no further call of accept can succeed.
fn is_the_listener(e: &io::Error) -> bool {
    matches!(
        e.raw_os_error(),
        Some(libc::EBADF | libc::EINVAL | libc::ENOTSOCK | libc::EOPNOTSUPP | libc::EFAULT)
    )
}

/// Whether the next connection may be there already: this one has gone, or a signal came.
fn is_the_peer(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests;
