//! The helper opens no path and runs no program that a request names: each string of each request,
//! names of items included, is replaced by a path to a program, for a helper that is a process of
//! root with a network of its own. The kernel reports each use of the program, and of its folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base::random::SeededRandom;
use e2e::scratch::Scratch;
use e2e::{has, is_root, netns, server, skip};
use host_helper::client::Client;
use host_helper::request::{Proposal, Reply, Request};
use host_network::configuration::{Class, Configuration, Datalink, Interface, RouteItem};
use host_network::state::Dns;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use serde_json::{Value, json};

use crate::configurations;

/// Seeds of configurations: together they have items of all kinds.
const SEEDS: u64 = 6;
/// Devices of the configurations, and an own `/etc` for name servers.
const MACHINE: &str = "mkdir $0/etc
cp -L /etc/passwd /etc/group /etc/nsswitch.conf /etc/hosts $0/etc/
mount --bind $0/etc /etc
for n in 0 1 2 3; do ip link add e$n type veth peer name p$n; done
";

/// A program in a folder, both watched.
struct Watched {
    scratch: Scratch,
    inotify: Inotify,
}

impl Watched {
    fn new(scratch: Scratch) -> Self {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK).expect("inotify");
        let watched = Self { scratch, inotify };
        fs::create_dir(watched.folder()).expect("a folder");
        let program = watched.program();
        fs::write(&program, "#!/bin/sh\n").expect("a program");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its mode");
        for path in [watched.folder(), program] {
            let all = AddWatchFlags::IN_ALL_EVENTS;
            watched.inotify.add_watch(&path, all).expect("a watch");
        }
        watched
    }

    fn folder(&self) -> std::path::PathBuf {
        self.scratch.path().join("named")
    }

    fn program(&self) -> std::path::PathBuf {
        self.folder().join("program")
    }

    /// Whether something has used the program or its folder since the last call.
    fn is_used(&self) -> bool {
        self.inotify.read_events().is_ok_and(|events| !events.is_empty())
    }
}

/// A configuration that a helper of this machine can reach.
fn reachable() -> Configuration {
    let mut all = Configuration::default();
    all.datalinks.insert("e0".to_owned(), Datalink { class: Class::Device, mtu: Some(1_400) });
    let lan = Interface::on("e0", &["10.0.0.1/24".parse().expect("an address")]);
    all.interfaces.insert("lan".to_owned(), lan);
    let (destination, gateway) = ("10.9.0.0/16".parse(), "10.0.0.9".parse());
    let (destination, gateway) = (destination.expect("a network"), gateway.expect("an address"));
    all.routes.insert("far".to_owned(), RouteItem { destination, gateway, metric: 7 });
    let servers = vec!["192.0.2.53".parse().expect("an address")];
    all.dns = Some(Dns { servers, domains: vec!["example.net".to_owned()] });
    all.host_name = Some("another".to_owned());
    all
}

fn apply(configuration: Configuration) -> Request {
    let wanted = Proposal { configuration, ..Proposal::default() };
    Request::NetworkApply { wanted, seconds: 60 }
}

/// Requests of all kinds on the network and disks.
fn of_network() -> Vec<Value> {
    let generated = |seed| configurations::generate(&mut SeededRandom::new(seed));
    let all = (0..SEEDS).map(generated).chain([reachable()]).map(apply);
    let disk = Request::DiskHealth { disk: "sda".to_owned() };
    all.chain([disk]).map(|request| serde_json::to_value(request).expect("JSON")).collect()
}

/// Requests on pools, as in `host_pools::request`.
fn of_pools() -> Vec<Value> {
    let (pool, share, snapshot) = ("tank", "home", "daily");
    let of_share = json!({ "pool": pool, "share": share });
    let of_snapshot = json!({ "pool": pool, "share": share, "snapshot": snapshot });
    let with = |name: &str| {
        let mut value = of_snapshot.clone();
        value["name"] = name.into();
        value
    };
    let zfs = json!({ "log": ["c"], "cache": ["d"], "spares": ["e"] });
    let settings = json!({ "quota": null, "reservation": null, "compression": "off" });
    let all = [
        ("Create", json!({ "pool": pool, "profile": "mirror", "disks": ["a", "b"] })),
        ("Create", json!({ "pool": pool, "profile": "mirror", "disks": ["a", "b"], "zfs": zfs })),
        ("Import", json!({ "pool": pool, "degraded": true })),
        ("Export", json!({ "pool": pool })),
        ("DestroyData", json!({ "pool": pool, "confirmation": pool })),
        ("Scrub", json!({ "pool": pool })),
        ("Replace", json!({ "pool": pool, "member": "a", "disk": "b" })),
        ("Add", json!({ "pool": pool, "disks": ["a"] })),
        ("Offline", json!({ "pool": pool, "member": "a" })),
        ("Remove", json!({ "pool": pool, "member": "a" })),
        ("MakeShare", of_share.clone()),
        ("TakeBackShare", of_share.clone()),
        ("ConfigureShare", json!({ "pool": pool, "share": share, "settings": settings })),
        ("Snapshots", of_share),
        ("Snapshot", of_snapshot.clone()),
        ("DestroySnapshot", of_snapshot.clone()),
        ("RenameSnapshot", with("weekly")),
        ("Rollback", of_snapshot.clone()),
        ("Clone", with("other")),
    ];
    all.map(|(kind, what)| json!({ "Pools": { kind: what } })).into()
}

/// Replaces the string of a number in a value; the strings before it are counted down.
struct Replace<'a> {
    left: Option<usize>,
    by: &'a str,
}

impl Replace<'_> {
    fn text(&mut self, text: &str) -> String {
        let is_it = self.left == Some(0);
        self.left = self.left.and_then(|left| left.checked_sub(1));
        if is_it { self.by.to_owned() } else { text.to_owned() }
    }

    fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(all) => all.iter().map(|one| self.value(one)).collect(),
            Value::Object(all) => {
                let entry = |(key, one): (&String, &Value)| (self.text(key), self.value(one));
                Value::Object(all.iter().map(entry).collect())
            }
            other => other.clone(),
        }
    }
}

/// The value with its string of this number replaced, names of fields included; `None`: it has
/// fewer.
fn replaced(value: &Value, at: usize, by: &str) -> Option<Value> {
    let mut replace = Replace { left: Some(at), by };
    let changed = replace.value(value);
    replace.left.is_none().then_some(changed)
}

/// Forms of a path: absolute, from any folder upwards, as an option of a program.
fn forms(program: &Path) -> Vec<String> {
    let path = program.to_str().expect("UTF-8");
    vec![path.to_owned(), format!("{}{path}", "../".repeat(16)), format!("--file={path}")]
}

/// Sends each request with each of its strings replaced: how many were done, and were refused.
fn send_all(client: &mut Client, all: &[Value], by: &str, watched: &Watched) -> (u32, u32) {
    let (mut done, mut refused) = (0, 0);
    for request in all {
        let sound = serde_json::from_value::<Request>(request.clone());
        assert!(sound.is_ok(), "{request}: {sound:?}");
        for value in (0..).map_while(|at| replaced(request, at, by)) {
            // What is no request of this form is refused before anything is done.
            let Ok(typed) = serde_json::from_value::<Request>(value.clone()) else { continue };
            match client.ask(&typed).unwrap_or_else(|e| panic!("{value}: {e}")) {
                Reply::Failed { .. } | Reply::Wrong(_) => refused += 1,
                Reply::Applied { change: Some(change), .. } => {
                    let back = client.ask(&Request::NetworkTakeBack { change }).expect("a reply");
                    assert_eq!(back, Reply::Done, "{value}");
                    done += 1;
                }
                _ => done += 1,
            }
            assert!(!watched.is_used(), "used by {value}");
        }
    }
    (done, refused)
}

#[test]
fn no_path_of_a_request_is_opened_or_run() {
    if !is_root() || !has("ip") || !has("unshare") {
        skip!("helper-paths", "needs root, ip and unshare");
    }
    let scratch = Scratch::new("helper-paths");
    let machine = MACHINE.replace("$0", scratch.path().to_str().expect("UTF-8"));
    netns::isolate(&machine).expect("a namespace");
    let watched = Watched::new(scratch);
    let program = watched.program();
    fs::read(&program).expect("the program");
    assert!(watched.is_used(), "a use is seen");
    let folder = |name| watched.scratch.path().join(name);
    let mut network = Client::start(server::binary(), &folder("host")).expect("a helper");
    let pools = Client::start_for_pools(server::binary(), &folder("pools"));
    let mut pools = pools.expect("a helper for pools");
    // As it is, a configuration is reached.
    let reply = network.ask(&apply(reachable())).expect("a reply");
    let Reply::Applied { change: Some(change), .. } = reply else { panic!("{reply:?}") };
    assert_eq!(network.ask(&Request::NetworkTakeBack { change }).expect("a reply"), Reply::Done);
    assert!(!watched.is_used());
    for form in forms(&program) {
        for (client, all) in [(&mut network, of_network()), (&mut pools, of_pools())] {
            let (done, refused) = send_all(client, &all, &form, &watched);
            println!("{form}: {done} done, {refused} refused");
            assert!(refused > 40, "{refused}");
        }
    }
}
