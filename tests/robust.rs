//! Peers that send nonsense, stop half way, read nothing, or come in thousands: a well-behaved
//! client notices nothing, the statistics show it, and memory stays bounded.

#[path = "robust/replay.rs"]
mod replay;
#[path = "robust/watch.rs"]
mod watch;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::random::{Random, SeededRandom};
use e2e::api::{self, Api, wait_for};
use e2e::nfs3::Client;
use e2e::process::{memory, raise_descriptors};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::skip;
use e2e::tcp::{address, connect_from};
use watch::Watch;
use wire::nfs3::{
    CreateHow, DiropArgs, Fh3, Filename3, LookupArgs, Proc, ReadArgs, Sattr3, StableHow,
};

/// How long the server may take to notice something.
const NOTICE: Duration = Duration::from_secs(20);
/// How long a connection that sent nonsense may stay open.
const CLOSED: Duration = Duration::from_secs(40);
/// What a server without load may take in addition to its flight recorder.
const RESTING: u64 = 64 << 20;
/// Memory beyond that and what the budgets allow: the allocator's leftovers, tables that fill.
const MARGIN: u64 = 64 << 20;

/// One at a time: they measure latencies.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server on a share in memory.
struct Scene {
    server: Server,
    api: Api,
    state: PathBuf,
    from: i64,
    _scratch: Scratch,
    _alone: MutexGuard<'static, ()>,
}

impl Scene {
    fn new(name: &str, descriptors: Option<u64>) -> Self {
        let alone = alone();
        let scratch = Scratch::below(Path::new("/dev/shm"), name);
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        // Before the start: a counter may be read for the second before the one that moved it.
        let from = api::now();
        let server = Server::start(&Options { descriptors, ..Options::new(&dir, &state) });
        let api = Api::new(&state);
        Self { server, api, state, from, _scratch: scratch, _alone: alone }
    }

    fn connect(&self) -> TcpStream {
        connect(self.server.nfs())
    }

    /// What a counter of the server has counted since the start.
    fn counted(&self, stat: &str) -> u64 {
        self.api.count(stat, (self.from, api::now() + 1))
    }

    fn wait_counted(&self, stat: &str, least: u64) {
        let enough = || (self.counted(stat) >= least).then_some(());
        wait_for(&format!("{stat} ≥ {least}"), NOTICE, enough);
    }

    /// What must hold after everything: no panic, and memory within `allowed` beyond what a server
    /// without load takes.
    fn check(mut self, allowed: u64) {
        let peak = memory(self.server.pid(), "VmHWM");
        let (_, recorder) = self.api.get("/api/v1/analytics/recorder");
        let resting = RESTING + recorder["bytes"].as_u64().expect("its size");
        println!("at most {} MiB, {} MiB of it allowed at rest", peak >> 20, resting >> 20);
        assert!(peak <= resting + allowed, "{} MiB at most", peak >> 20);
        assert_eq!(self.counted("server.panics"), 0);
        assert_eq!(self.counted("analytics.dropped"), 0);
        assert!(self.state.join("plimsoll.sock").exists());
        assert!(self.server.stop().success(), "{}", self.server.stderr_text());
        assert!(!self.server.stderr_text().contains("panicked"), "{}", self.server.stderr_text());
    }
}

fn connect(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).expect("a connection");
    stream.set_nodelay(true).expect("no delay");
    stream.set_read_timeout(Some(CLOSED)).expect("a deadline");
    stream.set_write_timeout(Some(CLOSED)).expect("a deadline");
    stream
}

fn mode(mode: u32) -> Sattr3 {
    Sattr3 { mode: Some(mode), ..Sattr3::default() }
}

/// Sends bytes that may not all be taken, and nothing after them; true when the server then closes.
fn closes_after(mut stream: TcpStream, bytes: &[u8]) -> bool {
    // The server may close before all is sent.
    let _cut = stream.write_all(bytes);
    let _cut = stream.shutdown(Shutdown::Write);
    drained(&mut stream)
}

/// Reads until the server closes; false when it does not.
fn drained(stream: &mut TcpStream) -> bool {
    let mut rest = [0; 4096];
    loop {
        match stream.read(&mut rest) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(e) => return !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        }
    }
}

/// A connection on which a call was made, which is not evicted for new ones; one too many is
/// closed by the server meanwhile.
fn used(mut stream: TcpStream) -> TcpStream {
    // GETATTR of NFSv3 without credentials, of a handle of no bytes (RFC 5531 section 9).
    let call = words(&[1, 0, 2, 100_003, 3, 1, 0, 0, 0, 0, 0]);
    let mut record = words(&[1 << 31 | call.len() as u32]);
    record.extend(call);
    let mut reply = [0; 8];
    let _one_too_many = stream.write_all(&record).and_then(|()| stream.read_exact(&mut reply));
    stream
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Records that are not an RPC call, or have an invalid one, in valid framing.
fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    const NFS: u32 = 100_003;
    let framed = |body: &[u32]| {
        let mut all = vec![0x8000_0000 | (body.len() as u32 * 4)];
        all.extend(body);
        words(&all)
    };
    vec![
        ("an empty record", framed(&[])),
        ("a reply", framed(&[9, 1, 0, 0, 0, 0])),
        ("neither call nor reply", framed(&[9, 7, 2, NFS, 3, 0, 0, 0, 0, 0])),
        ("RPC version 3", framed(&[9, 0, 3, NFS, 3, 0, 0, 0, 0, 0])),
        ("a header cut short", framed(&[9, 0, 2, NFS])),
        ("a credential longer than the record", framed(&[9, 0, 2, NFS, 3, 1, 1, 400, 0, 0])),
        ("a credential longer than allowed", framed(&[9, 0, 2, NFS, 3, 1, 1, 0xffff_fff0, 0, 0])),
        ("an unknown flavour", framed(&[9, 0, 2, NFS, 3, 1, 77, 0, 0, 0])),
        ("an unknown program", framed(&[9, 0, 2, 4_711, 3, 1, 0, 0, 0, 0])),
        ("version 2 of NFS", framed(&[9, 0, 2, NFS, 2, 1, 0, 0, 0, 0])),
        ("procedure 22", framed(&[9, 0, 2, NFS, 3, 22, 0, 0, 0, 0])),
        ("GETATTR without arguments", framed(&[9, 0, 2, NFS, 3, 1, 0, 0, 0, 0])),
        ("a handle of 4 GiB", framed(&[9, 0, 2, NFS, 3, 1, 0, 0, 0, 0, 0xffff_ffff])),
        ("READ of a handle of 65 bytes", framed(&[9, 0, 2, NFS, 3, 6, 0, 0, 0, 0, 65, 1, 1, 1])),
    ]
}

#[test]
fn malformed_and_oversized_records() {
    let scene = Scene::new("malformed", None);
    let watch = Watch::start(&scene.server);
    for _ in 0..20 {
        for (what, bytes) in malformed() {
            assert!(closes_after(scene.connect(), &bytes), "{what}: still open");
        }
        let huge = [0x8fff_ffff, 0xffff_ffff, 0x0fff_ffff, 0x8020_0000];
        for marker in huge {
            let mut stream = scene.connect();
            stream.write_all(&words(&[marker, 1, 2, 3])).expect("sent");
            assert!(drained(&mut stream), "a record of {marker:x} is refused at its marker");
        }
    }
    scene.wait_counted("server.bad_records", 20 * 8);
    watch.end("malformed records");
    scene.check(MARGIN);
}

/// Fragments without end: empty ones, tiny ones, and large ones. Each ends within what one record
/// may take.
#[test]
fn endless_fragments() {
    let scene = Scene::new("endless", None);
    let watch = Watch::start(&scene.server);
    for round in 0..30 {
        for size in [0, 1, 40, 16 << 10] {
            let mut fragment = words(&[size as u32]);
            fragment.resize(4 + size, round);
            let (mut stream, mut sent) = (scene.connect(), 0);
            // Buffers of the sockets included, far less than this is taken.
            while sent < 64 << 20 && stream.write_all(&fragment).is_ok() {
                sent += fragment.len();
            }
            assert!(sent < 64 << 20, "{sent} bytes in fragments of {size}");
            assert!(drained(&mut stream), "fragments of {size}");
        }
    }
    scene.wait_counted("server.bad_records", 30 * 4);
    watch.end("endless fragments");
    scene.check(MARGIN);
}

#[test]
fn random_bytes_on_thousands_of_connections() {
    const CONNECTIONS: u64 = 3_000;
    let scene = Scene::new("random", None);
    let watch = Watch::start(&scene.server);
    let (mut client, root) = scene.server.mount(0, 0);
    let what = DiropArgs { dir: Fh3(&root), name: Filename3(b"well-behaved") };
    let call = client.nfs_record(Proc::LOOKUP, &LookupArgs { what });
    let mut random = SeededRandom::new(11);
    for n in 0..CONNECTIONS {
        let mut bytes = if n % 2 == 0 {
            let mut bytes = vec![0; 1 + random.below(3_000) as usize];
            random.fill(&mut bytes);
            bytes
        } else {
            // A call of which some bytes are wrong, many times over.
            call.repeat(1 + random.below(20) as usize)
        };
        for _ in 0..1 + random.below(8) {
            let place = random.below(bytes.len() as u64) as usize;
            bytes[place] = random.next_u64() as u8;
        }
        assert!(closes_after(scene.connect(), &bytes), "connection {n} stays open");
    }
    scene.wait_counted("server.bad_records", CONNECTIONS / 4);
    watch.end("random bytes");
    scene.check(MARGIN);
}

/// Connections that begin a record and stay; most announce the largest there is, so that together
/// they would take more than the whole budget of bytes.
#[test]
fn half_open_connections() {
    const CONNECTIONS: usize = 600;
    const LARGE: u32 = 1 << 20;
    if raise_descriptors() < 2 * CONNECTIONS as u64 {
        skip!("robust-half-open", "too few descriptors");
    }
    let scene = Scene::new("half-open", None);
    let watch = Watch::start(&scene.server);
    let mut random = SeededRandom::new(12);
    let mut held = Vec::new();
    for n in 0..CONNECTIONS {
        let mut stream = scene.connect();
        let mut bytes = words(&[0x8000_0000 | if n % 4 == 0 { 200 } else { LARGE }]);
        bytes.resize(5 + random.below(150) as usize, 0);
        stream.write_all(&bytes).expect("sent");
        held.push(stream);
    }
    let open = || (scene.api.budget("server.connections").0 > CONNECTIONS as u64).then_some(());
    wait_for("all are counted", NOTICE, open);
    let (used, limit) = scene.api.budget("server.bytes_in_flight");
    println!("{used} of {limit} bytes are taken");
    assert!(used > 0 && used <= limit + limit / 4, "{used} of {limit} bytes");
    watch.wait_for_more();
    // They are disconnected after a timeout, and counted.
    for stream in &mut held {
        stream.set_read_timeout(Some(Duration::from_secs(45))).expect("a deadline");
        assert!(drained(stream), "still open");
    }
    scene.wait_counted("server.slow_peers", CONNECTIONS as u64);
    let freed = || (scene.api.budget("server.bytes_in_flight").0 == 0).then_some(());
    watch.end("half-open connections");
    wait_for("no bytes are held any more", NOTICE, freed);
    let (_, limit) = scene.api.budget("server.bytes_in_flight");
    scene.check(limit + MARGIN);
}

/// Connections that send all but the last byte of the largest record there is, until no bytes are
/// left in the budget.
#[test]
fn unfinished_records_fill_the_budget() {
    const CONNECTIONS: usize = 400;
    const SENDERS: usize = 8;
    if raise_descriptors() < 2 * CONNECTIONS as u64 {
        skip!("robust-budget", "too few descriptors");
    }
    let scene = Scene::new("budget", None);
    let watch = Watch::start(&scene.server);
    let (used, limit) = scene.api.budget("server.bytes_in_flight");
    assert!(used < limit / 4, "{used} of {limit} before");
    let mut bytes = words(&[0x8000_0000 | 1 << 20]);
    bytes.resize(4 + (1 << 20) - 1, 0);
    let (at, bytes) = (scene.server.nfs(), &bytes);
    let send = || {
        let mut held = Vec::new();
        for _ in 0..CONNECTIONS / SENDERS {
            let mut stream = connect(at);
            // When the budget is used up, the server does not read.
            stream.set_write_timeout(Some(Duration::from_millis(100))).expect("a deadline");
            let _left = stream.write_all(bytes);
            held.push(stream);
        }
        held
    };
    let held: Vec<_> = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS).map(|_| scope.spawn(send)).collect();
        senders.into_iter().map(|sender| sender.join().expect("a sender")).collect()
    });
    // Those that came too late are left unread, and the first ones, which stand still, give way.
    scene.wait_counted("server.stalls", 1);
    scene.wait_counted("server.slow_peers", 1);
    let interval = (scene.from, api::now() + 1);
    let levels = scene.api.data("server.bytes_in_flight", interval, "");
    let levels = levels["total"].as_array().expect("levels").iter().filter_map(|v| v.as_f64());
    let most = levels.fold(0.0, f64::max) as u64;
    println!("at most {most} of {limit} bytes were taken");
    // All come from one address, of which the part is a half; at a sample some have given way.
    assert!(most > limit * 3 / 8 && most <= limit + limit / 4, "{most} of {limit}");
    watch.end("a used-up budget");
    drop(held);
    let freed = || (scene.api.budget("server.bytes_in_flight").0 == 0).then_some(());
    wait_for("no bytes are held any more", NOTICE, freed);
    scene.check(limit + MARGIN);
}

#[test]
fn readers_that_never_read() {
    let scene = Scene::new("slow-readers", None);
    let (mut client, root) = scene.server.mount(0, 0);
    let how = CreateHow::Guarded(mode(0o644));
    let file = client.create(&root, "large", how).expect("a file").handle;
    client.write(&file, 0, &vec![7; 1 << 20], StableHow::UNSTABLE).expect("a write");
    let watch = Watch::start(&scene.server);
    let args = ReadArgs { file: Fh3(&file), offset: 0, count: 1 << 20 };
    let mut held: Vec<Client> = Vec::new();
    for _ in 0..60 {
        let mut greedy = Client::connect(scene.server.nfs(), 0, 0).expect("a connection");
        let calls: Vec<u8> = (0..200).flat_map(|_| greedy.nfs_record(Proc::READ, &args)).collect();
        greedy.send(&calls).expect("sent");
        held.push(greedy);
    }
    watch.wait_for_more();
    let (used, limit) = scene.api.budget("server.bytes_in_flight");
    println!("{used} of {limit} bytes are taken");
    watch.end("readers that never read");
    // One of them begins to read: it gets all of its replies.
    let patient = held.last_mut().expect("one");
    for n in 0..200 {
        let reply = patient.receive().unwrap_or_else(|e| panic!("reply {n}: {e}"));
        assert!(reply.len() > 1 << 20 && reply[reply.len() - (1 << 20)..].iter().all(|b| *b == 7));
    }
    drop(held);
    let (_, limit) = scene.api.budget("server.bytes_in_flight");
    scene.check(limit + MARGIN);
}

#[test]
fn two_thousand_idle_connections() {
    const CONNECTIONS: usize = 2_000;
    if raise_descriptors() < 2 * CONNECTIONS as u64 {
        skip!("robust-idle", "too few descriptors");
    }
    let scene = Scene::new("idle", None);
    let watch = Watch::start(&scene.server);
    let (mut client, root) = scene.server.mount(0, 0);
    let mut held: Vec<TcpStream> = (0..CONNECTIONS).map(|_| scene.connect()).collect();
    let used = || {
        let (used, limit) = scene.api.budget("server.connections");
        assert!(limit > CONNECTIONS as u64 && used <= limit, "{used} of {limit}");
        (used >= CONNECTIONS as u64 + 2).then_some(())
    };
    wait_for("all are counted", NOTICE, used);
    watch.wait_for_more();
    // They are alive: each can be used when it likes.
    let what = DiropArgs { dir: Fh3(&root), name: Filename3(b"well-behaved") };
    let call = client.nfs_record(Proc::LOOKUP, &LookupArgs { what });
    for stream in held.iter_mut().step_by(100) {
        stream.write_all(&call).expect("sent");
        let mut marker = [0; 4];
        stream.read_exact(&mut marker).expect("an answer");
        assert_eq!(marker[0], 0x80);
    }
    watch.end("2 000 idle connections");
    drop(held);
    let gone = || (scene.api.budget("server.connections").0 <= 2).then_some(());
    wait_for("they are gone", NOTICE, gone);
    scene.check(MARGIN);
}

#[test]
fn the_limit_of_connections_is_kept_and_shown() {
    let scene = Scene::new("too-many", Some(512));
    let watch = Watch::start(&scene.server);
    let (_, limit) = scene.api.budget("server.connections");
    assert!(limit < 512, "the limit follows the descriptors: {limit}");
    let from = |n: u64| connect_from(address(2 + (n % 3) as u8), scene.server.nfs());
    let held: Vec<TcpStream> = (0..limit).map(|n| used(from(n).expect("a connection"))).collect();
    let full = || {
        let status = scene.api.status();
        let told = status["problems"].to_string().contains("connection limit");
        assert!(!told || status["healthy"] == false, "{status:#}");
        told.then_some(())
    };
    wait_for("the limit is reached, and told", NOTICE, full);
    let used = scene.api.budget("server.connections").0;
    assert!(used < limit, "{used} of {limit}: what the other services are sure of is left");
    let mut ftp = TcpStream::connect(scene.server.at(21)).expect("FTP");
    let mut greeting = [0; 3];
    assert!(ftp.read_exact(&mut greeting).is_ok() && &greeting == b"220", "{greeting:?}");
    for _ in 0..50 {
        assert!(drained(&mut scene.connect()), "one too many is closed at once");
    }
    scene.wait_counted("server.refused_connections", 50);
    watch.end("too many connections");
    drop(held);
    let room = || (scene.api.budget("server.connections").0 < limit / 2).then_some(());
    wait_for("there is room again", NOTICE, room);
    scene.server.mount(0, 0);
    scene.check(MARGIN);
}
