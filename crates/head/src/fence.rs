//! What is done before a resource starts, so that its former owner cannot write any more: fences,
//! then the lock on the file `owner` in the state directory (docs/formats/heads.md), which holds
//! the number of the ownership. The lock belongs to the open file, is passed to the process of the
//! resource, and is free when that process is gone.

mod eviction;
mod former;
mod process;
mod program;

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::file_lock::lock;
use crate::lease;
use crate::limits::HEAD_OWNER_FILE_MAX;
pub use crate::machine::FenceError;
use crate::mounts;
pub use eviction::Evict;
use eviction::Eviction;
pub use former::release;
pub use process::ProcessFence;
pub use program::ProgramFence;

/// Name of the file in the state directory.
pub const OWNER: &str = "owner";
/// The version of the file.
const FORMAT: u32 = 1;
/// The file is written as one sector, so that no power cut leaves a part of it.
const SECTOR: usize = 512;
/// How often a lock that is held is tried again.
const LOCK_EVERY: Duration = Duration::from_millis(50);
/// How long, before the fences are tried again.
const LOCK_TIME: Duration = Duration::from_secs(5);

/// Content of the file `owner`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerFile {
    /// Version of the format.
    pub format: u32,
    /// The head that owns the resource, or did last.
    pub head: String,
    /// The number of that ownership.
    pub number: u64,
    /// The process of the resource; 0 until it is started.
    #[serde(default)]
    pub pid: u32,
    /// Which start of the machine that was (`/proc/sys/kernel/random/boot_id`).
    #[serde(default)]
    pub boot: String,
    /// Whether the head that has started the process has seen its end.
    #[serde(default)]
    pub released: bool,
}

/// Something that keeps a former owner from writing.
pub trait Fence: Send + Sync {
    /// For messages.
    fn name(&self) -> &'static str;

    /// Tries it; true if the former owner cannot write any more, as far as this fence can know.
    ///
    /// # Errors
    /// Why it could not be tried.
    fn fence(&self, resource: &str, former: &OwnerFile, path: &Path) -> Result<bool, String>;
}

/// What is fenced for which ownership.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The resource.
    pub resource: String,
    /// Its state directory.
    pub state: PathBuf,
    /// This head.
    pub head: String,
    /// The number of the ownership.
    pub number: u64,
    /// The number of the last ownership that served clients.
    pub served: u64,
    /// Former owners up to this number may be followed where nothing shows that they cannot write:
    /// they are down, as the administrator has confirmed.
    pub unfenced_up_to: Option<u64>,
    /// The client of CephFS of a former owner that was lost.
    pub evict: Option<Evict>,
}

impl Claim {
    /// Whether a former owner may be followed that nothing keeps from writing. One that came after
    /// the confirmation may be alive.
    fn permits(&self, former: &OwnerFile) -> bool {
        self.unfenced_up_to.is_some_and(|last| former.number <= last)
    }
}

/// The lock on the file `owner`, until it is dropped everywhere.
#[derive(Debug)]
pub struct OwnerLock {
    file: File,
    content: OwnerFile,
    client: Option<u64>,
}

impl OwnerLock {
    /// Enters the process that has the lock now.
    ///
    /// # Errors
    /// The file system's.
    pub fn enter(&mut self, pid: u32) -> io::Result<()> {
        self.content.pid = pid;
        write(&self.file, &self.content)
    }

    /// The client of CephFS that has the lock, if it is on CephFS.
    pub fn client(&self) -> Option<u64> {
        self.client
    }

    /// The open file that has the lock, for the process of the resource.
    ///
    /// # Errors
    /// There is no descriptor.
    pub fn pass(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

/// Fences the former owner of a resource and takes the lock, unless it is to give up.
///
/// # Errors
/// [`FenceError`].
pub fn take(
    claim: &Claim,
    fences: &[Box<dyn Fence>],
    give_up: &AtomicBool,
) -> Result<OwnerLock, FenceError> {
    let path = claim.state.join(OWNER);
    // Whatever uses the file system from here on may wait for a client that is gone.
    let eviction = claim.evict.as_ref().and_then(|evict| Eviction::prepare(evict, &claim.state));
    let failed = |what: &str, e: &dyn std::fmt::Display| {
        FenceError::Failed(format!("cannot {what} {}: {e}", path.display()))
    };
    let make = DirBuilder::new().recursive(true).mode(0o700).create(&claim.state);
    make.map_err(|e| failed("make the directory of", &e))?;
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(|e| failed("open", &e))?;
    let former = read(&file).map_err(|e| failed("read", &e))?;
    check(&former, claim)?;
    // The end of the former process must be known before its lock is taken: a file system that
    // drops the locks of a machine that it has lost does not keep it from writing.
    let known = former::is_gone(&former, &claim.head, &path) || mounts::fences(&claim.state);
    let mut locked = lock(&file).map_err(|e| failed("lock", &e))?;
    let mut fenced = known;
    if !locked || !fenced {
        let (done, reports) = run(claim, fences, (&former, &file, &path), give_up)?;
        fenced |= done;
        let until = lease::now() + LOCK_TIME;
        while !locked && lease::now() < until && !give_up.load(Ordering::Relaxed) {
            std::thread::sleep(LOCK_EVERY);
            locked = lock(&file).map_err(|e| failed("lock", &e))?;
        }
        if !locked {
            return Err(is_locked_by(&former, &reports));
        }
        if !fenced && !claim.permits(&former) {
            return Err(FenceError::Unfenced(former::unfenced(&former, claim, &reports)));
        }
    }
    drop(eviction);
    // It may have been written between reading and locking.
    is_still(&former, &read(&file).map_err(|e| failed("read", &e))?, claim)?;
    let content = OwnerFile {
        format: FORMAT,
        head: claim.head.clone(),
        number: claim.number,
        pid: 0,
        boot: boot_id(),
        released: false,
    };
    write(&file, &content).map_err(|e| failed("write", &e))?;
    Ok(OwnerLock { file, content, client: mounts::ceph_client(&claim.state) })
}

/// Runs the fences until one succeeds; whether one did, and why others could not be tried. None is
/// run once the claim is over: the former owner may be the present one by then.
fn run(
    claim: &Claim,
    fences: &[Box<dyn Fence>],
    (former, file, path): (&OwnerFile, &File, &Path),
    give_up: &AtomicBool,
) -> Result<(bool, String), FenceError> {
    let mut reports = Vec::new();
    for fence in fences {
        if give_up.load(Ordering::Relaxed) {
            return Err(is_locked_by(former, ""));
        }
        let now = read(file);
        let now = now.map_err(|e| FenceError::Failed(format!("cannot read {OWNER}: {e}")))?;
        is_still(former, &now, claim)?;
        match fence.fence(&claim.resource, former, path) {
            Ok(true) => return Ok((true, String::new())),
            Ok(false) => {}
            Err(why) => reports.push(format!("{}: {why}", fence.name())),
        }
    }
    let text = reports.join("; ");
    Ok((false, if text.is_empty() { text } else { format!(" ({text})") }))
}

/// Another head may have become the owner, which was not fenced: it is the next attempt's.
fn is_still(former: &OwnerFile, now: &OwnerFile, claim: &Claim) -> Result<(), FenceError> {
    check(now, claim)?;
    match now.number == former.number {
        true => Ok(()),
        false => Err(is_locked_by(now, "")),
    }
}

fn is_locked_by(former: &OwnerFile, reports: &str) -> FenceError {
    let head = if former.head.is_empty() { "another program" } else { &former.head };
    FenceError::Locked(format!("{head}{reports}"))
}

/// The former owner must have a lower number, and a format that is known; and the directory must be
/// that of the last one: a machine without the cluster file system may have another one there.
fn check(former: &OwnerFile, claim: &Claim) -> Result<(), FenceError> {
    if former.format > FORMAT {
        let state = claim.state.display();
        return Err(FenceError::Failed(format!(
            "the state directory {state} has been used by a newer version of plimsoll: \
             update this head"
        )));
    }
    if former.number >= claim.number {
        return Err(FenceError::Superseded(former.number));
    }
    match former.number < claim.served && !is_without_owner(former, claim) {
        true => Err(FenceError::Failed(format!(
            "the state directory {} is not the one that was served last (number {}, it has {}): \
             mount the cluster file system on this head",
            claim.state.display(),
            claim.served,
            former.number
        ))),
        false => Ok(()),
    }
}

/// Whether a state directory is in use and has no `owner`: the administrator has removed that.
fn is_without_owner(former: &OwnerFile, claim: &Claim) -> bool {
    let others = std::fs::read_dir(&claim.state).into_iter().flatten().flatten();
    former.number == 0 && others.map(|entry| entry.file_name()).any(|name| name != OWNER)
}

/// Reads the file; an empty one is that of a new resource.
fn read(file: &File) -> io::Result<OwnerFile> {
    let size = file.metadata()?.len();
    if size == 0 {
        return Ok(OwnerFile::default());
    }
    let damaged = |why: &str| {
        let text = format!(
            "it is damaged ({why}); check that no head serves the resource, then remove it"
        );
        io::Error::new(io::ErrorKind::InvalidData, text)
    };
    if size > HEAD_OWNER_FILE_MAX {
        return Err(damaged("too long"));
    }
    let mut bytes = vec![0; size as usize];
    file.read_exact_at(&mut bytes, 0)?;
    serde_json::from_slice(&bytes).map_err(|e| damaged(&e.to_string()))
}

fn write(file: &File, content: &OwnerFile) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(content)?;
    bytes.resize(bytes.len().max(SECTOR - 1), b' ');
    bytes.push(b'\n');
    file.write_all_at(&bytes, 0)?;
    file.set_len(bytes.len() as u64)?;
    file.sync_all()
}

/// Which start of this machine it is.
fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests;
