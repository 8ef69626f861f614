//! A walk over a directory tree, depth first. What is open is kept in a list and not on the stack:
//! clients decide how deep a tree is.

use std::collections::VecDeque;

use base::limits::{DAV_TREE_DEPTH_MAX, DAV_TREE_ENTRIES_MAX};
use vfs::attr::FileType;
use vfs::fs::Result;
use vfs::status::Status;

use files::list::{Listed, Listing};
use files::{Caller, Core, Node};

/// A directory that is being walked.
pub struct Level<T> {
    /// Its name in the directory above; empty for the top of the tree.
    pub name: Vec<u8>,
    /// What the walk is for keeps this of it.
    pub state: T,
    listing: Listing,
    /// Entries that were listed and not yet taken.
    entries: VecDeque<Listed>,
}

/// The walk: the directories from the top of the tree down to the current one.
pub struct Descent<T> {
    levels: Vec<Level<T>>,
    /// Entries kept over all of them.
    kept: usize,
}

impl<T> Descent<T> {
    /// Begins at the top of a tree.
    pub fn new(top: Node, state: T) -> Self {
        let (listing, entries) = (Listing::new(top), VecDeque::new());
        let top = Level { name: Vec::new(), state, listing, entries };
        Self { levels: vec![top], kept: 0 }
    }

    /// The current directory, and what is kept of it; `None` when the walk is over.
    pub fn current(&mut self) -> Option<(&Node, &mut T)> {
        self.levels.last_mut().map(|level| (level.listing.dir(), &mut level.state))
    }

    /// How many directories the current one is within, itself included.
    pub fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Has entries of the current directory ready to be taken; false when there are no more.
    ///
    /// # Errors
    /// As of READDIR.
    pub async fn fill(&mut self, core: &Core, who: &Caller) -> Result<bool> {
        let Some(level) = self.levels.last_mut() else { return Ok(false) };
        while level.entries.is_empty() {
            let Some(batch) = level.listing.next(core, who).await? else { return Ok(false) };
            self.kept += batch.len();
            level.entries = batch.into();
        }
        Ok(true)
    }

    /// Takes the next entry of the current directory, as far as they are ready.
    pub fn take(&mut self) -> Option<Listed> {
        let level = self.levels.last_mut()?;
        let taken = level.entries.pop_front()?;
        if level.entries.is_empty() {
            // A deep tree would hold a batch for each of its levels.
            level.listing.take_held();
        }
        self.kept = self.kept.saturating_sub(1);
        Some(taken)
    }

    /// Takes the names of all that is no directory, as far as they are ready.
    pub fn take_files(&mut self) -> Vec<Vec<u8>> {
        let Some(level) = self.levels.last_mut() else { return Vec::new() };
        let is_dir = |listed: &Listed| {
            listed.entry.is_some_and(|(_, attr)| attr.kind == FileType::Directory)
        };
        let entries = std::mem::take(&mut level.entries);
        let (dirs, files): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_dir);
        level.entries = dirs.into();
        if level.entries.is_empty() {
            level.listing.take_held();
        }
        self.kept = self.kept.saturating_sub(files.len());
        files.into_iter().map(|listed| listed.name).collect()
    }

    /// Whether there is a level below the current directory.
    ///
    /// # Errors
    /// [`Status::NameTooLong`] below [`DAV_TREE_DEPTH_MAX`] directories.
    pub fn check_depth(&self) -> Result<()> {
        if self.levels.len() < DAV_TREE_DEPTH_MAX { Ok(()) } else { Err(Status::NameTooLong) }
    }

    /// Goes down into an entry of the current directory, which was taken last.
    ///
    /// # Errors
    /// As of [`Self::check_depth`].
    pub fn enter(&mut self, entry: Listed, node: Node, state: T) -> Result<()> {
        self.check_depth()?;
        if self.kept > DAV_TREE_ENTRIES_MAX
            && let Some(level) = self.levels.last_mut()
        {
            level.listing.rewind(&entry);
            self.kept = self.kept.saturating_sub(level.entries.len());
            level.entries = VecDeque::new();
        }
        let (listing, entries) = (Listing::new(node), VecDeque::new());
        self.levels.push(Level { name: entry.name, state, listing, entries });
        Ok(())
    }

    /// Lists the current directory once more from its begin.
    pub fn restart(&mut self) {
        let Some(level) = self.levels.last_mut() else { return };
        level.listing = Listing::new(level.listing.dir().clone());
        self.kept = self.kept.saturating_sub(level.entries.len());
        level.entries = VecDeque::new();
    }

    /// Goes up again; gives the directory that was left, with what was kept of it.
    pub fn leave(&mut self) -> Option<Level<T>> {
        let left = self.levels.pop()?;
        self.kept = self.kept.saturating_sub(left.entries.len());
        Some(left)
    }

    /// The way from the top of the tree to the current directory, as names.
    pub fn components(&self) -> impl Iterator<Item = &[u8]> {
        self.levels.iter().skip(1).map(|level| level.name.as_slice())
    }
}
