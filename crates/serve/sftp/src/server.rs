//! The service, over all its starts: SSH connections, and the SFTP server on their channels.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use sync::streams::listen::Reachable;
use vfs::share::Service;
use vfs::share::rules::Transport;
use wire::ssh::host_key::HostKey;
use wire::ssh::kex::Policy;
use wire::ssh::transport::ServerSetup;

use super::dsync::{self, Dsync};
use super::ssh::{Methods, Mismatches, Ssh, Started, Subsystem, Unsigned};
use super::{LoginRoot, Session, Settings, SymlinkOrder, conn, ssh};
use engine::transport::Runtimes;
use engine::transport::listener::Accepted;
use engine::transport::tasks::{Ending, Tasks};
use files::core::Core;
use files::{Caller, Files, VPath, core};

/// The software name for clients: without the version, which would only help attackers.
const SOFTWARE: &str = "Plimsoll";
/// Exit status of a channel that ended without and with an error.
const STATUS: [u32; 2] = [0, 1];

/// Why dsync is not answered.
const SWITCHED_OFF: &str = "dsync is disabled on this server";

/// Algorithms that are offered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Algorithms {
    /// MACs before encryption as well, for libssh2 before 1.11, and so curl of Debian 12.
    #[default]
    Compatible,
    /// Not those.
    Modern,
}

/// How the service is set.
#[derive(Clone)]
pub struct ServiceSettings {
    /// How channels are served.
    pub channels: Settings,
    /// What a user sees as `/`.
    pub login_root: LoginRoot,
    /// Algorithms that are offered.
    pub algorithms: Algorithms,
    /// By what users sign in.
    pub methods: Methods,
    /// What is shown before signing in.
    pub banner: Option<String>,
    /// Whether dsync is answered.
    pub dsync: bool,
    /// Ports, the first and the last, where its streams for data may come; 0 is any that is free.
    pub dsync_ports: (u16, u16),
}

impl Default for ServiceSettings {
    fn default() -> Self {
        Self {
            channels: Settings::default(),
            login_root: LoginRoot::default(),
            algorithms: Algorithms::default(),
            methods: Methods { password: true, key: true },
            banner: None,
            dsync: true,
            dsync_ports: (0, 0),
        }
    }
}

/// The settings, and what is made from them.
struct Current {
    settings: ServiceSettings,
    setup: Arc<ServerSetup>,
}

/// The service.
pub struct Server {
    host_keys: Vec<Arc<HostKey>>,
    current: Mutex<Arc<Current>>,
    unsigned: Unsigned,
    mismatches: Mismatches,
    dsync: Dsync,
}

impl Server {
    /// A service with these settings and keys ([`ssh::host_keys::read_or_make`]).
    pub fn new(settings: ServiceSettings, host_keys: Vec<HostKey>) -> Arc<Self> {
        let host_keys: Vec<_> = host_keys.into_iter().map(Arc::new).collect();
        let current = Mutex::new(current(settings, &host_keys));
        let (unsigned, mismatches, dsync) = Default::default();
        Arc::new(Self { host_keys, current, unsigned, mismatches, dsync })
    }

    /// Exchanges the settings; they hold for connections that begin from now on.
    pub fn set(&self, settings: ServiceSettings) {
        let new = current(settings, &self.host_keys);
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = new;
    }

    fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The settings.
    pub fn settings(&self) -> ServiceSettings {
        self.current().settings.clone()
    }

    /// The fingerprints of the server's keys, which users compare with what their clients show.
    pub fn fingerprints(&self) -> Vec<String> {
        self.host_keys.iter().map(|key| key.fingerprint()).collect()
    }

    /// Connections before sign-in.
    pub fn unsigned(&self) -> usize {
        self.unsigned.count()
    }

    /// Clients that could not connect because they have no algorithm in common, as sentences.
    pub fn mismatches(&self) -> Vec<String> {
        self.mismatches.all()
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
            connection(Arc::clone(&server), core, accepted, ending)
        })
    }
}

fn current(settings: ServiceSettings, host_keys: &[Arc<HostKey>]) -> Arc<Current> {
    let policy = match settings.algorithms {
        Algorithms::Modern => Policy::modern(),
        Algorithms::Compatible => Policy::compatible(),
    };
    let (software, host_keys) = (SOFTWARE.to_owned(), host_keys.to_vec());
    Arc::new(Current { settings, setup: Arc::new(ServerSetup { software, policy, host_keys }) })
}

async fn connection(server: Arc<Server>, core: Rc<Core>, accepted: Accepted, ending: Ending) {
    let current = server.current();
    let files = &core.files;
    let ssh = Arc::new(Ssh {
        setup: Arc::clone(&current.setup),
        banner: current.settings.banner.clone(),
        methods: current.settings.methods,
        identity: Arc::clone(&files.identity),
        sign_ins: Arc::clone(&files.sign_ins),
        budgets: Arc::clone(&core.engine.budgets),
        unsigned: server.unsigned.clone(),
        mismatches: server.mismatches.clone(),
    });
    let peer = accepted.peer;
    let caller = Calling {
        server: Arc::clone(&server),
        settings: current.settings.clone(),
        peer: (peer, core.engine.hub.clients().intern(peer.ip().to_canonical())),
        reached: accepted.stream.local_addr().ok().map(|at| at.ip().to_canonical()),
    };
    let start = |started| channel(Rc::clone(&core), caller.clone(), started);
    ssh::serve(ssh, Rc::clone(&core.budget), accepted, ending, start).await;
}

/// A connected client, and the settings for it.
#[derive(Clone)]
struct Calling {
    server: Arc<Server>,
    settings: ServiceSettings,
    /// The address of the client, and its number in the statistics.
    peer: (SocketAddr, u32),
    /// The server address to which the client has connected.
    reached: Option<IpAddr>,
}

/// Serves one channel; returns its exit status.
async fn channel(core: Rc<Core>, calling: Calling, started: Started) -> u32 {
    let Calling { server, settings, peer, reached } = calling;
    let Started { subsystem, person, software, security, input, output } = started;
    let [well, badly] = STATUS;
    let mut channels = Settings { symlink: SymlinkOrder::of(&software), ..settings.channels };
    if settings.login_root == LoginRoot::Home {
        let home = person.home.as_deref().and_then(|home| VPath::parse(home).ok());
        let Some(home) = home else { return badly };
        channels.root = home;
    }
    let who = Caller::new(person, peer, Transport::Tls, Service::Sftp).secured(security);
    let done = match subsystem {
        Subsystem::Sftp => {
            let session = Session::new(core, who, Arc::new(channels));
            conn::serve(session, input, output).await.is_ok()
        }
        Subsystem::Dsync => {
            let refused = (!settings.dsync).then_some(SWITCHED_OFF);
            let Settings { root, umask, owners, .. } = channels;
            let at = Reachable { address: reached, ports: Some(settings.dsync_ports) };
            let request = dsync::Request { who: who.rooted(root), at, umask, owners, refused };
            dsync::serve(&core, &server.dsync, request, (input, output)).await
        }
    };
    if done { well } else { badly }
}
