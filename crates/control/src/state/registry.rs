//! The run-time registry: how local commands find running servers.
//!
//! One JSON file per server in `/run/plimsoll` (root), `$XDG_RUNTIME_DIR/plimsoll`, or
//! `/var/tmp/plimsoll-UID/run`. A server enters itself as soon as it holds its state directory; an
//! entry of one that neither answers nor starts is stale, and removed. The
//! installed service has a user of its own and [`SERVICE`]; root's commands look there, too.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files::write_atomic;
use super::starting::is_locked;
use super::{StateError, effective_uid, make_private};
use crate::listen::local;

/// One running server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its process.
    pub pid: u32,
    /// The directory that it serves.
    pub dir: PathBuf,
    /// Its state directory.
    pub state: PathBuf,
    /// Its local socket.
    pub socket: PathBuf,
}

/// The registry of the installed service: `packaging/plimsoll.service` gives its user the folder
/// above as XDG_RUNTIME_DIR.
pub const SERVICE: &str = "/run/plimsoll-service/plimsoll";

/// An entry that goes when the value goes.
#[derive(Debug)]
pub struct Registration {
    path: PathBuf,
}

impl Drop for Registration {
    fn drop(&mut self) {
        // A left-over is recognised as stale.
        let _ = fs::remove_file(&self.path);
    }
}

/// The folder of this user's registry.
pub fn default_dir() -> PathBuf {
    let uid = effective_uid();
    if uid == 0 {
        return PathBuf::from("/run/plimsoll");
    }
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(dir) if dir.is_absolute() && dir.is_dir() => dir.join("plimsoll"),
        _ => PathBuf::from(format!("/var/tmp/plimsoll-{uid}/run")),
    }
}

/// The folders in which this user's commands look for servers: its own registry, and the service's
/// for root, which may use the socket of any server.
pub fn default_dirs() -> Vec<PathBuf> {
    let mut dirs = vec![default_dir()];
    if effective_uid() == 0 {
        dirs.push(PathBuf::from(SERVICE));
    }
    dirs
}

/// Enters a server, which must hold the lock of its state directory already.
///
/// # Errors
/// [`StateError`]; the server can do without, local commands then need `--state`.
pub fn register(registry: &Path, entry: &Entry) -> Result<Registration, StateError> {
    make_private(registry)?;
    let path = registry.join(format!("{}.json", entry.pid));
    let text = serde_json::to_vec(entry)
        .map_err(|e| StateError::io("describe", &path, std::io::Error::other(e)))?;
    write_atomic(&path, &text, 0o600)?;
    Ok(Registration { path })
}

/// The servers that answer or start, by pid. Stale entries are removed on the way.
pub fn running(registry: &Path) -> Vec<Entry> {
    // Below /var/tmp another user may have been first to take the name; below /run only root gives
    // folders away.
    if super::not_led_elsewhere(registry).is_err() {
        return Vec::new();
    }
    let owner = fs::metadata(registry).ok().map(|meta| meta.uid());
    let given = effective_uid() == 0 && registry == Path::new(SERVICE);
    if owner.is_none() || owner != Some(effective_uid()) && !given {
        return Vec::new();
    }
    let Ok(files) = fs::read_dir(registry) else { return Vec::new() };
    let mut found: Vec<Entry> = files
        .flatten()
        .filter(|file| file.path().extension().is_some_and(|e| e == "json"))
        .filter_map(|file| {
            let path = file.path();
            let entry =
                fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Entry>(&bytes).ok());
            match entry {
                Some(entry) if answers(&entry.socket) || is_locked(&entry.state) => Some(entry),
                _ => {
                    let _ = fs::remove_file(&path);
                    None
                }
            }
        })
        .collect();
    found.sort_by_key(|entry| entry.pid);
    found
}

fn answers(socket: &Path) -> bool {
    local::connect(socket).is_ok()
}
