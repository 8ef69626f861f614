//! Under load every gauge of the server moves, names are resolved, and each file that the server
//! and the lab have written can be inspected.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use crate::harness::{Scratch, Server, address, arg, plimsoll, run};
use control::client::Client;
use serde_json::Value;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(270);

/// Levels and counters that this load does not move: they count faults and rare things.
const QUIET: [&str; 14] = [
    // Opens of NFSv4.
    "server.retained_files",
    // Files renamed or linked across directories.
    "server.known_handles",
    "server.refused_connections",
    "server.limits_reached",
    "server.slow_peers",
    "server.stalls",
    "server.stale_handles",
    "server.drc_replays",
    "server.bad_records",
    "server.panics",
    "server.transfers_unlogged",
    // The load is unencrypted.
    "server.tls_sessions",
    "server.tls_failures",
    // The queue is empty whenever a thread is free, which is most of the time.
    "server.pool_queue",
];

fn load(job: &str, target: &str, out: &Path, socket: &Path) -> Child {
    let settings = ["block=4k", "files=2", "file_size=1m", "warmup_ms=200", "step_max_ms=4000"];
    let schedule = "schedule=[[2,16],[2,32]]";
    let mut command =
        plimsoll(&["lab", "run", job, "--target", target, "--clients", "2", "--quiet"]);
    command.args(["--retries", "0"]).arg("--out").arg(out).arg("--server-socket").arg(socket);
    for setting in settings.iter().chain([&schedule]) {
        command.args(["--set", setting]);
    }
    command.stdout(std::process::Stdio::null()).spawn().expect("starts")
}

fn data(client: &Client, stat: &str, rest: &str) -> Value {
    let path = format!("/api/v1/analytics/data?stat={stat}&from=-60{rest}");
    let text = client.get(&path).unwrap_or_else(|e| panic!("{stat}: {e}"));
    serde_json::from_slice(&text).expect("JSON")
}

/// The gauges of the server that have not been above zero in the last minute.
fn unmoved(client: &Client) -> Vec<String> {
    let text = client.get("/api/v1/analytics/statistics").expect("a list");
    let listed: Vec<Value> = serde_json::from_slice(&text).expect("JSON");
    let ids = listed.iter().filter_map(|one| one["id"].as_str());
    ids.filter(|id| id.starts_with("server.") && !QUIET.contains(id))
        .filter(|id| {
            let total = data(client, id, "")["total"].clone();
            let values = total.as_array().expect("values").iter();
            !values.filter_map(Value::as_f64).any(|value| value > 0.0)
        })
        .map(str::to_owned)
        .collect()
}

fn files_below(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a folder").flatten() {
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() {
            files_below(&entry.path(), found);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
}

fn inspect(path: &Path) -> String {
    let out = run(&["inspect", arg(path)]);
    let why = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{}: {why}", path.display());
    String::from_utf8(out.stdout).expect("text")
}

#[test]
fn load_moves_every_gauge_and_every_file_can_be_inspected() {
    let (scratch, at) = (Scratch::new(), address());
    let out = scratch.data().with_file_name("out");
    let server = Server::start(&scratch, at, None);
    let target = server.announced["shares"]["data"]["nfs3"].as_str().expect("a URL").to_owned();
    let socket = scratch.state().join("plimsoll.sock");
    let local = Client::local(&socket);

    let mut job = load("syncwrite-4k", &target, &out, &socket);
    let until = Instant::now() + PATIENCE;
    let mut left = unmoved(&local);
    while !left.is_empty() && Instant::now() < until {
        let now = unmoved(&local);
        left.retain(|id| now.contains(id));
        // Levels are looked at once a second: on a busy machine one load may be too short.
        if !left.is_empty() && job.try_wait().expect("its status").is_some() {
            job = load("syncwrite-4k", &target, &out, &socket);
        }
        // A new second is what can change the answer.
        std::thread::sleep(Duration::from_millis(200));
    }
    let status = job.wait().expect("ended");
    assert!(matches!(status.code(), Some(0 | 3)), "{status:?}");
    assert_eq!(left, Vec::<String>::new(), "never above zero");

    let status: Value =
        serde_json::from_slice(&local.get("/api/v1/status").expect("a status")).expect("JSON");
    let budgets = status["budgets"].as_array().expect("budgets");
    assert!(budgets.len() >= 10, "{budgets:?}");
    assert!(budgets.iter().all(|b| b["limit"].as_u64().is_some_and(|limit| limit > 0)));

    let clients = data(&local, "nfs3.ops%5Bclient%5D", "");
    for row in clients["rows"].as_array().expect("rows") {
        let (key, label) =
            (row["key"].as_str().expect("key"), row["label"].as_str().expect("label"));
        assert!(label.starts_with(&format!("{key} (")), "{label} tells the machine");
    }
    let users = data(&local, "nfs3.ops%5Bop=write%5D%5Buser%5D", "");
    assert!(!users["rows"].as_array().expect("rows").is_empty());
    let files = data(&local, "nfs3.ops%5Bop=write%5D%5Bfile%5D", "");
    let rows = files["rows"].as_array().expect("rows");
    assert!(
        rows.iter().all(|r| r["label"].as_str().is_some_and(|l| l.starts_with("/export/data/")))
    );

    drop(server.end());
    let mut files = Vec::new();
    files_below(&scratch.state(), &mut files);
    files_below(&out, &mut files);
    let names: Vec<String> = files.iter().map(|p| p.display().to_string()).collect();
    for part in [
        "/second/",
        "/configuration/",
        "/secrets.json",
        "/audit.log",
        "/handles-",
        "/result.json",
        "/report.html",
    ] {
        assert!(names.iter().any(|name| name.contains(part)), "no {part} among {names:?}");
    }
    for path in &files {
        assert!(!inspect(path).is_empty(), "{}", path.display());
    }
    let result = inspect(&out.join("result.json"));
    assert!(result.contains("lab result") && result.contains("limiter"), "{result}");
}
