//! Starts the servers that are compared, each on a separate directory and port, and ends them.
//!
//! nfs-ganesha (Debian: `nfs-ganesha-vfs`, `rpcbind`) requires a portmapper for version 3; it gets
//! a separate one in an empty network namespace and reaches it through the local socket.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base::clock::Deadline;

/// Time limit until a server listens.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// How often a port is tried meanwhile.
const START_POLL: Duration = Duration::from_millis(50);

/// Path of ganesha's export in its pseudo file system.
const PSEUDO: &str = "/export";

/// The versions of NFS that are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// NFSv3.
    V3,
    /// NFSv4.1, one session for each connection.
    V41,
}

impl Version {
    /// Both, the older first.
    pub const ALL: [Self; 2] = [Self::V3, Self::V41];

    /// As in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::V3 => "v3",
            Self::V41 => "v4.1",
        }
    }
}

/// A running server; ends with the value.
pub struct Server {
    /// `plimsoll`, `ganesha`.
    pub name: &'static str,
    /// Its version, as it prints it.
    pub version: String,
    /// Target of the lab: `nfs3://…`.
    pub url: String,
    /// The same directory over NFSv4.1: `nfs4://…`.
    pub url4: String,
    /// The process of which the CPU time is measured.
    pub pid: u32,
    /// What ends with it.
    pub children: Vec<Child>,
}

impl Server {
    /// The target of the lab for this version.
    pub fn url(&self, version: Version) -> &str {
        match version {
            Version::V3 => &self.url,
            Version::V41 => &self.url4,
        }
    }
}

/// Time limit for a server to end on a request.
const END: Duration = Duration::from_secs(5);

impl Drop for Server {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            if let Ok(pid) = i32::try_from(child.id()) {
                // SAFETY: a signal to a child that was not waited for yet.
                unsafe { libc::kill(pid, libc::SIGTERM) };
            }
            let end = Deadline::after(END);
            while child.try_wait().is_ok_and(|ended| ended.is_none()) {
                // tgt does not end as long as it has a target.
                if end.passed() {
                    let _ = child.kill();
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// Starts this project's server on `dir`, with its state below `state`.
///
/// # Errors
/// When it does not announce itself.
pub fn plimsoll(binary: &Path, dir: &Path, state: &Path, offset: u16) -> io::Result<Server> {
    plimsoll_with(binary, dir, state, offset, &[])
}

/// As [`plimsoll`], with more arguments.
///
/// # Errors
/// As there.
pub fn plimsoll_with(
    binary: &Path,
    dir: &Path,
    state: &Path,
    offset: u16,
    more: &[&str],
) -> io::Result<Server> {
    let mut child = Command::new(binary)
        .arg("serve")
        .arg(dir)
        .arg("--state")
        .arg(state)
        .args(["--announce", "json", "--user", "bench:bench-password"])
        .args(["--port-offset", &offset.to_string()])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut line = String::new();
    let stdout = child.stdout.take().ok_or_else(|| io::Error::other("no stdout"))?;
    BufReader::new(stdout).read_line(&mut line)?;
    let said: serde_json::Value = serde_json::from_str(&line)?;
    let url = said["shares"]
        .as_object()
        .and_then(|all| all.values().next())
        .and_then(|share| share["nfs3"].as_str())
        .ok_or_else(|| io::Error::other(format!("no nfs3 URL in {line:?}")))?;
    Ok(Server {
        name: "plimsoll",
        version: env!("CARGO_PKG_VERSION").to_owned(),
        url: url.to_owned(),
        // The pseudo file system has the same path as MOUNT.
        url4: url.replacen("nfs3://", "nfs4://", 1),
        pid: child.id(),
        children: vec![child],
    })
}

/// Starts nfs-ganesha on `dir`; `None` when it is not installed.
///
/// # Errors
/// When it is installed but does not come up.
pub fn ganesha(dir: &Path, scratch: &Path, port: u16) -> io::Result<Option<Server>> {
    let Ok(version) = Command::new("ganesha.nfsd").arg("-v").output() else { return Ok(None) };
    let version = String::from_utf8_lossy(&version.stdout).lines().next().unwrap_or("").to_owned();
    fs::create_dir_all("/run/rpcbind")?;
    fs::create_dir_all(scratch)?;
    let log = File::create(scratch.join("log"))?;
    let conf = scratch.join("ganesha.conf");
    fs::write(&conf, ganesha_conf(dir, scratch, port))?;
    let rpcbind = Command::new("unshare")
        .args(["-n", "rpcbind", "-f"])
        .stdout(Stdio::null())
        .stderr(log.try_clone()?)
        .spawn()?;
    let mut server = Server {
        name: "ganesha",
        version,
        url: format!("nfs3://127.0.0.1:{port}{}?mountport={}", dir.display(), port + 1),
        url4: format!("nfs4://127.0.0.1:{port}{PSEUDO}"),
        pid: 0,
        children: vec![rpcbind],
    };
    await_that("rpcbind's socket", || Path::new("/run/rpcbind.sock").exists())?;
    let child = Command::new("ganesha.nfsd")
        .args(["-F", "-L", "STDERR", "-f"])
        .arg(&conf)
        .arg("-p")
        .arg(scratch.join("pid"))
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()?;
    server.pid = child.id();
    server.children.push(child);
    for port in [port, port + 1] {
        await_that("ganesha's port", || TcpStream::connect(("127.0.0.1", port)).is_ok())?;
    }
    Ok(Some(server))
}

/// Waits until a condition holds.
///
/// # Errors
/// Not in time.
pub fn await_that(what: &str, mut there: impl FnMut() -> bool) -> io::Result<()> {
    let end = Deadline::after(START_TIMEOUT);
    while !there() {
        if end.passed() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{what} did not appear")));
        }
        std::thread::sleep(START_POLL);
    }
    Ok(())
}

/// The settings of its published figures: 1 MiB transfers, no root squash, no locks.
fn ganesha_conf(dir: &Path, scratch: &Path, port: u16) -> String {
    format!(
        "NFS_CORE_PARAM {{ Protocols = 3, 4; NFS_Port = {port}; MNT_Port = {mount};
  Bind_addr = 127.0.0.1; Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false;
  RPC_Ioq_ThrdMax = 32; fsid_device = true; }}
NFSv4 {{ Graceless = true; Delegations = false; RecoveryRoot = {scratch}; }}
MDCACHE {{ Entries_HWMark = 500000; }}
LOG {{ Default_Log_Level = WARN; }}
EXPORT {{ Export_Id = 77; Path = {dir}; Pseudo = {PSEUDO}; Access_Type = RW;
  Squash = No_Root_Squash; SecType = sys, none; Protocols = 3, 4; Transports = TCP;
  MaxRead = 1048576; MaxWrite = 1048576; PrefRead = 1048576; PrefWrite = 1048576;
  FSAL {{ Name = VFS; }} }}
",
        mount = port + 1,
        scratch = scratch.display(),
        dir = dir.display(),
    )
}
