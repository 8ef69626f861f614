//! `plimsoll lab iozone`: its blocks, recomputed from `result.json` by a script that shares no code
//! with it, on a directory and over each protocol.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::smb_share::SmbShare;
use e2e::{lab, patience, process};
use serde_json::Value;

/// How long a run may take on a busy machine.
const RUN: Duration = patience(90);

fn iozone(target: &str, out: &Path, options: &[&str]) -> Output {
    let mut command = lab::command();
    command.args(["iozone", "--target", target, "--quiet", "--out"]).arg(out).args(options);
    process::run(&mut command, RUN)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs it, and has the script check it; the result.
fn checked(scratch: &Path, target: &str, options: &[&str], blocks: usize) -> Value {
    let output = iozone(target, &scratch.join("out"), options);
    check(scratch, target, &output, blocks)
}

/// Has the script check a run; the result.
fn check(scratch: &Path, target: &str, output: &Output, blocks: usize) -> Value {
    let out = scratch.join("out");
    assert_eq!(output.status.code(), Some(0), "{target}: {}", text(&output.stderr));
    let printed = scratch.join("printed");
    fs::write(&printed, &output.stdout).expect("written");
    let result = out.join("result.json");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/iozone_check.py");
    let mut command = Command::new("python3");
    let check = process::run(command.arg(script).arg(&result).arg(&printed), RUN);
    assert!(check.status.success(), "{target}: {}", text(&check.stderr));
    assert_eq!(text(&check.stdout).trim(), blocks.to_string(), "{}", text(&output.stdout));
    let json = fs::read_to_string(result).expect("a result");
    serde_json::from_str(&json).expect("JSON")
}

fn files(dir: &Path) -> usize {
    fs::read_dir(dir).expect("a directory").count()
}

#[test]
fn every_block_adds_up_on_a_directory() {
    let scratch = Scratch::below(Path::new("/dev/shm"), "iozone-path");
    let dir = scratch.folder("data", None);
    let target = format!("path:{}", dir.display());
    // Without the stonewall each file is written to its end: the mixed test reads no hole.
    let all = ["-t", "3", "-s", "2m", "-r", "64k", "-e", "-c", "-x"];
    let result = checked(scratch.path(), &target, &all, 13);
    assert_eq!((&result["kind"], &result["stonewall"]), (&"iozone".into(), &false.into()));
    assert_eq!(result["blocks"][9]["same_as"], "initial writers");
    assert_eq!(files(&dir), 0, "files are removed");
    let wall = ["-t", "3", "-s", "1m", "-r", "16k", "-i", "0", "-i", "1"];
    let result = checked(scratch.path(), &target, &wall, 4);
    assert_eq!(result["stonewall"], true);
    let more = ["-t", "4", "-s", "1m", "-r", "4k", "-i", "0", "-i", "1", "-+n", "-x", "-w", "-o"];
    let result = checked(scratch.path(), &target, &more, 2);
    assert_eq!(result["blocks"][0]["min_xfer_kb"], 1024.0, "without the stonewall: all of it");
    assert_eq!(files(&dir.join("plimsoll-lab.program/iozone")), 1, "-w retains the files");
    // What was written is read, and the files that it left are used again.
    checked(scratch.path(), &target, &["-t", "4", "-s", "1m", "-r", "16k", "-i", "2"], 2);
    let mut command = lab::command();
    process::succeed(command.arg("report").arg(scratch.path().join("out")));
    let page = fs::read_to_string(scratch.path().join("out/report.html")).expect("a page");
    assert!(page.contains("<td>random readers</td>"), "{page}");
}

#[test]
fn every_block_adds_up_over_each_protocol() {
    let scratch = Scratch::below(Path::new("/dev/shm"), "iozone-nfs");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let server = Server::start(&Options::new(&dir, &state));
    let at = format!("127.0.0.1:{}{}", server.nfs_port(), server.export());
    let options = ["-t", "3", "-s", "512k", "-r", "32k", "-e", "-x"];
    checked(scratch.path(), &format!("nfs3://{at}"), &options, 13);
    checked(scratch.path(), &format!("nfs4://{at}"), &options, 13);
    assert_eq!(files(&dir), 0, "files are removed");
    let smb = SmbShare::start("iozone-smb", &[]);
    checked(scratch.path(), &smb.url(""), &options, 13);
}

#[test]
fn what_was_measured_stays_when_the_server_is_lost() {
    let scratch = Scratch::below(Path::new("/dev/shm"), "iozone-lost");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let mut server = Server::start(&Options::new(&dir, &state));
    let target = format!("nfs3://127.0.0.1:{}{}", server.nfs_port(), server.export());
    let out = scratch.path().join("out");
    let mut command = lab::command();
    // After the first block there are eight of two times 4,096 calls each: time to end the server.
    command.args(["iozone", "--target", &target, "-t", "2", "-s", "16m", "-r", "4k", "-x"]);
    command.arg("--out").arg(&out).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("a process");
    let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let mut lines = lines.map_while(Result::ok);
    let first = lines.find(|line| line.contains("initial writers: "));
    assert!(first.is_some(), "no block");
    server.kill();
    let printed: Vec<String> = lines.collect();
    let status = process::wait(&mut child, RUN).expect("it ends");
    assert_eq!(status.code(), Some(1), "{printed:?}");
    let json = fs::read_to_string(out.join("result.json")).expect("a result");
    let result: Value = serde_json::from_str(&json).expect("JSON");
    let blocks = result["blocks"].as_array().expect("blocks");
    assert_eq!(blocks[0]["title"], "initial writers");
    assert_eq!(blocks[0]["min_xfer_kb"], 16384.0);
    assert!(blocks.len() < 9, "{printed:?}");
    let failed = result["failed"].as_str().unwrap_or_default();
    assert!(failed.contains(": the target is lost: "), "{failed}");
    let why = |what: &Value| what.as_str().is_some_and(|what| what.contains("were not removed"));
    assert!(result["degraded"].as_array().is_some_and(|all| all.iter().any(why)), "{result}");
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("failed: "), "the page states it");
}

/// Runs it with children on agents that listen on this machine.
fn on_agents(scratch: &Path, target: &str, options: &[&str]) -> Output {
    let allow = |command: &mut Command| {
        command.arg("--allow-path").arg(scratch);
    };
    let agents: Vec<lab::Agent> = (0..2).map(|_| lab::Agent::start(allow)).collect();
    let mut command = lab::command();
    command.args(["iozone", "--target", target, "--quiet", "--out"]).arg(scratch.join("out"));
    lab::Agent::used_by(command.args(options), &agents);
    process::run_with_stdin(&mut command, RUN)
}

#[test]
fn every_block_adds_up_on_agents() {
    let scratch = Scratch::below(Path::new("/dev/shm"), "iozone-agents");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let server = Server::start(&Options::new(&dir, &state));
    let at = format!("127.0.0.1:{}{}", server.nfs_port(), server.export());
    let local = scratch.folder("local", None);
    let wall = ["-t", "3", "-s", "256k", "-r", "16k", "-i", "0", "-i", "1"];
    for target in [format!("nfs4://{at}"), format!("path:{}", local.display())] {
        let output = on_agents(scratch.path(), &target, &wall);
        check(scratch.path(), &target, &output, 4);
    }
    let target = format!("nfs3://{at}");
    let output = on_agents(scratch.path(), &target, &["-t", "3", "-s", "128k", "-r", "16k", "-x"]);
    check(scratch.path(), &target, &output, 13);
    assert_eq!((files(&dir), files(&local)), (0, 0), "files are removed");
    let few = on_agents(scratch.path(), &target, &["-t", "1"]);
    assert!(text(&few.stderr).contains("use -t 2 or more"), "{}", text(&few.stderr));
    assert_eq!(few.status.code(), Some(2));
}

#[test]
fn what_iozone_has_and_a_server_has_not_is_refused_in_words() {
    let scratch = Scratch::below(Path::new("/dev/shm"), "iozone-refused");
    for (options, part) in [
        (&["-a"][..], "-a has no throughput mode"),
        (&["-R"], "use result.csv"),
        (&["-b", "x.xls"], "use result.csv"),
        (&["-m"], "-m has no effect"),
        (&["-H", "4"], "use more children"),
        (&["-B"], "no protocol"),
        (&["-+m"], "-+m starts children"),
        (&["-i", "4"], "no throughput form"),
        (&["-s", "3k", "-r", "2k"], "multiple of its records"),
    ] {
        let output = iozone("null:", &scratch.path().join("out"), options);
        let printed = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {printed}");
        assert!(printed.contains(part), "{options:?}: {printed}");
    }
    let output = iozone("https://u:p@h/x", &scratch.path().join("out"), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("use nfs3, nfs4 or smb"));
}
