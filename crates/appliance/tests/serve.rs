//! `plimsoll serve` as a program: its start, its output, its end.

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{
    NOBODY, Scratch, Server, address, arg, is_root, plimsoll, run, serve_command,
};
use control::client::{Client, ClientError};
use serde_json::Value;

fn status_code(client: &Client, path: &str) -> u16 {
    match client.get(path) {
        Ok(_) => 200,
        Err(ClientError::Refused { status, .. }) => status,
        Err(e) => panic!("{path}: {e}"),
    }
}

#[test]
fn it_announces_answers_and_ends() {
    let (scratch, at) = (Scratch::new(), address());
    let server = Server::start(&scratch, at, None);
    assert_eq!(server.announced["pid"], server.pid());
    assert_eq!(server.text("admin"), format!("https://{at}:10215/"));
    let url = &server.announced["shares"]["data"]["nfs3"];
    assert_eq!(url.as_str(), Some(format!("nfs3://{at}:12049/export/data").as_str()));
    assert_eq!(std::fs::metadata(scratch.state()).unwrap().mode() & 0o777, 0o700);

    let (token, certificate) =
        (scratch.state().join("api-token"), scratch.state().join("certificate.pem"));
    let remote = Client::remote(server.text("admin"), &token, &certificate).unwrap();
    let status: Value = serde_json::from_slice(&remote.get("/api/v1/status").unwrap()).unwrap();
    assert_eq!(status["shares"][0]["name"], "data");
    let mount = status["shares"][0]["access"][0]["mount"].as_str().unwrap();
    assert_eq!(
        mount,
        format!(
            "mount -t nfs -o vers=3,proto=tcp,port=12049,mountport=12049,mountproto=tcp,nolock \
             {at}:/export/data /mnt"
        )
    );
    let login = server.text("login").strip_prefix(&format!("https://{at}:10215")).unwrap();
    assert_eq!(status_code(&remote, login), 303, "signs in");
    assert_eq!(status_code(&remote, login), 403, "once");

    let (status, rest, took) = server.end();
    assert_eq!(status.code(), Some(0));
    assert_eq!(rest, "", "nothing but the announcement on standard output");
    assert!(took < Duration::from_secs(60), "SIGTERM did not end it: {took:?}");
    assert!(!scratch.state().join("plimsoll.sock").exists());
}

#[test]
fn local_commands_find_it() {
    let (scratch, state) = (Scratch::new(), Scratch::new());
    let server = Server::start(&scratch, address(), None);
    let list = run(&["analytics", "list", "--json", "--state", arg(&scratch.state())]);
    assert!(list.status.success(), "{}", String::from_utf8_lossy(&list.stderr));
    assert!(serde_json::from_slice::<Value>(&list.stdout).unwrap().is_array());
    let wrong = run(&["analytics", "show", "no.such", "--state", arg(&scratch.state())]);
    assert_eq!(wrong.status.code(), Some(2));
    let nobody = run(&["analytics", "list", "--state", arg(&state.state())]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("plimsoll serve"));
    server.end();
}

#[test]
fn two_servers_do_not_share_a_state() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, address(), None);
    let second = serve_command(&scratch, address(), &[]).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let why = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(why.contains(&format!("pid {}", server.pid())), "{why}");
    server.end();
    Server::start(&scratch, address(), None).end();
}

#[test]
fn a_killed_server_leaves_nothing_in_the_way() {
    let (scratch, at) = (Scratch::new(), address());
    let killed = Server::start(&scratch, at, None);
    drop(killed);
    assert!(scratch.state().join("plimsoll.sock").exists(), "it had no time to tidy up");
    Server::start(&scratch, at, None).end();
}

#[test]
fn a_taken_port_is_named() {
    for port in [12_049, 10_215] {
        let (scratch, at) = (Scratch::new(), address());
        let _taken = TcpListener::bind((at, port)).unwrap();
        let out = serve_command(&scratch, at, &[]).output().unwrap();
        assert_eq!(out.status.code(), Some(1));
        let why = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(why.contains(&format!("port {port} is in use")), "{why}");
        assert!(why.contains("--port-offset"), "{why}");
    }
}

#[test]
fn what_cannot_be_served_is_reported() {
    let scratch = Scratch::new();
    let data = scratch.data();
    let (missing, file) = (data.join("x"), data.join("file"));
    std::fs::write(&file, "").unwrap();
    let cases: [(&[&str], i32, &str); 6] = [
        (&["serve", arg(&missing)], 1, "the directory does not exist"),
        (&["serve", arg(&file)], 1, "not a directory"),
        (&["serve", arg(&data), "--user", "nobody"], 2, "missing ':'"),
        (&["serve", arg(&data), "--port-offset", "65000"], 2, "65535"),
        (&["serve", arg(&data), "--state", arg(&file)], 1, "state"),
        (&["serve", "--frobnicate"], 2, "--frobnicate"),
    ];
    for (args, code, says) in cases {
        let out = run(args);
        let why = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(code), "{args:?}: {why}");
        assert!(why.contains(says), "{args:?}: {why}");
    }
}

#[test]
fn the_output_names_the_command_to_type() {
    let (scratch, at) = (Scratch::new(), address());
    let read = || {
        let mut child = serve_command(&scratch, at, &[]).stdout(Stdio::piped()).spawn().unwrap();
        let mut text = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        while !text.contains("SIGTERM") {
            assert_ne!(lines.read_line(&mut text).unwrap(), 0, "ended early: {text}");
        }
        // SAFETY: our own child, not yet waited for.
        unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
        lines.read_to_string(&mut text).unwrap();
        assert!(child.wait().unwrap().success());
        text
    };
    let first = read();
    assert!(first.contains(&format!("{at}:/export/data /mnt")), "{first}");
    assert!(first.contains("/login?once="), "{first}");
    assert!(first.contains("user admin, password "), "{first}");
    let second = read();
    assert!(!second.contains("password"), "printed once only: {second}");
}

#[test]
fn an_ordinary_user_can_serve() {
    if !is_root() {
        println!("SKIP an_ordinary_user_can_serve: not root, so every other test shows it");
        return;
    }
    let scratch = Scratch::new();
    scratch.give_to(NOBODY);
    let server = Server::start(&scratch, address(), Some(NOBODY));
    let meta = std::fs::metadata(scratch.state().join("api-token")).unwrap();
    assert_eq!((meta.uid(), meta.mode() & 0o777), (NOBODY, 0o600));
    let local = Client::local(&scratch.state().join("plimsoll.sock"));
    let status: Value = serde_json::from_slice(&local.get("/api/v1/status").unwrap()).unwrap();
    assert_eq!(status["acting_as"]["privileged"], false);
    assert_eq!(server.end().0.code(), Some(0));
}

/// The state of a process, the third field of /proc/PID/stat: a letter.
fn process_state(pid: u32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    after.chars().take(1).collect()
}

/// Starts a server and stops it (SIGSTOP) when it has its state directory, and no local socket yet.
fn stopped_while_it_starts(scratch: &Scratch) -> Child {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let mut command = serve_command(scratch, address(), &["--announce", "json"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lock = scratch.state().join("lock");
        while std::fs::metadata(&lock).map_or(0, |meta| meta.len()) == 0 {
            assert!(Instant::now() < deadline, "it does not lock its state directory");
            std::thread::yield_now();
        }
        // SAFETY: our own child, not yet waited for.
        assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGSTOP) }, 0);
        while process_state(child.id()) != "T" {
            assert!(Instant::now() < deadline, "it does not stop");
            std::thread::yield_now();
        }
        if !scratch.state().join("plimsoll.sock").exists() {
            return child;
        }
        // This test was late; it is tried again.
        kill_and_wait(child);
        std::fs::remove_dir_all(scratch.state()).unwrap();
    }
}

fn kill_and_wait(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A command for a server, and the first line of its standard error.
fn command_that_waits(scratch: &Scratch) -> (Child, BufReader<ChildStderr>, String) {
    let state = scratch.state();
    let words = ["cli", "--state", arg(&state), "-c", "shares"];
    let mut child = plimsoll(&words).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    (child, said, line)
}

#[test]
fn commands_wait_for_a_server_that_starts() {
    let scratch = Scratch::new();
    let server = stopped_while_it_starts(&scratch);
    let (mut command, _said, line) = command_that_waits(&scratch);
    assert!(line.contains("waiting until it has started"), "{line}");
    assert_eq!(command.try_wait().unwrap(), None);
    // SAFETY: our own child, not yet waited for.
    assert_eq!(unsafe { libc::kill(server.id() as i32, libc::SIGCONT) }, 0);
    assert_eq!(command.wait().unwrap().code(), Some(0));
    kill_and_wait(server);
}

#[test]
fn commands_do_not_wait_for_a_server_that_has_failed_to_start() {
    let scratch = Scratch::new();
    let server = stopped_while_it_starts(&scratch);
    let (mut command, mut said, line) = command_that_waits(&scratch);
    assert!(line.contains("waiting until it has started"), "{line}");
    kill_and_wait(server);
    assert_eq!(command.wait().unwrap().code(), Some(1));
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("cannot reach the server"), "{rest}");
}

/// A configuration with all services and a LUN.
const EVERYTHING: &str = r#"format = 1
["/configuration/services/smb"]
enabled = true
["/configuration/services/iscsi"]
enabled = true
"#;

/// Replaces what differs from run to run.
fn settled(text: &str, replacements: &[(&str, &str)]) -> String {
    replacements.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[test]
fn every_way_is_announced_and_answers() {
    let (scratch, at) = (Scratch::new(), address());
    let file = scratch.data().join("all.toml");
    std::fs::write(&file, EVERYTHING).unwrap();
    let more = ["--config", arg(&file), "--lun", "disk=4M"];
    let server = Server::start_with(&scratch, at, None, &more);
    let announced = &server.announced;
    // All of it answers as soon as it is announced.
    for way in announced["access"]["data"].as_array().unwrap() {
        let port = u16::try_from(way["port"].as_u64().unwrap()).unwrap();
        TcpStream::connect((at, port)).unwrap_or_else(|e| panic!("{way}: {e}"));
    }
    let lun = &announced["luns"]["default/disk"];
    TcpStream::connect(lun["portal"].as_str().unwrap()).expect("the portal");
    let (token, certificate) = (scratch.state().join("api-token"), server.text("certificate"));
    let remote = Client::remote(server.text("admin"), &token, Path::new(certificate)).unwrap();
    assert_eq!(status_code(&remote, "/api/v1/status"), 200);
    let local = Client::local(Path::new(server.text("socket")));
    assert_eq!(status_code(&local, "/api/v1/status"), 200);
    let secret = std::fs::read_to_string(lun["secret_file"].as_str().unwrap()).unwrap();
    let text = announced.to_string();
    assert!(!text.contains(secret.trim()), "secrets are in files");

    let (at, state) = (at.to_string(), arg(&scratch.state()).to_owned());
    let login = server.text("login").rsplit_once('=').unwrap().1;
    let target = lun["target"].as_str().unwrap();
    let pid = format!("\"pid\": {}", server.pid());
    let pretty = serde_json::to_string_pretty(announced).unwrap() + "\n";
    let replacements = [
        (at.as_str(), "ADDRESS"),
        (&state, "STATE"),
        (login, "ONCE"),
        (target, "IQN"),
        (&pid, "\"pid\": 0"),
    ];
    let settled = settled(&pretty, &replacements);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/announce.json");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&golden, &settled).unwrap();
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(settled, expected, "UPDATE_GOLDEN=1 writes tests/golden/announce.json");
    assert_eq!(server.end().0.code(), Some(0));
}
