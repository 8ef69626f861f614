//! The files of a program on a server before it runs: directories, and files with their content.

use super::{below, connect};
use crate::client::files::{Files, OpenHow, PIECE_MAX};
use crate::client::{Checker, ClientError, Target};
use crate::programs::set::{FOLDER, content_key};
use crate::programs::worker::CallCounts;
use lab_program::limits::DEPTH_MAX;
use lab_program::program::Plan;
use lab_program::tree::Tree;

/// Bytes compared at both ends of a file that is used again.
const END_BYTES: u64 = 4096;

/// Makes the files of a program below `target`. Sets that state `reuse` retain files of the right
/// size and content; others are made again each time. Returns the calls that it took.
///
/// # Errors
/// The target cannot be reached, is full, or refuses.
pub fn prepare(target: &Target, plan: &Plan, checker: &Checker) -> Result<CallCounts, ClientError> {
    let mut files = connect(target, plan)?;
    make(&mut *files, plan, checker)?;
    files.leave()?;
    Ok(files.counts())
}

/// The same over a connection.
///
/// # Errors
/// As [`prepare`].
pub fn make(files: &mut dyn Files, plan: &Plan, checker: &Checker) -> Result<(), ClientError> {
    ensure(files, FOLDER)?;
    for (number, pool) in plan.pools.iter().enumerate() {
        let spec = pool.tree.spec();
        if !spec.reuse {
            clear(files, &below(&spec.name), 0)?;
        }
        let set = Set { tree: &pool.tree, seed: plan.seed, number: number as u32, checker };
        set.make(files)?;
    }
    Ok(())
}

/// Removes the folder of a program. Returns the calls that it took.
///
/// # Errors
/// Something in it cannot be removed.
pub fn remove(target: &Target, plan: &Plan) -> Result<CallCounts, ClientError> {
    let mut files = connect(target, plan)?;
    clear(&mut *files, FOLDER, 0)?;
    files.leave()?;
    Ok(files.counts())
}

/// Makes a directory unless it exists.
fn ensure(files: &mut dyn Files, path: &str) -> Result<(), ClientError> {
    match files.look(path)? {
        Some(entry) if entry.directory => Ok(()),
        _ => files.make_directory(path),
    }
}

/// Removes what has this path, with all that is in it.
fn clear(files: &mut dyn Files, path: &str, depth: u32) -> Result<(), ClientError> {
    match files.look(path)? {
        None => return Ok(()),
        Some(entry) if !entry.directory => return files.remove(path),
        // Deeper than any set: made by no program.
        Some(_) if depth > DEPTH_MAX + 2 => {}
        Some(_) => {
            let mut names = Vec::new();
            files.list(path, &mut |name| names.push(name.to_owned()))?;
            for name in names {
                clear(files, &format!("{path}/{name}"), depth + 1)?;
            }
        }
    }
    files.remove_directory(path)
}

struct Set<'a> {
    tree: &'a Tree,
    seed: u64,
    number: u32,
    checker: &'a Checker,
}

impl Set<'_> {
    fn make(&self, files: &mut dyn Files) -> Result<(), ClientError> {
        let reuse = self.tree.spec().reuse;
        let directory = |files: &mut dyn Files, path: &str| match reuse {
            true => ensure(files, path),
            false => files.make_directory(path),
        };
        for number in 0..self.tree.directories() {
            directory(files, &below(&self.tree.directory_path(number)))?;
        }
        for leaf in 0..self.tree.leaf_dirs() {
            let path = below(&self.tree.leaf_dir_path(leaf));
            if self.tree.exists(leaf) {
                directory(files, &path)?;
            } else if reuse && files.look(&path)?.is_some() {
                files.remove_directory(&path)?;
            }
        }
        let mut buffer = vec![0; PIECE_MAX as usize];
        for file in 0..self.tree.files() {
            let path = below(&self.tree.file_path(file));
            let exists = if reuse { files.look(&path)?.is_some() } else { false };
            match (exists, self.tree.exists(file)) {
                (_, true) => self.file(files, file, &path, exists, &mut buffer)?,
                (true, false) => files.remove(&path)?,
                (false, false) => {}
            }
        }
        Ok(())
    }

    fn file(
        &self,
        files: &mut dyn Files,
        file: u64,
        path: &str,
        exists: bool,
        buffer: &mut [u8],
    ) -> Result<(), ClientError> {
        let size = self.tree.size(file);
        let key = content_key(self.seed, self.number, file);
        let has = files.open(0, path, if exists { OpenHow::Both } else { OpenHow::New })?;
        if !exists || has != size || !self.is_right(files, key, size, buffer)? {
            let mut at = 0;
            while at < size {
                let len = PIECE_MAX.min(size - at) as usize;
                self.checker.content.fill(key, at, &mut buffer[..len]);
                match files.write(0, at, &buffer[..len], false)? {
                    0 => return Err(ClientError::Protocol("a write of no bytes".into())),
                    put => at += put as u64,
                }
            }
            if has > size {
                files.truncate(0, size)?;
            }
        }
        files.close(0)
    }

    /// Whether a file has its content at both ends.
    fn is_right(
        &self,
        files: &mut dyn Files,
        key: u64,
        size: u64,
        buffer: &mut [u8],
    ) -> Result<bool, ClientError> {
        let len = END_BYTES.min(size) as usize;
        for at in [0, size - len as u64] {
            let mut have = 0;
            while have < len {
                match files.read(0, at + have as u64, &mut buffer[have..len])? {
                    0 => return Ok(false),
                    got => have += got,
                }
            }
            if self.checker.content.mismatch(key, at, &buffer[..len]).is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
