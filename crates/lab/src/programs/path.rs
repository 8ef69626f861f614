//! A directory of this machine: plain system calls of the thread that runs the program.
//!
//! All names are below the folder of the run, which is opened once; no symbolic link is followed.

mod descriptors;
mod prepare;
mod sys;

use super::pieces::Range;
use super::worker::{CallCounts, CallError, Worker};
use crate::client::Checker;
pub use descriptors::permit;
use lab_program::cursor::{BY_PATH, Call, Done};
use lab_program::limits::FDS_MAX;
use lab_program::program::{Op, Plan};
use lab_program::tree::Access;
pub use prepare::{prepare, remove};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Directories that a thread has open for names in them.
const PARENTS_MAX: usize = 4;

/// Names of system calls in results.
const NAMES: [&str; 11] = [
    "openat2",
    "close",
    "pread64",
    "pwrite64",
    "fdatasync",
    "fstat",
    "fstatat",
    "unlinkat",
    "mkdirat",
    "rmdir",
    "getdents64",
];

/// Numbers of [`NAMES`].
mod number {
    pub const OPEN: usize = 0;
    pub const CLOSE: usize = 1;
    pub const READ: usize = 2;
    pub const WRITE: usize = 3;
    pub const SYNC: usize = 4;
    pub const FSTAT: usize = 5;
    pub const STAT: usize = 6;
    pub const UNLINK: usize = 7;
    pub const MKDIR: usize = 8;
    pub const RMDIR: usize = 9;
    pub const LIST: usize = 10;
}

/// One thread on a directory.
pub struct PathWorker {
    plan: Arc<Plan>,
    root: Arc<File>,
    checker: Checker,
    files: Vec<Option<File>>,
    parents: Vec<(String, File)>,
    buffer: Vec<u8>,
    calls: [u64; NAMES.len()],
}

impl PathWorker {
    /// A thread of a plan, below the opened folder of the run.
    pub fn new(plan: Arc<Plan>, root: Arc<File>, checker: Checker) -> Self {
        let files = (0..FDS_MAX).map(|_| None).collect();
        let (parents, buffer, calls) = (Vec::new(), Vec::new(), [0; NAMES.len()]);
        Self { plan, root, checker, files, parents, buffer, calls }
    }

    fn count(&mut self, number: usize) {
        self.calls[number] += 1;
    }

    fn file_path(&self, call: &Call) -> String {
        self.plan.pools[call.set as usize].tree.file_path(call.entry)
    }

    fn open(&mut self, call: &Call, new: bool) -> io::Result<Done> {
        let access = match self.plan.pools[call.set as usize].tree.spec().access {
            _ if new => libc::O_RDWR | libc::O_CREAT | libc::O_EXCL,
            Access::ReadOnly => libc::O_RDONLY,
            Access::WriteOnly => libc::O_WRONLY,
            Access::ReadWrite => libc::O_RDWR,
        };
        let path = self.file_path(call);
        self.count(number::OPEN);
        let file = sys::open(&self.root, &path, access)?;
        self.count(number::FSTAT);
        let size = file.metadata()?.len();
        self.files[call.fd as usize] = Some(file);
        Ok(Done { bytes: 0, size: Some(size) })
    }

    fn at(&self, call: &Call) -> io::Result<&File> {
        let file = self.files.get(call.fd as usize).and_then(Option::as_ref);
        file.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))
    }

    /// Reads a range in pieces.
    fn read(&mut self, call: &Call) -> Result<Done, CallError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let (mut reads, range) = (0, Range::of(&self.plan, call, call.offset, u64::MAX));
        let done = range.read(&self.checker, &mut buffer, |at, bytes| {
            reads += 1;
            Ok(self.at(call)?.read_at(bytes, at)?)
        });
        self.calls[number::READ] += reads;
        self.buffer = buffer;
        done
    }

    /// Writes a range in pieces; appending is at the end that the file has now.
    fn write(&mut self, call: &Call) -> Result<Done, CallError> {
        let offset = match call.op {
            Op::Append => {
                self.count(number::FSTAT);
                self.at(call)?.metadata()?.len()
            }
            _ => call.offset,
        };
        let mut buffer = std::mem::take(&mut self.buffer);
        let (mut writes, range) = (0, Range::of(&self.plan, call, offset, u64::MAX));
        let done = range.write(&self.checker, &mut buffer, |at, bytes| {
            writes += 1;
            self.at(call)?.write_all_at(bytes, at)?;
            Ok(bytes.len())
        });
        self.calls[number::WRITE] += writes;
        self.buffer = buffer;
        let done = done?;
        if call.dsync {
            self.count(number::SYNC);
            self.at(call)?.sync_data()?;
        }
        Ok(done)
    }

    /// The directory above a path, and the last name.
    fn parent<'a>(&mut self, path: &'a str) -> io::Result<(&File, &'a str)> {
        let Some((above, name)) = path.rsplit_once('/') else {
            return Ok((&*self.root, path));
        };
        let known = self.parents.iter().position(|(path, _)| path == above);
        let at = match known {
            Some(at) => at,
            None => {
                self.count(number::OPEN);
                let file = sys::open(&self.root, above, libc::O_PATH | libc::O_DIRECTORY)?;
                if self.parents.len() >= PARENTS_MAX {
                    self.count(number::CLOSE);
                    self.parents.remove(0);
                }
                self.parents.push((above.to_owned(), file));
                self.parents.len() - 1
            }
        };
        Ok((&self.parents[at].1, name))
    }

    fn named(
        &mut self,
        path: &str,
        number: usize,
        run: fn(&File, &str) -> io::Result<()>,
    ) -> io::Result<Done> {
        self.count(number);
        let (parent, name) = self.parent(path)?;
        run(parent, name).map(|()| Done::default())
    }

    fn stat(&mut self, call: &Call) -> io::Result<Done> {
        if call.fd == BY_PATH {
            let path = self.file_path(call);
            return self.named(&path, number::STAT, sys::look);
        }
        self.count(number::FSTAT);
        self.at(call)?.metadata().map(|_| Done::default())
    }

    fn list(&mut self, call: &Call) -> io::Result<Done> {
        let path = self.plan.pools[call.set as usize].tree.directory_path(call.entry);
        self.count(number::OPEN);
        let directory = sys::open(&self.root, &path, libc::O_RDONLY | libc::O_DIRECTORY)?;
        let (bytes, reads) = sys::list(&directory)?;
        self.calls[number::LIST] += reads;
        self.count(number::CLOSE);
        Ok(Done { bytes, size: None })
    }
}

impl Worker for PathWorker {
    fn call(&mut self, call: &Call) -> Result<Done, CallError> {
        let leaf =
            |worker: &Self| worker.plan.pools[call.set as usize].tree.leaf_dir_path(call.entry);
        let done = match call.op {
            Op::Read | Op::ReadFile => return self.read(call),
            Op::Write | Op::WriteFile | Op::Append | Op::AppendRandom => return self.write(call),
            Op::Open => self.open(call, false),
            Op::Create => self.open(call, true),
            Op::Close => {
                self.close(call.fd);
                Ok(Done::default())
            }
            Op::Remove => {
                let path = self.file_path(call);
                self.named(&path, number::UNLINK, sys::remove)
            }
            Op::Stat => self.stat(call),
            Op::Sync | Op::SyncSet => {
                self.count(number::SYNC);
                self.at(call).and_then(File::sync_all).map(|()| Done::default())
            }
            Op::MakeDir => self.named(&leaf(self), number::MKDIR, sys::make_directory),
            Op::RemoveDir => self.named(&leaf(self), number::RMDIR, sys::remove_directory),
            Op::List => self.list(call),
            _ => Ok(Done::default()),
        };
        Ok(done?)
    }

    fn close(&mut self, fd: u32) {
        self.count(number::CLOSE);
        self.files[fd as usize] = None;
    }

    fn counts(&self) -> CallCounts {
        NAMES.iter().copied().zip(self.calls).filter(|(_, calls)| *calls > 0).collect()
    }
}

#[cfg(test)]
mod tests;
