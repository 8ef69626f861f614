//! What a run records of the server's machine, against the counts of the kernel, and
//! limits that are planted in front of the device and of a client's port. Each has a control run.

use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use e2e::lab::{self, Agent, Target};
use e2e::link::{self, Link};
use e2e::loops::{LoopDisk, tool};
use e2e::netns::Namespace;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::{ganesha, has, is_root, patience, process, skip};
use serde_json::Value;

/// One at a time: each of them measures the machine.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A job with one long step.
const LONG: [&str; 4] = ["warmup_ms=200", "window_ms=250", "step_max_ms=2500", "schedule=[[2,4]]"];

fn run(job: &str, url: &str, sets: &[&str], prepare: impl FnOnce(&mut Command)) -> Value {
    let out = Scratch::new("planted");
    let mut command = lab::command();
    command
        .args(["run", job, "--target", url, "--quiet", "--retries", "0", "--out"])
        .arg(out.path());
    command.args(sets.iter().flat_map(|set| ["--set", set]));
    prepare(&mut command);
    let output = process::run_with_stdin(&mut command, patience(120));
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{url}: {}: {printed}", output.status);
    println!("{}", String::from_utf8_lossy(&output.stdout));
    let text = std::fs::read_to_string(out.path().join("result.json")).expect("a result");
    serde_json::from_str(&text).expect("JSON")
}

fn two_clients(command: &mut Command) {
    command.args(["--clients", "2"]);
}

/// A counter that is read all the time, for its value at any moment.
pub(super) struct Watched {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<(f64, f64)>>>,
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs_f64()
}

impl Watched {
    pub(super) fn new(read: impl Fn() -> f64 + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let until = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut seen = Vec::new();
            while !until.load(Ordering::Relaxed) {
                let before = now();
                let value = read();
                seen.push(((before + now()) / 2.0, value));
                // A rate of reading, not a wait for anything.
                std::thread::sleep(Duration::from_millis(5));
            }
            seen
        });
        Self { stop, thread: Some(thread) }
    }

    /// Stops reading.
    pub(super) fn end(mut self) -> Readings {
        self.stop.store(true, Ordering::Relaxed);
        Readings(self.thread.take().expect("once").join().expect("a reader"))
    }

    /// What it rose by between two moments.
    fn between(self, from: f64, to: f64) -> f64 {
        self.end().between(from, to)
    }
}

/// Values of a counter, each with its time.
pub(super) struct Readings(Vec<(f64, f64)>);

impl Readings {
    /// What it rose by between two moments.
    pub(super) fn between(&self, from: f64, to: f64) -> f64 {
        let all = &self.0;
        let at = |time: f64| {
            let after = all.partition_point(|s| s.0 < time).clamp(1, all.len() - 1);
            let ((t0, v0), (t1, v1)) = (all[after - 1], all[after]);
            v0 + (v1 - v0) * ((time - t0) / (t1 - t0)).clamp(0.0, 1.0)
        };
        at(to) - at(from)
    }
}

/// A control group of version 1 for one purpose. Dropping it removes it once it is empty.
pub(super) struct Control(PathBuf);

impl Control {
    pub(super) fn new(kind: &str) -> Result<Self, String> {
        let dir = format!("/sys/fs/cgroup/{kind}/plimsoll-observed-{}", std::process::id());
        std::fs::create_dir(&dir).map_err(|e| format!("{dir}: {e}"))?;
        Ok(Self(dir.into()))
    }

    /// Its directory.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn set(&self, file: &str, value: &str) {
        std::fs::write(self.0.join(file), value).unwrap_or_else(|e| panic!("{file}: {e}"));
    }

    pub(super) fn take(&self, pid: u32) {
        self.set("cgroup.procs", &pid.to_string());
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        for pid in std::fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default().lines()
        {
            let root = self.0.parent().map(|root| root.join("cgroup.procs"));
            let _gone = root.map(|root| std::fs::write(root, pid));
        }
        let _gone = std::fs::remove_dir(&self.0);
    }
}

pub(super) fn number(path: &Path) -> f64 {
    std::fs::read_to_string(path).ok().and_then(|t| t.trim().parse().ok()).unwrap_or_default()
}

/// Bytes that an interface of a process's namespace received and sent.
fn interface(pid: u32, name: &'static str) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/net/dev")).unwrap_or_default();
    let line = text.lines().find_map(|l| l.trim().strip_prefix(&format!("{name}:")));
    let n: Vec<f64> =
        line.unwrap_or_default().split_whitespace().filter_map(|w| w.parse().ok()).collect();
    n.first().unwrap_or(&0.0) + n.get(8).unwrap_or(&0.0)
}

/// The time that a step's record is of, and the record.
fn observed(result: &Value) -> (f64, f64, &Value) {
    let observed = &result["steps"][0]["observe"][0];
    let started = observed["started"].as_f64().expect("a time");
    (started, started + observed["seconds"].as_f64().expect("seconds"), observed)
}

#[test]
fn cpu_and_interfaces_are_what_the_kernel_counts() {
    let _alone = alone();
    if !is_root() {
        skip!("planted-observed-cpu", "needs root");
    }
    // By its control group, and, with another process in it, by its processes.
    for by in ["control-group", "processes"] {
        let group = match Control::new("cpuacct") {
            Ok(group) => group,
            Err(why) => skip!("planted-observed-cpu", "{why}"),
        };
        let dir = Scratch::below(Path::new("/dev/shm"), "observed");
        let target = Target::start(dir.path(), "127.0.0.1", None);
        group.take(target.pid());
        let mut idle = Command::new("sleep").arg("1000").spawn().expect("a process");
        if by == "processes" {
            group.take(idle.id());
        }
        let usage = group.0.join("cpuacct.usage");
        let cpu = Watched::new(move || number(&usage));
        let pid = target.pid();
        let bytes = Watched::new(move || interface(pid, "lo"));
        let result = run("iops-4k", &target.url, &LONG, two_clients);
        let (from, to, observed) = observed(&result);
        let (cpu, bytes) = (cpu.between(from, to) / 1e9, bytes.between(from, to));
        let _gone = idle.kill();
        let _reaped = idle.wait();
        assert_eq!(observed["cpu_by"], by);
        let own = observed["cpu"].as_f64().expect("CPU");
        let points = (own - cpu) / (to - from) * 100.0;
        println!("{by}: {own:.3} s, the group {cpu:.3} s, {points:+.2} points");
        assert!(points.abs() <= 3.0, "{points} points");
        let lo = observed["interfaces"]
            .as_array()
            .and_then(|all| all.iter().find(|i| i["name"] == "lo"));
        let lo = lo.expect("an interface");
        let own = lo["rx"].as_f64().unwrap_or(0.0) + lo["tx"].as_f64().unwrap_or(0.0);
        println!("lo: {own} of {bytes}");
        assert!((own / bytes - 1.0).abs() <= 0.01, "{own} of {bytes}");
    }
}

/// Makes the files of two clients with a server that then ends: pages that a server has mapped stay
/// in memory. Another one has none of them.
fn cold_server(disk: &LoopDisk, group: &Control) -> Target {
    let sets = ["file_size=200m", "block=64k", "warmup_ms=50", "window_ms=50", "step_max_ms=300"];
    let sets = [&sets[..], &["schedule=[[2,1]]", "check_one_in=1000"]].concat();
    let target = Target::start(disk.path(), "127.0.0.1", None);
    let _files = run("iops-4k", &target.url, &sets, two_clients);
    drop(target);
    disk.drop_cache();
    let target = Target::start(disk.path(), "127.0.0.1", None);
    group.take(target.pid());
    target
}

/// Steps that take all of their time: a cap grants slices of a megabyte, and counts what the device
/// is going to do, so that what they differ by must be little of the whole.
const WHOLE: [&str; 4] =
    ["warmup_ms=0", "window_ms=250", "step_max_ms=6500", "steady.range_percent=0"];

/// Random reads, which come from the device as long as few pages are in memory: of files that are
/// several times as large as what a capped device reads meanwhile.
fn random_reads(target: &Target) -> Value {
    let sets = ["file_size=200m", "block=64k", "schedule=[[2,1],[2,4],[2,16]]"];
    let sets = [&sets[..], &["check_one_in=1000"]].concat();
    run("iops-4k", &target.url, &[&sets[..], &WHOLE].concat(), two_clients)
}

#[test]
fn a_capped_device_that_is_read_cold() {
    const CAP: u64 = 10_000_000;
    let _alone = alone();
    if !is_root() || !has("losetup") || !has("mkfs.ext4") {
        skip!("planted-observed-device", "needs root, losetup and mkfs.ext4");
    }
    let disk = match LoopDisk::new() {
        Ok(disk) => disk,
        Err(why) => skip!("planted-observed-device", "{why}"),
    };
    let group = match Control::new("blkio") {
        Ok(group) => group,
        Err(why) => skip!("planted-observed-device", "{why}"),
    };
    let target = cold_server(&disk, &group);
    group.set("blkio.throttle.read_bps_device", &format!("{} {CAP}", disk.number()));
    let stat = group.0.join("blkio.throttle.io_service_bytes");
    let number = disk.number();
    let read = Watched::new(move || {
        let text = std::fs::read_to_string(&stat).unwrap_or_default();
        let line = text.lines().find_map(|l| l.strip_prefix(&format!("{number} Read ")));
        line.and_then(|n| n.parse().ok()).unwrap_or(0.0)
    });
    let planted = random_reads(&target);
    let last = planted["steps"].as_array().and_then(|steps| steps.last()).expect("steps");
    let observed = &last["observe"][0];
    let from = observed["started"].as_f64().expect("a time");
    let counted = read.between(from, from + observed["seconds"].as_f64().expect("seconds"));
    let own = observed["disk_read"].as_f64().expect("bytes");
    println!("{own} bytes, the group {counted}: {:+.2} %", (own / counted - 1.0) * 100.0);
    assert!((own / counted - 1.0).abs() <= 0.03, "{own} of {counted}");
    let why = planted["limit"]["why"].to_string();
    assert_eq!(planted["limit"]["limiter"], "disk", "{why}");
    assert!(
        why.contains(&disk.name()) && why.contains("control group /plimsoll-observed-"),
        "{why}"
    );
    assert_eq!(observed["devices"][0]["name"], disk.name(), "{observed:#}");
    assert!(observed["devices"].as_array().is_some_and(|all| all.len() > 1), "the disk below it");

    group.set("blkio.throttle.read_bps_device", &format!("{} 0", disk.number()));
    drop(target);
    let control = random_reads(&cold_server(&disk, &group));
    let why = control["limit"]["why"].to_string();
    assert!(!why.contains("control group"), "{why}");
}

/// Runs a tool in a namespace.
fn within(namespace: &Namespace, program: &str, args: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program);
    namespace.enter(command.args(args));
    tool(&mut command).map(drop)
}

/// Connects two namespaces: name and address of each end.
fn cable(ends: [(&Namespace, &str, &str); 2]) -> Result<(), String> {
    let [one, other] = ends.map(|(namespace, ..)| namespace.pid().to_string());
    let mut add = Command::new("ip");
    add.args(["link", "add", ends[0].1, "netns", &one, "type", "veth"]);
    tool(add.args(["peer", "name", ends[1].1, "netns", &other]))?;
    for (namespace, name, address) in ends {
        within(namespace, "ip", &["addr", "add", address, "dev", name])?;
        within(namespace, "ip", &["link", "set", name, "up"])?;
    }
    Ok(())
}

/// A server and two clients, each in a namespace with a port of its own to the server's.
struct Ports {
    server: Namespace,
    clients: [Namespace; 2],
}

impl Ports {
    fn new() -> Result<Self, String> {
        let end = || Namespace::with("ip link set lo up").map_err(|e| format!("no namespace: {e}"));
        let ports = Self { server: end()?, clients: [end()?, end()?] };
        for (n, client) in ports.clients.iter().enumerate() {
            let (theirs, own) = (format!("port{n}"), format!("eth{n}"));
            let address = |host: u32| format!("10.0.{}.{host}/24", 10 + n);
            cable([(&ports.server, &theirs, &address(1)), (client, &own, &address(2))])?;
            // The server has one address, on its loopback device, that both clients reach.
            let via = format!("10.0.{}.1", 10 + n);
            within(client, "ip", &["route", "add", link::SERVER, "via", &via])?;
        }
        let address = format!("{}/32", link::SERVER);
        within(&ports.server, "ip", &["addr", "add", &address, "dev", "lo"])?;
        Ok(ports)
    }

    /// Limits what the server sends over the port of client `n`.
    fn limit(&self, n: usize, megabits: u32) -> Result<(), String> {
        let mut tc = Command::new("tc");
        tc.args(["qdisc", "replace", "dev", &format!("port{n}"), "root", "tbf"]);
        tc.args(["rate", &format!("{megabits}mbit"), "burst", "65536", "latency", "20ms"]);
        self.server.enter(&mut tc);
        tool(&mut tc).map(drop)
    }
}

#[test]
fn half_the_rate_on_one_clients_port() {
    let _alone = alone();
    if !is_root() {
        skip!("planted-observed-port", "needs root");
    }
    let over = |rates: [u32; 2]| -> Result<Value, String> {
        let ports = Ports::new()?;
        ports.limit(0, rates[0])?;
        ports.limit(1, rates[1])?;
        let dir = Scratch::below(Path::new("/dev/shm"), "ports");
        let target = Target::start(dir.path(), link::SERVER, Some(&ports.server));
        // The controller is where it reaches both: with the server. Agents listen on their ports.
        let agents: Vec<Agent> = ports
            .clients
            .iter()
            .enumerate()
            .map(|(n, client)| {
                Agent::at(&format!("10.0.{}.2:0", 10 + n), |command| client.enter(command))
            })
            .collect();
        Ok(run("dram-read-stream", &target.url, &LONG, |command| {
            Agent::used_by(command, &agents);
            ports.server.enter(command);
        }))
    };
    let planted = match over([200, 100]) {
        Ok(result) => result,
        Err(why) => skip!("planted-observed-port", "{why}"),
    };
    let uneven = &planted["steps"][0]["evenness"]["uneven"];
    let marks = planted["limit"]["marks"].to_string();
    assert_eq!(uneven.as_array().map(Vec::len), Some(1), "{uneven:#}");
    assert_eq!(uneven[0]["client"], 1, "{uneven:#}");
    assert!(marks.contains("client 1 from 10.0.11.2 over eth1"), "{marks}");
    let control = over([200, 200]).expect("once more");
    let uneven = &control["steps"][0]["evenness"]["uneven"];
    assert_eq!(uneven.as_array().map(Vec::len), Some(0), "{uneven:#}");
}

/// Clients that reach a server over a router.
struct Routed {
    server: Namespace,
    router: Namespace,
    clients: Namespace,
}

impl Routed {
    fn new() -> Result<Self, String> {
        let end = || Namespace::with("ip link set lo up").map_err(|e| format!("no namespace: {e}"));
        let routed = Self { server: end()?, router: end()?, clients: end()? };
        let Self { server, router, clients } = &routed;
        cable([(router, "inner", "10.0.20.1/24"), (clients, "eth0", "10.0.20.2/24")])?;
        cable([(router, "outer", "10.0.21.2/24"), (server, "eth0", "10.0.21.1/24")])?;
        within(router, "sh", &["-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"])?;
        within(clients, "ip", &["route", "add", "default", "via", "10.0.20.1"])?;
        within(server, "ip", &["route", "add", "10.0.20.0/24", "via", "10.0.21.2"])?;
        Ok(routed)
    }

    /// Has the router put its own address in place of those of clients.
    fn translate(&self) -> Result<(), String> {
        let chain = "add chain ip nat after { type nat hook postrouting priority 100 ; }";
        for rule in ["add table ip nat", chain, "add rule ip nat after oifname outer masquerade"] {
            within(&self.router, "nft", &[rule])?;
        }
        Ok(())
    }
}

#[test]
fn clients_of_which_addresses_are_translated() {
    let _alone = alone();
    if !is_root() || !has("nft") {
        skip!("planted-observed-translated", "needs root and nft (nftables)");
    }
    let routed = match Routed::new() {
        Ok(routed) => routed,
        Err(why) => skip!("planted-observed-translated", "{why}"),
    };
    let dir = Scratch::below(Path::new("/dev/shm"), "translated");
    let target = Target::start(dir.path(), "10.0.21.1", Some(&routed.server));
    let steps = || {
        let result = run("iops-4k", &target.url, &LONG, |command| {
            two_clients(command);
            command.arg("--no-bind").arg("--server-socket").arg(target.socket());
            routed.clients.enter(command);
        });
        result["steps"].as_array().expect("steps").clone()
    };
    for step in steps() {
        let counts = &step["server_counts"];
        assert_eq!(counts["translated"], Value::Null, "{counts:#}");
        assert_eq!(step["by_client"][0]["source"], "10.0.20.2");
        assert_eq!(step["by_client"][0]["seen_as"], Value::Null);
        assert_eq!(counts["compared"]["agrees"], true, "{counts:#}");
    }
    if let Err(why) = routed.translate() {
        skip!("planted-observed-translated", "{why}");
    }
    for step in steps() {
        for client in step["by_client"].as_array().expect("clients") {
            assert_eq!(client["source"], "10.0.20.2", "{client:#}");
            assert_eq!(client["seen_as"], "10.0.21.2", "{client:#}");
        }
        let counts = &step["server_counts"];
        let sentence = counts["translated"].as_str().expect("a sentence");
        println!("{sentence}; {}", counts["compared"]);
        assert!(sentence.ends_with("clients leave from 10.0.20.2, the server sees 10.0.21.2"));
        assert_eq!(counts["compared"]["agrees"], true, "{counts:#}");
    }
}

/// A way to a server in a namespace of its own, and how it is observed.
struct Reach {
    name: &'static str,
    host: &'static str,
    /// Interface of the server's namespace that has the payload.
    interface: &'static str,
    /// Whether clients are in another namespace than the server.
    apart: bool,
    /// Whether an agent observes it.
    observer: bool,
}

const REACHES: [Reach; 4] = [
    Reach { name: "loopback", host: "127.0.0.1", interface: "lo", apart: false, observer: false },
    Reach {
        name: "another address",
        host: link::SERVER,
        interface: "lo",
        apart: false,
        observer: false,
    },
    Reach {
        name: "another namespace",
        host: link::SERVER,
        interface: "wire0",
        apart: true,
        observer: false,
    },
    Reach {
        name: "an observer",
        host: link::SERVER,
        interface: "wire0",
        apart: true,
        observer: true,
    },
];

/// A cable, a disk, and control groups that count what a server takes of CPU and disk.
struct Counted {
    link: Link,
    disk: LoopDisk,
    cpu: Control,
    io: Control,
}

impl Counted {
    fn new() -> Result<Self, String> {
        if !is_root() || !has("losetup") || !has("mkfs.ext4") {
            return Err("needs root, losetup and mkfs.ext4".to_owned());
        }
        let (link, disk) = (Link::new(None)?, LoopDisk::new()?);
        Ok(Self { link, disk, cpu: Control::new("cpuacct")?, io: Control::new("blkio")? })
    }

    /// Counts a server, and what it starts from now on.
    fn count(&self, server: u32) {
        self.cpu.take(server);
        self.io.take(server);
    }

    /// Holds what runs record of the server `pid` over each way against the kernel's counts.
    fn holds(&self, name: &str, pid: u32, url: impl Fn(&str) -> String) {
        let files = ["file_size=150m", "block=32k", "check_one_in=1000", "schedule=[[2,4]]"];
        let short = ["warmup_ms=50", "window_ms=50", "step_max_ms=300"];
        let made = [&files[..], &short].concat();
        let inside = |command: &mut Command| {
            two_clients(command);
            self.link.server.enter(command);
        };
        let _files = run("iops-4k", &url("127.0.0.1"), &made, inside);
        let sets = [&files[..], &WHOLE].concat();
        for reach in &REACHES {
            self.disk.drop_cache();
            let agent = reach.observer.then(|| {
                Agent::at(&format!("{}:0", link::SERVER), |command| {
                    command.arg("--observe");
                    self.link.server.enter(command);
                })
            });
            let counters = self.watch(pid, reach.interface);
            let result = run("iops-4k", &url(reach.host), &sets, |command| {
                two_clients(command);
                match reach.apart {
                    true => self.link.clients.enter(command),
                    false => self.link.server.enter(command),
                }
                if let Some(agent) = &agent {
                    agent.observes_for(command);
                }
            });
            let seen = if reach.observer { "observer" } else { "process" };
            assert_eq!(result["server"]["seen"], seen, "{name}: {:#}", result["server"]);
            self.compare(&format!("{name}, {}", reach.name), reach.interface, &result, counters);
        }
    }

    /// The kernel's counts: CPU time in ns, bytes read, bytes of the interface.
    fn watch(&self, pid: u32, interface_name: &'static str) -> [Watched; 3] {
        let usage = self.cpu.0.join("cpuacct.usage");
        let stat = self.io.0.join("blkio.throttle.io_service_bytes");
        let device = self.disk.number();
        let read = move || {
            let text = std::fs::read_to_string(&stat).unwrap_or_default();
            let line = text.lines().find_map(|l| l.strip_prefix(&format!("{device} Read ")));
            line.and_then(|n| n.parse().ok()).unwrap_or(0.0)
        };
        [
            Watched::new(move || number(&usage)),
            Watched::new(read),
            Watched::new(move || interface(pid, interface_name)),
        ]
    }

    fn compare(&self, what: &str, interface: &str, result: &Value, counters: [Watched; 3]) {
        let (from, to, observed) = observed(result);
        let [cpu, read, bytes] = counters.map(|counter| counter.between(from, to));
        let figure = |name: &str| observed[name].as_f64().unwrap_or_else(|| panic!("no {name}"));
        let points = (figure("cpu") - cpu / 1e9) / (to - from) * 100.0;
        let own_read = figure("disk_read");
        let all = observed["interfaces"].as_array().expect("interfaces");
        let carried = all.iter().find(|i| i["name"] == interface);
        let carried = carried.unwrap_or_else(|| panic!("{what}: no {interface}: {observed:#}"));
        let own_bytes =
            carried["rx"].as_f64().unwrap_or(0.0) + carried["tx"].as_f64().unwrap_or(0.0);
        let percent = |own: f64, counted: f64| (own / counted - 1.0) * 100.0;
        println!(
            "{what}: {:.3} s of CPU, {points:+.2} points, {} processes by {}; {:.1} MB read, \
             {:+.2} %; {:.1} MB over {interface}, {:+.3} %",
            figure("cpu"),
            observed["processes"],
            observed["cpu_by"],
            read / 1e6,
            percent(own_read, read),
            bytes / 1e6,
            percent(own_bytes, bytes),
        );
        // What is in flight at the borders must be little of it.
        assert!(read >= 20e6, "{what}: {read} bytes read");
        assert!(points.abs() <= 3.0, "{what}: {points} points");
        assert!(percent(own_read, read).abs() <= 3.0, "{what}: {own_read} of {read}");
        assert!(percent(own_bytes, bytes).abs() <= 1.0, "{what}: {own_bytes} of {bytes}");
        assert_eq!(observed["devices"][0]["name"], self.disk.name(), "{what}: {observed:#}");
    }
}

/// Waits until a server listens in a namespace.
pub(super) fn listens(name: &str, namespace: &Namespace, port: u16, child: &mut Child) {
    let deadline = Instant::now() + patience(60);
    loop {
        let connect = move || TcpStream::connect(("127.0.0.1", port)).is_ok();
        if namespace.spawn(connect).join().expect("a thread") {
            return;
        }
        assert!(child.try_wait().expect("a child").is_none(), "{name} has ended");
        assert!(Instant::now() < deadline, "{name} does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn our_server_over_each_way() {
    let _alone = alone();
    let counted = match Counted::new() {
        Ok(counted) => counted,
        Err(why) => skip!("planted-observed-ours", "{why}"),
    };
    let state = Scratch::below(Path::new("/dev/shm"), "state");
    let data = counted.disk.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    let namespace = Some(&counted.link.server);
    let options = Options { address: "0.0.0.0", namespace, ..Options::new(&data, state.path()) };
    let server = Server::start(&options);
    counted.count(server.pid());
    counted.holds("plimsoll", server.pid(), |host| {
        format!("nfs3://{host}:{}{}", server.nfs_port(), server.export())
    });
}

/// A process for each client.
#[test]
fn smbd_over_each_way() {
    let _alone = alone();
    if !has("smbd") || !has("smbpasswd") {
        skip!("planted-observed-smbd", "smbd is not installed (samba)");
    }
    let counted = match Counted::new() {
        Ok(counted) => counted,
        Err(why) => skip!("planted-observed-smbd", "{why}"),
    };
    let port = 4450;
    let mut command = smbd(counted.disk.path(), port);
    counted.link.server.enter(&mut command);
    let mut child = Ended::start(&mut command);
    counted.count(child.0.id());
    listens("smbd", &counted.link.server, port, &mut child.0);
    let url = |host: &str| format!("smb://root:sailing@{host}:{port}/box");
    counted.holds("smbd", child.0.id(), url);
}

/// One process with threads.
#[test]
fn ganesha_over_each_way() {
    let _alone = alone();
    if let Some(why) = ganesha::missing() {
        skip!("planted-observed-ganesha", "{why}");
    }
    let counted = match Counted::new() {
        Ok(counted) => counted,
        Err(why) => skip!("planted-observed-ganesha", "{why}"),
    };
    let scratch = Scratch::new("ganesha-observed");
    let data = counted.disk.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    let ports = [2049, 20_048];
    let mut command = ganesha::command(scratch.path(), &data, ports);
    counted.link.server.enter(&mut command);
    let mut child = Ended::start(&mut command);
    counted.count(child.0.id());
    listens("ganesha", &counted.link.server, ports[0], &mut child.0);
    counted.holds("ganesha", child.0.id(), |host| format!("nfs4://{host}:{}/x", ports[0]));
    ganesha::end_mapper(scratch.path());
}

/// A process with a group of its own, which ends with this value: what it has started, too.
pub(super) struct Ended(pub(super) Child);

impl Ended {
    pub(super) fn start(command: &mut Command) -> Self {
        Self(command.process_group(0).spawn().unwrap_or_else(|e| panic!("{command:?}: {e}")))
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        process::signal_group(self.0.id(), libc::SIGKILL);
        let _reaped = self.0.wait();
    }
}

/// The command of smbd with its configuration, its state and the data of its share in `dir`.
pub(super) fn smbd(dir: &Path, port: u16) -> Command {
    let (state, data) = (dir.join("state"), dir.join("data"));
    std::fs::create_dir_all(state.join("ncalrpc")).expect("a folder");
    std::fs::create_dir_all(&data).expect("a folder");
    let of = |name: &str| format!("{name} = {}\n", state.display());
    let folders = ["private dir", "lock directory", "state directory", "cache directory"];
    let config = format!(
        "[global]\nserver role = standalone server\n{}{}ncalrpc dir = {}/ncalrpc\n\
         passdb backend = tdbsam:{}/passdb.tdb\nsmb ports = {port}\ndisable spoolss = yes\n\
         load printers = no\nlog file = {}/log\n[box]\npath = {}\nread only = no\n",
        folders.map(of).concat(),
        of("pid directory"),
        state.display(),
        state.display(),
        state.display(),
        data.display(),
    );
    let file = dir.join("smb.conf");
    std::fs::write(&file, config).expect("a file");
    let add = format!("printf 'sailing\\nsailing\\n' | smbpasswd -c {} -s -a root", file.display());
    tool(Command::new("sh").args(["-c", &add])).expect("a user");
    let mut command = Command::new("smbd");
    command.args(["--foreground", "--no-process-group", "--debug-stdout", "--configfile"]);
    command.arg(file).stdout(Stdio::null());
    command
}
