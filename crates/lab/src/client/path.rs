//! A directory of this machine as a target: plain system calls, one system thread per slot.
//!
//! It shows what the file system does without a server between, and is the comparison for it.
//!
//! Other users may be able to write in the directory: below it no symbolic link is followed, and no
//! file with a second name is written.

mod sys;

use super::threads::{Threads, Worker};
use super::{Checker, Client, ClientError, Completion, Fault, FileSet, Op, operations_through};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, RwLock};
use std::time::Duration;

/// Bytes written at a time while a file set is made.
const FILL_BYTES: usize = 1 << 20;

/// The directory and open files that all slots share.
struct Shared {
    dir: RwLock<File>,
    files: RwLock<Vec<File>>,
    set: RwLock<FileSet>,
    checker: Checker,
}

/// Client of a local directory.
pub struct PathClient {
    root: File,
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
        let root = File::open(root).map_err(ClientError::io(what()))?;
        let dir = root.try_clone().map_err(ClientError::io(what()))?;
        let set = FileSet { client: 0, files: 0, size: 0 };
        let shared = Arc::new(Shared {
            dir: RwLock::new(dir),
            files: RwLock::default(),
            set: RwLock::new(set),
            checker,
        });
        let all = Arc::clone(&shared);
        let threads = Threads::new(Box::new(move || {
            Ok(Box::new(Slot { shared: Arc::clone(&all), buffer: Vec::new() }))
        }));
        Ok(Self { root, shared, threads })
    }
}

impl Client for PathClient {
    fn prepare(&mut self, set: &FileSet) -> Result<(), ClientError> {
        let name = set.dir_name();
        let dir = sys::directory(&self.root, &name)
            .map_err(ClientError::io(format!("create the directory {name}")))?;
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
        let name = set.dir_name();
        write(&self.shared.files).clear();
        // Removes a symbolic link in its place, and follows none below.
        let dir = format!("/proc/self/fd/{}/{name}", self.root.as_raw_fd());
        match std::fs::remove_dir_all(dir) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(ClientError::io(format!("remove the directory {name}"))(e))
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

fn prepare_file(dir: &File, set: &FileSet, n: u32, checker: &Checker) -> Result<File, ClientError> {
    let name = set.file_name(n);
    let fail = |what: &str| ClientError::io(format!("{what} {name}"));
    let file = sys::open(dir, &name, false).map_err(fail("create"))?;
    let meta = file.metadata().map_err(fail("look at"))?;
    if !meta.is_file() || meta.nlink() != 1 {
        return Err(ClientError::Target(name, "is not a file of its own: it has other names"));
    }
    let key = set.content_key(n);
    let ends = [0, set.size.saturating_sub(4096)];
    let mut block = vec![0; set.size.min(4096) as usize];
    let right = meta.len() == set.size
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
    let key = |n| read(&shared.set).content_key(n);
    match op {
        Op::Null => Ok(0),
        Op::Getattr { file: n } => file(n)?.metadata().map(|_| 0).map_err(fault),
        Op::Lookup { file: n } => {
            let name = read(&shared.set).file_name(n);
            sys::look(&read(&shared.dir), &name).map(|()| 0).map_err(fault)
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
        Op::Create { name } => {
            let name = FileSet::made_name(name);
            sys::open(&read(&shared.dir), &name, true).map(|_| 0).map_err(fault)
        }
        Op::Remove { name } => {
            let name = FileSet::made_name(name);
            sys::remove(&read(&shared.dir), &name).map(|()| 0).map_err(fault)
        }
    }
}

fn fault(error: std::io::Error) -> Fault {
    Fault::Status(error.raw_os_error().unwrap_or(libc::EIO) as u32)
}

#[cfg(test)]
mod tests;
