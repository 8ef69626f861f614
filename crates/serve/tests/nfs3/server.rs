//! The service as the tests start it: two cores, a small pool, a share named `t`.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use base::limits::RDMA_IDLE_MIN;
use probe::hub::{Hub, HubOptions};
use probe::op::OpRecord;
use serve::nfs3;
use serve::nfs4::{self, Nfs4, NoState};
use serve::pool::{Pool, PoolLimits};
use serve::rpc::{Program, RpcConfig, RpcService, listen};
use serve::transport::budget::Limits;
use serve::transport::tls::Tls;
use serve::transport::{Budgets, Runtimes};
use vfs::flush::FlushGroup;
use vfs::fs::FileSystem;
use vfs::host::{HostFs, HostOptions};
use vfs::locks::LockTable;
use vfs::share::rules::{Lookup, Rules};
use vfs::share::{Service, Share, ShareTable, Shares};

use crate::client::stream::rdma::config_with;
use crate::client::{Client, PATIENCE};
use crate::scripted::Scripted;

/// Cores of the service under test.
const CORES: usize = 2;

/// A running service; stops when dropped.
pub struct Server {
    service: Option<RpcService>,
    pub addr: SocketAddr,
    pub hub: Arc<Hub>,
    shares: Arc<Shares>,
    /// What it runs on.
    #[allow(dead_code, reason = "each test that includes it uses a part")]
    pub runtimes: Arc<Runtimes>,
    /// Its threads that may block.
    #[allow(dead_code, reason = "each test that includes it uses a part")]
    pub pool: Arc<Pool>,
}

/// How a service is started.
#[derive(Clone)]
pub struct Options {
    pub limits: Limits,
    pub pool: PoolLimits,
    pub tls: Option<Arc<Tls>>,
    /// How long a connection over RDMA is idle before it can be evicted.
    pub rdma_idle_min: Duration,
}

impl Default for Options {
    fn default() -> Self {
        let pool = PoolLimits { threads: 4, queue: 1000, per_client: 1000 };
        let limits = Limits::default();
        Self { limits, pool, tls: None, rdma_idle_min: RDMA_IDLE_MIN }
    }
}

impl Server {
    /// Serves `fs` as the share `t`.
    pub fn start(fs: Arc<dyn FileSystem>, options: Options) -> Self {
        Self::with(fs, options, Vec::new())
    }

    /// The same, with further programs.
    pub fn with(fs: Arc<dyn FileSystem>, options: Options, further: Vec<Arc<dyn Program>>) -> Self {
        let runtimes = Arc::new(Runtimes::start(CORES).unwrap());
        let hub = Hub::new(HubOptions { cores: CORES, recorder_bytes: 4 << 20 });
        let shares = shares(fs);
        let pool = Pool::start(options.pool).unwrap();
        let socket = listen(([127, 0, 0, 1], 0).into()).unwrap();
        let service = RpcService::start(RpcConfig {
            rdma: config_with(socket.local_addr().unwrap(), options.rdma_idle_min),
            socket,
            runtimes: Arc::clone(&runtimes),
            programs: [programs(&shares), further].concat(),
            hub: Arc::clone(&hub),
            flush: Arc::new(FlushGroup::start().unwrap()),
            pool: Arc::clone(&pool),
            budgets: Arc::new(Budgets::new(options.limits)),
            tls: options.tls,
        })
        .unwrap();
        let addr = service.local_addr();
        Self { service: Some(service), addr, hub, shares, runtimes, pool }
    }

    /// Serves a fresh directory.
    pub fn fresh() -> Self {
        Self::start(directory(), Options::default())
    }

    /// Serves a fresh directory under a script.
    pub fn scripted() -> (Self, Arc<Scripted>) {
        let script = Scripted::over(directory());
        (Self::start(Arc::clone(&script) as _, Options::default()), script)
    }

    /// A client, and the handle of the share's root.
    pub fn client(&self) -> (Client, Vec<u8>) {
        let mut client = Client::connect(self.addr);
        let root = client.mount("/export/t");
        (client, root)
    }

    /// Exchanges the export rules of the share.
    pub fn set_rules(&self, text: &str) {
        let rules = Rules::parse(text, &NoLookup).expect("rules");
        let shares = self.shares.load();
        shares.by_path(b"/export/t").expect("the share").rules_for(Service::Nfs).set(rules);
    }

    /// Serves no share any more; the one that was.
    pub fn take_share_away(&self) -> Arc<Share> {
        let mut table = ShareTable::clone(&self.shares.load());
        let share = table.remove("t").expect("the share");
        self.shares.replace(table);
        share
    }

    /// Serves it again.
    pub fn put_share_back(&self, share: &Share) {
        let mut table = ShareTable::clone(&self.shares.load());
        table.add("t", Arc::clone(&share.fs), false).expect("there is none of its name");
        self.shares.replace(table);
    }

    /// The service.
    pub fn service(&self) -> &RpcService {
        self.service.as_ref().expect("not drained yet")
    }

    /// Ends the service; whether all calls were completed.
    pub fn drain(&mut self) -> bool {
        self.service.take().expect("not drained yet").drain_blocking().unwrap()
    }

    /// Operations recorded so far, once there are at least `count`.
    pub fn records(&self, count: usize) -> Vec<OpRecord> {
        wait_for("operations are written down", || {
            let mut records = Vec::new();
            self.hub.scan(0, u64::MAX, |record| records.push(*record));
            (records.len() >= count).then_some(records)
        })
    }
}

/// Version 3, and version 4.0 without state.
fn programs(shares: &Arc<Shares>) -> Vec<Arc<dyn Program>> {
    let mut programs = nfs3::programs(Arc::clone(shares));
    programs.push(nfs4::program(Arc::new(Nfs4 {
        shares: Arc::clone(shares),
        verifier: [1; 8],
        lease: Duration::from_secs(90),
        idmap: Arc::default(),
        state: Arc::new(NoState),
    })));
    programs
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

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is a directory in memory that is not needed any more.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

thread_local! {
    /// The directories of a test; it has a thread of its own.
    static SCRATCH: RefCell<Vec<Scratch>> = const { RefCell::new(Vec::new()) };
}

/// A fresh directory in memory, removed when its test is over.
pub fn directory() -> Arc<dyn FileSystem> {
    directory_at().0
}

/// The same, and where it is.
pub fn directory_at() -> (Arc<dyn FileSystem>, PathBuf) {
    directory_over(&Arc::default())
}

/// The same, over a table of opens and locks.
pub fn directory_over(locks: &Arc<LockTable>) -> (Arc<dyn FileSystem>, PathBuf) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("serve-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
    let path = std::path::Path::new("/dev/shm").join(name);
    std::fs::create_dir(&path).unwrap();
    SCRATCH.with_borrow_mut(|all| all.push(Scratch(path.clone())));
    let exclusive = Arc::clone(locks.exclusive());
    let options = HostOptions { exclusive, ..HostOptions::new(vfs::share::tag("t"), [7; 32]) };
    (HostFs::open(&path, options).unwrap(), path)
}

fn shares(fs: Arc<dyn FileSystem>) -> Arc<Shares> {
    let mut table = ShareTable::default();
    table.add("t", fs, false).unwrap();
    Shares::new(table)
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
