//! Echo, the test service: its setting, its port.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use base::limits::ECHO_IDLE;
use base::protocol::{self, Port};
use control::tree::Document;
use serve::echo::Server;
use serve::transport::Budgets;

use crate::failure::Failure;
use crate::files::drain_of;
use crate::instance::{Drain, Service};
use crate::node;
use crate::parts::ServiceParts;
use crate::sign_in::SignInCounter;

const ID: protocol::Service = protocol::Service::Echo;

/// Echo in this program.
pub struct Echo {
    parts: Arc<ServiceParts>,
    sign_ins: Arc<SignInCounter>,
    server: Arc<Server>,
}

impl Echo {
    /// The service.
    pub fn new(parts: &Arc<ServiceParts>, document: &Document) -> Self {
        let sign_ins = Arc::new(SignInCounter::new(ID.id(), parts.users.clone()));
        let who = (sign_ins.clone() as _, parts.sign_ins.clone());
        let server = Server::new(parts.engine(ID), who, idle(document));
        Self { parts: parts.clone(), sign_ins, server }
    }
}

fn idle(document: &Document) -> Duration {
    let seconds = document.integer(&node::path(ID), "idle");
    seconds.and_then(|s| u64::try_from(s).ok()).map_or(ECHO_IDLE, Duration::from_secs)
}

impl Service for Echo {
    fn id(&self) -> protocol::Service {
        ID
    }

    fn set(&self, document: &Document) {
        self.server.set_idle(idle(document));
    }

    fn budgets(&self) -> &Arc<Budgets> {
        &self.server.engine.budgets
    }

    fn start(&self, sockets: Vec<(TcpListener, Port)>) -> Result<Drain, Failure> {
        let sockets = sockets.into_iter().map(|(socket, _)| socket).collect();
        drain_of(ID, self.server.start(&self.parts.runtimes, sockets))
    }

    fn sign_ins(&self) -> Option<[u64; 2]> {
        Some(self.sign_ins.counts())
    }
}
