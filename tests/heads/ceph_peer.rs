//! Outages of a client of NFSv4.1 that writes, of heads on CephFS and of nfs-ganesha with its Ceph
//! back end, on the same daemons in the same run, for `make test-long`. What a cluster of
//! nfs-ganesha has around it is taken as perfect: its address never moves, its second instance
//! starts at once after a planned end, and after `kill -9` as soon as a lease of a head is over.

use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use e2e::scratch::Scratch;
use e2e::{ganesha, patience, process, skip};

use super::ceph_daemons::{Ceph, Shared};
use super::cluster::{ACCOUNTS, Cluster, LEFT, RIGHT, Setup};
use super::session::Session;
use super::writer::{Version, Writer};

/// Takeovers of each kind.
const ROUNDS: usize = 5;
/// The lease of NFSv4 of both.
const NFS_LEASE: &str = "15";
/// How long a head that vanished keeps its ownership.
const LEASE: Duration = Duration::from_secs(3);
/// Where nfs-ganesha is, and what.
const ADDRESS: ([u8; 4], u16) = ([127, 0, 0, 2], 2049);
const EXPORT: &str = "/peer";
/// Blocks that count as progress, and the bytes of one.
const SOME: usize = 20;
const BLOCK: usize = 1024;
/// How long progress may take.
const SOON: Duration = patience(90);

/// How a server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Planned,
    Killed,
}

/// nfs-ganesha, with what it has in RADOS, and its client.
struct Peer {
    shared: Shared,
    scratch: Scratch,
    server: Option<Child>,
    ends: Arc<AtomicBool>,
    acknowledged: Receiver<Instant>,
    last: Instant,
    errors: Arc<Mutex<Vec<String>>>,
    client: Option<JoinHandle<()>>,
}

impl Peer {
    fn start(shared: Shared) -> Self {
        shared.ceph().create_pool("ganesha");
        let (ends, errors) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (report, acknowledged) = mpsc::channel();
        let (until, notes) = (ends.clone(), errors.clone());
        let work = move || {
            let mut session = Session::new(ADDRESS.into(), EXPORT, "peer", "peer");
            let mut offset = 0;
            while !until.load(Ordering::SeqCst) {
                match session.write(offset, &[0x5a; BLOCK]) {
                    Ok(()) => {
                        offset += BLOCK as u64;
                        let _ended = report.send(Instant::now());
                    }
                    Err(trouble) => {
                        notes.lock().expect("a list").push(format!("{trouble:?}"));
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
            }
        };
        let client = Some(shared.ceph().network().spawn(work));
        let scratch = Scratch::new("heads-peer");
        let last = Instant::now();
        let mut peer =
            Self { shared, scratch, server: None, ends, acknowledged, last, errors, client };
        peer.begin();
        peer.settle();
        peer
    }

    fn begin(&mut self) {
        let conf = self.shared.ceph().conf();
        let mut command = ganesha::with(self.scratch.path(), &configuration(&conf));
        self.shared.ceph().network().enter(&mut command);
        self.server = Some(command.spawn().expect("nfs-ganesha"));
    }

    /// The longest time without an acknowledgement until there are some after `since`.
    fn outage(&mut self, since: Instant) -> Duration {
        let (mut longest, mut count) = (Duration::ZERO, 0);
        while count < SOME {
            let Ok(at) = self.acknowledged.recv_timeout(SOON) else {
                panic!("nothing within {SOON:?}: {:?}", self.errors.lock().expect("a list").last());
            };
            longest = longest.max(at.saturating_duration_since(self.last));
            self.last = at;
            count += usize::from(at > since);
        }
        longest
    }

    /// Waits until the grace period is over: another client can open its file.
    fn settle(&mut self) {
        let open = || {
            let until = Instant::now() + SOON;
            let mut session = Session::new(ADDRESS.into(), EXPORT, "other", "other");
            while let Err(trouble) = session.write(0, &[1; BLOCK]) {
                assert!(Instant::now() < until, "it cannot open a file: {trouble:?}");
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        let opened = self.shared.ceph().network().spawn(open);
        opened.join().expect("a client");
        self.outage(Instant::now());
    }

    fn round(&mut self, end: End) -> Duration {
        let mut server = self.server.take().expect("a server");
        match end {
            End::Planned => {
                process::signal(server.id(), libc::SIGTERM);
                assert!(process::wait(&mut server, SOON).is_some(), "it does not end");
            }
            End::Killed => {
                process::signal(server.id(), libc::SIGKILL);
                server.wait().expect("its end");
                std::thread::sleep(LEASE);
            }
        }
        ganesha::end_mapper(self.scratch.path());
        let since = Instant::now();
        self.begin();
        let outage = self.outage(since);
        self.settle();
        outage
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        if let Some(client) = self.client.take() {
            let _ended = client.join();
        }
        ganesha::end_mapper(self.scratch.path());
        if let Some(mut server) = self.server.take() {
            // A client of CephFS that vanishes keeps others waiting.
            process::signal(server.id(), libc::SIGTERM);
            if process::wait(&mut server, SOON).is_none() {
                let _gone = server.kill();
                let _reaped = server.wait();
            }
        }
    }
}

/// Active and passive: the second instance has the name of the first, and its records.
fn configuration(conf: &Path) -> String {
    let conf = conf.display();
    format!(
        "NFS_CORE_PARAM {{ NFS_Port = 2049; Protocols = 4; \
         Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; }}\n\
         NFSV4 {{ RecoveryBackend = rados_ng; Minor_Versions = 1, 2; \
         Lease_Lifetime = {NFS_LEASE}; Grace_Period = {NFS_LEASE}; }}\n\
         RADOS_KV {{ ceph_conf = \"{conf}\"; userid = \"admin\"; pool = \"ganesha\"; nodeid = \"one\"; }}\n\
         CEPH {{ Ceph_Conf = \"{conf}\"; }}\n\
         EXPORT {{ Export_Id = 1; Path = /peer; Pseudo = {EXPORT}; Access_Type = RW; \
         Squash = No_Root_Squash; Protocols = 4; Transports = TCP; SecType = sys; \
         FSAL {{ Name = CEPH; User_Id = \"admin\"; }} }}\n"
    )
}

fn report(what: &str, end: End, mut outages: Vec<Duration>) {
    outages.sort();
    let median = outages[outages.len() / 2].as_millis();
    println!("{what}, {end:?}: {} takeovers, outage: median {median} ms: {outages:?}", ROUNDS);
}

/// Takeovers of heads on the same daemons.
fn heads(shared: &Shared) {
    let keys = shared.ceph().evict_key();
    let setup = Setup { nfs_lease: NFS_LEASE, head_keys: &keys, ..Setup::default() };
    let mut cluster =
        Cluster::set_up(Box::new(shared.clone()), &[ACCOUNTS], &setup).expect("a cluster");
    let mut writer = Writer::start(&cluster, ACCOUNTS, Version::V4);
    writer.progress();
    for end in [End::Planned, End::Killed] {
        let round = |_| {
            let owner = cluster.wait_for_some_owner(ACCOUNTS);
            let serves = |head| cluster.observe(ACCOUNTS, head).is_some_and(|one| one.0 == "owner");
            let (from, to) = if serves(LEFT) { (LEFT, RIGHT) } else { (RIGHT, LEFT) };
            match end {
                End::Planned => cluster.command(to, &["takeover", ACCOUNTS.name]),
                End::Killed => {
                    cluster.kill(from);
                    process::signal(owner, libc::SIGKILL);
                }
            }
            cluster.wait_for_owner(ACCOUNTS, to);
            let outage = writer.progress();
            if end == End::Killed {
                cluster.start_head(from);
            }
            cluster.wait_for_member(to, from);
            outage
        };
        report("heads", end, (0..ROUNDS).map(round).collect());
    }
    writer.check(&cluster);
    cluster.end();
}

#[test]
fn outages_next_to_those_of_ganesha() {
    if let Some(why) = ganesha::missing() {
        skip!("heads-peer", "{why}");
    }
    let has_back_end = |folder: &Path| folder.join("ganesha/libfsalceph.so").exists();
    let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"];
    if !folders.iter().any(|folder| has_back_end(Path::new(folder))) {
        skip!("heads-peer", "nfs-ganesha-ceph is not installed");
    }
    let shared = match Ceph::start() {
        Ok(ceph) => Shared::new(ceph),
        Err(why) => skip!("heads-peer", "{why}"),
    };
    std::fs::create_dir(shared.ceph().place("own").join("peer")).expect("made");
    heads(&shared);
    let mut peer = Peer::start(shared);
    for end in [End::Planned, End::Killed] {
        let outages = (0..ROUNDS).map(|_| peer.round(end)).collect();
        report("nfs-ganesha", end, outages);
    }
}
