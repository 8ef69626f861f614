//! When requests came that a connection receives only later, because it waits until its peer has
//! taken replies: it looks meanwhile how much there is to receive. Behind a slow link most of the
//! latency of a request may pass that way.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, RawFd};

use base::clock::stamp;
use base::limits::ARRIVALS_MAX;

/// The times at which bytes of a connection came.
#[derive(Debug, Default)]
pub struct Arrivals {
    /// Bytes received, and when the last of them were.
    received: u64,
    received_ns: u64,
    /// Numbers of bytes that had come, and when, the oldest first. None as long as the connection
    /// receives what comes.
    marks: VecDeque<(u64, u64)>,
}

impl Arrivals {
    /// Counts bytes that are received.
    #[inline]
    pub fn received(&mut self, bytes: usize) {
        self.received += bytes as u64;
        self.received_ns = stamp();
        match self.marks.back() {
            // No call of `at` uses these marks.
            Some(_) if self.marks.len() >= ARRIVALS_MAX => self.marks.clear(),
            Some((bytes, _)) if *bytes < self.received => {
                self.marks.push_back((self.received, self.received_ns));
            }
            _ => {}
        }
    }

    /// When the byte had come that lies `behind` bytes before the end of what is received: later
    /// calls ask for later bytes.
    #[inline]
    pub fn at(&mut self, behind: usize) -> u64 {
        if self.marks.is_empty() { self.received_ns } else { self.marked(behind) }
    }

    fn marked(&mut self, behind: usize) -> u64 {
        let position = self.received.saturating_sub(behind as u64);
        while self.marks.front().is_some_and(|(bytes, _)| *bytes < position) {
            self.marks.pop_front();
        }
        let came_ns = self.marks.front().map_or(self.received_ns, |(_, at_ns)| *at_ns);
        if self.marks.back().is_some_and(|(bytes, _)| *bytes <= position) {
            // Nothing is left that came before it was received.
            self.marks.clear();
        }
        came_ns
    }

    /// Notes how many bytes a socket has to receive.
    pub fn look(&mut self, socket: &impl AsRawFd) {
        self.came(unread(socket.as_raw_fd()));
    }

    /// Notes a number of bytes that are there to be received.
    pub fn came(&mut self, unread: usize) {
        let bytes = self.received + unread as u64;
        let known = self.marks.back().map_or(self.received, |(bytes, _)| *bytes);
        if bytes > known && self.marks.len() < ARRIVALS_MAX {
            self.marks.push_back((bytes, stamp()));
        }
    }
}

/// Bytes that may be received from a socket (`FIONREAD`, tcp(7)); none if the kernel does not
/// answer.
fn unread(socket: RawFd) -> usize {
    let mut unread: libc::c_int = 0;
    // SAFETY: the request writes one int, to which the pointer leads.
    let done = unsafe { libc::ioctl(socket, libc::FIONREAD, &raw mut unread) };
    if done == 0 { usize::try_from(unread).unwrap_or(0) } else { 0 }
}

#[cfg(test)]
mod tests;
