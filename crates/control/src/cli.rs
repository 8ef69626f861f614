//! The context shell: the one tree of administration as a command line, over the API alone.
//!
//! The contexts, properties, their kinds and the actions come from the declaration of the running
//! server (`GET /tree`), so an older shell can administer a newer server. Changes are kept
//! here until `commit` sends them as one transaction; each is checked at once by a dry run.
//!
//! - [`words`]: a line taken apart as a shell does it.
//! - [`declared`]: the declaration, and finding one's way in it.
//! - [`value`]: property values from and to text.
//! - [`pending`]: changes that wait for `commit`.
//! - [`shell`]: the interpreter; everything outside it comes in through [`Api`] and [`Outside`].
//! - [`complete`]: what could come next on a line.
//! - [`script`]: lines from a file or a pipe, until the first error.

pub mod api;
pub mod complete;
pub mod declared;
pub mod node;
pub mod pending;
pub mod place;
pub mod script;
pub mod shell;
pub mod show;
pub mod value;
pub mod words;

#[cfg(test)]
mod tests;

pub use api::{Api, Request};
pub use shell::{Outside, Shell};

/// Why a line was not executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CliError {
    /// The line itself is wrong: no such command, an argument missing, quotes left open.
    #[error("{sentence}")]
    Usage {
        /// What is wrong.
        sentence: String,
        /// A valid alternative.
        hint: String,
    },
    /// A name, a value or an operation that is not possible here, or that the server refuses.
    #[error("{sentence}")]
    Refused {
        /// HTTP status of the server's refusal; 0 when the shell itself found out.
        status: u16,
        /// What is wrong.
        sentence: String,
        /// What to do.
        hint: String,
        /// The property that is at fault, if one is.
        property: Option<String>,
    },
    /// The server does not answer; nothing was changed.
    #[error("{sentence}")]
    Lost {
        /// How.
        sentence: String,
    },
    /// A request was sent to the server and there is no response: it may have been done.
    #[error("{sentence}")]
    Unanswered {
        /// How.
        sentence: String,
    },
}

impl CliError {
    /// A line that is wrong.
    pub fn usage(sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { sentence: sentence.into(), hint: hint.into() }
    }

    /// Something that is not possible, found here.
    pub fn refused(sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        let (sentence, hint) = (sentence.into(), hint.into());
        Self::Refused { status: 0, sentence, hint, property: None }
    }

    /// What to do about it; may be empty.
    pub fn hint(&self) -> &str {
        match self {
            Self::Usage { hint, .. } | Self::Refused { hint, .. } => hint,
            Self::Lost { .. } => {
                "check whether the server is running; uncommitted changes are lost"
            }
            Self::Unanswered { .. } => {
                "the outcome is unknown; once the server responds, check `history` for committed \
                 changes"
            }
        }
    }

    /// Exit code of a script that ends with it: 2 for wrong usage, 1 for all else.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage { .. } => 2,
            Self::Refused { .. } | Self::Lost { .. } | Self::Unanswered { .. } => 1,
        }
    }
}
