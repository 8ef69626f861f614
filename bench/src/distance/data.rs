//! The content that is transferred: one large file, a tree of small ones, and the large file with
//! one hundredth of it changed. On tmpfs at both ends, of incompressible bytes.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use base::random::{Random, SeededRandom};
use serde::{Deserialize, Serialize};

/// Bytes that are written, compared and changed at once.
const PIECE: usize = 64 << 10;
/// One piece of this many is changed.
const CHANGED_OF: u64 = 100;
/// Bytes of a small file.
pub const SMALL: u64 = 16 << 10;
/// Small files of a directory.
const IN_DIRECTORY: u32 = 100;

/// The task of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Job {
    /// The large file, to an empty destination.
    Big,
    /// The tree, to an empty destination.
    Tree,
    /// The large file, to a destination that has it as it was before the change.
    Change,
}

impl Job {
    /// All, in the order of the tables.
    pub const ALL: [Self; 3] = [Self::Big, Self::Tree, Self::Change];

    /// Its name in tables and options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Big => "big",
            Self::Tree => "tree",
            Self::Change => "change",
        }
    }
}

/// Whether a program transfers the large file as one, or in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// As it is.
    Whole,
    /// Split into this many files, which are not joined again.
    Parts(u32),
}

/// Both ends' files; gone with the value.
pub struct Data {
    /// Everything.
    pub base: PathBuf,
    size: u64,
    files: u32,
}

impl Drop for Data {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.base);
    }
}

impl Data {
    /// Makes the source: `size` bytes, rounded up to whole pieces, and this many small files.
    ///
    /// # Errors
    /// When there is no space.
    pub fn make(base: &Path, size: u64, files: u32) -> io::Result<Self> {
        let size = size.max(1).next_multiple_of(PIECE as u64);
        let data = Self { base: base.to_owned(), size, files };
        fs::create_dir_all(data.from().join("tree"))?;
        let mut bytes = vec![0; SMALL as usize];
        let mut random = SeededRandom::new(16);
        for n in 0..files {
            let folder = data.from().join(format!("tree/{:04}", n / IN_DIRECTORY));
            if n % IN_DIRECTORY == 0 {
                fs::create_dir(&folder)?;
            }
            random.fill(&mut bytes);
            fs::write(folder.join(format!("{n:06}")), &bytes)?;
        }
        data.write_large(&data.from(), Shape::Whole)?;
        Ok(data)
    }

    /// The source.
    pub fn from(&self) -> PathBuf {
        self.base.join("from")
    }

    /// The destination, in a folder of its job's name.
    pub fn to(&self) -> PathBuf {
        self.base.join("to")
    }

    /// The folder of a job, below both.
    pub fn folder(job: Job, shape: Shape) -> &'static str {
        match (job, shape) {
            (Job::Tree, _) => "tree",
            (_, Shape::Whole) => "big",
            (_, Shape::Parts(_)) => "parts",
        }
    }

    /// Bytes of the content of a job, of which a change has one hundredth.
    pub fn bytes(&self, job: Job) -> u64 {
        match job {
            Job::Tree => u64::from(self.files) * SMALL,
            Job::Big | Job::Change => self.size,
        }
    }

    /// Directories of the tree.
    pub fn directories(&self) -> impl Iterator<Item = String> {
        (0..self.files.div_ceil(IN_DIRECTORY)).map(|n| format!("{n:04}"))
    }

    /// Prepares source and destination for a job. The files of another job are reused where they
    /// are equivalent.
    ///
    /// # Errors
    /// When there is no space.
    pub fn prepare(&self, job: Job, shape: Shape) -> io::Result<()> {
        let folder = Self::folder(job, shape);
        let (from, to) = (self.from().join(folder), self.to().join(folder));
        // There is space for one form at both ends, not for two.
        for (place, other) in [("from", "parts"), ("to", "parts"), ("to", "big"), ("to", "tree")] {
            if other != folder || (place == "to" && job != Job::Change) {
                remove(&self.base.join(place).join(other))?;
            }
        }
        fs::create_dir_all(&to)?;
        if job == Job::Tree {
            return Ok(());
        }
        if !from.exists() {
            self.write_large(&self.from(), shape)?;
        }
        let version = if job == Job::Change { 1 } else { 0 };
        self.change(&from, shape, version)?;
        if job == Job::Change {
            let whole = self
                .parts(shape)
                .all(|(name, at, end)| to.join(name).metadata().is_ok_and(|m| m.len() == end - at));
            if whole {
                self.change(&to, shape, 0)?;
            } else {
                remove(&to)?;
                self.write_large(&self.to(), shape)?;
            }
        }
        Ok(())
    }

    /// Whether the destination is what was sent.
    ///
    /// # Errors
    /// The difference.
    pub fn check(&self, job: Job, shape: Shape) -> io::Result<()> {
        let folder = Self::folder(job, shape);
        same(&self.from().join(folder), &self.to().join(folder))
    }

    /// Name, first byte and end of each file of the large one.
    fn parts(&self, shape: Shape) -> impl Iterator<Item = (String, u64, u64)> {
        let count = match shape {
            Shape::Whole => 1,
            Shape::Parts(count) => u64::from(count.max(1)),
        };
        let (size, pieces) = (self.size, self.size / PIECE as u64);
        let each = pieces.div_ceil(count) * PIECE as u64;
        (0..count).map(move |n| {
            let name = if shape == Shape::Whole { "big".to_owned() } else { format!("p{n}") };
            (name, (n * each).min(size), ((n + 1) * each).min(size))
        })
    }

    fn write_large(&self, place: &Path, shape: Shape) -> io::Result<()> {
        let folder = place.join(Self::folder(Job::Big, shape));
        fs::create_dir_all(&folder)?;
        for (name, at, end) in self.parts(shape) {
            let file = File::create(folder.join(name))?;
            for piece in at / PIECE as u64..end / PIECE as u64 {
                file.write_all_at(&content(piece, 0), piece * PIECE as u64 - at)?;
            }
        }
        Ok(())
    }

    /// Passes the pieces that change the content of a version.
    fn change(&self, folder: &Path, shape: Shape, version: u64) -> io::Result<()> {
        let made = self.from().join("tree").metadata()?.modified()?;
        for (name, at, end) in self.parts(shape) {
            let path = folder.join(name);
            let file = fs::OpenOptions::new().write(true).open(&path)?;
            for piece in (at / PIECE as u64..end / PIECE as u64).filter(|n| changes(*n)) {
                file.write_all_at(&content(piece, version), piece * PIECE as u64 - at)?;
            }
            // A second apart: programs that compare times see that one is newer.
            file.set_modified(made + std::time::Duration::from_secs(version))?;
        }
        Ok(())
    }
}

/// Whether a piece changes: one of each hundred, not always the same of them.
fn changes(piece: u64) -> bool {
    piece % CHANGED_OF == SeededRandom::new(piece / CHANGED_OF + 7).below(CHANGED_OF)
}

fn content(piece: u64, version: u64) -> Vec<u8> {
    let mut bytes = vec![0; PIECE];
    SeededRandom::new(piece * 2 + version + 1).fill(&mut bytes);
    bytes
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Whether two directories hold the same names with the same content, all of it.
fn same(one: &Path, other: &Path) -> io::Result<()> {
    let names = |dir: &Path| -> io::Result<Vec<_>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            names.push(entry?.file_name());
        }
        names.sort();
        Ok(names)
    };
    let wrong = |why: &str| io::Error::other(format!("{}: {why}", other.display()));
    let (ours, theirs) = (names(one)?, names(other)?);
    if ours != theirs {
        return Err(wrong(&format!("{} names, not {}", theirs.len(), ours.len())));
    }
    for name in ours {
        let (one, other) = (one.join(&name), other.join(&name));
        let wrong = |why: &str| io::Error::other(format!("{}: {why}", other.display()));
        if one.is_dir() {
            same(&one, &other)?;
            continue;
        }
        let (mut one, mut two) = (File::open(&one)?, File::open(&other)?);
        if one.metadata()?.len() != two.metadata()?.len() {
            return Err(wrong("is not whole"));
        }
        let (mut ours, mut theirs) = (vec![0; 1 << 20], vec![0; 1 << 20]);
        loop {
            let length = one.read(&mut ours)?;
            two.read_exact(theirs.get_mut(..length).unwrap_or_default())?;
            if ours.get(..length) != theirs.get(..length) {
                return Err(wrong("has another content"));
            }
            if length == 0 {
                break;
            }
        }
    }
    Ok(())
}
