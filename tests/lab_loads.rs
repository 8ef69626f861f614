//! Programs and IOzone's tests as other results are: archives that are repeated, runs of a server
//! that are started through its API, seen as they run, and leave nothing in the share.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use e2e::api::Api;
use e2e::lab::command;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::{patience, process};
use serde_json::{Value, json};

/// How long a run may take on a busy machine.
const RUN: Duration = patience(90);

/// A program that ends after a number of acts: the same calls each time. The count is of the
/// process: it is so large that both threads have made calls by then, however they are scheduled.
const PROGRAM: &str = "
define fileset name=s,entries=40,size=3k,dirwidth=6,prealloc=80
define process name=p { thread name=t,instances=2 {
  flowop createfile name=make,filesetname=s,fd=1
  flowop writewholefile name=fill,fd=1,iosize=4k
  flowop closefile name=close,fd=1
  flowop statfile name=look,filesetname=s
  flowop deletefile name=delete,filesetname=s
  flowop finishoncount name=enough,value=8000
} }
run 60
";

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn lab(out: &Path, words: &[&str]) -> Output {
    let mut command = command();
    command.args(words).args(["--quiet", "--out"]).arg(out);
    process::run(&mut command, RUN)
}

/// Checksums of an archive, by the tool of the system.
fn is_whole(out: &Path, files: &[&str]) {
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--quiet", "SHA256SUMS"]).current_dir(out);
    assert!(process::run(&mut check, patience(30)).status.success());
    let sums = fs::read_to_string(out.join("SHA256SUMS")).expect("checksums");
    for file in files {
        assert!(sums.lines().any(|line| line.ends_with(&format!("  {file}"))), "{file}: {sums}");
    }
}

fn scene(name: &str) -> (Scratch, PathBuf, Server, Api) {
    let scratch = Scratch::below(Path::new("/dev/shm"), name);
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let mut options = Options::new(&dir, &state);
    options.args.push("--no-portmap".into());
    let server = Server::start(&options);
    let api = Api::new(&state);
    (scratch, dir, server, api)
}

#[test]
fn a_program_is_an_archive_that_is_repeated_with_the_same_calls() {
    let (scratch, dir, server, _) = scene("loads-program");
    let file = scratch.path().join("small.f");
    fs::write(&file, PROGRAM).expect("written");
    let (out, again) = (scratch.path().join("out"), scratch.path().join("again"));
    let target = format!("nfs3://127.0.0.1:{}{}", server.nfs_port(), server.export());
    let socket = scratch.path().join("state/plimsoll.sock");
    let (file, socket) = (file.display().to_string(), socket.display().to_string());
    let words =
        ["run", &file, "--target", &target, "--scratch", "mine", "--server-socket", &socket];
    let output = lab(&out, &words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(fs::read_dir(&dir).expect("a share").count(), 0, "the folder is removed");
    is_whole(&out, &["result.json", "report.html", "run.toml", "machines.json", "program.f"]);
    let result = read(&out.join("result.json"));
    assert_eq!(result["server"]["seen"], "api", "seen by its own API");
    assert!(result["observe"]["cpu"].is_number(), "{}", result["observe"]);
    assert!(result["limit"]["limiter"].is_string(), "{}", result["limit"]);
    // The text is in the archive.
    fs::remove_file(&file).expect("removed");
    let repeat = |more: &[&str]| {
        let archive = out.display().to_string();
        let mut words = vec!["repeat", archive.as_str()];
        words.extend(more);
        lab(&again, &words)
    };
    let output = repeat(&["--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(printed["operations"][0]["same"], true, "{printed}");
    assert!(printed["operations"][0]["first"].as_u64() >= Some(64), "{printed}");
    assert_eq!(read(&again.join("result.json"))["seed"], result["seed"]);
    is_whole(&again, &["program.f"]);
    let output = repeat(&["--target", "null:"]);
    assert!(text(&output.stdout).contains("operations/s"), "{}", text(&output.stdout));
    fs::write(out.join("program.f"), "run 1\n").expect("a change");
    let refused = repeat(&[]);
    let printed = text(&refused.stderr);
    assert!(printed.contains("program.f has other content"), "{printed}");
    assert_eq!(refused.status.code(), Some(1));
}

#[test]
fn tests_of_iozone_are_an_archive_that_is_repeated() {
    let scratch = Scratch::below(Path::new("/dev/shm"), "loads-iozone");
    let dir = scratch.folder("data", None);
    let (out, again) = (scratch.path().join("out"), scratch.path().join("again"));
    let target = format!("path:{}", dir.display());
    let words = ["iozone", "--target", &target, "-t", "2", "-s", "256k", "-r", "16k", "-i", "0"];
    let output = lab(&out, &words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    is_whole(&out, &["result.json", "report.html", "run.toml", "machines.json"]);
    let result = read(&out.join("result.json"));
    assert_eq!(result["server"]["seen"], "machine", "{}", result["server"]);
    for block in result["blocks"].as_array().expect("blocks") {
        assert!(block["limit"]["why"].is_array(), "{block}");
    }
    let archive = out.display().to_string();
    let output = lab(&again, &["repeat", &archive, "--times", "2"]);
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(printed.contains("initial writers, kB/s") && printed.contains("repeat 2"), "{printed}");
    is_whole(&again.join("002"), &["result.json"]);
    let refused = lab(&again, &["repeat", &archive, "--target", "iscsi://h:3260/iqn.x:y/0"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
}

fn act(api: &Api, action: &str, parameters: &Value) -> (u16, Value) {
    let path = format!("/api/v1/nodes/lab/actions/{action}");
    api.post(&path, &json!({ "parameters": parameters }))
}

/// Queues a run and waits for its end, or for its first sign of life.
fn run(api: &Api, action: &str, parameters: &Value, wanted: impl Fn(&Value) -> bool) -> Value {
    let (code, answer) = act(api, action, parameters);
    assert_eq!(code, 200, "{answer}");
    let id = answer["result"]["run"].as_str().expect("an id").to_owned();
    let end = Instant::now() + RUN;
    loop {
        let (_, runs) = api.get("/api/v1/lab/runs");
        let mut runs = runs.as_array().expect("runs").iter();
        let run = runs.find(|run| run["id"] == id.as_str()).expect("the run").clone();
        if wanted(&run) {
            return run;
        }
        assert!(Instant::now() < end, "{run}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn over(run: &Value) -> bool {
    ["failed", "aborted", "done"].iter().any(|end| run["state"] == *end)
}

#[test]
fn a_server_runs_programs_and_tests_of_iozone_for_its_users() {
    let (_scratch, dir, _server, api) = scene("loads-api");
    let parameters = json!({ "share": "data", "text": PROGRAM, "name": "small.f" });
    let ended = run(&api, "program", &parameters, over);
    assert_eq!((&ended["state"], &ended["kind"]), (&json!("done"), &json!("program")), "{ended}");
    assert!(ended["value"].as_str().is_some_and(|v| v.ends_with("operations/s")), "{ended}");
    assert!(ended["limiter"].is_string() && ended["cleaned"] == true, "{ended}");
    let id = ended["id"].as_str().expect("an id");
    let (code, figures) = api.get(&format!("/api/v1/lab/runs/{id}/figures"));
    assert_eq!(code, 200, "{figures}");
    let ids: Vec<&str> = figures["sections"]
        .as_array()
        .expect("sections")
        .iter()
        .filter_map(|section| section["id"].as_str())
        .collect();
    for section in ["program", "acts", "sets", "calls", "server", "archive"] {
        assert!(ids.contains(&section), "{section}: {ids:?}");
    }
    let parameters = json!({
        "share": "data", "protocol": "nfs4", "children": 2, "file_size": 256 << 10,
        "record": 16 << 10,
    });
    let ended = run(&api, "iozone", &parameters, over);
    assert_eq!(ended["state"], "done", "{ended}");
    assert_eq!(ended["lines"].as_array().map(Vec::len), Some(9), "{ended}");
    assert!(ended["value"].as_str().is_some_and(|v| v.contains("initial writers ")), "{ended}");
    assert_eq!(fs::read_dir(&dir).expect("a share").count(), 0, "nothing stays");
    // What is wrong with the text is a fault of that parameter, with line and token.
    let parameters = json!({ "share": "data", "text": "set $a=1\nsystem \"true\"\n" });
    let (code, answer) = act(&api, "program", &parameters);
    let printed = answer.to_string();
    assert_eq!(code, 400, "{printed}");
    assert!(printed.contains("program.f:2: at 'system': "), "{printed}");
}

#[test]
fn a_server_runs_suites_for_its_users() {
    let (_scratch, dir, _server, api) = scene("loads-suites");
    let parameters = json!({
        "share": "data", "clients": 2, "sizes": [1, 65_536], "threads": [1, 2],
        "file_size": 131_072,
    });
    let ended = run(&api, "seqread", &parameters, over);
    assert_eq!((&ended["state"], &ended["kind"]), (&json!("done"), &json!("suite")), "{ended}");
    assert_eq!(ended["value"], "2 of 2 rows measured", "{ended}");
    assert_eq!((&ended["job"], &ended["cleaned"]), (&json!("seqread"), &json!(true)), "{ended}");
    assert!(ended["why"][1].to_string().contains("Sequential reads of 64k: "), "{ended}");
    let id = ended["id"].as_str().expect("an id");
    let (code, figures) = api.get(&format!("/api/v1/lab/runs/{id}/figures"));
    assert_eq!((code, &figures["kind"]), (200, &json!("suite")), "{figures}");
    let ids = figures["sections"].as_array().expect("sections").iter().map(|of| &of["id"]);
    let ids: Vec<&Value> = ids.collect();
    assert!(["rows", "clients", "archive"].iter().all(|id| ids.contains(&&json!(id))), "{ids:?}");
    let (code, suite) = api.get(&format!("/api/v1/lab/runs/{id}/result"));
    assert_eq!((code, &suite["suite"]), (200, &json!("seqread")), "{suite}");
    assert_eq!(fs::read_dir(&dir).expect("a share").count(), 0, "nothing stays");
    let parameters = json!({ "share": "data", "rows": ["nope"] });
    let (code, answer) = act(&api, "filebench", &parameters);
    let printed = answer.to_string();
    assert_eq!(code, 400, "{printed}");
    assert!(printed.contains("the rows are stream-read-1-uncached, "), "{printed}");
}

#[test]
fn an_aborted_program_shows_its_rate_and_leaves_nothing() {
    let (_scratch, dir, _server, api) = scene("loads-abort");
    let endless = PROGRAM.replace("value=8000", "value=1g").replace("run 60", "run 600");
    assert!(endless.contains("value=1g") && endless.contains("run 600"), "{endless}");
    let parameters = json!({ "share": "data", "text": endless });
    let live = |run: &Value| {
        assert!(!over(run), "{run}");
        run["message"].as_str().is_some_and(|now| now.contains(" s of 600 s: "))
    };
    let seen = run(&api, "program", &parameters, live);
    assert_eq!(seen["state"], "running", "{seen}");
    let id = seen["id"].as_str().expect("an id");
    let (code, _) = api
        .post(&format!("/api/v1/nodes/lab/runs/{id}/actions/abort"), &json!({ "parameters": {} }));
    assert_eq!(code, 200);
    let end = Instant::now() + RUN;
    while fs::read_dir(&dir).expect("a share").count() > 0 {
        assert!(Instant::now() < end, "its folder stays");
        std::thread::sleep(Duration::from_millis(20));
    }
}
