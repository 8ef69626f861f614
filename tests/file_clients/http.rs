//! Programs that speak HTTP and WebDAV alone: cadaver and a browser.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use e2e::browser::Browser;
use e2e::process::succeed;
use e2e::{browser, skip};
use serde_json::{Value, json};

use super::scene::{ClientSetup, PASSWORD, USER, escaped, line, quoted, quoted_path};
use super::tasks::{Task, all};

/// What a shell does where the share is mounted.
pub fn mounted(at: &Path, task: Task<'_>) -> Option<Vec<u8>> {
    let there = |name: &[u8]| at.join(OsStr::from_bytes(name));
    let shell = |script: &str, one: &Path, two: &Path, more: u64| {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("set -e; {script}"), "sh"]).arg(one).arg(two);
        Some(succeed(command.arg((more + 1).to_string())))
    };
    match task {
        Task::Upload(from, to) => shell("cp \"$1\" \"$2\"", from, &there(to), 0),
        Task::Download(from, to) => shell("cp \"$1\" \"$2\"", &there(from), to, 0),
        Task::ResumeUpload(from, to, at) => {
            shell("tail -c \"+$3\" \"$1\" >>\"$2\"", from, &there(to), at)
        }
        Task::ResumeDownload(from, to, at) => {
            shell("tail -c \"+$3\" \"$1\" >>\"$2\"", &there(from), to, at)
        }
        Task::Rename(from, to) => shell("mv \"$1\" \"$2\"", &there(from), &there(to), 0),
        Task::Delete(name) => shell("rm \"$1\"", &there(name), at, 0),
        Task::List(name) => shell("ls -1 \"$1\"", &there(name), at, 0),
    }
}

/// The share over plain HTTP.
fn plain(place: &ClientSetup) -> String {
    format!("http://127.0.0.1:{}/data/", place.scene.port(80))
}

#[test]
fn cadaver() {
    let Some(place) = ClientSetup::needing("cadaver", &["cadaver"]) else { return };
    let netrc = format!("machine 127.0.0.1\nlogin {USER}\npassword {PASSWORD}\n");
    fs::write(place.local.join(".netrc"), netrc).expect("written");
    let cadaver = |parts: &[&[u8]]| {
        // It drops what is no character of the locale.
        let mut cadaver = place.program("cadaver");
        cadaver.arg(plain(&place)).env("LC_ALL", "C");
        let done = place.fed(&mut cadaver, &line(parts));
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && !said.contains("failed"), "{said}");
        Some(done.stdout)
    };
    all(&place, &|task: Task<'_>| match task {
        Task::Upload(from, to) => cadaver(&[b"put", &quoted_path(from), &quoted(to)]),
        Task::Download(from, to) => cadaver(&[b"get", &quoted(from), &quoted_path(to)]),
        Task::Rename(from, to) => cadaver(&[b"move", &quoted(from), &quoted(to)]),
        Task::Delete(name) => cadaver(&[b"delete", &quoted(name)]),
        // It can, but sorts one name after the other, half a minute long.
        Task::List(_) => None,
        Task::ResumeUpload(..) | Task::ResumeDownload(..) => None,
    });
}

/// What the browser uploads in two parts, of which the second breaks.
const PARTS: usize = (16 << 20) + 1_000_000;

#[test]
fn chromium() {
    if let Some(what) = browser::missing() {
        skip!("clients chromium", "{what}");
    }
    let place = ClientSetup::new("Chromium").with_pages();
    let base = format!("https://127.0.0.1:{}/data/", place.scene.port(443));
    let chromium = RefCell::new(Browser::with("tests/browser/files.mjs"));
    let ask = |request: &Value| {
        let done = chromium.borrow_mut().ask(request);
        done.unwrap_or_else(|why| panic!("{request}: {why}"))
    };
    ask(&json!({"do": "open", "url": base, "user": USER, "password": PASSWORD}));
    // A path's folder, and its last name as a link has it.
    let at = |path: &[u8]| {
        let path = escaped(path);
        let (folder, name) = path.rsplit_once('/').expect("a folder");
        (format!("{base}{folder}/"), name.to_owned())
    };
    all(&place, &|task: Task<'_>| match task {
        Task::Upload(from, to) => {
            let ((url, href), file) = (at(to), from.to_str()?);
            ask(&json!({"do": "upload", "url": url, "file": file, "href": href}));
            Some(Vec::new())
        }
        Task::Download(from, to) => {
            let (url, href) = at(from);
            ask(&json!({"do": "download", "url": url, "href": href, "to": to}));
            Some(Vec::new())
        }
        Task::Rename(from, to) => {
            let ((url, href), (_, now)) = (at(from), at(to));
            ask(&json!({"do": "rename", "url": url, "href": href, "name": now, "now": now}));
            Some(Vec::new())
        }
        Task::Delete(path) => {
            let (url, href) = at(path);
            ask(&json!({"do": "remove", "url": url, "href": href}));
            Some(Vec::new())
        }
        Task::List(path) => {
            let url = format!("{base}{}/", escaped(path));
            let said = ask(&json!({"do": "list", "url": url}));
            Some(said.as_str().expect("names").as_bytes().to_vec())
        }
        Task::ResumeUpload(..) | Task::ResumeDownload(..) => None,
    });
    let file = place.local.join("parts");
    let data: Vec<u8> = (0..PARTS).map(|n| (n / 5) as u8).collect();
    fs::write(&file, &data).expect("a local file");
    let (url, href) = at(b"Chromium/parts");
    let parts =
        ask(&json!({"do": "upload", "url": url, "file": file, "href": href, "breaks": true}));
    assert!(parts.as_u64() >= Some(3), "the broken part was sent again: {parts}");
    assert!(fs::read(place.there.join("parts")).is_ok_and(|there| there == data));
}
