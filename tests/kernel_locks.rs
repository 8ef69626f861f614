//! Real Linux clients of NFSv3 that lock over the network (NLM, with rpcbind and rpc.statd next to
//! it): they exclude each other and clients of NFSv4, a lock that was waited for is granted by a
//! callback, a client that restarts loses what it held, and a server that restarts lets its clients
//! reclaim their locks.

use std::time::{Duration, Instant};

use e2e::netns::{HOST, Namespace};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::uml::{self, Guest, Task};
use e2e::{has, skip, took_at_most};

/// The lease, and with it the grace period.
const LEASE: &str = "10";
/// A Linux client that waits retries after 30 s: an earlier grant came by a callback.
const CALLED: Duration = Duration::from_secs(20);

/// What a guest needs to lock over NFSv3. The folder of rpc.statd outlives the guest.
const DAEMONS: &str = "
mkdir -p /run/rpcbind /mnt/host/statd/sm /mnt/host/statd/sm.bak
mount --bind /mnt/host/statd /var/lib/nfs
rpcbind
rpc.statd --no-notify
";

/// Two guests that have mounted the share, each by NFSv3 with locks and by NFSv4.2.
struct Pair {
    one: Guest,
    two: Guest,
    server: Server,
    namespace: Namespace,
    scratch: Scratch,
}

fn start(namespace: &Namespace, scratch: &Scratch) -> Server {
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let mut options = Options::new(&dir, &state);
    options.address = HOST;
    options.namespace = Some(namespace);
    // The ports that clients use by default.
    options.offset = Some(0);
    options.args = ["--nfs-lease", LEASE].map(Into::into).to_vec();
    Server::start(&options)
}

fn boot(namespace: &Namespace, scratch: &Scratch, number: u8, server: &Server) -> Guest {
    let mut guest = Guest::boot(namespace, number, scratch.path());
    guest.install("locks");
    guest.run(DAEMONS);
    // It requests the ports of MOUNT and NLM from the port mapper.
    guest.mount("three", server.nfs_port(), &server.export(), "vers=3,lock");
    guest.mount("four", server.nfs_port(), &server.export(), "vers=4.2");
    guest.run("mkfifo /tmp/go");
    guest
}

impl Pair {
    fn new() -> Result<Self, String> {
        if let Some(tool) = ["rpcbind", "rpc.statd", "sm-notify"].iter().find(|tool| !has(tool)) {
            return Err(format!("not installed: {tool}"));
        }
        let namespace = uml::namespace(2)?;
        let scratch = Scratch::new("kernel-locks");
        let server = start(&namespace, &scratch);
        let [one, two] = [0, 1].map(|number| boot(&namespace, &scratch, number, &server));
        Ok(Self { one, two, server, namespace, scratch })
    }
}

/// The client's own tools find everything by the port mapper, and a mount command without ports.
fn is_found_by_port_mapper(pair: &mut Pair) {
    let export = pair.server.export();
    let listed = pair.one.run(&format!("rpcinfo -p {HOST}"));
    for program in ["100000", "100003", "100005", "100021", "100024"] {
        assert!(listed.contains(program), "{listed}");
    }
    pair.one.run(&format!(
        "mkdir /mnt/plain\n\
         mount -t nfs -o vers=3,noresvport {HOST}:{export} /mnt/plain\n\
         touch /mnt/plain/plain\n\
         umount /mnt/plain"
    ));
}

/// Takes a lock that is held until [`release`].
fn hold(guest: &mut Guest, kind: &str, mode: &str, range: &str) -> Task {
    let task = guest.begin(&format!("locks holder {kind} {mode} try {range} /tmp/go"));
    guest.event("holder granted");
    task
}

fn release(guest: &mut Guest, task: &Task) {
    guest.run("echo >/tmp/go");
    let (status, log) = guest.end(task);
    assert_eq!(status, 0, "{log}");
}

/// Whether a lock is granted without waiting.
fn can(guest: &mut Guest, kind: &str, mode: &str, range: &str) -> bool {
    let task = guest.begin(&format!("locks other {kind} {mode} try {range}"));
    let (status, log) = guest.end(&task);
    assert!(status == 0 || status == 1, "{kind} {mode} {range}: {log}\n{}", guest.said());
    status == 0
}

/// What guest one holds of a file by `one`, guest two does not get by `two`.
fn exclude_each_other(pair: &mut Pair, one: &str, two: &str) {
    let ours = |range: &str| format!("/mnt/{one}/excluded {range}");
    let theirs = |range: &str| format!("/mnt/{two}/excluded {range}");
    let held = hold(&mut pair.one, "fcntl", "write", &ours("100 100"));
    for (kind, mode, range, wanted) in [
        ("fcntl", "write", "100 100", false),
        ("fcntl", "read", "0 101", false),
        ("fcntl", "write", "199 0", false),
        ("flock", "read", "0 0", false),
        ("fcntl", "write", "0 100", true),
        ("fcntl", "write", "200 0", true),
    ] {
        let got = can(&mut pair.two, kind, mode, &theirs(range));
        assert_eq!(got, wanted, "{one} holds 100 100, {two} wants {kind} {mode} {range}");
    }
    release(&mut pair.one, &held);
    assert!(can(&mut pair.two, "fcntl", "write", &theirs("0 0")), "given back");
    let held = hold(&mut pair.one, "flock", "read", &ours("0 0"));
    assert!(can(&mut pair.two, "fcntl", "read", &theirs("5 5")), "readers share");
    assert!(!can(&mut pair.two, "flock", "write", &theirs("0 0")), "a reader is in the way");
    release(&mut pair.one, &held);
}

/// A lock that guest two waits for over NFSv3 comes as soon as guest one gives it back.
fn is_granted_by_call(pair: &mut Pair, mount: &str) {
    let held = hold(&mut pair.one, "fcntl", "write", &format!("/mnt/{mount}/waited 10 10"));
    let waiting = pair.two.begin("locks waiter fcntl write wait /mnt/three/waited 0 0");
    pair.two.event("waiter asks");
    // It has been refused once the server lists it as waiting: its process sleeps in the kernel.
    // The function is `nlmclnt_block` in Linux 6.1, and `nlmclnt_wait` later.
    let asleep = "grep -q 'nlmclnt_\\(block\\|wait\\)' /proc/[0-9]*/wchan /proc/[0-9]*/stack";
    pair.two.run(&format!("until {asleep}; do :; done"));
    assert!(!pair.two.forget("waiter granted"), "granted to both");
    let released = Instant::now();
    release(&mut pair.one, &held);
    pair.two.event("waiter granted");
    took_at_most(&format!("{mount}: NLM_GRANTED"), released.elapsed(), CALLED);
    assert_eq!(pair.two.end(&waiting).0, 0);
}

/// A guest that loses its power keeps its lock until it has restarted and sends SM_NOTIFY.
fn goes_with_a_client_that_restarts(pair: &mut Pair) {
    let _held = hold(&mut pair.one, "fcntl", "write", "/mnt/three/left 0 0");
    pair.one.cut();
    assert!(!can(&mut pair.two, "fcntl", "write", "/mnt/three/left 0 0"), "it may be back");
    pair.one = Guest::boot(&pair.namespace, 0, pair.scratch.path());
    pair.one.run(DAEMONS);
    pair.one.run("sm-notify -f");
    let waiting = pair.two.begin("locks waiter fcntl write until /mnt/three/left 0 0");
    pair.two.event("waiter granted");
    assert_eq!(pair.two.end(&waiting).0, 0);
    pair.one = boot_again(pair);
}

fn boot_again(pair: &mut Pair) -> Guest {
    pair.one.cut();
    boot(&pair.namespace, &pair.scratch, 0, &pair.server)
}

/// After a restart of the server its client has its lock still, and a stranger not.
fn outlives_the_server(pair: &mut Pair) {
    let held = hold(&mut pair.one, "fcntl", "write", "/mnt/three/kept 0 0");
    pair.server.kill();
    pair.server = start(&pair.namespace, &pair.scratch);
    // A lock elsewhere is refused until grace is over; by then the first has been reclaimed.
    let other = pair.two.begin("locks waiter fcntl write until /mnt/four/elsewhere 0 0");
    pair.two.event("waiter granted");
    assert_eq!(pair.two.end(&other).0, 0);
    assert!(!can(&mut pair.two, "fcntl", "write", "/mnt/four/kept 0 0"), "lost by the restart");
    release(&mut pair.one, &held);
    assert!(can(&mut pair.two, "fcntl", "write", "/mnt/four/kept 0 0"), "given back");
}

#[test]
fn linux_locks_over_nfs_3() {
    if let Some(why) = uml::unavailable() {
        skip!("kernel-locks", "{why}");
    }
    let _turn = uml::turn();
    let mut pair = match Pair::new() {
        Ok(pair) => pair,
        Err(why) => skip!("kernel-locks", "{why}"),
    };
    is_found_by_port_mapper(&mut pair);
    exclude_each_other(&mut pair, "three", "three");
    exclude_each_other(&mut pair, "three", "four");
    exclude_each_other(&mut pair, "four", "three");
    is_granted_by_call(&mut pair, "three");
    is_granted_by_call(&mut pair, "four");
    outlives_the_server(&mut pair);
    goes_with_a_client_that_restarts(&mut pair);
    assert!(pair.server.stop().success(), "SIGTERM ends it cleanly");
}
