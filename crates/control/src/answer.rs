//! What the rest of the program answers to a question of the API.

/// A JSON text that is sent unchanged: only its author knows its structure.
pub type JsonText = String;

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The caller is at fault.
    #[error("{failed}")]
    Wrong {
        /// What is wrong, one sentence.
        failed: String,
        /// A valid alternative.
        hint: String,
    },
    /// The store is at fault.
    #[error("{0}")]
    Failed(String),
}
