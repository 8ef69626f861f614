//! Echo (RFC 862) with a sign-in, the test service and the example of
//! `docs/howto/add-a-protocol.md`: `docs/protocols/echo.md` describes it.
//!
//! - `conn`: one connection, the only part that does I/O. `dispatch`: what a line comes to.
//! - [`node`]: what can be set and seen.

mod conn;
mod dispatch;
pub mod node;

use std::net::TcpListener;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use vfs::identity::Identity;

use crate::exec::{self, Engine, accept};
use crate::files::SignIns;
use crate::transport::Runtimes;
use crate::transport::tasks::Tasks;

/// The service: the same over all its starts.
pub struct Server {
    /// What executes its operations.
    pub engine: Arc<Engine>,
    /// The users that may sign in.
    pub identity: Arc<dyn Identity>,
    /// Threads that judge passwords.
    pub sign_ins: Arc<SignIns>,
    /// The setting `idle`, in seconds.
    idle_s: AtomicU64,
}

impl Server {
    /// The service, with its setting `idle`.
    pub fn new(
        engine: Arc<Engine>,
        (identity, sign_ins): (Arc<dyn Identity>, Arc<SignIns>),
        idle: Duration,
    ) -> Arc<Self> {
        let idle_s = AtomicU64::new(idle.as_secs());
        Arc::new(Self { engine, identity, sign_ins, idle_s })
    }

    /// Exchanges the setting; it holds for the next line of every connection.
    pub fn set_idle(&self, idle: Duration) {
        self.idle_s.store(idle.as_secs(), Ordering::Relaxed);
    }

    fn idle(&self) -> Duration {
        Duration::from_secs(self.idle_s.load(Ordering::Relaxed))
    }

    /// Serves what comes at `sockets`. `None` if the runtimes have ended.
    pub fn start(
        self: &Arc<Self>,
        runtimes: &Runtimes,
        sockets: Vec<TcpListener>,
    ) -> Option<Tasks> {
        let sockets = sockets.into_iter().map(|socket| (socket, ())).collect();
        let server = Arc::clone(self);
        let new_core = move |core| Core { core, server: Arc::clone(&server) };
        let connection = |core: Rc<Core>, accepted, (), ending| conn::serve(core, accepted, ending);
        accept::serve(&self.engine, runtimes, sockets, new_core, connection)
    }
}

/// What the connections of one core share.
struct Core {
    core: exec::Core,
    server: Arc<Server>,
}

impl Deref for Core {
    type Target = exec::Core;

    fn deref(&self) -> &exec::Core {
        &self.core
    }
}

impl exec::ServiceCore for Core {}
