//! A Linux client of NFSv4 has a file open, or open and locked, while another NFS client, a client
//! of another protocol or a program on the server removes or replaces it, on ext4 and on tmpfs: its
//! program continues until it closes the file; then the space is free and no state is left. New
//! files, which get the inode numbers of old ones, open as if those had never been.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use e2e::api::{Api, wait_for};
use e2e::has;
use e2e::netns::{HOST, Namespace};
use e2e::process::{DEADLINE, run};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::skip;
use e2e::uml::{self, Guest};
use serde_json::json;

/// The versions, and where each is mounted. The first one's client is the other one.
const MOUNTS: [(&str, &str); 4] = [
    ("vers=3,nolock,mountproto=tcp", "v3"),
    ("vers=4.0", "v40"),
    ("vers=4.1", "v41"),
    ("vers=4.2", "v42"),
];
const PASSWORD: &str = "only-for-this-test";
/// Files that are created after the old ones.
const NEW_FILES: usize = 1000;
/// How long a client may keep what its program has closed.
const PATIENCE: Duration = e2e::patience(60);

/// What removes the name of the open file, or gives it to another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Removal {
    LocalRemove,
    LocalReplace,
    NfsRemove,
    NfsReplace,
    Http,
    Ftp,
    Sftp,
}

const WAYS: [Removal; 7] = [
    Removal::LocalRemove,
    Removal::LocalReplace,
    Removal::NfsRemove,
    Removal::NfsReplace,
    Removal::Http,
    Removal::Ftp,
    Removal::Sftp,
];

impl Removal {
    fn replaces(self) -> bool {
        !matches!(self, Self::LocalRemove | Self::NfsRemove)
    }
}

/// A file system of its own, at a directory, until it is dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn new(kind: &str, scratch: &Scratch, at: &Path) -> Result<Self, String> {
        let image = scratch.path().join("image");
        let script = match kind {
            "tmpfs" => "mount -t tmpfs plimsoll-test \"$2\"",
            _ => "truncate -s 64M \"$1\" && mkfs.ext4 -q -F \"$1\" && mount -o loop \"$1\" \"$2\"",
        };
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]).arg(&image).arg(at);
        let done = run(&mut shell, DEADLINE);
        let why = String::from_utf8_lossy(&done.stderr).trim().replace('\n', "; ");
        if done.status.success() { Ok(Self(at.to_owned())) } else { Err(why) }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // What is left of the server may hold it for a moment.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A guest that has mounted the share by each version, and the share as the host sees it. Fields
/// are dropped in their order.
struct Stage {
    guest: Guest,
    server: Server,
    api: Api,
    dir: PathBuf,
    namespace: Namespace,
    _mounted: Mounted,
    scratch: Scratch,
}

impl Stage {
    fn new(kind: &str) -> Result<Self, String> {
        let namespace = uml::namespace(1)?;
        let scratch = Scratch::new("kernel-v4-removed");
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        let mounted = Mounted::new(kind, &scratch, &dir)?;
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).expect("a mode");
        let mut options = Options::new(&dir, &state);
        options.address = HOST;
        options.namespace = Some(&namespace);
        // With one for writing a client retains a removed file for a minute after its last close.
        options.args = ["--nfs-delegations", "off"].map(Into::into).into();
        let server = Server::start(&options);
        let api = Api::new(&state);
        let http = "/configuration/services/http";
        let changes = json!({"changes": [
            {"create": "/configuration/users", "name": "anna",
                "properties": {"password": PASSWORD, "uid": 4321, "gid": 4322}},
            {"set": http, "property": "plain", "value": "serve"},
            {"set": http, "property": "basic_over_plain", "value": true},
        ]});
        let (code, done) = api.post("/api/v1/changes", &changes);
        assert_eq!(code, 200, "{done}");
        fs::write(scratch.path().join("other"), b"new").expect("another file");
        let mut guest = Guest::boot(&namespace, 0, scratch.path());
        for (options, name) in MOUNTS {
            let port = server.nfs_port();
            let more = if name == "v3" { format!(",mountport={port}") } else { String::new() };
            guest.mount(name, port, &server.export(), &format!("{options}{more}"));
        }
        guest.install("keeper");
        guest.run("mkfifo /tmp/go");
        Ok(Self { guest, server, api, dir, namespace, _mounted: mounted, scratch })
    }

    /// Runs a program in the network namespace of the server.
    fn run_in_namespace(&self, command: &mut Command) {
        self.namespace.enter(command);
        let done = run(command.current_dir(self.scratch.path()), DEADLINE);
        let said = [done.stdout, done.stderr].concat();
        assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&said));
    }

    fn port(&self, port: u16) -> u16 {
        port + self.server.offset
    }

    fn take(&mut self, way: Removal) {
        let (file, other) = (self.dir.join("kept"), self.scratch.path().join("other"));
        let user = format!("anna:{PASSWORD}");
        match way {
            Removal::LocalRemove => fs::remove_file(&file).expect("removed"),
            Removal::LocalReplace => {
                fs::write(self.dir.join("new"), b"new").expect("written");
                fs::rename(self.dir.join("new"), &file).expect("replaced");
            }
            Removal::NfsRemove => drop(self.guest.run("rm /mnt/v3/kept")),
            Removal::NfsReplace => {
                drop(self.guest.run("printf new >/mnt/v3/new; mv -f /mnt/v3/new /mnt/v3/kept"));
            }
            Removal::Http => {
                let url = format!("http://{HOST}:{}/data/kept", self.port(80));
                let curl = &mut Command::new("curl");
                self.run_in_namespace(curl.args(["-sSf", "-u", &user, "-T"]).arg(other).arg(url));
            }
            Removal::Ftp => {
                let url = format!("ftp://{HOST}:{}/data/kept", self.port(21));
                let curl = &mut Command::new("curl");
                self.run_in_namespace(curl.args(["-sSf", "-u", &user, "-T"]).arg(other).arg(url));
            }
            Removal::Sftp => {
                let port = self.port(218);
                let script = format!(
                    "set sftp:connect-program \"ssh -a -x -F none -o StrictHostKeyChecking=no \
                     -o UserKnownHostsFile=/dev/null\"; set net:max-retries 1; \
                     open -u anna,{PASSWORD} -p {port} sftp://{HOST}; put other -o /data/kept"
                );
                self.run_in_namespace(Command::new("lftp").args(["-c", &script]));
            }
        }
    }

    /// Files of the share that the server has open and that have no name any more.
    fn removed_but_open(&self) -> usize {
        let fds = fs::read_dir(format!("/proc/{}/fd", self.server.pid())).expect("its own");
        let links = fds.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
        let gone = |to: &PathBuf| to.to_string_lossy().ends_with(" (deleted)");
        links.filter(|to| to.starts_with(&self.dir) && gone(to)).count()
    }

    /// Waits until nothing is left of what clients had open.
    fn has_no_state(&self, what: &str) {
        wait_for(what, PATIENCE, || {
            let opens = self.api.get("/api/v1/services/nfs/opens").1.to_string();
            let locks = self.api.get("/api/v1/services/nfs/locks").1.to_string();
            let clean = !opens.contains("\"file\"") && !locks.contains("\"file\"");
            let retained = self.api.budget("server.retained_files").0;
            (clean && self.removed_but_open() == 0 && retained == 0).then_some(())
        });
    }

    /// A program has the file open meanwhile; the inode number that the file had.
    fn outlives(&mut self, (mount, locked): (&str, bool), way: Removal) -> u64 {
        let what = format!("{mount}, {way:?}, locked: {locked}");
        let file = self.dir.join("kept");
        let mode = if locked { "" } else { "unlocked" };
        let task = self.guest.begin(&format!("keeper /mnt/{mount}/kept /tmp/go {mode}"));
        self.guest.event("keeper open");
        let number = file.metadata().expect("the file").ino();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("a mode");
        self.take(way);
        self.guest.run("echo >/tmp/go");
        let (status, log) = self.guest.end(&task);
        assert_eq!(status, 0, "{what}\n{log}\n{}", self.server.stderr_text());
        self.has_no_state(&what);
        let left = fs::read(&file).ok();
        assert_eq!(left, way.replaces().then(|| b"new".to_vec()), "{what}: the other file");
        self.guest.run(&format!("rm -f /mnt/{mount}/kept"));
        number
    }
}

fn removed_and_replaced(kind: &str) {
    let _turn = uml::turn();
    let mut stage = match Stage::new(kind) {
        Ok(stage) => stage,
        Err(why) => skip!("kernel-v4-removed", "{kind}: {why}"),
    };
    let mut old = HashSet::new();
    for (m, (_, mount)) in MOUNTS.iter().skip(1).enumerate() {
        for (w, way) in WAYS.into_iter().enumerate() {
            old.insert(stage.outlives((mount, (m + w) % 2 == 0), way));
        }
    }
    for (_, mount) in MOUNTS.iter().skip(1) {
        // In the same directory: ext4 gives a new one numbers of its own.
        let script =
            format!("cd /mnt/{mount}; for n in $(seq {NEW_FILES}); do : <>n$n; : <>n$n; done");
        stage.guest.run(&script);
        stage.has_no_state(&format!("new files over {mount}"));
        let there = fs::read_dir(&stage.dir).expect("the directory").flatten();
        let new = there.filter(|entry| entry.file_name().to_string_lossy().starts_with('n'));
        let numbers: HashSet<u64> =
            new.map(|entry| entry.metadata().expect("a file").ino()).collect();
        assert_eq!(numbers.len(), NEW_FILES, "{mount}");
        // tmpfs gives each number once.
        let again = numbers.intersection(&old).count();
        assert!(kind == "tmpfs" || again > 0, "no old number was given again");
        stage.guest.run(&format!("cd /mnt/{mount}; rm n*"));
    }
    assert!(stage.server.stop().success(), "SIGTERM ends it cleanly");
}

/// The reason of a SKIP: what is missing here.
fn missing() -> Option<String> {
    let tools = ["curl", "lftp", "ssh", "mkfs.ext4"];
    let missing = tools.into_iter().find(|tool| !has(tool));
    uml::unavailable().or_else(|| missing.map(|tool| format!("{tool} is not installed")))
}

#[test]
fn open_files_outlive_their_names_on_ext4() {
    if let Some(why) = missing() {
        skip!("kernel-v4-removed", "{why}");
    }
    removed_and_replaced("ext4");
}

#[test]
fn open_files_outlive_their_names_on_tmpfs() {
    if let Some(why) = missing() {
        skip!("kernel-v4-removed", "{why}");
    }
    removed_and_replaced("tmpfs");
}
