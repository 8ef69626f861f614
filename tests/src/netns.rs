//! Network namespaces of a test's own: one with a tap device for a guest (the host is 10.0.2.2, the
//! guest 10.0.2.15), or any that a few shell lines set up.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::process;

/// Address of this side of the tap device.
pub const HOST: &str = "10.0.2.2";
/// The tap device's name.
pub const TAP: &str = "tap0";

/// Sets up the tap device.
const SETUP: &str = "set -e
ip link set lo up
ip tuntap add dev tap0 mode tap
ip addr add 10.0.2.2/24 dev tap0
ip link set tap0 up
";
/// Ends every setup: prints `ready`, and keeps the namespace alive until the input ends.
const READY: &str = "
echo ready
read -r _ || :";

/// A namespace; it goes with this value, once nothing runs in it any more.
pub struct Namespace {
    holder: Child,
    file: Arc<File>,
}

impl Namespace {
    /// Makes one with a tap device. Needs root, `unshare`, `ip` and `/dev/net/tun`.
    ///
    /// # Errors
    /// What is missing.
    pub fn new() -> io::Result<Self> {
        Self::with(SETUP)
    }

    /// Makes one in which the shell lines `setup` have run. Needs root, `unshare`, and what
    /// `setup` uses.
    ///
    /// # Errors
    /// What is missing.
    pub fn with(setup: &str) -> io::Result<Self> {
        let mut holder = Command::new("unshare")
            .args(["-n", "sh", "-c", &format!("{setup}{READY}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(out) = holder.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        if line != "ready\n" {
            drop(holder.stdin.take());
            let output = holder.wait_with_output()?;
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(io::Error::other(why.trim().replace('\n', "; ")));
        }
        let file = Arc::new(File::open(format!("/proc/{}/ns/net", holder.id()))?);
        Ok(Self { holder, file })
    }

    /// Process that keeps it alive; names the namespace for `ip link … netns`.
    pub fn pid(&self) -> u32 {
        self.holder.id()
    }

    /// Makes `command` start in this namespace.
    pub fn enter(&self, command: &mut Command) {
        let file = self.file.clone();
        let enter = move || {
            // SAFETY: an open descriptor of a network namespace; setns is a bare system call.
            match unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        };
        // SAFETY: between fork and exec only setns is called, which allocates nothing.
        unsafe { command.pre_exec(enter) };
    }

    /// Runs `work` on a thread of its own within this namespace.
    ///
    /// # Panics
    /// The thread does, when it may not enter.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let file = self.file.clone();
        std::thread::spawn(move || {
            // SAFETY: an open descriptor of a network namespace; it concerns this thread alone.
            let entered = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
            assert_eq!(entered, 0, "{}", io::Error::last_os_error());
            work()
        })
    }
}

/// Moves the calling thread, and what it starts from then on, into namespaces of its own for the
/// network, mounts and the host name, and runs the shell lines `setup` there. Needs root.
///
/// # Errors
/// What is missing.
pub fn isolate(setup: &str) -> io::Result<()> {
    // SAFETY: a bare system call on the calling thread; nothing is shared with others after it.
    if unsafe { libc::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWNS | libc::CLONE_NEWUTS) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut shell = Command::new("sh");
    shell.args(["-ec", &format!("mount --make-rprivate /\nip link set lo up\n{setup}")]);
    let output = process::run(&mut shell, process::DEADLINE);
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The end of its input ends the holder; the signal is for one that hangs.
        drop(self.holder.stdin.take());
        if process::wait(&mut self.holder, process::DEADLINE).is_none() {
            let _gone = self.holder.kill();
            let _reaped = self.holder.wait();
        }
    }
}
