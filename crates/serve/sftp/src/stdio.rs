//! Standard input and output as a channel: the server as a Subsystem of OpenSSH's.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use base::limits::SFTP_PACKET_MAX;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::channel::{Gone, Input, Output};

/// One direction.
pub struct Stream(AsyncFd<File>);

impl Stream {
    /// A pipe or socket, which becomes non-blocking for all holders of the open file description.
    /// To be called within a runtime.
    ///
    /// # Errors
    /// It is neither: a regular file cannot be polled.
    pub fn reading(fd: OwnedFd) -> io::Result<Self> {
        Self::new(fd, Interest::READABLE)
    }

    /// As [`Stream::reading`], for writing.
    ///
    /// # Errors
    /// The same.
    pub fn writing(fd: OwnedFd) -> io::Result<Self> {
        Self::new(fd, Interest::WRITABLE)
    }

    fn new(fd: OwnedFd, interest: Interest) -> io::Result<Self> {
        let raw = fd.as_raw_fd();
        // SAFETY: `raw` is open as long as `fd` is; both calls only take and set its flags.
        let set = unsafe {
            let flags = libc::fcntl(raw, libc::F_GETFL);
            flags != -1 && libc::fcntl(raw, libc::F_SETFL, flags | libc::O_NONBLOCK) != -1
        };
        if !set {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a file has one descriptor, which stays open as long as the file lives.
        Ok(Self(unsafe { AsyncFd::register_with_interest(File::from(fd), interest) }?))
    }
}

/// Appends what is there to a vector, without clearing its memory first.
fn read_more(file: &File, into: &mut Vec<u8>) -> io::Result<usize> {
    into.reserve(SFTP_PACKET_MAX);
    let room = into.spare_capacity_mut();
    // SAFETY: the kernel writes at most `room.len()` bytes to `room`, which is ours alone.
    let got = unsafe { libc::read(file.as_raw_fd(), room.as_mut_ptr().cast(), room.len()) };
    let count = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: `count` bytes after the last one are within the capacity, and were written.
    unsafe { into.set_len(into.len() + count) };
    Ok(count)
}

impl Input for Stream {
    async fn receive(&mut self, into: &mut Vec<u8>) -> Result<usize, Gone> {
        loop {
            let mut ready = self.0.readable().await.map_err(|_| Gone)?;
            match ready.try_io(|file| read_more(file.get_ref(), into)) {
                Ok(Ok(count)) => return Ok(count),
                Ok(Err(e)) if e.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(_)) => return Err(Gone),
                Err(_not_ready) => {}
            }
        }
    }
}

impl Output for Stream {
    async fn send(&mut self, parts: &[&[u8]]) -> Result<(), Gone> {
        let mut slices: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let mut rest = slices.as_mut_slice();
        while !rest.is_empty() {
            let mut ready = self.0.writable().await.map_err(|_| Gone)?;
            match ready.try_io(|file| file.get_ref().write_vectored(rest)) {
                Ok(Ok(count)) => IoSlice::advance_slices(&mut rest, count),
                Ok(Err(e)) if e.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(_)) => return Err(Gone),
                Err(_not_ready) => {}
            }
        }
        Ok(())
    }

    fn room(&self) -> usize {
        usize::MAX
    }
}
