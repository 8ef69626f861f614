//! NFS version 3 and MOUNT version 3 over TCP on one port (RFC 1813, RFC 5531).
//!
//! - [`conn`]: a connection; the only file that does I/O. [`core`]: what a core's connections
//!   share.
//! - [`dispatch`]: from a record to its handler; [`call`]: a call in its handler's hands;
//!   [`caller`]: who calls.
//! - [`attr`], [`io`], [`names`], [`dir`], [`info`], [`mount`]: the operations.
//! - [`later`]: operations on the pool and in the flush group.
//! - [`state`]: the duplicate-request cache. [`status`], [`convert`]: to the wire and back.
//!
//! What is and is not supported: `docs/protocols/nfs.md`.

mod attr;
mod call;
mod caller;
mod conn;
mod convert;
mod core;
mod dir;
mod dispatch;
mod info;
mod io;
mod later;
mod mount;
mod names;
pub mod state;
mod status;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::base::clock;
use ::base::limits::{ACCEPT_QUEUE, DRAIN_TIME_MAX};
use ::base::random::{Random, SystemRandom};
use probe::hub::Hub;
use tokio::sync::{oneshot, watch};
use vfs::flush::FlushGroup;
use vfs::share::ShareTable;

use self::core::Core;
use self::dispatch::Service;
use self::mount::Mounts;
use self::state::{ReplayCache, ReplayLimits};
use crate::pool::Pool;
use crate::transport::budget::Limits;
use crate::transport::buffers::LargeBuffers;
use crate::transport::{Budgets, Runtimes, listener};

/// What the service is made of.
pub struct NfsConfig {
    /// Where it listens; port 0 takes a free one.
    pub addr: SocketAddr,
    /// The cores that serve it.
    pub runtimes: Arc<Runtimes>,
    /// What it serves.
    pub shares: Arc<ShareTable>,
    /// Where operations are written down; has a core for each of `runtimes`.
    pub hub: Arc<Hub>,
    /// Flushes that replies wait for.
    pub flush: Arc<FlushGroup>,
    /// Threads for operations that block.
    pub pool: Arc<Pool>,
    /// Budgets.
    pub limits: Limits,
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
pub struct NfsService {
    addr: SocketAddr,
    budgets: Arc<Budgets>,
    ending: watch::Sender<bool>,
    cores: Vec<oneshot::Receiver<bool>>,
    /// Kept as long as the service runs on them.
    _runtimes: Arc<Runtimes>,
}

impl NfsService {
    /// Starts the service.
    ///
    /// # Errors
    /// When the address cannot be listened on, or the runtimes have ended.
    pub fn start(config: NfsConfig) -> Result<Self, StartError> {
        clock::calibrate();
        let listen = |source| StartError::Listen { addr: config.addr, source };
        let socket = listener::listen(config.addr).map_err(listen)?;
        let addr = socket.local_addr().map_err(listen)?;
        let budgets = Arc::new(Budgets::new(config.limits));
        let service = Arc::new(Service {
            shares: config.shares,
            flush: config.flush,
            pool: config.pool,
            budgets: Arc::clone(&budgets),
            replays: ReplayCache::new(ReplayLimits::default()),
            mounts: Mutex::new(Mounts::default()),
            verifier: SystemRandom.next_u64().to_be_bytes(),
            large: LargeBuffers::default(),
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

    /// As [`NfsService::drain`], for callers that are not asynchronous.
    ///
    /// # Errors
    /// When no timer can be had for waiting.
    pub fn drain_blocking(self) -> std::io::Result<bool> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        Ok(runtime.block_on(self.drain()))
    }
}
