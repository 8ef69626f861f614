//! The server's end of the connection to the helper.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use host_pools::request::PoolRequest;

use crate::request::{Reply, Request, receive_reply, send};

/// How long an answer may take: a change has tens of steps, and a kernel takes a second for some;
/// mkfs.btrfs discards large disks first.
const ANSWER: Duration = Duration::from_secs(120);
/// How long a change of a pool may take: several commands of ZFS, of minutes each, after a change
/// that is in progress. The helper also does what is not waited for any more: without an answer it
/// would be done unseen. The end of the helper closes the connection, which ends the wait at once.
const CHANGE_OF_POOL: Duration = Duration::from_secs(3_600);

/// A connection to the helper. A change that was made over it is taken back when it ends.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
}

impl Client {
    /// Connects to the helper that listens here.
    ///
    /// # Errors
    /// The operating system's.
    pub fn connect(socket: &Path) -> io::Result<Self> {
        Self::over(UnixStream::connect(socket)?)
    }

    /// Starts a helper as a child of this process, with its files in `folder`.
    ///
    /// # Errors
    /// The operating system's.
    pub fn start(program: &Path, folder: &Path) -> io::Result<Self> {
        Self::start_with(program, folder, &[])
    }

    /// As [`Self::start`], for pools only: it takes nothing of the network over.
    ///
    /// # Errors
    /// The operating system's.
    pub fn start_for_pools(program: &Path, folder: &Path) -> io::Result<Self> {
        Self::start_with(program, folder, &["--pools"])
    }

    fn start_with(program: &Path, folder: &Path, more: &[&str]) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(program);
        command.arg("host").arg("--child").args(more).arg("--state").arg(folder);
        command.stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs))).stdout(Stdio::null());
        let mut child = command.spawn()?;
        drop(command);
        let wait = move || drop(child.wait());
        std::thread::Builder::new().name("helper".to_owned()).spawn(wait)?;
        Self::over(ours)
    }

    fn over(stream: UnixStream) -> io::Result<Self> {
        stream.set_write_timeout(Some(ANSWER))?;
        Ok(Self { stream })
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// The connection's; it is of no use any more then.
    pub fn ask(&mut self, request: &Request) -> io::Result<Reply> {
        self.stream.set_read_timeout(Some(time(request)))?;
        send(&mut self.stream, request)?;
        receive_reply(&mut self.stream)
    }
}

/// How long the answer to a request may take.
fn time(request: &Request) -> Duration {
    match request {
        Request::Pools(PoolRequest::Status {} | PoolRequest::Disks {}) => ANSWER,
        Request::Pools(_) => CHANGE_OF_POOL,
        _ => ANSWER,
    }
}

#[cfg(test)]
mod tests;
