//! A service that runs, over a share in memory where calls can be made to panic or to stand still.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use e2e::smb::{Offer, Smb};
use e2e::tcp::HERE;
use serve::pool::PoolLimits;
use serve::smb::handles::HandleStore;
use serve::smb::{Server, Settings};
use serve::transport::budget::Limits;
use serve::transport::listener::listen;
use vfs::mem::MemFs;
use vfs::share::{Service, tag};

use crate::planted::Planted;
use crate::scene::{Scene, Serving};

/// A running service, and alice on its share.
pub struct Running {
    _tasks: Serving,
    /// The file system of the share.
    pub fs: Arc<Planted>,
    /// Users and engine.
    pub scene: Scene,
    /// The service.
    pub server: Arc<Server>,
    /// Where it listens.
    pub at: SocketAddr,
    /// Alice.
    pub alice: Smb,
    /// How many panics were planted.
    pub planted: u64,
}

impl Running {
    /// Starts it.
    pub fn new() -> Self {
        Self::with_bytes(Limits::default().bytes)
    }

    /// Starts it with `bytes` bytes for all requests.
    pub fn with_bytes(bytes: usize) -> Self {
        let limits = Limits { bytes, ..Limits::default() };
        Self::with_pool(limits, PoolLimits::default())
    }

    /// Starts it within these limits, with a pool of this size.
    pub fn with_pool(limits: Limits, pool: PoolLimits) -> Self {
        Self::over(Planted::over(MemFs::new(tag("share"), 1 << 30)), (limits, pool), None)
    }

    /// Starts it over these files, with persistent handles that are recorded in this file.
    pub fn recording(fs: Arc<Planted>, handles: &Path) -> Self {
        let (store, _) = HandleStore::open(handles).expect("a file of handles");
        Self::over(fs, Default::default(), Some(store))
    }

    fn over(
        fs: Arc<Planted>,
        (limits, pool): (Limits, PoolLimits),
        handles: Option<Arc<HandleStore>>,
    ) -> Self {
        let shares = [("share", Arc::clone(&fs) as _)];
        let scene = Scene::with_pool(Service::Smb, &shares, limits, pool);
        let socket = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a port");
        let at = socket.local_addr().expect("an address");
        let server = Server::new(Settings::default(), [7; 16]);
        if let Some(handles) = handles {
            server.record_in(handles);
            let table = scene.files.shares.load();
            table.by_name("share").expect("the share").set_continuous(true);
        }
        let tasks = Serving(server.start(&scene.files, &scene.runtimes, vec![socket]));
        let alice = connect(at);
        Self { _tasks: tasks, fs, scene, server, at, alice, planted: 0 }
    }

    /// Alice at another address of this machine.
    pub fn from(&self, number: u8) -> Smb {
        let from = e2e::tcp::address(number);
        Smb::open((from, self.at), &Offer::default(), ("alice", "secret"), "share").expect("alice")
    }

    /// Alice once more, over another connection.
    pub fn again(&self) -> Smb {
        connect(self.at)
    }

    /// Alice at another client.
    pub fn client(&self, number: u8) -> Smb {
        let offer = Offer { client: [number; 16], ..Offer::default() };
        Smb::open((HERE, self.at), &offer, ("alice", "secret"), "share").expect("alice")
    }
}

fn connect(at: SocketAddr) -> Smb {
    Smb::open((HERE, at), &Offer::default(), ("alice", "secret"), "share").expect("alice")
}
