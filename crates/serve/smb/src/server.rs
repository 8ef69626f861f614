//! The service, over all its starts.

use std::net::TcpListener;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use base::limits::SMB_IDLE;
use vfs::fold::FoldIndex;

use super::conn;
use super::set_info::Removal;
use super::state::leases::LeaseKeys;
use super::state::open_files::OpenFiles;
use super::state::seats::OpenBudget;
use super::state::sessions::Sessions;
use engine::transport::Runtimes;
use engine::transport::tasks::Tasks;
use files::{Files, core};

/// What is encrypted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Encryption {
    /// What a client encrypts.
    #[default]
    Offered,
    /// Everything: clients without encryption are refused.
    Required,
    /// Nothing.
    Off,
}

/// How the service is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The name of the server, as it is sent to clients.
    pub name: String,
    /// What is encrypted.
    pub encryption: Encryption,
    /// Whether requests that are neither signed nor encrypted are refused.
    pub signing_required: bool,
    /// How long a connection without open files may be silent.
    pub idle: Duration,
    /// Permission bits that new files and directories do not get.
    pub umask: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: "plimsoll".to_owned(),
            encryption: Encryption::default(),
            signing_required: true,
            idle: SMB_IDLE,
            umask: 0o022,
        }
    }
}

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
}

impl Server {
    /// The service, without sessions. `guid` is the same over all starts of a server.
    pub fn new(settings: Settings, guid: [u8; 16]) -> Arc<Self> {
        let settings = RwLock::new(Arc::new(settings));
        let (sessions, folds, open_files, lease_keys, seats) = Default::default();
        Arc::new(Self { settings, guid, sessions, folds, open_files, lease_keys, seats })
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

    /// Serves what comes at `sockets`. `None` if the runtimes have ended.
    pub fn start(
        self: &Arc<Self>,
        files: &Arc<Files>,
        runtimes: &Runtimes,
        sockets: Vec<TcpListener>,
    ) -> Option<Tasks> {
        let server = Arc::clone(self);
        let sockets = sockets.into_iter().map(|socket| (socket, ())).collect();
        core::serve(files, runtimes, sockets, move |core, accepted, (), ending| {
            conn::serve(Arc::clone(&server), core, accepted, ending)
        })
    }
}
