//! What services are made of: the same over all their starts.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use base::protocol::{Port, Service};
use control::accounts::identity::Users;
use control::transfers::Transfers;
use probe::hub::Hub;
use serve::exec::Engine;
use serve::files::{Files, SignIns};
use serve::pool::Pool;
use serve::transport::budget::Limits;
use serve::transport::connections::ConnectionLimits;
use serve::transport::{Budgets, Runtimes};
use vfs::flush::FlushGroup;
use vfs::locks::LockTable;
use vfs::share::Shares;

use crate::luns::LunGiven;
use crate::server_id::ServerId;
use crate::sign_in::SignInCounter;

/// What services share.
pub struct ServiceParts {
    /// The address of all services, and what is added to their ports.
    pub at: (IpAddr, u16),
    /// Served shares.
    pub shares: Arc<Shares>,
    /// The table of opens and locks of all protocols.
    pub locks: Arc<LockTable>,
    /// Flushes that answers wait for.
    pub flush: Arc<FlushGroup>,
    /// Threads for operations that block.
    pub pool: Arc<Pool>,
    /// The cores.
    pub runtimes: Arc<Runtimes>,
    /// The users that may sign in.
    pub users: Arc<Users>,
    /// Threads that verify passwords.
    pub sign_ins: Arc<SignIns>,
    /// Where operations are recorded.
    pub hub: Arc<Hub>,
    /// Where finished transfers are recorded.
    pub transfers: Arc<Transfers>,
    /// How much of everything each service may use.
    pub limits: Limits,
    /// Limits on connections, which all services share.
    pub places: Arc<ConnectionLimits>,
    /// The state directory.
    pub state: PathBuf,
    /// By what clients recognise the server.
    pub server_id: ServerId,
    /// Logical units of the command line.
    pub luns: Vec<LunGiven>,
}

impl ServiceParts {
    /// Where a port is.
    pub fn address(&self, port: Port) -> SocketAddr {
        SocketAddr::new(self.at.0, port.number.saturating_add(self.at.1))
    }

    /// Limits and counts of a service, with its part of the places.
    pub fn budgets(&self, service: Service) -> Arc<Budgets> {
        Arc::new(Budgets::sharing(self.limits, &self.places, service.index()))
    }

    /// What executes the operations of a service.
    pub fn engine(&self, service: Service) -> Arc<Engine> {
        let (pool, flush) = (self.pool.clone(), self.flush.clone());
        Engine::new(pool, flush, self.budgets(service), self.hub.clone())
    }

    /// What a service that transfers files is made of, and the counter of its sign-ins.
    pub fn files(&self, service: Service) -> (Arc<Files>, Arc<SignInCounter>) {
        let counter = Arc::new(SignInCounter::new(service.id(), self.users.clone()));
        let files = Files {
            service,
            shares: self.shares.clone(),
            locks: self.locks.clone(),
            engine: self.engine(service),
            identity: counter.clone(),
            sign_ins: self.sign_ins.clone(),
            transfers: self.transfers.clone(),
        };
        (Arc::new(files), counter)
    }
}
