//! What a head refuses at its start, and which file systems `plimsoll doctor cluster` finds fit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use e2e::loops::tool;
use e2e::scratch::Scratch;
use e2e::server::binary;
use e2e::{is_root, patience, process, skip};
use serde_json::Value;
use sim::forget::available;
use sim::through::Through;

/// Runs a command; its exit code, standard output and standard error.
fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let output = process::run(command, patience(60));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// The exit code and the report of `doctor cluster`.
pub fn compare(a: &Path, b: &Path) -> (Option<i32>, Value) {
    let mut command = Command::new(binary());
    let (code, output, errors) =
        run(command.args(["doctor", "cluster"]).arg(a).arg(b).arg("--json"));
    let report = serde_json::from_str(&output);
    (code, report.unwrap_or_else(|_| panic!("no report: {errors}")))
}

/// Bind mounts, which go with this value.
struct Binds(Vec<PathBuf>);

impl Drop for Binds {
    fn drop(&mut self) {
        for path in &self.0 {
            let _gone = tool(Command::new("umount").arg("-l").arg(path));
        }
    }
}

#[test]
fn doctor_finds_two_mounts_of_one_file_system_fit() {
    if !is_root() {
        skip!("heads-doctor", "bind mounts need root");
    }
    let scratch = Scratch::new("heads-doctor");
    let data = scratch.folder("data", None);
    let mut binds = Binds(Vec::new());
    for name in ["a", "b"] {
        let at = scratch.folder(name, None);
        if let Err(why) = tool(Command::new("mount").arg("--bind").arg(&data).arg(&at)) {
            skip!("heads-doctor", "{why}");
        }
        binds.0.push(at);
    }
    let (code, report) = compare(&binds.0[0], &binds.0[1]);
    assert_eq!((code, &report["fit"]), (Some(0), &Value::Bool(true)), "{report:#}");
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(9));
    assert_eq!(fs::read_dir(&data).expect("a directory").count(), 0, "something is left");
    let mut text = Command::new(binary());
    let (_, output, _) = run(text.args(["doctor", "cluster"]).args(&binds.0));
    assert!(output.contains("Two heads may serve resources"), "{output}");
}

#[test]
fn a_file_system_that_does_not_pass_locks_is_refused() {
    if let Err(why) = available() {
        skip!("heads-fuse", "{why}");
    }
    if !is_root() {
        skip!("heads-fuse", "mounts need root");
    }
    let scratch = Scratch::new("heads-fuse");
    let data = scratch.folder("data", None);
    let [a, b] = ["a", "b"].map(|name| {
        let at = scratch.folder(name, None);
        Through::mount(&data, &at, "host:/data").expect("a mount")
    });
    let (code, report) = compare(a.path(), b.path());
    assert_eq!((code, &report["fit"]), (Some(1), &Value::Bool(false)), "{report:#}");
    let findings = report["findings"].as_array().expect("a list");
    for id in ["locks", "file locks"] {
        let locks = findings.iter().find(|one| one["id"] == id).expect("the finding");
        assert_eq!(locks["fit"], false);
        assert_eq!(locks["found"], "a lock at one mount is not seen at the other");
    }
    let text = config("http://127.0.0.1:1", a.path());
    let refused = refusal(&scratch, &text);
    assert!(refused.contains("resource accounts cannot be served"), "{refused}");
    assert!(refused.contains("plimsoll doctor cluster"), "{refused}");
}

fn config(member: &str, place: &Path) -> String {
    let at = place.display();
    format!(
        "name = \"left\"\ncluster = \"lab\"\netcd.members = [\"{member}\"]\n\
         [[resource]]\nname = \"accounts\"\ndirectory = \"{at}\"\nstate = \"{at}/.state\"\n\
         address = \"192.0.2.1/24\"\nlink = \"lo\"\npreferred = \"left\"\n"
    )
}

/// Why a head with this configuration does not start.
fn refusal(scratch: &Scratch, text: &str) -> String {
    let path = scratch.path().join("head.toml");
    let run_directory = scratch.path().join("run");
    fs::write(&path, format!("run = \"{}\"\n{text}", run_directory.display())).expect("written");
    let (code, _, errors) = run(Command::new(binary()).arg("head").arg("--config").arg(path));
    assert_eq!(code, Some(1), "{errors}");
    assert!(!run_directory.exists(), "it is refused before anything is made");
    errors
}

#[test]
fn certificates_of_etcd_are_needed_for_https_and_must_be_some() {
    let scratch = Scratch::new("heads-https");
    let place = scratch.folder("data", None);
    let text = config("https://127.0.0.1:2379", &place);
    let refused = refusal(&scratch, &text);
    assert!(refused.contains("etcd.ca is missing"), "{refused}");

    let ca = scratch.path().join("ca.pem");
    let with =
        text.replace("[[resource]]", &format!("etcd.ca = \"{}\"\n[[resource]]", ca.display()));
    fs::write(&ca, "no certificate\n").expect("written");
    let refused = refusal(&scratch, &with);
    assert!(refused.contains("has no certificate"), "{refused}");
}

#[test]
fn directories_that_no_other_head_has_are_refused() {
    let scratch = Scratch::new("heads-directories");
    let missing = scratch.path().join("missing");
    let refused = refusal(&scratch, &config("http://127.0.0.1:1", &missing));
    assert!(refused.contains("missing: No such file or directory"), "{refused}");
    if Path::new("/dev/shm").is_dir() {
        let memory = Scratch::below(Path::new("/dev/shm"), "heads-directories");
        let refused = refusal(&scratch, &config("http://127.0.0.1:1", memory.path()));
        assert!(refused.contains("is on tmpfs, which no other machine has"), "{refused}");
    }
}
