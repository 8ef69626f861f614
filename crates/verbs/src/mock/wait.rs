//! For clients without a runtime: waits on the calling thread.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use base::clock::Deadline;

use super::End;
use crate::{Completion, Connection, VerbsError};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// What `poll` comes to; `None` if it takes longer than this.
fn within<T>(time: Duration, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let (cx, until) = (&mut Context::from_waker(&waker), Deadline::after(time));
    loop {
        if let Poll::Ready(value) = poll(cx) {
            return Some(value);
        }
        std::thread::park_timeout(until.left()?);
    }
}

impl End {
    /// Waits until the server has accepted, and returns its private data. `None` if it has refused,
    /// or has not accepted in this time.
    pub fn established(&mut self, time: Duration) -> Option<Vec<u8>> {
        within(time, |cx| self.poll_established(cx)).flatten()
    }

    /// Waits until some work has ended.
    ///
    /// # Errors
    /// Why the connection has ended, or that nothing has happened in this time.
    pub fn wait(&mut self, time: Duration) -> Result<Vec<Completion>, VerbsError> {
        let mut done = Vec::new();
        let late = Err(VerbsError::Work("nothing has happened in time"));
        within(time, |cx| self.poll(cx, &mut done)).unwrap_or(late).map(|()| done)
    }

    /// Work that has ended already.
    ///
    /// # Errors
    /// Why the connection has ended.
    pub fn look(&mut self) -> Result<Vec<Completion>, VerbsError> {
        let mut done = Vec::new();
        within(Duration::ZERO, |cx| self.poll(cx, &mut done)).unwrap_or(Ok(())).map(|()| done)
    }
}
