//! The files of a program on a target: where they are, what they contain, and what they are like.

use lab_program::seed_of;
use lab_program::tree::Tree;
use std::collections::HashSet;

/// Folder of a program below the directory that a target names.
pub const FOLDER: &str = "plimsoll-lab.program";

/// Whether this is the name of such a folder, of one or of several agents.
pub fn is_folder(name: &str) -> bool {
    let agent = |rest: &str| rest.strip_prefix('.').is_some_and(|n| n.parse::<u64>().is_ok());
    name.strip_prefix(FOLDER).is_some_and(|rest| rest.is_empty() || agent(rest))
}

/// What [`seed_of`] is asked for: contents of the first set.
const CONTENT: u64 = 20;

/// The number from which content of a file is made.
pub fn content_key(seed: u64, set: u32, entry: u64) -> u64 {
    seed_of(seed, CONTENT + u64::from(set), entry)
}

/// What a set is on the target.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Figures {
    /// Files that the set may have.
    pub entries: u64,
    /// Files that exist at the start.
    pub existing: u64,
    /// Mean bytes of these.
    pub size_mean: f64,
    /// Mean files of a directory that has any.
    pub width_mean: f64,
    /// Mean directories above a file.
    pub depth_mean: f64,
    /// Directories.
    pub directories: u64,
}

impl Figures {
    /// The figures of a tree at the start.
    pub fn of(tree: &Tree) -> Self {
        let (mut existing, mut bytes, mut depths) = (0u64, 0u64, 0u64);
        let mut directories = HashSet::new();
        for file in (0..tree.files()).filter(|file| tree.exists(*file)) {
            existing += 1;
            bytes = bytes.saturating_add(tree.size(file));
            depths += u64::from(tree.depth(file));
            directories.insert(tree.directory_of(file));
        }
        let mean = |sum: u64, of: u64| if of == 0 { 0.0 } else { sum as f64 / of as f64 };
        Self {
            entries: tree.files(),
            existing,
            size_mean: mean(bytes, existing),
            width_mean: mean(existing, directories.len() as u64),
            depth_mean: mean(depths, existing),
            directories: tree.directories(),
        }
    }
}

#[cfg(test)]
mod tests;
