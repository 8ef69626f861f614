//! Real Linux clients of NFSv4 with delegations: one that holds a file opens it again without a
//! request to the server; when the other writes to it, the delegation is recalled and both
//! continue; one that has lost its power does not stop the other for longer than a lease; one that
//! cannot be called gets none.

use std::time::{Duration, Instant};

use e2e::netns::{HOST, Namespace};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::uml::{self, Guest};
use e2e::{skip, took_at_most};

/// The lease that the server gives here, in seconds.
const LEASE: u64 = 10;
/// How long after the lease a client may still wait: it sends its request again after up to 15 s.
const SLACK: u64 = 30;
/// The versions, and where each is mounted.
const MOUNTS: [(&str, &str); 2] = [("4.2", "new"), ("4.0", "old")];

/// Counts of one mount's operations: `count MOUNT OPERATION`.
const COUNT: &str = r#"
count() {
    awk -v at="$1" -v op="$2:" '$1 == "device" { here = ($5 == at) } here && $1 == op { print $2 }' \
        /proc/self/mountstats
}
"#;

/// Two guests that have mounted the share by each version.
struct Pair {
    one: Guest,
    two: Guest,
    server: Server,
    _namespace: Namespace,
    _scratch: Scratch,
}

impl Pair {
    fn new(name: &str) -> Result<Self, String> {
        let namespace = uml::namespace(2)?;
        let scratch = Scratch::new(name);
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        let mut options = Options::new(&dir, &state);
        options.address = HOST;
        options.namespace = Some(&namespace);
        options.args = ["--nfs-lease", &LEASE.to_string()].map(Into::into).to_vec();
        let server = Server::start(&options);
        let [one, two] = [0, 1].map(|number| {
            let mut guest = Guest::boot(&namespace, number, scratch.path());
            for (version, name) in MOUNTS {
                let options = format!("vers={version}");
                guest.mount(name, server.nfs_port(), &server.export(), &options);
            }
            guest
        });
        Ok(Self { one, two, server, _namespace: namespace, _scratch: scratch })
    }
}

/// How many operations a guest has sent over a mount.
fn count(guest: &mut Guest, mount: &str, op: &str) -> u64 {
    let said = guest.run(&format!("{COUNT}count /mnt/{mount} {op}"));
    said.trim().parse().unwrap_or_else(|_| panic!("count of {op}: {said}"))
}

/// Reads a file until it is opened without asking the server; whether it comes to that.
fn gets_delegation(guest: &mut Guest, mount: &str, file: &str) -> bool {
    let path = format!("/mnt/{mount}/{file}");
    // The first open of an owner in 4.0 is not confirmed yet, nor may the way back be known.
    for _ in 0..4 {
        guest.run(&format!("cat {path}"));
        let before = count(guest, mount, "OPEN");
        guest.run(&format!("cat {path} {path} {path}"));
        if count(guest, mount, "OPEN") == before {
            return true;
        }
    }
    false
}

/// Opens a file for reading and writing until that is done without a request; whether it comes to
/// that.
fn gets_write_delegation(guest: &mut Guest, mount: &str, path: &str) -> bool {
    for _ in 0..4 {
        guest.run(&format!(": <>{path}"));
        let before = count(guest, mount, "OPEN");
        guest.run(&format!(": <>{path}; : <>{path}"));
        if count(guest, mount, "OPEN") == before {
            return true;
        }
    }
    false
}

/// What guest one holds, guest two changes; both see what is there.
fn is_called_back(pair: &mut Pair, mount: &str) {
    // Each its own: a file that was wanted by others is left alone for a while.
    let file = format!("shared-{mount}");
    let path = format!("/mnt/{mount}/{file}");
    pair.two.run(&format!("echo first >{path}"));
    assert!(gets_delegation(&mut pair.one, mount, &file), "{mount}: {}", pair.one.said());
    let returned = count(&mut pair.one, mount, "DELEGRETURN");
    let before = Instant::now();
    pair.two.run(&format!("echo second >>{path}"));
    took_at_most("the return of a delegation", before.elapsed(), Duration::from_secs(LEASE));
    assert!(count(&mut pair.one, mount, "DELEGRETURN") > returned, "{mount}");
    assert_eq!(pair.one.run(&format!("cat {path}")), "first\nsecond\n", "{mount}");
    pair.one.run(&format!("echo third >>{path}"));
    assert_eq!(pair.two.run(&format!("cat {path}")), "first\nsecond\nthird\n", "{mount}");
}

/// A file that a client has open can still be read after its delegation was recalled, and the next
/// open sees what is new.
fn continues_with_open_files(pair: &mut Pair, mount: &str) {
    let file = format!("kept-{mount}");
    let path = format!("/mnt/{mount}/{file}");
    pair.two.run(&format!("echo before >{path}"));
    assert!(gets_delegation(&mut pair.one, mount, &file), "{mount}");
    pair.one.run("mkfifo /tmp/go");
    let reader = pair.one.begin(&format!(
        "exec 3<{path}; event reader open; read -r _ </tmp/go\n\
         head -c 7 <&3; cat {path}; rm /tmp/go"
    ));
    pair.one.event("reader open");
    pair.two.run(&format!("echo after >>{path}"));
    pair.one.run("echo >/tmp/go");
    let (status, log) = pair.one.end(&reader);
    assert_eq!((status, log.as_str()), (0, "before\nbefore\nafter\n"), "{mount}");
}

/// What guest one has written and not flushed, guest two sees: size, change and data.
fn shows_what_is_not_flushed(pair: &mut Pair, mount: &str) {
    let path = format!("/mnt/{mount}/unflushed-{mount}");
    pair.two.run(&format!(": >{path}"));
    let seen = pair.two.run(&format!("stat -c '%s %y' {path}"));
    assert!(seen.starts_with("0 "), "{mount}: {seen}");
    assert!(gets_write_delegation(&mut pair.one, mount, &path), "{mount}: {}", pair.one.said());
    let before = count(&mut pair.one, mount, "WRITE");
    pair.one.run("mkfifo /tmp/go");
    let writer = pair.one.begin(&format!("unflushed {path} 'twelve bytes' /tmp/go"));
    pair.one.event("unflushed written");
    // What was seen before is cached for a while by the client that looks.
    let size = took(&mut pair.two, &format!("stat -c %s {path}"), "12");
    assert_eq!(size.trim(), "12", "{mount}");
    assert_eq!(count(&mut pair.one, mount, "WRITE"), before, "{mount}: it was asked, not recalled");
    let changed = pair.two.run(&format!("stat -c '%s %y' {path}"));
    assert_ne!(seen, changed, "{mount}");
    pair.one.run("echo >/tmp/go");
    let (status, log) = pair.one.end(&writer);
    assert_eq!(status, 0, "{mount}: {log}");
    pair.one.run("rm /tmp/go");
    // Linux 6.1 does not flush when it is recalled, but when the file is closed.
    assert_eq!(pair.two.run(&format!("cat {path}")), "twelve bytes", "{mount}");
    assert!(count(&mut pair.one, mount, "WRITE") > before, "{mount}");
}

/// What a command prints, once it is this; the last of it after a while.
fn took(guest: &mut Guest, command: &str, wanted: &str) -> String {
    let until = Instant::now() + Duration::from_secs(LEASE);
    loop {
        let said = guest.run(command);
        if said.trim() == wanted || Instant::now() > until {
            return said;
        }
    }
}

#[test]
fn others_see_what_linux_has_not_flushed() {
    let _turn = uml::turn();
    let mut pair = match Pair::new("kernel-delegations-write") {
        Ok(pair) => pair,
        Err(why) => skip!("kernel-delegations", "{why}"),
    };
    pair.one.install("unflushed");
    // Clients of 4.0 have none for writing.
    shows_what_is_not_flushed(&mut pair, "new");
    assert!(pair.server.stop().success(), "SIGTERM ends it cleanly");
}

#[test]
fn linux_gives_back_what_others_want_to_change() {
    let _turn = uml::turn();
    let mut pair = match Pair::new("kernel-delegations") {
        Ok(pair) => pair,
        Err(why) => skip!("kernel-delegations", "{why}"),
    };
    for (_, mount) in MOUNTS {
        is_called_back(&mut pair, mount);
        continues_with_open_files(&mut pair, mount);
    }
    assert!(pair.server.stop().success(), "SIGTERM ends it cleanly");
}

#[test]
fn a_dead_linux_client_is_waited_for_no_longer_than_a_lease() {
    let _turn = uml::turn();
    let mut pair = match Pair::new("kernel-delegations-dead") {
        Ok(pair) => pair,
        Err(why) => skip!("kernel-delegations", "{why}"),
    };
    pair.two.run("echo first >/mnt/new/left");
    assert!(gets_delegation(&mut pair.one, "new", "left"));
    pair.one.cut();
    let before = Instant::now();
    pair.two.run("echo second >>/mnt/new/left");
    took_at_most("the end of a lease", before.elapsed(), Duration::from_secs(LEASE + SLACK));
    assert!(pair.server.stop().success(), "SIGTERM ends it cleanly");
}

#[test]
fn a_linux_client_that_cannot_be_called_holds_nothing() {
    let _turn = uml::turn();
    let mut pair = match Pair::new("kernel-delegations-mute") {
        Ok(pair) => pair,
        Err(why) => skip!("kernel-delegations", "{why}"),
    };
    let (port, export) = (pair.server.nfs_port(), pair.server.export());
    // Its callbacks would go to a machine that is not there.
    pair.one.run("umount /mnt/old");
    pair.one.mount("old", port, &export, "vers=4.0,clientaddr=10.0.2.99");
    pair.two.run("echo first >/mnt/old/asked");
    assert!(!gets_delegation(&mut pair.one, "old", "asked"));
    let before = Instant::now();
    pair.two.run("echo second >>/mnt/old/asked");
    took_at_most("a write that recalls nothing", before.elapsed(), Duration::from_secs(LEASE));
    assert!(pair.server.stop().success(), "SIGTERM ends it cleanly");
}
