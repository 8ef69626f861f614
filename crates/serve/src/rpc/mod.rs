//! ONC RPC over TCP (RFC 5531): one kind of connection for all programs on one port.
//!
//! - [`conn`]: a connection; the only file that does I/O. [`core`]: what a core's connections
//!   share.
//! - [`program`]: what a program is to them. [`dispatch`]: from a record to its program.
//!   [`caller`]: who calls, and what a share grants.
//! - [`node`]: the service in the tree of administration.
//! - [`later`]: calls on the pool and in the flush group. [`extent`]: data sent from files.
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

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ::base::clock;
use ::base::limits::{ACCEPT_QUEUE, DRAIN_TIME_MAX};
use probe::hub::Hub;
use tokio::sync::{oneshot, watch};
use vfs::flush::FlushGroup;

pub use self::back::Back;
pub use self::caller::Caller;
pub use self::conn::dial;
use self::core::Core;
use self::dispatch::Service;
pub(crate) use self::extent::from_file;
pub use self::program::{Call, Handled, Outcome, Procedure, Program, Resume, Settle};
use self::replay::{ReplayCache, ReplayLimits};
use crate::pool::Pool;
use crate::transport::budget::Limits;
use crate::transport::buffers::LargeBuffers;
use crate::transport::tls::Tls;
use crate::transport::{Budgets, Runtimes, listener};

/// What the service is made of.
pub struct RpcConfig {
    /// Where it listens; port 0 takes a free one.
    pub addr: SocketAddr,
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
    /// Budgets.
    pub limits: Limits,
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
    /// The runtimes have ended.
    #[error("the runtimes have ended")]
    NoRuntime,
}

/// The running service. Dropping it stops it without waiting.
pub struct RpcService {
    addr: SocketAddr,
    budgets: Arc<Budgets>,
    ending: watch::Sender<bool>,
    cores: Vec<oneshot::Receiver<bool>>,
    /// Kept as long as the service runs on them.
    _runtimes: Arc<Runtimes>,
}

impl RpcService {
    /// Starts the service.
    ///
    /// # Errors
    /// When the address cannot be listened on, or the runtimes have ended.
    pub fn start(config: RpcConfig) -> Result<Self, StartError> {
        clock::calibrate();
        let listen = |source| StartError::Listen { addr: config.addr, source };
        let socket = listener::listen(config.addr).map_err(listen)?;
        let addr = socket.local_addr().map_err(listen)?;
        let budgets = Arc::new(Budgets::new(config.limits));
        let service = Arc::new(Service {
            programs: config.programs,
            flush: config.flush,
            pool: config.pool,
            budgets: Arc::clone(&budgets),
            replays: ReplayCache::new(ReplayLimits::default()),
            large: LargeBuffers::default(),
            tls: config.tls,
        });
        service.show_limits(config.hub.gauges());
        let (ending, ends) = watch::channel(false);
        let count = config.runtimes.cores();
        let (mut senders, mut cores) = (Vec::new(), Vec::new());
        for id in 0..count {
            let (sender, accepted) = tokio::sync::mpsc::channel(ACCEPT_QUEUE);
            let (done, is_done) = oneshot::channel();
            let (service, hub) = (Arc::clone(&service), Arc::clone(&config.hub));
            let ends = ends.clone();
            let started = config.runtimes.spawn_on(id, move || async move {
                let core = Rc::new(Core::new(id, count, service, hub));
                let drained = core::run(core, accepted, ends).await;
                // Nobody may want to know any more.
                let _ = done.send(drained);
            });
            if !started {
                return Err(StartError::NoRuntime);
            }
            senders.push(sender);
            cores.push(is_done);
        }
        let accept_budgets = Arc::clone(&budgets);
        let started = config.runtimes.spawn_on(0, move || async move {
            // The socket was good a moment ago; if not, nobody can connect, and clients say so.
            let _ = listener::accept(socket, senders, accept_budgets, ends).await;
        });
        if !started {
            return Err(StartError::NoRuntime);
        }
        Ok(Self { addr, budgets, ending, cores, _runtimes: config.runtimes })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// What is in use, and what went wrong so far.
    pub fn budgets(&self) -> &Arc<Budgets> {
        &self.budgets
    }

    /// Stops accepting and reading, answers what was taken, and closes: at most
    /// [`DRAIN_TIME_MAX`]. Returns whether everything was answered.
    pub async fn drain(self) -> bool {
        self.ending.send_replace(true);
        let mut drained = true;
        // A little more than a core gives itself.
        let patience = DRAIN_TIME_MAX + Duration::from_secs(1);
        for core in self.cores {
            let done = tokio::time::timeout(patience, core).await;
            drained &= matches!(done, Ok(Ok(true)));
        }
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
