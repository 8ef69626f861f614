//! Programs that speak SMB: smbclient, rclone, impacket and smbprotocol. Names in Windows have no
//! quotes, and are Unicode: what has to do with others is "no".

use std::path::Path;

use e2e::process::succeed;

use super::scene::{ClientSetup, PASSWORD, USER, quoted_path};
use super::several::rclone;
use super::ssh::{Library, has_module, library};
use super::tasks::{Task, all};

/// The standard port of SMB.
const SMB: u16 = 445;

#[test]
fn smbclient() {
    let Some(place) = ClientSetup::needing("smbclient", &["smbclient"]) else { return };
    let (place, port) = (place.of_windows(), SMB);
    let port = place.scene.port(port);
    let there = |name: &[u8]| {
        let path = name.iter().map(|byte| if *byte == b'/' { b'\\' } else { *byte });
        // Within these quotes a `\` is a literal character.
        [&b"\""[..], &path.collect::<Vec<_>>(), b"\""].concat()
    };
    let here = |path: &Path| quoted_path(path);
    all(&place, &|task: Task<'_>| {
        let [verb, one, two] = match task {
            Task::Upload(from, to) => [b"put".to_vec(), here(from), there(to)],
            Task::Download(from, to) => [b"get".to_vec(), there(from), here(to)],
            // Its `reput` writes the rest of the file to the front.
            Task::ResumeUpload(..) => return None,
            Task::ResumeDownload(from, to, _) => [b"reget".to_vec(), there(from), here(to)],
            Task::Rename(from, to) => [b"rename".to_vec(), there(from), there(to)],
            Task::Delete(name) => [b"del".to_vec(), there(name), Vec::new()],
            Task::List(name) => [b"ls".to_vec(), there(&[name, b"/*"].concat()), Vec::new()],
        };
        let command = String::from_utf8([verb, one, two].join(&b' ')).expect("text");
        let mut smbclient = place.program("smbclient");
        smbclient.args(["//127.0.0.1/data", "-p", &port, "-U", &format!("{USER}%{PASSWORD}")]);
        Some(succeed(smbclient.args(["-m", "SMB3", "-c", &command])))
    });
}

#[test]
fn rclone_smb() {
    let Some(place) = ClientSetup::needing("rclone, SMB", &["rclone"]) else { return };
    let backends = succeed(place.program("rclone").args(["help", "backends"]));
    let backends = String::from_utf8_lossy(&backends);
    if !backends.lines().any(|line| line.trim().starts_with("smb ")) {
        println!("SKIP clients rclone, SMB: it is older than 1.60");
        return;
    }
    let port = place.scene.port(SMB);
    rclone(&place.of_windows(), &format!("type = smb\nhost = 127.0.0.1\nport = {port}"));
}

/// The interpreter that has libraries of PyPI: `PLIMSOLL_PYTHON`, or the system's.
fn python() -> String {
    std::env::var("PLIMSOLL_PYTHON").unwrap_or_else(|_| "/usr/bin/python3".to_owned())
}

/// A library of PyPI, of which this module is imported.
fn python_library((name, module): (&'static str, &str), text: &str, lacks: &[&str]) {
    let python = python();
    if has_module(&python, module, name) {
        let script = ("client.py", text);
        library(&Library { name, runs: &[&python], port: SMB, script, lacks });
    }
}

#[test]
fn impacket() {
    // It writes files as a whole.
    let text = include_str!("impacket_client.py");
    python_library(("impacket", "impacket"), text, &["reput"]);
}

#[test]
fn smbprotocol() {
    let text = include_str!("smbprotocol_client.py");
    python_library(("smbprotocol", "smbclient"), text, &[]);
}

/// Libraries of Java, which `make test-long NAME=smb-java` fetches; `PLIMSOLL_SMB_JAVA` is their
/// folder.
mod java {
    use super::{Library, SMB, library};

    fn of_java(name: &'static str) {
        let Ok(folder) = std::env::var("PLIMSOLL_SMB_JAVA") else {
            println!("SKIP clients {name}: PLIMSOLL_SMB_JAVA is not set");
            return;
        };
        let script = ("Clients.java", include_str!("../fixtures/smb_java/Clients.java"));
        let (path, which) = (format!("{folder}/*"), format!("LIBRARY={name}"));
        let runs = ["env", &which, "java", "-cp", &path];
        library(&Library { name, runs: &runs, port: SMB, script, lacks: &[] });
    }

    #[test]
    fn smbj() {
        of_java("smbj");
    }

    #[test]
    fn jcifs_ng() {
        of_java("jcifs-ng");
    }
}
