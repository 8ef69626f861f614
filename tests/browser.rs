//! The browser interface and the lab's report pages in a real browser, against the real binary
//! with load on it, and with a large configuration. The checks themselves are in
//! `ui/tests/browser`; here is what they need.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use e2e::api::Api;
use e2e::browser::{PASSWORD, missing, ui};
use e2e::nfs4::{Client, Failure};
use e2e::process::run;
use e2e::scene::Scene;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::tcp::{HERE, address, connect_from};
use e2e::{lab, nfs3, skip};
use serde_json::{Value, json};
use wire::nfs3::{CreateHow, Sattr3, StableHow};
use wire::nfs4::Nfsstat4;

/// How long the browser may take over everything; it shares two cores with the load.
const BROWSER: Duration = e2e::patience(240);
/// What the client calls itself that the browser expires.
const CLIENT: &str = "held for the browser";
/// Between a pair of operations of the load and the next.
const PAUSE: Duration = Duration::from_millis(5);
/// The same of one of several clients.
const LONG_PAUSE: Duration = Duration::from_millis(50);
/// Steps of a second at most: the graphs need clients, not a limit.
const SHORT: [&str; 5] = [
    "warmup_ms=200",
    "window_ms=200",
    "step_max_ms=1000",
    "file_size=1m",
    "schedule=[[2,1],[4,1]]",
];

/// `plimsoll lab WHAT` with four clients, its pages below `out`.
fn drive(what: &[&str], target: &str, state: &Path, out: &Path) -> Command {
    let mut command = lab::command();
    command.args(what).args(["--target", target, "--clients", "4", "--quiet", "--out"]).arg(out);
    command.arg("--server-socket").arg(state.join("plimsoll.sock"));
    command.args(SHORT.iter().flat_map(|setting| ["--set", setting]));
    command
}

/// Load that lasts until the value is dropped: some hundred reads and writes a second, which leave
/// the processors to the browser.
struct Load {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Load {
    /// From an address of this machine, with a pause after each pair of operations.
    fn start((from, pause): (IpAddr, Duration), server: SocketAddr, export: String) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                // NFS is disabled for a while, which ends the connection.
                let _cut_off = read_and_write((from, server), pause, &export, &end);
                std::thread::sleep(pause);
            }
        });
        Self { over, thread: Some(thread) }
    }
}

fn read_and_write(
    (from, server): (IpAddr, SocketAddr),
    pause: Duration,
    export: &str,
    end: &AtomicBool,
) -> nfs3::Outcome<()> {
    let mut client = nfs3::Client::over(connect_from(from, server)?, 0, 0)?;
    let share = client.mnt(export)?;
    let name = format!("load-{from}");
    let file = client.create(&share, &name, CreateHow::Unchecked(Sattr3::default()))?.handle;
    while !end.load(Ordering::Relaxed) {
        client.write(&file, 0, &[7; 4096], StableHow::FILE_SYNC)?;
        client.read(&file, 0, 4096)?;
        std::thread::sleep(pause);
    }
    Ok(())
}

impl Drop for Load {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

/// A client of NFSv4 that holds a file open and locked.
fn client_with_a_lock(server: &Server) -> Client {
    let address = (Ipv4Addr::LOCALHOST, server.nfs_port()).into();
    let mut client = Client::connect(address, (0, 0), CLIENT, 1).expect("a session");
    client.reclaim_complete().expect("RECLAIM_COMPLETE");
    let root = client.walk(&server.export()).expect("the share");
    let file = client.open(&root, "held", "owner", true).expect("OPEN");
    client.lock(&file, "owner", (0, 10), false).expect("LOCK");
    client
}

/// Runs a suite of `ui/tests/browser`. If it fails, the panic message has all its output.
fn suite(name: &str, environment: &[(&str, &str)]) {
    let mut command = Command::new("node");
    command.arg(format!("tests/browser/{name}.mjs")).current_dir(ui());
    command.envs(environment.iter().copied());
    let output = run(&mut command, BROWSER);
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}\n{said}\n{errors}", output.status);
    // A suite that finds nothing to do must not pass.
    assert!(said.contains("pass ") && !said.contains("SKIP browser tests"), "{name}:\n{said}");
}

#[test]
fn the_interface_and_the_reports_in_a_browser() {
    if let Some(what) = missing() {
        skip!("browser", "{what}");
    }
    let scratch = Scratch::new("browser");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let another = scratch.folder("another", None).display().to_string();
    let mut server = Server::start(&Options::new(&dir, &state));
    let target = format!("nfs3://127.0.0.1:{}{}", server.nfs_port(), server.export());

    let out = scratch.path().join("out");
    let limits = out.join("limits");
    succeed_or_degraded(&mut drive(&["limits", "--rows", "iops-4k"], &target, &state, &limits));
    let network = out.join("network");
    let mut profile = lab::command();
    profile.args(["net", "stream", "--set", "duration=1s", "--out"]).arg(&network);
    succeed_or_degraded(&mut profile);
    let results = ["limits/summary.json", "limits/nfs3/iops-4k/result.json", "network/result.json"];
    let results = results.map(|name| out.join(name).display().to_string()).join(",");
    let mut client = client_with_a_lock(&server);
    let load = Load::start((HERE, PAUSE), server.nfs(), server.export());
    let url = server.announced["admin"].as_str().expect("where the interface is").to_owned();
    suite(
        "run",
        &[
            ("BASE_URL", &url),
            ("PLIMSOLL_USER", "admin"),
            ("PLIMSOLL_PASSWORD", PASSWORD),
            ("EXPECT_ACTIVITY", &HERE.to_string()),
            ("EXPECT_CLIENT", CLIENT),
            ("SHARE_DIRECTORY", &another),
            ("RESULTS", &results),
        ],
    );
    drop(load);
    // Expired there; and NFS was disabled there for a while, which cuts connections.
    let session = client.reclaim_complete().expect_err("it was expired there");
    let gone = [Failure::Status(Nfsstat4::BADSESSION)];
    assert!(gone.contains(&session) || matches!(session, Failure::Broken(_)), "{session:?}");
    let pages = format!(
        "{},{}",
        limits.join("index.html").display(),
        limits.join("nfs3/iops-4k/report.html").display()
    );
    suite("report", &[("REPORTS", &pages), ("ANALYTICS", &url)]);
    assert!(server.stop().success(), "SIGTERM ends it cleanly");
}

/// Short steps on a busy machine are rarely steady: 3 is as good as 0 here.
fn succeed_or_degraded(command: &mut Command) {
    let output = run(command, BROWSER);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}\n{said}", output.status);
}

/// Shares of the large configuration in addition to the directory that is served.
const SHARES: usize = 199;
const USERS: usize = 1_000;
const LUNS: usize = 500;
/// Addresses with load: more clients than the Status page lists.
const CLIENTS: [u8; 6] = [31, 32, 33, 34, 35, 36];
/// Changes of one commit: its body stays below the limit of the API.
const COMMIT: usize = 100;

/// Commits `changes` in parts.
fn commit(api: &Api, changes: &[Value]) {
    for part in changes.chunks(COMMIT) {
        let (code, answer) = api.post("/api/v1/changes", &json!({ "changes": part }));
        assert_eq!(code, 200, "{answer}");
    }
}

/// 200 shares in three projects, 1,000 users, and 500 LUNs of one project.
fn large_configuration(scene: &Scene, api: &Api) {
    let projects = ["default", "engineering", "finance"];
    let made = projects[1..].iter().map(|name| json!({"create": "/shares", "name": name}));
    commit(api, &made.collect::<Vec<_>>());
    let shares = (0..SHARES).map(|at| {
        let directory = scene.dir.join(format!("share-{at:03}"));
        json!({"create": format!("/shares/{}", projects[at % projects.len()]),
            "name": format!("share-{at:03}"),
            "properties": {"directory": directory, "make_directory": true}})
    });
    commit(api, &shares.collect::<Vec<_>>());
    let users = (0..USERS).map(|at| {
        json!({"create": "/configuration/users", "name": format!("user-{at:04}"),
            "properties": {"full_name": format!("Number {at} of the staff"),
                "uid": 10_000 + at, "gid": 10_000}})
    });
    commit(api, &users.collect::<Vec<_>>());
    let luns = (0..LUNS).map(|at| {
        json!({"create": "/shares/default/luns", "name": format!("lun-{at:03}"),
            "properties": {"volsize": "64M"}})
    });
    commit(api, &luns.collect::<Vec<_>>());
}

/// A short run on the share: its page has figures of all kinds.
fn run_of_the_lab(api: &Api) {
    let parameters = json!({"share": "data", "clients": 2, "file_size": 1 << 20,
        "schedule": ["1x1", "2x1"], "step": 1});
    let path = "/api/v1/nodes/lab/jobs/iops-4k/actions/run";
    let (code, answer) = api.post(path, &json!({ "parameters": parameters }));
    assert_eq!(code, 200, "{answer}");
    let end = Instant::now() + BROWSER;
    loop {
        let (_, runs) = api.get("/api/v1/lab/runs");
        if runs[0]["state"] == "done" {
            return;
        }
        assert!(Instant::now() < end && runs[0]["state"] != "failed", "{runs}");
        std::thread::sleep(PAUSE);
    }
}

/// Each page at both widths. `PLIMSOLL_MEASURES` adds processor time, which depends on the machine.
#[test]
fn many_shares_users_and_luns_in_a_browser() {
    if let Some(what) = missing() {
        skip!("browser", "{what}");
    }
    let scene = Scene::new("browser-large");
    let mut server = scene.start(&[]);
    let api = Api::new(&scene.state);
    large_configuration(&scene, &api);
    run_of_the_lab(&api);
    let _client = client_with_a_lock(&server);
    let load = |from| Load::start((address(from), LONG_PAUSE), server.nfs(), server.export());
    let loads = CLIENTS.map(load);
    let url = server.announced["admin"].as_str().expect("where the interface is").to_owned();
    let mut environment = vec![
        ("BASE_URL", &*url),
        ("PLIMSOLL_USER", "admin"),
        ("PLIMSOLL_PASSWORD", PASSWORD),
        ("EXPECT_ACTIVITY", "1"),
    ];
    if e2e::measures() {
        environment.push(("MEASURES", "1"));
    }
    suite("large", &environment);
    drop(loads);
    assert!(server.stop().success(), "SIGTERM ends it cleanly");
}
