//! Builds compared on scratch shares, and an archive of a run against our server: it has the data
//! that the server recorded in the interval, and no secret.

use std::fs;
use std::path::Path;

use e2e::lab::command;
use e2e::lab::command as lab_command;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server, binary};
use e2e::{patience, process};
use serde_json::Value;

/// A job of two short steps.
const SHORT: [&str; 6] = [
    "schedule=[[1,1],[2,1]]",
    "file_size=1m",
    "warmup_ms=50",
    "window_ms=50",
    "step_max_ms=500",
    "steady.windows=3",
];
/// Password of the administrator that tests' servers have.
const PASSWORD: &str = "only-for-this-test";

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn two_builds_are_served_in_turn_and_leave_nothing() {
    let scratch = Scratch::new("lab-builds");
    let (out, place) = (scratch.path().join("out"), scratch.folder("tmp", None));
    let mut command = command();
    command.args(["ab", "iops-4k", "--clients", "2", "--rounds", "1", "--quiet", "--serve"]);
    command.arg(binary()).arg("--serve").arg(binary()).arg("--out").arg(&out);
    command.args(SHORT.iter().flat_map(|set| ["--set", set])).env("TMPDIR", &place);
    command.env("XDG_RUNTIME_DIR", &place);
    let output = process::run(&mut command, patience(120));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // 3: other processes use the machine that tests run on.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}\n{said}", output.status);
    let result = read(&out.join("result.json"));
    assert_eq!(result["targets"][0], result["targets"][1]);
    assert_eq!(result["rows"][0]["pairs"].as_array().map(Vec::len), Some(1), "{said}");
    for run in ["a/000", "b/000"] {
        let run = read(&out.join("iops-4k").join(run).join("result.json"));
        assert_eq!((&run["failed"], &run["server"]["seen"]), (&Value::Null, &"api".into()));
    }
    // It is an archive, which repeats with the same builds.
    let mut check = std::process::Command::new("sha256sum");
    check.args(["--check", "--quiet", "SHA256SUMS"]).current_dir(&out);
    assert!(process::run(&mut check, patience(30)).status.success());
    let sums = fs::read_to_string(out.join("SHA256SUMS")).expect("checksums");
    for file in ["run.toml", "machines.json", "result.json", "iops-4k/b/000/result.json"] {
        assert!(sums.lines().any(|line| line.ends_with(&format!("  {file}"))), "{file}: {sums}");
    }
    let again = scratch.path().join("again");
    let repeat = |more: &[&str]| {
        let mut command = lab_command();
        command.arg("repeat").arg(&out).arg("--out").arg(&again).args(["--quiet", "--json"]);
        command.args(more).env("TMPDIR", &place).env("XDG_RUNTIME_DIR", &place);
        process::run(&mut command, patience(120))
    };
    let output = repeat(&[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}\n{said}", output.status);
    let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(printed["recorded"]["rows"][0]["job"], printed["repeats"][0]["rows"][0]["job"]);
    assert_eq!(read(&again.join("result.json"))["rows"], printed["repeats"][0]["rows"]);
    let operations = printed["operations"].as_array().expect("each side");
    assert_eq!(operations.len(), 2, "{printed}");
    assert!(operations.iter().all(|common| common["same"] == true), "{operations:?}");
    let refused = repeat(&["--target", "null:"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("this comparison is of builds"));
    fs::write(out.join("iops-4k/b/000/result.json"), "{}").expect("a change");
    let refused = repeat(&[]);
    assert!(
        String::from_utf8_lossy(&refused.stderr)
            .contains("iops-4k/b/000/result.json has other content")
    );
    let left: Vec<_> =
        fs::read_dir(&place).expect("a folder").flatten().map(|e| e.path()).collect();
    let ours = |path: &&std::path::PathBuf| path.display().to_string().contains("plimsoll-ab-");
    assert!(!left.iter().any(|path| ours(&path)), "{left:?}");
}

#[test]
fn an_archive_has_the_servers_data_and_no_secret() {
    let scratch = Scratch::new("lab-archive");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let server = Server::start(&Options::new(&dir, &state));
    let out = scratch.path().join("out");
    let url = format!("nfs3://{}{}", server.nfs(), server.export());
    let mut command = command();
    command.args(["run", "iops-4k", "--target", &url, "--clients", "2", "--quiet", "--out"]);
    command.arg(&out).args(["--retries", "0", "--server-socket"]);
    command.arg(state.join("plimsoll.sock")).env("PLIMSOLL_LAB_PASSWORD", PASSWORD);
    command.args(SHORT.iter().flat_map(|set| ["--set", set]));
    let output = process::run(&mut command, patience(60));
    assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
    let data = read(&out.join("analytics/nfs3.ops-by-op.json"));
    assert!(data["total"].is_array(), "{data}");
    let machines = read(&out.join("machines.json"));
    let hash = &machines["servers"][0]["program"]["sha256"];
    assert_eq!(*hash, machines["conductor"]["program"]["sha256"], "{machines}");
    let sums = fs::read_to_string(out.join("SHA256SUMS")).expect("checksums");
    assert!(sums.lines().count() > 8, "{sums}");
    // The token of agents is in the environment of this command, too.
    for line in sums.lines() {
        let file = line.split_once("  ").expect("a path").1;
        let text = fs::read_to_string(out.join(file)).expect("text");
        for secret in [PASSWORD, "the token of the tests' agents"] {
            assert!(!text.contains(secret), "{file}");
        }
    }
    let mut check = std::process::Command::new("sha256sum");
    check.args(["--check", "--quiet", "SHA256SUMS"]).current_dir(&out);
    let output = process::run(&mut check, patience(30));
    assert!(output.status.success(), "{output:?}");
}
