//! The files of a set: a tree of directories that follows from seed and parameters; names and sizes
//! are functions of (seed, index). No list of files exists: agents that share a set agree on it by
//! its parameters.
//!
//! The tree grows as Filebench's does (`fileset_populate_subdir`): below the root directory there
//! are directories of random depth and width until all files have one; the mean depth is the
//! logarithm of the entries to the base of the width. A directory is a few bytes, a file none.

use crate::dist::{Dist, Form};
use crate::limits::{DEPTH_MAX, DIRECTORIES_MAX, ENTRIES_MAX, FILE_MAX};
use crate::seed_of;
use base::random::{Random, SeededRandom};
use std::fmt::Write as _;

/// How files of a set are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// For both.
    #[default]
    ReadWrite,
    /// For reading.
    ReadOnly,
    /// For writing.
    WriteOnly,
}

/// What a set is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct SetSpec {
    /// Its name: that of its directory, or of its one file.
    pub name: String,
    /// One file, directly below the folder of the run.
    pub single: bool,
    /// Files.
    pub entries: u64,
    /// Directories without files, to be made and removed.
    pub leaf_dirs: u64,
    /// Entries of a directory.
    pub width: Dist,
    /// Depth of directories, instead of the one that follows from width and entries.
    pub depth: Option<Dist>,
    /// Shape of the gamma distributions of width and depth; 0 for no variation.
    pub dir_gamma: f64,
    /// Bytes of a file.
    pub size: Dist,
    /// Percent of the files that exist at the start.
    pub prealloc: u8,
    /// Files that exist with the right size are kept from one run to the next.
    pub reuse: bool,
    /// How files are opened.
    pub access: Access,
    /// Whether the set may be in the server's cache at the start, if the program states it.
    pub cached: Option<bool>,
}

impl SetSpec {
    /// One file of `size` bytes.
    pub fn file(name: &str, size: Dist) -> Self {
        Self {
            name: name.to_owned(),
            single: true,
            entries: 1,
            leaf_dirs: 0,
            width: Dist::fixed(10),
            depth: None,
            dir_gamma: 0.0,
            size,
            prealloc: 0,
            reuse: false,
            access: Access::default(),
            cached: None,
        }
    }

    /// A set of files in directories of about `width` entries.
    pub fn set(name: &str, entries: u64, width: Dist, size: Dist) -> Self {
        Self { single: false, entries, width, dir_gamma: 1.5, ..Self::file(name, size) }
    }
}

/// Why a set cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// More files or leaf directories than [`ENTRIES_MAX`].
    #[error("{0} entries, at most {ENTRIES_MAX}")]
    Entries(u64),
    /// The width makes too many directories.
    #[error("the tree has more than {DIRECTORIES_MAX} directories: increase dirwidth")]
    Directories,
    /// A width below 2 has no depth.
    #[error("dirwidth is {0}, at least 2 for more than one entry")]
    Width(u64),
}

#[derive(Debug, Clone, Copy)]
struct Directory {
    parent: u32,
    serial: u32,
}

/// Files of one directory: from `first` up to the next leaf's first.
#[derive(Debug, Clone, Copy)]
struct Leaf {
    directory: u32,
    first: u32,
}

/// The tree of a set.
#[derive(Debug, Clone)]
pub struct Tree {
    spec: SetSpec,
    seed: u64,
    mean_depth: f64,
    directories: Vec<Directory>,
    leaves: Vec<Leaf>,
    leaf_dirs: Vec<Directory>,
}

/// What [`seed_of`] is asked for.
const TREE: u64 = 1;
const SIZE: u64 = 2;
const EXISTS: u64 = 3;

impl Tree {
    /// Grows the tree of `spec`.
    ///
    /// # Errors
    /// When the set is larger than the bounds allow.
    pub fn new(spec: SetSpec, seed: u64) -> Result<Self, TreeError> {
        let all = spec.entries.saturating_add(spec.leaf_dirs);
        if all > ENTRIES_MAX {
            return Err(TreeError::Entries(all));
        }
        let width = spec.width.mean();
        if all > 1 && width < 2.0 {
            return Err(TreeError::Width(width.max(0.0) as u64));
        }
        let mean_depth = if all > 1 { (all as f64).ln() / width.ln() } else { 0.0 };
        let directories = vec![Directory { parent: 0, serial: 0 }];
        let (leaves, leaf_dirs) = (Vec::new(), Vec::new());
        let mut tree = Self { spec, seed, mean_depth, directories, leaves, leaf_dirs };
        if !tree.spec.single {
            Growth::new(&mut tree).grow()?;
        }
        Ok(tree)
    }

    /// What it was made from.
    pub fn spec(&self) -> &SetSpec {
        &self.spec
    }

    /// Files, existing or not.
    pub fn files(&self) -> u64 {
        self.spec.entries
    }

    /// Directories that are made and removed by acts.
    pub fn leaf_dirs(&self) -> u64 {
        self.leaf_dirs.len() as u64
    }

    /// Directories that always exist, the set's own one included; none of a single file.
    pub fn directories(&self) -> u64 {
        if self.spec.single { 0 } else { self.directories.len() as u64 }
    }

    /// Mean of the depth that was aimed at.
    pub fn mean_depth(&self) -> f64 {
        self.mean_depth
    }

    /// Bytes of a file when it is made.
    pub fn size(&self, file: u64) -> u64 {
        if let Some(size) = self.spec.size.constant() {
            return size.min(FILE_MAX);
        }
        let mut random = SeededRandom::new(seed_of(self.seed, SIZE, file));
        self.spec.size.sample(&mut random).min(FILE_MAX)
    }

    /// Whether a file, or a leaf directory, exists at the start.
    pub fn exists(&self, entry: u64) -> bool {
        let share = u64::from(self.spec.prealloc);
        share >= 100 || SeededRandom::new(seed_of(self.seed, EXISTS, entry)).below(100) < share
    }

    /// Directories above a file, the set's own one included.
    pub fn depth(&self, file: u64) -> u32 {
        if self.spec.single {
            return 0;
        }
        let mut at = self.leaf(file).directory;
        let mut depth = 1;
        while at != 0 {
            at = self.directories[at as usize].parent;
            depth += 1;
        }
        depth
    }

    /// Number of the directory that a file is in.
    pub fn directory_of(&self, file: u64) -> u64 {
        if self.spec.single { 0 } else { u64::from(self.leaf(file).directory) }
    }

    /// Path of a file, relative to the folder of the run.
    pub fn file_path(&self, file: u64) -> String {
        if self.spec.single {
            return self.spec.name.clone();
        }
        let leaf = self.leaf(file);
        let serial = file as u32 - leaf.first + 1;
        self.path(Directory { parent: leaf.directory, serial })
    }

    /// Path of a directory; 0 is the set's own one. Parents have smaller numbers.
    pub fn directory_path(&self, directory: u64) -> String {
        self.path(self.directories[directory as usize])
    }

    /// Path of a leaf directory.
    pub fn leaf_dir_path(&self, leaf: u64) -> String {
        self.path(self.leaf_dirs[leaf as usize])
    }

    /// Bytes of memory that the tree takes.
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + (self.directories.capacity() + self.leaf_dirs.capacity()) * size_of::<Directory>()
            + self.leaves.capacity() * size_of::<Leaf>()
    }

    fn leaf(&self, file: u64) -> Leaf {
        let after = self.leaves.partition_point(|leaf| u64::from(leaf.first) <= file);
        self.leaves[after - 1]
    }

    fn path(&self, last: Directory) -> String {
        let mut serials = Vec::with_capacity(8);
        let mut at = last;
        while at.serial != 0 {
            serials.push(at.serial);
            at = self.directories[at.parent as usize];
        }
        let mut path = self.spec.name.clone();
        for serial in serials.iter().rev() {
            // Writing to a string cannot fail.
            let _ = write!(path, "/{serial:08}");
        }
        path
    }
}

/// A directory that is being filled.
struct Open {
    directory: u32,
    depth: u32,
    leaf: bool,
    left: u64,
    serial: u32,
}

/// The tree while it grows.
struct Growth<'a> {
    tree: &'a mut Tree,
    random: SeededRandom,
}

impl<'a> Growth<'a> {
    fn new(tree: &'a mut Tree) -> Self {
        let random = SeededRandom::new(seed_of(tree.seed, TREE, 0));
        Self { tree, random }
    }

    fn grow(&mut self) -> Result<(), TreeError> {
        let (files, leaf_dirs) = (self.tree.spec.entries, self.tree.spec.leaf_dirs);
        let last = self.fill(files, 0, |tree, open, placed| {
            if open.serial == 1 {
                // The first file of a directory begins its range.
                tree.leaves.push(Leaf { directory: open.directory, first: placed as u32 });
            }
        })?;
        self.fill(leaf_dirs, last, |tree, open, _| {
            tree.leaf_dirs.push(Directory { parent: open.directory, serial: open.serial });
        })?;
        let tree = &mut *self.tree;
        tree.directories.shrink_to_fit();
        tree.leaves.shrink_to_fit();
        tree.leaf_dirs.shrink_to_fit();
        Ok(())
    }

    /// Puts `wanted` entries into new directories below the root, after `serial` of its entries;
    /// returns its last serial.
    fn fill(
        &mut self,
        wanted: u64,
        serial: u32,
        mut put: impl FnMut(&mut Tree, &Open, u64),
    ) -> Result<u32, TreeError> {
        let root = Open { directory: 0, depth: 1, leaf: false, left: u64::MAX, serial };
        let mut stack = vec![root];
        let mut placed = 0;
        while placed < wanted {
            let Some(open) = stack.last_mut() else { break };
            if open.left == 0 {
                stack.pop();
                continue;
            }
            open.left -= 1;
            open.serial += 1;
            if open.leaf {
                put(self.tree, open, placed);
                placed += 1;
                continue;
            }
            let (directory, depth) =
                (Directory { parent: open.directory, serial: open.serial }, open.depth + 1);
            let child = self.directory(directory, depth)?;
            stack.push(child);
        }
        Ok(stack.first().map_or(serial, |root| root.serial))
    }

    fn directory(&mut self, directory: Directory, depth: u32) -> Result<Open, TreeError> {
        let number = self.tree.directories.len();
        if number >= DIRECTORIES_MAX {
            return Err(TreeError::Directories);
        }
        self.tree.directories.push(directory);
        let spec = &self.tree.spec;
        let random = &mut self.random;
        let gamma = |mean: f64, random: &mut SeededRandom| {
            let form = Form::Gamma { shape: spec.dir_gamma, mean };
            Dist::from(form).draw(random)
        };
        let deepest = match &spec.depth {
            Some(depth) => depth.draw(random),
            None if spec.dir_gamma > 0.0 => gamma(self.tree.mean_depth, random),
            None => self.tree.mean_depth,
        };
        let width = match spec.width.constant() {
            None => spec.width.draw(random),
            Some(width) if spec.dir_gamma > 0.0 => gamma(width as f64, random),
            Some(width) => width as f64,
        };
        // Filebench truncates the depth and rounds the width up.
        let deepest = (deepest as u32).clamp(1, DEPTH_MAX);
        let left = (width.ceil() as u64).max(1);
        Ok(Open { directory: number as u32, depth, leaf: depth >= deepest, left, serial: 0 })
    }
}

#[cfg(test)]
mod tests;
