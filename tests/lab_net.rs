//! Network profiles as users run them: the bytes of both ends are equal, interfaces count payload
//! and headers, and faults are named in time, with the exit code.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use e2e::lab::{Agent, command, lines};
use e2e::netns::Namespace;
use e2e::scratch::Scratch;
use e2e::{is_root, process, skip};
use serde_json::Value;

/// How long a run may take on a busy machine.
const WAIT: Duration = e2e::patience(120);
/// Headers of a packet over Ethernet and IPv4, TCP with timestamps.
const HEADERS: u64 = 14 + 20 + 32;

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
    let bytes = &main["bytes"];
    assert!(bytes["difference_percent"].as_f64().expect("percent") <= 0.1, "{bytes}");
    assert_eq!(bytes["near_sent"], bytes["far_received"]);
    assert!(number(&bytes["near_sent"]) > 400 * 64 * 1024, "{bytes}");
    assert_eq!(number(&main["connections"]["connections"]), 400);
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
    assert!(matches!(status.code(), Some(1 | 3)), "{status}: {text}");
    assert!(text.contains("lost 127.0.0.2 end: its connection ended"), "{text}");
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
    for size in ["1k", "64k"] {
        let out = Scratch::new("net");
        let agents = [Agent::at("10.88.0.2:0", |command| far.enter(command))];
        let size = format!("size={size}");
        let mut command = net(&["stream", "--set", &size, "--set", "duration=1s"], out.path());
        Agent::used_by(&mut command, &agents);
        near.enter(&mut command);
        let before = counted(&near, "vnear");
        let (code, printed) = ran(command);
        assert!(code == 0 || code == 3, "{size}: {code}: {printed}");
        let after = counted(&near, "vnear");
        let result = result(out.path());
        let bytes = &main_of(&result)["bytes"];
        let payload = number(&bytes["near_sent"]);
        assert_eq!(bytes["near_sent"], bytes["far_received"], "{size}");
        // All that passed in the namespace, messages between controller and agent included.
        let [all, packets] = [after[0] - before[0], after[1] - before[1]];
        assert!(fits(payload, packets, all), "{size}: {payload} in {packets} packets, {all}");
        // A miscount of 2 % is seen, either way.
        assert!(!fits(payload / 100 * 102, packets, all), "{size}");
        assert!(!fits(payload / 100 * 98, packets, all), "{size}");
        let own = main_of(&result)["interfaces"].as_array().expect("interfaces").clone();
        let ratio = own.iter().find(|i| i["end"] == "near" && i["name"] == "vnear").expect("vnear");
        let ratio = ratio["ratio"].as_f64().expect("ratio");
        assert!((ratio - 1.0).abs() <= 0.01, "{size}: {ratio}");
    }
}
