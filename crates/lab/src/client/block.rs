//! A block device of this machine, or a file that stands for one, as a target: plain system calls,
//! one system thread per slot. It shows what a disk does without a server between, or one that an
//! initiator of the kernel has attached.

use super::layout::{self, Layout};
use super::threads::{Threads, Worker};
use super::{Checker, Client, ClientError, Completion, Fault, FileSet, Op, operations_through};
use crate::workload::Shape;
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// Bytes of a block that every device has, or a multiple of it.
const BLOCK: u32 = 512;

/// The device, and where files lie on it.
struct Shared {
    device: File,
    layout: RwLock<Layout>,
    checker: Checker,
}

/// Client of a device.
pub struct BlockClient {
    shared: Arc<Shared>,
    threads: Threads,
    size: u64,
}

impl BlockClient {
    /// Opens the device, which must not be in use.
    ///
    /// # Errors
    /// It cannot be opened, or is neither a device nor a file.
    pub fn open(path: &Path, checker: Checker) -> Result<Self, ClientError> {
        let fail = || ClientError::io(format!("open the disk {}", path.display()));
        let kind = std::fs::metadata(path).map_err(fail())?.file_type();
        if !kind.is_block_device() && !kind.is_file() {
            let why = "is neither a block device nor a file";
            return Err(ClientError::Target(path.display().to_string(), why));
        }
        let exclusive = if kind.is_block_device() { libc::O_EXCL } else { 0 };
        let mut options = OpenOptions::new();
        let mut device = options.read(true).write(true).custom_flags(exclusive).open(path);
        let size = device.as_mut().map_or(Ok(0), |device| device.seek(SeekFrom::End(0)));
        let (device, size) = (device.map_err(fail())?, size.map_err(fail())?);
        if base::claim::is_marked(&device) {
            let why = "is the file of a logical unit that a server has online";
            return Err(ClientError::Target(path.display().to_string(), why));
        }
        let shared = Arc::new(Shared { device, layout: RwLock::default(), checker });
        let all = Arc::clone(&shared);
        let threads = Threads::new(Box::new(move || {
            Ok(Box::new(Slot { shared: Arc::clone(&all), buffer: Vec::new() }))
        }));
        Ok(Self { shared, threads, size })
    }
}

impl Client for BlockClient {
    fn begin(&mut self, shape: &Shape) -> Result<(), ClientError> {
        layout::check(shape, BLOCK)
    }

    fn prepare(&mut self, set: &FileSet) -> Result<(), ClientError> {
        let layout = Layout::new(set, self.size)?;
        // A panic of a slot's thread leaves plain data behind, which is still good.
        *self.shared.layout.write().unwrap_or_else(PoisonError::into_inner) = layout;
        layout::prepare(self, set)
    }

    fn clean(&mut self, _set: &FileSet) -> Result<(), ClientError> {
        // What was there before is gone in any case.
        Ok(())
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

fn perform(shared: &Shared, op: Op, buffer: &mut Vec<u8>) -> Result<u32, Fault> {
    let layout = shared.layout.read().unwrap_or_else(PoisonError::into_inner);
    match op {
        Op::Read { file, offset, len } => {
            buffer.resize(len as usize, 0);
            let read = shared.device.read_at(buffer, layout.at(file) + offset).map_err(fault)?;
            let (key, length) = (layout.key(file), u64::from(len));
            match shared.checker.is_right(key, offset, length, 0, buffer) {
                _ if read < len as usize => Err(Fault::Short),
                true => Ok(len),
                false => Err(Fault::Corrupt),
            }
        }
        Op::Write { file, offset, len, stable } => {
            buffer.resize(len as usize, 0);
            shared.checker.content.fill(layout.key(file), offset, buffer);
            shared.device.write_all_at(buffer, layout.at(file) + offset).map_err(fault)?;
            if stable {
                shared.device.sync_data().map_err(fault)?;
            }
            Ok(len)
        }
        Op::Commit { .. } => shared.device.sync_data().map(|()| 0).map_err(fault),
        // Operations on names never come here: `layout::check`.
        _ => Ok(0),
    }
}

fn fault(error: std::io::Error) -> Fault {
    Fault::Status(error.raw_os_error().unwrap_or(libc::EIO) as u32)
}

#[cfg(test)]
mod tests;
