//! What programs retain of a protocol that names files by handles: those of directories, as the
//! cache of names of a client, and files that are open.

use super::ClientError;
use super::files::{lost, not_open, split};
use std::collections::HashMap;

/// Handles of directories that are retained; with more they are looked up again.
const DIRECTORIES_MAX: usize = 8192;

/// A file that is open, with what the protocol has of it.
#[derive(Debug)]
struct Open<H> {
    handle: H,
    /// Of writes that are not committed.
    verifier: Option<[u8; 8]>,
}

/// Directories and open files of a connection.
#[derive(Debug)]
pub struct Handles<H> {
    directories: HashMap<String, Vec<u8>>,
    open: Vec<Option<Open<H>>>,
}

/// Looks up a name in a directory.
pub type Lookup<'a> = &'a mut dyn FnMut(&[u8], &str) -> Result<Option<Vec<u8>>, ClientError>;

impl<H> Handles<H> {
    /// None yet.
    pub fn new() -> Self {
        Self { directories: HashMap::new(), open: Vec::new() }
    }

    /// A directory by its path below the root; `missing` is the error if it is not there.
    ///
    /// # Errors
    /// That of looking up, or `missing`.
    pub fn directory(
        &mut self,
        root: &[u8],
        path: &str,
        lookup: Lookup<'_>,
        missing: fn(&str) -> ClientError,
    ) -> Result<Vec<u8>, ClientError> {
        if path.is_empty() {
            return Ok(root.to_vec());
        }
        if let Some(handle) = self.directories.get(path) {
            return Ok(handle.clone());
        }
        let (above, name) = split(path);
        let parent = self.directory(root, above, lookup, missing)?;
        let handle = lookup(&parent, name)?.ok_or_else(|| missing(path))?;
        if self.directories.len() >= DIRECTORIES_MAX {
            self.directories.clear();
        }
        self.directories.insert(path.to_owned(), handle.clone());
        Ok(handle)
    }

    /// A directory was removed.
    pub fn forget(&mut self, path: &str) {
        self.directories.remove(path);
    }

    /// A file was opened.
    pub fn put(&mut self, fd: usize, handle: H) {
        if self.open.len() <= fd {
            self.open.resize_with(fd + 1, || None);
        }
        self.open[fd] = Some(Open { handle, verifier: None });
    }

    /// An open file.
    ///
    /// # Errors
    /// None is open at this number.
    pub fn at(&self, fd: usize) -> Result<&H, ClientError> {
        let open = self.open.get(fd).and_then(Option::as_ref);
        open.map(|open| &open.handle).ok_or_else(not_open)
    }

    /// A file is closed.
    ///
    /// # Errors
    /// As [`Handles::at`].
    pub fn take(&mut self, fd: usize) -> Result<H, ClientError> {
        let open = self.open.get_mut(fd).and_then(Option::take);
        open.map(|open| open.handle).ok_or_else(not_open)
    }

    /// Numbers of open files.
    pub fn numbers(&self) -> Vec<usize> {
        (0..self.open.len()).filter(|fd| self.open[*fd].is_some()).collect()
    }

    /// A write that is not stable has this verifier.
    ///
    /// # Errors
    /// Writes before it had another one: the server has lost them.
    pub fn written(&mut self, fd: usize, verifier: [u8; 8]) -> Result<(), ClientError> {
        match self.open_mut(fd)?.verifier.replace(verifier) {
            Some(before) if before != verifier => Err(lost()),
            _ => Ok(()),
        }
    }

    /// A commit has this verifier, if any.
    ///
    /// # Errors
    /// Writes had another one: the server has lost them.
    pub fn committed(&mut self, fd: usize, verifier: Option<[u8; 8]>) -> Result<(), ClientError> {
        match self.open_mut(fd)?.verifier.take() {
            Some(before) if Some(before) != verifier => Err(lost()),
            _ => Ok(()),
        }
    }

    fn open_mut(&mut self, fd: usize) -> Result<&mut Open<H>, ClientError> {
        self.open.get_mut(fd).and_then(Option::as_mut).ok_or_else(not_open)
    }
}

#[cfg(test)]
mod tests;
