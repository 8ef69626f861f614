//! The token that a controller presents to an agent: from a file, the environment, or made by the
//! agent. It is never an argument, which every user of the machine can read.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use base::limits::LAB_AGENT_TOKEN_BYTES;
use base::random::{Random, SystemRandom};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The environment variable with the token, unless a file is given. Agents that are started by a
/// run do not inherit it.
pub const TOKEN_ENV: &str = "PLIMSOLL_AGENT_TOKEN";

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read the token file {0}")]
    Read(PathBuf, #[source] io::Error),
    /// It has no content.
    #[error("the token of {0} is empty")]
    Empty(String),
}

/// A token. It is not shown by `{:?}`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// The token of `file`, or without one of [`TOKEN_ENV`]; `None` if neither is given.
    ///
    /// # Errors
    /// [`TokenError`]
    pub fn given(file: Option<&Path>) -> Result<Option<Self>, TokenError> {
        let (text, from) = match (file, std::env::var(TOKEN_ENV)) {
            (Some(file), _) => {
                let text = std::fs::read_to_string(file);
                let text = text.map_err(|e| TokenError::Read(file.to_owned(), e))?;
                (text, file.display().to_string())
            }
            (None, Ok(text)) => (text, TOKEN_ENV.to_owned()),
            (None, Err(_)) => return Ok(None),
        };
        match text.trim() {
            "" => Err(TokenError::Empty(from)),
            token => Ok(Some(Self(token.to_owned()))),
        }
    }

    /// A new one.
    pub fn made() -> Self {
        let mut bytes = [0; LAB_AGENT_TOKEN_BYTES];
        SystemRandom.fill(&mut bytes);
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The text, for the message that presents it.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether `presented` is this token. What is compared are digests, in a time that depends on
    /// neither content nor length.
    pub fn is(&self, presented: Option<&str>) -> bool {
        let of = |text: &str| digest(&SHA256, text.as_bytes());
        let (ours, theirs) = (of(&self.0), of(presented.unwrap_or_default()));
        let equal = verify_slices_are_equal(ours.as_ref(), theirs.as_ref()).is_ok();
        equal & presented.is_some()
    }
}

#[cfg(test)]
mod tests;
