//! A real Linux NFS client (User Mode Linux, a kernel as an ordinary process) untars and builds
//! a C project on the mount, does what users do with files, and reads back with nothing cached.
//!
//! Guest side: `uml/init.sh` (its process 1) and `uml/build.sh` (the job).

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use e2e::netns::{HOST, Namespace, TAP};
use e2e::process::{run, succeed};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::{has, is_root, skip, uml};

/// The job takes 25 s on an idle machine with two cores.
const GUEST: Duration = e2e::patience(240);
/// Memory of the guest.
const MEMORY: &str = "mem=512M";

/// Why a guest cannot run here.
fn unavailable() -> Option<String> {
    if !is_root() {
        return Some("needs root for a network namespace with a tap device".to_owned());
    }
    let tools = [uml::DEBIAN, "mount.nfs", "insmod", "unshare", "ip", "gcc", "make", "tar"];
    let missing: Vec<_> = tools.into_iter().filter(|tool| !has(tool)).collect();
    (!missing.is_empty()).then(|| format!("not installed: {}", missing.join(", ")))
}

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The shared folder: the job and the project's archive.
fn prepare(share: &Path, server: &Server, version: &str) {
    let job = fs::read_to_string(here().join("uml/build.sh")).expect("the job");
    let (port, export) = (server.nfs_port(), server.export());
    let head = format!("SERVER={HOST} PORT={port} EXPORT={export} VERSION={version}\n");
    fs::write(share.join("job"), head + &job).expect("writing the job");
    let archive = share.join("project.tar.gz");
    let project = here().join("fixtures/project");
    succeed(Command::new("tar").arg("czf").arg(archive).arg("-C").arg(project).arg("."));
}

/// Runs the guest to its end; returns its console output.
fn boot(namespace: &Namespace, share: &Path, scratch: &Path) -> String {
    let mut guest = uml::guest(OsStr::new(uml::DEBIAN), 0, TAP, share, scratch);
    guest.args([MEMORY, "con0=null,fd:1"]);
    namespace.enter(&mut guest);
    let output = run(&mut guest, GUEST);
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The output of `find` or `sha256sum` for the tree, by the script of the guest.
fn tree(dir: &Path, script: &str) -> String {
    let output = succeed(Command::new("sh").current_dir(dir).args(["-c", script]));
    String::from_utf8_lossy(&output).replace('\0', "\n")
}

#[test]
fn linux_builds_a_c_project_on_the_mount() {
    builds_on("3");
}

#[test]
fn linux_builds_a_c_project_over_nfs_4_0() {
    builds_on("4.0");
}

#[test]
fn linux_builds_a_c_project_over_nfs_4_2() {
    builds_on("4.2");
}

fn builds_on(version: &str) {
    if let Some(why) = unavailable() {
        skip!("kernel-client", "{why}");
    }
    // One guest at a time: each has a processor to itself.
    static GUESTS: Mutex<()> = Mutex::new(());
    let _turn = GUESTS.lock().unwrap_or_else(PoisonError::into_inner);
    let namespace = match Namespace::new() {
        Ok(namespace) => namespace,
        Err(why) => skip!("kernel-client", "no network namespace with a tap device: {why}"),
    };
    let scratch = Scratch::new(&format!("kernel-client-{version}"));
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let share = scratch.folder("share", None);
    let mut options = Options::new(&dir, &state);
    options.address = HOST;
    options.namespace = Some(&namespace);
    let mut server = Server::start(&options);
    prepare(&share, &server, version);
    let console = boot(&namespace, &share, scratch.path());
    let log = fs::read(share.join("log")).unwrap_or_default();
    let log = String::from_utf8_lossy(&log).into_owned();
    let status = fs::read_to_string(share.join("status")).unwrap_or_default();
    assert_eq!(
        status.trim(),
        "0",
        "guest:\n{log}\nserver:\n{}\nconsole:\n{console}",
        server.stderr_text()
    );

    let read = |name: &str| {
        let bytes = fs::read(share.join(name)).expect("what the guest saw");
        String::from_utf8_lossy(&bytes).replace('\0', "\n")
    };
    let sums = "find . -type f ! -name sparse -print0 | sort -z | xargs -0 sha256sum -z";
    assert_eq!(tree(&dir, sums), read("sums"), "content that the host sees");
    let names = r"find . ! -path . -printf '%y %m %n %p %l\0' | sort -z";
    assert_eq!(tree(&dir, names), read("names"), "names, modes and links that the host sees");
    assert!(server.stop().success(), "SIGTERM ends it cleanly");
}
