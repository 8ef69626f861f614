//! Folders of this program's own for temporary files. What a program has left that was killed is
//! put away by the next one that makes such a folder.

use base::random::{Random, SystemRandom};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

#[cfg(test)]
mod tests;

/// What the names of all of them begin with.
const BEGIN: &str = "plimsoll-";
/// A file within, locked for as long as the folder is in use: the kernel unlocks it however that
/// ends.
const HELD: &str = "held";

/// A folder for a link's socket, or a server's files; it goes with this value.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Keeps the lock.
    _held: File,
}

impl Folder {
    /// Makes it, with `name` in its name.
    ///
    /// # Errors
    /// There is no room for temporary files.
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        Self::within(&std::env::temp_dir(), name)
    }

    fn within(dir: &Path, name: &str) -> io::Result<Self> {
        let begin = format!("{BEGIN}{name}-");
        put_away(dir, &begin);
        // The name is random, so the folder cannot have been made before.
        let path = dir.join(format!("{begin}{:016x}", SystemRandom.next_u64()));
        DirBuilder::new().mode(0o700).create(&path)?;
        // What is not locked yet is not taken for left behind: see `put_away`.
        let held = File::create_new(path.join(HELD)).and_then(|held| held.lock().map(|()| held));
        match held {
            Ok(held) => Ok(Self { path, _held: held }),
            Err(e) => {
                let _gone = fs::remove_dir_all(&path);
                Err(e)
            }
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where a link is asked.
    pub(crate) fn socket(&self) -> PathBuf {
        self.path.join("link.sock")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.path);
    }
}

/// Removes folders of this user that no running program uses. One without anything in it may just
/// have been made, and stays; so does one that is locked.
fn put_away(dir: &Path, begin: &str) {
    // SAFETY: takes nothing, and always succeeds.
    let user = unsafe { libc::geteuid() };
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let ours = entry.file_name().to_string_lossy().starts_with(begin)
            && fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir() && meta.uid() == user);
        if ours && is_left(&path.join(HELD)) {
            let _gone = fs::remove_dir_all(&path);
        }
    }
}

/// Whether this file is not locked any more; the program that makes it locks it at once.
fn is_left(held: &Path) -> bool {
    // One that was made a moment ago may not be locked yet.
    let old = |file: &File| -> io::Result<bool> {
        let age = file.metadata()?.modified()?.elapsed().unwrap_or_default();
        Ok(age > base::limits::LAB_FOLDER_YOUNG)
    };
    let Ok(file) = File::open(held) else { return false };
    old(&file).unwrap_or(false) && file.try_lock().is_ok()
}
