//! For users without a runtime: waits on the calling thread.

use std::future::poll_fn;
use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::{Completion, Connection, VerbsError};

/// Waits for connections of one thread. Drop them first.
pub struct Waiter(Runtime);

impl Waiter {
    /// A fresh one.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub fn new() -> io::Result<Self> {
        Builder::new_current_thread().enable_all().build().map(Self)
    }

    /// Appends work that has ended, or ends within `timeout`, to `done`.
    ///
    /// # Errors
    /// As [`Connection::poll`].
    pub fn wait(
        &self,
        connection: &mut dyn Connection,
        timeout: Duration,
        done: &mut Vec<Completion>,
    ) -> Result<(), VerbsError> {
        self.0.block_on(async {
            let ended = poll_fn(|cx| connection.poll(cx, done));
            tokio::time::timeout(timeout, ended).await.unwrap_or(Ok(()))
        })
    }
}
