//! Why a run ends without having done its work.

use std::io::{self, ErrorKind};

use thiserror::Error;
use wire::xdr::DecodeError;

use crate::memory::MemoryFull;

/// Why a run ends. What fails with a single file is no such reason: it is noted, and the run
/// continues.
#[derive(Debug, Error)]
pub enum SyncError {
    /// A directory that was named on this side cannot be used.
    #[error("{place}")]
    Place {
        /// The directory.
        place: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Another run writes to the same directory.
    #[error("{0}: {busy}", busy = Self::BUSY)]
    Busy(String),
    /// The other side has closed the connection without a message.
    #[error("the other side exited without a message")]
    Silent,
    /// The other side is not there any more.
    #[error("the other side closed the connection before the end")]
    Gone,
    /// The program that reaches the other side has ended without having reached it.
    #[error("the other side was not reached, or plimsoll is not installed there (exit code {0})")]
    Unreached(i32),
    /// The link failed.
    #[error("the link to the other side")]
    Link(#[source] io::Error),
    /// The other side abandoned the run, and sent the reason.
    #[error("the other side: {0}")]
    Refused(String),
    /// The other side is no dsync.
    #[error("the other side is not dsync; its output starts with {0:?}")]
    Stranger(String),
    /// The other side has another version.
    #[error("the other side has dsync version {theirs}, this side version {ours}")]
    Version {
        /// Theirs.
        theirs: u32,
        /// Ours.
        ours: u32,
    },
    /// The other side sent bytes that are no message.
    #[error("the other side sent an invalid message")]
    Message(#[from] DecodeError),
    /// The other side sent what it may not.
    #[error("the other side sent {0}")]
    Broken(&'static str),
    /// More directories wait to be walked than there is memory for.
    #[error("too many directories of the source wait to be walked: {0}; copy parts of it")]
    Directories(MemoryFull),
    /// A rule cannot be used.
    #[error("the rule {0:?} has more than two ** or is empty")]
    Rule(String),
    /// A thread could not be started, or a descriptor not copied.
    #[error("this machine lacks a required feature")]
    Machine(#[source] io::Error),
}

impl SyncError {
    /// The message for a directory to which another run writes.
    pub const BUSY: &'static str = "another dsync is writing there";

    /// The error of the run for one of the link. That the other side is gone is met by whichever
    /// call comes first: a read finds the end of the stream, or that the connection was reset, a
    /// write fails with EPIPE.
    pub fn of_link(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::NotConnected
            | ErrorKind::UnexpectedEof => Self::Gone,
            _ => Self::Link(error),
        }
    }
}

/// A reason that several threads may hold.
#[derive(Debug, Clone, Error)]
#[error(transparent)]
pub struct Why(#[from] std::sync::Arc<SyncError>);

impl Why {
    /// What it is.
    pub fn error(&self) -> &SyncError {
        &self.0
    }
}

impl From<SyncError> for Why {
    fn from(error: SyncError) -> Self {
        Self(std::sync::Arc::new(error))
    }
}
