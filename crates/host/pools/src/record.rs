//! The record in a pool: its name, its settings, and its writable degraded mounts.
//!
//! A disk that was away has an older record, of which the list of mounts is the start of the list
//! of the others. Lists of which neither is the start of the other belong to disks that were
//! written apart from each other: no order of writes joins them.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::profile::Profile;
use crate::sys;

/// Name of the file, in the top-level subvolume.
pub const FILE: &str = ".plimsoll-pool";
/// Its name while it is written.
pub(crate) const TEMPORARY: &str = ".plimsoll-pool.new";
/// A file that only takes space: in a full pool it gives way to the record, without which a pool is
/// neither mounted without a disk nor repaired.
const RESERVE: &str = ".plimsoll-pool.reserve";
/// Bytes of it: the largest record twice, since the old one's space is free only later.
const RESERVE_BYTES: u32 = 512 << 10;
/// Longest file that is read: each mark is below 200 bytes.
const FILE_MAX: u64 = 1 << 20;
/// Marks that a record has at most; the oldest go first, and their number stays.
const MARKS_MAX: usize = 1_000;

/// A writable degraded mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Number among the marks of the pool.
    pub number: u64,
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// Random, so that two mounts at the same time differ.
    pub nonce: u64,
    /// Numbers of the devices that were missing.
    pub missing: Vec<u64>,
}

/// What of a repair is still to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Repair {
    /// A disk has returned: scrub, then convert.
    Scrub,
    /// Convert what was written without copies.
    Convert,
}

/// The record of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Name of the pool.
    pub name: String,
    /// Its profile.
    pub profile: Profile,
    /// Whether it is mounted at a start of the server even if a disk is missing.
    #[serde(default)]
    pub mount_degraded: bool,
    /// Days between two scrubs; none: no schedule.
    #[serde(default)]
    pub scrub_every_days: Option<u32>,
    /// When the last complete scrub ended, in milliseconds since 1970.
    #[serde(default)]
    pub scrubbed_ms: Option<u64>,
    /// A repair that is not complete.
    #[serde(default)]
    pub repair: Option<Repair>,
    /// Writable degraded mounts, oldest first.
    #[serde(default)]
    pub marks: Vec<Mark>,
}

impl Record {
    /// That of a new pool.
    pub fn new(name: &str, profile: Profile) -> Self {
        Self {
            name: name.to_owned(),
            profile,
            mount_degraded: false,
            scrub_every_days: None,
            scrubbed_ms: None,
            repair: None,
            marks: Vec::new(),
        }
    }

    /// Enters what is to be done. A conversion follows each scrub, and does not replace one.
    pub fn needs(&mut self, repair: Repair) {
        if self.repair != Some(Repair::Scrub) {
            self.repair = Some(repair);
        }
    }

    /// Enters that all chunks have their copies. A scrub that is needed still is.
    pub fn has_copies(&mut self) {
        self.repair.take_if(|repair| *repair == Repair::Convert);
    }

    /// Adds a mark of a writable degraded mount.
    pub fn mark(&mut self, time_ms: u64, nonce: u64, missing: &[u64]) {
        let number = self.marks.last().map_or(1, |last| last.number + 1);
        self.marks.push(Mark { number, time_ms, nonce, missing: missing.to_vec() });
        let excess = self.marks.len().saturating_sub(MARKS_MAX);
        self.marks.drain(..excess);
    }

    /// The marks at which two records part, if neither continues the other.
    pub fn apart<'a>(&'a self, other: &'a Self) -> Option<(&'a Mark, &'a Mark)> {
        let number = |mark: &Mark| mark.number;
        // Older marks of one may be gone: only those from the later start on are compared.
        let from = [self, other].iter().filter_map(|one| one.marks.first().map(number)).max()?;
        let later = |one: &'a Self| one.marks.iter().filter(move |mark| mark.number >= from);
        later(self).zip(later(other)).find(|(mine, theirs)| mine != theirs)
    }

    /// Reads that of a mounted pool; none if there is no file.
    ///
    /// # Errors
    /// The file cannot be read, or is not a record.
    pub fn read(mounted: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = match options.open(mounted.join(FILE)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut bytes = Vec::new();
        file.take(FILE_MAX).read_to_end(&mut bytes)?;
        serde_json::from_slice(&bytes).map(Some).map_err(|e| {
            let why = format!("the record of the pool is damaged: {e}");
            io::Error::new(io::ErrorKind::InvalidData, why)
        })
    }

    /// Writes that of a mounted pool, also one that is full. It is on disk when this returns.
    ///
    /// # Errors
    /// The operating system's; the record is as before then.
    pub fn write(&self, mounted: &Path) -> io::Result<()> {
        let bytes = serde_json::to_vec(self)?;
        match put(mounted, &bytes) {
            Err(e) if e.kind() == io::ErrorKind::StorageFull => {
                give_reserve(mounted)?;
                put(mounted, &bytes)?;
            }
            done => done?,
        }
        // Without room for it now, the next record takes it.
        let _ = take_reserve(mounted);
        Ok(())
    }
}

/// Puts these bytes in the place of the record.
fn put(mounted: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = mounted.join(TEMPORARY);
    remove(&temporary)?;
    let mut options = OpenOptions::new();
    let mut file = options.create_new(true).write(true).mode(0o600).open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&temporary, mounted.join(FILE))?;
    File::open(mounted)?.sync_all()
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Frees the reserve. Its space can be used after a complete transaction.
fn give_reserve(mounted: &Path) -> io::Result<()> {
    remove(&mounted.join(TEMPORARY))?;
    remove(&mounted.join(RESERVE))?;
    sys::sync_file_system(&File::open(mounted)?)
}

/// Takes the reserve if it is not there.
fn take_reserve(mounted: &Path) -> io::Result<()> {
    let path = mounted.join(RESERVE);
    let mut options = OpenOptions::new();
    let file = match options.create_new(true).write(true).mode(0o600).open(&path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        file => file?,
    };
    let taken = sys::allocate(&file, RESERVE_BYTES);
    if taken.is_err() {
        // An empty one would look like the reserve.
        remove(&path)?;
    }
    taken
}

#[cfg(test)]
mod tests;
