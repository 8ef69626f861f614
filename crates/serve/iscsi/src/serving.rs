//! The start of the service.

use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;

use super::core::Core;
use super::{Iscsi, conn};
use engine::exec;
use engine::transport::Runtimes;
use engine::transport::tasks::Tasks;

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
