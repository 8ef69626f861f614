//! The files of a program before it runs: directories, and files with their content.

use super::sys;
use crate::client::{Checker, ClientError};
use crate::programs::set::{FOLDER, content_key};
use lab_program::program::Plan;
use lab_program::tree::Tree;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes written at a time.
const FILL_BYTES: usize = 1 << 20;
/// Bytes compared at both ends of a file that is used again.
const END_BYTES: u64 = 4096;

/// The folder of an agent: each has its own, since several may run on one machine.
fn folder(target: &Path, plan: &Plan) -> PathBuf {
    match plan.agent {
        (_, 1) => target.join(FOLDER),
        (agent, _) => target.join(format!("{FOLDER}.{agent}")),
    }
}

/// Makes the files of a program below `target`, and opens their folder. Sets that state `reuse`
/// retain files of the right size and content; others are made again each time.
///
/// # Errors
/// The directory is not there, is full, or refuses.
pub fn prepare(target: &Path, plan: &Plan, checker: &Checker) -> Result<File, ClientError> {
    let fail = |what: &str, path: &Path| ClientError::io(format!("{what} {}", path.display()));
    let folder = folder(target, plan);
    match std::fs::create_dir(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(fail("create the directory", &folder)(error));
        }
        _ => {}
    }
    let root = File::open(target).map_err(fail("open the directory", target))?;
    let flags = libc::O_RDONLY | libc::O_DIRECTORY;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let root = sys::open(&root, &name, flags).map_err(fail("open the directory", &folder))?;
    for (number, pool) in plan.pools.iter().enumerate() {
        let set = Set { root: &root, tree: &pool.tree, seed: plan.seed, number, checker };
        let name = &pool.tree.spec().name;
        if !pool.tree.spec().reuse {
            clear(&folder.join(name)).map_err(fail("remove", &folder.join(name)))?;
        }
        set.make().map_err(fail("make the files of", &folder.join(name)))?;
    }
    Ok(root)
}

/// Removes the folder of a program.
///
/// # Errors
/// Something in it cannot be removed.
pub fn remove(target: &Path, plan: &Plan) -> Result<(), ClientError> {
    let folder = folder(target, plan);
    clear(&folder).map_err(ClientError::io(format!("remove {}", folder.display())))
}

/// Removes a file or a directory; a symbolic link is removed, not followed.
fn clear(path: &Path) -> io::Result<()> {
    let gone = match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(error) => Err(error),
    };
    match gone {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

struct Set<'a> {
    root: &'a File,
    tree: &'a Tree,
    seed: u64,
    number: usize,
    checker: &'a Checker,
}

impl Set<'_> {
    fn make(&self) -> io::Result<()> {
        for directory in 0..self.tree.directories() {
            self.directory(&self.tree.directory_path(directory))?;
        }
        for leaf in 0..self.tree.leaf_dirs() {
            let path = self.tree.leaf_dir_path(leaf);
            if self.tree.exists(leaf) {
                self.directory(&path)?;
            } else {
                absent(self.named(&path, sys::remove_directory))?;
            }
        }
        let mut buffer = vec![0; FILL_BYTES];
        for file in 0..self.tree.files() {
            let path = self.tree.file_path(file);
            if self.tree.exists(file) {
                self.file(file, &path, &mut buffer)?;
            } else if self.tree.spec().reuse {
                absent(self.named(&path, sys::remove))?;
            }
        }
        Ok(())
    }

    fn named(&self, path: &str, run: fn(&File, &str) -> io::Result<()>) -> io::Result<()> {
        match path.rsplit_once('/') {
            None => run(self.root, path),
            Some((above, name)) => {
                let parent = sys::open(self.root, above, libc::O_PATH | libc::O_DIRECTORY)?;
                run(&parent, name)
            }
        }
    }

    fn directory(&self, path: &str) -> io::Result<()> {
        match self.named(path, sys::make_directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    fn file(&self, file: u64, path: &str, buffer: &mut [u8]) -> io::Result<()> {
        let size = self.tree.size(file);
        let key = content_key(self.seed, self.number as u32, file);
        let open = sys::open(self.root, path, libc::O_RDWR | libc::O_CREAT)?;
        if self.is_right(&open, key, size, buffer) {
            return Ok(());
        }
        let mut at = 0;
        while at < size {
            let len = (buffer.len() as u64).min(size - at) as usize;
            self.checker.content.fill(key, at, &mut buffer[..len]);
            open.write_all_at(&buffer[..len], at)?;
            at += len as u64;
        }
        open.set_len(size)
    }

    /// Whether a file has its size, and its content at both ends.
    fn is_right(&self, file: &File, key: u64, size: u64, buffer: &mut [u8]) -> bool {
        let len = END_BYTES.min(size) as usize;
        let same = |at: u64, buffer: &mut [u8]| {
            file.read_exact_at(&mut buffer[..len], at).is_ok()
                && self.checker.content.mismatch(key, at, &buffer[..len]).is_none()
        };
        file.metadata().is_ok_and(|meta| meta.len() == size)
            && same(0, buffer)
            && same(size - len as u64, buffer)
    }
}

fn absent(gone: io::Result<()>) -> io::Result<()> {
    match gone {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
