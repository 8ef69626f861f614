//! ONC RPC over TCP (RFC 5531) and RDMA (RFC 8166): one kind of connection each for all programs on
//! one port.
//!
//! - [`conn`]: a connection; the only file that does I/O. [`core`]: what a core's connections
//!   share.
//! - [`program`]: the interface of a program. [`dispatch`]: from a record to its program.
//!   [`caller`]: the caller, and what a share grants.
//! - [`node`]: the service in the tree of administration.
//! - [`framing`]: messages as records of a byte stream. [`rdma`]: messages by RDMA.
//! - [`pending`]: calls on the pool and in the flush group. [`extent`]: data of READs.
//! - [`back`]: calls to the peers of connections, also of one made for that ([`dial`]).
//! - [`plain`]: calls of small services, which are not on these connections.
//! - [`replay`]: the duplicate-request cache.

pub mod back;
mod caller;
mod completion;
mod conn;
mod core;
mod dispatch;
mod extent;
mod framing;
pub mod node;
mod pending;
pub(crate) mod plain;
pub mod program;
mod rdma;
pub mod replay;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use probe::hub::Hub;
use verbs::Verbs;
use vfs::flush::FlushGroup;

pub use self::back::Back;
pub use self::caller::Caller;
pub use self::conn::dial;
use self::core::Core;
use self::dispatch::Service;
pub(crate) use self::extent::{from_file, note_item, note_kept, read_or_run};
pub use self::program::{Call, DispatchResult, Handled, OnFlushed, Procedure, Program, Resume};
pub use self::rdma::RdmaStats;
use self::replay::{ReplayCache, ReplayLimits};
use engine::exec::{Engine, accept};
use engine::pool::Pool;
use engine::transport::tls::Tls;
use engine::transport::{Budgets, Runtimes, Tasks, listener};

/// What the service is made of.
pub struct RpcConfig {
    /// Where it listens; see [`listen`].
    pub socket: TcpListener,
    /// The cores that serve it.
    pub runtimes: Arc<Runtimes>,
    /// The programs that it serves, the most used ones first.
    pub programs: Vec<Arc<dyn Program>>,
    /// Where operations are recorded; has a core for each of `runtimes`.
    pub hub: Arc<Hub>,
    /// Flushes that replies wait for.
    pub flush: Arc<FlushGroup>,
    /// Threads for operations that block.
    pub pool: Arc<Pool>,
    /// Budgets, and what is counted in them: the same over several starts.
    pub budgets: Arc<Budgets>,
    /// TLS, if it is offered to clients.
    pub tls: Option<Arc<Tls>>,
    /// RDMA, if it is served.
    pub rdma: Option<RdmaConfig>,
}

/// How RDMA is served.
pub struct RdmaConfig {
    /// The way to devices.
    pub verbs: Arc<dyn Verbs>,
    /// Where to listen.
    pub at: SocketAddr,
    /// What is counted: the same over several starts.
    pub stats: Arc<RdmaStats>,
    /// How long a connection is idle before it can be evicted for a new one
    /// ([`base::limits::RDMA_IDLE_MIN`]).
    pub idle_min: Duration,
}

/// Why the service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {addr}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// The error of the kernel.
        source: std::io::Error,
    },
    /// The socket is none, or not one that listens.
    #[error("the listening socket is not valid")]
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
        let addr = config.socket.local_addr().map_err(StartError::Socket)?;
        let replays = ReplayLimits::within(config.budgets.limits().bytes);
        let engine = Engine::new(config.pool, config.flush, config.budgets, config.hub);
        let service = Arc::new(Service {
            programs: config.programs,
            engine: Arc::clone(&engine),
            replays: ReplayCache::new(replays),
            tls: config.tls,
        });
        service.show_limits(engine.hub.gauges());
        let shared = Arc::clone(&service);
        let new_core = move |core| Core::over(core, Arc::clone(&shared));
        // A connection hears by its completion queue that the service ends.
        let connection = |core, accepted, (), _| conn::serve(core, accepted);
        let sockets = vec![(config.socket, ())];
        let (mut tasks, joins) =
            accept::serve_joined(&engine, &config.runtimes, sockets, new_core, connection)
                .ok_or(StartError::NoRuntime)?;
        if let Some(rdma) = config.rdma {
            rdma::serve(rdma, (&mut tasks, joins), &config.runtimes, &engine.budgets);
        }
        Ok(Self { addr, service, tasks, _runtimes: config.runtimes })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// What is in use, and what went wrong so far.
    pub fn budgets(&self) -> &Arc<Budgets> {
        &self.service.engine.budgets
    }

    /// Stops accepting and reading, completes the calls in progress, and closes: at most
    /// [`DRAIN_TIME_MAX`](::base::limits::DRAIN_TIME_MAX). Returns whether all were completed.
    pub async fn drain(self) -> bool {
        let drained = self.tasks.end().await;
        // A core that ended early has shown what the others still had.
        self.service.show(self.service.engine.hub.gauges());
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
