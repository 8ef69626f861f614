//! The real program, started on a scratch directory and ended by its pid.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::io::{BufRead, BufReader, Read};
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The unprivileged user of the tests.
pub const NOBODY: u32 = 65_534;
/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Whether this test runs as root.
pub fn is_root() -> bool {
    // SAFETY: geteuid cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// A folder that goes with the test.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A folder that every user can look into.
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("plimsoll-appliance-{}-{n}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(path.join("data")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        Self(path)
    }
    /// The folder to serve.
    pub fn data(&self) -> PathBuf {
        self.0.join("data")
    }
    /// A state directory that does not exist yet.
    pub fn state(&self) -> PathBuf {
        self.0.join("state")
    }
    /// Gives everything in it to a user.
    pub fn give_to(&self, uid: u32) {
        for path in [self.0.clone(), self.data()] {
            std::os::unix::fs::chown(path, Some(uid), Some(uid)).unwrap();
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A loopback address that no other test or program listens on, so that all may use the same
/// ports.
pub fn address() -> Ipv4Addr {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let pid = std::process::id();
    // The low bits of the pid distinguish test programs; n, the tests of one program.
    Ipv4Addr::new(127, 23 + (pid >> 8) as u8 % 64, pid as u8, n as u8)
}

/// `plimsoll` with arguments.
pub fn plimsoll(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub fn run(args: &[&str]) -> Output {
    plimsoll(args).output().unwrap()
}

/// `serve` with the usual options of a test.
pub fn serve_command(scratch: &Scratch, address: Ipv4Addr, more: &[&str]) -> Command {
    let mut command = plimsoll(&["serve"]);
    command.arg(scratch.data()).arg("--state").arg(scratch.state());
    command.arg("--address").arg(address.to_string()).args(more);
    command
}

/// A running server.
pub struct Server {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    /// What it has announced.
    pub announced: Value,
}

impl Server {
    /// Starts `serve` and waits for its announcement.
    pub fn start(scratch: &Scratch, address: Ipv4Addr, uid: Option<u32>) -> Self {
        Self::start_with(scratch, address, uid, &[])
    }

    /// The same with more options.
    pub fn start_with(
        scratch: &Scratch,
        address: Ipv4Addr,
        uid: Option<u32>,
        more: &[&str],
    ) -> Self {
        let mut command = serve_command(scratch, address, &["--announce", "json"]);
        command.args(more);
        if let Some(uid) = uid {
            command.uid(uid).gid(uid).env_remove("HOME").env_remove("XDG_RUNTIME_DIR");
        }
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        if line.is_empty() {
            let mut why = String::new();
            child.stderr.take().unwrap().read_to_string(&mut why).unwrap();
            panic!("no announcement: {why}");
        }
        Self { child, stdout, announced: serde_json::from_str(&line).expect("one JSON line") }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The value of an announced text field.
    pub fn text(&self, field: &str) -> &str {
        self.announced[field].as_str().unwrap_or_else(|| panic!("{field}: {}", self.announced))
    }

    /// SIGTERM; its exit status, what else it wrote to standard output, and how long it took.
    pub fn end(mut self) -> (ExitStatus, String, Duration) {
        let asked = Instant::now();
        // SAFETY: our own child, not yet waited for: the pid is its.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) }, 0);
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        // Its output has ended, so it is ending; PATIENCE only bounds a failure.
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status, rest, asked.elapsed());
            }
            assert!(asked.elapsed() < PATIENCE, "does not end");
            std::thread::yield_now();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Does nothing to one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A path as an argument.
pub fn arg(path: &Path) -> &str {
    path.to_str().unwrap()
}
