//! A directory of this machine as a target: plain system calls, one system thread per slot.
//!
//! It shows what the file system does without a server between, and is the comparison for it.

use super::threads::{Threads, Worker};
use super::{Checker, Client, ClientError, Completion, Fault, FileSet, Op, operations_through};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::Duration;

/// Bytes written at a time while a file set is made.
const FILL_BYTES: usize = 1 << 20;

/// The directory and open files that all slots share.
struct Shared {
    dir: RwLock<PathBuf>,
    files: RwLock<Vec<File>>,
    set: RwLock<FileSet>,
    checker: Checker,
}

/// Client of a local directory.
pub struct PathClient {
    root: PathBuf,
    shared: Arc<Shared>,
    threads: Threads,
}

impl PathClient {
    /// Takes `root` as target.
    ///
    /// # Errors
    /// When `root` is not a directory.
    pub fn open(root: &Path, checker: Checker) -> Result<Self, ClientError> {
        let what = || format!("open the directory {}", root.display());
        let meta = std::fs::metadata(root).map_err(ClientError::io(what()))?;
        if !meta.is_dir() {
            return Err(ClientError::Target(root.display().to_string(), "is not a directory"));
        }
        let set = FileSet { client: 0, files: 0, size: 0 };
        let shared = Arc::new(Shared {
            dir: RwLock::new(root.to_owned()),
            files: RwLock::default(),
            set: RwLock::new(set),
            checker,
        });
        let all = Arc::clone(&shared);
        let threads = Threads::new(Box::new(move || {
            Ok(Box::new(Slot { shared: Arc::clone(&all), buffer: Vec::new() }))
        }));
        Ok(Self { root: root.to_owned(), shared, threads })
    }
}

impl Client for PathClient {
    fn prepare(&mut self, set: &FileSet) -> Result<(), ClientError> {
        let dir = self.root.join(set.dir_name());
        std::fs::create_dir_all(&dir)
            .map_err(ClientError::io(format!("create the directory {}", dir.display())))?;
        let mut files = Vec::new();
        for number in 0..set.files {
            files.push(prepare_file(&dir, set, number, &self.shared.checker)?);
        }
        *write(&self.shared.dir) = dir;
        *write(&self.shared.files) = files;
        *write(&self.shared.set) = set.clone();
        Ok(())
    }

    fn clean(&mut self, set: &FileSet) -> Result<(), ClientError> {
        let dir = self.root.join(set.dir_name());
        write(&self.shared.files).clear();
        match std::fs::remove_dir_all(&dir) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(ClientError::io(format!("remove {}", dir.display()))(e))
            }
            _ => Ok(()),
        }
    }

    operations_through!(threads);
}

/// One thread's part.
struct Slot {
    shared: Arc<Shared>,
    buffer: Vec<u8>,
}

impl Worker for Slot {
    fn run(&mut self, op: Op) -> Result<Result<u32, Fault>, ClientError> {
        Ok(perform(&self.shared, op, &mut self.buffer))
    }
}

/// A panic of a slot's thread leaves plain data behind, which is still good.
fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn prepare_file(dir: &Path, set: &FileSet, n: u32, checker: &Checker) -> Result<File, ClientError> {
    let path = dir.join(set.file_name(n));
    let fail = |what: &str| ClientError::io(format!("{what} {}", path.display()));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = options.open(&path).map_err(fail("create"))?;
    let key = set.content_key(n);
    let ends = [0, set.size.saturating_sub(4096)];
    let mut block = vec![0; set.size.min(4096) as usize];
    let right = file.metadata().map_err(fail("look at"))?.len() == set.size
        && ends.iter().all(|at| {
            file.read_exact_at(&mut block, *at).is_ok()
                && checker.content.mismatch(key, *at, &block).is_none()
        });
    if right {
        return Ok(file);
    }
    let mut chunk = vec![0; FILL_BYTES];
    let mut at = 0;
    while at < set.size {
        let len = FILL_BYTES.min((set.size - at) as usize);
        checker.content.fill(key, at, &mut chunk[..len]);
        file.write_all_at(&chunk[..len], at).map_err(fail("fill"))?;
        at += len as u64;
    }
    file.sync_data().map_err(fail("flush"))?;
    Ok(file)
}

fn perform(shared: &Shared, op: Op, buffer: &mut Vec<u8>) -> Result<u32, Fault> {
    let files = read(&shared.files);
    let file = |n: u32| files.get(n as usize).ok_or(Fault::Status(libc::ENOENT as u32));
    let made = |name| read(&shared.dir).join(FileSet::made_name(name));
    let key = |n| read(&shared.set).content_key(n);
    match op {
        Op::Null => Ok(0),
        Op::Getattr { file: n } => file(n)?.metadata().map(|_| 0).map_err(fault),
        Op::Lookup { file: n } => {
            let name = read(&shared.set).file_name(n);
            let path = read(&shared.dir).join(name);
            std::fs::symlink_metadata(path).map(|_| 0).map_err(fault)
        }
        Op::Read { file: n, offset, len } => {
            buffer.resize(len as usize, 0);
            let got = file(n)?.read_at(buffer, offset).map_err(fault)?;
            match shared.checker.is_right(key(n), offset, u64::from(len), 0, buffer) {
                _ if got < len as usize => Err(Fault::Short),
                true => Ok(len),
                false => Err(Fault::Corrupt),
            }
        }
        Op::Write { file: n, offset, len, stable } => {
            buffer.resize(len as usize, 0);
            shared.checker.content.fill(key(n), offset, buffer);
            file(n)?.write_all_at(buffer, offset).map_err(fault)?;
            if stable {
                file(n)?.sync_data().map_err(fault)?;
            }
            Ok(len)
        }
        Op::Commit { file: n } => file(n)?.sync_data().map(|()| 0).map_err(fault),
        Op::Create { name } => File::create_new(made(name)).map(|_| 0).map_err(fault),
        Op::Remove { name } => std::fs::remove_file(made(name)).map(|()| 0).map_err(fault),
    }
}

fn fault(error: std::io::Error) -> Fault {
    Fault::Status(error.raw_os_error().unwrap_or(libc::EIO) as u32)
}

#[cfg(test)]
mod tests;
