//! Our own server as a process of a benchmark: started on a directory, and set by its command line.

use std::io::{self, BufRead, BufReader};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::group::Group;
use crate::servers::await_that;

/// The user that signs in to SMB.
pub const SMB_USER: &str = "smb-bench";
/// The password of that user.
pub const SMB_PASSWORD: &str = "bench-password";
/// Its number, which no user of a usual machine has.
pub const SMB_UID: u32 = 12_021;
/// The standard port of SMB.
pub const SMB_PORT: u16 = 445;

/// Starts the server at standard ports moved by `offset`, with its log in `log`; its processes, and
/// what it announces.
///
/// # Errors
/// It does not start, or does not announce itself.
pub fn start(
    binary: &Path,
    root: &Path,
    (state, log): (&str, &Path),
    offset: u16,
) -> io::Result<(Group, Value)> {
    let (program, root) = (binary.display().to_string(), root.display().to_string());
    let offset = offset.to_string();
    let words = [
        program.as_str(),
        "serve",
        &root,
        "--state",
        state,
        "--announce",
        "json",
        "--user",
        "keeper:keeper-password",
        "--port-offset",
        &offset,
    ];
    let mut group = Group::start(&words, log, Some(Stdio::piped()))?;
    let out = group.output().ok_or_else(|| io::Error::other("no standard output"))?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    Ok((group, serde_json::from_str(&line)?))
}

/// Gives the server lines of its command line.
///
/// # Errors
/// One is refused.
pub fn set(binary: &Path, state: &str, lines: &[String]) -> io::Result<()> {
    for line in lines {
        let done = Command::new(binary).args(["cli", "--state", state, "-c", line]).output()?;
        if !done.status.success() {
            let why = String::from_utf8_lossy(&done.stderr).trim().to_owned();
            return Err(io::Error::other(format!("{line}: {why}")));
        }
    }
    Ok(())
}

/// Enables SMB at a server, and makes its user.
///
/// # Errors
/// The server refuses its settings, or does not listen at `port`.
pub fn enable_smb(binary: &Path, state: &Path, port: u16) -> io::Result<()> {
    let user = format!("{SMB_USER} uid={SMB_UID} gid={SMB_UID} password={SMB_PASSWORD}");
    let lines = [
        "configuration services smb set enabled=true signing=offered".to_owned(),
        format!("configuration users create {user}"),
    ];
    set(binary, &state.display().to_string(), &lines)?;
    await_that("SMB", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok())
}

/// A share as a target of the laboratory.
pub fn smb_url(port: u16, share: &str) -> String {
    format!("smb://{SMB_USER}:{SMB_PASSWORD}@127.0.0.1:{port}/{share}")
}
