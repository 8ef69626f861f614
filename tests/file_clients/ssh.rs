//! Programs that speak SFTP alone: OpenSSH's, sshfs, PuTTY's, Dropbear's, and the libraries
//! paramiko and asyncssh.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use base::text::hex;
use e2e::api::Api;
use e2e::process::{DEADLINE, run, succeed};
use e2e::{has, is_root, skip};

use super::http::mounted;
use super::scene::{ClientSetup, PASSWORD, USER, line, quoted, quoted_path};
use super::tasks::{Task, all};

/// Options of the programs of OpenSSH: anna's key, and nothing of this machine.
const OPTIONS: [&str; 5] = [
    "BatchMode=yes",
    "StrictHostKeyChecking=no",
    "IdentitiesOnly=yes",
    "UserKnownHostsFile=known",
    "LogLevel=ERROR",
];

/// The standard port of SFTP.
const SSH: u16 = 218;
/// The system's own, for which the packages of libraries are.
const PYTHON: &str = "/usr/bin/python3";

/// A path in the share, from the list of shares on.
fn path(path: &[u8]) -> Vec<u8> {
    [b"/data/", path].concat()
}

fn openssh(place: &ClientSetup, program: &str) -> Command {
    let mut command = place.program(program);
    command.args(["-F", "none", "-P", &place.scene.port(218)]).arg("-i").arg(place.scene.key());
    for option in OPTIONS {
        command.args(["-o", option]);
    }
    command
}

/// The commands of a client that takes the lines of `sftp`.
fn lines(task: Task<'_>) -> Option<Vec<u8>> {
    let there = |name: &[u8]| quoted(&path(name));
    Some(match task {
        Task::Upload(from, to) => line(&[b"put", &quoted_path(from), &there(to)]),
        Task::Download(from, to) => line(&[b"get", &there(from), &quoted_path(to)]),
        Task::ResumeUpload(from, to, _) => line(&[b"reput", &quoted_path(from), &there(to)]),
        Task::ResumeDownload(from, to, _) => line(&[b"reget", &there(from), &quoted_path(to)]),
        Task::Rename(from, to) => line(&[b"rename", &there(from), &there(to)]),
        Task::Delete(name) => line(&[b"rm", &there(name)]),
        Task::List(name) => line(&[b"ls -1", &there(name)]),
    })
}

/// A program with the commands of `sftp` in a file.
fn batch(place: &ClientSetup, commands: &[u8], command: &mut Command) -> Option<Vec<u8>> {
    fs::write(place.local.join("batch"), commands).expect("a batch");
    Some(succeed(command))
}

#[test]
fn sftp() {
    let Some(place) = ClientSetup::needing("sftp", &["sftp"]) else { return };
    all(&place, &|task: Task<'_>| {
        let mut sftp = openssh(&place, "sftp");
        batch(&place, &lines(task)?, sftp.args(["-b", "batch", &format!("{USER}@127.0.0.1")]))
    });
}

#[test]
fn scp() {
    let Some(place) = ClientSetup::needing("scp", &["scp"]) else { return };
    // Its names at the server are patterns.
    let there = |name: &[u8]| {
        let mut whole = format!("{USER}@127.0.0.1:").into_bytes();
        whole.extend_from_slice(&path(name));
        OsString::from_vec(whole)
    };
    all(&place, &|task: Task<'_>| {
        let mut scp = openssh(&place, "scp");
        scp.args(["-q", "-s"]);
        match task {
            Task::Upload(from, to) => Some(succeed(scp.arg(from).arg(there(to)))),
            Task::Download(from, to) => Some(succeed(scp.arg(there(from)).arg(to))),
            _ => None,
        }
    });
}

#[test]
fn dropbear() {
    let Some(place) = ClientSetup::needing("dbclient", &["dbclient", "sftp"]) else { return };
    // sftp runs the program with the arguments of ssh; Dropbear's wants its own.
    let script = format!(
        "#!/bin/sh\nexec dbclient -y -y -T -p {} -s {USER}@127.0.0.1 sftp\n",
        place.scene.port(218)
    );
    let program = place.local.join("dropbear");
    fs::write(&program, script).expect("a script");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode");
    all(&place, &|task: Task<'_>| {
        let mut sftp = place.program("sftp");
        sftp.arg("-S").arg(&program).env("DROPBEAR_PASSWORD", PASSWORD);
        batch(&place, &lines(task)?, sftp.args(["-b", "batch", "any"]))
    });
}

#[test]
fn psftp() {
    let Some(place) = ClientSetup::needing("psftp", &["psftp"]) else { return };
    let (_, node) = Api::new(&place.scene.state).get("/api/v1/nodes/configuration/services/sftp");
    let keys = node["properties"].as_array().expect("properties");
    let keys = keys.iter().find(|one| one["name"] == "host_keys").expect("host keys");
    let hashes = keys["value"].to_string();
    let hashes: Vec<&str> = hashes.split([' ', '"']).filter(|w| w.starts_with("SHA256:")).collect();
    let port = place.scene.port(218);
    // A quote within quotes is two.
    let plain = |name: &[u8]| {
        let double: Vec<u8> = name
            .iter()
            .flat_map(|b| std::iter::repeat_n(*b, if *b == b'"' { 2 } else { 1 }))
            .collect();
        [&b"\""[..], &double, b"\""].concat()
    };
    let here = |path: &Path| plain(path.as_os_str().as_bytes());
    let there = |name: &[u8]| plain(&path(name));
    all(&place, &|task: Task<'_>| {
        let commands = match task {
            Task::Upload(from, to) => line(&[b"put", &here(from), &there(to)]),
            Task::Download(from, to) => line(&[b"get", &there(from), &here(to)]),
            Task::ResumeUpload(from, to, _) => line(&[b"reput", &here(from), &there(to)]),
            Task::ResumeDownload(from, to, _) => line(&[b"reget", &there(from), &here(to)]),
            Task::Rename(from, to) => line(&[b"mv", &there(from), &there(to)]),
            Task::Delete(name) => line(&[b"rm", &there(name)]),
            Task::List(name) => line(&[b"ls", &there(name)]),
        };
        let mut psftp = place.program("psftp");
        psftp.args(["-batch", "-P", &port, "-pw", PASSWORD, "-b", "batch"]);
        for hash in &hashes {
            psftp.args(["-hostkey", hash]);
        }
        batch(&place, &commands, psftp.arg(format!("{USER}@127.0.0.1")))
    });
}

/// A library, and a script that does tasks with it.
pub struct Library<'a> {
    pub name: &'static str,
    /// What runs the script, with its arguments.
    pub runs: &'a [&'a str],
    /// The standard port of its service.
    pub port: u16,
    /// The script: a file name, and what is in it.
    pub script: (&'a str, &'a str),
    /// What it has no function for.
    pub lacks: &'a [&'a str],
}

/// Whether a Python has a module; if not, the client is skipped.
pub fn has_module(python: &str, module: &str, name: &str) -> bool {
    let check = Command::new(python).args(["-c", &format!("import {module}")]).output();
    let has = check.is_ok_and(|done| done.status.success());
    if !has {
        println!("SKIP clients {name}: python3-{name} is not installed");
    }
    has
}

/// Puts a library through all tasks.
pub fn library(library: &Library<'_>) {
    let Library { name, runs, port, script: (file, text), lacks } = *library;
    let place =
        if port == SSH { ClientSetup::new(name) } else { ClientSetup::new(name).of_windows() };
    let script = place.local.join(file);
    fs::write(&script, text).expect("a script");
    // One that hangs is ended, and so is the test then.
    let mut command = place.program("timeout");
    command.arg("100").args(runs).arg(&script).args(["127.0.0.1", &place.scene.port(port)]);
    let mut program = command
        .args([USER, PASSWORD])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("an interpreter");
    let from = BufReader::new(program.stdout.take().expect("its output"));
    let talk = RefCell::new((program.stdin.take().expect("its input"), from));
    let ask = |task: &str, one: &[u8], two: &[u8]| {
        if lacks.contains(&task) {
            return None;
        }
        let (to, from) = &mut *talk.borrow_mut();
        let words = [task.as_bytes(), one, two].map(hex);
        writeln!(to, "{}", words.join(" ")).expect("it listens");
        let (mut line, mut said) = (String::new(), Vec::new());
        from.read_line(&mut line).expect("its answer");
        let len = line.trim().parse().unwrap_or_else(|_| panic!("{task}: {line:?}"));
        from.take(len).read_to_end(&mut said).expect("its answer");
        Some(said)
    };
    let here = |path: &Path| path.as_os_str().as_bytes().to_vec();
    // A client of SMB is connected to the share.
    let there = |name: &[u8]| if port == SSH { path(name) } else { name.to_vec() };
    all(&place, &|task: Task<'_>| match task {
        Task::Upload(from, to) => ask("put", &here(from), &there(to)),
        Task::Download(from, to) => ask("get", &there(from), &here(to)),
        Task::ResumeUpload(from, to, _) => ask("reput", &here(from), &there(to)),
        Task::ResumeDownload(from, to, _) => ask("reget", &there(from), &here(to)),
        Task::Rename(from, to) => ask("rename", &there(from), &there(to)),
        Task::Delete(name) => ask("rm", &there(name), b""),
        Task::List(name) => ask("ls", &there(name), b""),
    });
    drop(talk);
    assert!(program.wait().expect("its end").success());
}

fn over_ssh(name: &'static str, text: &str) {
    if has_module(PYTHON, name, name) {
        let script = ("client.py", text);
        library(&Library { name, runs: &[PYTHON], port: SSH, script, lacks: &[] });
    }
}

#[test]
fn paramiko() {
    over_ssh("paramiko", include_str!("paramiko_client.py"));
}

#[test]
fn asyncssh() {
    over_ssh("asyncssh", include_str!("asyncssh_client.py"));
}

/// A directory mounted by sshfs. It ends with the value.
struct Mount<'a> {
    at: &'a OsStr,
    client: Child,
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let mut unmount = Command::new("fusermount3");
        run(unmount.arg("-u").arg("-z").arg(self.at), DEADLINE);
        let _ended = self.client.wait();
    }
}

#[test]
fn sshfs() {
    if !has("sshfs") || !has("ssh") || !is_root() || !Path::new("/dev/fuse").exists() {
        skip!("clients sshfs", "needs sshfs, ssh, /dev/fuse and root");
    }
    let place = ClientSetup::new("sshfs");
    let at = place.scene.scratch.folder("sshfs", None);
    let mut command = place.program("sshfs");
    command.args(["-f", "-F", "none", "-p", &place.scene.port(218)]);
    command.arg("-o").arg(format!("IdentityFile={}", place.scene.key().display()));
    for option in OPTIONS {
        command.args(["-o", option]);
    }
    command.arg(format!("{USER}@127.0.0.1:/data")).arg(&at).stdin(Stdio::null());
    let above = fs::metadata(place.scene.scratch.path()).expect("a directory").dev();
    let mount = Mount { at: at.as_os_str(), client: command.spawn().expect("sshfs") };
    let until = Instant::now() + DEADLINE;
    while fs::metadata(&at).expect("a directory").dev() == above {
        assert!(Instant::now() < until, "sshfs has not mounted");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    all(&place, &|task: Task<'_>| mounted(&at, task));
    drop(mount);
}
