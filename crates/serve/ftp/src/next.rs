//! What follows from a command.

use super::answer::Answer;
use super::transfer::Job;

/// What follows from a command.
pub(super) enum Next {
    /// Only its reply.
    Answer(Answer),
    /// The reply, then TLS.
    Secure(Answer),
    /// The reply, and the end.
    Leave(Answer),
    /// Data.
    Transfer(Box<Job>),
}
