//! The network through the tree of a running server, in a separate namespace: changes by a helper
//! that is a child of the server, their confirmation, and the way back, also when server
//! and helper are killed. What counts is what iproute2 shows.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use e2e::api::{Api, wait_for};
use e2e::netns::Namespace;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::{NOBODY, has, is_root, process, skip};
use serde_json::{Value, json};

/// How long the way back may take on a busy machine, beyond its time.
const WAY_BACK: Duration = e2e::patience(10);
/// Memory of the idle helper, without the program's text, which it shares with the server.
const HELPER_KIB_MAX: u64 = 8 << 10;
/// How long the helper is looked at: nothing in it has a shorter interval.
const IDLE: Duration = Duration::from_secs(2);
/// Devices of the machine, an address and a route of others on the second.
const MACHINE: &str = "ip link set lo up
ip link add e0 type veth peer name p0
ip link set p0 up
ip link add e1 type veth peer name p1
ip link set p1 up
ip link set e1 up
ip addr add 198.51.100.1/24 dev e1
ip route add 203.0.113.0/24 via 198.51.100.9
";

struct Bed {
    scratch: Scratch,
    namespace: Namespace,
}

impl Bed {
    fn new() -> Result<Self, String> {
        if !is_root() || !has("ip") || !has("unshare") {
            return Err("needs root, ip and unshare".to_owned());
        }
        let namespace =
            Namespace::with(&format!("set -e\n{MACHINE}")).map_err(|e| e.to_string())?;
        let scratch = Scratch::new("network");
        std::fs::create_dir(scratch.path().join("share")).expect("a directory");
        Ok(Self { scratch, namespace })
    }

    fn state(&self) -> std::path::PathBuf {
        self.scratch.path().join("state")
    }

    fn start(&self) -> (Server, Api) {
        let (dir, state) = (self.scratch.path().join("share"), self.state());
        let options = Options { namespace: Some(&self.namespace), ..Options::new(&dir, &state) };
        (Server::start(&options), Api::new(&state))
    }

    /// Links, addresses and routes, without what changes without a request.
    fn dumps(&self) -> String {
        let lines = "ip -o link | sed 's/ state [A-Z]*//; s/,LOWER_UP//; s/NO-CARRIER,//; \
                     s/,M-DOWN//; s/ qdisc [a-z]*//'; ip -o -4 addr; ip -4 route; \
                     ip -o -6 addr show scope global | sed 's/ tentative//'";
        let mut command = Command::new("sh");
        command.args(["-c", lines]);
        self.namespace.enter(&mut command);
        let output = process::run(&mut command, process::DEADLINE);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The lines of the dumps in one order: addresses of different networks have none.
    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.dumps().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    /// The helper's process and its guard, by their state folder.
    fn helpers(&self) -> Vec<i32> {
        let folder = self.state().join("host");
        let named = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            line.contains("\0host\0") && line.contains(&*folder.to_string_lossy())
        };
        let all = std::fs::read_dir("/proc").expect("/proc").flatten();
        all.filter_map(|one| one.file_name().to_str()?.parse().ok()).filter(named).collect()
    }
}

/// A device with two addresses and a route through one of them.
fn lan(seconds: u32) -> Value {
    json!({ "comment": "lan", "changes": [
        { "set": "/configuration/network", "property": "confirm_within", "value": seconds },
        { "create": "/configuration/network/datalinks", "name": "e0",
          "properties": { "class": "device", "mtu": 1400 } },
        { "create": "/configuration/network/interfaces", "name": "lan",
          "properties": { "links": ["e0"], "v4addrs": ["10.0.0.1/24", "10.7.0.1/16"],
                          "v6addrs": ["2001:db8::1/64"] } },
        { "create": "/configuration/network/routes", "name": "far",
          "properties": { "destination": "10.9.0.0/16", "gateway": "10.0.0.9", "metric": 7 } },
    ]})
}

fn change(api: &Api, body: &Value) -> Value {
    let (code, answer) = api.post("/api/v1/changes", body);
    assert_eq!(code, 200, "{answer:#}");
    answer
}

fn act(api: &Api, action: &str) -> (u16, Value) {
    api.post(&format!("/api/v1/nodes/configuration/network/actions/{action}"), &json!({}))
}

fn shown(api: &Api, path: &str, property: &str) -> Value {
    let (code, node) = api.get(&format!("/api/v1/nodes/configuration/network{path}"));
    assert_eq!(code, 200, "{node:#}");
    let all = node["properties"].as_array().cloned().unwrap_or_default();
    let one = all.iter().find(|one| one["name"] == property);
    one.map(|one| one["value"].clone()).unwrap_or_else(|| node["properties"][property].clone())
}

fn history(api: &Api) -> String {
    api.get("/api/v1/configuration/history").1.to_string()
}

fn wait_until(bed: &Bed, wanted: &str) {
    let same = || (bed.dumps() == wanted).then_some(());
    wait_for("the network is as before", WAY_BACK, same);
}

#[test]
fn a_confirmed_change_stays_and_is_taken_back_when_it_is_removed() {
    let bed = match Bed::new() {
        Ok(bed) => bed,
        Err(why) => skip!("network-confirmed", "{why}"),
    };
    let before = bed.dumps();
    let (server, api) = bed.start();
    assert_eq!(bed.helpers(), [] as [i32; 0], "nothing runs before it is of use");
    let planned = change(&api, &json!({ "dry_run": true, "changes": lan(300)["changes"] }));
    assert!(planned["notes"].to_string().contains("set 10.0.0.1/24 on e0"), "{planned:#}");
    assert_eq!(bed.dumps(), before, "a dry run changes nothing");
    change(&api, &lan(300));
    let after = bed.dumps();
    for line in ["mtu 1400", "inet 10.0.0.1/24", "inet 10.7.0.1/16", "inet6 2001:db8::1/64"] {
        assert!(after.contains(line), "{line}: {after}");
    }
    assert!(after.contains("10.9.0.0/16 via 10.0.0.9 dev e0 proto 215 metric 7"), "{after}");
    assert_eq!(shown(&api, "", "state"), "unconfirmed");
    assert_eq!(shown(&api, "/interfaces/lan", "state"), "up");
    assert_eq!(shown(&api, "/datalinks/e0", "found_mtu"), 1400);
    assert_eq!(shown(&api, "/routes/far", "state"), "up");
    let (code, answer) = act(&api, "confirm");
    assert_eq!(code, 200, "{answer:#}");
    wait_for("the change is confirmed", WAY_BACK, || {
        (shown(&api, "", "state") == "changeable").then_some(())
    });
    assert_eq!(act(&api, "confirm").0, 409, "nothing waits any more");
    // It stays over a restart.
    drop(server);
    let (_server, api) = bed.start();
    assert_eq!(bed.dumps(), after);
    assert_eq!(shown(&api, "/interfaces/lan", "state"), "up");
    let destroy = |path: &str| json!({ "destroy": path, "confirm": true });
    let all = ["routes/far", "interfaces/lan", "datalinks/e0"];
    let all = all.map(|item| destroy(&format!("/configuration/network/{item}")));
    change(&api, &json!({ "changes": all }));
    assert_eq!(act(&api, "confirm").0, 200);
    assert_eq!(bed.dumps(), before);
}

#[test]
fn without_a_confirmation_the_state_before_is_back() {
    let bed = match Bed::new() {
        Ok(bed) => bed,
        Err(why) => skip!("network-unconfirmed", "{why}"),
    };
    let before = bed.dumps();
    let (_server, api) = bed.start();
    change(&api, &lan(5));
    assert_ne!(bed.dumps(), before);
    wait_until(&bed, &before);
    let restored = || history(&api).contains("not confirmed").then_some(());
    wait_for("the document is as before", WAY_BACK, restored);
    let (code, _) = api.get("/api/v1/nodes/configuration/network/interfaces/lan");
    assert_eq!(code, 404);
    // By hand, before the time is over.
    change(&api, &lan(300));
    assert_eq!(act(&api, "revert").0, 200);
    assert_eq!(bed.dumps(), before);
}

/// A route through an address of [`lan`].
const ROUTE: &str = "10.9.0.0/16 via 10.0.0.9";

/// Makes and confirms [`lan`]; the dumps of then.
fn confirmed(bed: &Bed, api: &Api, seconds: u32) -> Vec<String> {
    change(api, &lan(seconds));
    assert_eq!(act(api, "confirm").0, 200);
    wait_for("the change is confirmed", WAY_BACK, || {
        (shown(api, "", "state") == "changeable").then_some(())
    });
    let before = bed.lines();
    assert!(before.iter().any(|line| line.contains(ROUTE)), "{before:#?}");
    before
}

/// A change without the address, which deletes the route through it in the kernel.
fn removes_the_address_of_a_route(bed: &Bed, api: &Api) {
    let moved = json!({ "changes": [
        { "set": "/configuration/network/interfaces/lan", "property": "v4addrs",
          "value": ["10.7.0.1/16"] },
        { "destroy": "/configuration/network/routes/far", "confirm": true },
    ]});
    change(api, &moved);
    let now = bed.lines().join("\n");
    assert!(!now.contains(ROUTE) && !now.contains("10.0.0.1/24"), "{now}");
}

/// Longest time between the end of the time for a confirmation and the state before.
const LATE: Duration = Duration::from_secs(2);

/// An address of a confirmed configuration is replaced, which deletes the route through it in the
/// kernel; without a confirmation both are back in time.
#[test]
fn a_route_through_a_removed_address_is_back_without_a_confirmation() {
    const WITHIN: u32 = 5;
    let bed = match Bed::new() {
        Ok(bed) => bed,
        Err(why) => skip!("network-route-back", "{why}"),
    };
    let (_server, api) = bed.start();
    let before = confirmed(&bed, &api, WITHIN);
    let began = Instant::now();
    removes_the_address_of_a_route(&bed, &api);
    let is_back = || (bed.lines() == before).then_some(());
    wait_for("address and route are back", WAY_BACK, is_back);
    let took = began.elapsed();
    println!("after {WITHIN} s for a confirmation the state before was back in {took:?}");
    let limit = Duration::from_secs(WITHIN.into()) + LATE;
    e2e::took_at_most("the way back with a route", took, limit);
}

/// How long after the last step processes are killed: while the change is still being entered, and
/// long after it.
const KILLED_AFTER: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];

/// SIGKILL of the server, of the helper, and of both, after the last step of a change that has
/// removed an address with the route through it.
#[test]
fn what_is_killed_leaves_the_state_before() {
    let bed = match Bed::new() {
        Ok(bed) => bed,
        Err(why) => skip!("network-killed", "{why}"),
    };
    let (server, api) = bed.start();
    let before = confirmed(&bed, &api, 300);
    drop(server);
    // The server and the helper, each whether it is killed.
    let both = [(true, false), (false, true), (true, true)];
    let cases = KILLED_AFTER.iter().flat_map(|after| both.map(|two| (after, two)));
    for (after, (server_too, helper_too)) in cases {
        let (mut server, api) = bed.start();
        removes_the_address_of_a_route(&bed, &api);
        std::thread::sleep(*after);
        assert_ne!(bed.lines(), before);
        let helpers = bed.helpers();
        assert_eq!(helpers.len(), 2, "the helper and the guard");
        if helper_too {
            // The lower number is the older one: the guard must live.
            let helper = helpers.iter().min().expect("one");
            // SAFETY: a bare system call on a process that this test has started.
            unsafe { libc::kill(*helper, libc::SIGKILL) };
        }
        if server_too {
            server.kill();
        }
        let is_back = || (bed.lines() == before).then_some(());
        wait_for("the network is as before", WAY_BACK, is_back);
        drop(server);
        let (_server, api) = bed.start();
        let node = "/api/v1/nodes/configuration/network/routes/far";
        let restored = || (api.get(node).0 == 200).then_some(());
        wait_for("the document is as before", WAY_BACK, restored);
        let addresses = shown(&api, "/interfaces/lan", "v4addrs");
        assert_eq!(addresses, json!(["10.0.0.1/24", "10.7.0.1/16"]));
        assert!(history(&api).contains("not confirmed"));
        assert_eq!(bed.lines(), before);
    }
}

/// A connection from before the last step confirms nothing: that of the change itself, and one that
/// was kept open.
#[test]
fn an_older_connection_does_not_confirm() {
    let bed = match Bed::new() {
        Ok(bed) => bed,
        Err(why) => skip!("network-older", "{why}"),
    };
    let before = bed.dumps();
    let (_server, api) = bed.start();
    let socket = bed.state().join("plimsoll.sock");
    let post = |path: &str, body: &str| {
        format!(
            "POST /api/v1{path} HTTP/1.1\r\nHost: plimsoll\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let connect = || {
        let stream = UnixStream::connect(&socket).expect("the local socket");
        stream.set_read_timeout(Some(WAY_BACK)).expect("a deadline");
        stream
    };
    let confirm = post("/nodes/configuration/network/actions/confirm", "{}");
    let mut kept = connect();
    kept.write_all(b"GET /api/v1/session HTTP/1.1\r\nHost: plimsoll\r\n\r\n").expect("a request");
    kept.read_exact(&mut [0; 12]).expect("its answer");
    // Both requests at once.
    let mut own = connect();
    let both = post("/changes", &lan(300).to_string()) + &confirm;
    own.write_all(both.as_bytes()).expect("two requests");
    let mut answers = String::new();
    own.read_to_string(&mut answers).expect("the end of the connection");
    assert!(answers.starts_with("HTTP/1.1 200"), "{answers}");
    assert!(!answers.contains("The change is confirmed"), "{answers}");
    // It may be closed before the request is written.
    let _sent = kept.write_all(confirm.as_bytes());
    let mut rest = Vec::new();
    let _end = kept.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("The change is confirmed"));
    assert_eq!(shown(&api, "", "state"), "unconfirmed");
    assert_eq!(act(&api, "revert").0, 200);
    assert_eq!(bed.dumps(), before);
}

/// A device of an interface loses its carrier: the branch and an alert name it until it is back.
#[test]
fn an_alert_names_a_link_without_a_carrier() {
    let bed = match Bed::new() {
        Ok(bed) => bed,
        Err(why) => skip!("network-alert", "{why}"),
    };
    let (_server, api) = bed.start();
    change(&api, &lan(300));
    assert_eq!(act(&api, "confirm").0, 200);
    let alert = json!({ "create": "/configuration/alerts", "name": "links",
        "properties": { "when": "network", "for": 1, "clear_for": 1 } });
    change(&api, &json!({ "changes": [alert] }));
    let problems = || api.status()["problems"].to_string();
    let ip = |line: &str| {
        let mut command = Command::new("ip");
        command.args(line.split(' '));
        bed.namespace.enter(&mut command);
        assert!(process::run(&mut command, process::DEADLINE).status.success(), "{line}");
    };
    assert_eq!(shown(&api, "", "problem"), "");
    ip("link set p0 down");
    let sentence = "e0 has no carrier (interface lan)";
    let fires = || problems().contains(sentence).then_some(());
    wait_for("the alert fires", WAY_BACK, fires);
    assert_eq!(shown(&api, "", "problem"), sentence);
    ip("link set p0 up");
    wait_for("the alert clears", WAY_BACK, || (!problems().contains(sentence)).then_some(()));
    assert_eq!(shown(&api, "", "problem"), "");
}

/// The private memory of a process, and how often it was woken.
fn rest(pid: i32) -> (u64, u64) {
    let number = |text: &str, key: &str| -> u64 {
        let line = text.lines().find(|line| line.starts_with(key)).expect(key);
        line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a number")
    };
    let status = |path: String| std::fs::read_to_string(path).expect("a status");
    let memory = number(&status(format!("/proc/{pid}/status")), "RssAnon:");
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("its tasks").flatten();
    let woken = |task: std::fs::DirEntry| {
        let text = status(task.path().join("status").display().to_string());
        number(&text, "voluntary_ctxt_switches:")
    };
    (memory, tasks.map(woken).sum())
}

/// The helper that has nothing to do has little memory and does nothing.
#[test]
fn the_idle_helper_is_small_and_sleeps() {
    let bed = match Bed::new() {
        Ok(bed) => bed,
        Err(why) => skip!("network-idle", "{why}"),
    };
    let (_server, api) = bed.start();
    change(&api, &lan(300));
    assert_eq!(act(&api, "confirm").0, 200);
    // The guard has nothing to guard and ends.
    let one = || <[i32; 1]>::try_from(bed.helpers()).ok();
    let [helper] = wait_for("only the helper is left", WAY_BACK, one);
    wait_for("the server has seen the end of the change", WAY_BACK, || {
        (shown(&api, "", "state") == "changeable").then_some(())
    });
    let (memory, woken) = rest(helper);
    std::thread::sleep(IDLE);
    assert_eq!(rest(helper).1, woken, "it was woken without a request");
    println!("the idle helper has {memory} KiB of its own");
    assert!(memory < HELPER_KIB_MAX, "{memory} KiB");
}

/// Each wrong value is refused at commit, at its node and property.
#[test]
fn wrong_values_are_refused_with_their_property() {
    let bed = match Bed::new() {
        Ok(bed) => bed,
        Err(why) => skip!("network-refused", "{why}"),
    };
    let before = bed.dumps();
    let (_server, api) = bed.start();
    let create = |kind: &str, name: &str, properties: Value| {
        json!({ "create": format!("/configuration/network/{kind}"), "name": name,
                "properties": properties })
    };
    let device = || create("datalinks", "e0", json!({ "class": "device" }));
    let partition = |pkey: &str| {
        let properties = json!({ "class": "partition", "link": "e0", "pkey": pkey });
        vec![device(), create("datalinks", "part", properties)]
    };
    let vlan = |name: &str, id: u32| {
        create("datalinks", name, json!({ "class": "vlan", "link": "e0", "id": id }))
    };
    let aggregation = |links: &[&str]| json!({ "class": "aggregation", "links": links });
    let lan = |name: &str, address: &str| {
        create("interfaces", name, json!({ "links": ["e0"], "v4addrs": [address] }))
    };
    let cases: Vec<(Vec<Value>, &str)> = vec![
        (partition("0x0000"), "0x0001 to 0x7fff"),
        (partition("0x8000"), "0x0001 to 0x7fff"),
        (vec![device(), vlan("v", 4_095)], "the maximum is 4094"),
        (vec![device(), vlan("sixteen-bytes-xx", 2)], "the maximum is 15"),
        (vec![create("datalinks", "e0", json!({ "class": "device", "mtu": 60 }))], "mtu"),
        (
            vec![device(), lan("a", "10.0.0.1/24"), lan("b", "10.0.0.2/16")],
            "is in the network of 10.0.0.1/24",
        ),
        (
            vec![
                create("datalinks", "g0", aggregation(&["g1"])),
                create("datalinks", "g1", aggregation(&["g0"])),
            ],
            "loop",
        ),
        (vec![create("datalinks", "e9", json!({ "class": "device" }))], "e9"),
    ];
    for (changes, words) in cases {
        let (code, answer) = api.post("/api/v1/changes", &json!({ "changes": changes }));
        assert!((400..500).contains(&code), "{words}: {code} {answer:#}");
        assert!(answer.to_string().contains(words), "{words}: {answer:#}");
    }
    assert_eq!(bed.dumps(), before);
}

/// The address that the administration is bound to goes only with the new one named.
#[test]
fn the_address_that_the_server_listens_on_needs_a_successor() {
    let bed = match Bed::new() {
        Ok(bed) => bed,
        Err(why) => skip!("network-administration", "{why}"),
    };
    let (server, api) = bed.start();
    let before = confirmed(&bed, &api, 300);
    drop(server);
    let (dir, state) = (bed.scratch.path().join("share"), bed.state());
    let (address, namespace) = ("10.0.0.1", Some(&bed.namespace));
    let options = Options { address, namespace, ..Options::new(&dir, &state) };
    let (_server, api) = (Server::start(&options), Api::new(&state));
    let moved = |successor: Option<&str>| {
        let name = |address| {
            json!({ "set": "/configuration/network", "property": "administration",
                    "value": address })
        };
        let mut changes: Vec<Value> = successor.into_iter().map(name).collect();
        changes.push(json!({ "destroy": "/configuration/network/routes/far", "confirm": true }));
        changes.push(json!({ "set": "/configuration/network/interfaces/lan",
            "property": "v4addrs", "value": ["10.7.0.1/16"] }));
        api.post("/api/v1/changes", &json!({ "dry_run": true, "changes": changes }))
    };
    let sentence = "the administration is reached at 10.0.0.1, which would be removed";
    for successor in [None, Some("10.7.0.2")] {
        let (code, answer) = moved(successor);
        assert!((400..500).contains(&code), "{code} {answer:#}");
        let text = answer.to_string();
        assert!(text.contains(sentence) && text.contains("v4addrs"), "{text}");
    }
    assert_eq!(moved(Some("10.7.0.1")).0, 200);
    assert_eq!(bed.lines(), before);
}

/// Without root and without a helper the branch can be read and shows what is missing.
#[test]
fn without_a_helper_the_branch_is_readable_and_has_its_reason() {
    if Path::new("/run/plimsoll-host.sock").exists() {
        skip!("network-reason", "a helper runs on this machine");
    }
    let scratch = Scratch::new("network");
    let (dir, state) = (scratch.path().join("share"), scratch.path().join("state"));
    std::fs::create_dir(&dir).expect("a directory");
    if is_root() {
        for folder in [scratch.path(), dir.as_path()] {
            std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY)).expect("an owner");
        }
    }
    let _server = Server::start(&Options { unprivileged: true, ..Options::new(&dir, &state) });
    let api = Api::new(&state);
    assert_eq!(shown(&api, "", "state"), "read-only");
    let reason = "the server is not root and no helper runs: start the helper (systemctl enable \
                  --now plimsoll-host), or start the server as root";
    assert_eq!(shown(&api, "", "reason"), reason);
    assert_eq!(shown(&api, "/devices/lo", "state"), "up");
    // Each form has it: settings, items that are made, and what only shows.
    for path in ["", "/datalinks", "/interfaces", "/routes", "/dns", "/identity", "/devices/lo"] {
        let node = api.get(&format!("/api/v1/nodes/configuration/network{path}")).1;
        assert_eq!(node["may"], json!({ "change": false, "why": reason }), "{path}");
    }
    let (code, answer) = api.post("/api/v1/changes", &lan(60));
    assert_eq!(code, 409, "{answer:#}");
    assert!(answer.to_string().contains(reason), "{answer:#}");
}

/// Whether a role may read and change a branch.
type Rights = [bool; 2];
/// Roles with a permission each in addition to `status:read`, which the root of the tree needs, and
/// their rights on the network and on storage. Of a cluster the tree has no branch.
const ROLES: [(&str, &str, Rights, Rights); 7] = [
    ("looks", "network:read", [true, false], [false, false]),
    ("changes", "network:change", [true, true], [false, false]),
    ("sees", "storage:read", [false, false], [true, false]),
    ("stores", "storage:change", [false, false], [true, true]),
    ("watches", "cluster:read", [false, false], [false, false]),
    ("clusters", "cluster:change", [false, false], [false, false]),
    ("serves", "services:change", [false, false], [false, false]),
];
/// A pool that the helper refuses: there is no such disk.
const NO_POOL: &str = "storage pools create_pool name=tank disks=none";

/// A token of a role that has this permission, in a file.
fn token(bed: &Bed, api: &Api, role: &str, permission: &str) -> std::path::PathBuf {
    change(
        api,
        &json!({ "changes": [
            { "create": "/configuration/roles", "name": role,
              "properties": { "permissions": ["status:read", permission] } },
            { "create": "/configuration/tokens", "name": role, "properties": { "role": role } },
        ]}),
    );
    let issue = format!("/api/v1/nodes/configuration/tokens/{role}/actions/issue");
    let (_, answer) = api.post(&issue, &json!({ "parameters": {} }));
    let file = bed.scratch.path().join(role);
    std::fs::write(&file, answer["result"]["token"].as_str().expect("a token")).expect("a file");
    file
}

/// Without the scope the branch is absent or read-only, and no helper does what is refused.
#[test]
fn roles_have_the_network_by_its_scope_alone() {
    let bed = match Bed::new() {
        Ok(bed) => bed,
        Err(why) => skip!("network-roles", "{why}"),
    };
    let before = bed.dumps();
    let (server, api) = bed.start();
    let url = server.announced["admin"].as_str().expect("a URL").trim_end_matches('/').to_owned();
    for (role, permission, network, storage) in ROLES {
        let file = token(&bed, &api, role, permission);
        let run = |line: &str| {
            let mut command = Command::new(e2e::server::binary());
            command.args(["cli", "-c", line, "--server", &url, "--token-file"]).arg(&file);
            command.arg("--ca").arg(bed.state().join("certificate.pem"));
            bed.namespace.enter(&mut command);
            let output = process::run(&mut command, process::DEADLINE);
            let all = [output.stdout, output.stderr].concat();
            (output.status.success(), String::from_utf8_lossy(&all).into_owned())
        };
        let (done, text) = run("configuration network show");
        let is_shown = text.contains("confirm_within");
        assert_eq!((done, is_shown), (network[0], network[0]), "{role}: {text}");
        let (done, text) = run("configuration network datalinks create e0 class=device mtu=1400");
        assert_eq!(done, network[1], "{role}: {text}");
        assert_eq!(run("storage pools show").0, storage[0], "{role}");
        let (_, text) = run(NO_POOL);
        assert_eq!(text.contains("there is no such disk"), storage[1], "{role}: {text}");
        if network[1] {
            assert_ne!(bed.dumps(), before);
            assert_eq!(act(&api, "revert").0, 200);
        }
        assert_eq!(bed.dumps(), before, "{role}");
        if role == "looks" {
            assert_eq!(bed.helpers(), [] as [i32; 0], "what is refused starts no helper");
        }
    }
}
