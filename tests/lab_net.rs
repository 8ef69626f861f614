//! Network profiles as users run them: the bytes of both ends are equal, interfaces count payload
//! and headers, and faults are named in time, with the exit code.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use e2e::bridge::{Bridge, Networks, SECOND};
use e2e::lab::{Agent, command, lines};
use e2e::netns::Namespace;
use e2e::scratch::Scratch;
use e2e::{is_root, process, skip};
use serde_json::Value;

/// How long a run may take on a busy machine.
const WAIT: Duration = e2e::patience(120);
/// Headers of a packet over Ethernet and IPv4, TCP with timestamps.
const HEADERS: u64 = 14 + 20 + 32;
/// Payload of a full segment of the link, and its headers.
const SEGMENT: u64 = 1448 + HEADERS;

/// `lab net` with these words.
fn net(words: &[&str], out: &Path) -> Command {
    let mut command = command();
    command.arg("net").args(words).arg("--out").arg(out);
    command
}

/// Exit code and standard error of a run.
fn ran(mut command: Command) -> (i32, String) {
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("plimsoll");
    let printed = lines(child.stderr.take().expect("a pipe"));
    let status = process::wait(&mut child, WAIT).expect("ends in time");
    let text: Vec<String> = printed.into_iter().collect();
    (status.code().expect("code"), text.join("\n"))
}

fn result(out: &Path) -> Value {
    let text = fs::read_to_string(out.join("result.json")).expect("result.json");
    serde_json::from_str(&text).expect("JSON")
}

/// The transaction that moves the bytes.
fn main_of(result: &Value) -> &Value {
    &result["transactions"][1]
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is not a number"))
}

#[test]
fn four_hundred_connections_have_the_same_bytes_at_both_ends() {
    let out = Scratch::new("net");
    let (code, printed) = ran(net(&["lso-many", "--set", "duration=1s"], out.path()));
    assert!(code == 0 || code == 3, "{code}: {printed}");
    let result = result(out.path());
    assert_eq!(result["hosts"].as_array().map(Vec::len), Some(4));
    let main = main_of(&result);
    same_bytes(main, 400);
    assert!(number(&main["bytes"]["near_sent"]) > 400 * 64 * 1024, "{main}");
    assert_eq!(main["cpu_s"].as_array().map(Vec::len), Some(5));
    // Both ends of 400 connections, as TCP has them.
    assert_eq!(result["connections"].as_array().map(Vec::len), Some(800));
    for file in ["report.html", "figures.csv"] {
        assert!(out.path().join(file).is_file(), "{file}");
    }
}

#[test]
fn a_profile_that_is_refused_is_a_usage_error() {
    let out = Scratch::new("net");
    let file = out.path().join("p.xml");
    let text = "<profile><group nthreads='1'>\n<transaction>\n\
        <flowop type='connect' options='remotehost=$h protocol=sctp'/>\
        </transaction></group></profile>";
    fs::write(&file, text).expect("profile");
    let (code, printed) = ran(net(&[file.to_str().expect("path")], out.path()));
    assert_eq!(code, 2, "{printed}");
    assert!(
        printed.contains("p.xml:3: flowop connect: protocol=sctp is not supported"),
        "{printed}"
    );
}

#[test]
fn a_killed_agent_is_named() {
    let out = Scratch::new("net");
    let mut command = net(&["stream", "--set", "duration=60s"], out.path());
    let agents = [Agent::start(|_| {}), Agent::at("127.0.0.2:0", |_| {})];
    Agent::used_by(&mut command, &agents);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("plimsoll");
    let printed = lines(child.stderr.take().expect("a pipe"));
    // The first transaction has ended: the agents are connected.
    let first = printed.recv_timeout(WAIT).expect("progress");
    assert!(first.starts_with("transaction 1:"), "{first}");
    agents[1].signal(libc::SIGKILL);
    let status = process::wait(&mut child, WAIT).expect("ends in time");
    let text: Vec<String> = printed.into_iter().collect();
    let text = text.join("\n");
    assert_eq!(status.code(), Some(3), "{text}");
    assert!(text.contains("lost 127.0.0.2 end: its connection ended"), "{text}");
    let result = result(out.path());
    assert!(result["failed"].is_null() && result["ends"][2]["lost"].is_string(), "{result}");
}

/// A profile in a file: threads that connect to `host`, and this transaction.
fn profile(out: &Path, threads: u32, host: &str, connect: &str, transaction: &str) -> String {
    let file = out.join("profile.xml");
    let text = format!(
        "<profile name=\"planted\"><group nthreads=\"{threads}\">\n<transaction>\n\
         <flowop type=\"connect\" options=\"remotehost={host} protocol=tcp {connect}\"/>\n\
         </transaction>\n{transaction}\n<transaction><flowop type=\"disconnect\"/></transaction>\n\
         </group></profile>"
    );
    fs::write(&file, text).expect("profile");
    file.to_str().expect("path").to_owned()
}

#[test]
fn a_reader_that_stops_is_named() {
    let out = Scratch::new("net");
    let write = "<transaction duration=\"60s\">\n\
        <flowop type=\"write\" options=\"size=1m timeout=500ms\"/></transaction>";
    let profile = profile(out.path(), 1, "127.0.0.1", "", write);
    let mut command = net(&[&profile], out.path());
    let agents = [Agent::start(|_| {})];
    Agent::used_by(&mut command, &agents);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("plimsoll");
    let printed = lines(child.stderr.take().expect("a pipe"));
    let first = printed.recv_timeout(WAIT).expect("progress");
    assert!(first.starts_with("transaction 1:"), "{first}");
    // The fault that is planted: it reads nothing for longer than the flowop waits.
    agents[0].signal(libc::SIGSTOP);
    std::thread::sleep(Duration::from_secs(2));
    agents[0].signal(libc::SIGCONT);
    let status = process::wait(&mut child, WAIT).expect("ends in time");
    let text = printed.into_iter().collect::<Vec<_>>().join("\n");
    assert_eq!(status.code(), Some(1), "{text}");
    let named = "near end: thread 0, connection 0: line 6: flowop write: the other end read \
        nothing within 500 ms";
    assert!(text.contains(named), "{text}");
    let result = result(out.path());
    let fault = &main_of(&result)["faults"][0]["first"][0];
    assert_eq!((&fault["line"], &fault["flowop"]), (&6.into(), &"write".into()), "{result}");
}

#[test]
fn agents_that_call_late_are_far_ends() {
    let out = Scratch::new("net");
    let code = out.path().join("code").display().to_string();
    let words = ["stream", "--set", "threads=200", "--set", "duration=1s"];
    let mut command = net(&words, out.path());
    command.args(["--listen-agents", "127.0.0.1:0", "--agents", "2", "--code-file", &code]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("plimsoll");
    let printed = lines(child.stderr.take().expect("a pipe"));
    let first = printed.recv_timeout(WAIT).expect("progress");
    let at = first.strip_prefix("waiting for 2 agents on ").unwrap_or_else(|| panic!("{first}"));
    let join = || {
        let mut agent = command_of_agent(at, &code);
        agent.spawn().expect("an agent")
    };
    let early = join();
    // That it comes later is what is tested.
    std::thread::sleep(Duration::from_millis(500));
    let late = join();
    let status = process::wait(&mut child, WAIT).expect("ends in time");
    let text = printed.into_iter().collect::<Vec<_>>().join("\n");
    for mut agent in [early, late] {
        assert!(process::wait(&mut agent, WAIT).is_some(), "an agent ends with its controller");
    }
    assert!(matches!(status.code(), Some(0 | 3)), "{status}: {text}");
    let result = result(out.path());
    assert_eq!(result["hosts"], serde_json::json!(["agent-1", "agent-2"]));
    same_bytes(main_of(&result), 400);
}

fn command_of_agent(controller: &str, code: &str) -> Command {
    let mut agent = command();
    agent.args(["agent", "--join", controller, "--code-file", code]);
    agent.stdout(Stdio::null()).stderr(Stdio::null());
    agent
}

/// Bytes of both ends are the same, over this many connections.
fn same_bytes(transaction: &Value, connections: u64) {
    let bytes = &transaction["bytes"];
    assert!(bytes["difference_percent"].as_f64().expect("percent") <= 0.1, "{bytes}");
    assert_eq!(bytes["near_sent"], bytes["far_received"]);
    assert!(number(&bytes["near_sent"]) > 0, "{bytes}");
    assert_eq!(number(&transaction["connections"]["connections"]), connections);
}

#[test]
fn bytes_are_the_same_over_a_link_that_loses_packets() {
    let networks = match Networks::new() {
        Ok(networks) => networks,
        Err(why) => skip!("net-loss", "{why}"),
    };
    let link = ["--rtt", "2ms", "--rate", "50Mbit", "--queue", "4M", "--seed", "39"];
    let bridge = Bridge::start(&networks, &[&link[..], &["--set", "forth.loss=1%"]].concat());
    let out = Scratch::new("net");
    let agents = [Agent::at(&format!("{SECOND}:0"), |command| networks.second.enter(command))];
    // Half of what the link carries, so that little is in flight at the end.
    let write = "<transaction duration=\"3s\" rate=\"1\">\
        <flowop type=\"write\" options=\"size=8k\"/></transaction>";
    let profile = profile(out.path(), 400, SECOND, "", write);
    let mut command = net(&[&profile], out.path());
    Agent::used_by(&mut command, &agents);
    networks.first.enter(&mut command);
    let (code, printed) = ran(command);
    let dropped = bridge.ask("show", &[])["forth"]["dropped"].clone();
    assert!(matches!(code, 0 | 3), "{code}: {printed}");
    let result = result(out.path());
    same_bytes(main_of(&result), 400);
    let all = result["connections"].as_array().expect("connections").iter();
    let near = all.filter(|connection| connection["end"] == "near");
    let again: u64 = near.map(|connection| number(&connection["retransmits"])).sum();
    assert!(again > 0, "no packet was lost: {dropped}");
}

#[test]
fn a_refused_connection_is_named_at_both_ends() {
    if !is_root() {
        skip!("net-refused", "network namespaces need root");
    }
    let (near, far) = pair();
    let out = Scratch::new("net");
    let agents = [Agent::at("10.88.0.2:0", |command| far.enter(command))];
    // The near end's own address: its agent does not listen at the port of the far end.
    let profile = profile(out.path(), 1, "10.88.0.1", "timeout=500ms", "");
    let mut command = net(&[&profile], out.path());
    Agent::used_by(&mut command, &agents);
    near.enter(&mut command);
    let (code, printed) = ran(command);
    assert_eq!(code, 1, "{printed}");
    for named in [
        "near end: thread 0, connection 0: line 3: flowop connect: 10.88.0.1 at 10.88.0.1:",
        "Connection refused",
        "10.88.0.1 end: thread 0, connection 0: line 3: flowop accept: the other end did not \
         connect within 500 ms",
    ] {
        assert!(printed.contains(named), "{named}: {printed}");
    }
}

/// Two namespaces with a pair of interfaces: 10.88.0.1 and 10.88.0.2.
fn pair() -> (Namespace, Namespace) {
    let near = Namespace::with("ip link set lo up").expect("namespace");
    let far = Namespace::with(&format!(
        "set -e\nip link set lo up\n\
         ip link add vfar type veth peer name vnear netns {}\n\
         ip addr add 10.88.0.2/24 dev vfar\nip link set vfar up",
        near.pid()
    ));
    let far = far.expect("veth");
    let mut up = Command::new("sh");
    up.args(["-c", "ip addr add 10.88.0.1/24 dev vnear && ip link set vnear up"]);
    near.enter(&mut up);
    assert!(up.status().expect("ip").success());
    (near, far)
}

/// What an interface of a namespace has counted: bytes and packets in both directions.
fn counted(namespace: &Namespace, name: &'static str) -> [u64; 2] {
    let read = move || {
        let text = fs::read_to_string("/proc/thread-self/net/dev").expect("net/dev");
        let line =
            text.lines().find(|line| line.trim_start().starts_with(name)).expect("interface");
        let numbers: Vec<u64> = line
            .split(':')
            .nth(1)
            .expect("numbers")
            .split_whitespace()
            .flat_map(str::parse)
            .collect();
        [numbers[0] + numbers[8], numbers[1] + numbers[9]]
    };
    namespace.spawn(read).join().expect("read")
}

/// Bytes of segments that a namespace has sent again (RFC 4022): acknowledgements of a busy machine
/// are late, and an interface counts such segments twice.
fn retransmitted(namespace: &Namespace) -> u64 {
    let read = || {
        let text = fs::read_to_string("/proc/thread-self/net/snmp").expect("net/snmp");
        let mut rows = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
        let (names, values) = (rows.next().expect("names"), rows.next().expect("values"));
        let mut both = names.split(' ').zip(values.split(' '));
        let (_, segments) = both.find(|(name, _)| *name == "RetransSegs").expect("RetransSegs");
        segments.parse::<u64>().expect("a number") * SEGMENT
    };
    namespace.spawn(read).join().expect("read")
}

/// Whether payload and headers are what an interface has counted, within 1 %.
fn fits(payload: u64, packets: u64, bytes: u64) -> bool {
    let expected = (payload + HEADERS * packets) as f64;
    (bytes as f64 / expected - 1.0).abs() <= 0.01
}

#[test]
fn payload_and_headers_are_what_the_interface_counts() {
    if !is_root() {
        skip!("net-interfaces", "network namespaces need root");
    }
    let (near, far) = pair();
    // By number, so that messages of the controller are few in comparison.
    for (size, calls) in [("1k", 20_000), ("64k", 2_000)] {
        let out = Scratch::new("net");
        let agents = [Agent::at("10.88.0.2:0", |command| far.enter(command))];
        let write = format!(
            "<transaction iterations=\"{calls}\">\
             <flowop type=\"write\" options=\"size={size}\"/></transaction>"
        );
        let profile = profile(out.path(), 4, "10.88.0.2", "", &write);
        let mut command = net(&[&profile], out.path());
        Agent::used_by(&mut command, &agents);
        near.enter(&mut command);
        let (before, again) = (counted(&near, "vnear"), retransmitted(&near));
        let (code, printed) = ran(command);
        assert!(code == 0 || code == 3, "{size}: {code}: {printed}");
        let after = counted(&near, "vnear");
        let result = result(out.path());
        let bytes = &main_of(&result)["bytes"];
        let payload = number(&bytes["near_sent"]);
        assert_eq!(bytes["near_sent"], bytes["far_received"], "{size}");
        // All that passed in the namespace, messages between controller and agent included.
        let again = retransmitted(&near) - again;
        let [all, packets] = [after[0] - before[0] - again, after[1] - before[1]];
        let seen = format!(
            "{size}: {payload} bytes in {packets} packets, {all} bytes counted, {again} sent again"
        );
        println!("{seen}");
        assert!(fits(payload, packets, all), "{seen}");
        // A miscount of 2 % is seen, either way.
        assert!(!fits(payload / 100 * 102, packets, all), "{seen}");
        assert!(!fits(payload / 100 * 98, packets, all), "{seen}");
        let own = main_of(&result)["interfaces"].as_array().expect("interfaces").clone();
        let ratio = own.iter().find(|i| i["end"] == "near" && i["name"] == "vnear").expect("vnear");
        let ratio = ratio["ratio"].as_f64().expect("ratio");
        let twice = again as f64 / all as f64;
        assert!((ratio - 1.0 - twice).abs() <= 0.01, "{size}: {ratio}, {twice} of it sent again");
    }
}
