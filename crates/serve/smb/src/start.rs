//! The start of the service: what comes at its sockets is served by the connections of all cores.

use std::net::TcpListener;
use std::sync::{Arc, PoisonError};

use super::server::Server;
use super::{conn, parking};
use engine::exec::accept::Local;
use engine::transport::Runtimes;
use engine::transport::tasks::Tasks;
use files::{Files, core};

impl Server {
    /// Serves what comes at `sockets`. `None` if the runtimes have ended.
    pub fn start(
        self: &Arc<Self>,
        files: &Arc<Files>,
        runtimes: &Runtimes,
        sockets: Vec<TcpListener>,
    ) -> Option<Tasks> {
        drop(self.parked.set_open(true));
        drop(self.restored.set_open(true));
        self.restore(&files.locks);
        let server = Arc::clone(self);
        let sockets = sockets.into_iter().map(|socket| (socket, ())).collect();
        let (tasks, joins) =
            core::serve_joined(files, runtimes, sockets, move |core, accepted, (), ending| {
                conn::serve(Arc::clone(&server), core, (accepted, None), ending)
            })?;
        let server = Arc::clone(self);
        let sweep = move |core, ending| Box::pin(parking::run(server, core, ending)) as Local;
        let is_swept = joins.hand_to(0, Box::new(sweep));
        *self.joins.lock().unwrap_or_else(PoisonError::into_inner) = Some(joins);
        is_swept.then_some(tasks)
    }
}
