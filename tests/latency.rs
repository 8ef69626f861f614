//! Latency as the server counts it and as clients measure it, behind a link of 200 Mbit/s: eight
//! reads of 1 MiB at a time over every protocol, or one each over many connections, where all of a
//! reply is in flight at once; and uploads. An operation ends for the server when the client has
//! acknowledged the last bytes of its reply, so that both means are alike (docs/howto/watch.md).
//!
//! NFS over RDMA has no link that could be emulated; `serve` tests it with a device that completes
//! nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use e2e::api::{self, Api, sum};
use e2e::ftp::Ftp;
use e2e::iscsi::Access;
use e2e::link::{self, Link};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::sftp::Sftp;
use e2e::{has, is_root, lab, process, skip};
use serde_json::{Value, json};
use wire::sftp::OpenFlags;

const MEGABITS: u32 = 200;
/// Reads in flight.
const READS: u64 = 8;
const MIB: u64 = 1 << 20;
/// By how much both means may differ.
const FACTOR: f64 = 2.0;
/// How often a load is measured before its means count as different: what else the machine does
/// delays a client in one run, a server that counts too little does so in every run.
const RUNS: usize = 3;
/// How long one run may take on a busy machine.
const RUN: Duration = e2e::patience(60);
const USER: &str = "anna";
const PASSWORD: &str = "only-for-this-test";

/// A protocol as it is measured.
struct Protocol {
    name: &'static str,
    /// Group of statistics.
    group: &'static str,
    /// The operation that reads.
    read: &'static str,
    /// What the laboratory puts load on.
    url: fn(&Scene) -> String,
}

/// Those that the laboratory measures. Where it knows one request for a connection at a time, it
/// has eight connections.
const PROTOCOLS: [Protocol; 7] = [
    Protocol {
        name: "NFSv3",
        group: "nfs3",
        read: "read",
        url: |s| s.url("nfs3", 2049, "/export/nfs"),
    },
    Protocol {
        name: "NFSv4.1",
        group: "nfs4",
        read: "read",
        url: |s| s.url("nfs4", 2049, "/export/nfs"),
    },
    Protocol { name: "SMB", group: "smb", read: "read", url: |s| s.signed_in("smb", 445, "/box") },
    Protocol {
        name: "iSCSI",
        group: "iscsi",
        read: "read(16)",
        url: |s| Access::of(&s.state).url(([10, 0, 3, 1], s.port(3260)).into(), 0),
    },
    Protocol { name: "FTP", group: "ftp", read: "retr", url: |s| s.signed_in("ftp", 21, "/box") },
    Protocol {
        name: "HTTP/1.1",
        group: "http",
        read: "get",
        url: |s| s.signed_in("http", 80, "/box"),
    },
    Protocol {
        name: "WebDAV",
        group: "http",
        read: "get",
        url: |s| s.signed_in("webdav", 80, "/box"),
    },
];

/// Those that are measured with one read at a time of each connection, small enough that all of it
/// is in flight at once.
const SINGLE: [&str; 3] = ["NFSv3", "SMB", "HTTP/1.1"];
/// Connections of those, and bytes of a read.
const CONNECTIONS: u64 = 8;
const SMALL: u64 = 256 << 10;

/// What clients do.
struct Load {
    workload: &'static str,
    block: u64,
    /// Files of a client, and bytes of each.
    files: (u64, u64),
    /// Clients, each with connections of its own, and requests in flight of each.
    schedule: (u64, u64),
}

impl Load {
    /// Eight reads of 1 MiB at a time.
    fn reads(protocol: &Protocol) -> Self {
        let workload = if protocol.group == "http" { "randread" } else { "seqread" };
        Self { workload, block: MIB, files: (1, READS * MIB), schedule: (1, READS) }
    }

    /// One read at a time of each connection.
    fn single() -> Self {
        let files = (1, 4 * SMALL);
        Self { workload: "randread", block: SMALL, files, schedule: (CONNECTIONS, 1) }
    }

    /// Eight files at a time.
    fn uploads() -> Self {
        Self { workload: "seqwrite", block: MIB, files: (READS, MIB), schedule: (1, READS) }
    }

    /// Bytes in flight.
    fn bytes(&self) -> u64 {
        self.block * self.schedule.0 * self.schedule.1
    }
}

/// Those that are measured otherwise.
const MORE: [&str; 4] = ["SFTP", "HTTP/2", "NFS over RDMA", "dsync"];

/// A server at one end of the link; clients start at the other.
struct Scene {
    server: Server,
    api: Api,
    state: PathBuf,
    scratch: Scratch,
    link: Link,
}

impl Scene {
    fn new(link: Link) -> Self {
        let scratch = Scratch::below(Path::new("/dev/shm"), "latency");
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        let args = ["--lun", "disk=64M"].map(Into::into).to_vec();
        let (address, namespace) = (link::SERVER, Some(&link.server));
        let server =
            Server::start(&Options { address, namespace, args, ..Options::new(&dir, &state) });
        let api = Api::new(&state);
        let set = |service: &str, property: &str, value: Value| {
            let node = format!("/configuration/services/{service}");
            json!({"set": node, "property": property, "value": value})
        };
        let services = vec![
            set("smb", "enabled", json!(true)),
            set("http", "webdav", json!(true)),
            set("http", "plain", json!("serve")),
            set("http", "basic_over_plain", json!(true)),
        ];
        let user = json!({"create": "/configuration/users", "name": USER,
            "properties": {"password": PASSWORD, "uid": 4321, "gid": 4322}});
        let share = |name: &str| {
            json!({"create": "/shares/default", "name": name, "properties":
                {"directory": dir.join(name), "make_directory": true, "root_mode": "777"}})
        };
        // The hash that SMB needs is made of passwords that are set from then on.
        for changes in [services, vec![user, share("box"), share("nfs")]] {
            let (code, done) = api.post("/api/v1/changes", &json!({ "changes": changes }));
            assert_eq!(code, 200, "{done}");
        }
        Self { server, api, state, scratch, link }
    }

    fn port(&self, standard: u16) -> u16 {
        standard + self.server.offset
    }

    fn url(&self, scheme: &str, port: u16, path: &str) -> String {
        format!("{scheme}://{}:{}{path}", link::SERVER, self.port(port))
    }

    fn signed_in(&self, scheme: &str, port: u16, path: &str) -> String {
        let at = format!("{}:{}", link::SERVER, self.port(port));
        format!("{scheme}://{USER}:{PASSWORD}@{at}{path}")
    }

    /// Does `measure` within whole seconds of the statistics; what it returns, with the interval.
    fn within<T>(&self, measure: impl FnOnce() -> T) -> (T, (i64, i64)) {
        let from = api::now() + 1;
        self.api.wait_for_second(from - 1);
        let measured = measure();
        let to = api::now() + 1;
        self.api.wait_for_second(to);
        (measured, (from, to))
    }

    /// The mean of what clients measure, in seconds, by the laboratory.
    fn client(&self, protocol: &Protocol, load: &Load) -> f64 {
        let Load { workload, block, files: (files, file), schedule: (clients, requests) } = load;
        let name = format!("{}-{workload}-{clients}", protocol.name.replace('/', "-"));
        let out = self.scratch.path().join(name);
        if out.exists() {
            fs::remove_dir_all(&out).expect("the results of a run before");
        }
        let (job, count) = ("dram-read-stream", clients.to_string());
        let mut command = lab::command();
        command.args(["run", job, "--target", &(protocol.url)(self), "--clients", &count]);
        command.arg("--json").arg("--out").arg(&out).stdout(Stdio::null());
        for setting in [
            format!("workload={workload}"),
            format!("block={block}"),
            format!("files={files}"),
            format!("file_size={file}"),
            format!("schedule=[[{clients},{requests}]]"),
            "warmup_ms=500".to_owned(),
            "window_ms=500".to_owned(),
            "step_max_ms=3000".to_owned(),
        ] {
            command.args(["--set", &setting]);
        }
        self.link.clients.enter(&mut command);
        let output = process::run(&mut command, RUN);
        let warned = String::from_utf8_lossy(&output.stderr).into_owned();
        // 3: a step that was not steady.
        assert!(matches!(output.status.code(), Some(0 | 3)), "{}: {warned}", protocol.name);
        let result = fs::read_to_string(out.join("result.json")).expect("result.json");
        let result: Value = serde_json::from_str(&result).expect("JSON");
        let step = &result["steps"][0];
        assert_eq!(step["errors"], 0, "{}: {step:#}", protocol.name);
        step["latency"]["mean"].as_f64().expect("a mean") / 1e9
    }

    /// Operations and the sum of their latencies in seconds, as the server counted them.
    fn counted(&self, group: &str, op: &str, interval: (i64, i64)) -> (f64, f64) {
        let data = self.api.data(&format!("{group}.ops[op={op}][latency]"), interval, "");
        let buckets = data["buckets"].as_array().cloned().unwrap_or_default();
        let each = buckets.iter().map(|bucket| {
            let (low, high) = (bucket["low"].as_f64(), bucket["high"].as_f64());
            let mid = (low.unwrap_or(0.0) + high.unwrap_or(0.0)) / 2e9;
            (sum(&bucket["values"]) as f64, mid)
        });
        each.fold((0.0, 0.0), |(count, all), (n, mid)| (count + n, all + n * mid))
    }

    /// Runs a load by the laboratory, and checks both means.
    fn run(&self, name: &str, protocol: &Protocol, op: &str, load: &Load) -> Result<(), String> {
        self.measured(name, load.bytes(), (protocol.group, op), || self.client(protocol, load))
    }

    /// Checks both means of `client`, with as many bytes in flight; the last of up to `RUNS` runs.
    fn measured(
        &self,
        name: &str,
        bytes: u64,
        (group, op): (&str, &str),
        client: impl Fn() -> f64,
    ) -> Result<(), String> {
        let mut last = Ok(());
        for _ in 0..RUNS {
            let (client, interval) = self.within(&client);
            let (count, all) = self.counted(group, op, interval);
            last = self.check(name, bytes, (client, all / count));
            if last.is_ok() {
                break;
            }
        }
        last
    }

    /// Checks both means, with as many bytes in flight.
    fn check(&self, name: &str, bytes: u64, (client, server): (f64, f64)) -> Result<(), String> {
        let ratio = server / client;
        let line = format!(
            "{name}: client {:.1} ms, server {:.1} ms, ratio {ratio:.2}",
            client * 1e3,
            server * 1e3
        );
        println!("{line}");
        // Less than what the link takes for half of the bytes in flight: it was not the limit.
        let least = bytes as f64 * 8.0 / (f64::from(MEGABITS) * 1e6) / 2.0;
        let right = client >= least && (1.0 / FACTOR..FACTOR).contains(&ratio);
        if right { Ok(()) } else { Err(line) }
    }
}

/// One at a time: what else the machine does is not a part of it.
fn exclusive() -> MutexGuard<'static, ()> {
    static EXCLUSIVE: Mutex<()> = Mutex::new(());
    EXCLUSIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The most that the server puts into one reply of SFTP.
const READ: u32 = 255 << 10;

/// The mean latency of reads over connections of SFTP, with as many reads in flight of each.
fn sftp(scene: &Scene, connections: usize, depth: usize) -> f64 {
    /// As many times the bytes in flight.
    const ROUNDS: usize = 10;
    let content = vec![7; (READS * MIB) as usize];
    fs::write(scene.scratch.path().join("data/box/sftp"), content).expect("a file");
    let (from, to) = ([10, 0, 3, 2].into(), ([10, 0, 3, 1], scene.port(218)).into());
    // Nothing is read before all are signed in.
    let all = Arc::new(Barrier::new(connections));
    let reads = move || {
        let mut sftp = Sftp::connect(from, to, (USER, PASSWORD))?;
        let handle = sftp.open("/box/sftp", OpenFlags::READ)?;
        let handle = handle.map_err(|refused| io::Error::other(format!("{refused:?}")))?;
        all.wait();
        sftp.read_at_once(&handle, READ, (ROUNDS * depth, depth))
    };
    let threads: Vec<_> =
        (0..connections).map(|_| scene.link.clients.spawn(reads.clone())).collect();
    let times = threads.into_iter().flat_map(|one| one.join().expect("a thread").expect("reads"));
    mean(&times.collect::<Vec<_>>())
}

/// The mean latency of downloads over connections of FTP, one at a time of each: from the command
/// to the last reply, as the server counts it. What the laboratory measures includes the data
/// connection, which waits for a processor while other tests run.
fn ftp(scene: &Scene, connections: usize) -> f64 {
    const ROUNDS: usize = 5;
    let content = vec![7; MIB as usize];
    fs::write(scene.scratch.path().join("data/box/ftp"), content).expect("a file");
    let (from, to) = ([10, 0, 3, 2].into(), ([10, 0, 3, 1], scene.port(21)).into());
    let all = Arc::new(Barrier::new(connections));
    let downloads = move || -> io::Result<Vec<Duration>> {
        let mut ftp = Ftp::connect(from, to)?;
        assert_eq!(ftp.sign_in(USER, PASSWORD)?, 230);
        assert_eq!(ftp.say("TYPE I")?.0, 200);
        all.wait();
        let download = |_| {
            let mut data = ftp.passive()?;
            let begun = Instant::now();
            assert_eq!(ftp.say("RETR /box/ftp")?.0, 150);
            assert_eq!(io::copy(&mut data, &mut io::sink())?, MIB);
            assert_eq!(ftp.reply()?.0, 226);
            Ok(begun.elapsed())
        };
        (0..ROUNDS).map(download).collect()
    };
    let threads: Vec<_> =
        (0..connections).map(|_| scene.link.clients.spawn(downloads.clone())).collect();
    let times = threads.into_iter().flat_map(|one| one.join().expect("a thread").expect("files"));
    mean(&times.collect::<Vec<_>>())
}

/// Their mean in seconds.
fn mean(times: &[Duration]) -> f64 {
    times.iter().map(Duration::as_secs_f64).sum::<f64>() / times.len() as f64
}

/// The times that curl measures of `count` files, eight at a time over one connection of HTTP/2.
fn http2(scene: &Scene, count: u64) -> f64 {
    let content = vec![7; MIB as usize];
    for number in 1..=count {
        fs::write(scene.scratch.path().join(format!("data/box/h2-{number}")), &content)
            .expect("a file");
    }
    let mut command = Command::new("curl");
    command.args(["-sSk", "--http2", "-Z", "--parallel-max", &READS.to_string()]);
    command.args(["-u", &format!("{USER}:{PASSWORD}"), "-o", "/dev/null"]);
    command.args(["-w", "%{http_version} %{response_code} %{time_total}\\n"]);
    command.arg(scene.url("https", 443, &format!("/box/h2-[1-{count}]")));
    scene.link.clients.enter(&mut command);
    let output = process::run(&mut command, RUN);
    let (text, warned) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}{warned}");
    let times = text.lines().filter_map(|line| line.strip_prefix("2 200 ")?.parse::<f64>().ok());
    let times: Vec<f64> = times.collect();
    assert_eq!(times.len() as u64, count, "{text}{warned}");
    times.iter().sum::<f64>() / count as f64
}

#[test]
fn the_document_states_for_every_protocol_when_latency_begins_and_ends() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/howto/watch.md");
    let page = fs::read_to_string(page).expect("the document");
    let (_, table) = page.split_once("| Protocol | Begins | Ends |").expect("the table");
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let names: Vec<&str> = rows.filter_map(|row| row.split('|').nth(1)).collect();
    let names = names.join(",").replace("NFSv4.0 to 4.2", "NFSv4.1");
    for name in PROTOCOLS.map(|protocol| protocol.name).into_iter().chain(MORE) {
        assert!(names.contains(name), "no row of {name}: {names}");
    }
}

#[test]
fn the_server_counts_the_latency_that_clients_measure_behind_a_slow_link() {
    let _exclusive = exclusive();
    if !is_root() {
        skip!("latency", "needs root");
    }
    let scene = match Link::new(Some(MEGABITS)) {
        Ok(link) => Scene::new(link),
        Err(why) => skip!("latency", "{why}"),
    };
    let only = std::env::var("PLIMSOLL_LATENCY").ok();
    let runs = |name: &str| only.as_ref().is_none_or(|only| only == name);
    let mut wrong = Vec::new();
    for protocol in PROTOCOLS.iter().filter(|one| one.group != "ftp" && runs(one.name)) {
        let Protocol { name, read, .. } = protocol;
        wrong.extend(scene.run(name, protocol, read, &Load::reads(protocol)).err());
        if SINGLE.contains(name) {
            let name = format!("{name}, many connections");
            wrong.extend(scene.run(&name, protocol, read, &Load::single()).err());
        }
    }
    if runs("SFTP") {
        let deep = (READS * MIB / u64::from(READ)) as usize;
        for (name, connections, depth) in
            [("SFTP", 1, deep), ("SFTP, many connections", CONNECTIONS as usize, 1)]
        {
            let bytes = u64::from(READ) * (connections * depth) as u64;
            let client = || sftp(&scene, connections, depth);
            wrong.extend(scene.measured(name, bytes, ("sftp", "read"), client).err());
        }
    }
    if !has("curl") {
        println!("SKIP latency-http2: curl is not installed");
    } else if runs("HTTP/2") {
        let client = || http2(&scene, 4 * READS);
        wrong.extend(scene.measured("HTTP/2", READS * MIB, ("http", "get"), client).err());
    }
    if let Some(ftp) = PROTOCOLS.iter().find(|protocol| protocol.name == "FTP" && runs("FTP")) {
        let client = || self::ftp(&scene, READS as usize);
        wrong.extend(scene.measured("FTP", READS * MIB, ("ftp", "retr"), client).err());
        scene.link.limit_clients(MEGABITS).expect("a limit");
        wrong.extend(scene.run("FTP, uploads", ftp, "stor", &Load::uploads()).err());
    }
    assert!(wrong.is_empty(), "not within a factor of {FACTOR}:\n{}", wrong.join("\n"));
}
