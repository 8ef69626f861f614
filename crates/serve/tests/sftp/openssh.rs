//! The whole service on a socket, with the programs of OpenSSH: `sftp`, `scp` and `ssh-keygen`.

use std::io::Write;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use base::clock::Deadline;
use serve::sftp::server::{Algorithms, Server, ServiceSettings};
use serve::sftp::ssh::host_keys;
use serve::transport::listener;
use vfs::share::Service;

use crate::scene::{Scene, Serving};

/// A directory that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("plimsoll-openssh-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn there(program: &str) -> bool {
    let asked = Command::new(program).arg("-V").stdin(Stdio::null()).output();
    if asked.is_err() {
        println!("SKIP sftp::openssh: {program} is missing (apt-get install openssh-client)");
    }
    asked.is_ok()
}

fn run(command: &mut Command) -> Output {
    command.output().expect("it can be run")
}

fn keygen(arguments: &[&str], file: &Path) {
    let out = run(Command::new("ssh-keygen").arg("-q").args(arguments).arg(file));
    assert!(out.status.success(), "{out:?}");
}

/// The service, a user with a key, and the arguments of OpenSSH's programs.
struct Lab {
    _tasks: Serving,
    scene: Scene,
    scratch: Scratch,
    server: Arc<Server>,
    port: u16,
}

impl Lab {
    fn new(kind: &str) -> Self {
        let (scene, scratch) = (Scene::in_memory(Service::Sftp), Scratch::new());
        keygen(&["-t", kind, "-N", "", "-f"], &scratch.path("key"));
        let line = std::fs::read_to_string(scratch.path("key.pub")).expect("the key");
        scene.users.add_key("alice", line.trim());
        let socket = listener::listen((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
        let port = socket.local_addr().expect("an address").port();
        let keys = host_keys::read_or_make(&scratch.0).expect("host keys");
        let known: String =
            keys.iter().map(|key| format!("[127.0.0.1]:{port} {}\n", key.public_line())).collect();
        std::fs::write(scratch.path("known"), known).expect("known hosts");
        let server = Server::new(ServiceSettings::default(), keys);
        let tasks = Serving(server.start(&scene.files, &scene.runtimes, vec![socket]));
        Self { _tasks: tasks, scene, scratch, server, port }
    }

    /// A program of OpenSSH that knows the server's keys and takes no others.
    fn client(&self, program: &str, options: &[&str]) -> Command {
        let mut command = Command::new(program);
        let known = format!("UserKnownHostsFile={}", self.scratch.path("known").display());
        let always = ["BatchMode=yes", "StrictHostKeyChecking=yes", "IdentitiesOnly=yes", &known];
        command.args(["-F", "none", "-P", &self.port.to_string(), "-i"]);
        command.arg(self.scratch.path("key"));
        for option in always.iter().chain(options) {
            command.args(["-o", option]);
        }
        command.current_dir(&self.scratch.0).stdin(Stdio::null());
        command
    }

    fn sftp(&self, options: &[&str], lines: &str) -> Output {
        let mut command = self.client("sftp", options);
        command.args(["-b", "-", "alice@127.0.0.1"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("sftp");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(lines.as_bytes()).expect("taken");
        drop(stdin);
        child.wait_with_output().expect("it ends")
    }
}

fn pattern(size: usize) -> Vec<u8> {
    (0..size as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

#[test]
fn files_go_up_and_down_under_every_cipher() {
    if !there("ssh") {
        return;
    }
    let lab = Lab::new("ed25519");
    let data = pattern(5_000_001);
    std::fs::write(lab.scratch.path("up"), &data).expect("written");
    for cipher in [
        "aes128-gcm@openssh.com",
        "aes256-gcm@openssh.com",
        "chacha20-poly1305@openssh.com",
        "aes128-ctr",
        "aes256-ctr",
    ] {
        // New keys while the data is in flight.
        let options = [&format!("Ciphers={cipher}"), "RekeyLimit=1M"];
        let out =
            lab.sftp(&options, "put up /share/there\nget /share/there down\nrm /share/there\n");
        assert!(out.status.success(), "{cipher}: {out:?}");
        assert!(std::fs::read(lab.scratch.path("down")).expect("there") == data, "{cipher}");
        std::fs::remove_file(lab.scratch.path("down")).expect("removed");
    }
}

#[test]
fn names_and_directories() {
    if !there("ssh") {
        return;
    }
    let lab = Lab::new("ecdsa");
    std::fs::write(lab.scratch.path("up"), b"one").expect("written");
    let out = lab.sftp(
        &[],
        "mkdir /share/a\nput up \"/share/a/with 'quotes' and blanks\"\nchmod 640 /share/a/with*\n\
         rename /share/a /share/b\nln -s b /share/link\nls -la /share\nls -l /share/b\ndf /share\n\
         cp \"/share/b/with 'quotes' and blanks\" /share/copy\nrm /share/copy\n",
    );
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{out:?}");
    assert!(said.contains("-rw-r-----") && said.contains("with 'quotes' and blanks"), "{said}");
    let out = lab.sftp(&[], "get /nothing/here x\n");
    assert!(!out.status.success() && !lab.scratch.path("x").exists());
}

#[test]
fn scp_and_rsa_keys() {
    if !there("ssh") {
        return;
    }
    let lab = Lab::new("rsa");
    let data = pattern(300_000);
    std::fs::write(lab.scratch.path("up"), &data).expect("written");
    let host = ["HostKeyAlgorithms=rsa-sha2-256"];
    let mut up = lab.client("scp", &host);
    up.args(["-s", "-p", "up", "alice@127.0.0.1:/share/there"]);
    assert!(run(&mut up).status.success());
    let mut down = lab.client("scp", &host);
    down.args(["-s", "alice@127.0.0.1:/share/there", "down"]);
    assert!(run(&mut down).status.success());
    assert!(std::fs::read(lab.scratch.path("down")).expect("there") == data);
}

#[test]
fn strangers_and_old_algorithms_are_refused() {
    if !there("ssh") {
        return;
    }
    let lab = Lab::new("ed25519");
    keygen(&["-t", "ed25519", "-N", "", "-f"], &lab.scratch.path("other"));
    let other = lab.scratch.path("other");
    let refused = |options: &[&str], why: &str| {
        let out = lab.sftp(options, "ls\n");
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!out.status.success() && said.contains(why), "{options:?}: {said}");
    };
    let denied = "Permission denied";
    refused(&["User=bob"], denied);
    std::fs::rename(&other, lab.scratch.path("key")).expect("another key");
    std::fs::rename(other.with_extension("pub"), lab.scratch.path("key.pub")).expect("its half");
    refused(&[], denied);
    refused(&["KexAlgorithms=diffie-hellman-group14-sha1"], "no matching key exchange");
    refused(&["MACs=hmac-sha1", "Ciphers=aes128-ctr"], "no matching MAC");
    // A removed user is disconnected, whatever its connection is doing.
    lab.scene.users.remove("alice");
    refused(&[], denied);
    let until = Deadline::after(Duration::from_secs(60));
    while lab.scene.files.engine.budgets.connections() > 0 && !until.passed() {
        std::thread::yield_now();
    }
    assert_eq!(lab.scene.files.engine.budgets.connections(), 0, "every place is given back");
}

#[test]
fn clients_without_a_common_algorithm_are_reported() {
    if !there("ssh") {
        return;
    }
    let lab = Lab::new("ed25519");
    let older = ["MACs=hmac-sha2-512,hmac-sha2-256", "Ciphers=aes128-ctr"];
    assert!(lab.sftp(&older, "ls\n").status.success(), "they are offered by default");
    assert_eq!(lab.server.mismatches(), Vec::<String>::new());
    let algorithms = Algorithms::Modern;
    lab.server.set(ServiceSettings { algorithms, ..ServiceSettings::default() });
    let refused = |options: &[&str], expect: &str| {
        assert!(!lab.sftp(options, "ls\n").status.success());
        let until = Deadline::after(Duration::from_secs(60));
        loop {
            let all = lab.server.mismatches();
            if all.last().is_some_and(|last| last.ends_with(expect)) {
                let last = all.last().expect("one");
                assert!(last.starts_with("127.0.0.1 (OpenSSH"), "{last}");
                return all.len();
            }
            assert!(!until.passed(), "{all:?}");
            std::thread::yield_now();
        }
    };
    let macs = " has no MAC in common with the SFTP service: it offers hmac-sha2-512, \
                hmac-sha2-256; \
                the setting algorithms=compatible permits it";
    assert_eq!(refused(&older, macs), 1);
    let kex = "no key exchange in common with the SFTP service: it offers \
               diffie-hellman-group14-sha256, \
               ext-info-c, kex-strict-c-v00@openssh.com; no setting permits any of them";
    assert_eq!(refused(&["KexAlgorithms=diffie-hellman-group14-sha256"], kex), 2);
    assert_eq!(refused(&older, macs), 2, "each once, the newest last");
}

#[test]
fn curl_of_this_machine_connects() {
    let version = Command::new("curl").arg("--version").stdin(Stdio::null()).output();
    let version = version.map(|out| String::from_utf8_lossy(&out.stdout).into_owned());
    if !version.is_ok_and(|version| version.contains(" sftp")) {
        return println!("SKIP sftp::openssh: no curl with SFTP (apt-get install curl)");
    }
    let lab = Lab::new("ed25519");
    let data = pattern(300_000);
    std::fs::write(lab.scratch.path("up"), &data).expect("written");
    let at = format!("sftp://127.0.0.1:{}/share/f", lab.port);
    let curl = |options: &[&str]| {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--insecure", "-u", "alice:secret"]).args(options).arg(&at);
        run(curl.current_dir(&lab.scratch.0).stdin(Stdio::null()))
    };
    let out = curl(&["-T", "up"]);
    assert!(out.status.success(), "{out:?}");
    let out = curl(&["-o", "down"]);
    assert!(out.status.success(), "{out:?}");
    assert!(std::fs::read(lab.scratch.path("down")).expect("there") == data);
}
