//! A program's processes as one: started in a new control group, so that the CPU time of forked and
//! ended children counts to the microsecond; ended with it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use base::clock::Deadline;
use host::Root;
use host::observe::family::Family;

/// Enters the group before it becomes the server.
const INTO_GROUP: &str = "[ -z \"$0\" ] || echo $$ >\"$0\"; exec \"$@\"";
/// CPU time of an idle server's timers, seconds in [`SETTLE_POLL`].
const SETTLED_S: f64 = 100e-6;
/// Interval of the checks.
const SETTLE_POLL: Duration = Duration::from_millis(5);
/// Time limit of the wait for an idle server.
const SETTLE_MAX: Duration = Duration::from_millis(500);
/// Time limit for a server to end on a request.
const END_MAX: Duration = Duration::from_secs(10);

/// Running processes of a server; end with the value.
pub struct Group {
    child: Child,
    /// Its folder in cgroup v2; `None` where that is unavailable.
    folder: Option<PathBuf>,
}

static GROUPS: AtomicU32 = AtomicU32::new(0);

impl Group {
    /// Starts `command`; its messages are written to `log`, standard output to `out` if given.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(command: &[&str], log: &Path, out: Option<Stdio>) -> io::Result<Self> {
        let folder = folder();
        let procs = folder.as_ref().map(|f| f.join("cgroup.procs")).unwrap_or_default();
        let log = File::create(log)?;
        let out = out.map_or_else(|| log.try_clone().map(Stdio::from), Ok)?;
        let child = Command::new("sh")
            .args(["-c", INTO_GROUP])
            .arg(procs)
            .args(command)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(log)
            .spawn()?;
        Ok(Self { child, folder })
    }

    /// The standard output, if it was asked for as a pipe.
    pub fn output(&mut self) -> Option<std::process::ChildStdout> {
        self.child.stdout.take()
    }

    /// Whether it has ended already.
    pub fn is_gone(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for the end of the child, at most for this time; `None` when that has passed.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn wait(&mut self, most: Duration) -> io::Result<Option<ExitStatus>> {
        // SAFETY: the child was not waited for yet, so its number has not been reused.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, self.child.id(), 0) };
        let fd = libc::c_int::try_from(fd).map_err(io::Error::other)?;
        if fd < 0 {
            return self.child.try_wait();
        }
        let most_ms = libc::c_int::try_from(most.as_millis()).unwrap_or(libc::c_int::MAX);
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid entry; the descriptor is closed once, here.
        unsafe {
            libc::poll(&raw mut poll, 1, most_ms);
            libc::close(fd);
        }
        self.child.try_wait()
    }

    /// Ends all of its processes at once, those that were forked, too, where they can be found.
    pub fn kill(&mut self) {
        if let Some(folder) = &self.folder {
            end_all(folder);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Whether CPU time is exact.
    pub fn is_exact(&self) -> bool {
        self.folder.is_some()
    }

    /// CPU time so far, of all processes that are or were, seconds.
    ///
    /// # Errors
    /// When the server is gone.
    pub fn cpu(&self) -> io::Result<f64> {
        let Some(folder) = &self.folder else {
            let gone = || io::Error::other("the server is gone");
            let root = Root::default();
            let family = Family::new(&root, &[self.child.id()]).and_then(|mut f| f.sample(&root));
            return family.map(|now| now.cpu_ns as f64 / 1e9).ok_or_else(gone);
        };
        let stat = fs::read_to_string(folder.join("cpu.stat"))?;
        let us = stat.lines().find_map(|line| line.strip_prefix("usage_usec "));
        let us: Option<f64> = us.and_then(|us| us.trim().parse().ok());
        us.map(|us| us / 1e6).ok_or_else(|| io::Error::other("cpu.stat without usage_usec"))
    }

    /// The same once the server is idle: its work after the last response counts.
    ///
    /// # Errors
    /// When the server is gone.
    pub fn cpu_at_rest(&self) -> io::Result<f64> {
        let end = Deadline::after(SETTLE_MAX);
        let mut before = self.cpu()?;
        loop {
            std::thread::sleep(SETTLE_POLL);
            let now = self.cpu()?;
            if now - before < SETTLED_S || end.passed() {
                return Ok(now);
            }
            before = now;
        }
    }
}

/// The group of this process, in cgroup v2.
fn own() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let mut mounts = mounts.lines().map(|line| line.split(' '));
    let mount = mounts.find_map(|mut words| {
        let (at, kind) = (words.nth(1)?, words.next()?);
        (kind == "cgroup2").then(|| at.to_owned())
    })?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?.to_owned();
    Some(Path::new(&mount).join(own))
}

/// Prefix of the names of the groups that a process of this number makes.
fn name(process: u32) -> String {
    format!("bench-{process}-")
}

/// A new group below that of this process.
fn folder() -> Option<PathBuf> {
    let number = GROUPS.fetch_add(1, Ordering::Relaxed);
    let folder = own()?.join(format!("{}{number}", name(std::process::id())));
    fs::create_dir(&folder).ok()?;
    // Permission to make a group does not include permission to enter it.
    let usable = fs::OpenOptions::new().write(true).open(folder.join("cgroup.procs")).is_ok();
    if usable && folder.join("cpu.stat").exists() {
        return Some(folder);
    }
    let _ = fs::remove_dir(&folder);
    None
}

/// Ends the processes in groups that a process of this number has made here, and removes the
/// groups.
pub fn clear(process: u32) {
    let Some(groups) = own().and_then(|own| fs::read_dir(own).ok()) else { return };
    for group in groups.flatten() {
        if group.file_name().to_string_lossy().starts_with(&name(process)) {
            end_all(&group.path());
            remove(&group.path(), &Deadline::after(END_MAX));
        }
    }
}

/// Ends all processes of a group at once.
fn end_all(group: &Path) {
    let _ = fs::write(group.join("cgroup.kill"), "1");
}

/// Removes a group once it has no process any more.
fn remove(group: &Path, end: &Deadline) {
    while fs::remove_dir(group).is_err() && !end.passed() {
        std::thread::sleep(SETTLE_POLL);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).unwrap_or(0);
        let signal = |signal| {
            if pid > 0 {
                // SAFETY: a signal to a child that was not waited for yet.
                unsafe { libc::kill(pid, signal) };
            }
        };
        if !self.is_gone() {
            signal(libc::SIGTERM);
        }
        let end = Deadline::after(END_MAX);
        while !self.is_gone() {
            if end.passed() {
                signal(libc::SIGKILL);
                let _ = self.child.wait();
                break;
            }
            std::thread::sleep(SETTLE_POLL);
        }
        if let Some(folder) = &self.folder {
            // Children for a connection may still be ending.
            remove(folder, &end);
        }
    }
}
