//! What a run records of the server's machine, against the counts of the kernel, and
//! limits that are planted in front of the device and of a client's port. Each has a control run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use e2e::lab::{self, Agent, Target};
use e2e::link;
use e2e::loops::{LoopDisk, tool};
use e2e::netns::Namespace;
use e2e::scratch::Scratch;
use e2e::{has, is_root, patience, process, skip};
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
struct Watched {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<(f64, f64)>>>,
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs_f64()
}

impl Watched {
    fn new(read: impl Fn() -> f64 + Send + 'static) -> Self {
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

    /// What it rose by between two moments.
    fn between(mut self, from: f64, to: f64) -> f64 {
        self.stop.store(true, Ordering::Relaxed);
        let seen = self.thread.take().expect("once").join().expect("a reader");
        let at = |time: f64| {
            let after = seen.partition_point(|s| s.0 < time).clamp(1, seen.len() - 1);
            let ((t0, v0), (t1, v1)) = (seen[after - 1], seen[after]);
            v0 + (v1 - v0) * ((time - t0) / (t1 - t0)).clamp(0.0, 1.0)
        };
        at(to) - at(from)
    }
}

/// A control group of version 1 for one purpose. Dropping it removes it once it is empty.
struct Control(PathBuf);

impl Control {
    fn new(kind: &str) -> Result<Self, String> {
        let dir = format!("/sys/fs/cgroup/{kind}/plimsoll-observed-{}", std::process::id());
        std::fs::create_dir(&dir).map_err(|e| format!("{dir}: {e}"))?;
        Ok(Self(dir.into()))
    }

    fn set(&self, file: &str, value: &str) {
        std::fs::write(self.0.join(file), value).unwrap_or_else(|e| panic!("{file}: {e}"));
    }

    fn take(&self, pid: u32) {
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

fn number(path: &Path) -> f64 {
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
    let sets = ["file_size=96m", "block=64k", "warmup_ms=50", "window_ms=50", "step_max_ms=300"];
    let sets = [&sets[..], &["schedule=[[2,1]]", "check_one_in=1000"]].concat();
    let target = Target::start(disk.path(), "127.0.0.1", None);
    let _files = run("iops-4k", &target.url, &sets, two_clients);
    drop(target);
    disk.drop_cache();
    let target = Target::start(disk.path(), "127.0.0.1", None);
    group.take(target.pid());
    target
}

/// Random reads, which come from the device as long as few pages are in memory.
fn random_reads(target: &Target) -> Value {
    let sets = ["file_size=96m", "block=64k", "warmup_ms=0", "window_ms=250", "step_max_ms=2000"];
    let sets = [&sets[..], &["schedule=[[2,1],[2,4],[2,16]]", "check_one_in=1000"]].concat();
    run("iops-4k", &target.url, &sets, two_clients)
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
    println!("{own} bytes, the group {counted}");
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

/// A server and two clients, each in a namespace with a port of its own to the server's.
struct Ports {
    server: Namespace,
    clients: [Namespace; 2],
}

impl Ports {
    fn new() -> Result<Self, String> {
        let end = || Namespace::with("ip link set lo up").map_err(|e| format!("no namespace: {e}"));
        let ports = Self { server: end()?, clients: [end()?, end()?] };
        let server = ports.server.pid().to_string();
        for (n, client) in ports.clients.iter().enumerate() {
            let (theirs, own) = (format!("port{n}"), format!("eth{n}"));
            let pid = client.pid().to_string();
            let mut ip = Command::new("ip");
            ip.args(["link", "add", &theirs, "netns", &server, "type", "veth"]);
            tool(ip.args(["peer", "name", &own, "netns", &pid]))?;
            for (namespace, name, host) in [(&ports.server, &theirs, 1), (client, &own, 2)] {
                let address = format!("10.0.{}.{host}/24", 10 + n);
                for args in
                    [["addr", "add", &address, "dev", name], ["link", "set", name, "up", ""]]
                {
                    let mut ip = Command::new("ip");
                    ip.args(args.iter().filter(|a| !a.is_empty()));
                    namespace.enter(&mut ip);
                    tool(&mut ip)?;
                }
            }
            // The server has one address, on its loopback device, that both clients reach.
            let mut route = Command::new("ip");
            let via = format!("10.0.{}.1", 10 + n);
            route.args(["route", "add", link::SERVER, "via", &via]);
            client.enter(&mut route);
            tool(&mut route)?;
        }
        let mut address = Command::new("ip");
        address.args(["addr", "add", &format!("{}/32", link::SERVER), "dev", "lo"]);
        ports.server.enter(&mut address);
        tool(&mut address)?;
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

/// Servers of others, if they are installed: a process for each client (smbd), and one with threads
/// (nfs-ganesha).
#[test]
fn servers_of_others() {
    let _alone = alone();
    if !is_root() {
        skip!("planted-observed-others", "needs root");
    }
    let smbd = |dir: &Path, port: u16| {
        let state = dir.join("state");
        std::fs::create_dir_all(state.join("ncalrpc")).expect("a folder");
        let of = |name: &str| format!("{name} = {}\n", state.display());
        let folders = ["private dir", "lock directory", "state directory", "cache directory"];
        let config = format!(
            "[global]\nserver role = standalone server\n{}{}ncalrpc dir = {}/ncalrpc\n\
             passdb backend = tdbsam:{}/passdb.tdb\nsmb ports = {port}\ninterfaces = 127.0.0.1/8\n\
             bind interfaces only = yes\ndisable spoolss = yes\nload printers = no\n\
             log file = {}/log\n[box]\npath = {}\nread only = no\n",
            folders.map(of).concat(),
            of("pid directory"),
            state.display(),
            state.display(),
            state.display(),
            dir.join("data").display(),
        );
        let file = dir.join("smb.conf");
        std::fs::write(&file, config).expect("a file");
        let add =
            format!("printf 'sailing\\nsailing\\n' | smbpasswd -c {} -s -a root", file.display());
        tool(Command::new("sh").args(["-c", &add])).expect("a user");
        let mut command = Command::new("smbd");
        command.args(["--foreground", "--no-process-group", "--debug-stdout", "--configfile"]);
        command.arg(file);
        command
    };
    let ganesha = |dir: &Path, port: u16| {
        let (data, recovery) = (dir.join("data"), dir.join("recovery"));
        std::fs::create_dir_all(&recovery).expect("a folder");
        // Debian's folder of plugins, or another one.
        let plugins =
            std::env::var("GANESHA_PLUGINS").map(|dir| format!("Plugins_Dir = \"{dir}\";"));
        let config = format!(
            "NFS_CORE_PARAM {{ NFS_Port = {port}; Protocols = 4; Enable_NLM = false; \
             Enable_RQUOTA = false; {} }}\n\
             NFSV4 {{ Graceless = true; RecoveryBackend = fs; RecoveryRoot = \"{}\"; }}\n\
             EXPORT {{ Export_Id = 1; Path = {}; Pseudo = /x; Access_Type = RW; \
             Squash = No_Root_Squash; Protocols = 4; Transports = TCP; SecType = sys; \
             FSAL {{ Name = VFS; }} }}\n",
            plugins.unwrap_or_default(),
            recovery.display(),
            data.display(),
        );
        let file = dir.join("ganesha.conf");
        std::fs::write(&file, config).expect("a file");
        let mut command = Command::new("ganesha.nfsd");
        command.args(["-F", "-N", "NIV_EVENT"]).arg("-L").arg(dir.join("log"));
        command.arg("-p").arg(dir.join("pid")).arg("-f").arg(file);
        command
    };
    let mut made = 0;
    if has("smbd") {
        made += 1;
        of_another("smbd", smbd, |port| format!("smb://root:sailing@127.0.0.1:{port}/box"));
    }
    if has("ganesha.nfsd") {
        made += 1;
        of_another("ganesha", ganesha, |port| format!("nfs4://127.0.0.1:{port}/x"));
    }
    if made == 0 {
        skip!("planted-observed-others", "neither smbd nor ganesha.nfsd");
    }
}

/// Starts a server in a control group that counts its CPU time and its I/O, on a loop device, and
/// holds what a run records of it against these.
fn of_another(name: &str, command: impl Fn(&Path, u16) -> Command, url: impl Fn(u16) -> String) {
    let disk = LoopDisk::new().unwrap_or_else(|why| panic!("{why}"));
    let (cpu, io) =
        (Control::new("cpuacct").expect("a group"), Control::new("blkio").expect("one"));
    std::fs::create_dir(disk.path().join("data")).expect("a folder");
    let port = e2e::ports::free_offset("127.0.0.1") + 2049;
    let mut child = command(disk.path(), port).spawn().unwrap_or_else(|e| panic!("{name}: {e}"));
    cpu.take(child.id());
    io.take(child.id());
    let deadline = std::time::Instant::now() + patience(60);
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(child.try_wait().expect("a child").is_none(), "{name} has ended");
        assert!(std::time::Instant::now() < deadline, "{name} does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    let (usage, stat) = (cpu.0.join("cpuacct.usage"), io.0.join("blkio.throttle.io_service_bytes"));
    let number_of = disk.number();
    let sets = ["file_size=64m", "block=64k", "warmup_ms=100", "window_ms=100", "step_max_ms=700"];
    let sets = [&sets[..], &["schedule=[[2,4]]", "check_one_in=1000"]].concat();
    let _files = run("iops-4k", &url(port), &sets, two_clients);
    disk.drop_cache();
    let cpu = Watched::new(move || number(&usage));
    let read = Watched::new(move || {
        let text = std::fs::read_to_string(&stat).unwrap_or_default();
        let line = text.lines().find_map(|l| l.strip_prefix(&format!("{number_of} Read ")));
        line.and_then(|n| n.parse().ok()).unwrap_or(0.0)
    });
    let result = run("iops-4k", &url(port), &sets, two_clients);
    let (from, to, observed) = observed(&result);
    let (cpu, read) = (cpu.between(from, to) / 1e9, read.between(from, to));
    let own = observed["cpu"].as_f64().expect("CPU");
    let points = (own - cpu) / (to - from) * 100.0;
    let own_read = observed["disk_read"].as_f64().expect("bytes");
    println!("{name}: {own:.3} s of {cpu:.3} s ({points:+.2} points), {own_read} bytes of {read}");
    println!("{name}: {} processes, by {}", observed["processes"], observed["cpu_by"]);
    let _gone = child.kill();
    let _reaped = child.wait();
    assert!(points.abs() <= 3.0, "{name}: {points} points");
    // The group counts a request when it begins, the device when it has ended.
    let in_flight = 2.0 * 4.0 * 65_536.0;
    assert!((own_read - read).abs() <= 0.03 * read + in_flight, "{name}: {own_read} of {read}");
    assert_eq!(observed["devices"][0]["name"], disk.name(), "{name}: {observed:#}");
}
