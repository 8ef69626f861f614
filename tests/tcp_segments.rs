//! Segments by context, and TCP by client, as the server shows them: by programs in the kernel, or
//! by the counters of IP where these may not run, with the reason; nothing is left of a server that
//! is killed. Over an emulated link with loss one way and reordering the other, what clients have
//! is what the kernel counts.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use e2e::api::{Api, now, sum, wait_for};
use e2e::bridge::{Bridge, FIRST, Networks, SECOND};
use e2e::netns::Namespace;
use e2e::nfs3::Client;
use e2e::scene::Scene;
use e2e::server::{Options, Server, binary};
use e2e::{has, is_root, process, skip};
use serde_json::Value;
use wire::nfs3::{CreateHow, Sattr3, StableHow};

/// Where the kernel describes its types.
const TYPES: &str = "/sys/kernel/btf/vmlinux";
const WAIT: Duration = Duration::from_secs(60);
const PROGRAMS: &str = "programs in the kernel count each segment";
const MIB: usize = 1 << 20;

/// The source of segment sizes, once it is known.
fn source(api: &Api, started: i64) -> String {
    wait_for("the source of segment sizes", WAIT, || {
        let data = api.data("tcp.segment_source[tier]", (started, now() + 1), "");
        data["rows"][0]["key"].as_str().map(str::to_owned)
    })
}

/// Lines of the log about segments.
fn logged(server: &Server) -> Vec<String> {
    let said = server.stderr_text();
    said.lines().filter(|line| line.contains("TCP segments")).map(str::to_owned).collect()
}

/// A server with other rights or another view of the kernel, and what it reports.
struct Tier {
    name: &'static str,
    /// Shell words before the program.
    before: String,
    unprivileged: bool,
    source: &'static str,
}

fn tiers(scene: &Scene) -> Vec<Tier> {
    let folder = |name: &str| scene.scratch.folder(name, None);
    let bound = |what: &Path, over: &str| {
        let what = what.display();
        format!("unshare -m sh -c 'mount --bind {what} {over} && exec \"$0\" \"$@\"'")
    };
    let changed = folder("changed").join("vmlinux");
    fs::write(&changed, with_field_moved(fs::read(TYPES).expect("type information")))
        .expect("a file");
    let rights = "+bpf,+perfmon";
    let tracing = format!(
        "setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps={rights} \
         --ambient-caps={rights}"
    );
    let hidden = bound(&folder("hidden"), "/sys/kernel/btf");
    let tier = |name, before, unprivileged, source| Tier { name, before, unprivileged, source };
    vec![
        tier("all", String::new(), false, PROGRAMS),
        tier("tracing", tracing, false, PROGRAMS),
        tier("none", String::new(), true, "the rights CAP_BPF and CAP_PERFMON are missing"),
        tier("hidden", hidden, false, "/sys/kernel/btf/vmlinux) cannot be read: No such file"),
        tier("refused", bound(&changed, TYPES), false, "refused the program plims_segment: access"),
    ]
}

/// Type information in which the field `len` of `struct sk_buff` lies outside of it: the kernel
/// refuses a program that reads it there (Documentation/bpf/btf.rst).
fn with_field_moved(mut btf: Vec<u8>) -> Vec<u8> {
    let word = |btf: &[u8], at: usize| {
        u32::from_ne_bytes(btf[at..at + 4].try_into().expect("four bytes")) as usize
    };
    let [header, types, length, strings] = [4, 8, 12, 16].map(|at| word(&btf, at));
    let (mut at, end, strings) = (header + types, header + types + length, header + strings);
    let is = |btf: &[u8], at: usize, name: &str| {
        btf[strings + word(btf, at)..].starts_with(format!("{name}\0").as_bytes())
    };
    while at < end {
        let info = word(&btf, at + 4);
        let (kind, members) = (info >> 24 & 31, info & 0xffff);
        if kind == 4 && is(&btf, at, "sk_buff") {
            let all = (0..members).map(|n| at + 12 + 12 * n);
            let field = all.clone().find(|field| is(&btf, *field, "len")).expect("the field");
            btf[field + 8..field + 12].copy_from_slice(&(30_000u32 * 8).to_ne_bytes());
            return btf;
        }
        at += 12
            + match kind {
                1 | 14 | 17 => 4,
                3 => 12,
                4 | 5 | 15 | 19 => 12 * members,
                6 | 13 => 8 * members,
                _ => 0,
            };
    }
    panic!("no struct sk_buff");
}

impl Tier {
    /// A script that starts the program so.
    fn program(&self, folder: &Path) -> PathBuf {
        let script = folder.join(format!("serve-{}", self.name));
        let text = format!("#!/bin/sh\nexec {} {} \"$@\"\n", self.before, binary().display());
        fs::write(&script, text).expect("a script");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a mode");
        script
    }
}

#[test]
fn each_tier_starts_and_reports_its_source_once() {
    if !is_root() || !Path::new(TYPES).exists() || !has("setpriv") || !has("unshare") {
        skip!("tcp-tiers", "needs root, {TYPES}, setpriv and unshare");
    }
    let scene = Scene::new("tcp-tiers");
    let started = now();
    let start = |tier: Tier| {
        let owner = (tier.name == "none" || tier.name == "tracing").then_some(e2e::NOBODY);
        let (dir, state) = ["data", "state"].map(|what| format!("{}-{what}", tier.name)).into();
        let (dir, state) = (scene.scratch.folder(&dir, owner), scene.scratch.folder(&state, owner));
        let program = tier.program(scene.scratch.path());
        let options = Options::new(&dir, &state);
        let unprivileged = tier.unprivileged;
        let server = Server::start(&Options { program: Some(&program), unprivileged, ..options });
        (tier, server, Api::new(&state))
    };
    let all: Vec<(Tier, Server, Api)> = tiers(&scene).into_iter().map(start).collect();
    for (tier, server, api) in &all {
        let source = source(api, started);
        assert!(source.contains(tier.source), "{}: {source}", tier.name);
        // Seconds later there is still one line: it is tried once.
        api.wait_for_second(now() + 1);
        let lines = logged(server);
        assert!(lines.len() == 1 && lines[0].contains(tier.source), "{}: {lines:?}", tier.name);
        let data = api.data("tcp.segment_source[tier]", (started, now()), "");
        assert_eq!(data["rows"].as_array().map(Vec::len), Some(1), "{}: {data}", tier.name);
    }
}

/// Numbers of the programs that a process has, from its descriptors.
fn programs(pid: u32) -> Vec<u32> {
    let Ok(all) = fs::read_dir(format!("/proc/{pid}/fdinfo")) else { return Vec::new() };
    let texts = all.flatten().filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let number = |text: String| {
        let line = text.lines().find_map(|line| line.strip_prefix("prog_id:"))?;
        line.trim().parse().ok()
    };
    let mut numbers: Vec<u32> = texts.filter_map(number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Whether the kernel has a program of this number (`BPF_PROG_GET_FD_BY_ID` of bpf(2)).
fn is_loaded(number: u32) -> bool {
    let mut attributes = [0u32; 32];
    attributes[0] = number;
    // SAFETY: the kernel reads the 128 bytes of `attributes`; the descriptor is closed at once.
    let descriptor = unsafe { libc::syscall(libc::SYS_bpf, 13, attributes.as_ptr(), 128) } as i32;
    if descriptor < 0 {
        let why = std::io::Error::last_os_error();
        assert_eq!(why.kind(), ErrorKind::NotFound, "{why}");
        return false;
    }
    // SAFETY: it was made for this call.
    unsafe { libc::close(descriptor) };
    true
}

#[test]
fn no_program_is_left_of_a_server_that_is_killed() {
    if !is_root() || !Path::new(TYPES).exists() {
        skip!("tcp-killed", "needs root and {TYPES}");
    }
    let scene = Scene::new("tcp-killed");
    let started = now();
    let mut server = scene.start(&[]);
    assert_eq!(source(&Api::new(&scene.state), started), PROGRAMS);
    let numbers = programs(server.pid());
    assert_eq!(numbers.len(), 4, "{numbers:?}");
    assert!(numbers.iter().all(|number| is_loaded(*number)), "{numbers:?}");
    server.kill();
    wait_for("the end of all programs", WAIT, || {
        numbers.iter().all(|number| !is_loaded(*number)).then_some(())
    });
}

/// A counter of TCP in a namespace: `RetransSegs` of `Tcp` in `snmp`.
fn counted(namespace: &Namespace, file: &'static str, group: &str, name: &str) -> u64 {
    let read = move || fs::read_to_string(format!("/proc/thread-self/net/{file}"));
    let text = namespace.spawn(read).join().expect("a thread").expect("counters");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(':'));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let names = names.split_whitespace().zip(values.split_whitespace());
    names.filter(|(n, _)| *n == name).find_map(|(_, value)| value.parse().ok()).expect("a counter")
}

/// What the server has of each client, over an interval.
fn by_client(api: &Api, stat: &str, interval: (i64, i64)) -> Vec<(String, f64)> {
    let data = api.data(&format!("tcp.{stat}[client]"), interval, "");
    let rows = data["rows"].as_array().cloned().unwrap_or_default();
    let row = |row: &Value| {
        let values = row["values"].as_array().into_iter().flatten().filter_map(Value::as_f64);
        (row["key"].as_str().unwrap_or_default().to_owned(), values.sum::<f64>())
    };
    rows.iter().map(row).filter(|(_, value)| *value > 0.0).collect()
}

/// Writes and reads over NFS, at the other end of the link.
fn use_share(server: std::net::SocketAddr, export: &str) -> Client {
    let mut client = Client::connect(server, 0, 0).expect("a connection");
    let root = client.mnt(export).expect("a mount");
    let how = CreateHow::Unchecked(Sattr3::default());
    let file = client.create(&root, "file", how).expect("a file").handle;
    let data = vec![7; MIB];
    for n in 0..8 {
        client.write(&file, n * MIB as u64, &data, StableHow::UNSTABLE).expect("a write");
    }
    for n in 0..8 {
        client.read(&file, n * MIB as u64, MIB as u32).expect("a read");
    }
    client
}

/// Waits until the sum over clients is the kernel's counter, within a hundredth.
fn same(api: &Api, stat: &str, started: i64, kernel: u64) -> f64 {
    wait_for(stat, WAIT, || {
        let rows = by_client(api, stat, (started, now() + 1));
        let all: f64 = rows.iter().map(|(_, value)| value).sum();
        let is = (all - kernel as f64).abs() <= (kernel as f64 / 100.0).max(0.5);
        (is && rows.iter().all(|(client, _)| client == FIRST)).then_some(all)
    })
}

#[test]
fn what_a_client_has_is_what_the_kernel_counts_behind_a_bad_link() {
    if !is_root() || !Path::new(TYPES).exists() {
        skip!("tcp-by-client", "needs root and {TYPES}");
    }
    let networks = match Networks::new() {
        Ok(networks) => networks,
        Err(why) => skip!("tcp-by-client", "{why}"),
    };
    let faults = ["--set", "back.loss=1%", "--set", "forth.reorder=4%", "--seed", "39"];
    let options = [&["--rtt", "2ms", "--rate", "200Mbit"][..], &faults].concat();
    let _bridge = Bridge::start(&networks, &options);
    let scene = Scene::new("tcp-by-client");
    let (address, namespace) = (SECOND, Some(&networks.second));
    let started = now();
    let options = Options { address, namespace, ..Options::new(&scene.dir, &scene.state) };
    let server = Server::start(&options);
    let api = Api::new(&scene.state);
    assert_eq!(source(&api, started), PROGRAMS);
    let at = std::net::SocketAddr::from(([10, 9, 0, 2], server.nfs_port()));
    let export = server.export();
    // Open until the end: what is a level has clients with connections only.
    let client = networks.first.spawn(move || use_share(at, &export)).join().expect("a client");
    let again = counted(&networks.second, "snmp", "Tcp", "RetransSegs");
    let disordered = counted(&networks.second, "netstat", "TcpExt", "TCPOFOQueue");
    assert!(again > 0 && disordered > 0, "the link has no faults: {again}, {disordered}");
    let retransmits = same(&api, "retransmits", started, again);
    let out_of_order = same(&api, "out_of_order", started, disordered);
    println!("retransmits {retransmits} of {again}, out of order {out_of_order} of {disordered}");
    let duplicates = by_client(&api, "duplicate_acks", (started, now() + 1));
    println!("duplicate acknowledgements: {duplicates:?}");
    assert!(duplicates.len() == 1 && duplicates[0].0 == FIRST, "{duplicates:?}");
    shows_everything(&api, &scene.state, started);
    drop(client);
}

/// Every statistic of the group has values, and the command line has them.
fn shows_everything(api: &Api, state: &Path, started: i64) {
    // All that was read left in segments, once. On a busy machine the kernel calls no program for
    // 1 packet of 1,000, large ones among them (docs/howto/segments.md).
    let expected = 8.0 * MIB as f64;
    let (bytes, interval) = wait_for("the bytes of all reads", WAIT, || {
        let interval = (started, now() + 1);
        let bytes = api.count("tcp.segment_bytes", interval) as f64;
        (bytes >= 0.95 * expected).then_some((bytes, interval))
    });
    assert!(bytes < 1.1 * expected, "{bytes} bytes of {expected}");
    let rows = |stat: &str| {
        let data = api.data(stat, interval, "");
        let list = data["rows"].as_array().or(data["buckets"].as_array());
        let list = list.unwrap_or_else(|| panic!("{data}"));
        let name = |row: &Value| row["key"].as_str().unwrap_or_default().to_owned();
        // Of some it is a part of one: connections that have data to send for less than a second.
        let values = |row: &Value| row["values"].as_array().cloned().unwrap_or_default();
        let is_any = |row: &&Value| values(row).iter().any(|n| n.as_f64() > Some(0.0));
        list.iter().filter(is_any).map(name).collect::<Vec<_>>()
    };
    for stat in ["segments", "segment_bytes", "segment_mean", "segment_mean_by_bytes"] {
        let contexts = rows(&format!("tcp.{stat}[context]"));
        assert!(contexts.iter().any(|c| c == "sender" || c == "ack"), "{stat}: {contexts:?}");
        assert!(!rows(&format!("tcp.{stat}[device]")).is_empty(), "{stat}");
    }
    assert!(rows("tcp.segments[size]").len() > 1, "a heat map");
    assert!(!rows("tcp.limited[why]").is_empty());
    assert_eq!(rows("tcp.rtt[client]"), [FIRST]);
    assert!(rows("tcp.connections[client]").contains(&FIRST.to_owned()));
    assert!(sum(&api.data("tcp.diagnosis_interval", interval, "")["total"]) >= 1_000_000_000);
    let (code, all) = api.get("/api/v1/analytics/statistics");
    assert_eq!(code, 200);
    let is = |id: &str| all.as_array().is_some_and(|all| all.iter().any(|s| s["id"] == id));
    assert!(is("tcp.segments") && is("tcp.limited"), "{all}");
    let mut command = Command::new(binary());
    command.args(["analytics", "show", "tcp.segments[context]", "--from", &started.to_string()]);
    command.arg("--state").arg(state).env("XDG_RUNTIME_DIR", state);
    let text = String::from_utf8_lossy(&process::succeed(&mut command)).into_owned();
    assert!(text.contains("ack") || text.contains("sender"), "{text}");
}
