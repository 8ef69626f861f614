//! Programs in the language of Filebench against the real server: each act over each protocol, and
//! what the client has called is what the server has counted; what the command prints and refuses.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use e2e::api::{self, Api};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::smb_share::SmbShare;
use e2e::{lab, patience, process};
use serde_json::Value;

/// How long a run may take on a busy machine.
const RUN: Duration = patience(90);

/// Each operation of the language that is a call.
const ALL: &str = "
set $n=3
define fileset name=many,size=9k,entries=90,dirwidth=7,prealloc=70
define fileset name=fixed,size=70k,entries=20,dirwidth=5,prealloc,readonly
define fileset name=kept,size=5k,entries=10,dirwidth=5,prealloc,reuse
define fileset name=dirs,entries=12,leafdirs=30,dirwidth=4,prealloc=50,size=100
define file name=one,size=3m,prealloc
define process name=p {
  thread name=all,instances=$n {
    flowop createfile name=create,filesetname=many,fd=1
    flowop writewholefile name=writeall,srcfd=1,fd=1,iosize=4k
    flowop appendfile name=append,fd=1,iosize=3000
    flowop appendfilerand name=appendrand,fd=1,iosize=8k
    flowop fsync name=flush,fd=1
    flowop statfile name=statopen,fd=1
    flowop closefile name=close1,fd=1
    flowop openfile name=open,filesetname=many,fd=2
    flowop readwholefile name=readall,fd=2,iosize=1m
    flowop fsyncset name=flushset,filesetname=many
    flowop closefile name=close2,fd=2
    flowop deletefile name=delete,filesetname=many
    flowop statfile name=stat,filesetname=many
    flowop makedir name=make,filesetname=dirs
    flowop listdir name=list,filesetname=dirs
    flowop removedir name=unmake,filesetname=dirs
  }
  thread name=blocks {
    flowop read name=rand,filename=one,random,iosize=8k,iters=3
    flowop write name=stable,filename=one,random,iosize=8k,dsync
    flowop read name=large,filename=one,iosize=2m
    flowop openfile name=ro,filesetname=fixed,fd=3
    flowop readwholefile name=readro,fd=3
    flowop closefile name=closero,fd=3
    flowop write name=unstable,filename=one,iosize=16k
    flowop finishoncount name=enough,value=1500
  }
}
";

fn run(text: &Path, target: &str, out: &Path, more: &[&str]) -> Output {
    let mut command = lab::command();
    command.arg("run").arg(text).args(["--target", target, "--quiet", "--out"]).arg(out);
    process::run(command.args(more), RUN)
}

fn result(out: &Path) -> Value {
    let text = fs::read_to_string(out.join("result.json")).expect("a result");
    serde_json::from_str(&text).expect("JSON")
}

fn written(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, text).expect("written");
    path
}

fn counts(of: &Value) -> BTreeMap<String, u64> {
    let all = of.as_object().expect("counts").iter();
    all.map(|(name, calls)| (name.clone(), calls.as_u64().expect("a count"))).collect()
}

/// What the server counted, by operation.
fn served(api: &Api, stat: &str, interval: (i64, i64)) -> BTreeMap<String, u64> {
    let data = api.data(&format!("{stat}[op]"), interval, "");
    let rows = data["rows"].as_array().into_iter().flatten();
    let row =
        |row: &Value| (row["key"].as_str().expect("a key").to_owned(), api::sum(&row["values"]));
    rows.map(row).filter(|(_, calls)| *calls > 0).collect()
}

/// Runs all operations twice, the second time with what the first has left; the server counts what
/// the clients call.
fn equal(api: &Api, scratch: &Path, target: &str, stat: &str) {
    let text = written(scratch, "all.f", ALL);
    for more in [&[][..], &["--clean", "--seed", "2"]] {
        let from = api::now() + 1;
        api.wait_for_second(from - 1);
        let out = scratch.join("out");
        let output = run(&text, target, &out, more);
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{stat}: {printed}");
        let to = api::now() + 1;
        api.wait_for_second(to);
        let result = result(&out);
        assert_eq!(result["errors"], 0, "{result:#}");
        let stopped = result["stopped"].as_str().expect("it is finished");
        assert!(stopped.starts_with("enough after "), "{stopped}");
        for act in result["acts"].as_array().expect("acts") {
            assert!(act["calls"].as_u64() > Some(0), "{stat}: {act}");
        }
        let mut calls = counts(&result["protocol_calls"]);
        assert!(calls.values().sum::<u64>() > 1500, "{calls:?}");
        for (name, more) in counts(&result["preparation_calls"]) {
            *calls.entry(name).or_default() += more;
        }
        assert_eq!(served(api, stat, (from, to)), calls, "{stat}");
    }
}

fn scene(name: &str) -> (Scratch, Server, Api) {
    let scratch = Scratch::below(Path::new("/dev/shm"), name);
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let server = Server::start(&Options::new(&dir, &state));
    let api = Api::new(&state);
    (scratch, server, api)
}

#[test]
fn calls_over_nfs_are_those_that_the_server_counts() {
    let (scratch, server, api) = scene("programs-nfs");
    let at = format!("127.0.0.1:{}{}", server.nfs_port(), server.export());
    equal(&api, scratch.path(), &format!("nfs3://{at}"), "nfs3.ops");
    equal(&api, scratch.path(), &format!("nfs4://{at}"), "nfs4.ops");
    assert_eq!(fs::read_dir(scratch.path().join("data")).expect("a share").count(), 0, "--clean");
}

#[test]
fn requests_over_smb_are_those_that_the_server_counts() {
    let smb = SmbShare::start("programs-smb", &[]);
    equal(&smb.api, smb.scratch.path(), &smb.url(""), "smb.ops");
    let share = smb.scratch.path().join("data/box");
    assert_eq!(fs::read_dir(share).expect("a share").count(), 0, "--clean");
}

#[test]
fn a_server_that_is_gone_ends_the_run_in_words() {
    let (scratch, mut server, _) = scene("programs-gone");
    let target = format!("nfs3://127.0.0.1:{}{}", server.nfs_port(), server.export());
    let text = written(scratch.path(), "all.f", &ALL.replace("value=1500", "value=1g"));
    let out = scratch.path().join("out");
    let mut command = lab::command();
    command.arg("run").arg(&text).args(["--target", &target, "--seconds", "600", "--out"]);
    let mut child = command.arg(&out).spawn().expect("it starts");
    let busy = || fs::metadata(scratch.path().join("data/plimsoll-lab.program/one"));
    let end = Instant::now() + RUN;
    while busy().map_or(0, |meta| meta.len()) < 3 << 20 {
        assert!(Instant::now() < end, "the files are made");
        std::thread::sleep(Duration::from_millis(20));
    }
    server.kill();
    let status = process::wait(&mut child, RUN).expect("it ends");
    assert_eq!(status.code(), Some(1));
}

#[test]
fn a_program_on_a_directory_leaves_a_result_in_every_form() {
    let scratch = Scratch::below(Path::new("/dev/shm"), "programs-path");
    let dir = scratch.folder("data", None);
    let mail = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/lab/tests/programs/mail.f");
    let out = scratch.path().join("out");
    let target = format!("path:{}", dir.display());
    let more = ["--seconds", "1", "--set", "$nthreads=4", "--set", "$nfiles=400", "--clean"];
    let output = run(&mail, &target, &out, &more);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{printed}");
    for part in ["4 threads", "deliver", "fdatasync", "File sets", "report: "] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    let result = result(&out);
    assert_eq!((&result["threads"], &result["kind"]), (&4.into(), &"program".into()));
    assert!(result["cpu_us_per_operation"].as_f64() > Some(0.0), "{result}");
    assert_eq!(fs::read_dir(&dir).expect("a directory").count(), 0, "--clean");
    fs::remove_file(out.join("report.html")).expect("removed");
    let mut command = lab::command();
    process::succeed(command.arg("report").arg(&out));
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("<td>deliver</td>"), "{page}");
    let text = |output: Vec<u8>| String::from_utf8(output).expect("text");
    let csv = process::succeed(lab::command().arg("report").arg(&out).args(["--figures", "csv"]));
    let csv = text(csv);
    assert!(csv.contains("acts,deliver,operation,createfile"), "{csv}");
    for file in ["result.json", "report.html"] {
        let mut command = Command::new(e2e::server::binary());
        let shown = text(process::succeed(command.arg("inspect").arg(out.join(file))));
        assert!(shown.contains("lab program, format 1"), "{file}: {shown}");
    }
}

#[test]
fn what_is_refused_is_a_usage_error_with_file_line_and_token() {
    let scratch = Scratch::below(Path::new("/dev/shm"), "programs-refused");
    let out = scratch.path().join("out");
    let bad = written(scratch.path(), "bad.f", "set $a=1\nsystem \"true\"\n");
    let good = written(scratch.path(), "good.f", ALL);
    let refused = |text: &Path, target: &str, more: &[&str], part: &str| {
        let output = run(text, target, &out, more);
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(printed.contains(part), "{part} in {printed}");
        assert!(!out.exists(), "nothing is written");
    };
    refused(&bad, "null:", &[], "bad.f:2: at 'system': ");
    refused(&good, "null:", &["--set", "$m=1"], "it sets $n");
    refused(&good, "ftp://u:p@127.0.0.1/x", &[], "use nfs3, nfs4 or smb");
    refused(&good, "null:", &["--resume"], "--resume has no effect on a program");
}

/// Runs a program on agents that listen on this machine.
fn on_agents(scratch: &Path, agents: usize, target: &str, more: &[&str]) -> Value {
    let mail = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/lab/tests/programs/mail.f");
    let allow = |command: &mut Command| {
        command.arg("--allow-path").arg(scratch);
    };
    let agents: Vec<lab::Agent> = (0..agents).map(|_| lab::Agent::start(allow)).collect();
    let out = scratch.join("out");
    let mut command = lab::command();
    command.arg("run").arg(&mail).args(["--target", target, "--quiet", "--out"]).arg(&out);
    command.args(["--set", "$nthreads=6"]).args(more);
    lab::Agent::used_by(&mut command, &agents);
    let output = process::run_with_stdin(&mut command, RUN);
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{printed}");
    result(&out)
}

#[test]
fn a_program_is_the_same_on_any_number_of_agents() {
    let scratch = Scratch::below(Path::new("/dev/shm"), "programs-agents");
    let marks = |result: &Value| result["sequence"]["marks"].as_array().expect("marks").clone();
    let one = marks(&on_agents(scratch.path(), 1, "null:", &["--seconds", "2"]));
    // 4^7 calls of each of six threads are 98,304.
    assert!(one.len() > 7, "{one:?}");
    for agents in [2, 3] {
        let several = on_agents(scratch.path(), agents, "null:", &["--seconds", "2"]);
        assert_eq!(several["agents"], agents);
        let several = marks(&several);
        let both = one.len().min(several.len());
        assert!(both > 7, "{several:?}");
        assert_eq!(one[..both], several[..both], "{agents} agents");
    }
    let other = on_agents(scratch.path(), 2, "null:", &["--seconds", "1", "--seed", "2"]);
    assert_ne!(one[4], marks(&other)[4], "another seed");
}

#[test]
fn calls_of_agents_are_those_that_the_server_counts() {
    let (scratch, server, api) = scene("programs-agents-nfs");
    let at = format!("127.0.0.1:{}{}", server.nfs_port(), server.export());
    for (target, stat) in
        [(format!("nfs3://{at}"), "nfs3.ops"), (format!("nfs4://{at}"), "nfs4.ops")]
    {
        let from = api::now() + 1;
        api.wait_for_second(from - 1);
        let more = ["--seconds", "1", "--set", "$nfiles=300", "--clean"];
        let result = on_agents(scratch.path(), 2, &target, &more);
        let to = api::now() + 1;
        api.wait_for_second(to);
        let mut calls = counts(&result["protocol_calls"]);
        for (name, more) in counts(&result["preparation_calls"]) {
            *calls.entry(name).or_default() += more;
        }
        assert_eq!(served(&api, stat, (from, to)), calls, "{stat}");
        let each = result["by_agent"].as_array().expect("agents");
        let operations: u64 = each.iter().filter_map(|a| a["operations"].as_u64()).sum();
        assert_eq!((each.len(), Some(operations)), (2, result["operations"].as_u64()));
        assert_eq!(result["errors"], 0, "{result:#}");
    }
    let dir = scratch.folder("local", None);
    let more = ["--seconds", "1", "--set", "$nfiles=300", "--clean"];
    let result = on_agents(scratch.path(), 2, &format!("path:{}", dir.display()), &more);
    assert_eq!(result["errors"], 0, "{result:#}");
    assert_eq!(fs::read_dir(dir).expect("a directory").count(), 0, "--clean");
}
