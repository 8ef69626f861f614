//! The head of a revision of the configuration.

use serde::Serialize;

/// A revision's head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Revision {
    /// Counts from 1; 0 before anything was set.
    #[serde(rename = "revision")]
    pub number: u64,
    /// When it was made, seconds since the epoch.
    pub when: u64,
    /// The user or program that made it.
    pub who: String,
    /// Its source.
    pub from: String,
    /// The comment of the user.
    pub comment: String,
    /// How many differences it has to the one before.
    pub changes: usize,
}
