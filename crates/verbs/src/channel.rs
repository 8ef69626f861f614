//! File descriptors of event channels, registered with the runtime of the task that polls first.

use std::os::fd::{AsRawFd, RawFd};
use std::task::{Context, Poll};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::VerbsError;

struct Borrowed(RawFd);

impl AsRawFd for Borrowed {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

/// A descriptor that belongs to a channel, which must outlive it.
pub(crate) struct Readiness {
    fd: RawFd,
    registered: Option<AsyncFd<Borrowed>>,
}

impl Readiness {
    /// Of a descriptor, which from now on does not block.
    pub(crate) fn of(fd: RawFd) -> Result<Self, VerbsError> {
        // SAFETY: `fcntl` on an open descriptor, with the flags that F_GETFL returned.
        let set = unsafe {
            let flags = libc::fcntl(fd, libc::F_GETFL);
            flags >= 0 && libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) >= 0
        };
        match set {
            true => Ok(Self { fd, registered: None }),
            false => Err(crate::load::failed("making an event channel non-blocking")),
        }
    }

    /// Calls `read` when there may be something to read: it returns `None` if there was nothing.
    pub(crate) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut read: impl FnMut() -> Option<T>,
    ) -> Poll<Result<T, VerbsError>> {
        let failed = |source| VerbsError::System { what: "polling an event channel", source };
        if self.registered.is_none() {
            // SAFETY: the channel that the descriptor belongs to outlives this.
            let registered =
                unsafe { AsyncFd::register_with_interest(Borrowed(self.fd), Interest::READABLE) };
            self.registered = Some(registered.map_err(|error| failed(error.into()))?);
        }
        let Some(registered) = &self.registered else { return Poll::Pending };
        loop {
            let mut guard = match registered.poll_read_ready(cx) {
                Poll::Ready(guard) => guard.map_err(failed)?,
                Poll::Pending => return Poll::Pending,
            };
            if let Some(value) = read() {
                return Poll::Ready(Ok(value));
            }
            guard.clear_ready();
        }
    }
}
