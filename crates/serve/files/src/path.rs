//! Paths as clients of these services see them: `/` is the list of shares, what follows a share's
//! name is within it.

use base::limits::{NAME_MAX, TRANSFER_PARTS_MAX, TRANSFER_PATH_MAX};
use thiserror::Error;

use vfs::status::Status;

/// Why a path is none: the client's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PathError {
    /// There is a NUL in it.
    #[error("the path contains a NUL byte")]
    Nul,
    /// It, or a part of it, is longer than any can be.
    #[error("the path is too long")]
    TooLong,
}

impl From<PathError> for Status {
    fn from(error: PathError) -> Self {
        match error {
            PathError::Nul => Self::Invalid,
            PathError::TooLong => Self::NameTooLong,
        }
    }
}

/// A path from the list of shares on, without `.`, `..` and empty parts. There is nothing above its
/// root, so no path leads out.
#[derive(Debug, Clone, Default)]
pub struct VPath {
    parts: Vec<Vec<u8>>,
    /// Whether it was written as only a directory may be, whatever it leads to.
    of_dir: bool,
}

impl PartialEq for VPath {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

impl Eq for VPath {}

impl VPath {
    /// The list of shares.
    pub const ROOT: Self = Self { parts: Vec::new(), of_dir: false };

    /// Reads a path from the root on, with or without a slash before it.
    ///
    /// # Errors
    /// By [`PathError`].
    pub fn parse(path: &[u8]) -> Result<Self, PathError> {
        Self::ROOT.join(path)
    }

    /// Reads a path as seen from this directory: what begins with a slash is from the root on. `..`
    /// is what is above by name, whatever links led here.
    ///
    /// # Errors
    /// By [`PathError`].
    pub fn join(&self, path: &[u8]) -> Result<Self, PathError> {
        if path.len() > TRANSFER_PATH_MAX {
            return Err(PathError::TooLong);
        }
        if path.contains(&0) {
            return Err(PathError::Nul);
        }
        let parts = if path.starts_with(b"/") { Vec::new() } else { self.parts.clone() };
        let mut joined = Self { parts, of_dir: false };
        for part in path.split(|b| *b == b'/') {
            match part {
                b"" | b"." => {}
                b".." => drop(joined.parts.pop()),
                name if name.len() > NAME_MAX => return Err(PathError::TooLong),
                name => joined.parts.push(name.to_vec()),
            }
        }
        let long = joined.parts.len() > TRANSFER_PARTS_MAX || joined.len() > TRANSFER_PATH_MAX;
        if long { Err(PathError::TooLong) } else { Ok(joined) }
    }

    /// The path as `text` has written it: with a slash, or `/.`, at the end it names a directory
    /// and nothing else (POSIX, XBD 4.16).
    #[must_use]
    pub fn as_written(self, text: &[u8]) -> Self {
        let of_dir = text.ends_with(b"/") || text.ends_with(b"/.");
        Self { of_dir, ..self }
    }

    /// Whether it names a directory and nothing else.
    pub fn is_of_dir(&self) -> bool {
        self.of_dir
    }

    /// The path of an entry of this directory.
    #[must_use]
    pub fn with(&self, name: &[u8]) -> Self {
        let mut parts = self.parts.clone();
        parts.push(name.to_vec());
        Self { parts, of_dir: false }
    }

    /// The path of what lies below this directory by these parts.
    #[must_use]
    pub fn below(&self, parts: &[Vec<u8>]) -> Self {
        Self { parts: [self.parts.as_slice(), parts].concat(), of_dir: false }
    }

    /// The path above; the root's is itself.
    #[must_use]
    pub fn parent(&self) -> Self {
        let mut parts = self.parts.clone();
        parts.pop();
        Self { parts, of_dir: false }
    }

    /// Its last part; `None` for the root.
    pub fn name(&self) -> Option<&[u8]> {
        self.parts.last().map(Vec::as_slice)
    }

    /// The share's name, and the path within it; `None` for the root.
    pub fn share(&self) -> Option<(&[u8], &[Vec<u8>])> {
        self.parts.split_first().map(|(share, within)| (share.as_slice(), within))
    }

    /// Its parts.
    pub fn parts(&self) -> &[Vec<u8>] {
        &self.parts
    }

    /// Whether it is the list of shares.
    pub fn is_root(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether it is `other` or lies below it.
    pub fn starts_with(&self, other: &Self) -> bool {
        self.parts.starts_with(&other.parts)
    }

    /// As bytes, beginning with a slash.
    pub fn to_bytes(&self) -> Vec<u8> {
        if self.is_root() {
            return b"/".to_vec();
        }
        let mut bytes = Vec::with_capacity(self.len());
        for part in &self.parts {
            bytes.push(b'/');
            bytes.extend_from_slice(part);
        }
        bytes
    }

    fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len() + 1).sum()
    }
}

impl std::fmt::Display for VPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.to_bytes()))
    }
}

#[cfg(test)]
mod tests;
