//! What must, and what may, be there after a crash. Data is kept in units of 512 bytes, each with
//! the version that is stable and those that came after it without being stable.

use std::collections::{BTreeMap, BTreeSet};

use base::random::{Random, SeededRandom};
use wire::nfs3::Nfstime3;

use crate::nfs3::Handle;

/// Bytes of a unit.
pub const UNIT: usize = 512;
/// Units of a file at most.
pub const UNITS: usize = 96;

/// Content of a unit at a version; version 0 is a hole.
pub fn content(version: u64) -> [u8; UNIT] {
    let mut bytes = [0; UNIT];
    if version != 0 {
        SeededRandom::new(version).fill(&mut bytes);
    }
    bytes
}

/// A unit of data.
#[derive(Debug, Clone, Default)]
pub struct Unit {
    /// What was last acknowledged as stable.
    pub stable: u64,
    /// What was written since, oldest first.
    pub maybe: Vec<u64>,
}

impl Unit {
    /// The version is stable.
    pub fn settle(&mut self, version: u64) {
        self.stable = version;
        self.maybe.clear();
    }
}

/// A regular file.
#[derive(Debug, Clone)]
pub struct File {
    /// Its handle, which must outlive the crash.
    pub handle: Handle,
    /// Its data.
    pub units: Vec<Unit>,
    /// Smallest size it may have.
    pub size_min: u64,
    /// Largest size it may have.
    pub size_max: u64,
    /// Size as the last acknowledged operation left it.
    pub size: u64,
    /// Permission bits; `None` while a change is in flight.
    pub mode: Option<u32>,
    /// Its ctime must not be older.
    pub ctime: Nfstime3,
    /// Names that it has.
    pub names: u32,
    /// Whether its removal may have happened.
    pub doubtful: bool,
}

impl File {
    /// A new, empty file.
    pub fn new(handle: Handle, mode: u32, ctime: Nfstime3) -> Self {
        Self {
            handle,
            units: vec![Unit::default(); UNITS],
            size_min: 0,
            size_max: 0,
            size: 0,
            mode: Some(mode),
            ctime,
            names: 1,
            doubtful: false,
        }
    }

    /// A write of units is in flight.
    pub fn writing(&mut self, first: usize, versions: &[u64]) {
        for (unit, version) in self.units[first..].iter_mut().zip(versions) {
            unit.maybe.push(*version);
        }
        self.size_max = self.size_max.max(((first + versions.len()) * UNIT) as u64);
    }

    /// It was acknowledged, as stable or not.
    pub fn written(&mut self, first: usize, versions: &[u64], stable: bool) {
        let end = ((first + versions.len()) * UNIT) as u64;
        self.size = self.size.max(end);
        if stable {
            self.size_min = self.size_min.max(end);
            for (unit, version) in self.units[first..].iter_mut().zip(versions) {
                unit.settle(*version);
            }
        }
    }

    /// A commit of everything was acknowledged.
    pub fn committed(&mut self) {
        for unit in &mut self.units {
            if let Some(last) = unit.maybe.last().copied() {
                unit.settle(last);
            }
        }
        self.size_min = self.size;
    }

    /// A truncation to `units` is in flight.
    pub fn truncating(&mut self, units: usize) {
        let size = (units * UNIT) as u64;
        self.size_min = self.size_min.min(size);
        self.size_max = self.size_max.max(size);
        for unit in &mut self.units[units..] {
            unit.maybe.push(0);
        }
    }

    /// It was acknowledged.
    pub fn truncated(&mut self, units: usize) {
        let size = (units * UNIT) as u64;
        (self.size, self.size_min, self.size_max) = (size, size, size);
        for unit in &mut self.units[units..] {
            unit.settle(0);
        }
    }

    /// The file as it came back against what it may be.
    ///
    /// # Errors
    /// The first unit that is wrong.
    pub fn compare(&self, data: &[u8]) -> Result<(), String> {
        let size = data.len() as u64;
        if size < self.size_min || size > self.size_max {
            let (min, max) = (self.size_min, self.size_max);
            return Err(format!("{size} bytes, {min} to {max} were acknowledged"));
        }
        for (n, unit) in self.units.iter().enumerate() {
            let mut found = [0; UNIT];
            let tail = data.get(n * UNIT..).unwrap_or_default();
            let length = tail.len().min(UNIT);
            found[..length].copy_from_slice(&tail[..length]);
            let fits = |version: &u64| content(*version)[..] == found[..];
            if !fits(&unit.stable) && !unit.maybe.iter().any(fits) {
                let (stable, maybe) = (unit.stable, unit.maybe.len());
                let zero = if found == [0; UNIT] { "; zeros instead" } else { "" };
                let at = n * UNIT;
                return Err(format!(
                    "bytes at {at} are neither version {stable:x} nor one of {maybe} later{zero}"
                ));
            }
        }
        Ok(())
    }
}

/// What a name leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A file, by its number.
    File(usize),
    /// A directory, by its number.
    Dir(usize),
    /// A symbolic link with its target.
    Link(String),
    /// A named pipe with its permission bits.
    Fifo(u32),
}

/// A directory.
#[derive(Debug, Clone)]
pub struct Dir {
    /// Its handle.
    pub handle: Handle,
    /// Permission bits.
    pub mode: u32,
    /// Its names.
    pub names: BTreeMap<String, Node>,
    /// Names in an unknown state: an operation on them was in flight.
    pub doubtful: BTreeSet<String>,
    /// Whether it was removed, or may have been.
    pub gone: bool,
}

impl Dir {
    /// An empty directory.
    pub fn new(handle: Handle, mode: u32) -> Self {
        let (names, doubtful) = (BTreeMap::new(), BTreeSet::new());
        Self { handle, mode, names, doubtful, gone: false }
    }
}

#[cfg(test)]
mod tests;
