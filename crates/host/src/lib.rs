//! The machine: its counters of CPU, memory, disks, network and pressure, and what it is made of.
//!
//! Readers open a file and call a pure parser; where `/proc` and `/sys` are is a [`Root`], so tests
//! read captured text. What a kernel does not offer is absent from the result, never an error.
//!
//! - [`counters`]: `/proc/stat`, `meminfo`, `diskstats`, `net/dev`, `net/snmp`, `net/netstat`,
//!   pressure.
//! - [`connections`]: what TCP knows of its connections, by client.
//! - [`memory`]: how much of it this process may use.
//! - [`process`]: `/proc/self` or another process's; CPU time to the nanosecond.
//! - [`observe`]: a server of this machine: its processes, network, devices, page cache.
//! - [`sampler`]: all of it as statistics, once a second.
//! - [`bridges`]: the emulated links that run here, as statistics.
//! - [`socket_diagnosis`]: connections of TCP, as the kernel dumps them.
//! - [`silent_end`]: connections that vanish without a word, for another machine has their address.
//! - [`segments`]: what leaves the TCP stack, counted by programs in the kernel.
//! - [`inventory`]: the machine for reports. [`addresses`]: what others may reach it by.

pub mod addresses;
pub mod bridges;
pub mod connections;
pub mod counters;
pub mod inventory;
pub mod memory;
pub mod observe;
pub mod process;
pub mod sampler;
pub mod segments;
pub mod silent_end;
pub mod socket_diagnosis;

use std::io;
use std::path::{Path, PathBuf};

/// Longest file of `/proc` or `/sys` that is read: `/proc/stat` of a machine with 1 000 CPUs is a
/// few hundred kilobytes.
const FILE_MAX: u64 = 4 << 20;

/// Where `/proc` and `/sys` are.
#[derive(Debug, Clone)]
pub struct Root {
    /// `/`, or a folder with captured files.
    path: PathBuf,
}

impl Default for Root {
    fn default() -> Self {
        Self { path: PathBuf::from("/") }
    }
}

impl Root {
    /// A root elsewhere.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// The file `name` (`proc/stat`) as text.
    ///
    /// # Errors
    /// When there is no such file or it may not be read.
    pub fn read(&self, name: &str) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes(name, FILE_MAX)?).into_owned())
    }

    /// The first `max` bytes of the file `name`.
    ///
    /// # Errors
    /// When there is no such file or it may not be read.
    pub fn bytes(&self, name: &str, max: u64) -> io::Result<Vec<u8>> {
        use std::io::Read;
        let mut bytes = Vec::new();
        std::fs::File::open(self.path.join(name))?.take(max).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Where the file `name` is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Whether this is the machine itself.
    pub fn is_real(&self) -> bool {
        self.path == Path::new("/")
    }

    /// Where the link `name` leads, unresolved; `None` when it is not a link or may not be read.
    pub fn link(&self, name: &str) -> Option<PathBuf> {
        std::fs::read_link(self.path.join(name)).ok()
    }

    /// The folders in the folder `name`, links left out.
    pub fn folders(&self, name: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path.join(name)).into_iter().flatten().flatten();
        let folders = entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.filter_map(|e| e.file_name().into_string().ok()).collect()
    }

    /// The names in the folder `name`, sorted; none when there is no such folder.
    pub fn list(&self, name: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path.join(name)) else { return Vec::new() };
        let names = entries.filter_map(|e| e.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}
