//! The service, over all its starts.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use base::clock::monotonic_ns;
use vfs::fold::FoldIndex;

use super::settings::Settings;
use super::state::clients::Clients;
use super::state::instances::Instances;
use super::state::leases::LeaseKeys;
use super::state::open_files::OpenFiles;
use super::state::opens::ParkedOpen;
use super::state::parked::ParkedOpens;
use super::state::removals::{Removal, Removals};
use super::state::replays::Replays;
use super::state::seats::OpenBudget;
use super::state::sessions::Sessions;
use engine::exec::accept::Joins;
use files::Core;

/// The service.
pub struct Server {
    settings: RwLock<Arc<Settings>>,
    /// By what clients know the server again.
    pub guid: [u8; 16],
    /// Sessions of clients.
    pub sessions: Arc<Sessions>,
    /// Names of directories, in any case.
    pub(super) folds: Arc<FoldIndex>,
    /// What is open.
    pub(super) open_files: OpenFiles<Removal>,
    /// Keys of leases.
    pub(super) lease_keys: Arc<LeaseKeys>,
    /// What that takes.
    pub(super) seats: Arc<OpenBudget>,
    /// CREATEs by their numbers.
    pub(super) replays: Arc<Replays>,
    /// Opens of applications that may move to another client.
    pub(super) instances: Arc<Instances>,
    /// Clients with several connections.
    pub(super) clients: Arc<Clients>,
    /// Hands connections to other cores.
    pub(super) joins: Mutex<Option<Joins<Core>>>,
    /// Opens that outlive their connection.
    pub(super) parked: Arc<ParkedOpens<ParkedOpen>>,
    /// What is to be removed with such ones.
    pub(super) removals: Removals,
}

impl Server {
    /// The service, without sessions. `guid` is the same over all starts of a server.
    pub fn new(settings: Settings, guid: [u8; 16]) -> Arc<Self> {
        let settings = RwLock::new(Arc::new(settings));
        let (sessions, folds, open_files, lease_keys, seats) = Default::default();
        let (parked, removals, replays, instances, clients, joins) = Default::default();
        Arc::new(Self {
            settings,
            guid,
            sessions,
            folds,
            open_files,
            lease_keys,
            seats,
            replays,
            instances,
            clients,
            joins,
            parked,
            removals,
        })
    }

    /// What is set now.
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets it, for connections that begin from now on.
    pub fn set(&self, settings: Settings) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    /// How many files are open.
    pub fn files_open(&self) -> usize {
        self.open_files.count()
    }

    /// Opens that wait for their client, at most `max`: user, address, path, and the time that is
    /// left.
    pub fn parked(&self, max: usize) -> Vec<(String, IpAddr, String, Duration)> {
        self.parked.rows(monotonic_ns(), max, |key, open, left_ns| {
            let path = open.file.path.borrow().to_string();
            let user = open.who.person.name.clone();
            (user, key.address, path, Duration::from_nanos(left_ns))
        })
    }

    /// How many opens wait for their client, by its address.
    pub fn parked_by_address(&self) -> Vec<(IpAddr, u64)> {
        self.parked.by_address()
    }
}
