//! What carries out the calls of one thread.

use crate::agent::with_sources;
use crate::client::{ClientError, Fault};
use lab_program::cursor::{Call, Done};
use std::io;

/// How a call failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The target returned this instead.
    #[error("{0}")]
    Fault(Fault),
    /// This machine's system did.
    #[error("{0}")]
    System(io::Error),
    /// A server did, or the connection is gone.
    #[error("{}", with_sources(.0))]
    Client(ClientError),
}

impl CallError {
    /// Whether no further call can succeed: the connection is gone.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Client(error) if !matches!(error, ClientError::Refused { .. }))
    }
}

impl From<ClientError> for CallError {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl From<io::Error> for CallError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Calls of a protocol, or of the system, by name.
pub type CallCounts = Vec<(&'static str, u64)>;

/// Carries out the calls of one thread, one after the other.
pub trait Worker: Send {
    /// Carries out one call.
    ///
    /// # Errors
    /// What the target returned instead.
    fn call(&mut self, call: &Call) -> Result<Done, CallError>;

    /// Closes what is open at `fd` after a failure; not counted as an operation.
    fn close(&mut self, _fd: u32) {}

    /// Calls since it was made, by name.
    fn counts(&self) -> CallCounts {
        Vec::new()
    }

    /// Closes what is open and leaves the target. What fails is left to the target.
    fn leave(&mut self) {}
}
