//! Builds of the server for a comparison: each run has a separate server, started on a scratch
//! share with a new state directory, and removed with both afterwards.

use base::clock::Deadline;
use base::random::{Random, SystemRandom};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long a server may take to get ready.
const START: Duration = Duration::from_secs(60);
/// How long it may take to end before it is killed.
const STOP: Duration = Duration::from_secs(20);
/// Name of the share, and of its directory.
const SHARE: &str = "ab";
/// Standard ports of the services, which all move by one offset.
const PORTS: [u16; 11] = [21, 80, 111, 215, 218, 443, 445, 990, 2049, 2150, 3260];
/// Offsets that are tried: the ports stay below the kernel's ephemeral ones.
const OFFSETS: std::ops::Range<u16> = 29_000..29_500;
/// How many of them.
const TRIES: u32 = 200;

/// A server that runs. Dropping it ends it and removes its directories.
#[derive(Debug)]
pub(super) struct Served {
    child: Child,
    scratch: Scratch,
    /// URL of its share.
    pub(super) url: String,
}

/// A directory that is removed at the end.
#[derive(Debug)]
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left of a scratch directory is the system's to remove.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Served {
    /// Starts a build and waits until it is ready.
    ///
    /// # Errors
    /// What it printed instead.
    pub(super) fn start(program: &Path, protocol: &str) -> Result<Self, String> {
        let name = program.display();
        let scratch = scratch()?;
        let (dir, state) = (scratch.0.join(SHARE), scratch.0.join("state"));
        std::fs::create_dir(&dir).map_err(|e| format!("cannot create {}: {e}", dir.display()))?;
        let offset = free_offset().ok_or("no free ports found for the server")?;
        let log = scratch.0.join("log");
        let errors = std::fs::File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        let mut child = Command::new(program)
            .arg("serve")
            .arg(&dir)
            .arg("--state")
            .arg(&state)
            .args(["--address", "127.0.0.1", "--port-offset", &offset.to_string()])
            .args(["--announce", "json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .map_err(|e| format!("cannot start {name}: {e}"))?;
        let line = first_line(&mut child);
        let mut served = Self { child, scratch, url: String::new() };
        let announced: Option<Value> = line.and_then(|line| serde_json::from_str(&line).ok());
        let Some(announced) = announced else {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            let last = text.lines().last().unwrap_or("no message");
            return Err(format!("{name} serve did not get ready: {last}"));
        };
        served.url = url(&announced, protocol)
            .ok_or_else(|| format!("{name} serve does not offer {protocol}"))?;
        Ok(served)
    }

    /// Its process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its local socket.
    pub(super) fn socket(&self) -> PathBuf {
        self.scratch.0.join("state/plimsoll.sock")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // SAFETY: a signal to a child that was not waited for yet.
        unsafe { libc::kill(self.child.id().cast_signed(), libc::SIGTERM) };
        let deadline = Deadline::after(STOP);
        while matches!(self.child.try_wait(), Ok(None)) {
            if deadline.passed() {
                let _ = self.child.kill();
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.wait();
    }
}

/// URL of the share over a protocol, as the server announces it.
fn url(announced: &Value, protocol: &str) -> Option<String> {
    let ways = announced["access"][SHARE].as_array()?;
    let way = ways.iter().find(|way| way["protocol"] == protocol)?;
    way["url"].as_str().map(str::to_owned)
}

/// The line that a server prints when it is ready; what follows is read and dropped.
fn first_line(child: &mut Child) -> Option<String> {
    let out = child.stdout.take()?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut out, mut line) = (BufReader::new(out), String::new());
        let read = out.read_line(&mut line);
        if read.is_ok() && sender.send(line).is_ok() {
            let mut rest = [0; 4096];
            while matches!(out.read(&mut rest), Ok(n) if n > 0) {}
        }
    });
    receiver.recv_timeout(START).ok().filter(|line| !line.is_empty())
}

/// A directory that no other user can enter, except to serve what is in it.
fn scratch() -> Result<Scratch, String> {
    let dir = std::env::temp_dir().join(format!("plimsoll-ab-{:016x}", SystemRandom.next_u64()));
    let made = std::fs::DirBuilder::new().mode(0o711).create(&dir);
    made.map_err(|e| format!("cannot create {}: {e}", dir.display()))?;
    Ok(Scratch(dir))
}

/// An offset at which all services find their ports free.
fn free_offset() -> Option<u16> {
    let span = u64::from(OFFSETS.end - OFFSETS.start);
    let offset = |_| OFFSETS.start + SystemRandom.below(span) as u16;
    let is_free = |offset: &u16| {
        PORTS.iter().all(|port| TcpListener::bind(("127.0.0.1", port + offset)).is_ok())
    };
    (0..TRIES).map(offset).find(is_free)
}

#[cfg(test)]
mod tests;
