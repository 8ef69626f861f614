//! The service under test: two cores, a small pool, a share `t` in memory, a clock that the test
//! moves, records of hosts in a file that outlives it.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base::clock::{ManualClock, NS_PER_S};
use probe::hub::{Hub, HubOptions};
use probe::op::{OpRecord, Protocol};
use serve::exec::Engine;
use serve::nlm::{Config, Nlm};
use serve::pool::{Pool, PoolLimits};
use serve::rpc::{self, RpcConfig, RpcService};
use serve::transport::budget::Limits;
use serve::transport::{Budgets, Runtimes, small};
use vfs::attr::{Attr, SetAttr};
use vfs::cred::Cred;
use vfs::flush::FlushGroup;
use vfs::fs::{Context, CreateHow, FileSystem};
use vfs::handle::Handle;
use vfs::locks::{FileKey, LockTable, Owner};
use vfs::mem::MemFs;
use vfs::recovery::{ClientRecords, FileRecords};
use vfs::share::rules::{Lookup, Rules};
use vfs::share::{Service, ShareTable, Shares};

use crate::client::PATIENCE;

const CORES: usize = 2;
/// The grace period.
pub const GRACE: Duration = Duration::from_secs(90);

/// What outlives the service: files, and the state directory.
pub struct World {
    pub fs: Arc<MemFs>,
    folder: PathBuf,
    /// The port of the hosts' port mappers.
    pub portmap: u16,
    /// Whether hosts are believed from reserved ports alone.
    pub reserved_ports: bool,
    /// The address of the service, if clients know it by another one than the machine's.
    pub address: Option<IpAddr>,
}

impl World {
    pub fn new(portmap: u16) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("serve-nlm-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        let fs = MemFs::new(vfs::share::tag("t"), 1 << 20);
        Self { fs, folder, portmap, reserved_ports: false, address: None }
    }

    /// A file of root's with this mode, made if it is not there.
    pub fn file(&self, name: &str, mode: u32) -> Handle {
        let cred = Cred::root();
        let cx = Context { cred: &cred, may_block: true };
        let set = SetAttr { mode: Some(mode), ..SetAttr::default() };
        let made = self.fs.create(cx, &self.fs.root(), name.as_bytes(), CreateHow::Unchecked(set));
        made.unwrap_or_else(|failed| panic!("{:?}", failed.status)).value.handle
    }

    pub fn attr(&self, file: &Handle) -> Attr {
        let cred = Cred::root();
        let cx = Context { cred: &cred, may_block: true };
        self.fs.getattr(cx, file).unwrap()
    }

    pub fn key(&self, file: &Handle) -> FileKey {
        FileKey::from(&self.attr(file))
    }

    /// The records of hosts in its folder.
    pub fn records(&self) -> FileRecords {
        FileRecords::open(&self.folder.join("records")).unwrap().0
    }

    pub fn remove(&self, name: &str) {
        let cred = Cred::root();
        let cx = Context { cred: &cred, may_block: true };
        let removed = self.fs.remove(cx, &self.fs.root(), name.as_bytes());
        removed.unwrap_or_else(|failed| panic!("{:?}", failed.status));
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.folder);
    }
}

/// A running service; stops when dropped.
pub struct Server {
    _service: RpcService,
    pub addr: SocketAddr,
    /// NSM by datagram.
    pub udp: SocketAddr,
    pub nlm: Arc<Nlm>,
    pub locks: Arc<LockTable>,
    pub clock: Arc<ManualClock>,
    pub hub: Arc<Hub>,
    pub shares: Arc<Shares>,
    /// Whether owners of other protocols make way.
    pub gone: Arc<AtomicBool>,
    /// The owners that were checked.
    pub asked: Arc<Mutex<Vec<Owner>>>,
    _runtimes: Arc<Runtimes>,
}

/// Whether the client of an owner is gone: its locks are released then.
fn is_gone((gone, asked, locks): &ExpiryCheck, owner: &Owner) -> bool {
    asked.lock().unwrap().push(owner.clone());
    let gone = gone.load(Ordering::SeqCst);
    if gone {
        locks.release_client(owner.client);
    }
    gone
}

/// Whether clients are gone, the owners that were checked, and the locks.
type ExpiryCheck = (Arc<AtomicBool>, Arc<Mutex<Vec<Owner>>>, Arc<LockTable>);

impl Server {
    pub fn start(world: &World) -> Self {
        Self::over(world, world.fs.clone())
    }

    /// The same, of this file system in the place of the world's.
    pub fn over(world: &World, fs: Arc<dyn FileSystem>) -> Self {
        Self::recording(world, fs, Arc::new(world.records()))
    }

    /// The same, with these records of hosts.
    pub fn recording(
        world: &World,
        fs: Arc<dyn FileSystem>,
        records: Arc<dyn ClientRecords>,
    ) -> Self {
        let runtimes = Arc::new(Runtimes::start(CORES).unwrap());
        let hub = Hub::new(HubOptions { cores: CORES, recorder_bytes: 4 << 20 });
        let mut shares = ShareTable::default();
        shares.add("t", fs, false).unwrap();
        let shares = Shares::new(shares);
        let locks = Arc::new(LockTable::default());
        let clock = Arc::new(ManualClock::at(NS_PER_S));
        let gone = Arc::new(AtomicBool::new(false));
        let asked: Arc<Mutex<Vec<Owner>>> = Arc::default();
        let way = (gone.clone(), asked.clone(), locks.clone());
        let config = Config {
            shares: shares.clone(),
            locks: locks.clone(),
            clock: clock.clone(),
            records,
            grace_until_ns: NS_PER_S + GRACE.as_nanos() as u64,
            evict_expired: Box::new(move |owner: &Owner| is_gone(&way, owner)),
            name: "server.example".into(),
            address: world.address,
            portmap_port: world.portmap,
            grant_time: Duration::from_millis(600),
            reserved_ports: world.reserved_ports,
        };
        let nlm = Nlm::start(config, &runtimes);
        let flush = Arc::new(FlushGroup::start().unwrap());
        let limits = PoolLimits { threads: 4, queue: 1000, per_client: 1000 };
        let pool = Pool::start(limits).unwrap();
        let budgets = Arc::new(Budgets::new(Limits::default()));
        let engine = Engine::new(pool.clone(), flush.clone(), budgets.clone(), Arc::clone(&hub));
        let service = RpcService::start(RpcConfig {
            socket: rpc::listen(([127, 0, 0, 1], 0).into()).unwrap(),
            runtimes: Arc::clone(&runtimes),
            programs: nlm.programs(),
            hub: Arc::clone(&hub),
            flush,
            pool,
            budgets,
            tls: None,
            rdma: None,
        })
        .unwrap();
        let socket = small::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let (udp, datagrams) = (socket.local_addr().unwrap(), nlm.datagrams());
        runtimes.spawn_on(1, move || async move {
            drop(small::datagrams(socket, datagrams, engine).await)
        });
        Self {
            addr: service.local_addr(),
            _service: service,
            udp,
            nlm,
            locks,
            clock,
            hub,
            shares,
            gone,
            asked,
            _runtimes: runtimes,
        }
    }

    /// Moves the clock, and does what is done every second.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
        self.nlm.sweep();
    }

    /// Exchanges the export rules of the share.
    pub fn set_rules(&self, text: &str) {
        let rules = Rules::parse(text, &NoLookup).expect("rules");
        let shares = self.shares.load();
        shares.by_path(b"/export/t").expect("the share").rules_for(Service::Nfs).set(rules);
    }

    /// Operations of NLM recorded so far, once there are at least `count`.
    pub fn records(&self, count: usize) -> Vec<OpRecord> {
        wait_for("operations are written down", || {
            let mut records = Vec::new();
            self.hub.scan(0, u64::MAX, |record| records.push(*record));
            records.retain(|record| record.protocol == Protocol::Nlm as u8);
            (records.len() >= count).then_some(records)
        })
    }
}

/// Knows no names.
struct NoLookup;

impl Lookup for NoLookup {
    fn host(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        Err(format!("{name} is unknown"))
    }

    fn netgroups(&self) -> String {
        String::new()
    }
}

/// Retries until there is a result.
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < until, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
