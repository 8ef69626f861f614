//! The file `connections` in the state directory of a resource: the connections of its clients, so
//! that the next owner resets those of a machine that has vanished (docs/formats/heads.md).
//!
//! A line each, the port of the resource and the other end. It is written by the process of the
//! resource, which ends with the lease, and read by the next head.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::limits::HEAD_CONNECTIONS_MAX;

/// Name of the file.
pub const CONNECTIONS: &str = "connections";
/// Name under which it is written.
const NEW: &str = "connections.new";
/// Longest line: two ports, an IPv6 address with its scope and brackets.
const LINE_MAX: u64 = 80;

/// A connection: the port of the resource, and the other end.
pub type Connection = (u16, SocketAddr);

/// Replaces the file, on disk when this returns.
///
/// # Errors
/// The file system's.
pub fn write(state: &Path, connections: &[Connection]) -> io::Result<()> {
    let new = state.join(NEW);
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    let lines = connections.iter().take(HEAD_CONNECTIONS_MAX);
    let text: String = lines.map(|(port, peer)| format!("{port} {peer}\n")).collect();
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    std::fs::rename(new, state.join(CONNECTIONS))
}

/// Reads the file; without one there are none. Lines that are not understood are left out.
///
/// # Errors
/// The file system's.
pub fn read(state: &Path) -> io::Result<Vec<Connection>> {
    let file = match File::open(state.join(CONNECTIONS)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    file.take(LINE_MAX * HEAD_CONNECTIONS_MAX as u64).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let parsed = text.lines().filter_map(|line| {
        let (port, peer) = line.split_once(' ')?;
        Some((port.parse().ok()?, peer.parse().ok()?))
    });
    Ok(parsed.take(HEAD_CONNECTIONS_MAX).collect())
}

#[cfg(test)]
mod tests;
