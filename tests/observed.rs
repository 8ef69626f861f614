//! What a run records of the server's machine: a server is found by its address, also in another
//! network namespace, or through an agent on its host; what it counted itself is what the clients
//! counted, over every protocol and in steps shorter than a second.

use std::path::Path;
use std::process::Command;

use e2e::iscsi::Access;
use e2e::lab::{self, Agent, Target};
use e2e::link::{self, Link};
use e2e::scene::Scene;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::smb_share::SmbShare;
use e2e::{is_root, patience, process, skip};
use serde_json::Value;

/// Steps of a fraction of a second.
const SHORT: [&str; 4] = ["warmup_ms=50", "window_ms=50", "step_max_ms=400", "file_size=1m"];

/// Runs a short job against `url`, without any word of where the server is.
fn run(job: &str, url: &str, more: &[&str], prepare: impl FnOnce(&mut Command)) -> (String, Value) {
    let out = Scratch::new("observed");
    let mut command = lab::command();
    command.args(["run", job, "--target", url, "--clients", "2", "--quiet", "--out"]);
    command.arg(out.path()).args(SHORT.iter().flat_map(|set| ["--set", set]));
    command.args(["--set", "schedule=[[1,2],[2,4]]", "--retries", "0"]).args(more);
    prepare(&mut command);
    let output = process::run_with_stdin(&mut command, patience(90));
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{url}: {}: {printed}", output.status);
    let text = std::fs::read_to_string(out.path().join("result.json")).expect("a result");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    (shown, serde_json::from_str(&text).expect("JSON"))
}

fn steps(result: &Value) -> &[Value] {
    result["steps"].as_array().map_or(&[], Vec::as_slice)
}

/// That each step shows the server's processes and the interface that carried its payload.
fn shows_the_server(what: &str, result: &Value, target: &Target, interface: &str) {
    assert_eq!(result["server"]["pid"], target.pid(), "{what}: {:#}", result["server"]);
    for step in steps(result) {
        let observed = &step["observe"][0];
        assert!(observed["cpu"].as_f64() > Some(0.0), "{what}: {observed:#}");
        // As root it has a helper, which is started on the first request for disks or links.
        assert!(
            (1..=2).contains(&observed["processes"].as_u64().unwrap_or(0)),
            "{what}: {observed:#}"
        );
        let all = observed["interfaces"].as_array().expect("interfaces");
        let carried = all.iter().find(|i| i["name"] == interface);
        let carried = carried.unwrap_or_else(|| panic!("{what}: no {interface}: {observed:#}"));
        let payload = carried["payload"].as_u64().unwrap_or_default();
        let sent = carried["tx"].as_u64().unwrap_or_default();
        // How much of it: `planted_observed`, a long test. The windows that count and the samples
        // have other edges, far apart where every processor is busy.
        assert!(payload > 0 && sent > 0, "{what}: {carried:#}");
        for client in step["by_client"].as_array().expect("clients") {
            assert!(client["bytes"].as_u64() > Some(0), "{what}: {client:#}");
            assert!(client["interface"].is_string(), "{what}: {client:#}");
        }
    }
}

fn observes(command: &mut Command) {
    command.arg("--observe");
}

fn memory(name: &str) -> Scratch {
    Scratch::below(Path::new("/dev/shm"), name)
}

#[test]
fn a_server_on_any_loopback_address() {
    for address in ["127.0.0.1", "127.0.0.9"] {
        let dir = memory("observed");
        let target = Target::start(dir.path(), address, None);
        let (text, result) = run("iops-4k", &target.url, &[], |_| ());
        assert_eq!(result["server"]["seen"], "process");
        shows_the_server(address, &result, &target, "lo");
        let observed = &steps(&result)[0]["observe"][0];
        // Found by the files of the run that the server has open.
        assert_eq!(observed["no_device"], "the data is in memory (tmpfs)", "{observed:#}");
        assert!(text.contains("server: ") && text.contains("in 1 process"), "{text}");
    }
}

#[test]
fn a_server_in_another_namespace_and_at_another_address_of_its_own() {
    if !is_root() {
        skip!("observed-namespace", "needs root");
    }
    let link = match Link::new(None) {
        Ok(link) => link,
        Err(why) => skip!("observed-namespace", "{why}"),
    };
    let dir = memory("observed");
    let target = Target::start(dir.path(), link::SERVER, Some(&link.server));
    // From the clients' end, from the server's own, and from an agent at neither.
    let (_, result) = run("iops-4k", &target.url, &["--no-bind"], |c| link.clients.enter(c));
    shows_the_server("another namespace", &result, &target, "wire0");
    let namespace = result["server"]["namespace"].as_str().expect("a namespace");
    assert!(namespace.starts_with("net:["), "{namespace}");
    assert_eq!(steps(&result)[0]["by_client"][0]["interface"], "wire0");
    assert_eq!(steps(&result)[0]["by_client"][0]["source"], "10.0.3.2");
    let (_, result) = run("iops-4k", &target.url, &["--no-bind"], |c| link.server.enter(c));
    // It reaches its own address over its loopback device.
    shows_the_server("another address", &result, &target, "lo");
    assert_eq!(result["server"]["namespace"], Value::Null);
}

#[test]
fn a_server_through_an_agent_that_observes() {
    let dir = memory("observed");
    let target = Target::start(dir.path(), "127.0.0.1", None);
    let agent = Agent::start(observes);
    let (_, result) = run("iops-4k", &target.url, &[], |command| agent.observes_for(command));
    assert_eq!(result["server"]["seen"], "observer");
    shows_the_server("an observer", &result, &target, "lo");
    // Clients with their own cores at the other end see no more without it.
    let mut agent = agent;
    assert!(agent.ends_within(patience(30)), "it was started for one run");
}

#[test]
fn what_is_not_seen_is_no_limiter() {
    if !is_root() {
        skip!("observed-unseen", "needs root");
    }
    // Two namespaces with one address each: which is the server's, nothing here can know.
    let (link, other) = match (Link::new(None), Link::new(None)) {
        (Ok(link), Ok(other)) => (link, other),
        (Err(why), _) | (_, Err(why)) => skip!("observed-unseen", "{why}"),
    };
    let dir = memory("observed");
    let target = Target::start(dir.path(), link::SERVER, Some(&link.server));
    let port = target.url.split(':').nth(2).and_then(|rest| rest.split('/').next());
    let port: u16 = port.and_then(|port| port.parse().ok()).expect("a port");
    let listener = other.server.spawn(move || std::net::TcpListener::bind((link::SERVER, port)));
    let _listener = listener.join().expect("a thread").expect("a listener");
    let schedule = ["--no-bind", "--set", "schedule=[[1,1],[2,1],[2,2]]"];
    let (text, result) = run("iops-4k", &target.url, &schedule, |c| link.clients.enter(c));
    assert_eq!(result["server"]["seen"], "unseen");
    let why = result["server"]["unseen"].as_str().expect("a reason");
    assert!(why.contains("several network namespaces"), "{why}");
    let limiter = result["limit"]["limiter"].as_str().expect("a limiter");
    assert!(!["latency", "server-cpu", "disk", "hot-core"].contains(&limiter), "{text}");
    assert!(text.contains("plimsoll lab agent --observe"), "{text}");
}

#[test]
fn an_agent_that_observes_makes_no_load() {
    let agent = Agent::start(observes);
    let mut command = lab::command();
    command.args(["run", "iops-4k", "--target", "null:", "--quiet", "--retries", "0"]);
    let agents = [agent];
    Agent::used_by(&mut command, &agents);
    let out = Scratch::new("observed");
    let output = process::run_with_stdin(command.arg("--out").arg(out.path()), patience(60));
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("only observes"), "{printed}");
    // And the other way round.
    let agent = Agent::start(|_| ());
    let mut command = lab::command();
    command.args(["run", "iops-4k", "--target", "null:", "--quiet", "--retries", "0"]);
    agent.observes_for(&mut command);
    let output = process::run_with_stdin(command.arg("--out").arg(out.path()), patience(60));
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("start it with --observe"), "{printed}");
}

/// That the server's own counts are in each step, and are those of the clients. What all of them
/// are together: on a busy machine a step can be so short that all of it was in flight at its ends.
fn counted(what: &str, job: &str, url: &str, socket: &Path) -> u64 {
    let socket = socket.to_str().expect("a path");
    let (_, result) = run(job, url, &["--server-socket", socket], |_| ());
    assert_eq!(result["server"]["seen"], "api", "{what}");
    assert_eq!(steps(&result).len(), 2, "{what}");
    let mut all = 0;
    for step in steps(&result) {
        let counts = &step["server_counts"];
        assert_eq!(counts["complete"], true, "{what}: {counts:#}");
        let compared = &counts["compared"];
        assert_eq!(compared["agrees"], true, "{what}: {counts:#}");
        let number = |name: &str| compared[name].as_u64().expect("a number");
        let short = number("clients") <= number("in_flight");
        assert!(number("server") > 0 || short, "{what}: {counts:#}");
        println!("{what} {job}: {} {} {}", compared["of"], compared["server"], compared["clients"]);
        all += number("server");
    }
    all
}

/// The same of several jobs, of which the server has counted something.
fn all_counted(what: &str, jobs: &[&str], url: &str, socket: &Path) {
    let all: u64 = jobs.iter().map(|job| counted(what, job, url, socket)).sum();
    assert!(all > 0, "{what}: the server has counted nothing");
}

#[test]
fn counts_of_nfs() {
    let dir = memory("counted");
    let target = Target::start(dir.path(), "127.0.0.1", None);
    let jobs = ["iops-4k", "dram-read-stream", "write-stream", "syncwrite-4k", "create"];
    all_counted("nfs3", &jobs, &target.url, &target.socket());
    let url = target.url.replacen("nfs3:", "nfs4:", 1);
    all_counted("nfs4", &["iops-4k", "write-stream", "syncwrite-4k"], &url, &target.socket());
}

#[test]
fn counts_of_smb() {
    let smb = SmbShare::start("counted-smb", &[]);
    let socket = smb.state.join("plimsoll.sock");
    all_counted("smb", &["iops-4k", "write-stream", "syncwrite-4k"], &smb.url(""), &socket);
}

#[test]
fn counts_of_iscsi() {
    let scene = Scene::new("counted-iscsi");
    let server = scene.start(&["--lun", "disk=16M"]);
    let url = Access::of(&scene.state).url(server.at(3260), 0);
    let socket = scene.state.join("plimsoll.sock");
    all_counted("iscsi", &["iops-4k", "write-stream", "syncwrite-4k"], &url, &socket);
}

#[test]
fn counts_of_services_that_transfer_files() {
    let scene = Scene::new("counted-files");
    let (server, _api) = scene.start_for_anna("sailing again", &[]);
    let socket = scene.state.join("plimsoll.sock");
    // Without TLS, HTTP is redirected.
    let services = [
        ("ftp", 21, ""),
        ("ftps", 21, "?insecure"),
        ("sftp", 218, "?insecure"),
        ("https", 443, "?insecure"),
        ("webdavs", 443, "?insecure"),
    ];
    for (scheme, port, options) in services {
        let url = format!("{scheme}://anna:sailing%20again@{}/box{options}", server.at(port));
        all_counted(scheme, &["dram-read-stream", "write-stream"], &url, &socket);
    }
}

#[test]
fn a_comparison_of_protocols_across_namespaces() {
    if !is_root() {
        skip!("observed-namespace", "needs root");
    }
    let link = match Link::new(None) {
        Ok(link) => link,
        Err(why) => skip!("observed-namespace", "{why}"),
    };
    let (dir, state) = (memory("compared"), memory("state"));
    let namespace = Some(&link.server);
    let options =
        Options { address: link::SERVER, namespace, ..Options::new(dir.path(), state.path()) };
    let server = Server::start(&options);
    let out = Scratch::new("compared");
    let mut command = lab::command();
    command.args(["run", "secure-protocols", "--quiet", "--out"]).arg(out.path());
    command.args(["--set", "rounds=1", "--set", "files=2", "--set", "file_size=4m"]);
    let share = server.export().replace("/export", "");
    for (scheme, port) in [("ftps", 21), ("https", 443)] {
        let (address, port) = (link::SERVER, server.at(port).port());
        let url = format!("{scheme}://admin:only-for-this-test@{address}:{port}{share}?insecure");
        command.args(["--target", &url]);
    }
    link.clients.enter(&mut command);
    let output = process::run(&mut command, patience(90));
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}: {printed}", output.status);
    let text = std::fs::read_to_string(out.path().join("result.json")).expect("a result");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    let lines = result["lines"].as_array().expect("lines");
    assert_eq!(lines.len(), 2, "{printed}");
    for line in lines {
        assert_eq!(line["failed"], Value::Null, "{line:#}");
        assert_eq!(line["server"]["seen"], "process", "{line:#}");
        assert_eq!(line["server"]["pid"], server.pid(), "{line:#}");
        let namespace = line["server"]["namespace"].as_str().expect("a namespace");
        assert!(namespace.starts_with("net:["), "{namespace}");
        for sample in line["samples"].as_array().expect("samples") {
            assert!(sample["server_cpu_s"].as_f64() > Some(0.0), "{sample:#}");
        }
    }
}
