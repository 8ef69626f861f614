//! The state directory: everything that must outlive the process, one folder per served directory.
//!
//! | File | Holds |
//! |---|---|
//! | `lock` | the pid of the server that owns the folder (advisory lock) |
//! | `certificate.pem`, `key.pem` | the server's own certificate, made at first start |
//! | `authority.pem`, `authority-key.pem` | the CA that signs it |
//! | `certificates/` | certificates of other CAs |
//! | `api-token` | the bearer token for scripts |
//! | `handle-secret` | 32 bytes that authenticate file handles |
//! | `server-id` | by what clients of NFSv4 and SMB recognise the server |
//! | `users.json` | names and Argon2id hashes |
//! | `plimsoll.sock` | the local socket, while a server runs |
//! | `stats/` | statistics, see `docs/formats/segments.md` |

pub mod files;
pub mod keys;
pub mod registry;
pub mod starting;
pub mod users;

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Why a state directory cannot be used. The administrator is at fault unless it is `Io`.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Another server owns it.
    #[error(
        "{path} is in use by another server, pid {pid}; stop it or choose another directory \
        with --state DIR"
    )]
    Locked {
        /// The state directory.
        path: PathBuf,
        /// The content of the lock file, or "unknown".
        pid: String,
    },
    /// The folder exists, others may read it, and it was not made by us.
    #[error(
        "{path} is accessible to other users and contains other files; choose an empty or new \
         directory with --state DIR"
    )]
    NotOurs {
        /// The state directory.
        path: PathBuf,
    },
    /// The folder belongs to another user.
    #[error(
        "{path} belongs to uid {owner}, not to this user (uid {us}); choose another directory \
        with --state DIR"
    )]
    Owner {
        /// The state directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The effective uid of this process.
        us: u32,
    },
    /// A file in it is not what we wrote.
    #[error("{path} is damaged ({reason}); move it away, and a new one is created")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The operating system refused.
    #[error("cannot {tried} {path}")]
    Io {
        /// What was tried, as a verb.
        tried: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A key or certificate could not be made.
    #[error("cannot make the certificate")]
    Certificate(#[from] rcgen::Error),
    /// A password could not be hashed.
    #[error("cannot hash the password: {0}")]
    Hash(String),
}

impl StateError {
    pub(crate) fn io(tried: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { tried, path: path.to_owned(), source }
    }
}

/// An open, locked state directory. The lock goes with the value.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    identity: (u64, u64),
    _lock: Lock,
}

/// The lock of a state directory, until it is dropped.
///
/// It is given back by name: it belongs to the open file description, and closing the descriptor
/// leaves it to the copy that a child has which another thread has forked a moment ago.
#[derive(Debug)]
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Then it is free when the last descriptor is closed.
        let _ = self.0.unlock();
    }
}

impl StateDir {
    /// Opens `path`, making it (mode 0700) if need be, and locks it.
    ///
    /// # Errors
    /// [`StateError::Locked`] if another server runs on it; others as named.
    pub fn open(path: &Path) -> Result<Self, StateError> {
        make_private(path)?;
        let path = path.canonicalize().map_err(|e| StateError::io("find", path, e))?;
        let meta = fs::metadata(&path).map_err(|e| StateError::io("look at", &path, e))?;
        let lock = lock(&path)?;
        Ok(Self { identity: (meta.dev(), meta.ino()), path, _lock: lock })
    }

    /// Where it is, canonical.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The local socket.
    pub fn socket(&self) -> PathBuf {
        self.file(SOCKET)
    }

    /// Device and inode, by which a share that contains it hides it.
    pub fn identity(&self) -> (u64, u64) {
        self.identity
    }
}

/// Name of the file in a state directory that its server has locked.
const LOCK: &str = "lock";

/// Name of the local socket in a state directory.
pub const SOCKET: &str = "plimsoll.sock";

/// The default state directory of a served directory (canonical path): the first base folder that
/// can be created, `/var/lib/plimsoll` as root (unless it belongs to the installed service, which
/// has another user), `$XDG_STATE_HOME/plimsoll` or `~/.local/state/plimsoll` otherwise,
/// `/var/tmp/plimsoll-UID` for a user without a home.
///
/// # Errors
/// The refusal of the last candidate.
pub fn default_dir(served: &Path) -> Result<PathBuf, StateError> {
    let mut refused = None;
    for base in default_bases() {
        match make_private(&base) {
            Ok(()) => return Ok(base.join(folder_name(served))),
            Err(e) => refused = Some(e),
        }
    }
    Err(refused.unwrap_or_else(|| StateError::NotOurs { path: PathBuf::from("/var/tmp") }))
}

/// The folders below which [`default_dir`] would be, the best first. Nothing is made.
pub fn default_bases() -> Vec<PathBuf> {
    bases(effective_uid(), &|name| std::env::var_os(name))
}

fn bases(uid: u32, env: &dyn Fn(&str) -> Option<std::ffi::OsString>) -> Vec<PathBuf> {
    // According to the XDG Base Directory Specification relative paths are ignored.
    let absolute = |name| env(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let mut bases = Vec::new();
    if uid == 0 {
        bases.push(PathBuf::from("/var/lib/plimsoll"));
    }
    bases.extend(absolute("XDG_STATE_HOME").map(|p| p.join("plimsoll")));
    bases.extend(absolute("HOME").map(|p| p.join(".local/state/plimsoll")));
    bases.push(PathBuf::from(format!("/var/tmp/plimsoll-{uid}")));
    bases
}

/// A readable folder name that differs for different directories: the last part and a hash.
fn folder_name(served: &Path) -> String {
    let last = served.file_name().unwrap_or(OsStr::new("root")).as_bytes();
    let readable: String = last
        .iter()
        .take(40)
        .map(|b| if b.is_ascii_alphanumeric() || *b == b'_' { char::from(*b) } else { '-' })
        .collect();
    format!("{readable}-{:016x}", fnv1a(served.as_os_str().as_bytes()))
}

/// FNV-1a: stable between versions, which std's hasher is not.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

/// Below this every user can make folders, and so be the first to take a name.
const PUBLIC: &str = "/var/tmp";

/// Refuses a folder below [`PUBLIC`] that another user has made, or to which another user's link
/// leads.
pub(crate) fn not_led_elsewhere(path: &Path) -> Result<(), StateError> {
    let us = effective_uid();
    for above in path.ancestors().take_while(|above| *above != Path::new(PUBLIC)) {
        if !above.starts_with(PUBLIC) {
            return Ok(());
        }
        match fs::symlink_metadata(above) {
            Ok(meta) if ![0, us].contains(&meta.uid()) => {
                return Err(StateError::Owner { path: above.to_owned(), owner: meta.uid(), us });
            }
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(StateError::io("look at", above, e));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Makes `path` a folder that only this user can enter.
///
/// # Errors
/// [`StateError::Owner`] and [`StateError::NotOurs`] if it exists and must not be touched.
pub fn make_private(path: &Path) -> Result<(), StateError> {
    not_led_elsewhere(path)?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|e| StateError::io("make the folder", path, e))?;
    not_led_elsewhere(path)?;
    let meta = fs::metadata(path).map_err(|e| StateError::io("look at", path, e))?;
    let us = effective_uid();
    if meta.uid() != us {
        return Err(StateError::Owner { path: path.to_owned(), owner: meta.uid(), us });
    }
    if meta.mode() & 0o077 == 0 {
        return Ok(());
    }
    // Changing the mode of a folder with other content would be a surprise.
    let mut inside = fs::read_dir(path).map_err(|e| StateError::io("list", path, e))?;
    if inside.next().is_some() && !path.join(LOCK).exists() {
        return Err(StateError::NotOurs { path: path.to_owned() });
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
        .map_err(|e| StateError::io("close to other users", path, e))
}

fn lock(dir: &Path) -> Result<Lock, StateError> {
    let path = dir.join(LOCK);
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(|e| StateError::io("open", &path, e))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            // The sentence is worth printing even if the pid cannot be read.
            let _ = (&file).take(32).read_to_string(&mut pid);
            let pid = if pid.trim().is_empty() { "unknown" } else { pid.trim() }.to_owned();
            return Err(StateError::Locked { path: dir.to_owned(), pid });
        }
        Err(TryLockError::Error(e)) => return Err(StateError::io("lock", &path, e)),
    }
    let mut lock = Lock(file);
    let write = |file: &mut File| {
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())?;
        // After a power cut a name without its inode could be a file that we may not open.
        file.sync_all()
    };
    write(&mut lock.0).map_err(|e| StateError::io("write", &path, e))?;
    Ok(lock)
}

/// The effective uid of this process.
pub fn effective_uid() -> u32 {
    // SAFETY: geteuid takes nothing, touches nothing and cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
pub(crate) mod tests;
