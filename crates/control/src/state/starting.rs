//! The time between a server's lock on its state directory and the first connection to its local
//! socket: commands wait for it.

use std::fs;
use std::io::{ErrorKind, Result};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use base::clock::Deadline;
use base::limits::{CLIENT_START_LOOK, CLIENT_START_TIMEOUT};

use super::LOCK;
use crate::listen::local;

/// Whether a live process holds the lock of a state directory. It is read from the kernel's list:
/// taking the lock, if only for a moment, could keep a server from starting.
pub fn is_locked(state: &Path) -> bool {
    let Ok(meta) = fs::metadata(state.join(LOCK)) else { return false };
    let device = format!("{:02x}:{:02x}", libc::major(meta.dev()), libc::minor(meta.dev()));
    // Some file systems list another device than stat(2) returns: then the process decides.
    let pid = fs::read_to_string(state.join(LOCK)).unwrap_or_default();
    let lists = |line: &str| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let mut next = || words.next().unwrap_or_default();
        let (kind, _, access, owner, file) = (next(), next(), next(), next(), next());
        let (on, inode) = file.rsplit_once(':').unwrap_or_default();
        let is_file = inode == meta.ino().to_string() && (on == device || owner == pid.trim());
        kind == "FLOCK" && access == "WRITE" && is_file
    };
    fs::read_to_string("/proc/locks").is_ok_and(|locks| locks.lines().any(lists))
}

/// Connects to the local socket of a server. While the server holds its state directory and does
/// not answer yet, it is waited for; `notice` is called once before that.
///
/// # Errors
/// As [`local::connect`]: at once if no server holds the directory.
pub fn connect(socket: &Path, notice: impl FnOnce()) -> Result<UnixStream> {
    let until = Deadline::after(CLIENT_START_TIMEOUT);
    let state = socket.parent().unwrap_or(Path::new(""));
    let mut notice = Some(notice);
    loop {
        // Before the attempt: a server that begins to answer between the two holds it, too.
        let may_start = is_locked(state) && !until.passed();
        match local::connect(socket) {
            Err(e) if may_start && is_absent(e.kind()) => {
                notice.take().into_iter().for_each(|notice| notice());
                std::thread::sleep(CLIENT_START_LOOK);
            }
            done => return done,
        }
    }
}

/// No socket, or one that a killed server has left.
fn is_absent(error: ErrorKind) -> bool {
    matches!(error, ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests;
