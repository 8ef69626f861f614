//! The local socket of a head: one JSON request in a line, one JSON response in a line. Root alone
//! may connect: the socket has mode 0600.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits::HEAD_MESSAGE_MAX;
use crate::takeover::Takeover;

/// How long each side waits for the other.
const TIME: Duration = Duration::from_secs(10);

/// What can be requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "command")]
pub enum Command {
    /// The state of this head and of the cluster as it sees it.
    Status,
    /// A head is to own the resource: this one if none is named.
    Takeover {
        /// Which resource.
        resource: String,
        /// Which head.
        #[serde(default)]
        to: Option<String>,
        /// The administrator confirms that the former owner is down: no fence is needed.
        #[serde(default)]
        unfenced: bool,
    },
    /// The preferred head is to own the resource.
    Failback {
        /// Which resource.
        resource: String,
    },
    /// Hand over all resources, and take none over; or end that.
    Drain {
        /// Whether to drain.
        on: bool,
    },
}

/// The response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// Why the request was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The state after it.
    pub status: Status,
}

/// The state of a head.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its name.
    pub head: String,
    /// Its cluster.
    pub cluster: String,
    /// Seconds for which its lease is valid, with three decimals; none without a lease.
    pub lease_s: Option<String>,
    /// Why etcd does not answer, if it does not.
    pub etcd: Option<String>,
    /// Whether it drains.
    pub draining: bool,
    /// Whether a takeover is requested and not recorded in etcd yet.
    pub pending: bool,
    /// Heads with a valid lease; those that drain with `true`.
    pub members: Vec<(String, bool)>,
    /// The resources.
    pub resources: Vec<ResourceStatus>,
}

/// The state of a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceStatus {
    /// Its name.
    pub name: String,
    /// Its state at this head: offline, starting, owner, handing over, failed.
    pub state: String,
    /// The head that owns it, as etcd has it.
    pub owner: Option<String>,
    /// The head that is to own it.
    pub target: Option<String>,
    /// The head that is preferred.
    pub preferred: String,
    /// The number of the last ownership.
    pub number: u64,
    /// Its address.
    pub address: String,
    /// The directory that it serves.
    #[serde(default)]
    pub directory: String,
    /// What is waited for, or what went wrong last.
    pub why: Option<String>,
    /// Why clients do not reach its address at this head, if they do not.
    #[serde(default)]
    pub cut: Option<String>,
    /// The process, at its owner.
    pub pid: Option<u32>,
    /// Of the last takeover by this head: milliseconds from the claim to the lock, and from there
    /// until it served.
    pub takeover_ms: Option<(u64, u64)>,
    /// The last takeover, by whichever head, as etcd has it.
    #[serde(default)]
    pub last: Option<Takeover>,
}

/// The local socket of the head with this file of the lease.
pub fn of_lease(lease: &Path) -> PathBuf {
    lease.with_extension("sock")
}

/// The local socket of the head that runs on this machine with the default directory, if it answers
/// this user.
pub fn of_this_machine() -> Option<PathBuf> {
    let entries = std::fs::read_dir(crate::config::RUN).ok()?;
    let mut sockets = entries.flatten().map(|entry| entry.path());
    sockets.find(|path| {
        let is_socket = path.extension().is_some_and(|extension| extension == "sock");
        is_socket && request(path, &Command::Status).is_ok()
    })
}

/// Binds the socket, in the place of one that a former head has left.
///
/// # Errors
/// The file system's.
pub fn bind(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Answers one request.
///
/// # Errors
/// The connection's, or what came is not a request.
pub fn answer(
    stream: UnixStream,
    answer: impl FnOnce(Command) -> Option<Response>,
) -> io::Result<()> {
    stream.set_read_timeout(Some(TIME))?;
    stream.set_write_timeout(Some(TIME))?;
    let line = read_line(&stream)?;
    let Some(response) = answer(serde_json::from_str(&line)?) else { return Ok(()) };
    write_line(&stream, &serde_json::to_string(&response)?)
}

/// Sends a request to the head with this socket.
///
/// # Errors
/// No head listens there, or what it sends is not a response.
pub fn request(path: &Path, command: &Command) -> io::Result<Response> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(TIME))?;
    stream.set_write_timeout(Some(TIME))?;
    write_line(&stream, &serde_json::to_string(command)?)?;
    let line = read_line(&stream).map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            let why = format!("it does not answer within {} s", TIME.as_secs());
            io::Error::new(io::ErrorKind::TimedOut, why)
        }
        _ => e,
    })?;
    Ok(serde_json::from_str(&line)?)
}

fn read_line(stream: &UnixStream) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(stream.take(HEAD_MESSAGE_MAX)).read_line(&mut line)?;
    match line.ends_with('\n') {
        true => Ok(line),
        false => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the message is truncated")),
    }
}

fn write_line(mut stream: &UnixStream, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes())?;
    stream.write_all(b"\n")
}
