//! Programs that speak several protocols: curl, wget, lftp, rclone.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::process::Command;

use e2e::process::succeed;

use super::scene::{ClientSetup, PASSWORD, USER, escaped, quoted, quoted_path};
use super::tasks::{Task, all};

/// Adds the arguments of one call to those that a program always has.
pub type Args<'a> = &'a mut dyn for<'c> FnMut(&'c mut Command) -> &'c mut Command;

/// Where the share is for a scheme.
fn base(place: &ClientSetup, scheme: &str) -> String {
    let standard = match scheme {
        "ftp" => 21,
        "ftps" => 990,
        "https" => 443,
        _ => 218,
    };
    format!("{scheme}://127.0.0.1:{}/data/", place.scene.port(standard))
}

fn curl(place: &ClientSetup, scheme: &'static str, how: &[&str]) {
    let base = base(place, scheme);
    let url = |path: &[u8]| format!("{base}{}", escaped(path));
    let curl = |args: Args<'_>| {
        let mut command = place.program("curl");
        command.args(["-sSfk", "--user", &format!("{USER}:{PASSWORD}")]).args(how);
        args(&mut command);
        Some(succeed(&mut command))
    };
    let shared = |path: &[u8]| format!("/data/{}", String::from_utf8_lossy(path));
    // What is not transferred is a command before a listing that is not asked for.
    let quote = |commands: &[String]| {
        curl(&mut |c| {
            for command in commands {
                c.args(["-Q", command]);
            }
            c.args(["-I", &base])
        })
    };
    all(place, &|task: Task<'_>| match task {
        Task::Upload(from, to) => curl(&mut |c| c.arg("-T").arg(from).arg(url(to))),
        Task::Download(from, to) => curl(&mut |c| c.arg("-o").arg(to).arg(url(from))),
        Task::ResumeUpload(from, to, at) => {
            curl(&mut |c| c.args(["-C", &at.to_string(), "-T"]).arg(from).arg(url(to)))
        }
        Task::ResumeDownload(from, to, _) => {
            curl(&mut |c| c.args(["-C", "-", "-o"]).arg(to).arg(url(from)))
        }
        Task::Rename(from, to) if scheme == "https" => {
            let to = format!("Destination: {}", url(to));
            curl(&mut |c| c.args(["-X", "MOVE", "-H", &to, &url(from)]))
        }
        Task::Rename(from, to) if scheme == "sftp" => {
            quote(&[format!("rename {} {}", shared(from), shared(to))])
        }
        Task::Rename(from, to) => {
            quote(&[format!("RNFR {}", shared(from)), format!("RNTO {}", shared(to))])
        }
        Task::Delete(path) if scheme == "https" => {
            curl(&mut |c| c.args(["-X", "DELETE", &url(path)]))
        }
        Task::Delete(path) if scheme == "sftp" => quote(&[format!("rm {}", shared(path))]),
        Task::Delete(path) => quote(&[format!("DELE {}", shared(path))]),
        // The page shows a part of a large directory; JSON has all of it.
        Task::List(path) if scheme == "https" => {
            curl(&mut |c| c.args(["-H", "Accept: application/json", &(url(path) + "/")]))
        }
        Task::List(path) => curl(&mut |c| c.arg(url(path) + "/")),
    });
}

#[test]
fn curl_ftp() {
    let Some(place) = ClientSetup::needing("curl, FTP", &["curl"]) else { return };
    curl(&place, "ftp", &[]);
}

#[test]
fn curl_ftps() {
    let Some(place) = ClientSetup::needing("curl, FTPS", &["curl"]) else { return };
    curl(&place, "ftps", &["--ssl-reqd"]);
}

#[test]
fn curl_https() {
    let Some(place) = ClientSetup::needing("curl, HTTPS", &["curl"]) else { return };
    curl(&place, "https", &[]);
}

#[test]
fn curl_sftp() {
    let Some(place) = ClientSetup::needing("curl, SFTP", &["curl"]) else { return };
    curl(&place, "sftp", &[]);
}

fn wget(place: &ClientSetup, scheme: &'static str) {
    let base = base(place, scheme);
    let url = |path: &[u8]| format!("{base}{}", escaped(path));
    let wget = |how: &[&OsStr], url: &str| {
        let mut command = place.program("wget");
        command.args(["-nv", "--tries=2", "--timeout=50", "--no-check-certificate"]);
        command.args(["--user", USER, "--password", PASSWORD, "--auth-no-challenge"]);
        Some(succeed(command.args(how).arg(url)))
    };
    all(place, &|task: Task<'_>| match task {
        Task::Upload(from, to) if scheme == "https" => {
            wget(&["--method=PUT".as_ref(), "--body-file".as_ref(), from.as_ref()], &url(to))
        }
        Task::Download(from, to) => wget(&["-O".as_ref(), to.as_ref()], &url(from)),
        Task::ResumeDownload(from, to, _) => {
            wget(&["-c".as_ref(), "-O".as_ref(), to.as_ref()], &url(from))
        }
        Task::List(path) => {
            let json = "--header=Accept: application/json";
            wget(&[json.as_ref(), "-O".as_ref(), "-".as_ref()], &(url(path) + "/"))
        }
        _ => None,
    });
}

#[test]
fn wget_ftp() {
    let Some(place) = ClientSetup::needing("wget, FTP", &["wget"]) else { return };
    wget(&place, "ftp");
}

#[test]
fn wget_https() {
    let Some(place) = ClientSetup::needing("wget, HTTPS", &["wget"]) else { return };
    wget(&place, "https");
}

fn lftp(place: &ClientSetup, scheme: &'static str, settings: &str) {
    let base = base(place, scheme);
    let lftp = |commands: &[Vec<u8>]| {
        let mut script = b"set ssl:verify-certificate no; set cmd:fail-exit yes; \
            set net:max-retries 2; set sftp:auto-confirm yes; "
            .to_vec();
        script.extend_from_slice(settings.as_bytes());
        script.extend_from_slice(format!("; open -u {USER},{PASSWORD} {base}; ").as_bytes());
        script.extend_from_slice(&commands.join(&b' '));
        let path = place.local.join("script");
        fs::write(&path, script).expect("a script");
        Some(succeed(place.program("lftp").args(["--norc", "-f"]).arg(path)))
    };
    let word = |word: &str| word.as_bytes().to_vec();
    all(place, &|task: Task<'_>| match task {
        Task::Upload(from, to) => lftp(&[word("put"), quoted_path(from), word("-o"), quoted(to)]),
        Task::Download(from, to) => lftp(&[word("get"), quoted(from), word("-o"), quoted_path(to)]),
        Task::ResumeUpload(from, to, _) => {
            lftp(&[word("put -c"), quoted_path(from), word("-o"), quoted(to)])
        }
        Task::ResumeDownload(from, to, _) => {
            lftp(&[word("get -c"), quoted(from), word("-o"), quoted_path(to)])
        }
        Task::Rename(from, to) => lftp(&[word("mv"), quoted(from), quoted(to)]),
        Task::Delete(path) => lftp(&[word("rm"), quoted(path)]),
        Task::List(path) => lftp(&[word("cls -1"), [path, b"/"].concat()]),
    });
}

#[test]
fn lftp_ftps() {
    let Some(place) = ClientSetup::needing("lftp, FTPS", &["lftp"]) else { return };
    lftp(&place, "ftps", "set ftp:ssl-protect-data yes");
}

#[test]
fn lftp_sftp() {
    let Some(place) = ClientSetup::needing("lftp, SFTP", &["lftp", "ssh"]) else { return };
    let ssh = "ssh -a -x -F none -o StrictHostKeyChecking=no -o UserKnownHostsFile=known -i";
    let bytes = "set sftp:charset ISO-8859-1; set file:charset ISO-8859-1";
    let settings =
        format!("set sftp:connect-program \"{ssh} {}\"; {bytes}", place.scene.key().display());
    lftp(&place, "sftp", &settings);
}

pub fn rclone(place: &ClientSetup, config: &str) {
    let secret = succeed(place.program("rclone").args(["obscure", PASSWORD]));
    let secret = String::from_utf8(secret).expect("text");
    fs::write(
        place.local.join("rclone.conf"),
        format!("[d]\n{config}\nuser = {USER}\npass = {secret}"),
    )
    .expect("its configuration");
    let rclone = |args: &[&OsStr]| {
        let mut command = place.program("rclone");
        command.args(["--config", "rclone.conf", "--no-check-certificate", "--retries", "1"]);
        Some(succeed(command.args(args)))
    };
    let remote = |path: &[u8]| OsString::from_vec([b"d:data/", path].concat());
    all(place, &|task: Task<'_>| match task {
        Task::Upload(from, to) => rclone(&["copyto".as_ref(), from.as_ref(), &remote(to)]),
        Task::Download(from, to) => rclone(&["copyto".as_ref(), &remote(from), to.as_ref()]),
        Task::Rename(from, to) => rclone(&["moveto".as_ref(), &remote(from), &remote(to)]),
        Task::Delete(path) => rclone(&["deletefile".as_ref(), &remote(path)]),
        Task::List(path) => rclone(&["lsf".as_ref(), &remote(path)]),
        // It cannot resume; but `cat` begins at any offset.
        Task::ResumeDownload(from, to, at) if from == b"sparse" => {
            let rest = rclone(&[
                "cat".as_ref(),
                "--offset".as_ref(),
                at.to_string().as_ref(),
                &remote(from),
            ])?;
            let file = fs::OpenOptions::new().append(true).open(to).expect("the local file");
            (&file).write_all(&rest).expect("written");
            Some(rest)
        }
        Task::ResumeUpload(..) | Task::ResumeDownload(..) => None,
    });
}

#[test]
fn rclone_webdav() {
    let Some(place) = ClientSetup::needing("rclone, WebDAV", &["rclone"]) else { return };
    let url = format!("https://127.0.0.1:{}/", place.scene.port(443));
    rclone(&place, &format!("type = webdav\nurl = {url}\nvendor = other"));
}

#[test]
fn rclone_sftp() {
    let Some(place) = ClientSetup::needing("rclone, SFTP", &["rclone"]) else { return };
    let port = place.scene.port(218);
    rclone(&place, &format!("type = sftp\nhost = 127.0.0.1\nport = {port}\nshell_type = none"));
}

#[test]
fn rclone_ftp() {
    let Some(place) = ClientSetup::needing("rclone, FTP", &["rclone"]) else { return };
    let port = place.scene.port(21);
    rclone(
        &place,
        &format!(
            "type = ftp\nhost = 127.0.0.1\nport = {port}\nexplicit_tls = true\n\
             no_check_certificate = true"
        ),
    );
}
