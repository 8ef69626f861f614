//! The service, over all its starts.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use base::clock::monotonic_ns;
use vfs::fold::FoldIndex;

use super::handles::HandleStore;
use super::settings::Settings;
use super::state::clients::Clients;
use super::state::instances::Instances;
use super::state::leases::LeaseKeys;
use super::state::mail_order::MailOrder;
use super::state::open_files::OpenFiles;
use super::state::opens::{ParkedOpen, Restored};
use super::state::parked::ParkedOpens;
use super::state::removals::{Removal, Removals};
use super::state::replays::Replays;
use super::state::seats::OpenBudget;
use super::state::sessions::Sessions;
use engine::exec::accept::Joins;
use engine::transport::tasks::Ending;
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
    /// In which order their connections have signed in.
    pub(super) mail_order: Arc<MailOrder>,
    /// Hands connections to other cores.
    pub(super) joins: Mutex<Option<Joins<Core>>>,
    /// Records of persistent handles, where there is a state directory.
    pub(super) handles: OnceLock<Arc<HandleStore>>,
    /// Persistent handles of before the start that no client has continued yet.
    pub(super) restored: ParkedOpens<Restored>,
    /// The state of the users for which these were looked at last.
    pub(super) users_seen: AtomicU64,
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
        let (handles, restored, mail_order) = Default::default();
        // Not looked at yet.
        let users_seen = AtomicU64::new(u64::MAX);
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
            mail_order,
            joins,
            handles,
            restored,
            users_seen,
            parked,
            removals,
        })
    }

    /// Has persistent handles be recorded there, and those of before bind from now on.
    pub fn record_in(&self, store: Arc<HandleStore>) {
        // Once for each process.
        let _ = self.handles.set(store);
    }

    /// The service runs until this turns true.
    pub(super) fn note_ending(&self, ending: &Ending) {
        if let Some(store) = self.handles.get() {
            store.set_ending(ending.clone());
        }
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
        let now_ns = monotonic_ns();
        let mut rows = self.parked.rows(now_ns, max, |key, open, left_ns| {
            let path = open.file.path.borrow().to_string();
            let user = open.who.person.name.clone();
            (user, key.address, path, Duration::from_nanos(left_ns))
        });
        let more = max.saturating_sub(rows.len());
        rows.extend(self.restored.rows(now_ns, more, |key, one, left_ns| {
            let path = String::from_utf8_lossy(&one.record.path).into_owned();
            (one.record.user.clone(), key.address, path, Duration::from_nanos(left_ns))
        }));
        rows
    }

    /// How many opens wait for their client, by its address.
    pub fn parked_by_address(&self) -> Vec<(IpAddr, u64)> {
        let mut all: BTreeMap<IpAddr, u64> = self.parked.by_address().into_iter().collect();
        for (address, count) in self.restored.by_address() {
            *all.entry(address).or_default() += count;
        }
        all.into_iter().collect()
    }
}
