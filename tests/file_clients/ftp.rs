//! Programs that speak FTP alone: ncftp and the `ftp` of NetBSD.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use e2e::process::succeed;

use super::scene::{ClientSetup, PASSWORD, USER, escaped, line};
use super::several::Args;
use super::tasks::{Task, all};

#[test]
fn ncftp() {
    let Some(place) = ClientSetup::needing("ncftp", &["ncftpput"]) else { return };
    let port = place.scene.port(21);
    let sign_in = ["-u", USER, "-p", PASSWORD, "-P", &port];
    let path = |path: &[u8]| OsString::from_vec([b"/data/", path].concat());
    let ncftp = |program: &str, args: Args<'_>| {
        let mut command = place.program(program);
        command.args(sign_in);
        args(&mut command);
        Some(succeed(&mut command))
    };
    let shell = |commands: &[u8]| {
        let done = place.fed(place.program("ncftp").args(sign_in).arg("127.0.0.1"), commands);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Some(done.stdout)
    };
    all(&place, &|task: Task<'_>| match task {
        Task::Upload(from, to) => {
            ncftp("ncftpput", &mut |c| c.args(["-C", "127.0.0.1"]).arg(from).arg(path(to)))
        }
        Task::Download(from, to) => {
            ncftp("ncftpget", &mut |c| c.args(["-Z", "-C", "127.0.0.1"]).arg(path(from)).arg(to))
        }
        // It sends the offset (REST) and then the whole file, so that the result is too large.
        Task::ResumeUpload(..) => None,
        Task::ResumeDownload(from, to, _) => {
            ncftp("ncftpget", &mut |c| c.args(["-z", "-C", "127.0.0.1"]).arg(path(from)).arg(to))
        }
        Task::Rename(from, to) => shell(&line(&[b"cd /data\nrename", from, to, b"\nquit"])),
        Task::Delete(path) => shell(&line(&[b"cd /data\nrm", path, b"\nquit"])),
        Task::List(path) => {
            ncftp("ncftpls", &mut |c| c.arg(format!("ftp://127.0.0.1/data/{}/", escaped(path))))
        }
    });
}

/// As tnftp has words: there is no quote within quotes.
fn escape(name: &[u8]) -> Vec<u8> {
    name.iter().fold(Vec::new(), |mut text, byte| {
        if matches!(byte, b' ' | b'"' | b'\'' | b'\\') {
            text.push(b'\\');
        }
        text.push(*byte);
        text
    })
}

#[test]
fn tnftp() {
    let Some(place) = ClientSetup::needing("ftp (tnftp)", &["tnftp"]) else { return };
    let port = place.scene.port(21);
    let tnftp = |commands: &[&[u8]]| {
        let mut script =
            format!("open 127.0.0.1 {port}\nuser {USER} {PASSWORD}\ncd data\nbinary\n")
                .into_bytes();
        script.extend_from_slice(&line(commands));
        let done = place.fed(place.program("tnftp").args(["-n", "-i"]), &script);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Some(done.stdout)
    };
    let here = |path: &Path| escape(path.as_os_str().as_bytes());
    all(&place, &|task: Task<'_>| match task {
        Task::Upload(from, to) => tnftp(&[b"put", &here(from), &escape(to)]),
        Task::Download(from, to) => tnftp(&[b"get", &escape(from), &here(to)]),
        Task::ResumeUpload(from, to, at) => {
            let restart = format!("restart {at}\nput");
            tnftp(&[restart.as_bytes(), &here(from), &escape(to)])
        }
        Task::ResumeDownload(from, to, _) => tnftp(&[b"reget", &escape(from), &here(to)]),
        Task::Rename(from, to) => tnftp(&[b"rename", from, to]),
        Task::Delete(path) => tnftp(&[b"delete", path]),
        Task::List(path) => tnftp(&[b"nlist", path]),
    });
}
