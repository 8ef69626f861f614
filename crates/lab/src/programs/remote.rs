//! Servers: each thread has a connection of its own, and makes one call after the other.

mod prepare;

use super::pieces::Range;
use super::set::FOLDER;
use super::worker::{CallCounts, CallError, Worker};
use crate::client::files::{Files, OpenHow, PIECE_MAX};
use crate::client::{Checker, ClientError, Options, Target, open_files};
use lab_program::cursor::{BY_PATH, Call, Done};
use lab_program::program::{Op, Plan};
use lab_program::tree::Access;
pub use prepare::{prepare, remove};
use std::sync::Arc;

/// One thread on a server.
pub struct RemoteWorker {
    plan: Arc<Plan>,
    files: Box<dyn Files>,
    checker: Checker,
    buffer: Vec<u8>,
}

fn connect(target: &Target, plan: &Plan) -> Result<Box<dyn Files>, ClientError> {
    let options = Options { bind: None, seed: plan.seed, check_one_in: 0, slots: 1 };
    let none = || ClientError::Target(target.to_string(), "has no files by path");
    open_files(target, &options)?.ok_or_else(none)
}

/// Connects a thread.
///
/// # Errors
/// The target cannot be reached or refuses.
pub fn worker(
    target: &Target,
    plan: &Arc<Plan>,
    checker: &Checker,
) -> Result<Box<dyn Worker>, ClientError> {
    let files = connect(target, plan)?;
    Ok(Box::new(RemoteWorker::new(Arc::clone(plan), files, checker.clone())))
}

/// A path of the program on its target.
fn below(path: &str) -> String {
    format!("{FOLDER}/{path}")
}

impl RemoteWorker {
    /// A thread of a plan.
    pub fn new(plan: Arc<Plan>, files: Box<dyn Files>, checker: Checker) -> Self {
        Self { plan, files, checker, buffer: Vec::new() }
    }

    fn file_path(&self, call: &Call) -> String {
        below(&self.plan.pools[call.set as usize].tree.file_path(call.entry))
    }

    fn open(&mut self, call: &Call) -> Result<Done, CallError> {
        let how = match self.plan.pools[call.set as usize].tree.spec().access {
            _ if call.op == Op::Create => OpenHow::New,
            Access::ReadOnly => OpenHow::Read,
            Access::WriteOnly => OpenHow::Write,
            Access::ReadWrite => OpenHow::Both,
        };
        let size = self.files.open(call.fd as usize, &self.file_path(call), how)?;
        Ok(Done { bytes: 0, size: Some(size) })
    }

    /// Reads a range in pieces.
    fn read(&mut self, call: &Call) -> Result<Done, CallError> {
        let Self { plan, files, checker, buffer } = self;
        let range = Range::of(plan, call, call.offset, PIECE_MAX);
        range.read(checker, buffer, |at, bytes| Ok(files.read(call.fd as usize, at, bytes)?))
    }

    /// Writes a range in pieces; appending is at the end that the file has now.
    fn write(&mut self, call: &Call) -> Result<Done, CallError> {
        let (fd, dsync) = (call.fd as usize, call.dsync);
        let offset = match call.op {
            Op::Append => self.files.size(fd)?,
            _ => call.offset,
        };
        let Self { plan, files, checker, buffer } = self;
        let range = Range::of(plan, call, offset, PIECE_MAX);
        range.write(checker, buffer, |at, bytes| Ok(files.write(fd, at, bytes, dsync)?))
    }

    fn stat(&mut self, call: &Call) -> Result<(), ClientError> {
        if call.fd != BY_PATH {
            return self.files.size(call.fd as usize).map(drop);
        }
        let path = self.file_path(call);
        match self.files.look(&path)? {
            Some(_) => Ok(()),
            None => {
                let (what, status) = (format!("look up {path}"), "there is no such file".into());
                Err(ClientError::Refused { what, status })
            }
        }
    }

    fn list(&mut self, call: &Call) -> Result<Done, CallError> {
        let path = below(&self.plan.pools[call.set as usize].tree.directory_path(call.entry));
        let mut bytes = 0;
        self.files.list(&path, &mut |name| bytes += name.len() as u64)?;
        Ok(Done { bytes, size: None })
    }
}

impl Worker for RemoteWorker {
    fn call(&mut self, call: &Call) -> Result<Done, CallError> {
        let leaf = |worker: &Self| {
            below(&worker.plan.pools[call.set as usize].tree.leaf_dir_path(call.entry))
        };
        match call.op {
            Op::Read | Op::ReadFile => return self.read(call),
            Op::Write | Op::WriteFile | Op::Append | Op::AppendRandom => return self.write(call),
            Op::Open | Op::Create => return self.open(call),
            Op::List => return self.list(call),
            Op::Close => self.files.close(call.fd as usize)?,
            Op::Remove => self.files.remove(&self.file_path(call))?,
            Op::Stat => self.stat(call)?,
            Op::Sync | Op::SyncSet => self.files.flush(call.fd as usize)?,
            Op::MakeDir => self.files.make_directory(&leaf(self))?,
            Op::RemoveDir => self.files.remove_directory(&leaf(self))?,
            _ => {}
        }
        Ok(Done::default())
    }

    fn close(&mut self, fd: u32) {
        // It follows a failure that counts; what is open is closed when the thread leaves.
        let _ = self.files.close(fd as usize);
    }

    fn counts(&self) -> CallCounts {
        self.files.counts()
    }

    fn leave(&mut self) {
        // A server forgets a client that does not leave.
        let _ = self.files.leave();
    }
}
