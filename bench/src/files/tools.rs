//! The same transfers by curl and OpenSSH's `sftp`: a check that our client favours no server.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use base::clock::{NS_PER_S, monotonic_ns};
use lab::client::service::at::Scheme;
use serde::Serialize;

use super::case::{Case, Work};
use super::peers::{Endpoint, Peer};
use super::tree::Tree;
use super::{PASSWORD, Wanted, case};

/// Set when `ssh` runs this program as its askpass program.
pub const ASKED: &str = "PLIMSOLL_BENCH_ASKED";

/// A transfer by another client.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// Name of the case.
    pub case: String,
    /// The server.
    pub server: &'static str,
    /// The client.
    pub client: &'static str,
    /// MB/s, sign-in subtracted; `None` if it was refused.
    pub mb_s: Option<f64>,
    /// CPU time of the server, seconds per 10^9 bytes, sign-in subtracted.
    pub server_s_gb: Option<f64>,
}

/// Prints the password for `ssh`, when it has started this program as its askpass program.
pub fn answer() -> bool {
    let asked = std::env::var_os(ASKED).is_some();
    if asked {
        println!("{PASSWORD}");
    }
    asked
}

/// Transfers the large file of one stream in both directions over all protocols.
///
/// # Errors
/// When a server is gone. Transfers that a client does not support are empty.
pub fn run(tree: &Tree, wanted: &Wanted, peers: &[Peer]) -> io::Result<Vec<Check>> {
    let mut checks = Vec::new();
    let cases = case::all(wanted).into_iter();
    for case in cases.filter(|c| !c.is_small() && c.streams == 1) {
        if !case.name().contains(&wanted.only) {
            continue;
        }
        // Not an empty one: rclone refuses that.
        let tiny = Case { size: 1, ..case.clone() };
        for peer in peers {
            let Some(way) = peer.way(&case) else { continue };
            let client = if case.protocol == Scheme::Sftp { "sftp" } else { "curl" };
            let (mut mb_s, mut server_s_gb) = (None, None);
            let base = turn(&tiny, tree, peer, way)?;
            let whole = turn(&case, tree, peer, way)?;
            if let (Some(base), Some(whole)) = (base, whole) {
                mb_s = Some(case.size as f64 / 1e6 / (whole.0 - base.0).max(1e-9));
                server_s_gb = Some((whole.1 - base.1).max(0.0) * 1e9 / case.size as f64);
            }
            let server = peer.name;
            checks.push(Check { case: case.name(), server, client, mb_s, server_s_gb });
        }
    }
    Ok(checks)
}

/// Time and CPU of one command; `None` when it failed.
fn turn(case: &Case, tree: &Tree, peer: &Peer, way: &Endpoint) -> io::Result<Option<(f64, f64)>> {
    let folder = tree.place(&Case { work: Work::Upload, ..case.clone() });
    let source = tree.source(case)?;
    let remote = match case.work {
        Work::Download => source.file(0),
        Work::Upload => format!("{}-0", folder.folder()),
    };
    let local = tree.root.join(source.file(0));
    let before = peer.group.cpu_at_rest()?;
    let start = monotonic_ns();
    let done = match case.protocol {
        Scheme::Sftp => sftp(case.work, way, &remote, &local),
        _ => curl(case.work, way, &remote, &local),
    };
    let seconds = (monotonic_ns() - start) as f64 / NS_PER_S as f64;
    let used = peer.group.cpu_at_rest()? - before;
    let there = tree.root.join(&remote).metadata().is_ok_and(|m| m.len() == case.size);
    if case.work == Work::Upload {
        let _ = std::fs::remove_file(tree.root.join(&remote));
    }
    Ok((done.unwrap_or(false) && there).then_some((seconds, used)))
}

fn curl(work: Work, way: &Endpoint, remote: &str, local: &Path) -> io::Result<bool> {
    let at = &way.at;
    let scheme = match way.protocol {
        Scheme::Ftps => "ftp",
        other => other.name(),
    };
    // A path of FTP begins in the initial directory, unless it has a second slash.
    let slash = if scheme == "ftp" { "/" } else { "" };
    let url = format!("{scheme}://127.0.0.1:{}{slash}{}/{remote}", at.port, at.path);
    let mut command = Command::new("curl");
    command.args(["-sSfk", "--http1.1", "-H", "Expect:", "--tls13-ciphers"]);
    command.args(["TLS_AES_128_GCM_SHA256", "-u"]);
    command.arg(format!("{}:{PASSWORD}", super::USER));
    if way.protocol == Scheme::Ftps {
        command.arg("--ssl-reqd");
    }
    match work {
        Work::Download => command.args(["-o", "/dev/null"]),
        Work::Upload => command.arg("-T").arg(local),
    };
    let done = command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).output()?;
    Ok(done.status.success())
}

fn sftp(work: Work, way: &Endpoint, remote: &str, local: &Path) -> io::Result<bool> {
    let (at, own) = (&way.at, std::env::current_exe()?);
    let mut child = Command::new("sftp")
        .args(["-q", "-R", "64", "-B", "261120", "-P", &at.port.to_string()])
        .args(["-c", "aes128-gcm@openssh.com,aes128-ctr", "-o", "LogLevel=ERROR"])
        .args(["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"])
        .args(["-o", "PubkeyAuthentication=no", "-o", "NumberOfPasswordPrompts=1"])
        .arg(format!("{}@127.0.0.1", super::USER))
        .env("SSH_ASKPASS", own)
        .env("SSH_ASKPASS_REQUIRE", "force")
        .env(ASKED, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let remote = format!("{}/{remote}", at.path);
    let line = match work {
        Work::Download => format!("get {remote} /dev/null\n"),
        Work::Upload => format!("put {} {remote}\n", local.display()),
    };
    if let Some(mut input) = child.stdin.take() {
        io::Write::write_all(&mut input, line.as_bytes())?;
    }
    Ok(child.wait()?.success())
}
