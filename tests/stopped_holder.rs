//! A client of SMB with leases, or of NFSv4 with write delegations, that is stopped (SIGSTOP)
//! neither acknowledges a break nor closes its connection: clients that need its files wait until
//! the lease or the delegation is revoked; others do not wait.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use e2e::api::wait_for;
use e2e::nfs3::Client;
use e2e::nfs4;
use e2e::nfs4::files::Opened;
use e2e::server::{Options, Server};
use e2e::sftp::Sftp;
use e2e::smb::caching::{self, RWH};
use e2e::smb::scene::{PASSWORD, SHARE, Scene, UID, USER};
use e2e::smb::{Ask, Offer, Smb};
use e2e::tcp::HERE;
use e2e::{measures, p99, process, took_at_most};
use wire::nfs3::StableHow;
use wire::sftp::OpenFlags;
use wire::smb::create::Disposition;

/// Where the server is that the holder connects to, over SMB and over NFS.
const AT: &str = "PLIMSOLL_TEST_HOLDER";
const AT_NFS: &str = "PLIMSOLL_TEST_HOLDER_NFS";
/// Files that it has leases of, one for each client that needs one.
const FILES: [&str; 3] = ["written", "uploaded", "opened"];
/// What is printed once it has all leases.
const READY: &str = "leases are granted";
/// What is printed when a write under a delegation that was revoked is refused.
const REFUSED: &str = "the late write is refused";
/// The lease of NFSv4 in the test of delegations, in seconds.
const LEASE: u64 = 5;
/// Delegations are looked at each second; the remainder is the request.
const MOST_OF_DELEGATION: Duration = Duration::from_secs(LEASE + 3);
/// A lease is revoked after 35 s (docs/protocols/locks.md); the remainder is the request.
const MOST: Duration = Duration::from_secs(36);
/// What clients of other files may wait longer than before.
const MORE: Duration = Duration::from_millis(5);
/// Requests of other clients before the holder is stopped.
const BEFORE: usize = 2_000;

/// Opens a file with a lease.
fn open_with_lease(smb: &mut Smb, name: &str, key: u8) {
    let ask = Ask { disposition: Disposition::OpenIf, ..Ask::open(name) };
    let answer = smb.create_with(&ask, &[caching::lease([key; 16], RWH)]).expect("an answer");
    assert_eq!(caching::opened(&answer).map(|(_, state)| state), Ok(RWH));
}

/// The holder, as a process of its own; a run of the tests does nothing here.
#[test]
fn holder_process() {
    let Ok(at) = std::env::var(AT) else { return };
    let at: SocketAddr = at.parse().expect("an address");
    let mut smb =
        Smb::open((HERE, at), &Offer::default(), (USER, PASSWORD), SHARE).expect("let in");
    for (key, name) in (1..).zip(FILES) {
        open_with_lease(&mut smb, name, key);
    }
    println!("{READY}");
    // Until its parent ends it, or is gone.
    let _ = std::io::stdin().read(&mut [0]);
}

/// The holder of write delegations, as a process of its own; a run of the tests does nothing here.
#[test]
fn delegation_holder_process() {
    let Ok(at) = std::env::var(AT_NFS) else { return };
    let at: SocketAddr = at.parse().expect("an address");
    let rpc = Client::connect(at, UID, 4322).expect("a connection");
    let mut client = nfs4::Client::over_both_ways(rpc, "holder").expect("a session");
    let root = client.walk("/export/box").expect("the share");
    let delegated = FILES.map(|name| {
        let (file, id) = client.open_delegated_to_write(&root, name).expect("OPEN");
        Opened { stateid: id.expect("a write delegation"), ..file }
    });
    client.write(&delegated[0], 0, b"early").expect("a write under the delegation");
    println!("{READY}");
    let wait = || std::io::stdin().read(&mut [0]);
    let _ = wait();
    match client.write(&delegated[0], 0, b"late") {
        Ok(()) => println!("the late write is done"),
        Err(_) => println!("{REFUSED}"),
    }
    let _ = wait();
}

/// The process that holds the leases; it ends with this.
struct Holder {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Holder {
    fn start(test: &str, (variable, at): (&str, SocketAddr)) -> Self {
        let own = std::env::current_exe().expect("this program's path");
        let mut child = Command::new(own)
            .args(["--exact", &format!("stopped_holder::{test}"), "--nocapture"])
            .env(variable, at.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let out = BufReader::new(child.stdout.take().expect("its output"));
        let mut holder = Self { child, out };
        assert!(holder.prints(READY), "the holder has its leases");
        holder
    }

    /// Whether it prints this before its end.
    fn prints(&mut self, words: &str) -> bool {
        let mut lines = (&mut self.out).lines().map_while(Result::ok);
        lines.any(|line| line.contains(words))
    }

    fn stop(&self) {
        process::signal(self.child.id(), libc::SIGSTOP);
    }

    /// It runs again, and does what comes next.
    fn resume(&mut self) {
        process::signal(self.child.id(), libc::SIGCONT);
        let input = self.child.stdin.as_mut().expect("its input");
        input.write_all(b"\n").expect("a process that reads");
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Latencies of requests about other files, over a connection for each core.
struct Others {
    clients: Vec<(Client, Vec<u8>)>,
}

impl Others {
    fn new(scene: &Scene) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let client = |number: usize| {
            let mut client = Client::connect(scene.server.nfs(), UID, 4322).expect("NFSv3");
            let root = client.mnt("/export/box").expect("a mount");
            let name = format!("other{number}");
            let how = wire::nfs3::CreateHow::Unchecked(wire::nfs3::Sattr3::default());
            let made = client.create(&root, &name, how).expect("a file");
            (client, made.handle)
        };
        Self { clients: (0..cores).map(client).collect() }
    }

    /// One request over each; how long the slowest took.
    fn look(&mut self) -> Duration {
        let one = |(client, file): &mut (Client, Vec<u8>)| {
            let begun = Instant::now();
            client.write(file, 0, b"data", StableHow::UNSTABLE).expect("written");
            begun.elapsed()
        };
        self.clients.iter_mut().map(one).max().unwrap_or_default()
    }
}

fn nfs_write(scene: &Scene) -> Duration {
    let mut client = Client::connect(scene.server.nfs(), UID, 4322).expect("NFSv3");
    let root = client.mnt("/export/box").expect("a mount");
    let file = client.lookup(&root, FILES[0]).expect("the file").handle;
    let begun = Instant::now();
    // NFS3ERR_JUKEBOX: the client comes again.
    wait_for("a WRITE", Duration::from_secs(60), || {
        client.write(&file, 0, b"new", StableHow::FILE_SYNC).ok()
    });
    begun.elapsed()
}

fn upload(scene: &Scene) -> Duration {
    let mut sftp = Sftp::connect(HERE, scene.server.at(218), (USER, PASSWORD)).expect("SFTP");
    let begun = Instant::now();
    let flags = OpenFlags::WRITE.with(OpenFlags::CREAT).with(OpenFlags::TRUNC);
    let file = sftp.open(format!("/{SHARE}/{}", FILES[1]), flags).expect("an answer");
    let file = file.expect("the file");
    sftp.write(&file, 0, b"new").expect("an answer");
    sftp.close(&file).expect("an answer");
    begun.elapsed()
}

fn smb_open(scene: &Scene) -> Duration {
    let other = Offer { client: [9; 16], ..Offer::default() };
    let mut smb = scene.anna_from(HERE, &other).expect("let in");
    let begun = Instant::now();
    smb.create(&Ask::open(FILES[2])).expect("an answer").expect("the file");
    begun.elapsed()
}

type Need = fn(&Scene) -> Duration;
const NEEDS: [(&str, Need); 3] =
    [("NFS WRITE", nfs_write), ("SFTP upload", upload), ("SMB open", smb_open)];

#[test]
fn a_holder_of_delegations_that_is_stopped_loses_them_after_a_lease() {
    let mut scene = Scene::new("stopped-delegations", &[]);
    scene.server.kill();
    let dir = scene.share.parent().expect("a directory").to_path_buf();
    let args = ["--nfs-lease", &LEASE.to_string()].map(Into::into).to_vec();
    scene.server = Server::start(&Options { args, ..Options::new(&dir, &scene.state) });
    let mut holder = Holder::start("delegation_holder_process", (AT_NFS, scene.server.nfs()));
    holder.stop();
    std::thread::scope(|scope| {
        let scene = &scene;
        let waits = NEEDS.map(|(what, need)| (what, scope.spawn(move || need(scene))));
        for (what, wait) in waits {
            let took = wait.join().expect("no panic");
            println!("{what}: {took:?}");
            took_at_most(what, took, MOST_OF_DELEGATION);
        }
    });
    holder.resume();
    assert!(holder.prints(REFUSED), "the delegation was revoked");
    let written = std::fs::read(scene.share.join(FILES[0])).expect("the file");
    assert_eq!(written, b"newly", "the late write changed nothing");
}

#[test]
fn a_holder_that_is_stopped_delays_its_files_and_no_others() {
    let scene = Scene::new("stopped-holder", &[]);
    let holder = Holder::start("holder_process", (AT, scene.at()));
    let mut others = Others::new(&scene);
    let before = p99((0..BEFORE).map(|_| others.look()).collect());
    holder.stop();
    let has_ended = AtomicBool::new(false);
    let meanwhile = std::thread::scope(|scope| {
        let looks = scope.spawn(|| {
            let mut all = Vec::new();
            while all.is_empty() || !has_ended.load(Ordering::SeqCst) {
                all.push(others.look());
            }
            all
        });
        let scene = &scene;
        let waits = NEEDS.map(|(what, need)| (what, scope.spawn(move || need(scene))));
        let waits = waits.map(|(what, wait)| (what, wait.join()));
        has_ended.store(true, Ordering::SeqCst);
        for (what, took) in waits {
            let took = took.expect("no panic");
            println!("{what}: {took:?}");
            assert!(took >= Duration::from_secs(30), "{what} has met the lease: {took:?}");
            took_at_most(what, took, MOST);
        }
        looks.join().expect("no panic")
    });
    let (count, meanwhile) = (meanwhile.len(), p99(meanwhile));
    println!("other files: p99 {before:?} before, {meanwhile:?} of {count} requests meanwhile");
    if measures() {
        assert!(meanwhile < before + MORE, "{before:?} before, {meanwhile:?} meanwhile");
    }
}
