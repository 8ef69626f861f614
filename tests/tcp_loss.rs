//! Loss and reordering on an emulated link, seeded: retransmits by client against what the link
//! dropped, disorder and duplicate acknowledgements against the receiver's own counters, and that
//! no other client is named. A run over a link that was condemned does not count.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use e2e::api::{Api, now, wait_for};
use e2e::bridge::{Bridge, FIRST, Networks};
use e2e::netns::Namespace;
use e2e::nfs3::Client;
use e2e::scene::Scene;
use e2e::server::{Options, Server};
use e2e::{is_root, patience, process};
use serde_json::Value;
use wire::nfs3::StableHow;

/// The address of the client without faults, and the server's on its network.
const OTHER: &str = "10.0.5.2";
const OTHER_SERVER: [u8; 4] = [10, 0, 5, 1];
const MIB: u64 = 1 << 20;
const RUN: Duration = Duration::from_secs(10);
const CONNECTIONS: usize = 4;
/// A queue that never fills: nothing is lost but what is to be.
const LINK: [&str; 6] = ["--rtt", "4ms", "--rate", "50Mbit", "--queue", "16M"];
const ATTEMPTS: usize = 5;
/// Share of segments below which a client is not named.
const FEW: f64 = 0.001;

/// A counter of TCP in a namespace.
fn counted(namespace: &Namespace, file: &'static str, group: &str, name: &str) -> f64 {
    let read = move || fs::read_to_string(format!("/proc/thread-self/net/{file}"));
    let text = namespace.spawn(read).join().expect("a thread").expect("counters");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(':'));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let names = names.split_whitespace().zip(values.split_whitespace());
    names.filter(|(n, _)| *n == name).find_map(|(_, value)| value.parse().ok()).expect("a counter")
}

/// The sum over an interval, by an element of a breakdown.
fn by(api: &Api, stat: &str, element: &str, interval: (i64, i64)) -> f64 {
    let data = api.data(&format!("tcp.{stat}"), interval, "");
    let rows = data["rows"].as_array().cloned().unwrap_or_default();
    let values = rows
        .iter()
        .filter(|row| row["key"] == element)
        .flat_map(|row| row["values"].as_array().into_iter().flatten().filter_map(Value::as_f64));
    values.sum::<f64>() + 0.0
}

/// Reads, or writes, over NFS for a time.
fn load(server: SocketAddr, export: &str, (name, writes): (&str, bool), pause: Duration) {
    let mut client = Client::connect(server, 0, 0).expect("a connection");
    let root = client.mnt(export).expect("a mount");
    let file = client.lookup(&root, name).expect("a file").handle;
    let data = vec![7; MIB as usize];
    let end = Instant::now() + RUN;
    while Instant::now() < end {
        match writes {
            true => drop(client.write(&file, 0, &data, StableHow::UNSTABLE).expect("a write")),
            false => drop(client.read(&file, 0, MIB as u32).expect("a read")),
        }
        std::thread::sleep(pause);
    }
}

/// What one run counted.
struct Figures {
    /// The server's: of the planted client, of the other one.
    retransmits: [f64; 2],
    duplicates: [f64; 2],
    disordered: [f64; 2],
    /// Segments over each network.
    segments: [f64; 2],
    /// What the link dropped on the way to the client.
    dropped: f64,
    /// Segments that the client, and the server, received out of order.
    client_disordered: f64,
    server_disordered: f64,
}

/// Packets of this device of a namespace go through the queue of one CPU: else those of one
/// connection overtake each other when its sender moves to another CPU.
fn in_order(namespace: &Namespace, device: &str) {
    let mut command = Command::new("unshare");
    let file = format!("/sys/class/net/{device}/queues/rx-0/rps_cpus");
    command.args(["-m", "sh", "-ec", &format!("mount -t sysfs sysfs /sys; echo 1 >{file}")]);
    namespace.enter(&mut command);
    process::succeed(&mut command);
}

/// Each segment that arrives there is acknowledged at once, and each out of order alone: the
/// acknowledgement of the first of several would be no duplicate if one before it was delayed.
fn acknowledge_at_once(client: &Namespace) {
    let script = "echo 0 >/proc/sys/net/ipv4/tcp_comp_sack_nr
        route=$(ip -o route show 10.9.0.0/24) && ip route change $route quickack 1";
    let mut command = Command::new("sh");
    command.args(["-ec", script]);
    client.enter(&mut command);
    process::succeed(&mut command);
}

/// Gives the server's namespace a second network, with a client without faults.
fn other_network(networks: &Networks) -> Namespace {
    let other = Namespace::with("ip link set lo up\n").expect("a namespace");
    let ends = [(other.pid(), OTHER, "o0"), (networks.second.pid(), "10.0.5.1", "o1")];
    let ip = |args: &str| {
        let mut command = Command::new("ip");
        process::succeed(command.args(args.split(' ')));
    };
    ip(&format!("link add o0 netns {} type veth peer name o1 netns {}", ends[0].0, ends[1].0));
    for (n, (_, address, device)) in ends.into_iter().enumerate() {
        let namespace = if n == 0 { &other } else { &networks.second };
        for args in [format!("addr add {address}/24 dev {device}"), format!("link set {device} up")]
        {
            let mut command = Command::new("ip");
            command.args(args.split(' '));
            namespace.enter(&mut command);
            process::succeed(&mut command);
        }
        in_order(namespace, device);
    }
    other
}

/// One run; `None` when the link was condemned.
fn attempt(faults: &[&str], writes: bool) -> Option<Figures> {
    let networks = Networks::new().expect("namespaces");
    let other = other_network(&networks);
    let bridge = Bridge::start(&networks, &[&LINK, faults].concat());
    acknowledge_at_once(&networks.first);
    let scene = Scene::new("tcp-loss");
    let (address, namespace) = ("0.0.0.0", Some(&networks.second));
    let options = Options { address, namespace, ..Options::new(&scene.dir, &scene.state) };
    let (started, server) = (now(), Server::start(&options));
    let api = Api::new(&scene.state);
    wait_for("the programs", patience(15), || {
        let data = api.data("tcp.segment_source[tier]", (started, now() + 1), "");
        let key = data["rows"][0]["key"].as_str().map(str::to_owned);
        key.inspect(|key| assert!(key.starts_with("programs"), "{key}"))
    });
    let (port, export) = (server.nfs_port(), server.export());
    // Here, so that the link carries nothing but what is measured.
    let names: Vec<String> = (0..=CONNECTIONS).map(|n| format!("file-{n}")).collect();
    for name in &names {
        fs::write(scene.dir.join(name), vec![7; MIB as usize]).expect("a file");
    }
    let start = |namespace: &Namespace, host: [u8; 4], name: &str, writes: bool, pause: u64| {
        let (at, export, name) = (SocketAddr::from((host, port)), export.clone(), name.to_owned());
        let pause = Duration::from_millis(pause);
        namespace.spawn(move || load(at, &export, (&name, writes), pause))
    };
    let planted = names.iter().take(CONNECTIONS);
    let planted = planted.map(|name| start(&networks.first, [10, 9, 0, 2], name, writes, 0));
    let mut all: Vec<_> = planted.collect();
    for writes in [false, true] {
        all.push(start(&other, OTHER_SERVER, &names[CONNECTIONS], writes, 50));
    }
    all.into_iter().for_each(|thread| thread.join().expect("a client"));
    let dropped = bridge.ask("show", &[])["back"]["dropped"].clone();
    let dropped = dropped.as_object().into_iter().flatten().filter_map(|(_, n)| n.as_f64()).sum();
    // What the last look saw is spread over the seconds behind it.
    let last = now() + 4;
    api.wait_for_second(last);
    let interval = (started, last + 1);
    let clients = |stat: &str| {
        [FIRST, OTHER].map(|client| by(&api, &format!("{stat}[client]"), client, interval))
    };
    let device = device_of(&api, interval);
    let figures = Figures {
        retransmits: clients("retransmits"),
        duplicates: clients("duplicate_acks"),
        disordered: clients("out_of_order"),
        segments: [&*device, "o1"].map(|name| by(&api, "segments[device]", name, interval)),
        dropped,
        client_disordered: counted(&networks.first, "netstat", "TcpExt", "TCPOFOQueue"),
        server_disordered: counted(&networks.second, "netstat", "TcpExt", "TCPOFOQueue"),
    };
    let ended = bridge.end();
    match ended.code {
        0 => Some(figures),
        3 => {
            println!("does not count: {}", ended.said);
            None
        }
        code => panic!("exit code {code}: {}", ended.said),
    }
}

/// The server's end of the link: the interface that is not the other network's.
fn device_of(api: &Api, interval: (i64, i64)) -> String {
    let data = api.data("tcp.segments[device]", interval, "");
    let names = data["rows"].as_array().into_iter().flatten().filter_map(|row| row["key"].as_str());
    let mut names = names.filter(|name| *name != "o1" && *name != "lo");
    names.next().expect("a device").to_owned()
}

/// The first run of which the link is good.
fn measured(faults: &[&str], writes: bool) -> Figures {
    let all = (0..ATTEMPTS).find_map(|_| attempt(faults, writes));
    all.unwrap_or_else(|| panic!("the link was condemned in each of {ATTEMPTS} attempts"))
}

/// No client but the planted one has more than a few of what it sent.
fn names_no_other(figures: &Figures) {
    for (what, all) in [
        ("retransmits", figures.retransmits),
        ("duplicate acknowledgements", figures.duplicates),
        ("out of order", figures.disordered),
    ] {
        let share = all[1] / figures.segments[1].max(1.0);
        assert!(share < FEW, "{what} of the client without faults: {share}");
    }
}

fn is_near(what: &str, ours: f64, theirs: f64, part: f64) {
    println!("{what}: {ours:.0} by the server, {theirs:.0} expected");
    assert!(theirs > 100.0, "{what}: too few to compare: {theirs}");
    assert!((ours - theirs).abs() <= part * theirs, "{what}: {ours} and {theirs}");
}

fn can_run(name: &str) -> bool {
    let why = match Networks::new() {
        _ if !is_root() => Some("needs root".to_owned()),
        Ok(_) => None,
        Err(why) => Some(why),
    };
    why.is_none_or(|why| {
        println!("SKIP {name}: {why}");
        false
    })
}

#[test]
#[ignore = "measures: make test-long NAME=segments"]
fn retransmits_of_a_client_are_what_its_link_dropped() {
    if !can_run("tcp-loss") {
        return;
    }
    let figures = measured(&["--set", "back.loss=1%", "--seed", "39"], false);
    is_near("retransmits", figures.retransmits[0], figures.dropped, 0.05);
    names_no_other(&figures);
}

#[test]
#[ignore = "measures: make test-long NAME=segments"]
fn duplicate_acknowledgements_are_what_the_client_receives_out_of_order() {
    if !can_run("tcp-duplicates") {
        return;
    }
    let figures = measured(&["--set", "back.reorder=2%", "--seed", "39"], false);
    is_near("duplicates", figures.duplicates[0], figures.client_disordered, 0.02);
    names_no_other(&figures);
}

#[test]
#[ignore = "measures: make test-long NAME=segments"]
fn what_the_server_receives_out_of_order_is_of_the_client() {
    if !can_run("tcp-disorder") {
        return;
    }
    let figures = measured(&["--set", "forth.reorder=2%", "--seed", "39"], true);
    is_near("out of order", figures.disordered[0], figures.server_disordered, 0.02);
    names_no_other(&figures);
}

#[test]
#[ignore = "measures: make test-long NAME=segments"]
fn without_faults_no_client_is_named() {
    if !can_run("tcp-clean") {
        return;
    }
    let figures = measured(&[], false);
    for all in [figures.retransmits, figures.duplicates, figures.disordered] {
        let share = all[0] / figures.segments[0];
        println!("of {:.0} segments: {:.0}", figures.segments[0], all[0]);
        assert!(share < FEW, "{share}");
    }
    names_no_other(&figures);
}
