//! What is on disk of the network: the change that waits, and the one that was confirmed last.
//!
//! Both files have the same form (`docs/formats/host.md`), so that a confirmation is one rename:
//! after a power cut there is a change that waits, or a confirmed one, never both of one change.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use host_network::compile::Record;
use host_network::configuration::Configuration;
use host_network::dhcp;
use host_network::state::State;
use serde::{Deserialize, Serialize};

/// The change that waits for its confirmation.
const WAITING: &str = "network.waiting";
/// The change that was confirmed last.
const CONFIRMED: &str = "network.confirmed";
/// Held by the one process that takes steps.
const LOCK: &str = "network.lock";
/// Links with DHCP.
const DHCP: &str = "dhcp";
/// Longest file that is read.
const FILE_MAX: u64 = 16 << 20;

/// A change as it is on disk before its first step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Its number, higher than that of the one before.
    pub number: u64,
    /// The boot in which it was made.
    pub boot: String,
    /// Seconds for its confirmation.
    pub seconds: u32,
    /// The configuration that it leads to.
    pub configuration: Configuration,
    /// The record that belongs to it.
    pub record: Record,
    /// The state before its first step.
    pub old: State,
    /// Links that Plimsoll has not made and may change in both directions.
    pub adopted: BTreeSet<String>,
    /// Whether steps to it are left that a boot or a new device has begun: there is no way back of
    /// them.
    #[serde(default)]
    pub unfinished: bool,
}

/// The folder of the helper.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Opens the folder, which is made if it is not there.
    ///
    /// # Errors
    /// The operating system's.
    pub fn open(path: &Path) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        Ok(Self { path: path.to_owned() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The links with DHCP.
    pub fn dhcp(&self) -> dhcp::Folder {
        dhcp::Folder::at(&self.path.join(DHCP))
    }

    /// Waits until no other process takes steps, and holds them off. The end of the process ends
    /// it as well.
    ///
    /// # Errors
    /// The operating system's.
    pub fn lock(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).mode(0o600);
        let file = file.open(self.path.join(LOCK))?;
        file.lock()?;
        Ok(file)
    }

    /// The change that waits for its confirmation.
    ///
    /// # Errors
    /// The file cannot be read, or is not one of the helper's.
    pub fn waiting(&self) -> io::Result<Option<Change>> {
        self.read(WAITING)
    }

    /// The change that was confirmed last.
    ///
    /// # Errors
    /// The file cannot be read, or is not one of the helper's.
    pub fn confirmed(&self) -> io::Result<Option<Change>> {
        self.read(CONFIRMED)
    }

    /// Enters a change that waits. It is on disk when this returns.
    ///
    /// # Errors
    /// The operating system's; nothing is entered then.
    pub fn enter(&self, change: &Change) -> io::Result<()> {
        self.write(WAITING, change)
    }

    /// Enters a confirmed change that never waited, as after a boot.
    ///
    /// # Errors
    /// The operating system's; nothing is entered then.
    pub fn enter_confirmed(&self, change: &Change) -> io::Result<()> {
        self.write(CONFIRMED, change)
    }

    /// Makes the change that waits the confirmed one.
    ///
    /// # Errors
    /// The operating system's.
    pub fn confirm(&self) -> io::Result<()> {
        fs::rename(self.path.join(WAITING), self.path.join(CONFIRMED))?;
        self.flush()
    }

    /// Forgets the change that waits: it was taken back.
    ///
    /// # Errors
    /// The operating system's.
    pub fn forget(&self) -> io::Result<()> {
        match fs::remove_file(self.path.join(WAITING)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            done => done?,
        }
        self.flush()
    }

    fn read(&self, name: &str) -> io::Result<Option<Change>> {
        use std::io::Read;
        let file = match File::open(self.path.join(name)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut bytes = Vec::new();
        file.take(FILE_MAX).read_to_end(&mut bytes)?;
        let change = serde_json::from_slice(&bytes).map_err(|e| {
            let why = format!("{}: {e}", self.path.join(name).display());
            io::Error::new(io::ErrorKind::InvalidData, why)
        })?;
        Ok(Some(change))
    }

    fn write(&self, name: &str, change: &Change) -> io::Result<()> {
        let temporary = self.path.join(format!("{name}.new"));
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(true).write(true).mode(0o600);
        let mut file = options.open(&temporary)?;
        file.write_all(&serde_json::to_vec(change)?)?;
        file.sync_all()?;
        fs::rename(&temporary, self.path.join(name))?;
        self.flush()
    }

    fn flush(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}
