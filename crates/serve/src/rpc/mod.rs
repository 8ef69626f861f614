//! ONC RPC over TCP (RFC 5531): one kind of connection for all programs on one port.
//!
//! - [`conn`]: a connection; the only file that does I/O. [`core`]: what a core's connections
//!   share.
//! - [`program`]: what a program is to them. [`dispatch`]: from a record to its program.
//!   [`caller`]: who calls, and what a share grants.
//! - [`node`]: the service in the tree of administration.
//! - [`later`]: calls on the pool and in the flush group. [`extent`]: data of READs.
//! - [`back`]: calls to the peers of connections, also of one made for that ([`dial`]).
//! - [`plain`]: calls of small services, which are not on these connections.
//! - [`replay`]: the duplicate-request cache.

pub mod back;
mod caller;
mod conn;
mod core;
mod dispatch;
mod extent;
mod later;
pub mod node;
pub(crate) mod plain;
pub mod program;
pub mod replay;

use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;

use ::base::clock;
use ::base::limits::ACCEPT_QUEUE;
use probe::hub::Hub;
use vfs::flush::FlushGroup;

pub use self::back::Back;
pub use self::caller::Caller;
pub use self::conn::dial;
use self::core::Core;
use self::dispatch::Service;
pub(crate) use self::extent::{from_file, read_or_run};
pub use self::program::{Call, Handled, Outcome, Procedure, Program, Resume, Settle};
use self::replay::{ReplayCache, ReplayLimits};
use crate::pool::Pool;
use crate::transport::buffers::LargeBuffers;
use crate::transport::tls::Tls;
use crate::transport::{Budgets, Runtimes, Tasks, listener};

/// What the service is made of.
pub struct RpcConfig {
    /// Where it listens; see [`listen`].
    pub socket: TcpListener,
    /// The cores that serve it.
    pub runtimes: Arc<Runtimes>,
    /// What it serves, those asked for most first.
    pub programs: Vec<Arc<dyn Program>>,
    /// Where operations are written down; has a core for each of `runtimes`.
    pub hub: Arc<Hub>,
    /// Flushes that replies wait for.
    pub flush: Arc<FlushGroup>,
    /// Threads for operations that block.
    pub pool: Arc<Pool>,
    /// Budgets, and what is counted in them: the same over several starts.
    pub budgets: Arc<Budgets>,
    /// TLS, if it is offered to clients that ask for it.
    pub tls: Option<Arc<Tls>>,
}

/// Why the service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {addr}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// What the kernel says.
        source: std::io::Error,
    },
    /// The socket is none, or not one that listens.
    #[error("the listening socket is not good")]
    Socket(#[source] std::io::Error),
    /// The runtimes have ended.
    #[error("the runtimes have ended")]
    NoRuntime,
}

/// Takes the address, before anything is begun that a taken one would make vain. Port 0 takes a
/// free one.
///
/// # Errors
/// When the address cannot be listened on.
pub fn listen(addr: SocketAddr) -> Result<TcpListener, StartError> {
    listener::listen(addr).map_err(|source| StartError::Listen { addr, source })
}

/// The running service. Dropping it stops it without waiting.
pub struct RpcService {
    addr: SocketAddr,
    service: Arc<Service>,
    hub: Arc<Hub>,
    tasks: Tasks,
    /// Kept as long as the service runs on them.
    _runtimes: Arc<Runtimes>,
}

impl RpcService {
    /// Starts the service.
    ///
    /// # Errors
    /// When the socket is not good, or the runtimes have ended.
    pub fn start(config: RpcConfig) -> Result<Self, StartError> {
        clock::calibrate();
        let socket = config.socket;
        let addr = socket.local_addr().map_err(StartError::Socket)?;
        let budgets = config.budgets;
        let replays = ReplayLimits::within(budgets.limits().bytes);
        let service = Arc::new(Service {
            programs: config.programs,
            flush: config.flush,
            pool: config.pool,
            budgets: Arc::clone(&budgets),
            replays: ReplayCache::new(replays),
            large: LargeBuffers::default(),
            tls: config.tls,
        });
        service.show_limits(config.hub.gauges());
        let (count, hub) = (config.runtimes.cores(), config.hub);
        let (mut tasks, mut senders, mut started) = (Tasks::default(), Vec::new(), true);
        for id in 0..count {
            let (sender, accepted) = tokio::sync::mpsc::channel(ACCEPT_QUEUE);
            let (service, hub) = (Arc::clone(&service), Arc::clone(&hub));
            started &= tasks.spawn(&config.runtimes, id, move |ends| async move {
                let core = Rc::new(Core::new(id, count, service, hub));
                core::run(core, accepted, ends).await
            });
            senders.push(sender);
        }
        started &= tasks.spawn(&config.runtimes, 0, move |ends| async move {
            // The socket was good a moment ago; if not, nobody can connect, and clients say so.
            listener::accept(socket, senders, budgets, ends).await.is_ok()
        });
        match started {
            true => Ok(Self { addr, service, hub, tasks, _runtimes: config.runtimes }),
            false => Err(StartError::NoRuntime),
        }
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// What is in use, and what went wrong so far.
    pub fn budgets(&self) -> &Arc<Budgets> {
        &self.service.budgets
    }

    /// Stops accepting and reading, answers what was taken, and closes: at most
    /// [`DRAIN_TIME_MAX`](::base::limits::DRAIN_TIME_MAX). Returns whether everything was answered.
    pub async fn drain(self) -> bool {
        let drained = self.tasks.end().await;
        // A core that ended early has shown what the others still had.
        self.service.show(self.hub.gauges());
        drained
    }

    /// As [`RpcService::drain`], for callers that are not asynchronous.
    ///
    /// # Errors
    /// When no timer can be had for waiting.
    pub fn drain_blocking(self) -> std::io::Result<bool> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        Ok(runtime.block_on(self.drain()))
    }
}
