//! Checksums in the form of `sha256sum`: a line for each file, `HASH  PATH`.

use super::{MACHINES, REQUEST};
use crate::record::RecordError;
use aws_lc_rs::digest::{SHA256, digest};
use base::text::hex;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path};

/// Name of the file.
pub const SUMS: &str = "SHA256SUMS";
/// Longest list that is read: some hundred thousand files.
const SUMS_BYTES_MAX: u64 = 16 << 20;

/// Checksums by path, relative to the archive.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sums(BTreeMap<String, String>);

/// SHA-256 in hexadecimal.
pub fn sha256(content: &[u8]) -> String {
    hex(digest(&SHA256, content).as_ref())
}

/// SHA-256 of a file in hexadecimal, without its content in memory.
///
/// # Errors
/// When it cannot be read.
pub fn sha256_of_file(path: &Path) -> std::io::Result<String> {
    let (mut file, mut block) = (std::fs::File::open(path)?, vec![0; 1 << 18]);
    let mut context = aws_lc_rs::digest::Context::new(&SHA256);
    loop {
        match file.read(&mut block)? {
            0 => return Ok(hex(context.finish().as_ref())),
            n => context.update(&block[..n]),
        }
    }
}

/// Whether a path stays below the archive.
fn is_below(path: &str) -> bool {
    !path.is_empty() && Path::new(path).components().all(|c| matches!(c, Component::Normal(_)))
}

impl Sums {
    /// Adds a file.
    pub fn add(&mut self, file: &str, content: &[u8]) {
        self.0.insert(file.to_owned(), sha256(content));
    }

    /// All files with their hashes.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(file, hash)| (file.as_str(), hash.as_str()))
    }

    /// As it is kept.
    pub fn text(&self) -> String {
        self.files().map(|(file, hash)| format!("{hash}  {file}\n")).collect()
    }

    /// From its text.
    ///
    /// # Errors
    /// The line that is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let line = |line: &str| {
            let (hash, file) = line.split_once("  ").ok_or_else(|| line.to_owned())?;
            let is_hash = hash.len() == 64 && hash.bytes().all(|c| c.is_ascii_hexdigit());
            let file = file.strip_prefix("./").unwrap_or(file);
            if is_hash && is_below(file) {
                Ok((file.to_owned(), hash.to_ascii_lowercase()))
            } else {
                Err(line.to_owned())
            }
        };
        text.lines().filter(|l| !l.is_empty()).map(line).collect::<Result<_, _>>().map(Self)
    }

    /// Of an archive; `None` if it has none.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn read(dir: &Path) -> Result<Option<Self>, RecordError> {
        let path = dir.join(SUMS);
        let name = path.display().to_string();
        let file = match std::fs::File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(RecordError::Io(format!("cannot read {name}"), e)),
        };
        let mut text = String::new();
        let read = file.take(SUMS_BYTES_MAX).read_to_string(&mut text);
        read.map_err(|e| RecordError::Io(format!("cannot read {name}"), e))?;
        let wrong = |line| RecordError::Form(name, format!("not a checksum: {line}"));
        Self::parse(&text).map(Some).map_err(wrong)
    }

    /// Names of files that were changed, are gone, or are not listed although each archive has
    /// them.
    pub fn changed(&self, dir: &Path) -> Vec<String> {
        let look = |(file, hash): (&str, &str)| match sha256_of_file(&dir.join(file)) {
            Ok(found) if found == hash => None,
            Ok(_) => Some(format!("{file} has other content")),
            Err(e) if e.kind() == ErrorKind::NotFound => Some(format!("{file} is missing")),
            Err(e) => Some(format!("{file} cannot be read: {e}")),
        };
        let unlisted = [REQUEST, MACHINES].into_iter().filter(|name| !self.0.contains_key(*name));
        let unlisted = unlisted.map(|name| format!("{name} is not in {SUMS}"));
        self.files().filter_map(look).chain(unlisted).collect()
    }
}

#[cfg(test)]
mod tests;
