//! What the kernel knows of a mount, and the numbers of file systems that have none of their own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use super::lock::lock;

/// A mount (proc_pid_mountinfo(5)). Blanks are escaped in all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mount {
    /// The directory of the file system that is mounted.
    pub root: String,
    /// Type of the file system.
    pub kind: String,
    /// Mount source.
    pub source: String,
}

impl Mount {
    /// The mount with this number (`stx_mnt_id`), if this process sees it.
    pub fn with_id(id: u64) -> Option<Self> {
        let info = std::fs::read("/proc/self/mountinfo").ok()?;
        let (info, id) = (String::from_utf8_lossy(&info), id.to_string());
        info.lines().find(|line| line.split(' ').next() == Some(&id)).and_then(Self::parse)
    }

    fn parse(line: &str) -> Option<Self> {
        let (mount, file_system) = line.split_once(" - ")?;
        let root = mount.split(' ').nth(3)?.to_owned();
        let mut fields = file_system.split(' ').map(str::to_owned);
        Some(Self { root, kind: fields.next()?, source: fields.next()? })
    }
}

/// Numbers in use by device number. One device number is one file system only as long as that
/// stays open, which those that hold the number see to.
static IN_USE: Mutex<BTreeMap<u64, Weak<Number>>> = Mutex::new(BTreeMap::new());

/// The number of a file system without one of its own (`f_fsid` is 0, as on FUSE), by which locks
/// and clients distinguish it from others. Its device number is another one at each mount; this
/// one is made of type and mount source, and differs between all that are open at the same time.
#[derive(Debug)]
pub struct Number(u64);

impl Number {
    /// That of the file system with this device number, of which something is open.
    pub fn of(dev: u64, mount: &Mount) -> Arc<Self> {
        let mut all = lock(&IN_USE);
        all.retain(|_, number| number.strong_count() > 0);
        if let Some(number) = all.get(&dev).and_then(Weak::upgrade) {
            return number;
        }
        let used: Vec<u64> = all.values().filter_map(Weak::upgrade).map(|used| used.0).collect();
        let free = (0..=used.len()).map(|nth| hash(mount, nth)).find(|new| !used.contains(new));
        let number = Arc::new(Self(free.unwrap_or(dev)));
        all.insert(dev, Arc::downgrade(&number));
        number
    }

    /// As a number.
    pub fn get(&self) -> u64 {
        self.0
    }
}

/// The `nth` number for a type and a source.
fn hash(mount: &Mount, nth: usize) -> u64 {
    let text = format!("plimsoll file system {nth} {} {}", mount.kind, mount.source);
    let hash = blake3::hash(text.as_bytes());
    hash.as_bytes().first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

#[cfg(test)]
mod tests;
