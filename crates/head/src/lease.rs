//! The file by which the process of a resource follows the lease of its head: the head writes until
//! when which lease is valid, the process reads it in a thread of its own and kills itself when
//! that is over. So it ends in time also when the head hangs or is stopped.
//!
//! The file lies in memory (`/run`). 24 bytes, little endian: id of the lease, end of its validity
//! in nanoseconds of `CLOCK_BOOTTIME`, and both and a constant by exclusive or, which shows a read
//! in the middle of a write.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use crate::keys::LeaseId;
use crate::machine::Time;

/// Size of the file.
const SIZE: usize = 24;
/// Goes into the last number, so that a file of zeros is not valid.
const MARK: u64 = 0x706c_696d_736f_6c6c;
/// How often the file is read.
const EVERY: Duration = Duration::from_millis(100);
/// Reads in a row that may meet a write.
const TORN_MAX: usize = 100;

/// The time that counts while the machine sleeps too, and that cannot be set.
pub fn now() -> Time {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a structure that the kernel fills; the clock exists since Linux 2.6.39.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    Time::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The side of the head.
#[derive(Debug)]
pub struct LeaseFile {
    file: File,
}

impl LeaseFile {
    /// Makes the file, in the place of an existing one: processes that follow the old one end.
    ///
    /// # Errors
    /// The file system's.
    pub fn create(path: &Path) -> io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let this = Self { file };
        this.extend(0, Time::ZERO)?;
        Ok(this)
    }

    /// The lease is valid until then.
    ///
    /// # Errors
    /// The file system's.
    pub fn extend(&self, id: LeaseId, until: Time) -> io::Result<()> {
        let until = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
        let numbers = [id as u64, until, id as u64 ^ until ^ MARK];
        let mut bytes = [0; SIZE];
        for (chunk, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            chunk.copy_from_slice(&number.to_le_bytes());
        }
        self.file.write_all_at(&bytes, 0)
    }
}

/// The side of the process.
#[derive(Debug)]
pub struct Follower {
    file: File,
    id: LeaseId,
}

impl Follower {
    /// Opens the file; the process runs under the lease with this id.
    ///
    /// # Errors
    /// The file system's.
    pub fn open(path: &Path, id: LeaseId) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, id })
    }

    /// How long the lease is valid from now on; nothing if it is over, or another one has replaced
    /// it.
    pub fn left(&self) -> Option<Duration> {
        for _ in 0..TORN_MAX {
            let mut bytes = [0; SIZE];
            self.file.read_exact_at(&mut bytes, 0).ok()?;
            let mut numbers = bytes.as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b));
            let (id, until, check) = (numbers.next()?, numbers.next()?, numbers.next()?);
            if id ^ until ^ MARK == check {
                let left = Time::from_nanos(until).checked_sub(now()).filter(|d| !d.is_zero());
                return left.filter(|_| id == self.id as u64);
            }
        }
        None
    }

    /// Follows the lease in a thread, which calls `over` when it is over.
    ///
    /// # Errors
    /// There is no thread.
    pub fn start(self, over: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let follow = move || {
            while let Some(left) = self.left() {
                std::thread::sleep(left.min(EVERY));
            }
            over();
        };
        std::thread::Builder::new().name("lease".to_owned()).spawn(follow).map(drop)
    }
}

#[cfg(test)]
mod tests;
