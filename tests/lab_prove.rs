//! `lab run --prove` against the real server: each change is made, its sentence has what it would
//! refute, and the verdict cites those that ran. A server gets its core back also from a laboratory
//! that was killed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use e2e::scene::Scene;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::smb_share::SmbShare;
use e2e::{lab, patience, process, skip};
use serde_json::{Value, json};

const PASSWORD: &str = "sailing again";

/// One short step. All threads of a client can be on two clients, a half each.
const SHORT: [&str; 6] = [
    "schedule=[[1,4]]",
    "file_size=1m",
    "warmup_ms=50",
    "window_ms=25",
    "step_max_ms=250",
    "steady.windows=3",
];

fn run(url: &str, prove: &str) -> Command {
    let mut command = lab::command();
    command.args(["run", "iops-4k", "--target", url, "--clients", "1", "--retries", "0", prove]);
    command.args(SHORT.iter().flat_map(|set| ["--set", set]));
    command
}

/// Cores of each thread of a process.
fn cores(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("a server").flatten();
    let of = |task: fs::DirEntry| {
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let mask = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed:"))?.trim().to_owned();
        Some(mask.chars().filter_map(|digit| digit.to_digit(16)).map(u32::count_ones).sum())
    };
    tasks.filter_map(of).collect()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience(60);
    while !holds() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn findings(result: &Value) -> &[Value] {
    result["proof"]["findings"].as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn each_change_is_made_and_the_verdict_cites_it() {
    let smb = SmbShare::start("prove", &[("signing", json!("offered"))]);
    let before = cores(smb.server.pid());
    if before[0] < 2 {
        skip!("prove", "needs two cores");
    }
    let out = smb.scratch.path().join("out");
    // The others take no server, or one that stays as it is.
    let all = ["twice-clients", "half-block", "null-target", "cipher-off", "one-core-less"];
    let long = std::env::var_os("PLIMSOLL_TEST_LONG").is_some();
    let (prove, expected) = match long {
        true => ("--prove", &all[..]),
        false => ("--prove=cipher-off,one-core-less", &all[3..]),
    };
    let mut command = run(&smb.url("?cipher=aes128-gcm"), prove);
    command.args(["--server-socket"]).arg(smb.state.join("plimsoll.sock")).arg("--out").arg(&out);
    let output = process::run(&mut command, patience(180));
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}: {printed}", output.status);
    let text = fs::read_to_string(out.join("result.json")).expect("a result");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(result["proof"]["not_run"], json!([]), "{printed}");
    let changes: Vec<&str> =
        findings(&result).iter().filter_map(|f| f["intervention"].as_str()).collect();
    assert_eq!(changes, expected, "{printed}");
    let why = result["limit"]["why"].to_string();
    for finding in findings(&result) {
        let sentence = finding["sentence"].as_str().expect("a sentence");
        println!("{sentence}");
        assert!(sentence.contains(" times the operations (") && sentence.contains("; if "));
        assert!(why.contains(sentence), "{why}");
        let ratio = finding["ratio"].as_f64().expect("a ratio");
        let interval = &finding["interval"];
        // Runs that decide nothing have no upper bound.
        let (low, high) = (interval[0].as_f64(), interval[1].as_f64());
        assert!(low <= Some(ratio) && high.is_none_or(|high| ratio <= high), "{finding}");
        for reservation in finding["reservations"].as_array().into_iter().flatten() {
            let marks = result["limit"]["marks"].to_string();
            assert!(marks.contains(reservation.as_str().expect("text")), "{marks}");
        }
    }
    // Threads come and go; each has all cores.
    assert_eq!(cores(smb.server.pid()).into_iter().min(), before.into_iter().min());
}

#[test]
fn a_killed_laboratory_gives_the_core_back() {
    let scratch = Scratch::below(std::path::Path::new("/dev/shm"), "prove-killed");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let server = Server::start(&Options::new(&dir, &state));
    let all = cores(server.pid())[0];
    if all < 2 {
        skip!("prove-killed", "needs two cores");
    }
    let url = format!("nfs3://{}{}", server.nfs(), server.export());
    let mut command = run(&url, "--prove=one-core-less");
    command.arg("--server-socket").arg(state.join("plimsoll.sock"));
    command.arg("--out").arg(scratch.path().join("out")).stderr(Stdio::piped());
    let mut lab = command.spawn().expect("it starts");
    let lines = BufReader::new(lab.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    let found = { lines }.any(|line| line.contains("intervention: one core less"));
    assert!(found, "no intervention");
    let restricted = || cores(server.pid()).into_iter().all(|cores| cores == all - 1);
    wait_until("the server has one core less", restricted);
    lab.kill().expect("it runs");
    lab.wait().expect("it has ended");
    wait_until("all threads have all cores", || {
        cores(server.pid()).into_iter().all(|cores| cores == all)
    });
    // What is served then has them as well.
    let mut again = run(&url, "--prove=null-target");
    let out = scratch.path().join("again");
    let output = process::run(again.arg("--out").arg(&out), patience(90));
    assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
    assert!(cores(server.pid()).into_iter().all(|cores| cores == all));
}

#[test]
fn what_cannot_be_changed_is_listed_with_the_reason() {
    let scratch = Scratch::below(std::path::Path::new("/dev/shm"), "prove-not");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let server = Server::start(&Options::new(&dir, &state));
    let url = format!("nfs3://{}{}", server.nfs(), server.export());
    let mut command = run(&url, "--prove=cipher-off,one-core-less");
    let output = process::run(command.arg("--out").arg(scratch.path().join("out")), patience(90));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for why in [
        "without encryption: the target has no cipher that a client can omit",
        "one core less for the server: it requires a Plimsoll server, named by --server-socket",
    ] {
        assert!(text.contains(why), "{text}");
    }
    let wrong = process::run(&mut run(&url, "--prove=cipher"), patience(30));
    let text = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(wrong.status.code() == Some(2) && text.contains("null-target, cipher-off"), "{text}");
}

#[test]
fn http_that_leads_back_to_tls_is_not_compared_with_itself() {
    let scene = Scene::new("prove-https");
    // As it is unless it is set otherwise: plain HTTP is redirected.
    let (server, api) = scene.start_for_anna(PASSWORD, &[]);
    let url = format!("https://anna@{}/box?insecure", server.at(443));
    let out = scene.scratch.path().join("out");
    let prove = || {
        let mut command = run(&url, "--prove=cipher-off");
        command.env("PLIMSOLL_LAB_PASSWORD", PASSWORD).arg("--out").arg(&out);
        let output = process::run(&mut command, patience(90));
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(matches!(output.status.code(), Some(0 | 3)), "{}: {printed}", output.status);
        let text = fs::read_to_string(out.join("result.json")).expect("a result");
        serde_json::from_str::<Value>(&text).expect("JSON")
    };
    let result = prove();
    assert_eq!(findings(&result).len(), 0, "{:#}", result["proof"]);
    let why = result["proof"]["not_run"][0].as_str().expect("a reason");
    assert!(why.starts_with("without encryption: use HTTP without TLS (308 to https://"), "{why}");
    assert!(why.ends_with("the server requires HTTPS"), "{why}");

    if std::env::var_os("PLIMSOLL_TEST_LONG").is_none() {
        return;
    }
    let plain = json!({"set": "/configuration/services/http", "property": "plain",
        "value": "serve"});
    let basic = json!({"set": "/configuration/services/http", "property": "basic_over_plain",
        "value": true});
    let (code, done) = api.post("/api/v1/changes", &json!({ "changes": [plain, basic] }));
    assert_eq!(code, 200, "{done}");
    let result = prove();
    assert_eq!(result["proof"]["not_run"], json!([]));
    assert_eq!(findings(&result).len(), 1, "{:#}", result["proof"]);
}
