//! What the API needs of the lab beyond its branch of the tree: results, reports, and the news of
//! runs.

use serde_json::Value as Json;

use crate::answer::{JsonText, RequestError};

/// Runs of the lab. Calls may block.
pub trait Lab: Send + Sync {
    /// All runs, the newest first, as a JSON list.
    fn runs(&self) -> JsonText;
    /// Runs that changed since `seen`, one JSON object each, and what to give as `seen` next; 0 is
    /// the beginning. Of a run that is no more it has `id` and `state` (`gone`) alone.
    fn changes(&self, seen: u64) -> (Vec<JsonText>, u64);
    /// A file of a run.
    ///
    /// # Errors
    /// [`RequestError::Wrong`] if there is no such run, or it has none.
    fn file(&self, run: &str, file: LabFile) -> Result<Vec<u8>, RequestError>;
    /// The figures of a run in sections, as a JSON object.
    ///
    /// # Errors
    /// As [`Self::file`].
    fn figures(&self, run: &str) -> Result<JsonText, RequestError>;
    /// The same of any result of the laboratory, which is JSON.
    ///
    /// # Errors
    /// [`RequestError::Wrong`] if it is none.
    fn figures_of(&self, result: Json) -> Result<JsonText, RequestError>;
    /// Two results side by side, as a JSON object.
    ///
    /// # Errors
    /// As [`Self::file`].
    fn compare(&self, a: &str, b: &str) -> Result<JsonText, RequestError>;
}

/// A file that a run leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabFile {
    /// The record, JSON.
    Result,
    /// The page made of it.
    Report,
}
