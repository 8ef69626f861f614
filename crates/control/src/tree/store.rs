//! The revisions of the configuration on disk: `STATE/configuration/NNNNNN.toml`, the highest is
//! current; `current.toml` points to it, for people.
//!
//! A revision is written to a temporary file, flushed, renamed, and its folder flushed, before
//! success is reported. The few operations on files that this takes are a trait, so that a test can
//! cut the power between any two of them.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::limits::CONFIGURATION_REVISIONS_MAX;
use base::node::Context;
use vfs::flush::FlushSite;

use super::document::Document;
use super::revision::Revision;
use super::text;

const FOLDER: &str = "configuration";
const CURRENT: &str = "configuration/current.toml";
const ASIDE: &str = ".aside";

/// Operations on files below the state directory; names are relative to it.
pub trait Disk: Send + Sync {
    /// What is in a folder; one that is not there is empty.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;
    /// A file's content; `None` if it is not there.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;
    /// Writes a file with this content; an existing one is replaced.
    fn write(&self, name: &str, content: &[u8]) -> io::Result<()>;
    /// Appends to a file, which is created if necessary.
    fn append(&self, name: &str, content: &[u8]) -> io::Result<()>;
    /// Flushes the content of a file to disk.
    fn flush(&self, name: &str) -> io::Result<()>;
    /// Gives a file another name, in place of what had it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Takes a file away; one that is not there is no error.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Has the names in the folder of this file on disk.
    fn flush_names(&self, name: &str) -> io::Result<()>;
    /// Makes a folder, if need be, and has its name on disk.
    fn make_folder(&self, name: &str) -> io::Result<()>;
    /// Creates a symbolic link to a file in its folder; an existing one is replaced.
    fn point(&self, name: &str, to: &str) -> io::Result<()>;
}

/// The size of a log of lines; a last line that a power cut has torn is terminated, so that the
/// next one can be read.
///
/// # Errors
/// The file cannot be read, or not be written to.
pub(crate) fn repair(disk: &dyn Disk, name: &str) -> io::Result<u64> {
    let content = disk.read(name)?.unwrap_or_default();
    let size = content.len() as u64;
    if content.last().is_none_or(|last| *last == b'\n') {
        return Ok(size);
    }
    disk.append(name, b"\n")?;
    Ok(size + 1)
}

/// Makes room for a new file of a log: each gets the number after its own, and the last of `files`
/// goes.
///
/// # Errors
/// The disk refuses.
pub(crate) fn rotate(disk: &dyn Disk, name: &str, files: usize) -> io::Result<()> {
    let old = |n: usize| if n == 0 { name.to_owned() } else { format!("{name}.{n}") };
    disk.remove(&old(files.saturating_sub(1)))?;
    for n in (0..files.saturating_sub(1)).rev() {
        match disk.rename(&old(n), &old(n + 1)) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    Ok(())
}

/// Replaces a file: old or new after a power cut, and new once this has returned.
pub(crate) fn write_whole(disk: &dyn Disk, name: &str, content: &[u8]) -> io::Result<()> {
    let aside = format!("{name}{ASIDE}");
    disk.write(&aside, content)?;
    disk.flush(&aside)?;
    disk.rename(&aside, name)?;
    disk.flush_names(name)
}

/// Why the configuration cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The machine.
    #[error("cannot use the files of the configuration")]
    Io(#[from] io::Error),
    /// A revision is not what we wrote, or another version of the program did.
    #[error("revision {number} of the configuration cannot be used: {reason}")]
    Damaged {
        /// Which.
        number: u64,
        /// Why.
        reason: String,
    },
}

/// The revisions that are kept.
pub struct Store {
    disk: Arc<dyn Disk>,
    root: &'static Context,
    /// Ascending.
    numbers: Vec<u64>,
}

impl Store {
    /// Finds the revisions; returns the current one, if there is any.
    ///
    /// # Errors
    /// [`StoreError`]; an older revision is never taken in place of a damaged one.
    pub fn open(
        disk: Arc<dyn Disk>,
        root: &'static Context,
    ) -> Result<(Self, Option<(Document, Revision)>), StoreError> {
        disk.make_folder(FOLDER)?;
        let mut numbers = Vec::new();
        for name in disk.list(FOLDER)? {
            if name.ends_with(ASIDE) {
                disk.remove(&format!("{FOLDER}/{name}"))?;
            } else if let Some(number) = name.strip_suffix(".toml") {
                numbers.extend(number.parse::<u64>().ok());
            }
        }
        numbers.sort_unstable();
        let store = Self { disk, root, numbers };
        let current = store.numbers.last().map(|last| store.load(*last)).transpose()?;
        Ok((store, current))
    }

    /// Reads a revision.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] also if it is not kept.
    pub fn load(&self, number: u64) -> Result<(Document, Revision), StoreError> {
        let damaged = |reason: String| StoreError::Damaged { number, reason };
        let text = self.text(number)?.ok_or_else(|| damaged("it is not retained".to_owned()))?;
        let (document, revision) = text::read(self.root, &text).map_err(|problems| {
            let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
            damaged(all.join("; "))
        })?;
        match revision {
            Some(revision) if revision.number == number => Ok((document, revision)),
            _ => Err(damaged("its header does not match this revision".to_owned())),
        }
    }

    /// Reads a revision's head alone: a thousand of them are shown at once.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn head(&self, number: u64) -> Result<Revision, StoreError> {
        let damaged = |reason: &str| StoreError::Damaged { number, reason: reason.to_owned() };
        let text = self.text(number)?.ok_or_else(|| damaged("it is not retained"))?;
        let head = text::read_head(&text).filter(|head| head.number == number);
        head.ok_or_else(|| damaged("its header does not match this revision"))
    }

    /// The file of a revision.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn text(&self, number: u64) -> io::Result<Option<String>> {
        let bytes = self.disk.read(&file(number))?;
        bytes
            .map(String::from_utf8)
            .transpose()
            .map_err(|e| io::Error::new(ErrorKind::InvalidData, e))
    }

    /// Numbers of the revisions that are kept, ascending.
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// Writes the next revision; it is current after a power cut once this has returned.
    ///
    /// # Errors
    /// The disk refuses; the previous revision stays current.
    pub fn commit(&mut self, document: &Document, revision: &Revision) -> io::Result<()> {
        let name = file(revision.number);
        let text = text::write_revision(document, revision);
        if let Err(e) = write_whole(&*self.disk, &name, text.as_bytes()) {
            // It may have its name already, and would be current at the next start.
            self.disk.remove(&name)?;
            self.disk.flush_names(&name)?;
            return Err(e);
        }
        self.numbers.push(revision.number);
        // From here on the current revision is not affected.
        let base = name.rsplit('/').next().unwrap_or(&name);
        let _ = self.disk.point(CURRENT, base);
        while self.numbers.len() > CONFIGURATION_REVISIONS_MAX {
            let oldest = self.numbers.remove(0);
            let _ = self.disk.remove(&file(oldest));
        }
        Ok(())
    }
}

fn file(number: u64) -> String {
    format!("{FOLDER}/{number:06}.toml")
}

/// The state directory itself.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Everything below `path`.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn flush_folder(&self, name: &str) -> io::Result<()> {
        match self.at(name).parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }
}

/// What a flush of a file, and of its name, is called in tests that leave it out.
fn sites(name: &str) -> (FlushSite, FlushSite) {
    match name.split(['/', '.']).next() {
        Some(FOLDER) => (FlushSite::Revision, FlushSite::RevisionName),
        Some("secrets") => (FlushSite::Secrets, FlushSite::SecretsName),
        _ => (FlushSite::Audit, FlushSite::AuditName),
    }
}

impl Disk for Folder {
    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.at(folder)) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let name = |entry: io::Result<fs::DirEntry>| {
            entry.map(|entry| entry.file_name().to_string_lossy().into_owned())
        };
        entries.map(name).collect()
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.at(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        // A left-over would keep its old mode.
        self.remove(name)?;
        let mut file =
            File::options().write(true).create_new(true).mode(0o600).open(self.at(name))?;
        file.write_all(content)
    }

    fn append(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut file = File::options().append(true).create(true).mode(0o600).open(self.at(name))?;
        file.write_all(content)
    }

    fn flush(&self, name: &str) -> io::Result<()> {
        if !sites(name).0.enabled() {
            return Ok(());
        }
        File::options().write(true).open(self.at(name))?.sync_all()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.at(from), self.at(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.at(name)) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    fn flush_names(&self, name: &str) -> io::Result<()> {
        if !sites(name).1.enabled() {
            return Ok(());
        }
        self.flush_folder(name)
    }

    fn make_folder(&self, name: &str) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(self.at(name))?;
        if !FlushSite::ConfigurationFolder.enabled() {
            return Ok(());
        }
        // Its owner and mode, too: without them a server without privilege is shut out of it.
        File::open(self.at(name))?.sync_all()?;
        self.flush_folder(name)
    }

    fn point(&self, name: &str, to: &str) -> io::Result<()> {
        let aside = format!("{name}{ASIDE}");
        self.remove(&aside)?;
        std::os::unix::fs::symlink(to, self.at(&aside))?;
        self.rename(&aside, name)
    }
}
