//! A run on a directory that a server of this machine shares: each file is entered in the server's
//! table of opens before it is read, written, replaced or removed, as a client's would be, and what
//! the server hides from clients is hidden from the run.
//!
//! The server that starts the run gives it one end of a pair of sockets. A question has one answer:
//! 20 bytes (what, two numbers) against a status and a list of pairs of numbers. The server finds a
//! file by the descriptor that this process has of it. [`serve`]: the server's end.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use base::clock::Deadline;
use base::limits::{DSYNC_GRACE_LOOK, DSYNC_GUARD_AGAIN, DSYNC_GUARD_HIDDEN_MAX};

use crate::stop::lock;

pub mod serve;

#[cfg(test)]
mod tests;

/// Device and inode.
pub type Inode = (u64, u64);

/// Bytes of a question.
const ASK: usize = 20;
/// Questions.
const HELLO: u32 = 1;
const HIDDEN: u32 = 2;
const KEPT: u32 = 3;
const OPEN: u32 = 4;
const CLOSE: u32 = 5;
/// A status: done, to be asked again while a lease is recalled, refused.
const DONE: u32 = 0;
const AGAIN: u32 = 1;
const REFUSED: u32 = 2;
/// To be asked again until the grace period has ended.
const GRACE: u32 = 3;

/// What is done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Access {
    /// Its content is read.
    Read = 1,
    /// Its content is changed.
    Write = 2,
    /// Its name is removed, or given to another file.
    Remove = 3,
}

impl Access {
    fn of(number: u64) -> Option<Self> {
        [Self::Read, Self::Write, Self::Remove].into_iter().find(|access| *access as u64 == number)
    }
}

/// The run's end.
#[derive(Debug)]
pub struct Guard {
    stream: Mutex<UnixStream>,
    /// How long to repeat the question for a file with a lease that is being recalled.
    wait: Duration,
    /// What was hidden when a directory was last listed.
    hidden: Mutex<Arc<BTreeSet<Inode>>>,
}

/// A file in the server's table of opens, until this is dropped.
#[derive(Debug)]
pub struct GuardedOpen {
    guard: Arc<Guard>,
    number: u64,
}

impl Guard {
    /// The end that this process has inherited as descriptor `fd`.
    ///
    /// # Errors
    /// It is no connected socket, or its other end is not a server's.
    pub fn inherited(fd: RawFd) -> io::Result<Arc<Self>> {
        // SAFETY: only passes a number, which need not be a descriptor.
        if fd < 3 || unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: it is open, and was given to this process for this.
        Self::over(UnixStream::from(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Over a connected socket.
    ///
    /// # Errors
    /// Its other end does not answer.
    pub fn over(stream: UnixStream) -> io::Result<Arc<Self>> {
        let (stream, hidden) = (Mutex::new(stream), Mutex::default());
        let mut guard = Self { stream, wait: Duration::ZERO, hidden };
        let (_, reply) = guard.ask(HELLO, u64::from(std::process::id()), 0)?;
        let ms = reply.first().ok_or(io::ErrorKind::InvalidData)?.0;
        guard.wait = Duration::from_millis(ms);
        Ok(Arc::new(guard))
    }

    fn ask(&self, what: u32, one: u64, two: u64) -> io::Result<(u32, Vec<(u64, u64)>)> {
        let mut bytes = [0; ASK];
        bytes[..4].copy_from_slice(&what.to_be_bytes());
        bytes[4..12].copy_from_slice(&one.to_be_bytes());
        bytes[12..].copy_from_slice(&two.to_be_bytes());
        let mut stream = lock(&self.stream);
        stream.write_all(&bytes)?;
        let mut head = [0; 8];
        stream.read_exact(&mut head)?;
        let [status, count] = [&head[..4], &head[4..]].map(number32);
        if count as usize > DSYNC_GUARD_HIDDEN_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut pairs = vec![0; count as usize * 16];
        stream.read_exact(&mut pairs)?;
        let pair = |pair: &[u8]| (number64(&pair[..8]), number64(&pair[8..]));
        Ok((status, pairs.chunks_exact(16).map(pair).collect()))
    }

    /// What the server hides now: files and folders of logical units.
    ///
    /// # Errors
    /// The server has ended.
    pub fn hidden(&self) -> io::Result<Arc<BTreeSet<Inode>>> {
        let (_, all) = self.ask(HIDDEN, 0, 0)?;
        let all: Arc<BTreeSet<Inode>> = Arc::new(all.into_iter().collect());
        *self.hidden.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&all);
        Ok(all)
    }

    /// Whether an entry was hidden when a directory was last listed.
    pub fn hid(&self, entry: Inode) -> bool {
        lock(&self.hidden).contains(&entry)
    }

    /// Whether a directory or a symbolic link has to keep its name: a logical unit is found by it.
    ///
    /// # Errors
    /// The server has ended.
    pub fn keeps_name(&self, entry: Inode) -> io::Result<bool> {
        let (_, kept) = self.ask(KEPT, entry.0, entry.1)?;
        Ok(!kept.is_empty())
    }

    /// Enters a file in the table of opens. A client with a lease on it is asked to give it back,
    /// and is waited for; so is the end of a grace period in which the file may be reclaimed.
    ///
    /// # Errors
    /// A client has denied this, or the server has claimed the file.
    pub fn open(self: &Arc<Self>, file: BorrowedFd<'_>, access: Access) -> io::Result<GuardedOpen> {
        let fd = u64::try_from(file.as_raw_fd()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let until = Deadline::after(self.wait);
        loop {
            match self.ask(OPEN, fd, access as u64)? {
                (DONE, answer) => {
                    let number = answer.first().ok_or(io::ErrorKind::InvalidData)?.0;
                    return Ok(GuardedOpen { guard: Arc::clone(self), number });
                }
                (AGAIN, _) if !until.passed() => thread::sleep(DSYNC_GUARD_AGAIN),
                // A server ends it; if the server ends, so does the run.
                (GRACE, _) => thread::sleep(DSYNC_GRACE_LOOK),
                _ => return Err(in_use()),
            }
        }
    }
}

impl Drop for GuardedOpen {
    fn drop(&mut self) {
        // A server that has ended has no table any more.
        let _ended = self.guard.ask(CLOSE, self.number, 0);
    }
}

/// Why a file is left alone.
pub fn in_use() -> io::Error {
    let why = "in use: a client of the share or a logical unit has it open";
    io::Error::new(io::ErrorKind::ResourceBusy, why)
}

fn number32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |all, byte| all << 8 | u32::from(*byte))
}

fn number64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte))
}
