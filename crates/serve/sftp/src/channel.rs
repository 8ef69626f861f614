//! What the SFTP server sees of whatever carries it: bytes in, bytes out. A channel of an SSH
//! connection is one, standard input and output (an OpenSSH Subsystem) another, and tests hand in a
//! third. Both halves stay on the thread of their connection.

// The halves never leave their thread, so their futures need not be `Send`.
#![allow(async_fn_in_trait)]

use std::rc::Rc;

use engine::transport::acks::Acks;

/// The channel has ended: the peer has closed it, or its connection has ended. What is in progress
/// for it is to be abandoned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the channel has ended")]
pub struct Gone;

/// What comes from the peer.
pub trait Input {
    /// Waits until there are bytes and appends them to `into`; returns how many, or 0 if no more
    /// will come. Dropping the future loses nothing.
    ///
    /// Taking bytes is what lets the peer send more: a server that does not call this holds at most
    /// the channel's window. When `into` is empty and has been used before, its memory is exchanged
    /// rather than filled, so large pieces are not copied.
    ///
    /// # Errors
    /// [`Gone`]: the channel ended before its end of data.
    async fn receive(&mut self, into: &mut Vec<u8>) -> Result<usize, Gone>;

    /// When the byte had come, in nanoseconds of [`base::clock::stamp`], that lies `behind` bytes
    /// before the end of what was received. Later calls ask for later bytes.
    fn arrived(&mut self, behind: usize) -> u64 {
        let _ = behind;
        base::clock::stamp()
    }
}

/// Output to the peer.
pub trait Output {
    /// Appends all `parts`, one after another, and waits while the peer or the network takes no
    /// more. They leave together with whatever else is sent before the task waits next: many small
    /// replies make one system call. The future must be polled to its end: if it is dropped, a part
    /// may have been sent.
    ///
    /// # Errors
    /// [`Gone`]: the channel has ended.
    async fn send(&mut self, parts: &[&[u8]]) -> Result<(), Gone>;

    /// Calls `done` once everything that was sent before was handed to the socket, or never will
    /// be, with what reports when that has arrived. What is in the hands of another process has.
    fn when_sent(&mut self, done: impl FnOnce(Option<&Rc<Acks>>) + 'static)
    where
        Self: Sized,
    {
        done(None);
    }

    /// Bytes that [`Output::send`] takes now without waiting. 0 if it would wait.
    fn room(&self) -> usize;
}
