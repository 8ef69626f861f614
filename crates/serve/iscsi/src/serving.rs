//! The part of the service that each core has, and its start.

use std::net::TcpListener;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use super::{Iscsi, conn};
use engine::exec;
use engine::transport::Runtimes;
use engine::transport::tasks::Tasks;

/// What the connections of one core share.
pub struct Core {
    core: exec::Core,
    /// The service.
    pub iscsi: Arc<Iscsi>,
}

impl Deref for Core {
    type Target = exec::Core;

    fn deref(&self) -> &exec::Core {
        &self.core
    }
}

impl exec::ServiceCore for Core {
    fn show(&self) {
        let engine = &self.engine;
        engine.budgets.show_panics(&engine.flush, engine.hub.gauges());
    }
}

/// Serves what comes at `sockets`. `None` if the runtimes have ended.
pub fn serve(iscsi: &Arc<Iscsi>, runtimes: &Runtimes, sockets: Vec<TcpListener>) -> Option<Tasks> {
    let (sockets, service) = (sockets.into_iter().map(|socket| (socket, ())), Arc::clone(iscsi));
    exec::accept::serve(
        &iscsi.engine,
        runtimes,
        sockets.collect(),
        move |core| Core { core, iscsi: Arc::clone(&service) },
        |core: Rc<Core>, accepted, (), ending| conn::serve(core, accepted, ending),
    )
}
