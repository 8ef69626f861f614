//! `epoll(7)`, level-triggered: the few calls that load over many connections needs.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// Events taken at once.
const EVENTS: usize = 256;

/// Sockets that are waited for, each with a number.
pub struct Poll(RawFd);

impl Poll {
    /// None yet.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes a flag only.
        match unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) } {
            fd if fd >= 0 => Ok(Self(fd)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// One more.
    ///
    /// # Errors
    /// When it is no socket.
    pub fn add(&self, socket: RawFd, number: usize) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: number as u64 };
        // SAFETY: `event` is valid for the call.
        match unsafe { libc::epoll_ctl(self.0, libc::EPOLL_CTL_ADD, socket, &raw mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The numbers of those that can be read; none when nothing came within `timeout`.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn wait(&self, ready: &mut Vec<usize>, timeout: Duration) -> io::Result<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        let timeout = timeout.as_millis() as i32;
        // SAFETY: `events` has room for as many as we say.
        let n = unsafe { libc::epoll_wait(self.0, events.as_mut_ptr(), EVENTS as i32, timeout) };
        ready.clear();
        match usize::try_from(n) {
            Ok(n) => {
                ready.extend(events.iter().take(n).map(|event| event.u64 as usize));
                Ok(())
            }
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
                error => Err(error),
            },
        }
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        // SAFETY: ours, and not used any more.
        unsafe { libc::close(self.0) };
    }
}
