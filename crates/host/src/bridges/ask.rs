//! Requests the status of the bridges of this machine over their local sockets
//! (`docs/protocols/bridge.md`, "Local socket"): all at once, with one timeout for all.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::clock::monotonic_ns;
use base::limits::{BRIDGE_LINE_MAX, BRIDGE_NAME_MAX, BRIDGES_WATCH_WAIT, BRIDGES_WATCHED_MAX};
use serde::Deserialize;
use socket2::{Domain, SockAddr, Socket, Type};

/// The question, as the socket takes it.
const REQUEST: &[u8] = b"\"show\"\n";
/// Mode bits that permit writing to a folder for its group and other users.
const OTHERS_WRITE: u32 = 0o022;
/// Bytes read at once.
const PIECE: usize = 16 << 10;

/// The status that a bridge reports, as far as it is shown.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct Status {
    pub(super) pid: u32,
    pub(super) verdict: String,
    pub(super) forth: Direction,
    pub(super) back: Direction,
}

/// One way, counted since the bridge began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Direction {
    pub(super) packets_out: u64,
    pub(super) bytes_out: u64,
    pub(super) dropped: Dropped,
    pub(super) twice: u64,
    pub(super) damaged: u64,
    pub(super) held: u64,
    pub(super) queue_bytes: u64,
    pub(super) lateness: Lateness,
    pub(super) pauses: Pauses,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Dropped {
    pub(super) queue_full: u64,
    pub(super) lost: u64,
    pub(super) no_room: u64,
    pub(super) refused: u64,
    pub(super) overrun: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Lateness {
    /// Least lateness of a bucket in ns, packets. A bridge of an older version does not send it.
    #[serde(default)]
    pub(super) by: Vec<(u64, u64)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Pauses {
    pub(super) total_ns: u64,
}

#[derive(Deserialize)]
struct Answer {
    status: Status,
}

/// Why there is no status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NoStatus {
    /// It has not answered yet, and may still.
    Timeout,
    /// The reply is malformed, or the connection was closed in the middle of it.
    Malformed,
    /// No bridge listens: a socket that was left over, or a bridge that has just ended.
    NoListener,
}

/// Sends the requests, and remembers the bridges that owe a reply.
pub(super) struct Poller {
    dir: PathBuf,
    user: u32,
    pub(super) wait: Duration,
    /// Requests without a reply: the next one is sent only when that connection has ended, so that
    /// a stopped bridge does not accumulate requests.
    owing: HashMap<String, UnixStream>,
}

impl Poller {
    /// One for the sockets in `dir` that belong to root or to `user`.
    pub(super) fn new(dir: PathBuf, user: u32) -> Self {
        Self { dir, user, wait: BRIDGES_WATCH_WAIT, owing: HashMap::new() }
    }

    /// Each bridge by name with its status; `None` without a valid reply in time.
    pub(super) fn poll(&mut self) -> Vec<(String, Option<Status>)> {
        let names = self.names();
        self.owing.retain(|name, _| names.contains(name));
        // All requests are sent before the first reply is awaited.
        let requests: Vec<_> = names.into_iter().map(|name| (self.request(&name), name)).collect();
        let wait_ns = u64::try_from(self.wait.as_nanos()).unwrap_or(u64::MAX);
        let end_ns = monotonic_ns().saturating_add(wait_ns);
        let mut statuses = Vec::new();
        for (stream, name) in requests {
            let answer = stream.and_then(|mut stream| {
                let answer = listen(&mut stream, end_ns);
                if matches!(answer, Err(NoStatus::Timeout)) {
                    self.owing.insert(name.clone(), stream);
                }
                answer
            });
            match answer {
                Ok(status) => statuses.push((name, Some(status))),
                Err(NoStatus::Timeout | NoStatus::Malformed) => statuses.push((name, None)),
                Err(NoStatus::NoListener) => {}
            }
        }
        statuses
    }

    /// The names of the bridges with trusted sockets in the directory, sorted.
    fn names(&self) -> Vec<String> {
        let trusted = |meta: &Metadata| meta.uid() == 0 || meta.uid() == self.user;
        let Ok(dir) = fs::symlink_metadata(&self.dir) else { return Vec::new() };
        // A process that may write here could replace a socket after it was checked.
        if !dir.is_dir() || !trusted(&dir) || dir.mode() & OTHERS_WRITE != 0 {
            return Vec::new();
        }
        let Ok(entries) = fs::read_dir(&self.dir) else { return Vec::new() };
        let name = |entry: io::Result<fs::DirEntry>| {
            let entry = entry.ok()?;
            let meta = entry.metadata().ok()?;
            let file = entry.file_name();
            let name = file.to_str()?.strip_suffix(".sock")?;
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            let fits = (1..=BRIDGE_NAME_MAX).contains(&name.len()) && name.chars().all(plain);
            (fits && meta.file_type().is_socket() && trusted(&meta)).then(|| name.to_owned())
        };
        let mut names: Vec<String> = entries.filter_map(name).collect();
        names.sort();
        names.truncate(BRIDGES_WATCHED_MAX);
        names
    }

    /// Puts the question, unless the last one is still open.
    fn request(&mut self, name: &str) -> Result<UnixStream, NoStatus> {
        if let Some(mut before) = self.owing.remove(name)
            && is_open(&mut before)
        {
            self.owing.insert(name.to_owned(), before);
            return Err(NoStatus::Timeout);
        }
        connect(&self.dir.join(format!("{name}.sock"))).map_err(|error| match error.kind() {
            // Its backlog of connections is full.
            ErrorKind::WouldBlock => NoStatus::Timeout,
            _ => NoStatus::NoListener,
        })
    }
}

/// Connects and sends the request without waiting.
fn connect(socket: &Path) -> io::Result<UnixStream> {
    let connection = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    connection.set_nonblocking(true)?;
    connection.connect(&SockAddr::unix(socket)?)?;
    let mut stream = UnixStream::from(OwnedFd::from(connection));
    stream.write_all(REQUEST)?;
    Ok(stream)
}

/// Whether an answer is still to come. One that has come is too old to be of use.
fn is_open(stream: &mut UnixStream) -> bool {
    let quiet = stream.set_nonblocking(true).and_then(|()| stream.read(&mut [0; PIECE]));
    quiet.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// Waits for an answer until `end_ns`, and then takes only what is there.
fn listen(stream: &mut UnixStream, end_ns: u64) -> Result<Status, NoStatus> {
    let (mut line, mut room) = (Vec::new(), [0; PIECE]);
    loop {
        let left_ns = end_ns.saturating_sub(monotonic_ns());
        // No time at all would mean to wait for ever.
        let limit = (left_ns > 0).then_some(Duration::from_nanos(left_ns));
        let set = stream.set_nonblocking(limit.is_none());
        set.and_then(|()| stream.set_read_timeout(limit)).map_err(|_| NoStatus::Malformed)?;
        match stream.read(&mut room) {
            Ok(0) => {
                return Err(if line.is_empty() {
                    NoStatus::NoListener
                } else {
                    NoStatus::Malformed
                });
            }
            Ok(length) => line.extend_from_slice(room.get(..length).unwrap_or_default()),
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(NoStatus::Timeout);
            }
            Err(_) => return Err(NoStatus::NoListener),
        }
        if line.len() > BRIDGE_LINE_MAX {
            return Err(NoStatus::Malformed);
        }
        if line.ends_with(b"\n") {
            let answer = serde_json::from_slice::<Answer>(&line);
            return answer.map(|answer| answer.status).map_err(|_| NoStatus::Malformed);
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
