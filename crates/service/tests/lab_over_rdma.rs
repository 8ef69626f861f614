//! The lab's client over RDMA and the service, in one process on devices within it: what is written
//! is what is read, at sizes at which something changes and with more threads than credits; and the
//! calls that the client reports are those of the statistics for its transport.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use analytics::collect::Assembler;
use analytics::names::HubResolver;
use analytics::query::{Engine, Query};
use base::clock::Deadline;
use base::limits::{RDMA_CREDITS_MAX, RDMA_IDLE_MIN, RDMA_REGISTERED_MAX};
use lab::client::{self, Client, Fault, FileSet, Op, Target};
use probe::hub::{Hub, HubOptions};
use serve::nfs3;
use serve::pool::{Pool, PoolLimits};
use serve::rpc::{RdmaConfig, RpcConfig, RpcService, listen};
use serve::transport::budget::Limits;
use serve::transport::{Budgets, Runtimes};
use verbs::mock::Fabric;
use vfs::flush::FlushGroup;
use vfs::host::{HostFs, HostOptions};
use vfs::share::{ShareTable, Shares};

const PATIENCE: Duration = Duration::from_secs(60);
const CORES: usize = 2;
/// More threads than any server grants credits.
const SLOTS: u32 = RDMA_CREDITS_MAX + 40;
const SET: FileSet = FileSet { client: 1, files: 2, size: (2 << 20) + 7 };

/// A service with a share, over TCP and over devices within this process.
struct Scene {
    service: Option<RpcService>,
    hub: Arc<Hub>,
    fabric: Arc<Fabric>,
    at: SocketAddr,
    folder: PathBuf,
    runtimes: Option<Arc<Runtimes>>,
}

impl Scene {
    fn new(name: &str) -> Self {
        let folder = Path::new("/dev/shm").join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder");
        let mut table = ShareTable::default();
        let options = HostOptions::new(vfs::share::tag("t"), [7; 32]);
        table.add("t", HostFs::open(&folder, options).expect("it opens"), false).expect("a share");
        let runtimes = Arc::new(Runtimes::start(CORES).expect("runtimes"));
        let hub = Hub::new(HubOptions { cores: CORES, recorder_bytes: 4 << 20 });
        let fabric = Fabric::new(RDMA_REGISTERED_MAX);
        let socket = listen((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
        let at = socket.local_addr().expect("an address");
        let pool = PoolLimits { threads: 4, queue: 1000, per_client: 1000 };
        let service = RpcService::start(RpcConfig {
            socket,
            runtimes: Arc::clone(&runtimes),
            programs: nfs3::programs(Shares::new(table)),
            hub: Arc::clone(&hub),
            flush: Arc::new(FlushGroup::start().expect("flushers")),
            pool: Pool::start(pool).expect("a pool"),
            budgets: Arc::new(Budgets::new(Limits::default())),
            tls: None,
            rdma: Some(RdmaConfig {
                verbs: fabric.verbs(),
                at,
                stats: Arc::default(),
                idle_min: RDMA_IDLE_MIN,
            }),
        });
        let (service, runtimes) = (Some(service.expect("it starts")), Some(runtimes));
        Self { service, hub, fabric, at, folder, runtimes }
    }

    /// A client of the share, over RDMA or TCP, with its files.
    fn client(&self, scheme: &str) -> Box<dyn Client> {
        let url = format!("{scheme}://{}/export/t?mountport={}", self.at, self.at.port());
        let target = Target::parse(&url).expect("a target");
        let options = client::Options { bind: None, seed: 5, check_one_in: 1, slots: SLOTS };
        let opened = client::open_by(&target, &options, &*self.fabric.verbs());
        let mut client = opened.unwrap_or_else(|why| panic!("{url}: {why}"));
        client.prepare(&SET).expect("files");
        client
    }

    /// Ends the service, and gives what `id` has counted by element.
    fn counted(&mut self, id: &str) -> Vec<(String, u64)> {
        let drained = self.service.take().expect("it is there").drain_blocking();
        assert!(drained.expect("it ends"));
        // With the last runtime the cores hand over the second that is not over yet.
        self.runtimes = None;
        let engine = Engine::new(self.hub.clone(), Arc::new(HubResolver(self.hub.clone())), None);
        let mut assembler = Assembler::new(self.hub.clone(), engine.names().clone());
        let deadline = Deadline::after(PATIENCE);
        while self.hub.closed() != u64::MAX {
            assert!(!deadline.passed(), "cores do not end");
            std::thread::yield_now();
        }
        let seconds = self.hub.take_before(u64::MAX);
        let (first, last) = (seconds[0].second, seconds[seconds.len() - 1].second);
        for second in first..=last {
            let of_it: Vec<_> = seconds.iter().filter(|s| s.second == second).cloned().collect();
            engine.push(assembler.frame(second, &of_it, &[]));
        }
        assert_eq!(self.hub.gauges().dropped.get(), 0);
        let (from, to) = (Some(first as i64), Some(last as i64 + 1));
        let query = Query { from, to, step: 1, top: 100, source: None };
        let data = engine.data(&id.parse().expect("an id"), &query).expect("data");
        let rows = data.rows().iter();
        let sum = |values: &[Option<f64>]| values.iter().flatten().sum::<f64>() as u64;
        rows.map(|row| (row.key.clone(), sum(&row.values))).filter(|row| row.1 > 0).collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // If the removal fails, only a folder in memory is left.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Runs these at once, a slot each; what became of them, in their order.
fn run(client: &mut dyn Client, ops: &[Op]) -> Vec<Result<u32, Fault>> {
    for (slot, op) in ops.iter().enumerate() {
        client.submit(slot as u32, *op).expect("submitted");
    }
    client.flush().expect("sent");
    let (mut done, deadline) = (Vec::new(), Deadline::after(PATIENCE));
    while done.len() < ops.len() {
        assert!(!deadline.passed(), "{} of {}", done.len(), ops.len());
        client.wait(Duration::from_millis(50), &mut done).expect("connected");
    }
    done.sort_by_key(|one| one.slot);
    done.into_iter().map(|one| one.outcome).collect()
}

/// Sizes around those at which data goes by chunks, and at which files end.
const SIZES: [u32; 9] = [1, 1023, 1024, 3456, 3457, 4095, 4097, 70_001, 1 << 20];

fn load(client: &mut dyn Client) {
    let data = |op: fn(u32) -> Op| SIZES.map(op).to_vec();
    let written = data(|len| Op::Write { file: 0, offset: 5, len, stable: len % 2 == 0 });
    let read = data(|len| Op::Read { file: 0, offset: 3, len });
    for ops in [&written, &read] {
        assert_eq!(run(client, ops), SIZES.map(Ok));
    }
    let past = Op::Read { file: 1, offset: SET.size - 10, len: 65_536 };
    let other = [
        (Op::Null, Ok(0)),
        (Op::Getattr { file: 1 }, Ok(0)),
        (Op::Lookup { file: 1 }, Ok(0)),
        (Op::Create { name: 77 }, Ok(0)),
        (Op::Commit { file: 0 }, Ok(0)),
        (past, Err(Fault::Short)),
    ];
    assert_eq!(run(client, &other.map(|one| one.0)), other.map(|one| one.1));
    assert_eq!(run(client, &[Op::Remove { name: 77 }]), [Ok(0)]);
    let gone = run(client, &[Op::Remove { name: 77 }]);
    assert_eq!(gone, [Err(Fault::Status(2))], "NFS3ERR_NOENT");
    let many: Vec<_> = (0..SLOTS).map(|n| Op::Read { file: n % 2, offset: 9, len: 9000 }).collect();
    assert!(run(client, &many).iter().all(|outcome| *outcome == Ok(9000)));
}

#[test]
fn what_the_lab_calls_is_counted_by_transport() {
    let mut scene = Scene::new("lab-over-rdma");
    let mut calls = Vec::new();
    for scheme in ["nfs3+rdma", "nfs3"] {
        let mut client = scene.client(scheme);
        load(&mut *client);
        let granted = (scheme == "nfs3+rdma").then_some(RDMA_CREDITS_MAX);
        assert_eq!(client.granted(), granted, "{scheme}");
        client.clean(&SET).expect("cleaned");
        calls.push(client.calls());
    }
    assert!(calls.iter().all(|calls| *calls > 200), "{calls:?}");
    let mut counted = scene.counted("nfs.ops[transport]");
    counted.sort();
    assert_eq!(counted, [("rdma".to_owned(), calls[0]), ("tcp".to_owned(), calls[1])]);
    assert_eq!(scene.fabric.account().bytes(), 0, "all that was registered is given back");
}

#[test]
fn a_server_that_does_not_listen_refuses_in_a_sentence() {
    let target = Target::parse("nfs3+rdma://127.0.0.1:9/export/t").expect("a target");
    let options = client::Options { bind: None, seed: 5, check_one_in: 1, slots: 1 };
    let refused = client::open_by(&target, &options, &*Fabric::new(1 << 20).verbs());
    let why = base::failure::chain(&refused.err().expect("nobody listens"));
    assert_eq!(
        why,
        "connect to 127.0.0.1:9 over RDMA: the server does not accept connections over RDMA on \
         this port"
    );
}
