//! `plimsoll dsync` to and from shares of the real server, through OpenSSH's client: what a user
//! may there, what is counted of it, and what is refused.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use e2e::api::{Api, now, wait_for};
use e2e::process::{DEADLINE, run, signal, succeed, wait};
use e2e::scene::Scene;
use e2e::server::{Server, binary};
use e2e::ssh_for_users;
use e2e::tree::{assert_same, code, output_text, plant};
use serde_json::{Value, json};

/// A password that is never used: anna has a key.
const PASSWORD: &str = "never-typed-in-here";
/// Bytes of a file that takes a while where the rate is limited.
const LARGE: usize = 6 << 20;

/// A server with a share `box`, and anna's key.
struct Setup {
    scene: Scene,
    server: Server,
    api: Api,
    started: i64,
}

impl Setup {
    /// `None` if something is missing here; the reason is printed.
    fn new(name: &'static str) -> Option<Self> {
        if !ssh_for_users(name) {
            return None;
        }
        let (started, scene) = (now(), Scene::new(name));
        let key = scene.scratch.path().join("key");
        succeed(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key));
        let public = fs::read_to_string(key.with_extension("pub")).expect("a key");
        let keys = json!({"set": "/configuration/users/anna",
            "property": "ssh_keys", "value": [public.trim()]});
        let (server, api) = scene.start_for_anna(PASSWORD, &[keys]);
        Some(Self { scene, server, api, started })
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.scene.scratch.folder(name, None)
    }

    fn there(&self, path: &str) -> PathBuf {
        let port = 218 + self.server.offset;
        PathBuf::from(format!("dsync://anna@127.0.0.1:{port}/{path}"))
    }

    /// The share's directory.
    fn inside(&self, path: &str) -> PathBuf {
        self.scene.dir.join("box").join(path)
    }

    fn command(&self, from: &Path, to: &Path, options: &[&str]) -> Command {
        let scratch = self.scene.scratch.path();
        let rsh = format!(
            "ssh -F none -q -o BatchMode=yes -o StrictHostKeyChecking=no -o IdentitiesOnly=yes \
             -o UserKnownHostsFile={}/known -i {}/key",
            scratch.display(),
            scratch.display()
        );
        let mut command = Command::new(binary());
        command.arg("dsync").arg(from).arg(to).args(["--rsh", &rsh]).args(options);
        command
    }

    fn go(&self, from: &Path, to: &Path, options: &[&str]) -> Output {
        run(&mut self.command(from, to, options), DEADLINE)
    }

    /// That a run is done.
    fn done(&self, from: &Path, to: &Path, options: &[&str]) -> String {
        let done = self.go(from, to, options);
        assert_eq!(code(&done), 0, "{}", output_text(&done));
        output_text(&done)
    }

    /// That a run ends with this exit code, and why.
    fn refused(&self, (from, to): (&Path, &Path), wanted: i32, why: &str) {
        let output = self.go(from, to, &[]);
        assert_eq!(code(&output), wanted, "{}", output_text(&output));
        assert!(output_text(&output).contains(why), "{}", output_text(&output));
    }

    fn set(&self, at: &str, name: &str, value: Value) {
        let change = json!({"changes": [{"set": at, "property": name, "value": value}]});
        let (status, done) = self.api.post("/api/v1/changes", &change);
        assert_eq!(status, 200, "{done}");
    }
}

#[test]
fn a_tree_goes_to_a_share_and_comes_back() {
    let Some(place) = Setup::new("dsync-share") else { return };
    let (from, back) = (place.folder("from"), place.scene.scratch.path().join("back"));
    plant(&from, 60);
    fs::write(from.join("large"), vec![7; LARGE]).expect("a file");
    for (number, streams) in ["auto", "0", "3"].into_iter().enumerate() {
        let (there, options) = (place.there(&format!("box/copy{number}")), ["--streams", streams]);
        place.done(&from, &there, &options);
        assert_same(&from, &place.inside(&format!("copy{number}")));
        let again = place.done(&from, &there, &options);
        assert!(again.contains(" 0 changed"), "{again}");
        place.done(&there, &back, &["--streams", streams, "--delete"]);
        assert_same(&from, &back);
        fs::write(from.join(format!("new{number}")), b"for the next round").expect("a file");
    }
    fs::remove_file(from.join("again")).expect("taking it away");
    let there = place.there("box/copy0");
    place.done(&from, &there, &["--delete"]);
    assert_same(&from, &place.inside("copy0"));
    // What was written is what the server has counted as written, by anna and on her share.
    let counted = |stat: &str| place.api.count(stat, (place.started, now() + 1));
    let written = || (counted("dsync.bytes[op=write]") >= 3 * LARGE as u64).then_some(());
    wait_for("the bytes of three copies", DEADLINE, written);
    assert!(counted("dsync.ops[share=box]") > 0 && counted("dsync.ops[op=rename]") > 0);
}

#[test]
fn a_user_is_held_to_what_the_share_and_the_service_grant() {
    let Some(place) = Setup::new("dsync-share-rights") else { return };
    let from = place.folder("from");
    plant(&from, 8);
    let there = place.there("box/copy");
    place.done(&from, &there, &[]);
    // A file of another user, and a symbolic link out of the share.
    let (secret, to) = (place.inside("copy/secret"), place.scene.scratch.path().join("to"));
    fs::write(&secret, b"not for anna").expect("a file");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("a mode");
    symlink("/etc", place.inside("out")).expect("a link");
    place.refused((&there, &to), 3, "secret");
    assert!(
        !to.join("secret").exists() && to.join("large").exists() == from.join("large").exists()
    );
    place.refused((&place.there("box/out"), &to), 1, "Permission denied");
    place.refused((&place.there("box/../../etc"), &to), 1, "No such file");
    place.refused((&place.there("nothing"), &to), 1, "No such file");
    place.refused((&place.there(""), &to), 1, "list of shares");
    place.refused((&from, &place.there("box/none/copy")), 1, "No such file");
    place.set("/shares/default/box", "sftp", json!("ro"));
    place.refused((&from, &there), 1, "Read-only");
    place.done(&place.there("box/copy/d0"), &to, &[]);
    place.set("/shares/default/box", "sftp", json!("none"));
    place.refused((&there, &to), 1, "Permission denied");
    place.set("/configuration/services/sftp", "dsync", json!(false));
    place.refused((&there, &to), 1, "disabled on this server");
}

#[test]
fn one_run_writes_to_a_directory_and_the_next_takes_up_what_it_left() {
    let Some(place) = Setup::new("dsync-share-killed") else { return };
    let from = place.folder("from");
    fs::write(from.join("large"), vec![7; LARGE]).expect("a file");
    let there = place.there("box/copy");
    // A minute, so that it is still at it when the next comes.
    let slow = ["--no-compress", "--bandwidth", "100kB/s"];
    let mut first = place.command(&from, &there, &slow);
    first.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut first = first.spawn().expect("a run");
    let begun = || {
        let mut names = fs::read_dir(place.inside("copy")).ok()?.flatten();
        let large = |entry: &fs::DirEntry| entry.metadata().is_ok_and(|meta| meta.len() > 0);
        names.any(|entry| large(&entry)).then_some(())
    };
    wait_for("the file to come", DEADLINE, begun);
    place.refused((&from, &there), 1, "another dsync");
    signal(first.id(), libc::SIGKILL);
    assert!(wait(&mut first, DEADLINE).is_some());
    let next = || {
        let done = place.go(&from, &there, &["--delete"]);
        let busy = output_text(&done).contains("another dsync");
        assert!(busy || done.status.success(), "{}", output_text(&done));
        (!busy).then_some(())
    };
    wait_for("the killed run's directory", DEADLINE, next);
    assert_same(&from, &place.inside("copy"));
}

/// The file of a LUN in a share is not carried, and a run that deletes what its source has not
/// leaves it alone.
#[test]
fn a_logical_unit_is_not_carried_nor_deleted() {
    let Some(place) = Setup::new("dsync-lun") else { return };
    let (from, back) = (place.folder("from"), place.folder("back"));
    fs::create_dir(place.inside("copy")).expect("made");
    fs::set_permissions(place.inside("copy"), fs::Permissions::from_mode(0o777)).expect("a mode");
    let disk = place.inside("copy/disk");
    fs::write(&disk, vec![7; 1 << 20]).expect("blocks");
    fs::set_permissions(&disk, fs::Permissions::from_mode(0o666)).expect("a mode");
    fs::write(place.inside("copy/plain"), b"plain").expect("written");
    let unit = json!({"create": "/shares/default/luns", "name": "disk",
        "properties": {"backing": "file", "path": disk}});
    let (status, done) = place.api.post("/api/v1/changes", &json!({ "changes": [unit] }));
    assert_eq!(status, 200, "{done}");
    place.done(&place.there("box/copy"), &back, &[]);
    let names: Vec<_> =
        fs::read_dir(&back).expect("there").map(|one| one.expect("one").file_name()).collect();
    assert_eq!(names, ["plain"]);
    fs::write(from.join("new"), b"new").expect("written");
    fs::write(from.join("disk"), b"mine").expect("written");
    let replaced = place.go(&from, &place.there("box/copy"), &["--delete"]);
    assert_ne!(code(&replaced), 0, "one of its name cannot be written: {}", output_text(&replaced));
    assert!(place.inside("copy/new").exists() && !place.inside("copy/plain").exists());
    assert_eq!(fs::read(&disk).expect("it is there"), vec![7; 1 << 20]);
}
