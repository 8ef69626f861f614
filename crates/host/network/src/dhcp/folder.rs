//! The links with DHCP, each a file (`docs/formats/host.md`): what starts and stops DHCP on a link
//! is its file, so that the guard can do it when the helper has ended.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::Holding;

/// Longest file that is read.
const FILE_MAX: u64 = 256 << 10;
/// Ends the name of a file that is being written: no link has a space in its name.
const TEMPORARY: &str = " new";

/// The folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder(PathBuf);

impl Folder {
    /// The folder at this path, which may not exist.
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes it, if it does not exist.
    ///
    /// # Errors
    /// The operating system's.
    pub fn make(&self) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)
    }

    /// Whether DHCP is on.
    pub fn has(&self, link: &str) -> bool {
        self.0.join(link).exists()
    }

    /// The lease of a link; nothing if DHCP is off. A file that is damaged counts as a start.
    pub fn read(&self, link: &str) -> Option<Holding> {
        let mut bytes = Vec::new();
        let file = File::open(self.0.join(link)).ok()?;
        let whole = file.take(FILE_MAX).read_to_end(&mut bytes).is_ok();
        let read = serde_json::from_slice(&bytes).ok().filter(|_| whole);
        Some(read.unwrap_or_else(|| Holding::begin("", 0)))
    }

    /// The leases on all links.
    pub fn all(&self) -> BTreeMap<String, Holding> {
        let names = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let names = names.filter_map(|one| one.file_name().into_string().ok());
        let names = names.filter(|name| !name.ends_with(TEMPORARY));
        names.filter_map(|name| Some((name.clone(), self.read(&name)?))).collect()
    }

    /// Enters the leases. It is on disk when this returns.
    ///
    /// # Errors
    /// The operating system's.
    pub fn write(&self, link: &str, holding: &Holding) -> io::Result<()> {
        self.make()?;
        let temporary = self.0.join(format!("{link}{TEMPORARY}"));
        let mut options = OpenOptions::new();
        let mut file =
            options.create(true).truncate(true).write(true).mode(0o600).open(&temporary)?;
        file.write_all(&serde_json::to_vec(holding)?)?;
        file.sync_all()?;
        fs::rename(&temporary, self.0.join(link))?;
        File::open(&self.0)?.sync_all()
    }

    /// DHCP is off.
    ///
    /// # Errors
    /// The operating system's.
    pub fn remove(&self, link: &str) -> io::Result<()> {
        match fs::remove_file(self.0.join(link)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            done => done?,
        }
        File::open(&self.0)?.sync_all()
    }
}
