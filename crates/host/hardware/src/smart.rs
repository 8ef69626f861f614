//! Health of a disk by `smartctl -j` (smartmontools 7.0 and later): how it is run, and what its
//! output means. Its exit status is a mask of bits, not zero for a healthy disk with a log entry.
//! Without it disks of NVMe are queried by ioctl.

pub mod nvme;
pub mod report;

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use host::Root;
use serde::{Deserialize, Serialize};

/// The program.
pub const PROGRAM: &str = "smartctl";
/// Where it may be: an ordinary path lacks the system folders.
const FOLDERS: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin";
/// Longest output in bytes: a disk with full logs has some 60 KB.
pub const OUTPUT_MAX: usize = 1 << 20;
/// How long it may take: a disk that retries a bad sector takes 30 s for a command.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Longest name of a disk: those of the kernel have 32 bytes at most.
const NAME_MAX: usize = 32;

/// What smartctl has left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Exit status; 255 after a signal.
    pub status: u8,
    /// Standard output.
    pub text: String,
}

/// Why there is no output.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The name is not that of a disk of the kernel.
    #[error("{0:?} is not a disk of this machine")]
    NoDisk(String),
    /// It is not installed.
    #[error("smartctl is not installed: install the package smartmontools")]
    NotInstalled,
    /// It does not end.
    #[error("smartctl has not ended within {} s", TIME_MAX.as_secs())]
    Timeout,
    /// An NVMe disk has no log of its health.
    #[error("smartctl is not installed, and the health log cannot be read: {0}")]
    Nvme(io::Error),
    /// The operating system.
    #[error("smartctl cannot be run: {0}")]
    System(#[from] io::Error),
}

/// Whether a name is that of a disk of this machine: letters and digits, below `/sys/block`, with a
/// device behind it.
pub fn is_disk(root: &Root, name: &str) -> bool {
    let is_name = (1..=NAME_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    is_name && root.link(&format!("sys/block/{name}/device")).is_some()
}

/// Whether the kernel has suspended a disk: then nothing may open it.
pub fn is_suspended(root: &Root, name: &str) -> bool {
    let path = format!("sys/block/{name}/device/power/runtime_status");
    crate::files::text(root, &path).as_deref() == Some("suspended")
}

/// Queries a disk of this machine by its name in `/dev`, unless it sleeps.
///
/// # Errors
/// Why not.
pub fn run(name: &str) -> Result<Output, RunError> {
    run_on_path(&Root::default(), name, &std::env::var("PATH").unwrap_or_default())
}

/// The same with a program on this path, else in the system folders.
///
/// # Errors
/// Why not.
pub fn run_on_path(root: &Root, name: &str, path: &str) -> Result<Output, RunError> {
    if !is_disk(root, name) {
        return Err(RunError::NoDisk(name.to_owned()));
    }
    let path = format!("{path}:{FOLDERS}");
    let Some(folder) = path.split(':').find(|folder| is_program(folder)) else {
        let health = nvme::is_one(name).then(|| nvme::run(name).map_err(RunError::Nvme));
        return health.unwrap_or(Err(RunError::NotInstalled));
    };
    let mut command = Command::new(format!("{folder}/{PROGRAM}"));
    command.args(["-j", "-n", "standby", "-a", "--"]).arg(format!("/dev/{name}"));
    command.env_clear().env("PATH", path).env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    collect(command.spawn()?)
}

/// Whether it is installed.
pub fn is_installed() -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:{FOLDERS}").split(':').any(is_program)
}

fn is_program(folder: &str) -> bool {
    folder.starts_with('/') && std::path::Path::new(folder).join(PROGRAM).is_file()
}

/// The output of a child, which is ended if it takes too long.
fn collect(mut child: Child) -> Result<Output, RunError> {
    let out = child.stdout.take();
    let (deliver, delivered) = mpsc::channel();
    let read = move || {
        let mut bytes = Vec::new();
        if let Some(out) = out {
            // What could be read is judged: it is not JSON then.
            let _ = out.take(OUTPUT_MAX as u64).read_to_end(&mut bytes);
        }
        let _ = deliver.send(bytes);
    };
    std::thread::Builder::new().name("smartctl".to_owned()).spawn(read)?;
    let Ok(bytes) = delivered.recv_timeout(TIME_MAX) else {
        child.kill()?;
        child.wait()?;
        return Err(RunError::Timeout);
    };
    let status = child.wait()?.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX);
    Ok(Output { status, text: String::from_utf8_lossy(&bytes).into_owned() })
}
