//! Where passwords, tokens and keys may not be seen: the list of processes, what is printed, the
//! API, and every file that others could read.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;

use crate::harness;
use crate::harness::{Scratch, address, serve_command};
use control::client::Client;
use serde_json::Value;

const PASSWORD: &str = "Tr0ub4dor-and-3";

/// All that the kernel shows of a process's arguments.
fn arguments(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

#[test]
fn a_password_of_the_command_line_is_seen_nowhere() {
    let (scratch, at) = (Scratch::new(), address());
    let given = ["--announce", "json", "--user", &format!("anna:{PASSWORD}")];
    let mut command = serve_command(&scratch, at, &given);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut printed = String::new();
    stdout.read_line(&mut printed).unwrap();

    let shown = arguments(child.id());
    assert!(shown.contains("--user anna:*"), "the rest is left as it was: {shown}");
    assert!(shown.contains("--announce json"), "{shown}");
    assert!(!shown.contains(PASSWORD), "{shown}");

    let announced: Value = serde_json::from_str(&printed).expect("one JSON line");
    let state = scratch.state();
    let (token, certificate) = (state.join("api-token"), state.join("certificate.pem"));
    let remote =
        Client::remote(announced["admin"].as_str().unwrap(), &token, &certificate).unwrap();
    let body = |password| format!(r#"{{"user": "anna", "password": "{password}"}}"#);
    let answer = remote.post("/api/v1/session", &body(PASSWORD)).expect("still the password");
    let refused = remote.post("/api/v1/session", &body("wrong-one")).unwrap_err().to_string();
    let secret = std::fs::read_to_string(&token).unwrap();
    let status = remote.get("/api/v1/status").unwrap();
    let session = remote.get("/api/v1/session").unwrap();
    for text in [answer, status, session, refused.into_bytes()] {
        let text = String::from_utf8(text).unwrap();
        assert!(!text.contains(PASSWORD) && !text.contains("argon2"), "{text}");
        assert!(!text.contains("wrong-one") && !text.contains(secret.trim()), "{text}");
    }

    // SAFETY: our own child, not yet waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    stdout.read_to_string(&mut printed).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut printed).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!printed.contains(PASSWORD) && !printed.contains(secret.trim()), "{printed}");
    assert_eq!(files_with(&state, PASSWORD.as_bytes()), Vec::<String>::new());
}

#[test]
fn no_file_of_the_state_can_be_read_by_others() {
    let (scratch, at) = (Scratch::new(), address());
    let server = harness::Server::start(&scratch, at, None);
    let mut seen = 0;
    each_file(&scratch.state(), &mut |path| {
        let mode = std::fs::symlink_metadata(path).unwrap().mode();
        let holds_secret = [
            "key.pem",
            "authority-key.pem",
            "api-token",
            "handle-secret",
            "users.json",
            "secrets.json",
        ];
        let name = path.file_name().unwrap().to_str().unwrap();
        if holds_secret.contains(&name) {
            assert_eq!(mode & 0o077, 0, "{}", path.display());
            seen += 1;
        }
    });
    assert!(seen >= 4, "{seen}");
    let folder = std::fs::metadata(scratch.state()).unwrap().mode();
    assert_eq!(folder & 0o077, 0, "and nobody else gets into the folder");
    server.end();
}

fn files_with(dir: &Path, secret: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    each_file(dir, &mut |path| {
        let bytes = std::fs::read(path).unwrap();
        if bytes.windows(secret.len()).any(|part| part == secret) {
            found.push(path.display().to_string());
        }
    });
    found
}

fn each_file(dir: &Path, with: &mut dyn FnMut(&Path)) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let kind = std::fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() {
            each_file(&path, with);
        } else if kind.is_file() {
            with(&path);
        }
    }
}
