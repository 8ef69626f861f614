//! Real Linux clients of NFSv4 next to each other: what one has locked the other does not get, a
//! lock that is released goes to the client that waits for it, delegations are returned when the
//! other wants to write, or revoked from a client that does not reply, locks outlive a server that
//! is killed, and a client that is gone loses what it held when its lease is over, and not before.

use std::time::{Duration, Instant};

use e2e::netns::{HOST, Namespace};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::uml::{self, Guest, Task};
use e2e::{skip, took_at_most};

/// The lease that the server gives here: a client needs some seconds to connect again after a
/// restart, and must do so within the grace period, which is as long.
const LEASE: Duration = Duration::from_secs(8);
/// How long after the lease a client that repeats its request may still be without the lock.
const SLACK: Duration = Duration::from_secs(15);
/// The versions, and where each is mounted.
const MOUNTS: [(&str, &str); 2] = [("4.2", "new"), ("4.0", "old")];
/// Every kind of lock over each of them.
const KINDS: [(&str, &str); 4] =
    [("new", "fcntl"), ("new", "flock"), ("old", "fcntl"), ("old", "flock")];
/// How often each guest adds one to each counter.
const ADDITIONS: u32 = 80;

/// Two guests that have mounted the share by each version.
struct Pair {
    one: Guest,
    two: Guest,
    server: Server,
    namespace: Namespace,
    scratch: Scratch,
}

impl Pair {
    fn new() -> Result<Self, String> {
        let namespace = uml::namespace(2)?;
        let scratch = Scratch::new("kernel-v4");
        let server = start(&namespace, &scratch, None);
        let [one, two] = [0, 1].map(|number| {
            let mut guest = Guest::boot(&namespace, number, scratch.path());
            guest.install("locks");
            guest.install("counter");
            for (version, name) in MOUNTS {
                let options = format!("vers={version}");
                guest.mount(name, server.nfs_port(), &server.export(), &options);
            }
            guest.run("mkfifo /tmp/go /tmp/go2");
            guest
        });
        Ok(Self { one, two, server, namespace, scratch })
    }

    /// Kills the server and starts it again, and makes guest one notice.
    fn restart(&mut self) {
        self.server.kill();
        self.server = start(&self.namespace, &self.scratch, Some(self.server.offset));
        // The guest would notice when it renews its lease: up to a lease after its last request,
        // which may be too late to reclaim. An open makes it look at once, and ends with the grace
        // period.
        let opens = MOUNTS.map(|(_, name)| self.one.begin(&format!(": >/mnt/{name}/looked")));
        for open in &opens {
            assert_eq!(self.one.end(open).0, 0);
        }
    }
}

fn start(namespace: &Namespace, scratch: &Scratch, offset: Option<u16>) -> Server {
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let mut options = Options::new(&dir, &state);
    options.address = HOST;
    options.namespace = Some(namespace);
    options.args = ["--nfs-lease".into(), LEASE.as_secs().to_string().into()].to_vec();
    options.offset = offset;
    Server::start(&options)
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

/// What guest one holds: kind, mode and range; then what guest two requests, and whether it is
/// granted.
type Case = ((&'static str, &'static str, &'static str), &'static [Question]);
type Question = (&'static str, &'static str, &'static str, bool);

/// A flock is a lock of the whole file to other clients, as it is by Linux's own NFS server.
const CASES: [Case; 4] = [
    (
        ("fcntl", "write", "100 100"),
        &[
            ("fcntl", "write", "100 100", false),
            ("fcntl", "write", "199 1", false),
            ("fcntl", "read", "0 101", false),
            ("fcntl", "write", "0 0", false),
            ("flock", "read", "0 0", false),
            ("fcntl", "write", "0 100", true),
            ("fcntl", "write", "200 0", true),
        ],
    ),
    (("fcntl", "read", "0 0"), &[("fcntl", "read", "5 5", true), ("flock", "read", "0 0", true)]),
    (
        ("flock", "write", "0 0"),
        &[("flock", "write", "0 0", false), ("flock", "read", "0 0", false)],
    ),
    (
        ("flock", "read", "0 0"),
        &[
            ("flock", "read", "0 0", true),
            ("flock", "write", "0 0", false),
            ("fcntl", "write", "7 1", false),
        ],
    ),
];

fn exclude_each_other(pair: &mut Pair, (one, two): (&str, &str)) {
    let file = |mount: &str| format!("/mnt/{mount}/excluded");
    for ((kind, mode, range), questions) in CASES {
        let held = hold(&mut pair.one, kind, mode, &format!("{} {range}", file(one)));
        for (other_kind, other_mode, asked, wanted) in questions {
            let asked = format!("{} {asked}", file(two));
            let got = can(&mut pair.two, other_kind, other_mode, &asked);
            assert_eq!(
                got, *wanted,
                "{one} holds {kind} {mode} {range}; {two} wants {other_kind} {other_mode} {asked}"
            );
        }
        release(&mut pair.one, &held);
        let all = format!("{} 0 0", file(two));
        assert!(can(&mut pair.two, kind, "write", &all), "{one} gave back {kind} {mode}");
    }
}

/// A lock that guest two waits for comes once guest one has given it back.
fn goes_to_the_waiting_client(pair: &mut Pair, mount: &str, kind: &str) {
    let range = format!("/mnt/{mount}/waited 0 0");
    let held = hold(&mut pair.one, kind, "write", &range);
    // The kernel's own count of the replies to LOCK shows when it was refused.
    let count = "answers() { awk '/^\t *LOCK:/ { n += $3 } END { print n + 0 }' \
                 /proc/self/mountstats; }\n";
    let before = pair.two.run(&format!("{count} answers"));
    let waiting = pair.two.begin(&format!("locks waiter {kind} write wait {range}"));
    let refused = format!("{count} until [ $(answers) -gt {} ]; do :; done", before.trim());
    pair.two.run(&refused);
    assert!(!pair.two.forget("waiter granted"), "{mount}: {kind} was granted to both");
    release(&mut pair.one, &held);
    pair.two.event("waiter granted");
    assert_eq!(pair.two.end(&waiting).0, 0);
}

/// Shell: how often the client of a mount has had an operation answered.
fn answered(mount: &str, op: &str) -> String {
    format!(
        "awk '/ mounted on / {{ at = $5 }} at == \"/mnt/{mount}\" && /^\t *{op}:/ {{ print $3 }}' \
         /proc/self/mountstats"
    )
}

/// Guest two writes a file that guest one then reads until it no longer sends an OPEN for it: it
/// holds a delegation.
fn delegate(pair: &mut Pair, mount: &str, file: &str) {
    pair.two.run(&format!("echo one >{file}"));
    let opens = answered(mount, "OPEN");
    pair.one.run(&format!(
        "opens() {{ {opens}; }}
         until before=$(opens); [ \"$(cat {file})\" = one ]; [ $(opens) = $before ]; do :; done"
    ));
}

/// A reader's delegation is called back when another client writes.
fn recall(pair: &mut Pair) {
    for (_, mount) in MOUNTS {
        let file = format!("/mnt/{mount}/shared.{mount}");
        delegate(pair, mount, &file);
        let returns = answered(mount, "DELEGRETURN");
        let before = pair.one.run(&returns);
        let begin = Instant::now();
        pair.two.run(&format!("echo two >{file}"));
        took_at_most(&format!("{mount}: the return of a delegation"), begin.elapsed(), LEASE);
        assert_ne!(pair.one.run(&returns), before, "{mount}: nothing was given back");
        assert_eq!(pair.one.run(&format!("cat {file}")).trim(), "two", "{mount}");
    }
}

/// A client that does not reply loses its delegation, and notices that when it is back.
fn revoke(pair: &mut Pair) {
    let files = MOUNTS.map(|(_, mount)| (mount, format!("/mnt/{mount}/frozen.{mount}")));
    for (mount, file) in &files {
        delegate(pair, mount, file);
    }
    pair.one.suspend(true);
    let begin = Instant::now();
    let writes = files.each_ref().map(|(_, file)| pair.two.begin(&format!("echo two >{file}")));
    for ((mount, _), write) in files.iter().zip(&writes) {
        assert_eq!(pair.two.end(write).0, 0);
        let after = begin.elapsed();
        println!("{mount}: delegation of a client that does not answer after {after:?}");
        assert!(after < 2 * LEASE + SLACK, "{mount}: {after:?}");
    }
    pair.one.suspend(false);
    // Over 4.0, and over 4.1 where it gets attributes before it has checked its session, Linux
    // takes the new ones while it still assumes its delegation, and retains what it has cached
    // (6.1; `stat` shows the new time then). It does notice the next change.
    for (_, file) in &files {
        pair.two.run(&format!("echo three >{file}"));
        pair.one.run(&format!("until [ \"$(cat {file})\" = three ]; do sleep 0.1; done"));
    }
}

/// Both guests count in the same files, each addition under a lock.
fn count(guest: &mut Guest) -> Vec<Task> {
    let counter = |(mount, kind): (&str, &str)| {
        let file = format!("/mnt/{mount}/count.{mount}.{kind}");
        let task = guest.begin(&format!("counter {mount}.{kind} {kind} {file} {ADDITIONS}"));
        guest.event(&format!("{mount}.{kind} at 10"));
        task
    };
    KINDS.into_iter().map(counter).collect()
}

/// The server is killed while guest one holds locks, and both take and give back others all the
/// time.
fn survive_a_restart(pair: &mut Pair) {
    let held: Vec<_> = [("new", "fcntl", "/tmp/go"), ("old", "flock", "/tmp/go2")]
        .map(|(mount, kind, go)| {
            let range = format!("/mnt/{mount}/kept.{mount} 0 0");
            let task = pair.one.begin(&format!("locks {mount} {kind} write try {range} {go}"));
            pair.one.event(&format!("{mount} granted"));
            (kind, range, go, task)
        })
        .into();
    let counters = (count(&mut pair.one), count(&mut pair.two));
    pair.restart();
    for (kind, range, go, task) in &held {
        assert!(!can(&mut pair.two, kind, "write", range), "{range}: {kind} lock is lost");
        pair.one.run(&format!("echo >{go}"));
        assert_eq!(pair.one.end(task).0, 0);
        assert!(can(&mut pair.two, kind, "write", range), "{range}: {kind} lock was given back");
    }
    for (guest, tasks) in [(&mut pair.one, counters.0), (&mut pair.two, counters.1)] {
        for task in &tasks {
            let (status, log) = guest.end(task);
            assert_eq!(status, 0, "{log}\n{}", guest.said());
        }
    }
    for (mount, kind) in KINDS {
        let file = pair.scratch.path().join(format!("data/count.{mount}.{kind}"));
        let text = std::fs::read_to_string(file).expect("a counter");
        assert_eq!(text.trim().parse(), Ok(2 * ADDITIONS), "{mount}: {kind}");
    }
}

/// Guest one is cut off while it holds a lock over each version.
fn dies_with_its_locks(pair: &mut Pair) {
    // What its client did before is no part of the lease that is measured.
    let begin = Instant::now();
    let held: Vec<_> = [("new", "fcntl", "/tmp/go"), ("old", "flock", "/tmp/go2")]
        .map(|(mount, kind, go)| {
            let range = format!("/mnt/{mount}/orphan.{mount} 0 0");
            let _held = pair.one.begin(&format!("locks {mount} {kind} write try {range} {go}"));
            pair.one.event(&format!("{mount} granted"));
            (mount, kind, range)
        })
        .into();
    pair.one.cut();
    let cut = Instant::now();
    for (mount, kind, range) in &held {
        let _until = pair.two.begin(&format!("locks heir.{mount} {kind} write until {range}"));
        pair.two.event(&format!("heir.{mount} asks"));
    }
    for (mount, kind, _) in &held {
        pair.two.event(&format!("heir.{mount} granted"));
        let (since, after) = (begin.elapsed(), cut.elapsed());
        println!("{mount}: {kind} lock of a dead client after {after:?}");
        assert!(since >= LEASE, "{mount}: {kind} lock taken from a client within its lease");
        assert!(after <= LEASE + SLACK, "{mount}: {kind} lock came {after:?} after the end");
    }
}

#[test]
fn two_linux_clients_exclude_each_other() {
    if let Some(why) = uml::unavailable() {
        skip!("kernel-v4", "{why}");
    }
    let _turn = uml::turn();
    let mut pair = match Pair::new() {
        Ok(pair) => pair,
        Err(why) => skip!("kernel-v4", "{why}"),
    };
    for mounts in [("new", "new"), ("old", "old"), ("new", "old")] {
        exclude_each_other(&mut pair, mounts);
    }
    for (mount, kind) in KINDS {
        goes_to_the_waiting_client(&mut pair, mount, kind);
    }
    recall(&mut pair);
    revoke(&mut pair);
    survive_a_restart(&mut pair);
    dies_with_its_locks(&mut pair);
    assert!(pair.server.stop().success(), "SIGTERM ends it cleanly");
}
